//! Finding a class's submissions in the layouts that instructors have: a folder a learner, flat `.cu` files
//! (`ann_12345_heat.cu`), an archive of either, a learner's own archive in any of them.
//!
//! What can be graded and what cannot is for [`crate::submission`] to say, in `grade`'s words; here it is only found. A
//! learner's folder in which there is nothing to grade is a submission all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::names;
use crate::submission::Submission;
use crate::submission::archive::{self, ArchiveFault};
use crate::submission::beside::Answers;
use crate::submission::folder::{self, At, Place, is_noise, of_file, packed_program};
use crate::submission::handed::{self, Held, Node, What, spelt};
use crate::submission::owner::{self, stem};
use crate::submission::source::{self, ReadError, SourceFault, first_names, has_cu_extension, shown_name};

/// Most bytes that the archive of a class may have.
const CLASS_CAP: u64 = 512 << 20;
/// Endings of what lies beside submissions and is no learner's, whatever it is called.
const NOBODYS: [&str; 8] = ["csv", "json", "log", "ods", "tsv", "xls", "xlsx", "xml"];

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
    pub place: Place,
}

impl Handed {
    /// Reads the submission.
    pub fn read(&self) -> Result<Submission, ReadError> {
        self.place.read()
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
        let name = spelt(name.file_name().unwrap_or_default().as_bytes());
        finder.class(&handed::of_class(folder, out)?, folder, &name);
    } else if let Some((_, name)) = archive::packed(folder) {
        match finder.archive(folder, folder, &name) {
            Ok(()) => {}
            Err(ReadError::Source(SourceFault::Archive { fault: ArchiveFault::Damaged, .. })) => {
                return Ok(Err(format!(
                    "{shown} is damaged, cut short or no archive; fetch the class's archive again"
                )));
            }
            Err(ReadError::Source(fault)) => return Ok(Err(fault.to_string())),
            Err(fault) => return Err(fault.into()),
        }
    } else {
        let single = if has_cu_extension(folder) { "; `grade` takes one submission" } else { "" };
        return Ok(Err(format!("{shown} is no folder and no archive of submissions{single}")));
    }
    Ok(if finder.found.is_empty() {
        Err(format!(
            "no submission was found in {shown}: a class has a folder, an archive or a .cu file for each learner"
        ))
    } else {
        Ok(finder.finish(folder))
    })
}

#[derive(Default)]
struct Finder {
    /// Wanted name, place, and where to read it.
    found: Vec<(String, PathBuf, Place)>,
    ignored: Vec<String>,
}

impl Finder {
    fn archive(&mut self, file: &Path, shown: &Path, name: &str) -> Result<(), ReadError> {
        let Some((kind, _)) = archive::packed(file) else { return Ok(()) };
        let bytes = source::archive_bytes(file, CLASS_CAP)?;
        let nodes = handed::of_archive(&bytes, kind).map_err(|fault| SourceFault::Archive {
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
        let plain = || beside.iter().copied().filter(|node| !is_noise(&node.name)).collect::<Vec<_>>();
        match own.as_slice() {
            // Archives often hold one folder, and that the class.
            [only] if is_class(only) => {
                self.class(only.children(), &place.join(&only.name), &only.name);
                self.strays(&plain(), &[], place);
                return;
            }
            [only] if only.name == "heat.cu" => {
                let at = match &only.what {
                    What::File(Held::Disk(_)) | What::Irregular(Held::Disk(_), _) => At::Disk(place.to_owned()),
                    _ => packed_program(name, nodes, "heat.cu", Some("answer.md")),
                };
                self.found.push((name.to_owned(), place.to_owned(), at.into()));
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
                    self.strays(&plain(), &[], place);
                    return;
                }
            }
            _ => {}
        }
        let answers = Answers::of(nodes, &own);
        for node in &own {
            self.learner(node, place, nodes, &answers);
        }
        let beside: Vec<&Node> = beside.into_iter().filter(|node| !answers.used.contains(&node.name)).collect();
        self.strays(&beside, &own, place);
    }

    /// What of the files beside the submissions is a learner's by its name: somebody who handed in nothing else fails, and is
    /// not forgotten. All else is nobody's.
    fn strays(&mut self, beside: &[&Node], own: &[&Node], place: &Path) {
        let known: BTreeSet<&str> =
            own.iter().map(|node| owner_of(node).map_or(stem(&node.name), owner::learner)).collect();
        let mut strays: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        for node in beside {
            match owner_of(node).map(owner::learner).filter(|learner| !known.contains(learner)) {
                Some(learner) if is_somebodys(node) => strays.entry(learner).or_default().push(node),
                _ => self.ignored.push(shown(node)),
            }
        }
        for files in strays.into_values() {
            let (Some(first), Some(owner)) = (files.first(), files.first().and_then(|node| owner_of(node))) else {
                continue;
            };
            let file = first_names(files.iter().map(|node| &*node.name), 4).join(", ");
            let fault = Place::fault(SourceFault::OfAnotherKind { file });
            self.found.push((owner.to_owned(), place.join(&first.name), fault));
        }
    }

    fn learner(&mut self, node: &Node, place: &Path, beside: &[Node], answers: &Answers) {
        let path = place.join(&node.name);
        let (name, found) = match &node.what {
            What::File(held) | What::Irregular(held, _) => {
                let stem = archive::packed(Path::new(&node.name))
                    .map_or_else(|| stem(&node.name).to_owned(), |(_, name)| name);
                let name = owner::owner_of_program(&stem).filter(|owner| !owner.is_empty()).unwrap_or(&stem).to_owned();
                let at = of_file(&node.name, &name, held, beside, answers.of_program(&node.name));
                (name, at.into())
            }
            _ => (node.name.clone(), folder::find(node)),
        };
        self.found.push((name, path, found));
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
        let mut submissions: Vec<Handed> = self
            .found
            .into_iter()
            .zip(learners)
            .map(|((_, path, place), learner)| Handed { learner, path, place })
            .collect();
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
        What::Folder(_) | What::Deeper | What::Closed(_) | What::Crowded => true,
        What::File(_) | What::Irregular(..) => is_file,
        What::Results => false,
    }
}

/// Whose a file is by its name.
fn owner_of(node: &Node) -> Option<&str> {
    match &node.what {
        What::File(_) | What::Irregular(..) => owner::owner_of_file(stem(&node.name)),
        _ => None,
    }
}

/// Whether a file that no grader reads can be what somebody handed in.
fn is_somebodys(node: &Node) -> bool {
    let ending = node.name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    !is_noise(&node.name) && !NOBODYS.contains(&&*ending)
}

fn shown(node: &Node) -> String {
    match &node.what {
        What::Irregular(_, what) => format!("{} ({what})", shown_name(&node.name)),
        What::Results => format!("{} (results of a batch)", shown_name(&node.name)),
        _ => shown_name(&node.name),
    }
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
