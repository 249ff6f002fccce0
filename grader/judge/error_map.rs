//! Where a wrong grid is wrong, and by how much: a coarse picture that fits a report.
//!
//! The pattern names the mistake: a halo that is too narrow draws the outline of every tile, a translation the whole grid,
//! a missing guard one row or column.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cells::within;
use crate::grid::Grid;

/// Most bins a side.
pub const BINS: usize = 64;
/// What stands for a bin with no wrong cell.
pub const NONE: u8 = b'.';
/// What stands for a bin with a NaN or an infinity.
pub const NOT_FINITE: u8 = b'x';
/// The letters of relative errors: below 1e-6, then a decade each, the last for 1 and more.
pub const DECADES: [u8; 8] = *b"abcdefgh";
/// The share of a bin's cells that the digit 9 stands for is all of them.
pub const NINTHS: u64 = 9;

/// The wrong cells of a grid in bins of `bin` x `bin` cells, at most 64 bins a side, row-major from row 0, column 0.
///
/// A string is a row of bins and a character a bin; `.` is a bin in which every cell is right, and those at the end of a
/// string are left off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorMap {
    /// Cells a side of the grid, ring included.
    pub n: u32,
    /// Cells a side of a bin; the last bin of a row or column may have fewer.
    pub bin: u32,
    /// Wrong cells of the whole grid.
    pub wrong_cells: u64,
    /// How many of a bin's cells are wrong, in ninths and rounded up: `1` to `9`, which is all of them.
    pub wrong: Vec<String>,
    /// The bin's largest |got - expected| over the grid's largest |expected|: `a` below 1e-6, then a letter a decade up to
    /// `h`, 1 and more; `x` where a cell is NaN or infinite.
    pub error: Vec<String>,
}

/// What one bin holds.
#[derive(Clone, Copy, Default)]
struct Bin {
    wrong: u64,
    largest: f64,
    not_finite: bool,
}

impl ErrorMap {
    /// The map of two grids of one size; a cell is wrong outside `tolerance`, and on the ring unless it has the expected
    /// bits. Grids of different sizes, which are never given, come to an empty map.
    pub fn between(expected: &Grid, got: &Grid, tolerance: f64) -> Self {
        let n = expected.n();
        if n == 0 || n != got.n() {
            return Self::default();
        }
        let side = n.div_ceil(BINS);
        let across = n.div_ceil(side);
        let mut bins = vec![Bin::default(); across * across];
        for (at, (&want, &have)) in expected.cells().iter().zip(got.cells()).enumerate() {
            let (row, column) = (at / n, at % n);
            let ring_moved = expected.on_ring(row, column) && want.to_bits() != have.to_bits();
            if !within(want, have, tolerance) || ring_moved {
                let difference = (f64::from(have) - f64::from(want)).abs();
                bins[row / side * across + column / side].add(difference);
            }
        }
        let scale = f64::from(expected.max_abs()).max(f64::MIN_POSITIVE);
        let cells_of = |at: usize| (n - at * side).min(side) as u64;
        let cells = |at: usize| cells_of(at / across) * cells_of(at % across);
        let shares: Vec<u8> = bins.iter().enumerate().map(|(at, bin)| bin.share(cells(at))).collect();
        let decades: Vec<u8> = bins.iter().map(|bin| bin.decade(scale)).collect();
        Self {
            n: n as u32,
            bin: side as u32,
            wrong_cells: bins.iter().map(|bin| bin.wrong).sum(),
            wrong: rows(&shares, across),
            error: rows(&decades, across),
        }
    }

    /// Bins a side, 1 to 64.
    pub fn bins(&self) -> usize {
        (self.n.div_ceil(self.bin.max(1)) as usize).clamp(1, BINS)
    }

    /// The share, 0 to 1, of wrong cells and the letter of the largest error in a bin; `None` where every cell is right,
    /// and where a report written by other hands says something else.
    pub fn at(&self, row: usize, column: usize) -> Option<(f64, u8)> {
        let share = self.wrong.get(row)?.as_bytes().get(column)?;
        let error = *self.error.get(row)?.as_bytes().get(column)?;
        let ninths = share.checked_sub(b'0').map(u64::from).filter(|ninths| (1..=NINTHS).contains(ninths))?;
        let known = error == NOT_FINITE || DECADES.contains(&error);
        known.then_some((ninths as f64 / NINTHS as f64, error))
    }
}

