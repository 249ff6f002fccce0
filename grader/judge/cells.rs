//! Comparing two grids: how far they may differ, and where they first do.
//!
//! The tolerance between them is derived in [`Exercise::tolerance`](crate::exercise::Exercise::tolerance).

use crate::grid::{Grid, LANES, larger};

/// A cell where two grids differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WrongCell {
    /// 0-based, ring included.
    pub row: usize,
    /// 0-based, ring included.
    pub column: usize,
    pub expected: f32,
    pub got: f32,
}

impl WrongCell {
    /// |got - expected|; NaN when either value is.
    pub fn difference(&self) -> f64 {
        (f64::from(self.got) - f64::from(self.expected)).abs()
    }
}

/// Every cell of one region in which two grids differ, summed up.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatches {
    /// The first in row-major order.
    pub first: WrongCell,
    /// How many cells differ.
    pub count: u64,
    /// Smallest and largest row.
    pub rows: (usize, usize),
    /// Smallest and largest column.
    pub columns: (usize, usize),
    /// Largest finite difference.
    pub largest: f64,
    /// Cells that are NaN or infinite.
    pub not_finite: u64,
    /// Cells on the ring, next to it, and one farther in.
    pub by_ring: [u64; 3],
}

impl Mismatches {
    fn starting_at(cell: WrongCell) -> Self {
        Self {
            first: cell,
            count: 0,
            rows: (cell.row, cell.row),
            columns: (cell.column, cell.column),
            largest: 0.0,
            not_finite: 0,
            by_ring: [0; 3],
        }
    }

    fn add(&mut self, cell: WrongCell, n: usize) {
        self.count += 1;
        self.rows = (self.rows.0.min(cell.row), self.rows.1.max(cell.row));
        self.columns = (self.columns.0.min(cell.column), self.columns.1.max(cell.column));
        let difference = cell.difference();
        if difference.is_finite() {
            self.largest = self.largest.max(difference);
        }
        self.not_finite += u64::from(!cell.got.is_finite());
        let away = cell.row.min(cell.column).min(n - 1 - cell.row).min(n - 1 - cell.column);
        if let Some(cells) = self.by_ring.get_mut(away) {
            *cells += 1;
        }
    }

    /// Cells at most two cells away from the ring, the ring itself included.
    pub fn near_ring(&self) -> u64 {
        self.by_ring.iter().sum()
    }
}

/// How a submission's grid differs from the reference's; `None` where it does not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Cells, ring included, that are further apart than the tolerance.
    pub values: Option<Mismatches>,
    /// Ring cells that are not the expected bits.
    pub ring: Option<Mismatches>,
    /// Largest |got - expected| of the rows in which all cells agree.
    pub within: f32,
}

impl Difference {
    /// Whether the grids agree.
    pub fn is_none(&self) -> bool {
        self.values.is_none() && self.ring.is_none()
    }

    /// The first cell of the whole grid, in row-major order, that differs.
    pub fn first(&self) -> Option<WrongCell> {
        let firsts = [&self.values, &self.ring].into_iter().flatten().map(|mismatches| mismatches.first);
        firsts.min_by_key(|cell| (cell.row, cell.column))
    }
}

/// Compares every cell within `tolerance`, and the ring bit for bit as well. NaN never agrees with anything.
///
/// Both grids must have the same n; a grid of another size agrees nowhere and is the engine's mistake, so `None`.
pub fn compare(expected: &Grid, got: &Grid, tolerance: f64) -> Option<Difference> {
    let n = expected.n();
    if n != got.n() {
        return None;
    }
    let mut difference = Difference::default();
    if n == 0 {
        return Some(difference);
    }
    let rows = expected.cells().chunks_exact(n).zip(got.cells().chunks_exact(n));
    for (row, (want, have)) in rows.enumerate() {
        match row_agrees(want, have, tolerance, row == 0 || row == n - 1) {
            Some(furthest) => difference.within = difference.within.max(furthest),
            None => collect_row(&mut difference, expected, got, row, tolerance),
        }
    }
    Some(difference)
}

/// Whether two values agree. NaN compares false with everything, so it never does.
pub(super) fn within(expected: f32, got: f32, tolerance: f64) -> bool {
    (f64::from(got) - f64::from(expected)).abs() <= tolerance
}

