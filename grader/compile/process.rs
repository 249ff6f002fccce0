//! Runs one tool (nvcc, ptxas, g++, pip) so that nothing of it outlives the call and nothing of the grader's
//! environment reaches it.
//!
//! A compiler that is fed hostile text can fork, flood its output, fill the disk or never come back, so a tool gets a
//! folder of its own, an environment of five variables, limits, and a leash ([`crate::confine::tree`]) by which all that it
//! started is killed whatever way the call ends. What the tool did is data ([`Finished`]); that it could not be started is an error.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::output::Streams;
use crate::confine::tree::Leash;
use crate::confine::warden::Errand;
use crate::confine::{self, tree};

/// What a tool may use up. CPU time, memory and file size hold for each of its processes, the rest for all together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// CPU time, whole seconds.
    pub cpu: Duration,
    pub wall: Duration,
    /// Address space, bytes; `None` is unlimited.
    pub address_space: Option<u64>,
    /// Largest file, bytes; `None` is unlimited.
    pub file_size: Option<u64>,
    /// Bytes kept of stdout, and of stderr; the rest is read and dropped.
    pub output: usize,
}

impl Default for Limits {
    /// Enough for any honest heat.cu (1.6 s, 250 MB with cooperative_groups), small enough for a laptop.
    fn default() -> Self {
        Self {
            cpu: Duration::from_secs(20),
            wall: Duration::from_secs(60),
            address_space: Some(4 << 30),
            file_size: Some(64 << 20),
            output: 1 << 20,
        }
    }
}

/// Which limit ended a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Cpu,
    Wall,
    Memory,
    FileSize,
    /// A compiler's own stack, which text that is nested without end overflows.
    Stack,
}

/// Tells tools at work that nobody wants any more what they make.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends every tool that was started with this, and any that is started later.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A tool that ran and is gone, with all that it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Exit code; `None` when a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it, the grader's own kill included.
    pub signal: Option<i32>,
    /// Lossy UTF-8: not fit to show as it is.
    pub stdout: String,
    pub stderr: String,
    /// Whether stdout or stderr was longer than [`Limits::output`].
    pub truncated: bool,
    pub wall: Duration,
    /// The limit that ended the tool itself. A compiler driver reports the end of its children in words instead.
    pub timed_out: Option<Limit>,
}

impl Finished {
    /// Whether it ended by itself with exit code 0.
    pub fn success(&self) -> bool {
        self.status == Some(0) && self.timed_out.is_none()
    }
}

/// A command to be: program, arguments, the folder it may write to.
#[derive(Clone, Debug)]
pub struct Tool {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    limits: Limits,
    /// What it may read and execute besides its folder; `None` is anything.
    readable: Option<Vec<PathBuf>>,
    stop: Stop,
}