impl Bin {
    fn add(&mut self, difference: f64) {
        self.wrong += 1;
        if difference.is_finite() {
            self.largest = self.largest.max(difference);
        } else {
            self.not_finite = true;
        }
    }

    fn share(&self, cells: u64) -> u8 {
        match self.wrong {
            0 => NONE,
            wrong => b'0' + (wrong * NINTHS).div_ceil(cells.max(1)).min(NINTHS) as u8,
        }
    }

    fn decade(&self, scale: f64) -> u8 {
        match (self.wrong, self.not_finite) {
            (0, _) => NONE,
            (_, true) => NOT_FINITE,
            _ => {
                // Compared, not taken from a logarithm: the same letter on every machine.
                let marks = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0];
                DECADES[marks.iter().filter(|mark| self.largest / scale >= **mark).count()]
            }
        }
    }
}

/// A string a row of bins, without the `.` at its end.
fn rows(characters: &[u8], across: usize) -> Vec<String> {
    let text = |row: &[u8]| row.iter().map(|&c| char::from(c)).collect::<String>();
    characters.chunks(across).map(|row| text(row).trim_end_matches(char::from(NONE)).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(from: &Grid, cells: &[(usize, usize, f32)]) -> Grid {
        let mut all = from.cells().to_vec();
        for &(row, column, value) in cells {
            all[row * from.n() + column] = value;
        }
        Grid::from_cells(from.n(), all).expect("same size")
    }

    #[test]
    fn a_small_grid_has_a_bin_a_cell() {
        let want = changed(&Grid::initial(6, 1), &[(0, 0, 2.0)]);
        let scale = f64::from(want.max_abs());
        let have = changed(&want, &[(2, 3, want.at(2, 3) + 0.5), (4, 1, f32::NAN), (3, 3, want.at(3, 3) + 1e-4)]);
        let map = ErrorMap::between(&want, &have, 1e-6);
        assert_eq!((map.n, map.bin, map.bins(), map.wrong_cells), (6, 1, 6, 3));
        assert_eq!(map.wrong, ["", "", "...9", "...9", ".9", ""]);
        assert!(scale < 5.0, "0.5 is a tenth of it and more");
        assert_eq!(map.error, ["", "", "...g", "...c", ".x", ""]);
        assert_eq!((map.at(2, 3), map.at(2, 2), map.at(4, 1)), (Some((1.0, b'g')), None, Some((1.0, b'x'))));
    }

    #[test]
    fn a_large_grid_is_summed_in_bins_and_the_last_may_be_smaller() {
        let want = Grid::initial(131, 1);
        let have = changed(&want, &[(60, 61, 9.0), (61, 60, 9.0), (130, 130, 9.0)]);
        let map = ErrorMap::between(&want, &have, 1e-6);
        assert_eq!((map.bin, map.bins()), (3, 44));
        assert_eq!(map.wrong[20], format!("{}2", ".".repeat(20)), "2 of 9 cells");
        assert_eq!(map.wrong[43], format!("{}3", ".".repeat(43)), "1 of 2 x 2 cells, rounded up to ninths");
        assert_eq!(map.wrong.iter().filter(|row| !row.is_empty()).count(), 2);
    }

    #[test]
    fn the_ring_is_compared_by_its_bits() {
        let want = Grid::initial(5, 1);
        let up = f32::from_bits(want.at(4, 2).to_bits() + 1);
        let map = ErrorMap::between(&want, &changed(&want, &[(4, 2, up)]), 1.0);
        assert_eq!((map.wrong_cells, map.error[4].as_str()), (1, "..a"));
    }

    #[test]
    fn at_its_largest_it_stays_a_few_kilobytes() {
        let want = Grid::initial(2048, 1);
        let have = Grid::from_cells(2048, vec![9.0; 2048 * 2048]).expect("same size");
        let map = ErrorMap::between(&want, &have, 1e-6);
        assert_eq!((map.bins(), map.wrong_cells), (64, 2048 * 2048));
        assert!(serde_json::to_string(&map).unwrap().len() < 9_000);
    }

    #[test]
    fn a_map_from_other_hands_is_read_without_trust() {
        let odd =
            ErrorMap { n: 7, bin: 0, wrong_cells: 1, wrong: vec!["é0:".to_owned()], error: vec!["aaaaa".to_owned()] };
        assert_eq!(odd.bins(), 7);
        assert!((0..5).all(|column| odd.at(0, column).is_none()));
        assert_eq!(ErrorMap { n: u32::MAX, bin: 1, ..odd }.bins(), BINS);
    }
}
