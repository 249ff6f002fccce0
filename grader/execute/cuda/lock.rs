//! One timing at a time on a GPU, whoever on this machine does it: a lock on a file named by the GPU.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How often a taken lock is tried.
const GLANCE: Duration = Duration::from_millis(20);
/// When a wait is told, and how often from then on.
const PATIENCE: Duration = Duration::from_secs(5);
/// When waiting has no sense any more.
const LIMIT: Duration = Duration::from_secs(3600);

/// The lock, held until it is dropped or the process ends.
pub struct GpuLock {
    _file: File,
}

impl GpuLock {
    /// Waits for the GPU with this UUID. `waiting` hears how long it has taken so far, first after five seconds.
    pub fn take(uuid: &str, waiting: &mut dyn FnMut(Duration)) -> Result<Self> {
        // Not TMPDIR, which differs from user to user: all of them must mean the same file.
        let folder = Some(PathBuf::from("/tmp")).filter(|tmp| tmp.is_dir()).unwrap_or_else(std::env::temp_dir);
        Self::take_in(&folder, uuid, waiting)
    }

    fn take_in(folder: &Path, uuid: &str, waiting: &mut dyn FnMut(Duration)) -> Result<Self> {
        let name: String = uuid.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        let path = folder.join(format!("heat-grader-{name}.lock"));
        let file = open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        let started = Instant::now();
        let mut told = Duration::ZERO;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
            }
            let waited = started.elapsed();
            if waited > LIMIT {
                bail!("another process has kept {} locked for {} minutes", path.display(), LIMIT.as_secs() / 60);
            }
            if waited > told + PATIENCE {
                told = waited;
                waiting(waited);
            }
            std::thread::sleep(GLANCE);
        }
    }
}

/// Opens the file, made by whoever came first. To read only and without creating where it exists: in a folder such as
/// /tmp, Linux lets nobody create over or write to another user's file (fs.protected_regular).
fn open(path: &Path) -> std::io::Result<File> {
    let existing = || OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
    match existing() {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o666).open(path) {
        Ok(file) => {
            // The umask may have taken rights away.
            file.set_permissions(PermissionsExt::from_mode(0o666))?;
            Ok(file)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => existing(),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_anyone_may_open_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let held = GpuLock::take_in(folder.path(), "GPU-1/../x", &mut |_| {}).unwrap();
        let path = folder.path().join("heat-grader-GPU-1x.lock");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
        assert!(matches!(open(&path).unwrap().try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(GpuLock::take_in(folder.path(), "GPU-1x", &mut |_| {}).is_ok());
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("heat-grader-a.lock")).unwrap();
        assert!(GpuLock::take_in(folder.path(), "a", &mut |_| {}).is_err());
    }
}
