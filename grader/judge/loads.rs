//! How often a launch reads each cell of its input: the whole grid, and the apron of one block.
//!
//! Both come from the watched launches, so they are what the threads did and not what the launch geometry suggests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Seen, grouped};
use crate::execute::{BlockReads, CellReads};
use crate::grid::Window;

/// What stands for a cell that is not read.
pub const NOT_READ: u8 = b'.';
/// What stands for a cell that is read ten times or more.
pub const TEN: u8 = b'+';
/// Most cells of an apron that are listed one by one.
const MOST_LISTED: usize = 64 * 64;
/// Most cells a side of a grid that is listed cell by cell.
pub const LARGEST: usize = 128;

/// How often the first launch of a watched trial reads each cell of `in`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadsMap {
    /// Cells a side of the grid, ring included.
    pub n: u32,
    /// The largest number of reads of a cell.
    pub most: u32,
    /// A string a row and a character a cell: `.` never, `1` to `9` times, `+` more often.
    pub reads: Vec<String>,
}

/// What one block in the middle of a watched launch reads and writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Apron {
    /// Cells a side of the grid, ring included.
    pub n: u32,
    /// blockIdx x, y, z
    pub block: [u32; 3],
    /// The rectangle of cells that it touches: its first row and column, and how many of each.
    pub row: u32,
    pub column: u32,
    pub rows: u32,
    pub columns: u32,
    /// 4-byte words that it reads of `in`.
    pub words: u64,
    /// Different cells of `in` that it reads.
    pub cells_read: u64,
    /// Cells of `out` that it writes.
    pub cells_written: u64,
    /// Columns and rows of the cells that it writes, where they are a whole rectangle; else null.
    pub tile: Option<[u32; 2]>,
    /// Bytes of the shared arrays that it uses.
    pub shared: u64,
    /// The words by the lines of heat.cu that read them, most first.
    #[serde(default)]
    pub by_line: Vec<LineReads>,
    /// The words that it reads of other global memory (`__device__` variables, constant tables, `out`), likewise.
    #[serde(default)]
    pub elsewhere: Vec<LineReads>,
    /// How often it reads each cell of the rectangle, a string a row: `.` never, `1` to `9` times, `+` more often. Empty for
    /// a rectangle of more than 4,096 cells.
    pub reads: Vec<String>,
    /// Which cells of the rectangle it writes, `#` or `.`; empty likewise.
    pub written: Vec<String>,
}

/// The words that a block reads at one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LineReads {
    /// Of heat.cu, from 1.
    pub line: u32,
    pub words: u64,
}

impl ReadsMap {
    fn of(seen: &CellReads) -> Self {
        Self {
            n: seen.n as u32,
            most: seen.all.iter().copied().max().unwrap_or(0).into(),
            reads: seen.all.chunks(seen.n.max(1)).map(|row| row.iter().map(|&reads| letter(reads)).collect()).collect(),
        }
    }

    /// How often a cell is read, 10 for more than nine times; `None` outside, and where other hands wrote something else.
    pub fn at(&self, row: usize, column: usize) -> Option<u8> {
        number(*self.reads.get(row)?.as_bytes().get(column)?)
    }
}

impl Apron {
    fn of(n: usize, seen: &BlockReads) -> Self {
        let side = seen.window.columns.len().max(1);
        let listed = seen.reads.len() <= MOST_LISTED;
        let rows = |text: String| {
            let text: Vec<char> = text.chars().collect();
            text.chunks(side).map(|row| row.iter().collect()).collect::<Vec<String>>()
        };
        let strings = |text: String| if listed { rows(text) } else { Vec::new() };
        let written = || seen.window.cells().zip(&seen.written).filter(|(_, written)| **written).map(|(cell, _)| cell);
        Self {
            n: n as u32,
            block: seen.block,
            row: seen.window.rows.start as u32,
            column: seen.window.columns.start as u32,
            rows: seen.window.rows.len() as u32,
            columns: seen.window.columns.len() as u32,
            words: seen.bytes / 4,
            cells_read: seen.reads.iter().filter(|&&reads| reads > 0).count() as u64,
            cells_written: written().count() as u64,
            tile: rectangle(written()).map(|tile| [tile.columns.len() as u32, tile.rows.len() as u32]),
            shared: seen.shared,
            by_line: by_line(&seen.by_line),
            elsewhere: by_line(&seen.elsewhere),
            reads: strings(seen.reads.iter().map(|&reads| letter(reads)).collect()),
            written: strings(seen.written.iter().map(|&written| if written { '#' } else { '.' }).collect()),
        }
    }

