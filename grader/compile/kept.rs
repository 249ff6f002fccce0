//! What was made once and need not be made again, kept in the user's cache folder from one run to the next.
//!
//! Safe to lose and to share among graders: an entry appears by a rename, its reader verifies a digest that covers the key as
//! well, and whatever goes wrong with it is a miss, never a failed grade. Entries are written by the grader alone, from what
//! a compiler left in its own folder; no compiler and no process that runs a kernel can write here. A folder that others
//! could write to is not used at all.

use std::fs::{self, DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::fetch::Cache;

/// Set and not empty: nothing is kept, and nothing that was kept is used.
pub const OFF: &str = "HEAT_GRADER_NO_CACHE";
/// Bytes of the digest in front of what is kept.
const DIGEST: usize = 32;
/// One entry takes at most this part of its shelf.
const SHARE: u64 = 8;

/// One of the folders within the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub folder: &'static str,
    /// Bytes that are left there; the entries that nobody has used for longest go first.
    pub most: u64,
}

/// What compilers made: some hundred kernels.
pub const BUILDS: Room = Room { folder: "builds", most: 64 << 20 };
/// Reports of checks.
pub const REPORTS: Room = Room { folder: "reports", most: 4 << 20 };

/// What makes one thing differ from another.
#[derive(Clone, Default)]
pub struct Key(Sha256);

impl Key {
    /// Something that this grader makes, whose headers, flags and counting change with it.
    pub fn new(what: &str) -> Self {
        let executable = std::env::current_exe().unwrap_or_default();
        Self::default().with(what).with(env!("CARGO_PKG_VERSION")).with_file(&executable)
    }

    pub fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    /// A file, a program say, by its path, size and date.
    pub fn with_file(self, file: &Path) -> Self {
        self.with(format!("{:?}", Stamp::of(file)))
    }

    fn digest(&self) -> [u8; DIGEST] {
        self.0.clone().finalize().into()
    }
}

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Stamp {
    path: PathBuf,
    bytes: u64,
    /// Nanoseconds since 1970; 0 when not known.
    modified: u128,
}

impl Stamp {
    pub fn of(path: &Path) -> Self {
        let seen = fs::metadata(path).ok();
        let date = seen.as_ref().and_then(|seen| seen.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let modified = date.map_or(0, |date| date.as_nanos());
        Self { path: path.to_owned(), bytes: seen.map_or(0, |seen| seen.len()), modified }
    }

    /// Whether the file is still the same, as far as can be told without reading it.
    pub fn holds(&self) -> bool {
        Self::of(&self.path) == *self
    }
}

/// Whether the environment says that nothing is to be kept.
pub fn is_off() -> bool {
    std::env::var_os(OFF).is_some_and(|value| !value.is_empty())
}

/// A place where things are kept by their keys; may be nowhere.
#[derive(Clone, Debug)]
pub struct Shelf {
    folder: Option<PathBuf>,
    most: u64,
}

impl Shelf {
    /// In the user's cache folder, unless that is turned off or there is none.
    pub fn usual(room: Room) -> Self {
        Cache::usual().filter(|_| !is_off()).map_or_else(Self::nowhere, |cache| Self::within(&cache.folder, room))
    }

    /// A shelf on which nothing is ever found.
    pub fn nowhere() -> Self {
        Self { folder: None, most: 0 }
    }

    /// In this cache folder.
    pub fn within(cache: &Path, room: Room) -> Self {
        Self { folder: Some(cache.join(room.folder)), most: room.most }
    }

    /// What is kept under this key.
    pub fn get<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        let file = self.folder.as_deref().filter(|folder| is_ours_alone(folder))?.join(name(key));
        let kept = self.read(&file, key)?;
        postcard::from_bytes(&kept).ok()
    }

    /// Keeps a value under this key, where that is possible. A cache that cannot be written to costs time, and nothing else.
    pub fn put<T: Serialize>(&self, key: &Key, value: &T) {
        let Some(folder) = &self.folder else { return };
        let Ok(bytes) = postcard::to_stdvec(value) else { return };
        if bytes.len() as u64 > self.most / SHARE {
            return;
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        if made.is_ok() && is_ours_alone(folder) && write(folder, key, &bytes).is_ok() {
            forget(folder, self.most);
        }
    }

    /// Bytes that are kept.
    pub fn bytes(&self) -> u64 {
        self.folder.as_deref().map_or(0, |folder| dated(folder).iter().map(|(_, bytes, _)| bytes).sum())
    }

    fn read(&self, file: &Path, key: &Key) -> Option<Vec<u8>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        let opened = File::options().read(true).custom_flags(flags).open(file).ok()?;
        let metadata = opened.metadata().ok().filter(|metadata| metadata.is_file() && metadata.len() <= self.most)?;
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&opened).take(self.most).read_to_end(&mut bytes).ok()?;
        let (digest, kept) = bytes.split_at_checked(DIGEST)?;
        (*digest == sealed(key, kept)).then(|| {
            // Used just now, so not the first to go.
            let _ = opened.set_modified(SystemTime::now());
            kept.to_vec()
        })
    }
}

fn name(key: &Key) -> String {
    HEXLOWER.encode(&key.digest())
}

/// The digest of an entry: whole, and under its own name.
fn sealed(key: &Key, bytes: &[u8]) -> [u8; DIGEST] {
    Sha256::new().chain_update(key.digest()).chain_update(bytes).finalize().into()
}

/// Whether nobody else can have put anything into the folder.
fn is_ours_alone(folder: &Path) -> bool {
    let owner = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder).is_ok_and(|seen| seen.is_dir() && seen.uid() == owner && seen.mode() & 0o022 == 0)
}

fn write(folder: &Path, key: &Key, bytes: &[u8]) -> std::io::Result<()> {
    // Readable by its owner alone.
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    whole.write_all(&sealed(key, bytes))?;
    whole.write_all(bytes)?;
    whole.persist(folder.join(name(key)))?;
    Ok(())
}

/// Files of a folder: when they were last used, their bytes, their paths.
fn dated(folder: &Path) -> Vec<(SystemTime, u64, PathBuf)> {
    let look = |path: PathBuf| {
        let seen = fs::symlink_metadata(&path).ok()?;
        Some((seen.modified().ok()?, seen.len(), path))
    };
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| look(entry.path())).collect()
}

fn forget(folder: &Path, most: u64) {
    let mut files = dated(folder);
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    if bytes <= most {
        return;
    }
    files.sort();
    for (_, freed, file) in files {
        if bytes <= most {
            break;
        }
        let _ = fs::remove_file(file);
        bytes -= freed;
    }
}

#[cfg(test)]
#[path = "../tests/compile_kept.rs"]
mod tests;
