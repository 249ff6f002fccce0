//! The walls between strangers' code and this machine.
//!
//! Two kinds of process run what a learner wrote, or on what a learner wrote: compilers and workers. Each gets four walls:
//! [`landlock`] says which files it sees, [`seccomp`] which system calls it makes, resource limits how much it uses up,
//! and [`tree`] that nothing of it outlives the grader. None needs root. What a kernel does not offer is [`Offer`]ed
//! honestly: `grade` refuses to work without, unless it was told whose wall holds instead ([`Choice`]).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub mod calls;
pub mod landlock;
mod sandbox;
pub mod seccomp;
pub mod tree;
pub mod warden;
pub mod worker;

pub use sandbox::{Kind, Sandbox};

/// Which walls the user asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// All of them.
    #[default]
    All,
    /// A container around this process is the wall; what works inside it is used all the same.
    Outer,
    /// No Landlock, no seccomp.
    Nothing,
}

/// What this kernel offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Landlock's version; 0 when there is none.
    pub landlock: u32,
    pub seccomp: bool,
}

static CHOICE: OnceLock<Choice> = OnceLock::new();

/// Settles which walls this process puts up; the first word counts.
pub fn choose(choice: Choice) {
    let _ = CHOICE.set(choice);
}

fn chosen() -> Choice {
    CHOICE.get().copied().unwrap_or_default()
}

/// What this kernel offers, asked once.
pub fn offer() -> Offer {
    static OFFER: OnceLock<Offer> = OnceLock::new();
    *OFFER.get_or_init(|| Offer { landlock: landlock::abi(), seccomp: seccomp::offered() })
}

/// The walls that stand: what was chosen, as far as the kernel offers it.
pub fn sandbox() -> Sandbox {
    let Offer { landlock, seccomp } = offer();
    let kind = match chosen() {
        Choice::Nothing => return Sandbox { kind: Kind::None, landlock_abi: None, seccomp: false },
        Choice::Outer => Kind::Outer,
        Choice::All if landlock > 0 && seccomp => Kind::Full,
        Choice::All => Kind::Partial,
    };
    Sandbox { kind, landlock_abi: Some(landlock).filter(|abi| *abi > 0), seccomp }
}

/// Why work for strangers is refused here; `None` when it is not.
pub fn refusal() -> Option<String> {
    let sandbox = sandbox();
    let lack = sandbox.lack().filter(|_| sandbox.kind == Kind::Partial)?;
    Some(format!(
        "the sandbox is not available: {lack}. Inside a container that is the wall itself, say --outer-sandbox; \
         --no-sandbox grades without any"
    ))
}

/// Whether compilers and workers get their files and system calls restricted at all.
pub fn wanted() -> bool {
    chosen() != Choice::Nothing
}

/// The programs, libraries and headers of the system: nothing of any user's.
pub fn system_folders() -> Vec<PathBuf> {
    const FOLDERS: [&str; 10] = [
        "/usr",
        "/lib",
        "/lib32",
        "/lib64",
        "/bin",
        "/sbin",
        "/etc/ld.so.cache",
        "/etc/alternatives",
        "/nix/store",
        "/gnu/store",
    ];
    FOLDERS.map(PathBuf::from).into()
}

/// How often a process is started that Ctrl-C ends before it has begun.
pub const STARTS: usize = 5;

/// Whether a process that has not begun was ended by the terminal: until it has a group of its own, Ctrl-C reaches it as well.
/// Nothing of what it is for has happened then, so that it can be started again.
pub fn is_interrupted(status: std::process::ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal().is_some_and(|signal| [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP].contains(&signal))
}

/// Closes all descriptors but the three standard ones: what a process was handed by mistake is none of its business. To be
/// called before it opens any.
pub(crate) fn close_inherited() {
    // SAFETY: a plain system call; the caller has opened nothing that it could lose.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32) };
}

/// The folder around a file.
fn folder_of(file: &Path) -> PathBuf {
    file.parent().unwrap_or(Path::new("/")).to_owned()
}
