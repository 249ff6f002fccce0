//! Reading what was handed in: a folder with heat.cu (and perhaps answer.md), an archive of one, or a bare .cu file. Where a
//! folder has its heat.cu further down is for [`super::folder`] to say.
//!
//! Three ways to fail, told apart because they end differently: the command was typed wrong ([`UsageError`], exit
//! code 2), the submission is at fault ([`SourceFault`], it fails at the check `source`), the machine is
//! ([`ReadError::Machine`], exit code 3). Nothing here blocks on a pipe, follows a link or reads past its cap.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::archive::{self, ARCHIVE_CAP, Content, Kind, Limits, last_part};
pub use super::fault::{ReadError, SourceFault, UsageError};
use super::folder;
use super::owner;

/// Most bytes that heat.cu may have.
pub const SOURCE_CAP: u64 = 1 << 20;
/// Most bytes that answer.md may have.
pub const ANSWER_CAP: u64 = 64 << 10;

/// A submission as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// The path as given.
    pub path: PathBuf,
    /// The folder's name, or the file's without `.cu` or an archive's ending.
    pub name: String,
    /// heat.cu without a byte order mark and with LF line ends; bytes that are not UTF-8 became U+FFFD.
    pub text: String,
    /// SHA-256 of heat.cu's bytes as they were handed in, in hexadecimal.
    pub sha256: String,
    /// answer.md beside heat.cu, when a folder or archive was handed in and the file could be read.
    pub answer_md: Option<String>,
    /// Why an answer.md that is there was not read.
    pub answer_note: Option<String>,
    /// Where heat.cu, or the archive with it, was found in a folder that does not have it at its top.
    pub inside: Option<String>,
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

/// Reads the submission at `path`.
pub fn read(path: &Path) -> Result<Submission, ReadError> {
    let metadata = fs::metadata(path).map_err(|error| looked_at(path, error))?;
    match archive::packed(path) {
        _ if metadata.is_dir() && has_no_program(path) => folder::read(path),
        _ if metadata.is_dir() => read_folder(path),
        Some((kind, name)) => read_archive(path, kind, name),
        None => read_bare(path),
    }
}

