//! The worker process of engine cpu: how it starts, what its processor time is, how it is asked where it stands.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::abi::DYNAMIC_SHARED;
use super::message::Reply;
use crate::confine;
use crate::execute::process;

pub type Event = process::Event<Reply>;
pub type WorkerProcess = process::WorkerProcess<Reply>;

/// Thread-local bytes that the loader is asked to set aside: dynamic shared memory, and static arrays up to the same size.
const STATIC_TLS: usize = 3 * DYNAMIC_SHARED;

/// Starts `program worker` with a clean environment.
pub fn start(program: &Path) -> Result<WorkerProcess> {
    let mut command = Command::new(program);
    command
        .arg("worker")
        .args(confine::worker::arguments())
        .env_clear()
        .env("GLIBC_TUNABLES", format!("glibc.rtld.optional_static_tls={STATIC_TLS}"));
    WorkerProcess::start(command)
}

/// CPU time used so far, user and system; `None` when the process is gone.
pub fn cpu_time(worker: &WorkerProcess) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", worker.id())).ok()?;
    // Fields after the parenthesised name: state is the first, utime the 12th, stime the 13th.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let user: u64 = fields.nth(11)?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    // Linux reports clock ticks of 1/100 s to user space on every architecture.
    Some(Duration::from_millis((user + system) * 10))
}

/// Whether every thread of the worker waits for something that is not the processor or a disk, or is gone.
pub fn is_asleep(worker: &WorkerProcess) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", worker.id())) else { return false };
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rfind(") ").and_then(|end| stat[end + 2..].chars().next());
        matches!(state, Some('S' | 'Z'))
    })
}

/// Asks where the running launch stands; the worker answers with a last frame and ends.
pub fn ask_where(worker: &WorkerProcess) {
    // SAFETY: a plain system call on a child that has not been reaped.
    unsafe { libc::kill(worker.id() as i32, libc::SIGUSR1) };
}
