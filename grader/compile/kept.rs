//! What compilers made of the grader's own reference, kept in the user's cache folder from one run to the next. Safe to lose,
//! and to share among graders: a file is whole or not there, and one that was damaged is made anew.
//!
//! Nothing of a submission is ever kept here.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::Result;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::fetch::Cache;

/// Folder within the cache.
const FOLDER: &str = "reference";
/// Files that are left there: a few architectures, compilers and versions of the grader.
const MOST_FILES: usize = 12;
/// Bytes of the digest in front of what is kept.
const DIGEST: usize = 32;

/// What makes one build differ from another.
#[derive(Default)]
pub struct Key(Sha256);

impl Key {
    /// A build by this grader, whose headers, flags and counting change with it.
    pub fn new() -> Self {
        let executable = std::env::current_exe().unwrap_or_default();
        Self::default().with(env!("CARGO_PKG_VERSION")).with_tool(&executable)
    }

    pub fn with(mut self, part: &str) -> Self {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    /// A program by its path, size and date.
    pub fn with_tool(self, tool: &Path) -> Self {
        let seen = fs::metadata(tool).ok();
        let date = seen.as_ref().and_then(|seen| seen.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let what = (seen.map_or(0, |seen| seen.len()), date.unwrap_or_default());
        self.with(&format!("{} {what:?}", tool.display()))
    }

    fn name(&self) -> String {
        HEXLOWER.encode(&self.0.clone().finalize()[..16])
    }
}

/// The kept bytes of this key, else what `make` makes, which is kept from now on where that is possible.
pub fn kept(key: &Key, make: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    match Cache::usual() {
        Some(cache) => kept_in(&cache.folder.join(FOLDER), key, make),
        None => make(),
    }
}

fn kept_in(folder: &Path, key: &Key, make: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
    let file = folder.join(key.name());
    if let Some(bytes) = read(&file) {
        return Ok(bytes);
    }
    let bytes = make()?;
    // A cache that cannot be written to costs time, and nothing else.
    let _ = write(folder, &file, &bytes);
    Ok(bytes)
}

fn read(file: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(file).ok()?;
    let (digest, kept) = bytes.split_at_checked(DIGEST)?;
    (*digest == Sha256::digest(kept)[..]).then(|| kept.to_vec())
}

fn write(folder: &Path, file: &Path, bytes: &[u8]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    whole.write_all(&Sha256::digest(bytes))?;
    whole.write_all(bytes)?;
    whole.persist(file)?;
    forget_oldest(folder);
    Ok(())
}

fn forget_oldest(folder: &Path) {
    let dated = |path: PathBuf| Some((fs::metadata(&path).ok()?.modified().ok()?, path));
    let mut files: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().filter_map(|entry| dated(entry.path())).collect();
    files.sort();
    for (_, file) in files.iter().take(files.len().saturating_sub(MOST_FILES)) {
        let _ = fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> Result<Vec<u8>> {
        anyhow::bail!("it was made again")
    }

    #[test]
    fn what_was_made_is_kept_until_the_key_changes() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::new().with("sm_75");
        assert_eq!(kept_in(folder.path(), &key, || Ok(vec![1, 2])).unwrap(), [1, 2]);
        assert_eq!(kept_in(folder.path(), &key, never).unwrap(), [1, 2]);
        assert!(kept_in(folder.path(), &Key::new().with("sm_90"), never).is_err());
        assert_ne!(Key::default().with("a").with("bc").name(), Key::default().with("ab").with("c").name());
    }

    #[test]
    fn a_damaged_file_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::new();
        kept_in(folder.path(), &key, || Ok(vec![1, 2, 3])).unwrap();
        let file = folder.path().join(key.name());
        for damage in [&b""[..], b"short", &[7; 40]] {
            fs::write(&file, damage).unwrap();
            assert_eq!(kept_in(folder.path(), &key, || Ok(vec![4])).unwrap(), [4]);
        }
    }

    #[test]
    fn a_cache_that_cannot_be_written_to_is_no_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(kept_in(file.path(), &Key::new(), || Ok(vec![5])).unwrap(), [5]);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        for made in 0..MOST_FILES + 3 {
            kept_in(folder.path(), &Key::new().with(&made.to_string()), || Ok(vec![0])).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MOST_FILES);
    }
}