fn looked_at(path: &Path, error: io::Error) -> ReadError {
    let link = fs::symlink_metadata(path).is_ok_and(|link| link.is_symlink());
    match error.kind() {
        _ if link && (has_cu_extension(path) || archive::packed(path).is_some()) => {
            SourceFault::NotRegular { file: shown(path), what: "a link" }.into()
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput => {
            UsageError::NotFound { path: path.to_owned() }.into()
        }
        io::ErrorKind::PermissionDenied => UsageError::Denied { path: path.to_owned() }.into(),
        _ => ReadError::Machine { path: path.to_owned(), error },
    }
}

fn has_no_program(folder: &Path) -> bool {
    let found = fs::symlink_metadata(folder.join("heat.cu"));
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// A submission out of a folder in which heat.cu lies.
pub fn read_folder(folder: &Path) -> Result<Submission, ReadError> {
    let bytes = match read_capped(&folder.join("heat.cu"), SOURCE_CAP)? {
        Some(bytes) => bytes,
        None => return Err(SourceFault::Missing { others: Vec::new(), deeper: false }.into()),
    };
    let mut submission = from_bytes(folder, folder_name(folder), &bytes)?;
    (submission.answer_md, submission.answer_note) = match read_answer(&folder.join("answer.md")) {
        Ok(answer) => (answer, None),
        Err(error) => (None, Some(error.to_string())),
    };
    Ok(submission)
}

/// The bytes of an archive on disk.
pub fn archive_bytes(path: &Path, cap: u64) -> Result<Vec<u8>, ReadError> {
    Ok(read_bytes(path, cap)?.ok_or_else(|| UsageError::NotFound { path: path.to_owned() })?)
}

/// A submission out of an archive: heat.cu at its root or in a folder, and the answer.md beside it.
fn read_archive(path: &Path, kind: Kind, name: String) -> Result<Submission, ReadError> {
    Ok(read_packed(path, kind, name, &archive_bytes(path, ARCHIVE_CAP)?)?)
}

/// The same for an archive whose bytes are at hand.
pub fn read_packed(path: &Path, kind: Kind, name: String, bytes: &[u8]) -> Result<Submission, SourceFault> {
    let file = shown(path);
    let wanted = |inside: &str| match last_part(inside) {
        "heat.cu" => Some(SOURCE_CAP),
        "answer.md" => Some(ANSWER_CAP),
        _ => None,
    };
    let packed = archive::files(bytes, kind, Limits::default(), &wanted)
        .map_err(|fault| SourceFault::Archive { file: file.clone(), fault })?;
    let mut programs: Vec<_> = packed.iter().filter(|packed| last_part(&packed.path) == "heat.cu").collect();
    programs.sort_by(|one, other| one.path.cmp(&other.path));
    let program = match programs.as_slice() {
        [program] => program,
        [] => {
            let others = packed.iter().map(|packed| &*packed.path);
            let renamed = |path: &&str| owner::is_renamed_program(last_part(path));
            if others.clone().filter(renamed).count() > 1 {
                return Err(SourceFault::Several { file, found: first_names(others.filter(renamed), 4) });
            }
            return Err(SourceFault::NotPacked { file, others: first_names(others, 4) });
        }
        several => {
            let found = first_names(several.iter().map(|program| &*program.path), 4);
            return Err(SourceFault::Several { file, found });
        }
    };
    let name = if name.is_empty() { "submission".to_owned() } else { name };
    let beside = format!("{}answer.md", program.path.strip_suffix("heat.cu").unwrap_or_default());
    let answer = packed.iter().find(|packed| packed.path == beside);
    of_contents(path, name, &program.content, answer.map(|answer| &answer.content))
}

/// A submission of the contents of heat.cu and answer.md.
pub fn of_contents(
    path: &Path,
    name: String,
    program: &Content,
    answer: Option<&Content>,
) -> Result<Submission, SourceFault> {
    let text = |name: &str, content: &Content| match content {
        Content::Whole(bytes) => text_only(name, bytes.clone()),
        Content::TooLarge(cap) => Err(SourceFault::TooLarge { file: name.to_owned(), cap: *cap }),
        Content::Irregular(what) => Err(SourceFault::NotRegular { file: name.to_owned(), what }),
        Content::Unread | Content::Folder => Ok(Vec::new()),
    };
    let mut submission = from_bytes(path, name, &text("heat.cu", program)?)?;
    match answer.map(|answer| text("answer.md", answer)) {
        Some(Ok(bytes)) => submission.answer_md = Some(normalised(&bytes)),
        Some(Err(fault)) => submission.answer_note = Some(fault.to_string()),
        None => {}
    }
    Ok(submission)
}

fn read_bare(path: &Path) -> Result<Submission, ReadError> {
    if !has_cu_extension(path) {
        return Err(UsageError::NotASubmission { path: path.to_owned() }.into());
    }
    let bytes = read_capped(path, SOURCE_CAP)?.ok_or_else(|| UsageError::NotFound { path: path.to_owned() })?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(from_bytes(path, name, &bytes)?)
}

/// A .cu file by itself with an answer.md of another name, as systems that rename files hand them out.
pub fn read_with_answer(program: &Path, answer: Option<&Path>) -> Result<Submission, ReadError> {
    let mut submission = read_bare(program)?;
    match answer.map(read_answer) {
        Some(Ok(answer)) => submission.answer_md = answer,
        Some(Err(error)) => submission.answer_note = Some(error.to_string()),
        None => {}
    }
    Ok(submission)
}

fn from_bytes(path: &Path, name: String, bytes: &[u8]) -> Result<Submission, SourceFault> {
    let text = normalised(bytes);
    if text.trim().is_empty() {
        let file = if has_cu_extension(path) { shown(path) } else { "heat.cu".to_owned() };
        return Err(SourceFault::Empty { file });
    }
    Ok(Submission { path: path.to_owned(), name, text, sha256: sha256_hex(bytes), ..Submission::default() })
}

fn read_answer(path: &Path) -> Result<Option<String>, ReadError> {
    Ok(read_capped(path, ANSWER_CAP)?.map(|bytes| normalised(&bytes)))
}

/// The bytes of a regular text file of at most `cap` bytes; nothing when there is no such file.
fn read_capped(path: &Path, cap: u64) -> Result<Option<Vec<u8>>, ReadError> {
    let bytes = read_bytes(path, cap)?;
    Ok(bytes.map(|bytes| text_only(&shown(path), bytes)).transpose()?)
}

fn text_only(file: &str, bytes: Vec<u8>) -> Result<Vec<u8>, SourceFault> {
    if is_utf16(&bytes) {
        return Err(SourceFault::Utf16 { file: file.to_owned() });
    }
    match bytes.iter().position(|&byte| byte == 0) {
        Some(offset) => Err(SourceFault::Binary { file: file.to_owned(), offset }),
        None => Ok(bytes),
    }
}

/// Whether bytes are text of two bytes a character, as some editors save it: by its mark, or by every other byte of its
/// beginning being 0 and none of the rest.
fn is_utf16(bytes: &[u8]) -> bool {
    let marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let (pairs, _) = bytes[..bytes.len().min(64)].as_chunks::<2>();
    let high = |at: usize| pairs.iter().all(|pair| pair[at] == 0 && pair[1 - at] != 0);
    marked || (pairs.len() > 4 && (high(0) || high(1)))
}

/// The bytes of a regular file of at most `cap` bytes; nothing when there is no such file.
fn read_bytes(path: &Path, cap: u64) -> Result<Option<Vec<u8>>, ReadError> {
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
    Ok(Some(bytes))
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

/// The first few names as messages show them, programs before others, and how many more there are.
pub fn first_names<'n>(names: impl Iterator<Item = &'n str>, most: usize) -> Vec<String> {
    let mut names: Vec<String> = names.map(shown_name).collect();
    names.sort_by_cached_key(|name| (!has_cu_extension(Path::new(name)), name.clone()));
    let more = names.len().saturating_sub(most);
    names.truncate(most);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names
}

pub fn has_cu_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("cu"))
}

/// A file's name as messages show it.
fn shown(path: &Path) -> String {
    shown_name(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// A name as messages show it: control characters as `?`, at most 80 characters.
pub fn shown_name(name: &str) -> String {
    name.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect()
}

pub fn folder_name(folder: &Path) -> String {
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
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
