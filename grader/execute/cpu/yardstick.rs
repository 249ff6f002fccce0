//! How long a launch may take on this machine: a hundred times what the reference needs, and ten seconds at least; and how long
//! all launches of a run together: fifty times what the reference needs, and as long as ten launches may at least.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::execute::{Trial, Watch};

/// CPU time that one launch may use at least, whatever the reference needs.
pub const LEAST: Duration = Duration::from_secs(10);
/// Times of the reference's.
const MOST: f64 = 100.0;
/// Launches of a run that may each take as long as one may.
pub const LONGEST_LAUNCHES: u32 = 10;
/// A launch of the reference makes one of the two timesteps that a submission's makes.
const REFERENCE_LAUNCHES: f64 = 2.0;

/// What the reference needed so far, shared by the runners of a grade.
#[derive(Clone, Debug)]
pub struct Yardstick {
    picoseconds_a_cell: Arc<AtomicU64>,
    least: Duration,
}

impl Default for Yardstick {
    fn default() -> Self {
        Self::allowing(LEAST)
    }
}

impl Yardstick {
    /// By which a launch may use this much CPU time at least.
    pub fn allowing(least: Duration) -> Self {
        Self { picoseconds_a_cell: Arc::default(), least }
    }

    /// Takes in a run of the reference that is watched no closer than [`Watch::Fast`]; `seconds` of CPU time.
    pub fn note(&self, trial: &Trial, seconds: f64) {
        let cells = trial.initial.cells().len().max(1) as f64 * f64::from(trial.launches.max(1));
        self.picoseconds_a_cell.fetch_max((seconds / cells * 1e12) as u64, Ordering::Relaxed);
    }

    /// CPU time that one launch of a trial may use.
    pub fn limit(&self, trial: &Trial) -> Duration {
        self.least.max(self.most(trial))
    }

    /// CPU time that all launches of a trial may use together.
    pub fn run_limit(&self, trial: &Trial) -> Duration {
        (LONGEST_LAUNCHES * self.limit(trial)).max(trial.launches * self.most(trial) / 2)
    }

    /// As many times what the reference needs for a launch's timesteps as one may take.
    fn most(&self, trial: &Trial) -> Duration {
        let picoseconds_a_cell = self.picoseconds_a_cell.load(Ordering::Relaxed) as f64;
        let reference = picoseconds_a_cell * 1e-12 * trial.initial.cells().len() as f64 * REFERENCE_LAUNCHES;
        Duration::from_secs_f64(MOST * reference * watched(trial.watch))
    }
}

/// How much longer watching makes a launch of heatStepGlobal, as `cargo bench` shows it.
fn watched(watch: Watch) -> f64 {
    match watch {
        Watch::Fast => 1.0,
        Watch::Count => 3.0,
        Watch::Full => 20.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;

    fn trial(n: usize, watch: Watch) -> Trial {
        let initial = Arc::new(Grid::initial(n, 1));
        Trial {
            initial,
            r: 0.2,
            launches: 2,
            watch,
            keep: vec![2],
            state: None,
            keep_state: Vec::new(),
            writers_of: None,
            cell_reads: false,
            order: None,
            shortcuts: true,
        }
    }

    #[test]
    fn a_slow_machine_gives_more_time_and_none_gives_less_than_ten_seconds() {
        let yardstick = Yardstick::default();
        assert_eq!(yardstick.limit(&trial(512, Watch::Full)), LEAST);
        // 2 launches of 100 x 100 cells in 2 ms: 100 ns a cell.
        yardstick.note(&trial(100, Watch::Fast), 2e-3);
        yardstick.note(&trial(100, Watch::Fast), 1e-3);
        assert_eq!(yardstick.limit(&trial(100, Watch::Fast)), LEAST);
        let seconds = yardstick.limit(&trial(1000, Watch::Fast)).as_secs_f64();
        assert!((seconds - 20.0).abs() < 0.01, "{seconds}");
        assert!(yardstick.limit(&trial(1000, Watch::Count)) > yardstick.limit(&trial(1000, Watch::Fast)));
        // Two launches may take as long as ten; five hundred no longer than half of what each of them may.
        assert_eq!(yardstick.run_limit(&trial(100, Watch::Fast)), 10 * LEAST);
        let long = Trial { launches: 500, ..trial(1000, Watch::Fast) };
        assert_eq!(yardstick.run_limit(&long).as_secs(), 250 * 20);
    }
}
