//! Cells that no thread writes: where they lie says why.

use super::Cause;
use super::code::Code;
use super::scene::Scene;
use crate::submission::Geometry;

/// Rows or columns (from 0, interior only) in which anything is written.
struct Written {
    rows: Vec<bool>,
    columns: Vec<bool>,
}

/// The fault, if unwritten cells make one of these patterns.
pub fn cause(scene: &Scene) -> Option<Cause> {
    let last = scene.n() - 2;
    let unwritten = scene.interior().filter(|&(row, column)| scene.is_unwritten(row, column)).count();
    if unwritten == 0 {
        return None;
    }
    let written = written(scene)?;
    let (rows, columns) = (extent(&written.rows), extent(&written.columns));
    let all = |covered: Option<Extent>| covered == Some(Extent { first: 1, last });
    match (rows, columns) {
        // One row or column at a side, or several of them.
        (Some(rows), Some(columns)) if rows.is_all_but_one(last) && columns.is_all_but_one(last) => {
            Some(one_line(scene, rows, columns))
        }
        // The bottom or right part, or both.
        (Some(rows), Some(columns)) if rows.first == 1 && columns.first == 1 => {
            let known = scene.geometry.as_ref();
            let exchanged = known.filter(|geometry| axes_exchanged(geometry, (rows.last, columns.last), last));
            Some(match exchanged {
                Some(_) => exchanged_axes(scene, rows, columns),
                None => too_small(scene, rows, columns),
            })
        }
        (rows, columns) => {
            // In each direction everything, or a part of each tile: anything else has no name.
            let across = if all(columns) { Some(None) } else { gaps(&written.columns, "column").map(Some) };
            let down = if all(rows) { Some(None) } else { gaps(&written.rows, "row").map(Some) };
            let said: Vec<String> = [across?, down?].into_iter().flatten().collect();
            (!said.is_empty()).then(|| strided(&said.join(", and "), scene))
        }
    }
}

/// The rows and columns in which something is written, where a cell is written exactly if its row and column are.
fn written(scene: &Scene) -> Option<Written> {
    let last = scene.n() - 2;
    let is = |row: usize, column: usize| !scene.is_unwritten(row + 1, column + 1);
    let rows: Vec<bool> = (0..last).map(|row| (0..last).any(|column| is(row, column))).collect();
    let columns: Vec<bool> = (0..last).map(|column| (0..last).any(|row| is(row, column))).collect();
    let product = (0..last).all(|row| (0..last).all(|column| is(row, column) == (rows[row] && columns[column])));
    product.then_some(Written { rows, columns })
}

/// The first and the last row or column of those that are written, numbered from 1, where there is no gap between them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Extent {
    first: usize,
    last: usize,
}

impl Extent {
    /// Whether at most one is left out at each side of 1 to `last`.
    fn is_all_but_one(self, last: usize) -> bool {
        self.first <= 2 && last - self.last <= 1
    }

    /// `row 1`, `row 98`, or both: what is left out of 1 to `last`.
    fn left_out(self, last: usize, noun: &str) -> impl Iterator<Item = String> {
        let ends = [(self.first > 1).then_some(1), (self.last < last).then_some(last)];
        ends.into_iter().flatten().map(move |at| format!("{noun} {at}"))
    }
}

fn extent(written: &[bool]) -> Option<Extent> {
    let first = written.iter().position(|is| *is)?;
    let last = written.iter().rposition(|is| *is)?;
    written[first..=last].iter().all(|is| *is).then_some(Extent { first: first + 1, last: last + 1 })
}

/// `Only rows 1 to 72 and columns 1 to 96 are written.`
fn reached(rows: Extent, columns: Extent) -> String {
    format!("Only rows {} to {} and columns {} to {} are written.", rows.first, rows.last, columns.first, columns.last)
}

