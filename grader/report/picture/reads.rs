//! The reads map as a PNG: how often a launch reads each cell of its input.
//!
//! One square a cell, coloured by the number of reads; a legend below gives each colour that occurs with its number. Same
//! report, same bytes.

use super::{Canvas, FIRST_DECADE, GROUND, INK, PAPER, SHADES};
use crate::judge::loads::{LARGEST, ReadsMap};
use crate::report::Report;

/// Pixels a side that the cells fill at most.
const SIDE: usize = 520;
/// Pixels around the cells.
const MARGIN: usize = 8;
/// Pixels a side of a legend's square, and between the squares and their numbers.
const SWATCH: usize = 18;
const GAP: usize = 6;
/// Pixels a dot of a digit.
const DOT: usize = 2;

/// Rows of three dots of the digits 0 to 9 and of the sign for more, top row first.
const GLYPHS: [[u8; 5]; 11] = [
    [0b111, 0b101, 0b101, 0b101, 0b111],
    [0b010, 0b110, 0b010, 0b010, 0b111],
    [0b111, 0b001, 0b111, 0b100, 0b111],
    [0b111, 0b001, 0b011, 0b001, 0b111],
    [0b101, 0b101, 0b111, 0b001, 0b001],
    [0b111, 0b100, 0b111, 0b001, 0b111],
    [0b111, 0b100, 0b111, 0b101, 0b111],
    [0b111, 0b001, 0b010, 0b010, 0b010],
    [0b111, 0b101, 0b111, 0b101, 0b111],
    [0b111, 0b101, 0b111, 0b001, 0b111],
    [0b000, 0b010, 0b111, 0b010, 0b000],
];

/// The reads map of a report as a PNG file's bytes; `None` when no thread was watched.
pub fn map(report: &Report) -> Option<Vec<u8>> {
    drawn(report, true)
}

/// The same without margin and legend, for a page that has both.
pub fn bare(report: &Report) -> Option<Vec<u8>> {
    drawn(report, false)
}

/// The numbers of reads that occur, each once and rising: 9 stands for nine and more.
pub fn occurring(map: &ReadsMap) -> Vec<u8> {
    let mut found: Vec<u8> = cells(map).map(|(_, _, reads)| reads).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The colour for so many reads, as SVG writes it.
pub fn shade(reads: u8) -> String {
    let index = usize::from(colour(reads));
    let [red, green, blue] = PAPER.iter().chain(&SHADES).nth(index).copied().unwrap_or(PAPER[1]);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Cells a side that are drawn.
fn side(map: &ReadsMap) -> usize {
    map.reads.len().min(map.n as usize).min(LARGEST)
}

/// The palette's index for so many reads.
fn colour(reads: u8) -> u8 {
    match usize::from(reads) {
        0 => GROUND,
        reads if reads <= SHADES.len() => FIRST_DECADE + reads as u8 - 1,
        _ => INK,
    }
}

/// Row, column and reads of each cell; nine stands for more.
fn cells(map: &ReadsMap) -> impl Iterator<Item = (usize, usize, u8)> + '_ {
    let n = side(map);
    let at = move |row: usize, column: usize| map.at(row, column).map(|reads| (row, column, reads.min(9)));
    (0..n).flat_map(move |row| (0..n).filter_map(move |column| at(row, column)))
}

fn drawn(report: &Report, framed: bool) -> Option<Vec<u8>> {
    let map = report.reads_map.as_ref()?;
    let n = side(map);
    let cell = (SIDE / n.max(1)).max(1);
    let (margin, legend) = if framed { (MARGIN, SWATCH + MARGIN) } else { (0, 0) };
    let width = (n * cell + 2 * margin).max(if framed { legend_width() } else { 1 });
    let mut canvas = Canvas::blank(width, n * cell + 2 * margin + legend);
    for (row, column, reads) in cells(map) {
        canvas.fill((margin + column * cell, margin + row * cell), (cell, cell), colour(reads));
    }
    if framed {
        let top = n * cell + 2 * margin;
        for (place, reads) in occurring(map).into_iter().enumerate() {
            swatch(&mut canvas, (MARGIN + place * entry_width(), top), reads);
        }
    }
    canvas.png()
}

fn entry_width() -> usize {
    SWATCH + GAP + 2 * 4 * DOT + GAP
}

fn legend_width() -> usize {
    2 * MARGIN + 10 * entry_width()
}

/// A square of the colour for so many reads, in a thin frame, and the number beside it.
fn swatch(canvas: &mut Canvas, (left, top): (usize, usize), reads: u8) {
    canvas.fill((left, top), (SWATCH, SWATCH), INK);
    canvas.fill((left + 1, top + 1), (SWATCH - 2, SWATCH - 2), colour(reads));
    let right = left + SWATCH + GAP;
    glyph(canvas, (right, top + 4), reads.into());
    if reads == 9 {
        glyph(canvas, (right + 4 * DOT, top + 4), 10);
    }
}

fn glyph(canvas: &mut Canvas, (left, top): (usize, usize), which: usize) {
    for (down, row) in GLYPHS.get(which).into_iter().flatten().enumerate() {
        for across in (0..3).filter(|across| row >> (2 - across) & 1 == 1) {
            canvas.fill((left + across * DOT, top + down * DOT), (DOT, DOT), INK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::decoded;
    use super::*;

    fn report(rows: &[&str]) -> Report {
        let reads = rows.iter().map(|row| (*row).to_owned()).collect();
        Report { reads_map: Some(ReadsMap { n: rows.len() as u32, most: 12, reads }), ..Report::blank() }
    }

    #[test]
    fn a_cell_has_the_colour_of_its_reads() {
        let (width, height, pixels) = decoded(&map(&report(&[".12+", "....", "8...", "9..."])).unwrap());
        assert_eq!((width, height), (520 + 16, 520 + 16 + 26));
        let centre = |row: usize, column: usize| pixels[(MARGIN + row * 130 + 65) * width + MARGIN + column * 130 + 65];
        assert_eq!([centre(0, 0), centre(0, 1), centre(0, 2)], [PAPER[0], SHADES[0], SHADES[1]]);
        assert_eq!([centre(0, 3), centre(2, 0), centre(3, 0)], [PAPER[1], SHADES[7], PAPER[1]]);
    }

    #[test]
    fn the_legend_has_each_number_that_occurs() {
        let map = report(&[".1", "4+"]).reads_map.unwrap();
        assert_eq!(occurring(&map), [0, 1, 4, 9]);
        let (width, _, pixels) = decoded(&super::map(&report(&[".1", "4+"])).unwrap());
        let swatch = |place: usize| pixels[(520 + 16 + 9) * width + MARGIN + place * entry_width() + 9];
        assert_eq!([0, 1, 2, 3].map(swatch), [PAPER[0], SHADES[0], SHADES[3], PAPER[1]]);
        assert_eq!(swatch(4), PAPER[0], "no fifth");
    }

    #[test]
    fn a_map_from_other_hands_is_drawn_as_far_as_it_goes() {
        assert!(map(&report(&["é"])).is_some() && map(&report(&[])).is_some());
        assert_eq!(map(&Report::blank()), None);
        let (width, height, _) = decoded(&bare(&report(&["11", "11"])).unwrap());
        assert_eq!((width, height), (520, 520));
    }
}