/// The fast pass over one row: its largest difference if it surely agrees. No branch a cell, so that it becomes vector code;
/// in single precision, which is exact for values so close (Sterbenz) and else within half a unit in the last place: the
/// bound is two such units lower.
fn row_agrees(want: &[f32], have: &[f32], tolerance: f64, ring_row: bool) -> Option<f32> {
    let bits_agree = |at: usize| want[at].to_bits() == have[at].to_bits();
    let bound = if ring_row { 0.0 } else { (tolerance * (1.0 - 2.0 * f64::from(f32::EPSILON))) as f32 };
    let (mut wrong, mut largest) = ([0; LANES], [0.0f32; LANES]);
    let mut look = |lane: usize, want: f32, have: f32| {
        let difference = (have - want).abs();
        // Not `difference > bound`: a NaN is wrong.
        let right = difference <= bound;
        wrong[lane] |= u32::from(!right);
        largest[lane] = larger(difference, largest[lane]);
    };
    let ((want_chunks, want_rest), (have_chunks, have_rest)) = (want.as_chunks::<LANES>(), have.as_chunks::<LANES>());
    for (want, have) in want_chunks.iter().zip(have_chunks) {
        (0..LANES).for_each(|lane| look(lane, want[lane], have[lane]));
    }
    want_rest.iter().zip(have_rest).for_each(|(&want, &have)| look(0, want, have));
    let (wrong, largest) = (wrong.contains(&1), largest.into_iter().fold(0.0, larger));
    // -0.0 and 0.0 differ by nothing, yet they are different bits: a ring row is looked at twice.
    let ring_agrees = bits_agree(0) && bits_agree(want.len() - 1) && (!ring_row || (0..want.len()).all(bits_agree));
    (!wrong && ring_agrees).then_some(largest)
}

/// The slow pass over a row that may differ somewhere.
fn collect_row(difference: &mut Difference, expected: &Grid, got: &Grid, row: usize, tolerance: f64) {
    let n = expected.n();
    let (mut agrees, mut largest) = (true, 0.0f32);
    for column in 0..n {
        let cell = WrongCell { row, column, expected: expected.at(row, column), got: got.at(row, column) };
        if !within(cell.expected, cell.got, tolerance) {
            difference.values.get_or_insert_with(|| Mismatches::starting_at(cell)).add(cell, n);
            agrees = false;
        }
        if expected.on_ring(row, column) && cell.expected.to_bits() != cell.got.to_bits() {
            difference.ring.get_or_insert_with(|| Mismatches::starting_at(cell)).add(cell, n);
            agrees = false;
        }
        largest = largest.max((cell.got - cell.expected).abs());
    }
    if agrees {
        difference.within = difference.within.max(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(n: usize) -> Grid {
        Grid::initial(n, 7)
    }

    fn changed(from: &Grid, row: usize, column: usize, value: f32) -> Grid {
        let mut cells = from.cells().to_vec();
        cells[row * from.n() + column] = value;
        Grid::from_cells(from.n(), cells).expect("same size")
    }

    #[test]
    fn equal_grids_do_not_differ() {
        assert!(compare(&grid(9), &grid(9), 0.0).unwrap().is_none());
    }

    #[test]
    fn the_first_mismatch_is_row_major() {
        let want = grid(9);
        let have = changed(&changed(&want, 5, 1, 9.0), 4, 6, 9.0);
        let interior = compare(&want, &have, 1e-6).unwrap().values.unwrap();
        assert_eq!((interior.first.row, interior.first.column), (4, 6));
        assert_eq!((interior.count, interior.rows, interior.columns), (2, (4, 5), (1, 6)));
        assert_eq!(interior.by_ring, [0, 1, 1], "column 1 is one cell from the ring, column 6 of 9 is two");
    }

    #[test]
    fn nan_never_agrees_not_even_with_nan() {
        let want = changed(&grid(5), 2, 2, f32::NAN);
        let difference = compare(&want, &want.clone(), f64::INFINITY).unwrap();
        assert_eq!(difference.values.unwrap().not_finite, 1);
    }

    #[test]
    fn infinity_does_not_agree_within_any_finite_tolerance() {
        let want = grid(5);
        let have = changed(&want, 2, 2, f32::INFINITY);
        assert!(!compare(&want, &have, 1e30).unwrap().is_none());
    }

    #[test]
    fn a_difference_of_exactly_the_tolerance_agrees() {
        let want = changed(&grid(5), 2, 2, 0.5);
        let have = changed(&want, 2, 2, 0.75);
        assert!(compare(&want, &have, 0.25).unwrap().is_none());
        assert!(!compare(&want, &have, 0.2499).unwrap().is_none());
    }

    #[test]
    fn the_ring_is_compared_bit_for_bit() {
        let want = changed(&grid(5), 0, 3, 0.0);
        let next_up = changed(&want, 3, 4, f32::from_bits(want.at(3, 4).to_bits() + 1));
        let ring = compare(&want, &next_up, 1.0).unwrap().ring.unwrap();
        assert_eq!((ring.first.row, ring.first.column, ring.count), (3, 4, 1));
        assert!(compare(&want, &next_up, 1e-6).unwrap().values.is_none(), "within the tolerance, on the ring too");
        let negative_zero = changed(&want, 0, 3, -0.0);
        assert_eq!(compare(&want, &negative_zero, 1.0).unwrap().ring.unwrap().first.column, 3);
    }

    #[test]
    fn the_first_of_both_regions_is_row_major_too() {
        let want = grid(7);
        let have = changed(&changed(&want, 3, 6, 9.0), 3, 2, 9.0);
        let first = compare(&want, &have, 1e-6).unwrap().first().unwrap();
        assert_eq!((first.row, first.column), (3, 2));
    }

    #[test]
    fn grids_of_two_sizes_are_not_compared() {
        assert!(compare(&grid(5), &grid(7), 1.0).is_none());
    }
}
