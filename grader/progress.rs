//! Progress on stderr; the only file that knows the progress-bar crate. Silent where stderr is no terminal, and where
//! the command line asks for it.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, WeakProgressBar};

/// Whether this process shows no progress at all.
static SILENT: AtomicBool = AtomicBool::new(false);
/// Whether only what was begun goes on.
static FINISHING: AtomicBool = AtomicBool::new(false);
/// The bar on the screen, which notes go above.
static SHOWN: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// From now on no bar and no note of this process is shown.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// From now on bars say that nothing more is begun.
pub fn finishing() {
    FINISHING.store(true, Ordering::Relaxed);
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
        let bar = Self::new(total, "grading", "{msg} [{bar:30}] {pos}/{len}{left}");
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
            let left = |state: &ProgressState, text: &mut dyn std::fmt::Write| {
                let _ = text.write_str(&told_left(state.pos(), state.len(), state.elapsed()));
            };
            bar.set_style(style.with_key("left", left).progress_chars("=> "));
        }
        bar.set_message(message.to_owned());
        if shown {
            bar.enable_steady_tick(Duration::from_millis(200));
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
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
        note(line);
    }

    /// Takes the bar off the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Prints one line on stderr; a stderr that is closed is no reason to stop.
pub fn note(line: &str) {
    use std::io::Write as _;
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    match on_screen() {
        Some(bar) => bar.println(line),
        None => drop(writeln!(std::io::stderr(), "{line}")),
    }
}

/// The bar that is on the screen: a hidden one would swallow a note.
fn on_screen() -> Option<ProgressBar> {
    let bar = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    bar.filter(|bar| !bar.is_finished() && !bar.is_hidden())
}

/// What a bar says of the time left: what the things took on average tells it, as one that hangs is no measure of the rest.
fn told_left(done: u64, of: Option<u64>, took: Duration) -> String {
    let mut text = String::new();
    if FINISHING.load(Ordering::Relaxed) {
        text.push_str(", finishing what runs");
    } else if let Some(left) = of.and_then(|of| time_left(done, of, took)) {
        let _ = write!(text, ", {} left", HumanDuration(left));
    }
    text
}

/// The time that the rest takes if it goes on as it went; `None` before anything is done.
fn time_left(done: u64, of: u64, took: Duration) -> Option<Duration> {
    (done > 0).then(|| took.mul_f64(of.saturating_sub(done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_told_by_the_average_and_not_before_there_is_one() {
        let minute = Duration::from_secs(60);
        assert_eq!(time_left(0, 20, minute), None);
        assert_eq!(time_left(5, 20, minute), Some(3 * minute));
        assert_eq!(time_left(20, 20, minute), Some(Duration::ZERO));
        assert_eq!(told_left(0, Some(20), minute), "");
        assert_eq!(told_left(5, Some(20), minute), ", 3 minutes left");
    }

    #[test]
    fn no_note_goes_to_a_bar_that_nobody_sees() {
        let hidden = ProgressBar::hidden();
        *SHOWN.lock().unwrap() = Some(hidden.downgrade());
        assert!(on_screen().is_none());
    }

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
