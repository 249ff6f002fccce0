//! The process between the grader and a tool: it starts the tool behind its walls, and ends whatever the tool left.
//!
//! It is this program, started anew (a hidden subcommand): a fork of a grader full of grids would copy its page tables for
//! tens of milliseconds and hold up all its threads meanwhile, and would carry its memory, locks and descriptors along.
//! Standard input is the leash to the grader ([`super::tree`]): an [`Errand`] comes in, one [`Word`] goes out, and when the
//! grader lets go, the tree ends.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use super::landlock::{self, Paths};
use super::seccomp;

/// The subcommand. The option is there so that no other program takes the word for something of its own.
pub const ARGUMENTS: [&str; 2] = ["warden", "--leashed"];

/// Files that one process of a tool holds open at most.
const MOST_FILES: u64 = 1024;
/// Bytes of an errand at most: a command line and an environment.
const MOST_ERRAND: u32 = 16 << 20;

/// What a warden is to start. Paths are `OsString`s, whose bytes need not be UTF-8.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// An absolute path.
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// Where it works, and all that it may write to.
    pub folder: OsString,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// CPU time of each of its processes, whole seconds.
    pub cpu_seconds: u64,
    /// Bytes of each of its processes; `None` is unlimited.
    pub address_space: Option<u64>,
    /// Bytes of a file; `None` is unlimited.
    pub file_size: Option<u64>,
    /// Folders that it may read and execute besides its own, system calls being filtered; `None` is no walls.
    pub readable: Option<Vec<OsString>>,
}

/// What a warden has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Word {
    /// Why the tool could not be started.
    NotStarted(String),
    /// The tool's wait status.
    Ended(i32),
}

impl Word {
    /// How the tool ended; else why it was not started.
    pub fn status(self) -> Result<ExitStatus> {
        match self {
            Self::Ended(status) => Ok(ExitStatus::from_raw(status)),
            Self::NotStarted(why) => bail!(why),
        }
    }
}

impl Errand {
    /// Writes it with its length in front.
    pub fn send(&self, to: &mut impl Write) -> Result<()> {
        let bytes = postcard::to_allocvec(self)?;
        to.write_all(&u32::try_from(bytes.len())?.to_le_bytes())?;
        Ok(to.write_all(&bytes)?)
    }

    /// Reads one; `None` when the grader is gone.
    fn receive(from: &mut impl Read) -> Result<Option<Self>> {
        let mut length = [0; 4];
        if from.read_exact(&mut length).is_err() {
            return Ok(None);
        }
        let length = u32::from_le_bytes(length);
        if length > MOST_ERRAND {
            bail!("an errand of {length} bytes");
        }
        let mut bytes = Vec::new();
        from.take(length.into()).read_to_end(&mut bytes)?;
        Ok((bytes.len() == length as usize).then(|| postcard::from_bytes(&bytes)).transpose()?)
    }

    /// Starts the tool in the calling process's group, its output being this process's.
    fn start(&self) -> Result<Child> {
        let limits = self.limits();
        let (ruleset, filters) = match &self.readable {
            Some(readable) => {
                let execute = readable.iter().map(PathBuf::from).collect();
                let paths = Paths { execute, write: vec![PathBuf::from(&self.folder)], ..Paths::default() };
                let filters = if seccomp::offered() { seccomp::compiler()? } else { Vec::new() };
                (landlock::ruleset(&paths)?, filters)
            }
            None => (None, Vec::new()),
        };
        let warden = rustix::process::getpid();
        let walled = move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() != Some(warden) {
                return Err(std::io::Error::from_raw_os_error(libc::ESRCH));
            }
            for (resource, limit) in &limits {
                rustix::process::setrlimit(*resource, *limit)?;
            }
            if let Some(ruleset) = &ruleset {
                landlock::restrict_self(ruleset.as_fd())?;
            }
            for filter in &filters {
                seccomp::apply_filter(filter).map_err(|_| std::io::Error::from_raw_os_error(libc::ENOSYS))?;
            }
            Ok(())
        };
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.folder).stdin(Stdio::null());
        // SAFETY: the closure runs between fork and exec of a process with one thread, and makes system calls only.
        unsafe { command.pre_exec(walled) };
        Ok(command.spawn()?)
    }

    fn limits(&self) -> Vec<(Resource, Rlimit)> {
        let hard = |value: u64| Rlimit { current: Some(value), maximum: Some(value) };
        let seconds = self.cpu_seconds.max(1);
        // The soft limit sends SIGXCPU, which tells a limit from a kill; the hard one is for those who ignore it.
        let cpu = Rlimit { current: Some(seconds), maximum: Some(seconds + 2) };
        let mut all = vec![(Resource::Cpu, cpu), (Resource::Core, hard(0))];
        all.extend(self.address_space.map(|bytes| (Resource::As, hard(bytes))));
        all.extend(self.file_size.map(|bytes| (Resource::Fsize, hard(bytes))));
        let open = rustix::process::getrlimit(Resource::Nofile).maximum;
        all.push((Resource::Nofile, hard(open.map_or(MOST_FILES, |most| most.min(MOST_FILES)))));
        all
    }
}

