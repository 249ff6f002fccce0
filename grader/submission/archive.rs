//! Archives that a submission comes in: zip, tar and tar.gz. Read in memory; nothing is unpacked onto a disk.
//!
//! Nothing that an archive says about itself is believed: sizes are what was read, kinds come from the first bytes, and
//! archives within archives stay closed. What is odd in one entry (a link, a name that leads elsewhere) refuses the
//! whole, because another program would unpack it to another place.

use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use thiserror::Error;
use zip::{CompressionMethod, ZipArchive};

use super::handed::spelt;
use super::source::shown_name;

/// Most bytes that an archive itself may have.
pub const ARCHIVE_CAP: u64 = 32 << 20;

/// How an archive is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Zip,
    Tar,
    TarGz,
}

/// The ends of archives' names.
const ENDINGS: [(&str, Kind); 4] =
    [(".tar.gz", Kind::TarGz), (".tgz", Kind::TarGz), (".tar", Kind::Tar), (".zip", Kind::Zip)];

/// How a file is packed by its name, and that name without its ending; nothing when it is no archive's.
pub fn packed(path: &Path) -> Option<(Kind, String)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let lower = name.to_ascii_lowercase();
    let (ending, kind) = ENDINGS.iter().find(|(ending, _)| lower.ends_with(ending))?;
    Some((*kind, name.get(..name.len() - ending.len())?.to_owned()))
}

impl Kind {
    /// What the first bytes say, where they say something: browsers unpack a tar.gz and leave its name.
    fn of(self, bytes: &[u8]) -> Self {
        match bytes {
            [b'P', b'K', 3 | 5, 4 | 6, ..] => Self::Zip,
            [0x1f, 0x8b, ..] => Self::TarGz,
            _ if bytes.get(257..262) == Some(b"ustar") => Self::Tar,
            _ => self,
        }
    }
}

/// What an archive may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Entries, folders included.
    pub entries: usize,
    /// Bytes unpacked.
    pub bytes: u64,
    /// Whether folders, links, devices, pipes and what systems add by themselves are listed as what they are. Else one link,
    /// device or pipe refuses the whole.
    pub lists_all: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 2_000, bytes: 64 << 20, lists_all: false }
    }
}

impl Limits {
    /// What the archive of a whole class may cost. What is odd in one learner's folder must not refuse the others.
    pub fn of_a_class() -> Self {
        Self { entries: 50_000, bytes: 512 << 20, lists_all: true }
    }
}

/// A regular file of an archive; where all is listed, whatever an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Its path with `/` between the parts, none of them empty, `.` or `..`.
    pub path: String,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nobody wanted it.
    Unread,
    Whole(Vec<u8>),
    /// It has more bytes than this.
    TooLarge(u64),
    /// A link, a device or a pipe; only where all is listed.
    Irregular(&'static str),
    /// Only where all is listed.
    Folder,
}

/// Why an archive is refused. Each reads on from the archive's name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ArchiveFault {
    #[error("is damaged, cut short or no archive; pack heat.cu again")]
    Damaged,
    #[error("is locked with a password; pack heat.cu again without one")]
    Locked,
    #[error("has more than {most} entries; pack heat.cu and answer.md alone")]
    TooMany { most: usize },
    #[error("unpacks to more than {most} bytes; pack heat.cu and answer.md alone")]
    TooLarge { most: u64 },
    #[error("holds {name}, a name that leads out of the archive; pack the folder again, without such names")]
    Escapes { name: String },
    #[error("holds {name}, which is {what}; pack regular files alone")]
    NotRegular { name: String, what: &'static str },
    #[error("holds {name} twice; pack the folder again")]
    Twice { name: String },
    #[error("packs {name} in a way that is not read here; pack it again as a plain zip or tar.gz")]
    Method { name: String },
}

/// The regular files of an archive, the wanted ones with their bytes. `wanted` gives the most bytes that a file may
/// have, and nothing for one that is not to be read.
pub fn files(
    bytes: &[u8],
    named: Kind,
    limits: Limits,
    wanted: &dyn Fn(&str) -> Option<u64>,
) -> Result<Vec<Packed>, ArchiveFault> {
    let files = match named.of(bytes) {
        Kind::Zip => zip_files(bytes, limits, wanted),
        Kind::Tar => tar_files(bytes, limits, wanted),
        Kind::TarGz => tar_files(MultiGzDecoder::new(bytes), limits, wanted),
    }?;
    let mut paths: Vec<&str> =
        files.iter().filter(|file| file.content != Content::Folder).map(|file| &*file.path).collect();
    paths.sort_unstable();
    match paths.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ArchiveFault::Twice { name: shown_name(pair[0]) }),
        None => Ok(files),
    }
}

