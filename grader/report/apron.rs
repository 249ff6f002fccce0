//! The apron as a drawing: how often one block of the submission reads each cell, and which cells it writes.
//!
//! The same SVG stands in a page and in a file of its own. Its colours are those of the reads map, and the number of reads
//! stands in a cell that is large enough for it.

use maud::{Markup, PreEscaped, html};

use super::Report;
use super::picture::reads::shade;
use super::wrap::wrap;
use crate::judge::grouped;
use crate::judge::loads::Apron;

/// Units across that the cells fill at most; a unit is about a CSS pixel.
const WIDTH: f64 = 640.0;
/// Units a side of a cell at most, and at least to hold a number.
const LARGEST: f64 = 26.0;
const NUMBERED: f64 = 11.0;
/// Reads from which a cell's colour is dark.
const DARK: u8 = 3;
/// Units left of and above the cells.
const LEFT: f64 = 58.0;
const TOP: f64 = 24.0;
/// Most cells a side that are drawn: a report may come from other hands.
const MOST: u32 = 512;

/// What a file of its own needs besides: a page has it in its stylesheet.
const STYLE: &str = "svg{background:#fff;font:11.5px system-ui,sans-serif}text{fill:#566070}\
    text.reads{fill:#0b0d12;font-size:10px}text.reads.pale{fill:#fff}path.tile{fill:none;stroke:#0b0d12;stroke-width:2.5}";

/// The drawing as a file's text; `None` when no thread was watched, or the cells are too many to be listed.
pub fn file(report: &Report) -> Option<String> {
    let apron = drawable(report)?;
    let (width, height) = size(apron, true);
    let file = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}")) width=(format!("{width:.0}")) height=(format!("{height:.0}")) {
            title { (sentence(apron)) }
            style { (PreEscaped(STYLE)) }
            (cells(apron))
            @for (at, line) in wrap(&sentence(apron), (width - 2.0 * LEFT) as usize / 6).iter().enumerate() {
                text x=(LEFT) y=(format!("{:.1}", size(apron, false).1 + 14.0 + 16.0 * at as f64)) { (line) }
            }
        }
    };
    Some(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", file.into_string()))
}

/// The drawing for a page, whose stylesheet knows its classes.
pub fn figure(report: &Report) -> Option<Markup> {
    let apron = drawable(report)?;
    let (width, height) = size(apron, false);
    Some(html! {
        svg.apron viewBox=(format!("0 0 {width:.0} {height:.0}")) role="img" aria-label=(sentence(apron)) { (cells(apron)) }
    })
}

/// What the drawing shows, in whole sentences.
pub fn sentence(apron: &Apron) -> String {
    let [x, y, _] = apron.block;
    let written = match apron.tile {
        Some([columns, rows]) => format!("{} cells ({columns} x {rows})", grouped(apron.cells_written)),
        None => format!("{} cells", grouped(apron.cells_written)),
    };
    let each = if apron.words == apron.cells_read { ", each once" } else { "" };
    format!(
        "Block ({x}, {y}) at n = {} reads {} words from {} cells{each}, and writes the {written} within the outline. A number \
         is how often a cell is read.",
        apron.n,
        grouped(apron.words),
        grouped(apron.cells_read),
    )
}

fn drawable(report: &Report) -> Option<&Apron> {
    let within = |cells: u32| (1..=MOST).contains(&cells);
    report.apron.as_ref().filter(|apron| within(apron.rows) && within(apron.columns) && apron.at(0, 0).is_some())
}

/// Units a side of a cell.
fn side(apron: &Apron) -> f64 {
    (WIDTH / f64::from(apron.columns.max(apron.rows / 2))).min(LARGEST)
}

/// Width and height, with or without room for the sentence below.
fn size(apron: &Apron, sentence: bool) -> (f64, f64) {
    let width = (LEFT + side(apron) * f64::from(apron.columns) + 12.0).max(360.0);
    let below = if sentence { 70.0 } else { 10.0 };
    (width, TOP + side(apron) * f64::from(apron.rows) + below)
}

