//! What can be said of the wrong cells when nothing explains them: facts, no causes.

use crate::judge::outcome::{Outcome, Writer, Wrong};

/// Fewest wrong cells that make a pattern along the ring.
const ALONG: u64 = 8;

/// What the pattern of wrong cells shows by itself, in whole sentences.
pub fn facts(outcome: &Outcome, wrong: &Wrong) -> Vec<String> {
    let cells = &wrong.cells;
    let mut facts = Vec::new();
    // A cell that nobody wrote holds NaN whatever shared memory held.
    let unwritten = outcome.first.as_ref().is_some_and(|first| first.writer == Writer::Nobody);
    if cells.near_ring() == cells.count && cells.count >= ALONG && !unwritten {
        let place = match cells.by_ring {
            [_, 0, 0] => "on the ring",
            [0, _, 0] => "next to the ring",
            _ => "within two cells of the ring",
        };
        facts.push(format!("All wrong cells lie {place}."));
    }
    if cells.first.got.is_nan() {
        let filled = if unwritten {
            "The grader fills the output grid with NaN before the first launch: a cell that nobody writes shows."
        } else {
            "The grader fills shared memory and the output grid with NaN beforehand: a value that nobody wrote shows."
        };
        facts.push(filled.to_owned());
    }
    facts
}
