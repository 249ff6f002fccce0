//! How often a watched launch reads each cell of its input, all blocks together and one in the middle by itself.

use super::banks::Banks;
use super::checker::{Touch, TouchKind};
use crate::execute::{BlockReads, CellReads};
use crate::grid::Window;
use crate::submission::Geometry;

/// The counts of the launch under way.
pub struct Tally {
    n: usize,
    /// Reads of each cell, row-major; they stop at the largest number that there is room for.
    all: Vec<u16>,
    /// The block that is looked at: its index, and its flat number, x fastest.
    block: [u32; 3],
    number: u32,
    /// Its reads of each cell of `in`, and whether it wrote each cell of `out`.
    reads: Vec<u16>,
    written: Vec<bool>,
    /// Bytes of each shared array that it touched, by number of the array.
    shared: Vec<(usize, u64)>,
    /// Bytes of `in` that it read, by the address in its code that the access returns to; and of other global memory.
    pub sites: Vec<(usize, u64)>,
    pub elsewhere: Vec<(usize, u64)>,
    /// What it does to its shared arrays.
    pub banks: Banks,
}

impl Tally {
    /// Nothing counted yet of a launch on n x n cells. The block in the middle has as much grid around it as one can have.
    pub fn new(n: usize, geometry: &Geometry) -> Self {
        let block = geometry.grid.map(|blocks| blocks.saturating_sub(1) / 2);
        let ([x, y, _], [bx, by, bz]) = (geometry.grid, block);
        Self {
            n,
            all: vec![0; n * n],
            block,
            number: bx + x * (by + y * bz),
            reads: vec![0; n * n],
            written: vec![false; n * n],
            shared: Vec::new(),
            sites: Vec::new(),
            elsewhere: Vec::new(),
            banks: Banks::default(),
        }
    }

    /// An access of the block with that flat number to whole or part cells, all inside the grid: `offset` is in bytes.
    pub fn grid(&mut self, touch: Touch, input: bool, offset: usize, block: u32) {
        let cells = offset / 4..(offset + touch.bytes).div_ceil(4).min(self.all.len());
        match touch.kind {
            TouchKind::Read | TouchKind::Atomic if input => {
                if block == self.number {
                    note(&mut self.sites, touch);
                }
                for cell in cells {
                    self.all[cell] = self.all[cell].saturating_add(1);
                    if block == self.number {
                        self.reads[cell] = self.reads[cell].saturating_add(1);
                    }
                }
            }
            TouchKind::Write if !input && block == self.number => self.written[cells].fill(true),
            TouchKind::Read | TouchKind::Atomic if !input => self.other(touch, block),
            _ => {}
        }
    }

    /// An access of the block with that flat number to global memory other than `in`.
    pub fn other(&mut self, touch: Touch, block: u32) {
        if block == self.number && touch.kind != TouchKind::Write {
            note(&mut self.elsewhere, touch);
        }
    }

    /// An access of a thread of the block with that flat number to a shared array of so many bytes; `byte` counts from its start.
    pub fn shared(&mut self, touch: Touch, array: usize, (byte, bytes): (usize, usize), (block, thread): (u32, usize)) {
        if block != self.number {
            return;
        }
        if !self.shared.iter().any(|(known, _)| *known == array) {
            self.shared.push((array, bytes as u64));
        }
        self.banks.touch(touch, array, (byte, bytes), thread);
    }

    /// What was counted; lines are for whoever knows the program's symbols.
    pub fn counted(self) -> CellReads {
        let touched = |cell: usize| self.reads[cell] > 0 || self.written[cell];
        let window = extent((0..self.all.len()).filter(|&cell| touched(cell)), self.n);
        let of_block = window.map(|window| {
            let at = |(row, column): (usize, usize)| row * self.n + column;
            BlockReads {
                block: self.block,
                reads: window.cells().map(|cell| self.reads[at(cell)]).collect(),
                written: window.cells().map(|cell| self.written[at(cell)]).collect(),
                window,
                shared: self.shared.iter().map(|(_, bytes)| bytes).sum(),
                bytes: self.sites.iter().map(|(_, bytes)| bytes).sum(),
                by_line: Vec::new(),
                elsewhere: Vec::new(),
                arrays: Vec::new(),
                uses: Vec::new(),
            }
        });
        CellReads { n: self.n, all: self.all, of_block }
    }
}

