//! Progress on stderr; the only file that knows the progress-bar crate. Silent where stderr is no terminal, and where
//! the command line asks for it.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whether this process shows no progress at all.
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on no bar and no note of this process is shown.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// One bar. All methods may be called from several threads.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar over `total` bytes.
    pub fn bytes(total: u64, message: &str) -> Self {
        Self::new(total, message, "{msg} [{bar:30}] {decimal_bytes}/{decimal_total_bytes} {eta}")
    }

    /// A bar over `total` things.
    pub fn count(total: u64, message: &str) -> Self {
        Self::new(total, message, "{msg} [{bar:30}] {pos}/{len} {eta}")
    }

    /// No bar: something goes on, and nobody knows for how long.
    pub fn waiting(message: &str) -> Self {
        Self::new(1, message, "{msg} {spinner}")
    }

    /// A bar over `total` submissions; hidden when `quiet`.
    pub fn submissions(total: u64, quiet: bool) -> Self {
        let bar = Self::new(total, "grading", "{msg} [{bar:30}] {pos}/{len}, {eta} left");
        if quiet {
            bar.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar
    }

    /// How far it goes.
    pub fn total(&self) -> u64 {
        self.bar.length().unwrap_or(0)
    }

    /// Whether nobody sees the bar.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    fn new(total: u64, message: &str, template: &str) -> Self {
        let shown = std::io::stderr().is_terminal() && !SILENT.load(Ordering::Relaxed);
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(message.to_owned());
        if shown {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self { bar }
    }

    /// Moves on by `amount`.
    pub fn inc(&self, amount: u64) {
        self.bar.inc(amount);
    }

    /// Moves to `position`; never beyond the total.
    pub fn set(&self, position: u64) {
        self.bar.set_position(position.min(self.bar.length().unwrap_or(position)));
    }

    /// Says what is going on now.
    pub fn message(&self, message: &str) {
        self.bar.set_message(message.to_owned());
    }

    /// Prints a line on stderr, above the bar where there is one.
    pub fn note(&self, line: &str) {
        if self.bar.is_hidden() { note(line) } else { self.bar.println(line) }
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Prints one line on stderr; a stderr that is closed is no reason to stop.
pub fn note(line: &str) {
    use std::io::Write;
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    writeln!(std::io::stderr(), "{line}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_a_bar_and_it_never_passes_its_total() {
        let bar = Progress::count(100, "grading");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10).for_each(|_| bar.inc(1)));
            }
        });
        assert_eq!(bar.bar.position(), 40);
        bar.set(5000);
        assert_eq!(bar.bar.position(), 100);
        bar.finish();
    }
}
