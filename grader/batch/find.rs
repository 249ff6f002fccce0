//! Finding a class's submissions in the layouts that instructors have: a folder a learner, flat `.cu` files
//! (`ann_12345_heat.cu`), an archive of either, a learner's own archive in any of them.
//!
//! What can be graded and what cannot is for [`crate::submission`] to say, in `grade`'s words; here it is only found. A
//! learner's folder in which there is nothing to grade is a submission all the same.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::answers::Answers;
use super::names;
use super::tree::{self, ENTRIES, Held, Node, What, file};
use crate::submission::archive::{self, ArchiveFault, Content};
use crate::submission::source::{self, ReadError, SourceFault, first_names, has_cu_extension, shown_name};
use crate::submission::{self, Submission};

/// Most bytes that the archive of a class may have.
const CLASS_CAP: u64 = 512 << 20;
/// What a fault calls a learner's folder.
const FOLDER: &str = "the folder";

/// Everybody's submissions.
#[derive(Debug, Default)]
pub struct Class {
    /// By learner.
    pub submissions: Vec<Handed>,
    /// What is nobody's submission, as it may be shown.
    pub ignored: Vec<String>,
}

/// One learner's submission.
#[derive(Debug)]
pub struct Handed {
    /// Stable, unique in its class, and fit to name a file.
    pub learner: String,
    /// Where it was found, within an archive too: `class.zip/ann/heat.cu`.
    pub path: PathBuf,
    pub at: At,
}

/// Where to read it.
#[derive(Debug)]
pub enum At {
    /// A folder, an archive or a .cu file.
    Disk(PathBuf),
    /// A .cu file and an answer of another name beside it.
    Pair(PathBuf, PathBuf),
    /// It was read already, out of an archive; or it is at fault.
    Memory(Box<Result<Submission, SourceFault>>),
}

impl Handed {
    /// Reads the submission.
    pub fn read(&self) -> Result<Submission, ReadError> {
        match &self.at {
            At::Disk(path) => submission::read(path),
            At::Pair(program, answer) => source::read_with_answer(program, Some(answer)),
            At::Memory(read) => (**read).clone().map_err(ReadError::Source),
        }
    }
}

/// Finds the submissions in a folder or an archive; `out`, should it lie in there, is none. The inner error says what is wrong with what was typed.
pub fn find(folder: &Path, out: &Path) -> Result<Result<Class, String>> {
    let shown = folder.display();
    let metadata = match std::fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Err(format!("{shown} does not exist")));
        }
        Err(error) => return Ok(Err(format!("{shown} cannot be looked at: {error}"))),
    };
    if out.canonicalize().is_ok_and(|out| Some(out) == folder.canonicalize().ok()) {
        return Ok(Err(format!("{shown} holds the submissions; --out has to be another folder")));
    }
    let mut finder = Finder::default();
    if metadata.is_dir() {
        let name = folder.canonicalize().unwrap_or_default();
        finder.class(&tree::of_folder(folder, out)?, folder, &name.file_name().unwrap_or_default().to_string_lossy());
    } else if let Some((_, name)) = archive::packed(folder) {
        match finder.archive(folder, folder, &name) {
            Ok(()) => {}
            Err(ReadError::Source(fault)) => return Ok(Err(fault.to_string())),
            Err(fault) => return Err(fault.into()),
        }
    } else {
        return Ok(Err(format!("{shown} is no folder and no archive; `grade` takes one submission")));
    }
    Ok(if finder.found.is_empty() {
        Err(format!("no submission was found in {shown}"))
    } else {
        Ok(finder.finish(folder))
    })
}

#[derive(Default)]
struct Finder {
    /// Wanted name, place, and where to read it.
    found: Vec<(String, PathBuf, At)>,
    ignored: Vec<String>,
}

impl Finder {
    fn archive(&mut self, file: &Path, shown: &Path, name: &str) -> Result<(), ReadError> {
        let Some((kind, _)) = archive::packed(file) else { return Ok(()) };
        let bytes = source::archive_bytes(file, CLASS_CAP)?;
        let nodes = tree::of_archive(&bytes, kind).map_err(|fault| SourceFault::Archive {
            file: shown_name(&file.file_name().unwrap_or_default().to_string_lossy()),
            fault,
        })?;
        drop(bytes);
        self.class(&nodes, shown, name);
        Ok(())
    }