/// Adds an access to those of the same place in the code.
fn note(sites: &mut Vec<(usize, u64)>, touch: Touch) {
    let bytes = touch.bytes as u64;
    // A kernel has a handful of loads.
    match sites.iter_mut().find(|(known, _)| *known == touch.code) {
        Some((_, all)) => *all += bytes,
        None => sites.push((touch.code, bytes)),
    }
}

/// The smallest window with all these cells of an n x n grid; `None` without any.
fn extent(cells: impl Iterator<Item = usize>, n: usize) -> Option<Window> {
    cells.map(|cell| (cell / n, cell % n)).fold(None, |extent: Option<Window>, (row, column)| {
        let grown = |range: std::ops::Range<usize>, at: usize| range.start.min(at)..range.end.max(at + 1);
        Some(match extent {
            Some(window) => Window { rows: grown(window.rows, row), columns: grown(window.columns, column) },
            None => Window { rows: row..row + 1, columns: column..column + 1 },
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(kind: TouchKind, bytes: usize) -> Touch {
        Touch { address: 0, bytes, code: 0, kind }
    }

    fn tally() -> Tally {
        Tally::new(6, &Geometry { grid: [3, 2, 1], block: [2, 2, 1], shared: 0 })
    }

    #[test]
    fn a_wide_load_reads_every_cell_that_it_covers() {
        let mut tally = tally();
        tally.grid(touch(TouchKind::Read, 16), true, 8 * 4, 0);
        tally.grid(touch(TouchKind::Read, 4), true, 9 * 4, 1);
        tally.grid(touch(TouchKind::Read, 4), false, 9 * 4, 1);
        let counted = tally.counted();
        assert_eq!(counted.all[7..13], [0, 1, 2, 1, 1, 0]);
    }

    #[test]
    fn the_middle_block_is_seen_by_itself() {
        let mut tally = tally();
        assert_eq!((tally.block, tally.number), ([1, 0, 0], 1));
        for (block, cell) in [(0, 0), (1, 13), (1, 13), (1, 21), (2, 35)] {
            tally.grid(touch(TouchKind::Read, 4), true, cell * 4, block);
        }
        tally.grid(touch(TouchKind::Write, 4), false, 14 * 4, 1);
        tally.grid(touch(TouchKind::Write, 4), false, 30 * 4, 0);
        for (array, block) in [(2, 1), (2, 1), (3, 1), (4, 0)] {
            tally.shared(touch(TouchKind::Read, 4), array, (0, 100), (block, 0));
        }
        tally.grid(Touch { code: 7, ..touch(TouchKind::Read, 8) }, true, 13 * 4, 1);
        tally.grid(Touch { code: 9, ..touch(TouchKind::Read, 4) }, false, 13 * 4, 1);
        for (kind, block) in [(TouchKind::Read, 1), (TouchKind::Write, 1), (TouchKind::Read, 0)] {
            tally.other(Touch { code: 8, ..touch(kind, 4) }, block);
        }
        assert_eq!(tally.elsewhere, [(9, 4), (8, 4)]);
        assert_eq!(tally.sites, [(0, 12), (7, 8)]);
        let of_block = tally.counted().of_block.expect("it read");
        assert_eq!(of_block.window, Window { rows: 2..4, columns: 1..4 });
        assert_eq!(of_block.reads, [3, 1, 0, 0, 0, 1]);
        assert_eq!(of_block.written, [false, true, false, false, false, false]);
        assert_eq!(of_block.shared, 200);
    }

    #[test]
    fn a_block_that_touches_nothing_has_no_part() {
        assert_eq!(tally().counted().of_block, None);
    }
}
