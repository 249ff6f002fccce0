//! Why a kernel reads more than the budget: its tile, or what it does with it.

use super::Cause;
use super::code::Code;
use super::tiles::shared_out;
use crate::judge::loads::Apron;
use crate::judge::reads::Reads;
use crate::judge::words::grouped;
use crate::submission::Geometry;

/// Cells around the tile that two timesteps need.
const HALO: usize = 2;

/// What makes the count of a launch on an n x n grid too high; `apron` is what one block of a watched launch reads.
pub fn cause(reads: &Reads, n: usize, geometry: Option<&Geometry>, apron: Option<&Apron>) -> Cause {
    if reads.is_late() {
        return late(reads);
    }
    if let Some(cause) = apron.and_then(|apron| of_tables(reads, apron)) {
        return cause;
    }
    // Twice as many words need not be each word twice.
    let alike = apron.is_none_or(|apron| apron.words % apron.cells_read.max(1) == 0);
    let cause = by_the_figures(reads, n, geometry, alike);
    match apron.and_then(Apron::lines_said) {
        Some(lines) => cause.with(lines),
        None => cause,
    }
}

/// A tile that keeps to the budget, in a kernel that reads other global memory besides.
fn of_tables(reads: &Reads, apron: &Apron) -> Option<Cause> {
    let tile = apron.words_a_cell()? / f64::from(reads.timesteps);
    let all = tile * (apron.words + apron.words_elsewhere()) as f64 / apron.words as f64;
    if tile > reads.budget || all <= reads.budget {
        return None;
    }
    let next = "A table that is `__device__` or `static` lies in global memory, and an index that is only known when the kernel \
                runs reads it there. Constants in the code, a `__constant__` table or values in registers cost no such read.";
    let said = "The cells alone keep to the budget; what the kernel reads of other global memory is over it.";
    let cause = too_many(said).with(measured(reads)).with(apron.lines_said()?);
    Some(cause.with(apron.elsewhere_said()?).with(next))
}

/// The count, in a sentence.
fn measured(reads: &Reads) -> String {
    format!(
        "{} words in one launch: {:.2} a cell, {:.2} a cell-step; the budget is {}.",
        grouped(reads.words),
        reads.words as f64 / reads.cells.max(1) as f64,
        reads.per_cell_step(),
        reads.budget
    )
}

fn by_the_figures(reads: &Reads, n: usize, geometry: Option<&Geometry>, alike: bool) -> Cause {
    let measured = measured(reads);
    let lesson = "A tile of 32 x 8 cells loads an apron of 36 x 12: 432 words, 1.69 a cell, 0.84 a cell-step.";
    let Some(((rows, columns), apron)) = geometry.map(|geometry| apron(geometry, n)) else {
        return too_many("Cells are read from global memory more often than two timesteps need.")
            .with(measured)
            .with(lesson);
    };
    let ideal = apron as f64 / (reads.cells.max(1) as f64 * f64::from(reads.timesteps));
    let (high, wide) = (rows + 2 * HALO, columns + 2 * HALO);
    let own = format!(
        "A tile of {columns} x {rows} cells needs an apron of {wide} x {high}: {} words, {ideal:.2} a cell-step if each is \
         read once.",
        wide * high
    );
    if ideal > reads.budget && reads.words >= apron {
        let said =
            format!("The tile of {columns} x {rows} cells is too small: its apron alone costs more than the budget.");
        return Cause::new(Code::TileTooSmall, said).with(own).with(measured).with(lesson);
    }
    let cause = match reads.words / apron.max(1) {
        times if times >= 2 && reads.words == times * apron && alike => {
            too_many(&format!("Every word of the apron is read {times} times from global memory."))
        }
        _ => too_many("Cells are read from global memory more often than two timesteps need."),
    };
    let cause = cause.with(measured);
    // A launch that shares the grid out otherwise says nothing about the apron.
    if reads.words >= apron { cause.with(own) } else { cause.with(lesson) }
}

/// A launch that reads more than the first one did.
fn late(reads: &Reads) -> Cause {
    let said = format!("Launch {} reads more than launch 1 did: every launch has to keep to the budget.", reads.launch);
    let first = Reads { words: reads.first, ..*reads };
    let next =
        "Look for what changes from launch to launch: a `__device__` variable, or a branch on the values of the grid.";
    too_many(&said)
        .with(format!(
            "{} words in launch {}, {:.2} a cell-step; {} in launch 1, {:.2}; the budget is {}.",
            grouped(reads.words),
            reads.launch,
            reads.per_cell_step(),
            grouped(reads.first),
            first.per_cell_step(),
            reads.budget
        ))
        .with(next)
}

fn too_many(said: &str) -> Cause {
    Cause::new(Code::ReadsTooMany, said)
}

/// The tile (rows, columns) that falls to a block, and the words of all aprons, each read once.
fn apron(geometry: &Geometry, n: usize) -> ((usize, usize), u64) {
    let (rows, columns) = shared_out(geometry, n);
    let along = |tile: usize| -> u64 {
        let clipped = |first: usize| (first + tile + HALO).min(n) - first.saturating_sub(HALO);
        (1..n - 1).step_by(tile.max(1)).map(|first| clipped(first) as u64).sum()
    };
    ((rows, columns), along(rows) * along(columns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::Exercise;

    fn counted(words: u64) -> Reads {
        Reads::of_launch(words, Exercise::interior_cells(2048), 2, 1.5)
    }

    fn launched(across: u32, down: u32) -> Geometry {
        Geometry { grid: [across, down, 1], block: [32, 8, 1], shared: 0 }
    }

    #[test]
    fn the_lessons_aprons_come_to_the_lessons_words() {
        assert_eq!(apron(&launched(64, 256), 2048), ((8, 32), 7_056_400));
    }

    #[test]
    fn an_apron_read_twice_is_told_from_one_that_is_too_large() {
        let twice = cause(&counted(2 * 7_056_400), 2048, Some(&launched(64, 256)), None);
        assert_eq!(twice.code, Code::ReadsTooMany);
        assert!(twice.sentence.contains("read 2 times"), "{twice:?}");
        let small = cause(&counted(16_744_464), 2048, Some(&launched(512, 512)), None);
        assert_eq!(
            (small.code, small.evidence[0].contains("4 x 4 cells needs an apron of 8 x 8: 64 words")),
            (Code::TileTooSmall, true)
        );
        let later = Reads { launch: 331, first: 7_056_400, ..counted(18_000_000) };
        let late = cause(&later, 2048, Some(&launched(64, 256)), None);
        assert_eq!(late.code, Code::ReadsTooMany);
        assert!(late.sentence.starts_with("Launch 331 reads more than launch 1 did"), "{late:?}");
        let naive = cause(&counted(52_000_000), 2048, None, None);
        assert_eq!(naive.code, Code::ReadsTooMany);
    }
}
