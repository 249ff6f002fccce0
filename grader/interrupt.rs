//! Ctrl-C, SIGTERM and SIGHUP: how the grader ends before its time.
//!
//! An interrupt ends the process at once: what it started is ended, its temporary folders are deleted, its last words
//! are said. A command that works through many things can ask for a first interrupt of another kind, which only tells it
//! to begin nothing more ([`finish_first`]); the second one ends the process all the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::compile::scratch;
use crate::confine::tree;
use crate::exit_code::ExitCode;

type Words = Box<dyn FnOnce() + Send>;

static LAST_WORDS: Mutex<Option<Words>> = Mutex::new(None);
static FIRST_WORDS: Mutex<Option<Words>> = Mutex::new(None);
static STOPPING: AtomicBool = AtomicBool::new(false);
static ENDING: AtomicBool = AtomicBool::new(false);

/// Sets what an interrupted process still says before it ends; `None`: nothing.
pub fn set_last_words(words: Option<Words>) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// From now on the first interrupt says `words`, makes [`stopping`] true and ends nothing; `None`: it ends the process.
pub fn finish_first(words: Option<Words>) {
    *FIRST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

/// Whether nothing more is to be begun.
pub fn stopping() -> bool {
    STOPPING.load(Ordering::Acquire)
}

/// Whether the process is ending: what was started has been killed, and says nothing about anybody's submission.
pub fn ending() -> bool {
    ENDING.load(Ordering::Acquire)
}

/// From now on an interrupt (Ctrl-C, SIGTERM, SIGHUP) does as said above.
pub fn heed() {
    // An error means that a handler is already there, which is as good.
    let _ = ctrlc::set_handler(|| {
        let first = FIRST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
        match first {
            Some(words) => {
                STOPPING.store(true, Ordering::Release);
                words();
            }
            None => end(),
        }
    });
}

fn end() -> ! {
    ENDING.store(true, Ordering::Release);
    // Held until the end, so that no thread makes another folder.
    let folders = scratch::hold();
    // What still runs may be writing into them.
    tree::end_all();
    folders.delete();
    if let Some(words) = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take() {
        words();
    }
    std::process::exit(ExitCode::Interrupted as i32);
}
