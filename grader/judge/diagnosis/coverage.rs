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
    let all = |covered: Option<usize>| covered == Some(last);
    match (rows, columns) {
        // The bottom or right part, or both.
        (Some(rows), Some(columns)) if last - rows <= 1 && last - columns <= 1 => Some(one_line(scene, rows, columns)),
        (Some(rows), Some(columns)) => {
            let known = scene.geometry.as_ref();
            let exchanged = known.filter(|geometry| axes_exchanged(geometry, (rows, columns), last));
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

/// How many are written, when they are the first ones without a gap.
fn extent(written: &[bool]) -> Option<usize> {
    let first = written.iter().take_while(|is| **is).count();
    (first > 0 && written[first..].iter().all(|is| !is)).then_some(first)
}

/// `rows 1 to 72 and columns 1 to 96`: what is written of the interior.
fn reached(rows: usize, columns: usize) -> String {
    format!("Only rows 1 to {rows} and columns 1 to {columns} are written.")
}

fn one_line(scene: &Scene, rows: usize, columns: usize) -> Cause {
    let last = scene.n() - 2;
    let missing = match (rows < last, columns < last) {
        (true, true) => format!("row {last} and column {last} are"),
        (true, false) => format!("row {last} is"),
        _ => format!("column {last} is"),
    };
    Cause::new(Code::OffByOne, format!("At n = {} {missing} never written, the last of the interior.", last + 2))
        .with(reached(rows, columns))
        .with("Interior cells run from 1 to n - 2; the ring lies at 0 and n - 1.")
}

fn blocks_and_threads(geometry: &Geometry) -> String {
    let ([across, down, _], [x, y, _]) = (geometry.grid, geometry.block);
    format!("{across} x {down} blocks of {x} x {y} threads")
}

fn too_small(scene: &Scene, rows: usize, columns: usize) -> Cause {
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
            ("column", columns, geometry.grid[0], geometry.block[0]),
            ("row", rows, geometry.grid[1], geometry.block[1]),
        ];
        for (noun, reached, blocks, threads) in directions {
            let (blocks, threads) = (blocks as usize, threads as usize);
            if reached < last && blocks > 0 && reached % blocks == 0 && reached / blocks != threads {
                cause = cause.with(format!(
                    "Each block writes {} {noun}s, but has {threads} threads in that direction: count blocks by the \
                     tile, not by the threads.",
                    reached / blocks
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

fn exchanged_axes(scene: &Scene, rows: usize, columns: usize) -> Cause {
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
