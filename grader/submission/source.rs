//! Reading what was handed in: a folder with heat.cu (and perhaps answer.md), or a bare .cu file.
//!
//! Three ways to fail, told apart because they end differently: the command was typed wrong ([`UsageError`], exit
//! code 2), the submission is at fault ([`SourceFault`], it fails at the check `source`), the machine is
//! ([`ReadError::Machine`], exit code 3). Nothing here blocks on a pipe, follows a link or reads past its cap.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Most bytes that heat.cu may have.
pub const SOURCE_CAP: u64 = 1 << 20;
/// Most bytes that answer.md may have.
pub const ANSWER_CAP: u64 = 64 << 10;

/// A submission as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// The path as given.
    pub path: PathBuf,
    /// The folder's name, or the file's without `.cu`.
    pub name: String,
    /// heat.cu without a byte order mark and with LF line ends; bytes that are not UTF-8 became U+FFFD.
    pub text: String,
    /// SHA-256 of heat.cu's bytes as they lie on disk, in hexadecimal.
    pub sha256: String,
    /// answer.md beside heat.cu, when a folder was handed in and the file could be read.
    pub answer_md: Option<String>,
    /// Why an answer.md that is there was not read.
    pub answer_note: Option<String>,
}

impl Submission {
    /// A submission that never lay on a disk, as tests and the reference make it.
    pub fn from_text(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            text: normalised(text.as_bytes()),
            sha256: sha256_hex(text.as_bytes()),
            ..Self::default()
        }
    }
}

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

/// The command named something that cannot be a submission.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UsageError {
    #[error("{} does not exist; give a folder with heat.cu in it, or a .cu file", path.display())]
    NotFound { path: PathBuf },
    #[error("{} is neither a folder nor a .cu file; give a folder with heat.cu in it, or a .cu file", path.display())]
    NotASubmission { path: PathBuf },
    #[error("no permission to look at {}; change its permissions or run as another user", path.display())]
    Denied { path: PathBuf },
}

/// A submission that fails at the check `source`.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum SourceFault {
    #[error("the folder has no heat.cu{}; name the program heat.cu and hand it in again", also(others))]
    Missing {
        /// Other .cu files that lie there, at most three.
        others: Vec<String>,
    },
    #[error("{file} is {what}; hand in the program itself as a regular file")]
    NotRegular { file: String, what: &'static str },
    #[error("{file} is empty; hand in the lesson's heat.cu with your kernel added")]
    Empty { file: String },
    #[error("{file} is not text (byte {offset} is NUL); hand in the source, saved as UTF-8")]
    Binary { file: String, offset: usize },
    #[error("{file} is larger than {cap} bytes; hand in the source alone, without data in it")]
    TooLarge { file: String, cap: u64 },
    #[error("{file} cannot be read (permission denied); make it readable and hand it in again")]
    Unreadable { file: String },
}

fn also(others: &[String]) -> String {
    if others.is_empty() { String::new() } else { format!(" (it has {})", others.join(", ")) }
}

/// Reads the submission at `path`.
pub fn read(path: &Path) -> Result<Submission, ReadError> {
    let metadata = fs::metadata(path).map_err(|error| looked_at(path, error))?;
    if metadata.is_dir() { read_folder(path) } else { read_bare(path) }
}

fn looked_at(path: &Path, error: io::Error) -> ReadError {
    let dangling = fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink());
    match error.kind() {
        io::ErrorKind::NotFound if dangling && has_cu_extension(path) => {
            SourceFault::NotRegular { file: shown(path), what: "a link" }.into()
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput => {
            UsageError::NotFound { path: path.to_owned() }.into()
        }
        io::ErrorKind::PermissionDenied => UsageError::Denied { path: path.to_owned() }.into(),
        _ => ReadError::Machine { path: path.to_owned(), error },
    }
}

