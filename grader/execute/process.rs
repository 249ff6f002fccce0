//! A worker process as the grader holds it: its pipes, its captured output, its end.

use std::io::{BufWriter, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use crossbeam_channel::{Receiver, Sender};
use rustix::event::{PollFd, PollFlags, poll};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire;

/// Bytes that a pipe holds: the most that an ordinary user gets.
const PIPE: usize = 1 << 20;
/// Most bytes kept of what a kernel prints.
const MOST_OUTPUT: usize = 64 * 1024;
/// How long output that is on its way is waited for.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(2);

/// What the reader thread hands on.
pub enum Event<Reply> {
    Reply(Reply, Vec<u8>),
    /// The reply channel ended, in good order or not.
    Ended,
    /// The worker wrote what is no reply: its memory is no longer its own.
    Garbled,
}

/// A running worker that answers with frames of `Reply`.
pub struct WorkerProcess<Reply> {
    child: Child,
    requests: Option<BufWriter<ChildStdin>>,
    pub events: Receiver<Event<Reply>>,
    output: Arc<Mutex<Vec<u8>>>,
    /// The pipe that the output comes through, to see whether any is still on its way.
    output_pipe: OwnedFd,
    readers: Vec<JoinHandle<()>>,
}

impl<Reply: DeserializeOwned + Send + 'static> WorkerProcess<Reply> {
    /// Starts the command with pipes, from the root folder and in a process group of its own, which Ctrl-C on the terminal does
    /// not reach: whether it ends is the grader's to say; its environment is the caller's to choose.
    pub fn start(mut command: Command) -> Result<Self> {
        command.process_group(0).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(command).context("cannot start the worker process")?;
        let missing = || anyhow!("the worker process has no pipes");
        let (stdin, stdout, stderr) = (
            child.stdin.take().ok_or_else(missing)?,
            child.stdout.take().ok_or_else(missing)?,
            child.stderr.take().ok_or_else(missing)?,
        );
        for pipe in [stdin.as_fd(), stdout.as_fd()] {
            // A grid goes through in a sixteenth of the turns; where the system refuses, it goes through all the same.
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
        }
        let output_pipe = stderr.as_fd().try_clone_to_owned().context("cannot keep the worker's output")?;
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
        let requests = Some(BufWriter::with_capacity(1 << 20, stdin));
        Ok(Self { child, requests, events, output, output_pipe, readers })
    }
}

impl<Reply> WorkerProcess<Reply> {
    /// Sends a request; an error means that the worker is gone.
    pub fn send(&mut self, request: &impl Serialize, blob: &[u8]) -> Result<()> {
        let requests = self.requests.as_mut().ok_or_else(|| anyhow!("the worker is gone"))?;
        wire::write(requests, request, blob)
    }

    /// The process id; the process is not reaped before [`WorkerProcess::finish`].
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells the worker to end at once, and does not wait for it.
    pub fn kill(&mut self) {
        self.requests = None;
        let _ = self.child.kill();
    }

    /// Ends the worker, and returns how it ended.
    pub fn finish(&mut self) -> Option<ExitStatus> {
        self.kill();
        self.child.wait().ok()
    }

    /// Waits a moment for the worker to end by itself.
    pub fn wait_briefly(&mut self) -> Option<ExitStatus> {
        self.wait(Duration::from_millis(500))
    }

    /// Lets the worker end in good order, as it does when no request can come any more; ends it after `patience`.
    pub fn close(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.requests = None;
        self.wait(patience)
    }

    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        while started.elapsed() < patience {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.finish()
    }

    /// What the kernel printed since the last call. What the worker wrote before its last reply is never missed.
    pub fn take_output(&self) -> String {
        let started = Instant::now();
        loop {
            let mut output = locked(&self.output);
            // Bytes are moved from the pipe to the buffer under the lock, so an empty pipe means that all are there.
            let waiting = rustix::io::ioctl_fionread(&self.output_pipe).unwrap_or(0);
            if waiting == 0 || output.len() >= MOST_OUTPUT || started.elapsed() > OUTPUT_PATIENCE {
                let text = String::from_utf8_lossy(&output).into_owned();
                output.clear();
                return text;
            }
            drop(output);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl<Reply> Drop for WorkerProcess<Reply> {
    fn drop(&mut self) {
        self.finish();
        // Unblocks a reader that waits to hand on an event.
        self.events = crossbeam_channel::never();
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
    }
}

/// Starts a process. A worker asks the kernel to end it with the grader ([`super::service::end_with_grader`]), and the signal for
/// that comes when the *thread* that started it is gone: so a thread that never goes starts them all.
fn spawn(command: Command) -> std::io::Result<Child> {
    type Order = (Command, Sender<std::io::Result<Child>>);
    static STARTER: LazyLock<Sender<Order>> = LazyLock::new(|| {
        let (orders, queue) = crossbeam_channel::unbounded::<Order>();
        std::thread::spawn(move || {
            for (mut command, back) in queue {
                let _ = back.send(command.spawn());
            }
        });
        orders
    });
    let (back, child) = crossbeam_channel::bounded(1);
    let gone = || std::io::Error::other("the thread that starts workers is gone");
    STARTER.send((command, back)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

fn locked(output: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the first bytes of a stream and drains the rest, so that a flood never blocks the worker.
fn capture(mut stream: impl Read + AsFd, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 8192];
    loop {
        match poll(&mut [PollFd::new(&stream, PollFlags::IN)], None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let mut kept = locked(kept);
        let bytes = match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let room = MOST_OUTPUT.saturating_sub(kept.len());
        kept.extend_from_slice(&buffer[..bytes.min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> WorkerProcess<()> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        WorkerProcess::start(command).unwrap()
    }

    #[test]
    fn all_that_was_printed_before_the_end_is_kept_up_to_the_cap() {
        let worker = shell("i=0; while [ $i -lt 2000 ]; do echo 0123456789 >&2; i=$((i+1)); done");
        assert!(matches!(worker.events.recv(), Ok(Event::Ended)));
        assert_eq!(worker.take_output().len(), 22_000);
        let flood = shell("head -c 1000000 /dev/zero >&2");
        assert!(matches!(flood.events.recv(), Ok(Event::Ended)));
        assert_eq!(flood.take_output().len(), MOST_OUTPUT);
    }

    #[test]
    fn what_is_no_frame_is_told_from_an_end() {
        assert!(matches!(shell("echo a long line that is no frame").events.recv(), Ok(Event::Garbled)));
        assert!(matches!(shell("exit 0").events.recv(), Ok(Event::Ended)));
    }
}