fn one_line(scene: &Scene, rows: Extent, columns: Extent) -> Cause {
    let last = scene.n() - 2;
    let missing: Vec<String> = rows.left_out(last, "row").chain(columns.left_out(last, "column")).collect();
    let (is, which) = match missing.as_slice() {
        [_] if rows.first > 1 || columns.first > 1 => ("is", "the first of the interior"),
        [_] => ("is", "the last of the interior"),
        _ => ("are", "at the sides of the interior"),
    };
    let said = format!("At n = {} {} {is} never written, {which}.", last + 2, missing.join(" and "));
    Cause::new(Code::OffByOne, said)
        .with(reached(rows, columns))
        .with("Interior cells run from 1 to n - 2; the ring lies at 0 and n - 1.")
}

fn blocks_and_threads(geometry: &Geometry) -> String {
    let ([across, down, _], [x, y, _]) = (geometry.grid, geometry.block);
    format!("{across} x {down} blocks of {x} x {y} threads")
}

fn too_small(scene: &Scene, rows: Extent, columns: Extent) -> Cause {
    let last = scene.n() - 2;
    let said = "The blocks of the launch do not reach the far side of the grid.";
    let mut cause = Cause::new(Code::GridTooSmall, said).with(reached(rows, columns));
    if let Some(geometry) = &scene.geometry {
        cause = cause.with(format!(
            "The launch has {} at n = {}, for an interior of {last} x {last} cells.",
            blocks_and_threads(geometry),
            scene.n()
        ));
        let directions = [
            ("column", columns.last, geometry.grid[0], geometry.block[0]),
            ("row", rows.last, geometry.grid[1], geometry.block[1]),
        ];
        for (noun, reached, blocks, threads) in directions {
            let (blocks, threads) = (blocks as usize, threads as usize);
            // As many threads as cells, and fewer cells a block than threads.
            let by_threads = blocks * threads >= last && reached % blocks.max(1) == 0;
            if reached < last && by_threads {
                let each = super::super::counted((reached / blocks) as u64, noun);
                let had = super::super::counted(threads as u64, "thread");
                cause = cause.with(format!(
                    "Each block writes {each}, but has {had} in that direction: count blocks by the tile, not by the threads."
                ));
            }
        }
    }
    cause
}

/// Whether the covered part is what the blocks of the other direction cover, and the own ones would cover everything.
fn axes_exchanged(geometry: &Geometry, (rows, columns): (usize, usize), last: usize) -> bool {
    let [across, down] = [geometry.grid[0], geometry.grid[1]].map(|blocks| blocks as usize);
    let [x, y] = [geometry.block[0], geometry.block[1]].map(|threads| threads as usize);
    let exchanged = (rows, columns) == ((across * y).min(last), (down * x).min(last));
    exchanged && across != down && across * x >= last && down * y >= last
}

fn exchanged_axes(scene: &Scene, rows: Extent, columns: Extent) -> Cause {
    let said = "The block's two indices are in each other's place: the x index counts tiles downwards.";
    let cause = Cause::new(Code::GridTooSmall, said).with(reached(rows, columns));
    match &scene.geometry {
        Some(geometry) => cause
            .with(format!("The launch has {}: enough, if x counted columns and y rows.", blocks_and_threads(geometry))),
        None => cause,
    }
}

/// `of every 32 columns only the first 8`, when the pattern repeats.
fn gaps(written: &[bool], noun: &str) -> Option<String> {
    let first = written.iter().take_while(|is| **is).count();
    let period = first + written[first..].iter().take_while(|is| !**is).count();
    let repeats = written.iter().enumerate().all(|(at, is)| *is == (at % period.max(1) < first));
    let seen_twice = first > 0 && period > first && 2 * period <= written.len();
    (repeats && seen_twice).then(|| format!("of every {period} {noun}s only the first {} written", words(first)))
}

fn words(count: usize) -> String {
    if count == 1 { "one is".to_owned() } else { format!("{count} are") }
}

fn strided(said: &str, scene: &Scene) -> Cause {
    let sentence = format!("Some cells of each tile are never written: {said}.");
    let cause = Cause::new(Code::CellsWithoutAThread, sentence);
    match &scene.geometry {
        Some(geometry) => cause.with(format!("The launch has {} at n = {}.", blocks_and_threads(geometry), scene.n())),
        None => cause,
    }
}
