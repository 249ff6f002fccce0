//! The cells around a wrong one: what they hold, what they should, and where the cells of another block begin.

use super::cells::{WrongCell, within};
use crate::execute::LastWrite;
use crate::grid::{Grid, Window};

/// Rows and columns shown.
pub const SIDE: usize = 5;

/// A few rows and columns around the first wrong cell. Values are row-major over the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbourhood {
    pub window: Window,
    pub expected: Vec<f32>,
    pub got: Vec<f32>,
    /// Outside the tolerance, or on the ring with other bits.
    pub wrong: Vec<bool>,
    /// The block that last wrote each cell; `None` where nobody did or it is not known.
    pub blocks: Vec<Option<[u32; 3]>>,
}

impl Neighbourhood {
    /// The cells around `cell` of two grids of one size. Who wrote them is not known yet.
    pub fn of(cell: &WrongCell, expected: &Grid, got: &Grid, tolerance: f64) -> Self {
        let window = Window::around(expected.n().min(got.n()), cell.row, cell.column, SIDE);
        let values = |grid: &Grid| window.cells().map(|(row, column)| grid.at(row, column)).collect::<Vec<_>>();
        let wrong = |(row, column): (usize, usize)| {
            let (want, have) = (expected.at(row, column), got.at(row, column));
            !within(want, have, tolerance) || (expected.on_ring(row, column) && want.to_bits() != have.to_bits())
        };
        Self {
            expected: values(expected),
            got: values(got),
            wrong: window.cells().map(wrong).collect(),
            blocks: vec![None; window.cells().count()],
            window,
        }
    }

    /// Notes who wrote the cells of the window, row-major; any other number of writers says nothing.
    pub fn note_writers(&mut self, writers: &[Option<LastWrite>]) {
        if writers.len() == self.blocks.len() {
            self.blocks = writers.iter().map(|writer| writer.map(|write| write.actor.block)).collect();
        }
    }

    /// Rows of the window, but the first, whose cells were written by other blocks than those above them.
    pub fn block_rows(&self) -> Vec<usize> {
        let rows = self.window.rows.clone().skip(1);
        let pairs = |row: usize| self.window.columns.clone().map(move |column| ((row - 1, column), (row, column)));
        rows.filter(|&row| self.part(pairs(row))).collect()
    }

    /// Columns of the window, but the first, whose cells were written by other blocks than those to their left.
    pub fn block_columns(&self) -> Vec<usize> {
        let columns = self.window.columns.clone().skip(1);
        let pairs = |column: usize| self.window.rows.clone().map(move |row| ((row, column - 1), (row, column)));
        columns.filter(|&column| self.part(pairs(column))).collect()
    }

    /// Whether two blocks wrote the cells of every pair whose writers are known, of at least one.
    fn part(&self, pairs: impl Iterator<Item = ((usize, usize), (usize, usize))>) -> bool {
        let blocks = pairs.filter_map(|(one, other)| Some((self.block_of(one)?, self.block_of(other)?)));
        let mut known = blocks.peekable();
        known.peek().is_some() && known.all(|(one, other)| one != other)
    }

    fn block_of(&self, (row, column): (usize, usize)) -> Option<[u32; 3]> {
        let at = (row - self.window.rows.start) * self.window.columns.len() + (column - self.window.columns.start);
        self.blocks.get(at).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Actor;

    fn at(n: usize, row: usize, column: usize, value: f32) -> Neighbourhood {
        let want = Grid::initial(n, 3);
        let mut have = want.cells().to_vec();
        have[row * n + column] = value;
        let have = Grid::from_cells(n, have).expect("same size");
        let cell = WrongCell { row, column, expected: want.at(row, column), got: value };
        Neighbourhood::of(&cell, &want, &have, 1e-6)
    }

    fn by(block: [u32; 3]) -> LastWrite {
        LastWrite { actor: Actor { block, thread: [0; 3] }, place: None }
    }

    fn written(mut around: Neighbourhood, block: impl Fn(usize, usize) -> Option<[u32; 3]>) -> Neighbourhood {
        let writers: Vec<Option<LastWrite>> =
            around.window.cells().map(|(row, column)| block(row, column).map(by)).collect();
        around.note_writers(&writers);
        around
    }

    #[test]
    fn the_wrong_cell_is_among_its_neighbours() {
        let around = at(20, 9, 12, 7.0);
        assert_eq!((around.got.len(), around.wrong.iter().filter(|wrong| **wrong).count()), (25, 1));
        assert_eq!((around.got[12], around.wrong[12]), (7.0, true));
        assert_eq!(around.expected[0], Grid::initial(20, 3).at(7, 10));
    }

    #[test]
    fn a_ring_cell_with_other_bits_is_wrong_however_close() {
        let ring = Grid::initial(20, 3).at(0, 4);
        let around = at(20, 0, 4, f32::from_bits(ring.to_bits() + 1));
        assert_eq!(around.wrong.iter().position(|wrong| *wrong), Some(2));
    }

    #[test]
    fn lines_lie_where_another_blocks_cells_begin() {
        // Tiles of 4 columns by 3 rows from row 1, column 1; nobody writes the ring.
        let tile = |row: usize, column: usize| {
            (row > 0 && column > 0).then(|| [(column as u32 - 1) / 4, (row as u32 - 1) / 3, 0])
        };
        let around = written(at(20, 1, 5, 7.0), tile);
        assert_eq!((around.block_rows(), around.block_columns()), (vec![4], vec![5]));
        assert!(written(at(20, 1, 5, 7.0), |_, _| None).block_columns().is_empty(), "not known");
        let scattered = written(at(20, 9, 9, 7.0), |row, column| Some([u32::from(row == 9 && column == 9), 0, 0]));
        assert!(scattered.block_rows().is_empty() && scattered.block_columns().is_empty(), "no whole line");
    }

    #[test]
    fn writers_of_another_window_say_nothing() {
        let mut around = at(20, 9, 9, 7.0);
        around.note_writers(&[Some(by([1, 0, 0]))]);
        assert!(around.blocks.iter().all(Option::is_none));
    }
}
