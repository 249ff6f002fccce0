//! Temporary folders that are gone afterwards, however the grader ends.
//!
//! A folder is deleted when its owner drops it, and when the grader is interrupted ([`crate::interrupt`]). One
//! whose grader was killed outright is swept away by the next grader: the owner holds a lock on a file inside, and a
//! folder whose lock is free has no owner any more.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use anyhow::{Result, anyhow};
use tempfile::TempDir;

const PREFIX: &str = "heat-grader-";
const LOCK: &str = ".owner";

/// Folders of this process.
static OWNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A fresh folder, readable by this user only.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
}

impl Scratch {
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Deleted before it is forgotten, and under the lock: an interrupt meanwhile waits, and leaves no half of it.
        let mut owned = owned();
        let _ = fs::remove_dir_all(self.folder.path());
        owned.remove(self.folder.path());
    }
}

/// Makes a temporary folder; the first call of a process sweeps away what killed graders left.
pub fn scratch() -> Result<Scratch> {
    static SWEPT: Once = Once::new();
    SWEPT.call_once(|| sweep(&std::env::temp_dir()));
    let parent = std::env::temp_dir();
    let make = || -> std::io::Result<Scratch> {
        let mut owned = owned();
        let (folder, lock) = owned_folder(&parent)?;
        owned.insert(folder.path().to_owned());
        Ok(Scratch { folder, _lock: lock })
    };
    make().map_err(|error| unusable(&parent, error.kind()))
}

/// A folder and its lock. The lock file gets its name when it is locked, so that no sweep ever finds it free.
fn owned_folder(parent: &Path) -> std::io::Result<(TempDir, File)> {
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
    let unlocked = folder.path().join(".unlocked");
    let lock = File::create_new(&unlocked)?;
    lock.lock()?;
    fs::rename(unlocked, folder.path().join(LOCK))?;
    Ok((folder, lock))
}

/// One sentence, without the folder's own name, which says nothing to anybody.
fn unusable(parent: &Path, why: std::io::ErrorKind) -> anyhow::Error {
    use std::io::ErrorKind::{NotFound, PermissionDenied};
    let why = if matches!(why, NotFound | PermissionDenied) { String::new() } else { format!(" ({why})") };
    let parent = parent.display();
    anyhow!("cannot make a temporary folder in {parent}{why}; set TMPDIR to one that can be written to")
}

/// All folders of this process, which can get no further one while this is held.
pub struct Held(MutexGuard<'static, BTreeSet<PathBuf>>);

/// Holds the folders, for a process that is about to end.
pub fn hold() -> Held {
    Held(owned())
}

impl Held {
    /// Deletes them.
    pub fn delete(&self) {
        for folder in self.0.iter() {
            // A thread of this process may be filling it; what it starts next is refused, and then it waits for the lock.
            for _ in 0..100 {
                if fs::remove_dir_all(folder).is_ok() || !folder.exists() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn owned() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes folders of graders that are no more. What cannot be looked at or deleted stays: it is somebody else's.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && entry.file_type().is_ok_and(|kind| kind.is_dir()) && abandoned(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn abandoned(folder: &Path) -> bool {
    File::open(folder.join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_folder_is_deleted_with_its_owner() {
        let folder = scratch().unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("heat.cu"), "").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn an_unusable_folder_is_named_and_nothing_inside_it() {
        let said = unusable(Path::new("/proc"), std::io::ErrorKind::NotFound).to_string();
        assert_eq!(said, "cannot make a temporary folder in /proc; set TMPDIR to one that can be written to");
        assert!(unusable(Path::new("/tmp"), std::io::ErrorKind::StorageFull).to_string().contains("no storage"));
    }

    #[test]
    fn a_sweep_never_takes_a_folder_that_is_being_made() {
        let parent = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sweep(parent.path());
                }
            });
            let made: Vec<_> = (0..2000).map(|_| owned_folder(parent.path())).collect();
            done.store(true, Ordering::Relaxed);
            let lost =
                made.iter().filter(|made| !made.as_ref().is_ok_and(|(folder, _)| folder.path().exists())).count();
            assert_eq!(lost, 0);
        });
    }

    #[test]
    fn a_sweep_takes_what_a_killed_grader_left_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).unwrap();
            (File::create(folder.join(LOCK)).unwrap(), folder)
        };
        let (held, alive) = make("heat-grader-alive");
        held.lock().unwrap();
        let (_, dead) = make("heat-grader-dead");
        let (_, foreign) = make("somebody-else");
        let unlocked = parent.path().join("heat-grader-without-a-lock");
        fs::create_dir(&unlocked).unwrap();
        sweep(parent.path());
        assert!(alive.exists() && foreign.exists() && unlocked.exists() && !dead.exists());
    }
}
