//! Why a submission could not be read, in the words of every message.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::archive::ArchiveFault;
use super::handed::DEPTH;
use super::source::has_cu_extension;

/// Why nothing could be read.
#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Usage(#[from] UsageError),
    #[error(transparent)]
    Source(#[from] SourceFault),
    #[error("cannot read {}: {error}", path.display())]
    Machine { path: PathBuf, error: io::Error },
}

/// What may be given, in the words of every message.
const WANTED: &str = "a folder with heat.cu in it, a .zip, .tar or .tar.gz of one, or a .cu file";

/// The command named something that cannot be a submission.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UsageError {
    #[error("{} does not exist; give {WANTED}", path.display())]
    NotFound { path: PathBuf },
    #[error("{} is none of what can be graded; give {WANTED}", path.display())]
    NotASubmission { path: PathBuf },
    #[error("no permission to look at {}; change its permissions or run as another user", path.display())]
    Denied { path: PathBuf },
}

/// A submission that fails at the check `source`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SourceFault {
    #[error("the folder has no heat.cu{}", missing(others, *deeper))]
    Missing {
        /// What lies there instead, by name: the first few.
        others: Vec<String>,
        /// Whether it has folders so deep that they were not looked into.
        deeper: bool,
    },
    #[error("{file} has no heat.cu{}", missing(others, false))]
    NotPacked {
        /// The archive.
        file: String,
        /// What lies in it instead, by name: the first few.
        others: Vec<String>,
    },
    #[error("{file} cannot be read by this grader; {HAND_IN}")]
    OfAnotherKind {
        /// One file, or several by name.
        file: String,
    },
    #[error(
        "{file} looks like a class, with several programs: {}; `heat-grader batch` grades a class, and a submission has one heat.cu",
        found.join(", ")
    )]
    Several {
        /// The folder or archive.
        file: String,
        /// Where they lie in it: the first few.
        found: Vec<String>,
    },
    #[error(
        "the folder has no heat.cu at its top, and more than {most} entries to look through; put heat.cu at the top"
    )]
    Crowded { most: usize },
    #[error("{file} {fault}")]
    Archive { file: String, fault: ArchiveFault },
    #[error("{file} is {what}; it must be the program itself, a regular file")]
    NotRegular { file: String, what: &'static str },
    #[error("{file} is empty; take the lesson's heat.cu and add your kernel")]
    Empty { file: String },
    #[error("{file} is saved as UTF-16; save it as UTF-8 and hand it in again")]
    Utf16 { file: String },
    #[error("{file} is not text (byte {offset} is NUL); it must be source, saved as UTF-8")]
    Binary { file: String, offset: usize },
    #[error("{file} is larger than {cap} bytes; it must be the source alone, without data in it")]
    TooLarge { file: String, cap: u64 },
    #[error("{file} cannot be read (permission denied); make it readable")]
    Unreadable { file: String },
}

/// What to hand in, where nothing was that can be graded.
const HAND_IN: &str = "hand in heat.cu, by itself or in a .zip, .tar or .tar.gz";

/// What there is instead of heat.cu, and what to do.
fn missing(others: &[String], deeper: bool) -> String {
    let looked = deeper.then(|| format!("looked {DEPTH} folders deep"));
    let has = (!others.is_empty()).then(|| format!("it has {}", others.join(", ")));
    let seen: Vec<String> = looked.into_iter().chain(has).collect();
    let seen = if seen.is_empty() { String::new() } else { format!(" ({})", seen.join("; ")) };
    let named_otherwise = others.iter().any(|name| has_cu_extension(Path::new(name)));
    let todo = if named_otherwise {
        "name the program heat.cu"
    } else if deeper {
        "put it further up"
    } else {
        HAND_IN
    };
    format!("{seen}; {todo}")
}
