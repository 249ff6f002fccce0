//! Finding the program in one learner's folder, the same for `check`, `grade` and `batch`: heat.cu in it or further down,
//! else an archive, else a program that a course system has renamed. Two of a kind are the submission's fault, as is none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::archive::{self, Content};
use super::beside::Answers;
use super::handed::{DEPTH, ENTRIES, Held, Node, What, file, of_learner};
use super::owner;
use super::source::{self, ReadError, SourceFault, Submission, first_names, folder_name, read_packed};

/// What a fault calls a learner's folder.
const FOLDER: &str = "the folder";
/// Names that a fault shows of what lies there.
const SHOWN: usize = 4;

/// Where a submission is to be read.
#[derive(Debug)]
pub struct Place {
    pub at: At,
    /// What the submission is called, where that is not for its file to say.
    pub name: Option<String>,
    /// Where its program, or the archive with it, lies in the folder; nothing for a heat.cu that lies in it as it should.
    pub inside: Option<String>,
}

/// Where the bytes are.
#[derive(Debug)]
pub enum At {
    /// A folder with heat.cu, an archive or a .cu file.
    Disk(PathBuf),
    /// A .cu file and an answer of another name beside it.
    Pair(PathBuf, PathBuf),
    /// A folder that could not be looked into.
    Closed(PathBuf),
    /// It was read already, out of an archive; or it is at fault.
    Memory(Box<Result<Submission, SourceFault>>),
}

impl Place {
    pub fn fault(fault: SourceFault) -> Self {
        At::Memory(Box::new(Err(fault))).into()
    }

    /// Reads the submission.
    pub fn read(&self) -> Result<Submission, ReadError> {
        let mut read = match &self.at {
            At::Disk(path) if path.is_dir() => source::read_folder(path)?,
            At::Disk(path) => source::read(path)?,
            At::Pair(program, answer) => source::read_with_answer(program, Some(answer))?,
            At::Closed(folder) => return Err(why_closed(folder)),
            At::Memory(read) => (**read).clone()?,
        };
        if let Some(name) = &self.name {
            read.name.clone_from(name);
        }
        read.inside.clone_from(&self.inside);
        Ok(read)
    }
}

impl From<At> for Place {
    fn from(at: At) -> Self {
        Self { at, name: None, inside: None }
    }
}

/// Reads the submission in a folder on disk in which heat.cu does not lie as it should.
pub fn read(folder: &Path) -> Result<Submission, ReadError> {
    let found = find(&of_learner(folder, folder_name(folder))).read()?;
    Ok(Submission { path: folder.to_owned(), ..found })
}

fn why_closed(folder: &Path) -> ReadError {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            SourceFault::Unreadable { file: FOLDER.to_owned() }.into()
        }
        Err(error) => ReadError::Machine { path: folder.to_owned(), error },
        Ok(_) => {
            let error = io::Error::other("it could not be looked into before, and can be now");
            ReadError::Machine { path: folder.to_owned(), error }
        }
    }
}

/// Finds the program in a learner's folder.
pub fn find(folder: &Node) -> Place {
    match &folder.what {
        What::Crowded => return Place::fault(SourceFault::Crowded { most: ENTRIES }),
        What::Closed(path) => return At::Closed(path.clone()).into(),
        _ => {}
    }
    let mut all = Files::default();
    all.add(folder, "", DEPTH);
    let wanted: [&dyn Fn(&str) -> bool; 3] =
        [&|name| name == "heat.cu", &|name| archive::packed(Path::new(name)).is_some(), &owner::is_renamed_program];
    for wanted in wanted {
        let mut found: Vec<&Found> = all.files.iter().filter(|found| wanted(&found.node.name)).collect();
        if folder.file("heat.cu").is_some() {
            // As `grade` reads a folder, whatever lies further down.
            found.retain(|found| found.path == "heat.cu");
        } else if found.iter().all(|found| found.path.contains('/')) && !found.is_empty() {
            // Programs of other learners beside the folder of one, say: which of them is meant?
            let beside = |found: &&Found| !found.path.contains('/') && owner::is_renamed_program(&found.node.name);
            found.extend(all.files.iter().filter(beside));
        }
        match found.as_slice() {
            [] => {}
            [program] => return program.place(&folder.name),
            several => {
                let found = first_names(several.iter().map(|found| &*found.path), SHOWN);
                return Place::fault(SourceFault::Several { file: FOLDER.to_owned(), found });
            }
        }
    }
    if let Some(closed) = all.closed {
        return At::Closed(closed).into();
    }
    let others = first_names(all.files.iter().map(|found| &*found.path), SHOWN);
    Place::fault(SourceFault::Missing { others, deeper: all.deeper })
}