/// A warden's life. An error says that it never came to its errand.
pub fn main() -> Result<()> {
    super::close_inherited();
    let mut leash = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let signals = signals().context("cannot watch for the tool's end")?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("cannot adopt what a tool leaves")?;
    let Some(errand) = Errand::receive(&mut leash)? else { return Ok(()) };
    let word = match errand.start() {
        Ok(tool) => {
            let null = File::options().read(true).write(true).open("/dev/null")?;
            // The tool's output ends with the tool.
            rustix::stdio::dup2_stdout(&null)?;
            rustix::stdio::dup2_stderr(&null)?;
            Tree::of(&tool).guard(&leash, &signals)
        }
        Err(error) => Word::NotStarted(format!("{error:#}")),
    };
    // A grader that has let go may no longer listen.
    let _ = leash.write_all(&postcard::to_allocvec(&word)?);
    Ok(())
}

/// Blocks SIGCHLD and SIGTERM, which the descriptor tells of from now on.
fn signals() -> Result<File> {
    // SAFETY: plain system calls on a set that lives on this stack; the descriptor is new, and nobody else's.
    let descriptor = unsafe {
        let mut watched: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut watched);
        libc::sigaddset(&raw mut watched, libc::SIGCHLD);
        libc::sigaddset(&raw mut watched, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const watched, std::ptr::null_mut());
        let descriptor = libc::signalfd(-1, &raw const watched, libc::SFD_CLOEXEC);
        if descriptor < 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        OwnedFd::from_raw_fd(descriptor)
    };
    Ok(File::from(descriptor))
}

/// A tool and all that it started.
struct Tree {
    tool: Pid,
    /// The tool's wait status, once it has ended.
    ended: Option<i32>,
}

impl Tree {
    fn of(tool: &Child) -> Self {
        Self { tool: Pid::from_child(tool), ended: None }
    }

    /// Waits for the tool's end, the grader's letting go or SIGTERM; then ends what is left.
    fn guard(mut self, leash: &UnixStream, signals: &File) -> Word {
        while self.ended.is_none() {
            let mut waited = [PollFd::new(leash, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
            match poll(&mut waited, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
            let [let_go, signalled] = waited.map(|fd| !fd.revents().is_empty());
            if let_go || (signalled && is_asked_to_end(signals)) {
                break;
            }
            self.reap(WaitOptions::NOHANG);
        }
        self.end();
        Word::Ended(self.ended.unwrap_or(libc::SIGKILL))
    }

    /// Reaps children; false when there is none at all.
    fn reap(&mut self, options: WaitOptions) -> bool {
        loop {
            match rustix::process::wait(options) {
                Ok(None) => return true,
                Err(error) => return error == rustix::io::Errno::INTR,
                Ok(Some((pid, status))) if pid == self.tool => self.ended = Some(status.as_raw()),
                Ok(Some(_)) => {}
            }
            if options.is_empty() {
                return true;
            }
        }
    }

    /// Kills children until there are none: what a killed child leaves behind becomes a child of this process.
    fn end(&mut self) {
        if self.ended.is_none() {
            let _ = rustix::process::kill_process(self.tool, Signal::KILL);
        }
        loop {
            match std::fs::read_to_string(super::tree::CHILDREN) {
                Ok(listed) => {
                    let pids = listed.split_whitespace().filter_map(|number| Pid::from_raw(number.parse().ok()?));
                    for pid in pids {
                        let _ = rustix::process::kill_process(pid, Signal::KILL);
                    }
                }
                // No list to go by: the grader ends the process group, which is all that is left to do.
                Err(_) if self.ended.is_some() => return,
                Err(_) => {}
            }
            if !self.reap(WaitOptions::empty()) {
                return;
            }
        }
    }
}

/// Whether the signal that came is SIGTERM.
fn is_asked_to_end(mut signals: &File) -> bool {
    let mut info = [0; size_of::<libc::signalfd_siginfo>()];
    // The number is the structure's first field (signalfd(2)).
    signals.read_exact(&mut info).is_ok() && info[..4] == (libc::SIGTERM as u32).to_ne_bytes()
}
