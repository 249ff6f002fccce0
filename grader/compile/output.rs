//! The two output pipes of a running tool: read together, without blocking, kept up to a cap.

use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Both output pipes of a tool, read without blocking so that neither can starve the other.
pub(super) struct Streams {
    stdout: Stream<ChildStdout>,
    stderr: Stream<ChildStderr>,
}

impl Streams {
    pub(super) fn new(child: &mut Child, cap: usize) -> Result<Self> {
        let stdout = child.stdout.take().context("a tool without stdout")?;
        let stderr = child.stderr.take().context("a tool without stderr")?;
        Ok(Self { stdout: Stream::new(stdout, cap)?, stderr: Stream::new(stderr, cap)? })
    }

    pub(super) fn all_closed(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    pub(super) fn truncated(&self) -> bool {
        self.stdout.truncated || self.stderr.truncated
    }

    /// Waits at most `milliseconds` for output and reads what is there.
    pub(super) fn pump(&mut self, milliseconds: i32) -> Result<()> {
        let wanted = |fd: Option<BorrowedFd>| libc::pollfd {
            fd: fd.map_or(-1, |fd| fd.as_raw_fd()),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut fds = [wanted(self.stdout.fd()), wanted(self.stderr.fd())];
        // SAFETY: the pointer and the count describe the array above, which outlives the call; -1 entries are ignored.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, milliseconds) };
        self.stdout.read_available()?;
        self.stderr.read_available()
    }

    /// Reads what the killed group left in the pipes. A process that left the group may hold them open for ever, so
    /// this gives up after a moment.
    pub(super) fn drain(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_millis(250);
        while !self.all_closed() && Instant::now() < deadline {
            self.pump(10)?;
        }
        Ok(())
    }

    pub(super) fn into_text(self) -> (String, String) {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        (text(self.stdout.kept), text(self.stderr.kept))
    }
}

/// One pipe and what was kept of it.
struct Stream<P> {
    pipe: Option<P>,
    kept: Vec<u8>,
    cap: usize,
    truncated: bool,
}

impl<P: Read + AsFd> Stream<P> {
    fn new(pipe: P, cap: usize) -> Result<Self> {
        rustix::io::ioctl_fionbio(&pipe, true).context("cannot make a pipe non-blocking")?;
        Ok(Self { pipe: Some(pipe), kept: Vec::new(), cap, truncated: false })
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Reads at most 1 MiB, so that a flood cannot keep the caller from its deadline.
    fn read_available(&mut self) -> Result<()> {
        let mut buffer = [0; 16 << 10];
        for _ in 0..64 {
            let Some(pipe) = &mut self.pipe else { return Ok(()) };
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(count) => self.keep(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("cannot read a tool's output"),
            }
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (self.cap - self.kept.len()).min(bytes.len());
        self.kept.extend_from_slice(&bytes[..room]);
        self.truncated |= room < bytes.len();
    }
}
