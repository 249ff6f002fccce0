//! A process tree on a leash: whatever it forks, detaches or double-forks ends with the call that started it, and with
//! the grader, even one that was killed outright.
//!
//! A process group does not hold what calls `setsid`, and a parent-death signal reaches one process only. So a
//! [`warden`](super::warden) stands between the grader and the tool: it adopts all orphans of the tree
//! (PR_SET_CHILD_SUBREAPER), and ends the tree, child by child until none is left, when the tool has ended, when the grader
//! lets go of the leash (a socket, which the kernel closes for a killed grader) or on SIGTERM. That needs neither root nor
//! namespaces, which many machines forbid.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::warden::{self, Errand, Word};

/// Where the kernel lists the children of the thread that asks.
pub const CHILDREN: &str = "/proc/thread-self/children";

/// Wardens of this process that may still run.
static WARDENS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Whether this process is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The grader's end of the socket. Dropping it ends the tree.
#[derive(Debug)]
pub struct Leash {
    socket: UnixStream,
    warden: i32,
}

/// Starts a warden, the leader of a process group, with the two pipes of its tool's output; none any more once this process
/// is ending. That the tool itself could not be started is what [`Leash::status`] says.
pub fn start(errand: &Errand) -> Result<(Child, Leash)> {
    if ENDING.load(Ordering::Acquire) {
        bail!("the grader is ending");
    }
    let (socket, theirs) = UnixStream::pair()?;
    // Nothing here may need a fork of this process, which is large: no closure before exec, a program by its path.
    let child = Command::new(&*PROGRAM)
        .args(warden::ARGUMENTS)
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("cannot start a warden")?;
    let mut leash = Leash { socket, warden: i32::try_from(child.id()).unwrap_or(0) };
    wardens().insert(leash.warden);
    // A warden that has ended already shows in its status.
    let _ = errand.send(&mut leash.socket);
    Ok((child, leash))
}

/// This program, as it was called when it was first asked for. A test or a benchmark is another one, in a folder below the
/// program's.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    const NAME: &str = "heat-grader";
    let own = std::env::current_exe().unwrap_or_else(|_| NAME.into());
    // Where cargo puts those.
    let below = own.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "deps"));
    let beside = below.and_then(|folder| folder.parent()).map(|folder| folder.join(NAME));
    beside.filter(|path| path.is_file()).unwrap_or(own)
});

impl Leash {
    /// Lets go: the warden ends what is left of the tree, and then itself.
    pub fn release(&mut self) {
        // One that has ended has let go as well.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// How the tool ended, once its warden has and was reaped with the status `warden`; else why it was not started. `None`
    /// when the warden was interrupted before it began.
    pub fn status(&mut self, warden: ExitStatus) -> Result<Option<ExitStatus>> {
        let mut word = Vec::new();
        self.socket.read_to_end(&mut word).ok();
        match postcard::from_bytes::<Word>(&word) {
            Ok(word) => word.status().map(Some),
            Err(_) if super::is_interrupted(warden) => Ok(None),
            // One that was killed takes its tool along.
            Err(_) if warden.code().is_none() => Ok(Some(warden)),
            Err(_) => bail!("its warden ended with {warden}"),
        }
    }

    /// Forgets the warden, before it is reaped.
    pub fn untie(&mut self) {
        wardens().remove(&self.warden);
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.untie();
    }
}

fn wardens() -> MutexGuard<'static, BTreeSet<i32>> {
    WARDENS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all trees of this process, which is about to end itself, and waits a moment until they are gone.
pub fn end_all() {
    ENDING.store(true, Ordering::Release);
    let wardens: Vec<i32> = wardens().iter().copied().filter(|warden| *warden > 0).collect();
    for warden in &wardens {
        // SAFETY: a plain system call; a warden is forgotten before it is reaped, so the number is its own.
        unsafe { libc::kill(*warden, libc::SIGTERM) };
    }
    let deadline = Instant::now() + Duration::from_secs(2);
    for warden in wardens {
        while !is_over(warden) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn is_over(child: i32) -> bool {
    // SAFETY: siginfo_t is plain data, and the call writes at most one; WNOWAIT leaves the child to whoever waits for it.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child as libc::id_t, &raw mut info, options) != 0 || info.si_pid() != 0
    }
}

/// Whether this kernel lists a process's children, without which what left the process group is not found.
pub fn lists_children() -> bool {
    std::path::Path::new(CHILDREN).exists()
}
