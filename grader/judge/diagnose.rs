//! Likely causes: only what the data makes certain. Sentences for the learner, most telling first.

use super::outcome::{Outcome, Writer, Wrong};

/// Fewest wrong cells that make a pattern along the ring.
const ALONG: u64 = 8;

/// What the pattern of wrong cells says by itself.
pub fn likely_causes(outcome: &Outcome, wrong: &Wrong) -> Vec<String> {
    [unwritten(outcome), along_the_ring(wrong), not_finite(outcome, wrong)].into_iter().flatten().collect()
}

fn unwritten(outcome: &Outcome) -> Option<String> {
    let first = outcome.first.as_ref()?;
    (first.writer == Writer::Nobody).then(|| {
        "Does the launch have enough blocks for the tile that the kernel strides by, and does every cell of a tile get a \
         thread?"
            .to_owned()
    })
}

fn along_the_ring(wrong: &Wrong) -> Option<String> {
    let cells = &wrong.cells;
    (cells.near_ring == cells.count && cells.count >= ALONG && cells.not_finite == 0).then(|| {
        "All wrong cells lie within two cells of the ring: look at what the first of the two timesteps does with ring \
         cells inside the tile, which must keep their value there too."
            .to_owned()
    })
}

fn not_finite(outcome: &Outcome, wrong: &Wrong) -> Option<String> {
    // A cell that nobody wrote holds NaN whatever shared memory held.
    let unwritten = outcome.first.as_ref().is_some_and(|first| first.writer == Writer::Nobody);
    (wrong.cells.not_finite > 0 && !unwritten).then(|| {
        "NaN where a number belongs is usually a shared cell used before any thread filled it: the grader fills shared \
         memory with NaN before each block."
            .to_owned()
    })
}
