//! A worker process as the grader holds it: its pipes, its captured output, its CPU time, its end.

use std::io::{BufWriter, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::Receiver;

use super::abi::DYNAMIC_SHARED;
use super::message::{Reply, Request};
use crate::execute::wire;

/// Most bytes kept of what a kernel prints.
const MOST_OUTPUT: usize = 64 * 1024;
/// Thread-local bytes that the loader is asked to set aside: dynamic shared memory, and static arrays up to the same size.
const STATIC_TLS: usize = 3 * DYNAMIC_SHARED;

/// What the reader thread hands on.
pub enum Event {
    Reply(Reply, Vec<u8>),
    /// The reply channel ended, in good order or not.
    Ended,
    /// The worker wrote what is no reply: its memory is no longer its own.
    Garbled,
}

/// A running worker.
pub struct WorkerProcess {
    child: Child,
    requests: Option<BufWriter<ChildStdin>>,
    pub events: Receiver<Event>,
    output: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl WorkerProcess {
    /// Starts `program worker` with a clean environment.
    pub fn start(program: &Path) -> Result<Self> {
        let mut child = Command::new(program)
            .arg("worker")
            .env_clear()
            .env("GLIBC_TUNABLES", format!("glibc.rtld.optional_static_tls={STATIC_TLS}"))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the worker process")?;
        let missing = || anyhow!("the worker process has no pipes");
        let (stdin, stdout, stderr) = (
            child.stdin.take().ok_or_else(missing)?,
            child.stdout.take().ok_or_else(missing)?,
            child.stderr.take().ok_or_else(missing)?,
        );
        let (sender, events) = crossbeam_channel::bounded(4);
        let output = Arc::new(Mutex::new(Vec::new()));
        let kept = output.clone();
        let readers = vec![
            std::thread::spawn(move || {
                let mut replies = stdout;
                loop {
                    let (event, last) = match wire::read::<Reply>(&mut replies) {
                        Ok(Some((reply, blob))) => (Event::Reply(reply, blob), false),
                        Ok(None) => (Event::Ended, true),
                        Err(_) => (Event::Garbled, true),
                    };
                    if sender.send(event).is_err() || last {
                        return;
                    }
                }
            }),
            std::thread::spawn(move || capture(stderr, &kept)),
        ];
        Ok(Self { child, requests: Some(BufWriter::with_capacity(1 << 20, stdin)), events, output, readers })
    }

    /// Sends a request; an error means that the worker is gone.
    pub fn send(&mut self, request: &Request, blob: &[u8]) -> Result<()> {
        let requests = self.requests.as_mut().ok_or_else(|| anyhow!("the worker is gone"))?;
        wire::write(requests, request, blob)
    }

    /// CPU time used so far, user and system; `None` when the process is gone.
    pub fn cpu_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        // Fields after the parenthesised name: state is the first, utime the 12th, stime the 13th.
        let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
        let user: u64 = fields.nth(11)?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        // Linux reports clock ticks of 1/100 s to user space on every architecture.
        Some(Duration::from_millis((user + system) * 10))
    }

    /// Asks where the running launch stands; the worker answers with a last frame and ends.
    pub fn ask_where(&self) {
        // SAFETY: a plain system call on a child that has not been reaped.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGUSR1) };
    }

    /// Ends the worker, and returns how it ended.
    pub fn finish(&mut self) -> Option<ExitStatus> {
        self.requests = None;
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// Waits a moment for the worker to end by itself.
    pub fn wait_briefly(&mut self) -> Option<ExitStatus> {
        for _ in 0..50 {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.finish()
    }

    /// What the kernel printed since the last call.
    pub fn take_output(&self) -> String {
        let mut output = self.output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let text = String::from_utf8_lossy(&output).into_owned();
        output.clear();
        text
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.finish();
        // Unblocks a reader that waits to hand on an event.
        self.events = crossbeam_channel::never();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

/// Keeps the first bytes of a stream and drains the rest, so that a flood never blocks the worker.
fn capture(mut stream: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 8192];
    while let Ok(bytes) = stream.read(&mut buffer) {
        if bytes == 0 {
            return;
        }
        let mut kept = kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let room = MOST_OUTPUT.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..bytes.min(room)]);
    }
}
