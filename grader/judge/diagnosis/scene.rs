//! The launch that is first known to be wrong, and how a guess about it is put to the test.
//!
//! A guess is a faulty kernel in a few words ("the second timestep is left out"). What such a kernel makes of the grid
//! before the launch is computed here and compared with what the submission made of it. A guess that meets every cell
//! explains the fault; one that misses a single cell is dropped.

use super::stencil::step;
use crate::grid::Grid;
use crate::submission::Geometry;

/// Room for rounding beyond the tolerance of a right kernel: a faulty one is not a contraction.
const ROOM: f64 = 4.0;
/// How many times that room the largest error must be, so that no guess fits for want of an error.
const CLEAR: f64 = 16.0;

/// One launch, before and after.
pub struct Scene<'a> {
    pub r: f32,
    /// The grid that the launch was given: known to be right.
    pub before: &'a Grid,
    /// What the submission made of it.
    pub after: &'a Grid,
    /// What two timesteps make of it.
    pub right: Grid,
    /// Blocks and threads at this n, where known.
    pub geometry: Option<Geometry>,
    /// Which launch it is, from 1.
    pub launch: u32,
    /// The written interior cell with the largest error: where a wrong guess fails soonest.
    pub worst: (usize, usize),
    /// How far a guess may be off.
    bound: f64,
    /// The error there.
    largest: f64,
    /// Whether cells that are not finite are cells that nobody wrote.
    unwritten: bool,
}

impl<'a> Scene<'a> {
    /// `tolerance` is that of a right kernel after one launch; `unwritten` says that cells which are not finite are cells that
    /// nobody wrote. `None` where the grids have no interior or differ in size.
    pub fn new(
        (before, after): (&'a Grid, &'a Grid),
        r: f32,
        tolerance: f64,
        (launch, geometry): (u32, Option<Geometry>),
        unwritten: bool,
    ) -> Option<Self> {
        if before.n() != after.n() || before.n() < crate::grid::MIN_N {
            return None;
        }
        let right = step(&step(before, r), r);
        let bound = tolerance * ROOM;
        let scene = Self { r, before, after, right, geometry, launch, worst: (1, 1), bound, largest: 0.0, unwritten };
        let (mut worst, mut largest) = (scene.worst, scene.largest);
        for (row, column) in scene.interior().filter(|&(row, column)| !scene.is_unwritten(row, column)) {
            let error = (f64::from(after.at(row, column)) - f64::from(scene.right.at(row, column))).abs();
            if error > largest {
                (worst, largest) = ((row, column), error);
            }
        }
        Some(Self { worst, largest, ..scene })
    }

    /// Cells a side.
    pub fn n(&self) -> usize {
        self.before.n()
    }

    /// All interior cells, row-major.
    pub fn interior(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let n = self.n();
        (1..n - 1).flat_map(move |row| (1..n - 1).map(move |column| (row, column)))
    }

    /// Whether no thread wrote the cell.
    pub fn is_unwritten(&self, row: usize, column: usize) -> bool {
        self.unwritten && !self.after.at(row, column).is_finite()
    }

    /// Whether a value is the cell's, but for rounding.
    pub fn meets(&self, row: usize, column: usize, value: f32) -> bool {
        (f64::from(self.after.at(row, column)) - f64::from(value)).abs() <= self.bound
    }

    /// Whether there is an error in written interior cells, large enough to tell guesses apart.
    pub fn is_telling(&self) -> bool {
        self.largest > CLEAR * self.bound
    }

    /// Whether a guess at the grid meets every interior cell that was written.
    pub fn is(&self, guess: &Grid) -> bool {
        self.follows(|row, column| guess.at(row, column))
    }

    /// The same for a guess given cell by cell.
    pub fn follows(&self, guess: impl Fn(usize, usize) -> f32) -> bool {
        let meets = |row: usize, column: usize| self.meets(row, column, guess(row, column));
        let mut cells = self.interior();
        meets(self.worst.0, self.worst.1)
            && cells.all(|(row, column)| self.is_unwritten(row, column) || meets(row, column))
    }
}