fn cells(apron: &Apron) -> Markup {
    let side = side(apron);
    let at = |cells: u32, from: f64| format!("{:.1}", from + side * f64::from(cells));
    let all = (0..apron.rows).flat_map(|row| (0..apron.columns).map(move |column| (row, column)));
    let seen = all.filter_map(|(row, column)| Some((row, column, apron.at(row as usize, column as usize)?.0)));
    let right = LEFT + side * f64::from(apron.columns);
    html! {
        text.tick x=(LEFT) y=(TOP - 8.0) { "column " (apron.column) }
        text.tick x=(format!("{right:.1}")) y=(TOP - 8.0) text-anchor="end" { (apron.column + apron.columns.saturating_sub(1)) }
        text.tick x=(LEFT - 6.0) y=(format!("{:.1}", TOP + 10.0)) text-anchor="end" { "row " (apron.row) }
        text.tick x=(LEFT - 6.0) y=(at(apron.rows, TOP)) text-anchor="end" { (apron.row + apron.rows.saturating_sub(1)) }
        @for (row, column, reads) in seen {
            rect x=(at(column, LEFT)) y=(at(row, TOP)) width=(format!("{:.1}", side - gap(side))) height=(format!("{:.1}", side - gap(side))) fill=(shade(reads)) {}
            @if side >= NUMBERED && reads > 0 {
                text.reads.pale[reads > DARK] x=(at(column, LEFT + (side - gap(side)) / 2.0)) y=(at(row, TOP + side / 2.0 + 3.5)) text-anchor="middle" {
                    @if reads > 9 { "9+" } @else { (reads) }
                }
            }
        }
        path.tile d=(outline(apron, side)) fill="none" {}
    }
}

/// Units left free between cells.
fn gap(side: f64) -> f64 {
    if side > 6.0 { 1.0 } else { 0.0 }
}

/// Around the cells that are written: a stroke along each side that has another kind of cell on its other side.
fn outline(apron: &Apron, side: f64) -> String {
    let written = |row: Option<u32>, column: Option<u32>| {
        let cell = row.zip(column).and_then(|(row, column)| apron.at(row as usize, column as usize));
        cell.is_some_and(|(_, written)| written)
    };
    let x = |column: u32| LEFT + side * f64::from(column) - gap(side) / 2.0;
    let y = |row: u32| TOP + side * f64::from(row) - gap(side) / 2.0;
    let mut path = String::new();
    for row in 0..=apron.rows {
        for column in 0..=apron.columns {
            let here = written(Some(row), Some(column));
            if here != written(row.checked_sub(1), Some(column)) {
                path.push_str(&format!("M{:.1} {:.1}H{:.1}", x(column), y(row), x(column + 1)));
            }
            if here != written(Some(row), column.checked_sub(1)) {
                path.push_str(&format!("M{:.1} {:.1}V{:.1}", x(column), y(row), y(row + 1)));
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of 2 x 1 cells with one cell around them, the first of which is read twelve times.
    fn report() -> Report {
        let strings = |rows: [&str; 3]| rows.map(str::to_owned).to_vec();
        let apron = Apron {
            n: 100,
            block: [1, 6, 0],
            row: 47,
            column: 31,
            rows: 3,
            columns: 4,
            words: 23,
            cells_read: 12,
            cells_written: 2,
            tile: Some([2, 1]),
            shared: 48,
            reads: strings(["+111", "1111", "111."]),
            written: strings(["....", ".##.", "...."]),
        };
        Report { apron: Some(apron), ..Report::blank() }
    }

    #[test]
    fn each_cell_has_its_colour_and_its_number() {
        let file = file(&report()).unwrap();
        let tree = roxmltree::Document::parse(&file).expect("well-formed");
        let of = |name: &str| {
            tree.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name))).count()
        };
        assert_eq!(of("rect"), 12);
        let numbers: Vec<&str> = tree
            .descendants()
            .filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("reads")))
            .filter_map(|node| node.text())
            .collect();
        assert_eq!((numbers.len(), numbers[0], numbers[1]), (11, "9+", "1"), "no number where nothing is read");
        assert!(file.contains("column 31") && file.contains("row 47") && file.contains(">49<"), "{file}");
        assert!(file.contains("Block (1, 6) at n = 100 reads 23 words from 12 cells"), "{file}");
    }

    #[test]
    fn the_outline_runs_around_the_written_cells() {
        let report = report();
        let path = outline(report.apron.as_ref().unwrap(), 10.0);
        assert_eq!((path.matches('H').count(), path.matches('V').count()), (4, 2), "{path}");
        assert!(path.starts_with("M67.5 33.5H77.5M67.5 33.5V43.5"), "{path}");
    }

    #[test]
    fn cells_too_small_have_no_numbers_and_what_is_not_listed_no_drawing() {
        let mut wide = report();
        if let Some(apron) = &mut wide.apron {
            apron.columns = 64;
            apron.reads = vec!["1".repeat(64); 3];
            apron.written = vec![".".repeat(64); 3];
        }
        assert!(!file(&wide).unwrap().contains("class=\"reads"));
        if let Some(apron) = &mut wide.apron {
            (apron.reads, apron.written) = (Vec::new(), Vec::new());
        }
        assert_eq!(file(&wide), None);
        if let Some(apron) = &mut wide.apron {
            (apron.rows, apron.reads, apron.written) = (u32::MAX, vec!["1".to_owned()], vec!["#".to_owned()]);
        }
        assert!(figure(&wide).is_none());
        assert!(file(&Report::blank()).is_none());
    }
}