fn read_folder(folder: &Path) -> Result<Submission, ReadError> {
    let bytes = match read_capped(&folder.join("heat.cu"), SOURCE_CAP)? {
        Some(bytes) => bytes,
        None => return Err(SourceFault::Missing { others: other_sources(folder) }.into()),
    };
    let mut submission = from_bytes(folder, folder_name(folder), &bytes)?;
    (submission.answer_md, submission.answer_note) = match read_answer(&folder.join("answer.md")) {
        Ok(answer) => (answer, None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(submission)
}

fn read_bare(path: &Path) -> Result<Submission, ReadError> {
    if !has_cu_extension(path) {
        return Err(UsageError::NotASubmission { path: path.to_owned() }.into());
    }
    let bytes = read_capped(path, SOURCE_CAP)?.ok_or_else(|| UsageError::NotFound { path: path.to_owned() })?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    from_bytes(path, name, &bytes)
}

fn from_bytes(path: &Path, name: String, bytes: &[u8]) -> Result<Submission, ReadError> {
    let text = normalised(bytes);
    if text.trim().is_empty() {
        let file = if has_cu_extension(path) { shown(path) } else { "heat.cu".to_owned() };
        return Err(SourceFault::Empty { file }.into());
    }
    Ok(Submission { path: path.to_owned(), name, text, sha256: sha256_hex(bytes), ..Submission::default() })
}

fn read_answer(path: &Path) -> Result<Option<String>, ReadError> {
    Ok(read_capped(path, ANSWER_CAP)?.map(|bytes| normalised(&bytes)))
}

/// The bytes of a regular text file of at most `cap` bytes; nothing when there is no such file.
fn read_capped(path: &Path, cap: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(opened(path, error)),
    };
    let machine = |error| ReadError::Machine { path: path.to_owned(), error };
    let metadata = file.metadata().map_err(machine)?;
    if !metadata.is_file() {
        return Err(SourceFault::NotRegular { file: shown(path), what: kind_of(metadata.file_type()) }.into());
    }
    if metadata.len() > cap {
        return Err(SourceFault::TooLarge { file: shown(path), cap }.into());
    }
    let mut bytes = Vec::new();
    file.take(cap + 1).read_to_end(&mut bytes).map_err(machine)?;
    if bytes.len() as u64 > cap {
        return Err(SourceFault::TooLarge { file: shown(path), cap }.into());
    }
    match bytes.iter().position(|&byte| byte == 0) {
        Some(offset) => Err(SourceFault::Binary { file: shown(path), offset }.into()),
        None => Ok(Some(bytes)),
    }
}

/// Opens without following a link and without waiting for the other end of a pipe.
fn open_regular(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

fn opened(path: &Path, error: io::Error) -> ReadError {
    let file = shown(path);
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return SourceFault::NotRegular { file, what: "a link" }.into();
    }
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::PermissionDenied, _) => SourceFault::Unreadable { file }.into(),
        (_, Some(libc::ENXIO)) => SourceFault::NotRegular { file, what: "a socket or device" }.into(),
        _ => ReadError::Machine { path: path.to_owned(), error },
    }
}

fn kind_of(kind: fs::FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "a device"
    }
}

fn other_sources(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .flatten()
        .take(1000)
        .map(|entry| entry.path())
        .filter(|path| has_cu_extension(path))
        .map(|path| shown(&path))
        .collect();
    names.sort();
    names.truncate(3);
    names
}

fn has_cu_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("cu"))
}

/// A file's name as messages show it: control characters escaped, at most 80 characters.
fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn folder_name(folder: &Path) -> String {
    let named = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    named(folder)
        .or_else(|| fs::canonicalize(folder).ok().and_then(|full| named(&full)))
        .unwrap_or_else(|| "submission".to_owned())
}

