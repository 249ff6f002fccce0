//! A process tree on a leash: whatever it forks, detaches or double-forks ends with the call that started it, and with
//! the grader, even one that was killed outright.
//!
//! A process group does not hold what calls `setsid`, and a parent-death signal reaches one process only. So between
//! fork and exec the child splits: it stays behind as a *warden*, which adopts all orphans of the tree
//! (PR_SET_CHILD_SUBREAPER), and its own child becomes the tool. The warden ends the tree, child by child until none is
//! left, when the tool has ended, when the grader lets go of the leash (a pipe, which the kernel closes for a killed
//! grader) or on SIGTERM. That needs neither root nor namespaces, which many machines forbid.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::pipe::{PipeFlags, pipe_with};

/// Wardens of this process that may still run.
static WARDENS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// Whether this process is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The grader's ends of the two pipes. Dropping it ends the tree.
#[derive(Debug)]
pub struct Leash {
    life: Option<OwnedFd>,
    status: File,
    warden: i32,
}

/// The warden's ends; to be kept until the child has been started.
#[derive(Debug)]
pub struct Ends {
    life: OwnedFd,
    status: OwnedFd,
}

/// A leash for a child that is about to be started; none any more once this process is ending.
pub fn leash() -> std::io::Result<(Leash, Ends)> {
    if ENDING.load(Ordering::Acquire) {
        return Err(std::io::Error::other("the grader is ending"));
    }
    let (life_read, life) = pipe_with(PipeFlags::CLOEXEC)?;
    let (status, status_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let leash = Leash { life: Some(life), status: status.into(), warden: 0 };
    Ok((leash, Ends { life: life_read, status: status_write }))
}

impl Leash {
    /// Notes the warden's process id, once it is known.
    pub fn tie(&mut self, warden: u32) {
        self.warden = i32::try_from(warden).unwrap_or(0);
        wardens().insert(self.warden);
    }

    /// Lets go: the warden ends what is left of the tree, and then itself.
    pub fn release(&mut self) {
        self.life = None;
    }

    /// How the tool ended, once its warden has; `None` when the warden was killed.
    pub fn status(&mut self) -> Option<ExitStatus> {
        let mut bytes = [0; 4];
        self.status.read_exact(&mut bytes).ok()?;
        Some(ExitStatus::from_raw(i32::from_ne_bytes(bytes)))
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

/// Splits the calling process, fresh from fork, into warden and tool; returns in the tool only.
///
/// # Safety
/// To be called between fork and exec, where only system calls are allowed: nothing here allocates or locks.
pub unsafe fn split(ends: &Ends) -> std::io::Result<()> {
    // SAFETY: plain system calls on this process and descriptors that it has; sets and structures live on this stack.
    unsafe {
        let mut watched: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut watched);
        libc::sigaddset(&raw mut watched, libc::SIGCHLD);
        libc::sigaddset(&raw mut watched, libc::SIGTERM);
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigprocmask(libc::SIG_BLOCK, &raw const watched, &raw mut before);
        if libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let warden = libc::getpid();
        // Not libc's fork, which takes locks that another thread of the grader may have held.
        match libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) {
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
                if libc::getppid() != warden {
                    return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
                }
                libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
                Ok(())
            }
            -1 => Err(std::io::Error::last_os_error()),
            tool => guard(tool as i32, ends.life.as_raw_fd(), ends.status.as_raw_fd(), &watched),
        }
    }
}

/// The warden's life.
///
/// # Safety
/// As [`split`].
unsafe fn guard(tool: i32, life: RawFd, status: RawFd, watched: &libc::sigset_t) -> ! {
    const LIFE: RawFd = 3;
    const STATUS: RawFd = 4;
    // SAFETY: plain system calls; every pointer is to a live variable of the type that the call takes.
    unsafe {
        // Its own ends and nothing else: another tree's leash would outlive the grader in here, and so would the pipe by
        // which the grader learns that the tool was started.
        let life = libc::fcntl(life, libc::F_DUPFD, 10);
        let status = libc::fcntl(status, libc::F_DUPFD, 10);
        if libc::dup2(life, LIFE) != LIFE || libc::dup2(status, STATUS) != STATUS {
            libc::kill(tool, libc::SIGKILL);
            libc::_exit(1);
        }
        libc::syscall(libc::SYS_close_range, 5u32, u32::MAX, 0u32);
        for standard in 0..3 {
            libc::close(standard);
        }
        let signals = libc::signalfd(-1, watched, 0);
        let mut ended: Option<i32> = None;
        while ended.is_none() {
            let wait = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let mut fds = [wait(LIFE), wait(signals)];
            if libc::poll(fds.as_mut_ptr(), 2, -1) < 0 && *libc::__errno_location() != libc::EINTR {
                break;
            }
            if fds[0].revents != 0 {
                break;
            }
            if fds[1].revents != 0 {
                let mut info: libc::signalfd_siginfo = std::mem::zeroed();
                libc::read(signals, (&raw mut info).cast(), size_of::<libc::signalfd_siginfo>());
                if info.ssi_signo == libc::SIGTERM as u32 {
                    break;
                }
            }
            reap(libc::WNOHANG, tool, &mut ended);
        }
        end_children(tool, &mut ended);
        let bytes = ended.unwrap_or(libc::SIGKILL).to_ne_bytes();
        libc::write(STATUS, bytes.as_ptr().cast(), bytes.len());
        libc::_exit(0);
    }
}

/// Reaps children; false when there is none at all.
///
/// # Safety
/// As [`split`].
unsafe fn reap(options: i32, tool: i32, ended: &mut Option<i32>) -> bool {
    loop {
        let mut status = 0;
        // SAFETY: writes one int through a pointer to a live one.
        match unsafe { libc::waitpid(-1, &raw mut status, options) } {
            0 => return true,
            -1 => return unsafe { *libc::__errno_location() } == libc::EINTR,
            pid if pid == tool => *ended = Some(status),
            _ => {}
        }
        if options == 0 {
            return true;
        }
    }
}

/// Kills children until there are none: what a killed child leaves behind becomes a child of this process.
///
/// # Safety
/// As [`split`].
unsafe fn end_children(tool: i32, ended: &mut Option<i32>) {
    // SAFETY: plain system calls; the buffer is as long as said.
    unsafe {
        if ended.is_none() {
            libc::kill(tool, libc::SIGKILL);
        }
        loop {
            let listed = libc::open(c"/proc/thread-self/children".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if listed >= 0 {
                let mut buffer = [0u8; 4096];
                let length = libc::read(listed, buffer.as_mut_ptr().cast(), buffer.len());
                libc::close(listed);
                let listed = &buffer[..usize::try_from(length).unwrap_or(0)];
                // The last number may be cut short when the buffer is full; it comes again in the next round.
                let whole =
                    if listed.len() == buffer.len() { listed.iter().rposition(|byte| *byte == b' ') } else { None };
                for number in listed[..whole.unwrap_or(listed.len())].split(|byte| *byte == b' ') {
                    let pid = number
                        .iter()
                        .fold(0i32, |sum, digit| sum.wrapping_mul(10) + i32::from(digit.wrapping_sub(b'0')));
                    if pid > 1 {
                        libc::kill(pid, libc::SIGKILL);
                    }
                }
            } else if ended.is_some() {
                // No list to go by: the grader ends the process group, which is all that is left to do.
                return;
            }
            if !reap(0, tool, ended) {
                return;
            }
        }
    }
}

/// Whether this kernel lists a process's children, without which what left the process group is not found.
pub fn lists_children() -> bool {
    std::path::Path::new("/proc/thread-self/children").exists()
}
