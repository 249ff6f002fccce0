//! What a compiler may open, enforced by the kernel (Landlock, Linux 5.13 and later).
//!
//! `#include "/etc/passwd"` and `asm(".incbin ...")` make a compiler read files for the learner, and its messages
//! quote them. A ruleset names the folders that a compiler needs; everything else is out of its reach, and so is TCP.
//! Source: the kernel's Documentation/userspace-api/landlock.rst.

use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rights of ABI 1: bits 0 to 12, all of which concern files.
const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const ALL_V1: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;

/// The kernel's `struct landlock_ruleset_attr`; older kernels know a shorter one.
#[repr(C)]
struct RulesetAttributes {
    files: u64,
    net: u64,
    scoped: u64,
}

/// The kernel's `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// The Landlock version this kernel offers; 0 when it has none.
pub fn abi() -> u32 {
    const VERSION: u32 = 1;
    // SAFETY: with this flag the call reads no memory and makes no file descriptor; it returns the version.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<RulesetAttributes>(), 0usize, VERSION)
    };
    u32::try_from(version).unwrap_or(0)
}

/// A ruleset: `read` may be read and executed, `write` also changed; paths that do not exist are left out. `None` when
/// the kernel has no Landlock, and then the tool runs with its other limits only.
pub fn ruleset(read: &[PathBuf], write: &[PathBuf]) -> Option<Arc<OwnedFd>> {
    let abi = abi();
    let fd = create(abi)?;
    let readable = EXECUTE | READ_FILE | READ_DIR;
    for path in read {
        allow(&fd, path, readable);
    }
    for path in write {
        allow(&fd, path, handled(abi));
    }
    allow(&fd, Path::new("/dev/null"), READ_FILE | WRITE_FILE);
    Some(Arc::new(fd))
}

/// Confines the calling thread for good. System calls only: fit for use between fork and exec.
pub fn restrict_self(ruleset: BorrowedFd<'_>) -> std::io::Result<()> {
    rustix::thread::set_no_new_privs(true)?;
    // SAFETY: takes a file descriptor that is open for the length of the call, and flags; touches no memory.
    let outcome = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0u32) };
    if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn handled(abi: u32) -> u64 {
    ALL_V1 | if abi >= 2 { REFER } else { 0 } | if abi >= 3 { TRUNCATE } else { 0 }
}

fn create(abi: u32) -> Option<OwnedFd> {
    let size = match abi {
        0 => return None,
        1..4 => 8usize,
        4..6 => 16,
        _ => 24,
    };
    // Net: no bind, no connect (ABI 4). Scope: no abstract sockets, no signals to the outside (ABI 6).
    let attributes = RulesetAttributes { files: handled(abi), net: 0b11, scoped: 0b11 };
    // SAFETY: the pointer and the size describe (a prefix of) the struct above.
    let fd = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attributes, size, 0u32) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the kernel has just handed out this descriptor (close-on-exec), and nobody else owns it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Adds one path; what cannot be opened is not allowed.
fn allow(ruleset: &OwnedFd, path: &Path, rights: u64) {
    const PATH_BENEATH: u32 = 1;
    let Ok(file) = File::options().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(path) else { return };
    let folder = file.metadata().is_ok_and(|metadata| metadata.is_dir());
    // The kernel refuses rights that make sense for folders only on a file.
    let allowed = if folder { rights } else { rights & (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE) };
    let rule = PathBeneath { allowed, parent: file.as_raw_fd() };
    // SAFETY: the pointer is to a rule of the type that the third argument names; the kernel copies it.
    unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, ruleset.as_raw_fd(), PATH_BENEATH, &raw const rule, 0u32);
    }
}
