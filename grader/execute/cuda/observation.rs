//! What a worker saw, in the words that all engines share.

use super::message::{BandChange, RawObservation};
use crate::execute::{Hazard, HazardKind, InputChange, Memory, Observation, RunFault};
use crate::grid::Grid;

/// The worker's words as an observation.
pub fn observation(
    raw: RawObservation,
    grids: Vec<(u32, Grid)>,
    fault: Option<RunFault>,
    output: String,
    n: usize,
) -> Observation {
    let input_changed = raw.input_changed.map(|(launch, cell, before, after)| InputChange {
        launch,
        row: cell / n,
        column: cell % n,
        before: f32::from_bits(before),
        after: f32::from_bits(after),
    });
    Observation {
        grids,
        states: Vec::new(),
        words_read: raw.words_read,
        hazards: raw.bands.iter().map(hazard).collect(),
        input_changed,
        shortcut: false,
        writers: Vec::new(),
        cell_reads: None,
        fault,
        output,
        constructors_printed: String::new(),
        cpu_seconds: 0.0,
        wall_seconds: raw.wall_seconds,
    }
}

/// A store into a guard band.
fn hazard(change: &BandChange) -> Hazard {
    let cell = change.cell;
    Hazard {
        kind: HazardKind::OutOfRange,
        memory: Some(if change.input { Memory::In { cell } } else { Memory::Out { cell } }),
        store: true,
        bytes: 4,
        place: None,
        actor: None,
        other: None,
        launch: change.launch,
        count: change.count,
    }
}
