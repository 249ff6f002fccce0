//! The grid: n x n cells of `f32`, row-major, ring included.

use std::ops::Range;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::memory::room;

/// Values looked at side by side where all of a grid are: their maxima do not wait for each other, and become vector code.
pub const LANES: usize = 16;

/// The first, if it is larger than the second; a NaN never is.
#[inline(always)]
pub fn larger(value: f32, than: f32) -> f32 {
    if value > than { value } else { than }
}

/// The smallest grid with an interior.
pub const MIN_N: usize = 3;

/// A square grid of temperatures that no longer changes; clones share the cells. The ring is its outermost row or column on
/// each side; the rest is the interior.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    n: usize,
    cells: Arc<Vec<f32>>,
}

impl Grid {
    /// `cells` holds n * n values, row-major. `None` when the length is not n * n.
    pub fn from_cells(n: usize, cells: Vec<f32>) -> Option<Self> {
        (n.checked_mul(n)? == cells.len()).then(|| Self { n, cells: Arc::new(cells) })
    }

    /// The initial condition of a trial: an interior uniform in [0, 1) and four hot walls that differ from each other
    /// (so that a swap of neighbours shows), from a seed that the report names.
    pub fn initial(n: usize, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // A row at a time, so that the noise stays in the cache.
        let mut noise = vec![0; n * 4];
        let uniform = |bytes: [u8; 4]| (u32::from_le_bytes(bytes) >> 8) as f32 / (1u32 << 24) as f32;
        let mut cells = room(n * n);
        for _ in 0..n {
            random.fill_bytes(&mut noise);
            cells.extend(noise.as_chunks().0.iter().map(|&bytes| uniform(bytes)));
        }
        let mut heat = |row: usize, column: usize, wall: f32| {
            let cell = &mut cells[row * n + column];
            *cell = wall + *cell / 4.0;
        };
        for at in 0..n {
            heat(0, at, 2.0);
        }
        for at in 1..n {
            heat(at, 0, 1.75);
        }
        for at in 1..n {
            heat(n - 1, at, 1.25);
        }
        for at in 1..n.saturating_sub(1) {
            heat(at, n - 1, 1.5);
        }
        Self { n, cells: Arc::new(cells) }
    }

    /// Cells on a side, ring included.
    pub fn n(&self) -> usize {
        self.n
    }

    /// All cells, row-major.
    pub fn cells(&self) -> &[f32] {
        &self.cells
    }

    /// One cell; rows and columns are 0-based, ring included.
    pub fn at(&self, row: usize, column: usize) -> f32 {
        self.cells[row * self.n + column]
    }

    /// Largest absolute value, NaN aside; the scale of the tolerance.
    pub fn max_abs(&self) -> f32 {
        let (chunks, rest) = self.cells.as_chunks::<LANES>();
        let mut most = [0.0f32; LANES];
        for chunk in chunks {
            for (most, cell) in most.iter_mut().zip(chunk) {
                *most = larger(cell.abs(), *most);
            }
        }
        most.into_iter().chain(rest.iter().map(|cell| cell.abs())).fold(0.0, f32::max)
    }

    /// Whether (row, column) lies on the ring.
    pub fn on_ring(&self, row: usize, column: usize) -> bool {
        row == 0 || column == 0 || row == self.n - 1 || column == self.n - 1
    }
}

/// A rectangle of a grid's cells; rows and columns are 0-based with the ring included, ends excluded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub rows: Range<usize>,
    pub columns: Range<usize>,
}

impl Window {
    /// The `side` x `side` cells around a cell of an n x n grid. Near the grid's edge the window moves inwards, so that it
    /// has as many cells there; a smaller grid is in it whole.
    pub fn around(n: usize, row: usize, column: usize, side: usize) -> Self {
        let range = |at: usize| {
            let first = at.saturating_sub(side / 2).min(n.saturating_sub(side));
            first..(first + side).min(n)
        };
        Self { rows: range(row), columns: range(column) }
    }

    /// Its cells as (row, column), row-major.
    pub fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let columns = self.columns.clone();
        self.rows.clone().flat_map(move |row| columns.clone().map(move |column| (row, column)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_near_the_edge_moves_inwards() {
        assert_eq!(Window::around(100, 50, 32, 5), Window { rows: 48..53, columns: 30..35 });
        assert_eq!(Window::around(100, 1, 99, 5), Window { rows: 0..5, columns: 95..100 });
        assert_eq!(Window::around(3, 1, 1, 5), Window { rows: 0..3, columns: 0..3 });
        let cells: Vec<_> = Window { rows: 1..3, columns: 4..6 }.cells().collect();
        assert_eq!(cells, [(1, 4), (1, 5), (2, 4), (2, 5)]);
    }
}
