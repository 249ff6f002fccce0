//! `check --watch`: the check again whenever the submission has changed.
//!
//! Every check is a process of its own, so that one which a change has made pointless is ended at once. What is compared is
//! the submission as `check` reads it, and only when two looks agree, so that half a saved file is never checked. It is looked
//! at several times a second: editors replace files rather than write them, and folders that are shared with a container tell
//! nobody of changes.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::interrupt;
use crate::outbox;
use crate::submission::{self, Submission};

/// Between two looks at the submission.
const GLANCE: Duration = Duration::from_millis(200);
/// Clears the terminal and what can be scrolled back to.
const CLEAR: &str = "\x1b[2J\x1b[3J\x1b[H";

/// What a look at the submission shows: its text, or why there is none.
type Seen = Result<Submission, String>;

/// Checks `path` with the command line `check` (program name left out) now and after every change, until it is interrupted.
pub fn run(path: &Path, check: &[OsString]) -> Result<std::convert::Infallible> {
    let mut seen = look(path);
    loop {
        let mut running = start(check)?;
        let mut told = false;
        seen = loop {
            std::thread::sleep(GLANCE);
            let now = look(path);
            // Twice the same, or somebody is still writing.
            if now != seen && settled(path, &now) {
                break now;
            }
            if !told && running.try_wait().context("cannot wait for the check")?.is_some() {
                told = true;
                outbox::warn("\nwatching for changes; Ctrl-C ends\n");
            }
        };
        end(&mut running)?;
        clear();
    }
}

fn look(path: &Path) -> Seen {
    submission::read(path).map_err(|error| error.to_string())
}

fn settled(path: &Path, now: &Seen) -> bool {
    std::thread::sleep(GLANCE / 2);
    look(path) == *now
}

/// Starts a check that ends with this process.
fn start(check: &[OsString]) -> Result<Child> {
    let executable = std::env::current_exe().context("cannot find the grader's own executable")?;
    let mut command = Command::new(executable);
    command.args(check).stdin(Stdio::null());
    // SAFETY: one system call, between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
    }
    let child = command.spawn().context("cannot start a check")?;
    if let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // Ctrl-C reaches the check as well; SIGTERM reaches this process alone. Either way the check's end is waited for.
        interrupt::set_last_words(Some(Box::new(move || {
            let _ = kill_process(id, Signal::TERM);
            let _ = rustix::process::waitpid(Some(id), rustix::process::WaitOptions::empty());
        })));
    }
    Ok(child)
}

/// Ends a check that a change has made pointless, without a word of it. The next one deletes its folders.
fn end(running: &mut Child) -> Result<()> {
    // One that has ended is no longer there to be killed.
    let _ = running.kill();
    running.wait().context("cannot wait for the check")?;
    interrupt::set_last_words(None);
    Ok(())
}

/// A fresh screen for the next check, or a line between the two.
fn clear() {
    outbox::print(if std::io::stdout().is_terminal() { CLEAR } else { "\n----\n\n" });
}