    /// Takes the learners' folders and files out of the folder of a class, whose name is `name`.
    fn class(&mut self, nodes: &[Node], place: &Path, name: &str) {
        let (own, beside): (Vec<&Node>, Vec<&Node>) = nodes.iter().partition(|node| may_be_handed_in(node));
        match own.as_slice() {
            // Archives often hold one folder, and that the class.
            [only] if is_class(only) => return self.class(only.children(), &place.join(&only.name), &only.name),
            [only] if only.name == "heat.cu" => {
                let at = match &only.what {
                    What::File(Held::Disk(_)) | What::Irregular(Held::Disk(_), _) => At::Disk(place.to_owned()),
                    _ => packed_program(name, nodes, "heat.cu", Some("answer.md")),
                };
                self.found.push((name.to_owned(), place.to_owned(), at));
                return;
            }
            [only] => {
                let mut packed = Self::default();
                if let (What::File(Held::Disk(file)), Some((_, stem))) =
                    (&only.what, archive::packed(Path::new(&only.name)))
                    && packed.archive(file, file, &stem).is_ok()
                    && packed.found.len() > 1
                {
                    // A class after all, and not one learner's.
                    *self = packed;
                    return;
                }
            }
            _ => {}
        }
        let answers = Answers::of(nodes, &own);
        for node in own {
            self.learner(node, place, nodes, &answers);
        }
        let shown = |node: &&Node| match &node.what {
            What::Irregular(_, what) => format!("{} ({what})", shown_name(&node.name)),
            What::Results => format!("{} (results of a batch)", shown_name(&node.name)),
            _ => shown_name(&node.name),
        };
        let beside = beside.iter().filter(|node| !answers.used.contains(&node.name));
        self.ignored.extend(beside.map(shown));
    }

    fn learner(&mut self, node: &Node, place: &Path, beside: &[Node], answers: &Answers) {
        let path = place.join(&node.name);
        let (name, at) = match &node.what {
            What::Folder(_) => (node.name.clone(), of_folder(node, &path)),
            What::Crowded => {
                let fault =
                    SourceFault::Archive { file: FOLDER.to_owned(), fault: ArchiveFault::TooMany { most: ENTRIES } };
                (node.name.clone(), At::Memory(Box::new(Err(fault))))
            }
            What::File(held) | What::Irregular(held, _) => {
                let stem = archive::packed(Path::new(&node.name))
                    .map_or_else(|| stem(&node.name).to_owned(), |(_, name)| name);
                let name = names::owner_of_program(&stem).filter(|owner| !owner.is_empty()).unwrap_or(&stem).to_owned();
                let at = of_file(&node.name, &name, held, beside, answers.of_program(&node.name));
                (name, at)
            }
            What::Results => return,
        };
        self.found.push((name, path, at));
    }

    /// Gives everybody a name.
    fn finish(self, root: &Path) -> Class {
        let wanted: Vec<(String, String)> = self
            .found
            .iter()
            .map(|(name, path, _)| {
                // Not by where the class lies, which may be elsewhere next time.
                let within = path.strip_prefix(root).unwrap_or(path);
                (names::safe(name), within.to_string_lossy().into_owned())
            })
            .collect();
        let learners = names::unique(&wanted);
        let mut submissions: Vec<Handed> =
            self.found.into_iter().zip(learners).map(|((_, path, at), learner)| Handed { learner, path, at }).collect();
        submissions.sort_by(|one, other| one.learner.cmp(&other.learner));
        Class { submissions, ignored: self.ignored }
    }
}

/// Whether it can be a learner's: a folder, a program or an archive, and no link to a folder.
fn may_be_handed_in(node: &Node) -> bool {
    let name = Path::new(&node.name);
    let is_file = has_cu_extension(name) || archive::packed(name).is_some();
    match &node.what {
        _ if is_noise(&node.name) => false,
        What::Folder(_) | What::Crowded => true,
        What::File(_) | What::Irregular(..) => is_file,
        What::Results => false,
    }
}

/// What systems add by themselves, and what is hidden.
fn is_noise(name: &str) -> bool {
    name == "__MACOSX" || name.starts_with('.')
}