/// UTF-8 without its mark and with LF line ends. Compilers accept other bytes in comments and strings, so do we.
fn normalised(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).replace("\r\n", "\n")
}

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn folder_with(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in files {
            fs::write(folder.path().join(name), bytes).expect("a file");
        }
        folder
    }

    fn fault(path: &Path) -> SourceFault {
        match read(path) {
            Err(ReadError::Source(fault)) => fault,
            other => panic!("expected a source fault, got {other:?}"),
        }
    }

    #[test]
    fn a_folder_gives_its_text_name_hash_and_answer() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("Zoë \"the\" first's");
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("heat.cu"), b"\xEF\xBB\xBFint a;\r\nint b;\r\n").expect("a file");
        fs::write(folder.join("answer.md"), "rows: 1").expect("a file");
        let submission = read(&folder).expect("a submission");
        assert_eq!(submission.text, "int a;\nint b;\n");
        assert_eq!(submission.name, "Zoë \"the\" first's");
        assert_eq!(submission.sha256.len(), 64);
        assert_eq!(submission.answer_md.as_deref(), Some("rows: 1"));
    }

    #[test]
    fn a_bare_file_leaves_the_answer_beside_it_alone() {
        let folder = folder_with(&[("mine.cu", b"int a; // \xE9"), ("answer.md", b"rows: 1")]);
        let submission = read(&folder.path().join("mine.cu")).expect("a submission");
        assert_eq!((submission.name.as_str(), submission.answer_md), ("mine", None));
        assert!(submission.text.ends_with('\u{FFFD}'));
    }

    #[test]
    fn what_was_typed_wrong_is_a_usage_error() {
        let folder = folder_with(&[("notes.txt", b"x")]);
        for path in ["nothing", "notes.txt", "nothing.cu"] {
            let result = read(&folder.path().join(path));
            assert!(matches!(result, Err(ReadError::Usage(_))), "{path}: {result:?}");
        }
    }

    #[test]
    fn files_that_are_no_source_fail_at_source() {
        let large = vec![b' '; SOURCE_CAP as usize + 1];
        let cases: [(&[u8], &str); 4] =
            [(b"", "empty"), (b" \n\t", "empty"), (b"int\0a", "byte 3 is NUL"), (&large, "larger than")];
        for (bytes, expected) in cases {
            let folder = folder_with(&[("heat.cu", bytes)]);
            assert!(fault(folder.path()).to_string().contains(expected), "{expected}");
        }
        let folder = folder_with(&[("main.cu", b"int a;")]);
        assert!(fault(folder.path()).to_string().contains("it has main.cu"));
    }

    #[test]
    fn links_pipes_and_folders_are_refused_without_waiting() {
        let folder = folder_with(&[("real.cu", b"int a;")]);
        let heat = folder.path().join("heat.cu");
        symlink(folder.path().join("real.cu"), &heat).expect("a link");
        assert!(fault(folder.path()).to_string().contains("a link"));
        fs::remove_file(&heat).expect("removed");
        fs::create_dir(&heat).expect("a folder");
        assert!(fault(folder.path()).to_string().contains("a folder"));
        fs::remove_dir(&heat).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&heat).status();
        if made.is_ok_and(|status| status.success()) {
            assert!(fault(folder.path()).to_string().contains("a pipe"));
        }
    }

    #[test]
    fn an_unreadable_file_is_the_submissions_fault() {
        let folder = folder_with(&[("heat.cu", b"int a;")]);
        let heat = folder.path().join("heat.cu");
        fs::set_permissions(&heat, fs::Permissions::from_mode(0o0)).expect("permissions");
        if File::open(&heat).is_err() {
            assert!(matches!(fault(folder.path()), SourceFault::Unreadable { .. }));
        }
    }

    #[test]
    fn a_bad_answer_is_noted_and_left_out() {
        let folder = folder_with(&[("heat.cu", b"int a;"), ("answer.md", b"\0")]);
        let submission = read(folder.path()).expect("a submission");
        assert_eq!(submission.answer_md, None);
        assert!(submission.answer_note.is_some_and(|note| note.contains("answer.md")));
    }
}
