//! What a planned trial came to.

use super::cells::{Difference, Mismatches, WrongCell};
use super::error_map::ErrorMap;
use super::neighbourhood::Neighbourhood;
use super::plan::Planned;
use std::sync::Arc;

use crate::execute::{CellReads, Hazard, InputChange, LastWrite, RawTimes, RunFault};
use crate::grid::Grid;

/// Who wrote the first wrong cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Not looked for, or not found out.
    Unknown,
    /// No thread wrote the cell in that launch.
    Nobody,
    By(LastWrite),
}

/// The first cell, in row-major order, that disagrees with the reference, at the first launch where one does.
#[derive(Clone, Debug, PartialEq)]
pub struct FirstMismatch {
    pub n: u32,
    pub r: f32,
    /// The launch (from 1) after which the cell is wrong.
    pub launch: u32,
    /// The last launch known to be right; `launch - 1` unless the fault would not show again when looked for.
    pub last_right: u32,
    pub cell: WrongCell,
    pub writer: Writer,
    /// All wrong cells after that launch.
    pub map: ErrorMap,
    /// The cells around the first.
    pub around: Neighbourhood,
    /// The grid before that launch, where it is known to be right.
    pub before: Option<Arc<Grid>>,
    /// The grid after it.
    pub after: Arc<Grid>,
}

/// Wrong cells of one region at the first launch known to have any.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    pub launch: u32,
    pub cells: Mismatches,
}

/// The first launch, and the first cell there in row-major order, that differs between two runs of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunsDiffer {
    pub launch: u32,
    pub row: usize,
    pub column: usize,
    pub first: f32,
    pub second: f32,
}

impl RunsDiffer {
    /// Compares two grids after the same launch; grids of different sizes are never given.
    pub fn between(launch: u32, first: &Grid, second: &Grid) -> Option<Self> {
        let differ = |(one, other): (&f32, &f32)| one.to_bits() != other.to_bits();
        let cell = first.cells().iter().zip(second.cells()).position(differ)?;
        let (row, column) = (cell / first.n(), cell % first.n());
        Some(Self { launch, row, column, first: first.cells()[cell], second: second.cells()[cell] })
    }
}

/// What timing came to.
#[derive(Clone, Debug)]
pub enum Clocked {
    /// What was measured; words read per cell-step by the reference's kernels; and the grid after a whole round.
    Measured { times: Box<RawTimes>, reads: Vec<(String, f64)>, last: Option<Arc<Grid>> },
    /// Why nothing was: the machine's doing.
    Not(String),
}

/// What a planned trial came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub planned: Planned,
    /// Cells, ring included, outside the tolerance.
    pub values: Option<Wrong>,
    /// Ring cells that changed.
    pub ring: Option<Wrong>,
    /// Largest |got - expected| of cells that are right, of all grids compared from the start.
    pub furthest: f32,
    pub first: Option<FirstMismatch>,
    /// The launches that were counted, and the 4-byte words that each read from global memory.
    pub words_read: Vec<(u32, u64)>,
    /// How often the first launch read each cell, where that was watched.
    pub cell_reads: Option<CellReads>,
    pub hazards: Vec<Hazard>,
    pub input_changed: Option<InputChange>,
    pub fault: Option<RunFault>,
    /// Where another long run from the same grid ended otherwise.
    pub runs_differ: Option<RunsDiffer>,
    /// The submission's last grid of a long run.
    pub last: Option<Arc<Grid>>,
    pub timed: Option<Clocked>,
    /// What the kernel printed, unescaped.
    pub output: String,
    /// What static constructors printed before the first launch, unescaped.
    pub constructors_printed: String,
    /// Seconds that the submission's runs took.
    pub wall_seconds: f64,
}

impl Outcome {
    /// Nothing seen yet.
    pub fn new(planned: Planned) -> Self {
        Self {
            planned,
            values: None,
            ring: None,
            furthest: 0.0,
            first: None,
            words_read: Vec::new(),
            cell_reads: None,
            hazards: Vec::new(),
            input_changed: None,
            fault: None,
            runs_differ: None,
            last: None,
            timed: None,
            output: String::new(),
            constructors_printed: String::new(),
            wall_seconds: 0.0,
        }
    }

    /// Where this long run and an earlier one, which began with the same grid, ended otherwise.
    pub fn differs_from(&self, earlier: &Self) -> Option<RunsDiffer> {
        RunsDiffer::between(self.planned.launches, earlier.end()?, self.end()?)
    }

    /// The grid that a long run, or a timed round of it, ended with.
    fn end(&self) -> Option<&Grid> {
        let timed = match &self.timed {
            Some(Clocked::Measured { last, .. }) => last.as_deref(),
            _ => None,
        };
        timed.or(self.last.as_deref())
    }

    /// Whether every grid that was compared was right.
    pub fn grids_right(&self) -> bool {
        self.values.is_none() && self.ring.is_none()
    }

    /// Notes a difference unless an earlier launch is known to have one.
    pub(super) fn note(&mut self, launch: u32, difference: &Difference) {
        let regions = [(&mut self.values, &difference.values), (&mut self.ring, &difference.ring)];
        for (known, found) in regions {
            if let Some(cells) = found
                && known.as_ref().is_none_or(|wrong| launch <= wrong.launch)
            {
                *known = Some(Wrong { launch, cells: cells.clone() });
            }
        }
    }
}