impl Tool {
    /// A tool that works in `folder`, which is also its HOME and TMPDIR. PATH is the grader's, absolute entries only;
    /// nothing else of the environment is handed on (nvcc obeys NVCC_APPEND_FLAGS, gcc CPATH).
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let environment = [
            ("PATH", search_path()),
            ("LANG", "C".into()),
            ("LC_ALL", "C".into()),
            ("HOME", folder.clone().into()),
            ("TMPDIR", folder.clone().into()),
        ];
        Self {
            program: program.into(),
            arguments: Vec::new(),
            folder,
            environment: environment.map(|(name, value)| (name.into(), value)).into(),
            limits: Limits::default(),
            readable: None,
            stop: Stop::default(),
        }
    }

    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Starts from the grader's environment: for pip, which needs the user's proxy and index settings.
    pub fn inherit_environment(mut self) -> Self {
        let own = std::mem::take(&mut self.environment);
        self.environment = std::env::vars_os().chain(own).collect();
        if let Some(home) = std::env::var_os("HOME") {
            self.environment.insert("HOME".into(), home);
        }
        self
    }

    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Confines the tool to these folders, which it may read and execute, and its own, which it may write; and keeps it
    /// from the network and other processes. As far as the kernel offers that and the user has not forbidden it.
    pub fn confined(mut self, readable: Vec<PathBuf>) -> Self {
        self.readable = Some(readable);
        self
    }

    /// Ends it, with an error, as soon as nobody wants it any more.
    pub fn unless(mut self, stop: &Stop) -> Self {
        self.stop = stop.clone();
        self
    }

    /// Runs it to its end. An error means that it could not be started or waited for: a missing program, no file
    /// descriptors or processes left.
    pub fn run(&self) -> Result<Finished> {
        for _ in 1..confine::STARTS {
            if let Some(finished) = self.attempt()? {
                return Ok(finished);
            }
        }
        self.attempt()?.context("interrupted")
    }

    /// `None` when its warden was interrupted before it began.
    fn attempt(&self) -> Result<Option<Finished>> {
        let started = Instant::now();
        let cannot_start = || format!("cannot start {}", self.program.display());
        let mut group = self.spawn().with_context(cannot_start)?;
        let mut streams = Streams::new(&mut group.child, self.limits.output)?;
        let timed_out = group.watch(&mut streams, started + self.limits.wall, &self.stop)?;
        let status = group.end().with_context(cannot_start)?;
        let Some(status) = status else { return Ok(None) };
        streams.drain()?;
        let truncated = streams.truncated();
        let (stdout, stderr) = streams.into_text();
        Ok(Some(Finished {
            status: status.code(),
            signal: status.signal(),
            stdout,
            stderr,
            truncated,
            wall: started.elapsed(),
            timed_out: timed_out.or_else(|| limit_of_signal(status.signal())),
        }))
    }

    fn spawn(&self) -> Result<Group> {
        let readable = self.readable.as_ref().filter(|_| confine::wanted());
        let errand = Errand {
            program: self.program.clone().into(),
            arguments: self.arguments.clone(),
            folder: self.folder.clone().into(),
            environment: self.environment.clone().into_iter().collect(),
            cpu_seconds: self.limits.cpu.as_secs(),
            address_space: self.limits.address_space,
            file_size: self.limits.file_size,
            readable: readable.map(|folders| folders.iter().map(OsString::from).collect()),
        };
        let (child, leash) = tree::start(&errand)?;
        Ok(Group { child, leash, ended: false })
    }
}

/// The full path of a program on PATH.
pub fn find_program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&search_path()).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

/// Whether `path` is a regular file that this process may execute.
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The absolute entries of PATH: a relative one would mean the tool's own folder, where hostile text lies.
fn search_path() -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let absolute = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    std::env::join_paths(absolute).unwrap_or_else(|_| OsStr::new("/usr/bin:/bin").to_owned())
}

fn limit_of_signal(signal: Option<i32>) -> Option<Limit> {
    match signal? {
        libc::SIGXCPU => Some(Limit::Cpu),
        libc::SIGXFSZ => Some(Limit::FileSize),
        _ => None,
    }
}

/// A running tool's warden, the leader of a process group; all of it dies with this value.
struct Group {
    child: Child,
    leash: Leash,
    ended: bool,
}

/// How long a warden may take to end its tree, before it is killed with its group.
const WARDEN: Duration = Duration::from_secs(5);

impl Group {
    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Collects output until the warden has exited (it is not reaped yet) or the deadline has passed.
    fn watch(&self, streams: &mut Streams, deadline: Instant, stop: &Stop) -> Result<Option<Limit>> {
        while !self.has_exited()? {
            ensure!(!stop.is_set(), "ended, because nobody wants its work any more");
            if Instant::now() >= deadline {
                return Ok(Some(Limit::Wall));
            }
            streams.pump(if streams.all_closed() { 1 } else { 20 })?;
        }
        Ok(None)
    }

    fn has_exited(&self) -> Result<bool> {
        let Some(pid) = self.pid() else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Ok(status) => Ok(status.is_some()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error).context("cannot wait for a tool"),
        }
    }

    /// Has the warden end its tree, then kills the group and reaps the warden: in this order, because the group's number
    /// stays taken until then. Returns how the tool ended; `None` when it never began.
    fn end(&mut self) -> Result<Option<ExitStatus>> {
        self.leash.release();
        let patience = Instant::now() + WARDEN;
        while !self.has_exited()? && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let (false, Some(pid)) = (self.ended, self.pid()) {
            rustix::process::kill_process_group(pid, Signal::KILL).ok();
        }
        self.ended = true;
        self.leash.untie();
        let warden = self.child.wait()?;
        self.leash.status(warden)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.ended {
            self.end().ok();
        }
    }
}

#[cfg(test)]
#[path = "../tests/compile_process.rs"]
mod tests;