fn zip_files(bytes: &[u8], limits: Limits, wanted: &dyn Fn(&str) -> Option<u64>) -> Result<Vec<Packed>, ArchiveFault> {
    let too_many = ArchiveFault::TooMany { most: limits.entries };
    // Each entry has a header with this mark; a file's bytes may have some as well. Counted before any is made room for.
    let marks = bytes.windows(4).filter(|window| window == b"PK\x01\x02").count();
    if marks > 10 * limits.entries {
        return Err(too_many);
    }
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| ArchiveFault::Damaged)?;
    if archive.len() > limits.entries {
        return Err(too_many);
    }
    let mut files = Vec::new();
    let mut left = limits.bytes;
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).map_err(|_| ArchiveFault::Damaged)?;
        let raw = entry.name().map_or_else(|_| spelt(entry.name_raw()), Into::into);
        let (is_folder, locked) = (entry.is_dir(), entry.encrypted());
        let common = matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated);
        let odd = match entry.unix_mode().unwrap_or_default() & libc::S_IFMT {
            _ if entry.is_symlink() => Some("a link"),
            0 | libc::S_IFREG | libc::S_IFDIR => None,
            libc::S_IFLNK => Some("a link"),
            _ => Some("a device or pipe"),
        };
        let Some(path) = checked(&raw, odd, limits)?.filter(|_| !is_folder || limits.lists_all) else { continue };
        if let Some(content) = no_file(odd, is_folder) {
            files.push(Packed { path, content });
            continue;
        }
        if locked {
            return Err(ArchiveFault::Locked);
        }
        let content = match wanted(&path) {
            None => Content::Unread,
            Some(_) if !common => return Err(ArchiveFault::Method { name: shown_name(&path) }),
            Some(cap) => {
                let file = archive.by_index(index).map_err(|_| ArchiveFault::Damaged)?;
                content(file, cap, &mut left).map_err(|_| match left {
                    0 => ArchiveFault::TooLarge { most: limits.bytes },
                    _ => ArchiveFault::Damaged,
                })?
            }
        };
        files.push(Packed { path, content });
    }
    // Of entries with one name the reader keeps the last.
    if archive.has_duplicate_names() {
        return Err(ArchiveFault::Twice { name: "one of its files".to_owned() });
    }
    Ok(files)
}

fn tar_files(
    packed: impl Read,
    limits: Limits,
    wanted: &dyn Fn(&str) -> Option<u64>,
) -> Result<Vec<Packed>, ArchiveFault> {
    let left = Cell::new(limits.bytes);
    let broken = |_: io::Error| match left.get() {
        0 => ArchiveFault::TooLarge { most: limits.bytes },
        _ => ArchiveFault::Damaged,
    };
    let mut archive = tar::Archive::new(Metered { packed, left: &left });
    let mut files = Vec::new();
    let mut endless = u64::MAX;
    for (count, entry) in archive.entries().map_err(broken)?.enumerate() {
        if count >= limits.entries {
            return Err(ArchiveFault::TooMany { most: limits.entries });
        }
        let mut entry = entry.map_err(broken)?;
        let raw = spelt(&entry.path_bytes());
        let kind = entry.header().entry_type();
        if kind.is_pax_global_extensions() {
            continue;
        }
        let odd = match kind {
            tar::EntryType::Symlink | tar::EntryType::Link => Some("a link"),
            _ if kind.is_file() || kind.is_dir() || kind.is_contiguous() || kind.is_gnu_sparse() => None,
            _ => Some("a device, a pipe or something else that is no file"),
        };
        let is_folder = kind.is_dir() || raw.ends_with('/');
        let Some(path) = checked(&raw, odd, limits)?.filter(|_| !is_folder || limits.lists_all) else { continue };
        if let Some(content) = no_file(odd, is_folder) {
            files.push(Packed { path, content });
            continue;
        }
        let content = match wanted(&path) {
            None => Content::Unread,
            Some(cap) => content(&mut entry, cap, &mut endless).map_err(broken)?,
        };
        files.push(Packed { path, content });
    }
    // The rest is padding, and in a tar.gz the checksum of everything.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(broken)?;
    Ok(files)
}

fn no_file(odd: Option<&'static str>, is_folder: bool) -> Option<Content> {
    odd.map(Content::Irregular).or(is_folder.then_some(Content::Folder))
}

/// The bytes of a file, at most `cap` of them; takes what was read from `left`, and fails when nothing is left.
fn content(file: impl Read, cap: u64, left: &mut u64) -> io::Result<Content> {
    let mut bytes = Vec::new();
    let read = file.take((cap + 1).min(*left)).read_to_end(&mut bytes)? as u64;
    *left -= read;
    match read {
        _ if read > cap => Ok(Content::TooLarge(cap)),
        _ if *left == 0 => Err(io::ErrorKind::FileTooLarge.into()),
        _ => Ok(Content::Whole(bytes)),
    }
}

/// Reads on until nothing is left.
struct Metered<'a, R> {
    packed: R,
    /// Bytes.
    left: &'a Cell<u64>,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.packed.read(buffer)?;
        let left = self.left.get().saturating_sub(read as u64);
        self.left.set(left);
        if left == 0 { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(read) }
    }
}

/// An entry's path in one form. Nothing for what systems add by themselves, and for the archive's own folder.
fn checked(raw: &str, odd: Option<&'static str>, limits: Limits) -> Result<Option<String>, ArchiveFault> {
    let path = raw.replace('\\', "/");
    let drive = path.get(1..2) == Some(":") && path.starts_with(|first: char| first.is_ascii_alphabetic());
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if path.starts_with('/') || drive || parts.contains(&"..") {
        return Err(ArchiveFault::Escapes { name: shown_name(raw) });
    }
    if let Some(what) = odd.filter(|_| !limits.lists_all) {
        return Err(ArchiveFault::NotRegular { name: shown_name(raw), what });
    }
    let added =
        parts.contains(&"__MACOSX") || parts.last().is_none_or(|last| *last == ".DS_Store" || last.starts_with("._"));
    Ok(Some(parts.join("/")).filter(|path| !path.is_empty() && (limits.lists_all || !added)))
}

/// The last part of a path in an archive.
pub fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}