    /// How often the block reads a cell of the rectangle, 10 for more than nine times, and whether it writes it; `None`
    /// outside, and where the cells are not listed.
    pub fn at(&self, row: usize, column: usize) -> Option<(u8, bool)> {
        let reads = number(*self.reads.get(row)?.as_bytes().get(column)?)?;
        Some((reads, *self.written.get(row)?.as_bytes().get(column)? == b'#'))
    }

    /// Words read for each cell written, a launch.
    pub fn words_a_cell(&self) -> Option<f64> {
        (self.cells_written > 0 && self.words > 0).then(|| self.words as f64 / self.cells_written as f64)
    }

    /// Which lines read how many of the block's words, in a sentence; `None` where that is not known.
    pub fn lines_said(&self) -> Option<String> {
        self.said("", self.words, &self.by_line)
    }

    /// The same of the words that it reads of other global memory than `in`.
    pub fn elsewhere_said(&self) -> Option<String> {
        self.said(" that are no cells of `in`", self.words_elsewhere(), &self.elsewhere)
    }

    /// Words that the block reads of other global memory than `in`, where the lines are known.
    pub fn words_elsewhere(&self) -> u64 {
        self.elsewhere.iter().map(|read| read.words).sum()
    }

    fn said(&self, which: &str, words: u64, by_line: &[LineReads]) -> Option<String> {
        const MOST_LINES: usize = 4;
        let said = |read: &LineReads| format!("{} at heat.cu:{}", grouped(read.words), read.line);
        let named: Vec<String> = by_line.iter().take(MOST_LINES).map(said).collect();
        let others: u64 = by_line.iter().skip(MOST_LINES).map(|read| read.words).sum();
        let others = (others > 0).then(|| format!("{} at other lines", grouped(others)));
        let ([x, y, _], words) = (self.block, grouped(words));
        let lines = named.into_iter().chain(others).collect::<Vec<_>>().join(", ");
        (!lines.is_empty()).then(|| {
            let cells = grouped(self.cells_written);
            format!(
                "Block ({x}, {y}) of a grid of {n} x {n} cells reads {words} words{which} for {cells} cells: {lines}.",
                n = self.n
            )
        })
    }

    /// Columns and rows of the cells that the first timestep has to update so that the second can update the tile: a ring
    /// around it. `None` where the tile is no rectangle or lies so near the ring of the grid that less will do.
    pub fn first_step(&self) -> Option<[u32; 2]> {
        let [columns, rows] = self.tile?;
        let clear = |first: u32, cells: u32| first > 0 && first + cells < self.n;
        // The apron goes two cells beyond the tile on each side, and stays off the ring.
        let whole = self.columns >= columns + 4 && self.rows >= rows + 4;
        (whole && clear(self.row, self.rows) && clear(self.column, self.columns)).then_some([columns + 2, rows + 2])
    }
}

fn by_line(seen: &[(u32, u64)]) -> Vec<LineReads> {
    let mut lines: Vec<_> = seen.iter().map(|&(line, bytes)| LineReads { line, words: bytes / 4 }).collect();
    lines.sort_by_key(|read| (std::cmp::Reverse(read.words), read.line));
    lines
}

fn letter(reads: u16) -> char {
    match reads {
        0 => char::from(NOT_READ),
        1..=9 => char::from(b'0' + reads as u8),
        _ => char::from(TEN),
    }
}

fn number(letter: u8) -> Option<u8> {
    match letter {
        NOT_READ => Some(0),
        TEN => Some(10),
        b'1'..=b'9' => Some(letter - b'0'),
        _ => None,
    }
}

/// The rectangle that these cells are, each once and none left out.
fn rectangle(cells: impl Iterator<Item = (usize, usize)>) -> Option<Window> {
    let cells: Vec<(usize, usize)> = cells.collect();
    let (first, last) = (cells.first()?, cells.last()?);
    let window = Window { rows: first.0..last.0 + 1, columns: first.1..(last.1 + 1).max(first.1) };
    window.cells().eq(cells.iter().copied()).then_some(window)
}

/// The map of the smallest watched grid, which is listed cell by cell.
pub fn map(seen: &Seen) -> Option<ReadsMap> {
    counted(seen).find(|counted| counted.n <= LARGEST).map(ReadsMap::of)
}

