//! Likely causes: only what the data makes certain. Sentences for the learner, most telling first.

use super::case::{Outcome, Wrong, Writer};

/// What the pattern of wrong interior cells says by itself.
pub fn likely_causes(outcome: &Outcome, wrong: &Wrong) -> Vec<String> {
    [unwritten(outcome), along_the_ring(wrong), not_finite(wrong)].into_iter().flatten().collect()
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
    (wrong.cells.near_ring == wrong.cells.count).then(|| {
        "All wrong cells lie within two cells of the ring: in the first of the two timesteps the ring must keep its value \
         inside the tile as well."
            .to_owned()
    })
}

fn not_finite(wrong: &Wrong) -> Option<String> {
    (wrong.cells.not_finite > 0).then(|| {
        "NaN where a number belongs is usually a shared cell used before any thread filled it: the grader fills shared \
         memory with NaN before each block."
            .to_owned()
    })
}
