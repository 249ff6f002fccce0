//! Between which launches a late fault lies, and which grids to look at to find it.

use std::sync::Arc;

use super::cells::WrongCell;
use super::error_map::ErrorMap;
use super::neighbourhood::Neighbourhood;
use crate::execute::Observation;
use crate::grid::Grid;

/// Grids kept in one round: each round divides the bracket by this many.
const ROUND: u32 = 8;

/// Where the runs that narrow a bracket start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The last grid known to be right: short, and the two-timestep tolerance of a fresh start.
    LastRight,
    /// The trial's initial grid: for a fault that depends on how many launches went before.
    Beginning,
}

/// The first launch known to be wrong.
#[derive(Clone, Debug)]
pub struct WrongLaunch {
    pub launch: u32,
    /// Its first wrong cell.
    pub cell: WrongCell,
    /// The grid after it.
    pub grid: Arc<Grid>,
    /// All its wrong cells.
    pub map: ErrorMap,
    /// The cells around the first.
    pub around: Neighbourhood,
}

/// The last grid known to be right, and the first launch known to be wrong.
#[derive(Clone, Debug)]
pub struct Bracket {
    pub right: (u32, Arc<Grid>),
    pub wrong: Option<WrongLaunch>,
    pub start: Start,
}

impl Bracket {
    /// Nothing known but the initial grid.
    pub fn new(initial: Arc<Grid>) -> Self {
        Self { right: (0, initial), wrong: None, start: Start::LastRight }
    }

    /// Notes the first launch known to be wrong.
    pub fn set_wrong(&mut self, wrong: WrongLaunch) {
        self.wrong = Some(wrong);
    }

    /// Whether the faulty launch is known: the one before it is right.
    pub fn is_placed(&self) -> bool {
        self.wrong.as_ref().is_some_and(|wrong| wrong.launch == self.right.0 + 1)
    }

    /// Whether a narrowing run came to the very grid that is known to be wrong. From the last right grid it need not: the
    /// fault may depend on how many launches went before. From the beginning there is nothing better to compare with.
    pub fn is_repeated_by(&self, run: &Observation) -> bool {
        let same = |known: &WrongLaunch| {
            let again = run.grid_after(known.launch - self.start_launch());
            again.is_some_and(|again| bits(again).eq(bits(&known.grid)))
        };
        self.start == Start::Beginning || self.wrong.as_ref().is_some_and(same)
    }

    /// The same bracket, to be narrowed from the trial's initial grid.
    pub fn restarted(self) -> Self {
        Self { start: Start::Beginning, ..self }
    }

    /// The grid that the narrowing runs start from.
    pub fn initial(&self, beginning: &Arc<Grid>) -> Arc<Grid> {
        match self.start {
            Start::LastRight => self.right.1.clone(),
            Start::Beginning => beginning.clone(),
        }
    }

    /// The launch that the narrowing runs start after.
    pub fn start_launch(&self) -> u32 {
        match self.start {
            Start::LastRight => self.right.0,
            Start::Beginning => 0,
        }
    }

    /// Which grids to keep in a narrowing run, counted from its start: up to [`ROUND`], evenly spaced over the bracket,
    /// the known wrong one last.
    pub fn keep(&self) -> Vec<u32> {
        let Some(wrong) = &self.wrong else { return Vec::new() };
        let inside = wrong.launch.saturating_sub(self.right.0);
        let parts = inside.min(ROUND);
        let offset = self.right.0 - self.start_launch();
        (1..=parts).map(|part| offset + (u64::from(inside) * u64::from(part) / u64::from(parts)) as u32).collect()
    }
}

fn bits(grid: &Grid) -> impl Iterator<Item = u32> {
    grid.cells().iter().map(|cell| cell.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bracket(right: u32, wrong: u32) -> Bracket {
        let grid = Arc::new(Grid::initial(3, 1));
        let cell = WrongCell { row: 1, column: 1, expected: 0.0, got: 1.0 };
        let around = Neighbourhood::of(&cell, &grid, &grid, 0.0);
        let wrong = WrongLaunch { launch: wrong, cell, grid: grid.clone(), map: ErrorMap::default(), around };
        Bracket { right: (right, grid), wrong: Some(wrong), start: Start::LastRight }
    }

    #[test]
    fn a_round_keeps_at_most_eight_grids_ending_with_the_wrong_one() {
        assert_eq!(bracket(0, 500).keep(), [62, 125, 187, 250, 312, 375, 437, 500]);
        assert_eq!(bracket(100, 103).keep(), [1, 2, 3]);
        assert_eq!(bracket(100, 103).restarted().keep(), [101, 102, 103]);
    }

    #[test]
    fn it_is_placed_when_nothing_lies_between() {
        assert!(bracket(4, 5).is_placed());
        assert!(!bracket(4, 6).is_placed());
    }
}