/// Whether a folder holds several learners' work rather than one's: no program of its own, and two children that have one.
fn is_class(node: &Node) -> bool {
    let programs = node.children().iter().filter(|child| may_be_handed_in(child) && has_program(child)).count();
    node.file("heat.cu").is_none() && programs > 1
}

fn has_program(node: &Node) -> bool {
    match &node.what {
        What::Folder(children) => children.iter().any(|child| may_be_handed_in(child) && has_program(child)),
        _ => true,
    }
}

pub fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Files at or below a node, as paths below it.
fn files<'n>(
    node: &'n Node,
    above: &str,
    wanted: &dyn Fn(&str) -> bool,
    found: &mut Vec<(String, &'n Node, &'n Node)>,
) {
    for child in node.children().iter().filter(|child| !is_noise(&child.name)) {
        let path = if above.is_empty() { child.name.clone() } else { format!("{above}/{}", child.name) };
        match &child.what {
            What::Folder(_) => files(child, &path, wanted, found),
            What::File(_) | What::Irregular(..) if wanted(&child.name) => found.push((path, node, child)),
            _ => {}
        }
    }
}

/// A learner's folder: heat.cu in it or further down, else an archive, else a program that a system has renamed.
fn of_folder(folder: &Node, path: &Path) -> At {
    let wanted: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == "heat.cu", &|name| archive::packed(Path::new(name)).is_some(), &|name| {
            has_cu_extension(Path::new(name)) && names::owner_of_program(stem(name)).is_some()
        }];
    for wanted in wanted {
        let mut found = Vec::new();
        files(folder, "", wanted, &mut found);
        if folder.file("heat.cu").is_some() {
            // As `grade` reads a folder, whatever lies further down.
            found.retain(|(path, ..)| path == "heat.cu");
        }
        match found.as_slice() {
            [] => {}
            [(_, parent, program)] => {
                let (What::File(held) | What::Irregular(held, _)) = &program.what else { continue };
                let answers = Answers::of(parent.children(), &[program]);
                return of_file(
                    &program.name,
                    &folder.name,
                    held,
                    parent.children(),
                    answers.of_program(&program.name),
                );
            }
            several => {
                let found = first_names(several.iter().map(|(path, ..)| &**path), 4);
                return At::Memory(Box::new(Err(SourceFault::Several { file: FOLDER.to_owned(), found })));
            }
        }
    }
    let mut others = Vec::new();
    files(folder, "", &|name| has_cu_extension(Path::new(name)), &mut others);
    if others.is_empty() && path.is_dir() {
        // In `grade`'s own words, a folder that cannot be looked into included.
        return At::Disk(path.to_owned());
    }
    let others = first_names(others.iter().map(|(path, ..)| &**path), 3);
    At::Memory(Box::new(Err(SourceFault::Missing { others })))
}

/// A program or archive, on disk or in an archive, with the answer of that name beside it.
fn of_file(file_name: &str, name: &str, held: &Held, beside: &[Node], answer: Option<&str>) -> At {
    match held {
        Held::Disk(path) if file_name == "heat.cu" => At::Disk(path.parent().unwrap_or(path).to_owned()),
        Held::Disk(path) => match answer {
            Some(answer) => At::Pair(path.clone(), path.with_file_name(answer)),
            None => At::Disk(path.clone()),
        },
        Held::Packed(content) => match archive::packed(Path::new(file_name)) {
            Some((kind, _)) => {
                let read = match content {
                    Content::Whole(bytes) => {
                        submission::source::read_packed(Path::new(file_name), kind, name.to_owned(), bytes)
                    }
                    other => source::of_contents(Path::new(file_name), name.to_owned(), other, None),
                };
                At::Memory(Box::new(read))
            }
            None => packed_program(name, beside, file_name, answer),
        },
    }
}

/// A program in an archive.
fn packed_program(name: &str, beside: &[Node], program: &str, answer: Option<&str>) -> At {
    let content = |wanted: &str| match file(beside, wanted) {
        Some(Held::Packed(content)) => Some(content),
        _ => None,
    };
    let read = match content(program) {
        Some(program_content) => {
            source::of_contents(Path::new(program), name.to_owned(), program_content, answer.and_then(content))
        }
        None => Err(SourceFault::Missing { others: Vec::new() }),
    };
    At::Memory(Box::new(read))
}