/// The apron of the largest watched grid, whose middle block has most room around it; of a smaller one where only there it
/// is small enough to be listed.
pub fn apron(seen: &Seen) -> Option<Apron> {
    let aprons = counted(seen).filter_map(|counted| Some(Apron::of(counted.n, counted.of_block.as_ref()?)));
    aprons.max_by_key(|apron| (!apron.reads.is_empty(), apron.n))
}

fn counted<'s>(seen: &'s Seen) -> impl Iterator<Item = &'s CellReads> {
    seen.gating().filter_map(|outcome| outcome.cell_reads.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block that reads a rectangle once and writes what lies `halo` cells within.
    fn block(rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, halo: usize) -> BlockReads {
        let window = Window { rows: rows.clone(), columns: columns.clone() };
        let within = |range: &std::ops::Range<usize>, at: usize| (range.start + halo..range.end - halo).contains(&at);
        let window_cells = window.cells().count() as u64;
        BlockReads {
            block: [1, 2, 0],
            reads: window.cells().map(|_| 1).collect(),
            written: window.cells().map(|(row, column)| within(&rows, row) && within(&columns, column)).collect(),
            window,
            shared: 2992,
            bytes: 4 * window_cells,
            by_line: vec![(71, 1600), (74, 128)],
            elsewhere: vec![(80, 4096)],
            arrays: Vec::new(),
            uses: Vec::new(),
        }
    }

    #[test]
    fn the_lessons_tile_comes_to_the_lessons_figures() {
        let apron = Apron::of(260, &block(63..75, 127..163, 2));
        assert_eq!((apron.words, apron.cells_read, apron.cells_written), (432, 432, 256));
        assert_eq!((apron.tile, apron.first_step()), (Some([32, 8]), Some([34, 10])));
        assert_eq!(apron.words_a_cell().map(|words| format!("{words:.4}")).as_deref(), Some("1.6875"));
        let said = "Block (1, 2) of a grid of 260 x 260 cells reads 432 words for 256 cells: 400 at heat.cu:71, 32 at heat.cu:74.";
        assert_eq!(apron.lines_said().as_deref(), Some(said));
        let said = "Block (1, 2) of a grid of 260 x 260 cells reads 1,024 words that are no cells of `in` for 256 cells: 1,024 at heat.cu:80.";
        assert_eq!(apron.elsewhere_said().as_deref(), Some(said));
        assert_eq!((apron.rows, apron.columns, apron.reads.len(), apron.reads[0].len()), (12, 36, 12, 36));
        assert_eq!((apron.at(0, 0), apron.at(2, 2), apron.at(12, 0)), (Some((1, false)), Some((1, true)), None));
    }

    #[test]
    fn near_the_ring_and_for_no_rectangle_the_first_step_is_not_told() {
        assert_eq!(Apron::of(75, &block(63..75, 27..63, 2)).first_step(), None, "the apron holds the ring");
        assert_eq!(Apron::of(260, &block(63..75, 127..163, 1)).first_step(), None, "one cell of halo does not do");
        let mut holed = block(63..75, 127..163, 2);
        holed.written[5 * 36 + 9] = false;
        assert_eq!(Apron::of(260, &holed).tile, None);
        let nothing = BlockReads { written: vec![false; 432], ..block(63..75, 127..163, 2) };
        assert_eq!((Apron::of(260, &nothing).tile, Apron::of(260, &nothing).words_a_cell()), (None, None));
    }

    #[test]
    fn a_large_apron_keeps_its_figures_and_lists_no_cells() {
        let apron = Apron::of(260, &block(1..200, 1..200, 2));
        assert_eq!((apron.words, apron.reads.len(), apron.at(0, 0)), (199 * 199, 0, None));
    }

    #[test]
    fn a_map_has_a_letter_a_cell() {
        let map = ReadsMap::of(&CellReads { n: 2, all: vec![0, 9, 10, 700], of_block: None });
        assert_eq!(map, ReadsMap { n: 2, most: 700, reads: vec![".9".to_owned(), "++".to_owned()] });
        assert_eq!((map.at(0, 0), map.at(0, 1), map.at(1, 0), map.at(2, 0)), (Some(0), Some(9), Some(10), None));
        let odd = ReadsMap { n: 2, most: 1, reads: vec!["é".to_owned()] };
        assert_eq!(odd.at(0, 0), None);
    }
}
