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
/// What stands for ten reads and more.
const MORE: u8 = 10;
/// Most reads of which the colour is light.
const DARK: u8 = 3;
/// Units left of and above the cells.
const LEFT: f64 = 58.0;
const TOP: f64 = 24.0;
/// Most cells a side that are drawn: a report may come from other hands.
const MOST: u32 = 512;

/// What a file of its own needs besides: a page has it in its stylesheet.
const STYLE: &str = "svg{background:#fff;font:11.5px system-ui,sans-serif}text{fill:#566070}\
    text.reads{fill:#0b0d12;font-size:10px}text.reads.pale{fill:#fff}path.between{fill:none;stroke:#fff}path.tile{fill:none;stroke:#0b0d12;stroke-width:2.5}";

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
    Some(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- heat-grader -->\n{}\n", file.into_string()))
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
    let sign = if side(apron) >= NUMBERED { "A number" } else { "The colour" };
    let each = if apron.words == apron.cells_read { ", each once" } else { "" };
    format!(
        "Block ({x}, {y}) at n = {} reads {} words from {} cells{each}, and writes the {written} within the outline. {sign} \
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
    let right = LEFT + side * f64::from(apron.columns);
    html! {
        text.tick x=(LEFT) y=(TOP - 8.0) { "column " (apron.column) }
        text.tick x=(format!("{right:.1}")) y=(TOP - 8.0) text-anchor="end" { (apron.column + apron.columns.saturating_sub(1)) }
        text.tick x=(LEFT - 6.0) y=(format!("{:.1}", TOP + 10.0)) text-anchor="end" { "row " (apron.row) }
        text.tick x=(LEFT - 6.0) y=(at(apron.rows, TOP)) text-anchor="end" { (apron.row + apron.rows.saturating_sub(1)) }
        // The label says what they come to; read one by one they say nothing.
        g aria-hidden="true" {
            @for reads in 0..=MORE {
                @let grounds = grounds(apron, side, reads);
                @if !grounds.is_empty() { path.reads fill=(shade(reads)) d=(grounds) {} }
            }
            @if side > 6.0 { path.between d=(between(apron, side)) {} }
            @if side >= NUMBERED {
                @for row in 0..apron.rows { (numbers(apron, side, row)) }
            }
        }
        path.tile d=(outline(apron, side)) {}
    }
}

/// How often a cell is read; nothing outside.
fn reads(apron: &Apron, row: u32, column: u32) -> Option<u8> {
    apron.at(row as usize, column as usize).map(|(reads, _)| reads)
}

/// A rectangle around each run of cells of a row that are read so often.
fn grounds(apron: &Apron, side: f64, wanted: u8) -> String {
    let mut path = String::new();
    for row in 0..apron.rows {
        let mut column = 0;
        while column < apron.columns {
            let run = (column..apron.columns).take_while(|&at| reads(apron, row, at) == Some(wanted)).count() as u32;
            if run > 0 {
                let (x, y) = (LEFT + side * f64::from(column), TOP + side * f64::from(row));
                path.push_str(&format!("M{x:.1} {y:.1}h{0:.1}v{side:.1}h-{0:.1}z", side * f64::from(run)));
            }
            column += run.max(1);
        }
    }
    path
}

/// The lines between the cells.
fn between(apron: &Apron, side: f64) -> String {
    let at = |cells: u32, from: f64| from + side * f64::from(cells);
    let across = (1..apron.rows).map(|row| format!("M{LEFT} {:.1}H{:.1}", at(row, TOP), at(apron.columns, LEFT)));
    let down = (1..apron.columns).map(|column| format!("M{:.1} {TOP}V{:.1}", at(column, LEFT), at(apron.rows, TOP)));
    across.chain(down).collect()
}

/// The numbers of one row, those on dark cells by themselves: a text that has a place for each of its characters.
fn numbers(apron: &Apron, side: f64, row: u32) -> Markup {
    let y = format!("{:.1}", TOP + side * (f64::from(row) + 0.5) + 3.5);
    let number = |dark: bool| {
        let (mut places, mut digits) = (String::new(), String::new());
        for column in 0..apron.columns {
            let Some(reads) = reads(apron, row, column).filter(|&reads| reads > 0 && (reads > DARK) == dark) else {
                continue;
            };
            places.push_str(&format!("{:.1} ", LEFT + side * (f64::from(column) + 0.5)));
            digits.push(char::from_digit(reads.into(), 10).unwrap_or('+'));
        }
        (places, digits)
    };
    html! {
        @for dark in [false, true] {
            @let (places, digits) = number(dark);
            @if !digits.is_empty() { text.reads.pale[dark] x=(places.trim_end()) y=(y) text-anchor="middle" { (digits) } }
        }
    }
}

/// Around the cells that are written: a stroke along each side that has another kind of cell on its other side.
fn outline(apron: &Apron, side: f64) -> String {
    let written = |row: Option<u32>, column: Option<u32>| {
        let cell = row.zip(column).and_then(|(row, column)| apron.at(row as usize, column as usize));
        cell.is_some_and(|(_, written)| written)
    };
    let x = |column: u32| LEFT + side * f64::from(column);
    let y = |row: u32| TOP + side * f64::from(row);
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
            by_line: Vec::new(),
            elsewhere: Vec::new(),
            reads: strings(["+111", "1111", "111."]),
            written: strings(["....", ".##.", "...."]),
        };
        Report { apron: Some(apron), ..Report::blank() }
    }

    #[test]
    fn each_cell_has_its_colour_and_its_number() {
        let file = file(&report()).unwrap();
        let tree = roxmltree::Document::parse(&file).expect("well-formed");
        let classed = |class: &str, name: &str| {
            let own = |node: &roxmltree::Node| node.tag_name().name() == name;
            let is = |node: &roxmltree::Node| {
                node.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
            };
            tree.descendants().filter(|node| own(node) && is(node)).collect::<Vec<_>>()
        };
        let grounds: Vec<_> = classed("reads", "path").iter().filter_map(|path| path.attribute("fill")).collect();
        assert_eq!(grounds, [shade(0), shade(1), shade(10)]);
        let texts: Vec<_> = classed("reads", "text").iter().filter_map(|text| text.text()).collect();
        assert_eq!(texts, ["111", "+", "1111", "111"], "no number where nothing is read");
        let first = classed("reads", "text")[0].attribute("x").map(|places| places.split(' ').count());
        assert_eq!((first, classed("pale", "text").len()), (Some(3), 1), "a place a number");
        assert!(file.contains("column 31") && file.contains("row 47") && file.contains(">49<"), "{file}");
        assert!(file.contains("Block (1, 6) at n = 100 reads 23 words from 12 cells"), "{file}");
    }

    #[test]
    fn the_outline_runs_around_the_written_cells() {
        let report = report();
        let path = outline(report.apron.as_ref().unwrap(), 10.0);
        assert_eq!((path.matches('H').count(), path.matches('V').count()), (4, 2), "{path}");
        assert!(path.starts_with("M68.0 34.0H78.0M68.0 34.0V44.0"), "{path}");
    }

    #[test]
    fn cells_too_small_have_no_numbers_and_what_is_not_listed_no_drawing() {
        let mut wide = report();
        if let Some(apron) = &mut wide.apron {
            apron.columns = 64;
            apron.reads = vec!["1".repeat(64); 3];
            apron.written = vec![".".repeat(64); 3];
        }
        assert!(!file(&wide).unwrap().contains("<text class=\"reads"));
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
