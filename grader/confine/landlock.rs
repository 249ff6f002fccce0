//! What a process may open, enforced by the kernel (Landlock, Linux 5.13 and later).
//!
//! `#include "/etc/passwd"` and `asm(".incbin ...")` make a compiler read files for the learner, and its messages
//! quote them. A ruleset names the folders that a process needs; everything else is out of its reach, and so are TCP,
//! abstract sockets and signals to others where the kernel knows how.
//! Source: the kernel's Documentation/userspace-api/landlock.rst.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};

/// The newest rights asked for; an older kernel gives those that it knows.
const NEWEST: ABI = ABI::V6;

/// The Landlock version this kernel offers; 0 when it has none.
pub fn abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no memory and makes no file descriptor; it returns the version.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, VERSION) };
    u32::try_from(version).unwrap_or(0)
}

/// What a version of Landlock keeps away.
pub fn covers(abi: u32) -> &'static str {
    match abi {
        0 => "nothing",
        1..4 => "files",
        4..6 => "files, TCP",
        _ => "files, TCP, abstract sockets, signals to other processes",
    }
}

/// Which paths a process may use; paths that do not exist are left out.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    /// Read.
    pub read: Vec<PathBuf>,
    /// Read and executed.
    pub execute: Vec<PathBuf>,
    /// Everything.
    pub write: Vec<PathBuf>,
    /// Read and written, devices included, but nothing made or removed.
    pub devices: Vec<PathBuf>,
}

/// A ruleset for these paths; `None` when the kernel has no Landlock.
pub fn ruleset(paths: &Paths) -> Result<Option<Arc<OwnedFd>>> {
    if abi() == 0 {
        return Ok(None);
    }
    let made = created(paths).context("cannot make a Landlock ruleset")?;
    Ok(Option::<OwnedFd>::from(made).map(Arc::new))
}

fn created(paths: &Paths) -> Result<RulesetCreated> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
    let all = AccessFs::from_all(NEWEST);
    let lists = [(&paths.read, read), (&paths.execute, read | AccessFs::Execute), (&paths.write, all)];
    for (list, rights) in lists.into_iter().chain([(&paths.devices, device)]) {
        for path in list {
            rules = allowed(rules, path, rights)?;
        }
    }
    allowed(rules, Path::new("/dev/null"), AccessFs::ReadFile | AccessFs::WriteFile)
}

/// Adds one path; what cannot be opened is not allowed.
fn allowed(rules: RulesetCreated, path: &Path, rights: BitFlags<AccessFs>) -> Result<RulesetCreated> {
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    // The kernel refuses rights that make sense for folders only on a file.
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(NEWEST) };
    Ok(rules.add_rule(PathBeneath::new(opened, rights))?)
}

/// Confines the calling thread for good. System calls only: fit for use between fork and exec.
pub fn restrict_self(ruleset: BorrowedFd<'_>) -> std::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: takes a file descriptor that is open for the length of the call, and flags; touches no memory.
    let outcome = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) };
    if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