/// The files of a folder, at whatever depth.
#[derive(Default)]
struct Files<'n> {
    files: Vec<Found<'n>>,
    /// Whether there is more, deeper than is looked.
    deeper: bool,
    /// A folder that cannot be looked into.
    closed: Option<PathBuf>,
}

struct Found<'n> {
    /// Below the learner's folder.
    path: String,
    parent: &'n Node,
    node: &'n Node,
}

impl<'n> Files<'n> {
    /// Adds what lies in a folder, and in folders in it, `depth` of them in one another.
    fn add(&mut self, parent: &'n Node, above: &str, depth: usize) {
        for node in parent.children().iter().filter(|child| !is_noise(&child.name)) {
            let path = if above.is_empty() { node.name.clone() } else { format!("{above}/{}", node.name) };
            match &node.what {
                What::Folder(_) if depth == 0 => self.deeper = true,
                What::Folder(_) => self.add(node, &path, depth - 1),
                What::File(_) | What::Irregular(..) => self.files.push(Found { path, parent, node }),
                What::Deeper => self.deeper = true,
                What::Closed(folder) => self.closed = self.closed.take().or_else(|| Some(folder.clone())),
                What::Crowded | What::Results => {}
            }
        }
    }
}

impl Found<'_> {
    fn place(&self, name: &str) -> Place {
        let (What::File(held) | What::Irregular(held, _)) = &self.node.what else {
            return Place::fault(SourceFault::Missing { others: Vec::new(), deeper: false });
        };
        let beside = self.parent.children();
        let answers = Answers::of(beside, &[self.node]);
        let at = of_file(&self.node.name, name, held, beside, answers.of_program(&self.node.name));
        let inside = Some(self.path.clone()).filter(|path| path != "heat.cu");
        Place { at, name: Some(name.to_owned()), inside }
    }
}

/// What systems add by themselves, and what is hidden.
pub fn is_noise(name: &str) -> bool {
    name == "__MACOSX" || name.starts_with('.')
}

/// A program or archive, on disk or in an archive, with the answer of that name beside it.
pub fn of_file(file_name: &str, name: &str, held: &Held, beside: &[Node], answer: Option<&str>) -> At {
    match held {
        Held::Disk(path) if file_name == "heat.cu" => At::Disk(path.parent().unwrap_or(path).to_owned()),
        Held::Disk(path) => match answer.and_then(|answer| file(beside, answer)) {
            Some(Held::Disk(answer)) => At::Pair(path.clone(), answer.clone()),
            _ => At::Disk(path.clone()),
        },
        Held::Packed(content) => match archive::packed(Path::new(file_name)) {
            Some((kind, _)) => {
                let read = match content {
                    Content::Whole(bytes) => read_packed(Path::new(file_name), kind, name.to_owned(), bytes),
                    other => source::of_contents(Path::new(file_name), name.to_owned(), other, None),
                };
                At::Memory(Box::new(read))
            }
            None => packed_program(name, beside, file_name, answer),
        },
    }
}

/// A program in an archive.
pub fn packed_program(name: &str, beside: &[Node], program: &str, answer: Option<&str>) -> At {
    let content = |wanted: &str| match file(beside, wanted) {
        Some(Held::Packed(content)) => Some(content),
        _ => None,
    };
    let read = match content(program) {
        Some(program_content) => {
            source::of_contents(Path::new(program), name.to_owned(), program_content, answer.and_then(content))
        }
        None => Err(SourceFault::Missing { others: Vec::new(), deeper: false }),
    };
    At::Memory(Box::new(read))
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
