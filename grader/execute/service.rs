//! What every worker process does, whatever its engine: it serves frames, and it ends with the grader.

use std::fs::File;
use std::io::Write;

use anyhow::{Context, Result};
use rustix::process::{Signal, set_parent_process_death_signal};

/// Has the kernel end this process with the grader, however that ends.
pub fn end_with_grader() -> Result<()> {
    // A grader that has ended already shows as the end of its requests.
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Keeps standard output for replies and lets descriptor 1 point to standard error, which the grader captures.
pub fn take_over_stdout() -> Result<File> {
    let kept = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3).context("cannot keep the reply channel")?;
    rustix::stdio::dup2_stdout(std::io::stderr()).context("cannot redirect standard output")?;
    Ok(File::from(kept))
}

unsafe extern "C" {
    /// The C library's standard streams.
    static stdout: *mut libc::FILE;
    static mut stderr: *mut libc::FILE;
}

/// Keeps from the grader's capture what this process itself says on standard error: a panic, memory that ran out. What a
/// learner's code writes there goes where its standard output goes. To be called before any other thread runs.
pub fn keep_own_words_apart() {
    // Without it they are only taken for the learner's.
    let Ok(nowhere) = File::options().write(true).open("/dev/null") else { return };
    let _ = rustix::stdio::dup2_stderr(&nowhere);
    // SAFETY: no other thread reads these variables yet, and both streams last as long as the process.
    unsafe { stderr = stdout };
}

/// Pushes out what kernels printed through C's standard output.
pub fn flush_prints() {
    // SAFETY: fflush(NULL) flushes all C streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    let _ = std::io::stderr().flush();
}

/// Ends this process when the grader is gone, even in the middle of a launch. A thread that looks, rather than a
/// parent-death signal: that one fires when the *thread* that started the worker ends. `prepare` runs on that thread.
pub fn end_with_parent(prepare: impl FnOnce() + Send + 'static) {
    let parent = rustix::process::getppid();
    std::thread::spawn(move || {
        prepare();
        while rustix::process::getppid() == parent {
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        // SAFETY: nothing of this process is worth cleaning up.
        unsafe { libc::_exit(1) };
    });
}
