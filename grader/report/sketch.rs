//! The first wrong cell in the terminal: a small map of the whole grid, and beside it the cells around that cell.
//!
//! A dot of the map is a bin of the report's error map: a Braille character holds two by four of them, which a terminal
//! draws about as high as wide. Nothing is told by colour alone. Lines between the cells stand where the watched launch
//! saw the cells of another block begin; where it did not see that, there are none.

use anstyle::{AnsiColor, Style};

use super::{ErrorMap, FirstMismatch, Neighbourhood, Real, Report};

/// Columns of a value among the neighbours.
const VALUE: usize = 6;
/// Values closer than this, relative to the larger one, read alike in so few columns.
const ALIKE: f64 = 5e-4;
/// Columns of a row's number before them.
const LABEL: usize = 6;

const WRONG: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
const RIGHT: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
const FAINT: Style = Style::new().dimmed();

/// One line of the drawing: its text in runs of one style.
#[derive(Clone, Default)]
struct Line(Vec<(Style, String)>);

impl Line {
    fn push(&mut self, text: &str, style: Style) {
        match self.0.last_mut() {
            Some((known, run)) if *known == style => run.push_str(text),
            _ => self.0.push((style, text.to_owned())),
        }
    }

    fn plain(&mut self, text: &str) {
        self.push(text, Style::new());
    }

    /// Columns that it takes.
    fn columns(&self) -> usize {
        self.0.iter().map(|(_, run)| run.chars().count()).sum()
    }

    /// With ANSI colours.
    fn text(&self) -> String {
        self.0.iter().map(|(style, run)| format!("{style}{run}{style:#}")).collect()
    }
}

/// A drawing and the sentence above it.
pub struct Sketch {
    pub caption: String,
    /// With ANSI colours, at most 78 columns wide.
    pub lines: Vec<String>,
}

/// The wrong cells of a report; `None` where it has none.
pub fn of(report: &Report) -> Option<Sketch> {
    let first = report.first_mismatch.as_ref()?;
    let drawn = report.error_map.as_ref().filter(|map| map.wrong_cells > 0).map(|map| map_lines(map, first));
    let around = first.around.as_ref().filter(|around| is_whole(around)).map(Table::of);
    let mut said = Vec::new();
    if let (Some(_), Some(map)) = (&drawn, &report.error_map) {
        let bin = if map.bin == 1 { "one cell".to_owned() } else { format!("{0} x {0} cells", map.bin) };
        said.push(format!("Where it is wrong: a dot is {bin}, and `v` and `>` point at the first."));
    }
    if let Some(table) = &around {
        let under = if table.differences { "how far off it is" } else { "what was expected" };
        let beside = if drawn.is_some() { "Beside it the cells around that one" } else { "The cells around it" };
        let lines = if table.has_lines() { "; lines part the cells of two blocks" } else { "" };
        said.push(format!("{beside}: what came out and, under a wrong value, {under}{lines}."));
    }
    let lines = side_by_side(drawn.unwrap_or_default(), around.map(|table| table.lines()).unwrap_or_default());
    (!lines.is_empty()).then(|| Sketch { caption: said.join(" "), lines })
}

fn side_by_side(left: Vec<Line>, right: Vec<Line>) -> Vec<String> {
    let width = left.iter().map(Line::columns).max().unwrap_or_default();
    let rows = left.len().max(right.len());
    let line = |at: usize| {
        let mut line = left.get(at).cloned().unwrap_or_default();
        if let Some(right) = right.get(at) {
            line.plain(&" ".repeat(width - line.columns()));
            right.0.iter().for_each(|(style, run)| line.push(run, *style));
        }
        line.text()
    };
    (0..rows).map(line).collect()
}

/// The map in a frame with a mark at the row and the column of the first wrong cell.
fn map_lines(map: &ErrorMap, first: &FirstMismatch) -> Vec<Line> {
    let bins = map.bins();
    let bin = |at: u32| ((at / map.bin.max(1)) as usize).min(bins - 1);
    let (row, column) = (bin(first.row) / 4, bin(first.column) / 2);
    let across = bins.div_ceil(2);
    let edge = |ends: [&str; 2], mark: Option<usize>| {
        let mut line = Line::default();
        line.push(ends[0], FAINT);
        for at in 0..across {
            if mark == Some(at) { line.plain("v") } else { line.push("─", FAINT) }
        }
        line.push(ends[1], FAINT);
        line
    };
    let mut lines = vec![edge(["┌", "┐"], Some(column))];
    for down in 0..bins.div_ceil(4) {
        let mut line = Line::default();
        if down == row {
            line.plain(">")
        } else {
            line.push("│", FAINT)
        }
        for at in 0..across {
            match dots(map, 4 * down, 2 * at) {
                0 => line.plain(" "),
                dots => line.push(&char::from_u32(0x2800 + dots).unwrap_or('#').to_string(), WRONG),
            }
        }
        line.push("│", FAINT);
        lines.push(line);
    }
    lines.push(edge(["└", "┘"], None));
    lines
}

/// The dots of a Braille character for the bins from (row, column): bit 0 to 2 down the left, 3 to 5 down the right, then
/// the lowest pair.
fn dots(map: &ErrorMap, row: usize, column: usize) -> u32 {
    const BITS: [[u32; 2]; 4] = [[0, 3], [1, 4], [2, 5], [6, 7]];
    let mut dots = 0;
    for (down, pair) in BITS.iter().enumerate() {
        for (right, bit) in pair.iter().enumerate() {
            dots |= u32::from(map.at(row + down, column + right).is_some()) << bit;
        }
    }
    dots
}

/// Whether a neighbourhood holds what it should: a report may come from other hands.
fn is_whole(around: &Neighbourhood) -> bool {
    let rows = around.got.len();
    let columns = around.got.first().map_or(0, Vec::len);
    let same = |values: &[Vec<Real>]| values.len() == rows && values.iter().all(|row| row.len() == columns);
    let marks = around.wrong.len() == rows && around.wrong.iter().all(|row| row.len() == columns);
    (1..=5).contains(&rows) && (1..=5).contains(&columns) && same(&around.got) && same(&around.expected) && marks
}

struct Table<'r> {
    around: &'r Neighbourhood,
    /// Whether differences stand under the wrong values, because the values look alike.
    differences: bool,
}

impl<'r> Table<'r> {
    fn of(around: &'r Neighbourhood) -> Self {
        let table = Self { around, differences: false };
        let alike = |(row, column): (usize, usize)| {
            let (got, expected) = (around.got[row][column].0, around.expected[row][column].0);
            table.is_wrong(row, column) && (got - expected).abs() < ALIKE * got.abs().max(expected.abs())
        };
        let differences = table.cells().any(alike);
        Self { around, differences }
    }

    fn cells(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (rows, columns) = (self.around.got.len(), self.around.got[0].len());
        (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    }

    fn is_wrong(&self, row: usize, column: usize) -> bool {
        self.around.wrong[row].as_bytes()[column] == b'#'
    }

    fn has_lines(&self) -> bool {
        !self.around.block_rows.is_empty() || !self.around.block_columns.is_empty()
    }

    /// What parts a column from the one before it.
    fn part(&self, column: usize) -> bool {
        self.around.block_columns.contains(&(self.around.column + column as u32))
    }

    fn lines(&self) -> Vec<Line> {
        let columns = self.around.got[0].len();
        let mut heading = Line::default();
        heading.plain(&" ".repeat(LABEL));
        for column in 0..columns {
            self.separate(&mut heading, column, " ", "│");
            heading.push(&format!("{:>VALUE$}", self.around.column + column as u32), FAINT);
        }
        let mut lines = vec![heading];
        for row in 0..self.around.got.len() {
            if self.around.block_rows.contains(&(self.around.row + row as u32)) {
                lines.push(self.rule(columns));
            }
            lines.push(self.values(row));
            lines.extend((0..columns).any(|column| self.is_wrong(row, column)).then(|| self.expected(row)));
        }
        lines
    }

    fn separate(&self, line: &mut Line, column: usize, plain: &str, part: &str) {
        if self.part(column) { line.push(part, FAINT) } else { line.push(plain, FAINT) }
    }

    fn rule(&self, columns: usize) -> Line {
        let mut line = Line::default();
        line.plain(&" ".repeat(LABEL));
        for column in 0..columns {
            self.separate(&mut line, column, "─", "┼");
            line.push(&"─".repeat(VALUE), FAINT);
        }
        line
    }

    fn values(&self, row: usize) -> Line {
        let mut line = Line::default();
        line.push(&format!("{:>LABEL$}", self.around.row + row as u32), FAINT);
        for (column, value) in self.around.got[row].iter().enumerate() {
            self.separate(&mut line, column, " ", "│");
            let text = format!("{:>VALUE$}", short(value.0));
            if self.is_wrong(row, column) { line.push(&text, WRONG.bold()) } else { line.plain(&text) }
        }
        line
    }

    /// What should stand in the wrong cells of a row, and nothing in the others.
    fn expected(&self, row: usize) -> Line {
        let mut line = Line::default();
        line.plain(&" ".repeat(LABEL));
        let last =
            (0..self.around.expected[row].len()).rfind(|&column| self.is_wrong(row, column) || self.part(column));
        for (column, value) in self.around.expected[row].iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            self.separate(&mut line, column, " ", "│");
            let off = || format!("{:+.0e}", self.around.got[row][column].0 - value.0);
            let text = if self.differences { off() } else { short(value.0) };
            let text = if self.is_wrong(row, column) { text } else { String::new() };
            line.push(&format!("{text:>VALUE$}"), RIGHT);
        }
        line
    }
}

/// A value in at most [`VALUE`] columns, as exact as they allow.
fn short(value: f64) -> String {
    if !value.is_finite() {
        return Real(value).to_string();
    }
    let plain = value == 0.0 || (1e-3..1e6).contains(&value.abs());
    let written = |digits: usize| if plain { format!("{value:.digits$}") } else { format!("{value:.digits$e}") };
    (0..=4).rev().map(written).find(|text| text.len() <= VALUE).unwrap_or_else(|| "large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::Exercise;
    use crate::grid::Grid;
    use crate::judge::cells::compare;
    use crate::judge::neighbourhood::Neighbourhood as Judged;
    use crate::judge::outcome::{FirstMismatch as JudgedMismatch, Writer};
    use crate::report::build;
    use std::sync::Arc;

    /// A report on a grid with other values at (row, column), in tiles of 4 x 3 cells.
    fn report(n: usize, cells: &[(usize, usize, f32)]) -> Report {
        let want = Grid::initial(n, 1);
        let mut have = want.cells().to_vec();
        for &(row, column, value) in cells {
            have[row * n + column] = value;
        }
        let have = Grid::from_cells(n, have).expect("same size");
        let cell = compare(&want, &have, 1e-6).and_then(|difference| difference.first()).expect("a wrong cell");
        let mut around = Judged::of(&cell, &want, &have, 1e-6);
        around.blocks =
            around.window.cells().map(|(row, column)| Some([column as u32 / 4, row as u32 / 3, 0])).collect();
        let map = ErrorMap::between(&want, &have, 1e-6);
        let first = JudgedMismatch {
            n: n as u32,
            r: 0.2,
            launch: 1,
            last_right: 0,
            cell,
            writer: Writer::Unknown,
            map: map.clone(),
            around,
            before: None,
            after: Arc::new(have),
        };
        let first = build::first_mismatch(&first, &Exercise::shipped().expect("reference/exercise.toml"));
        Report { error_map: Some(map), first_mismatch: Some(first), ..Report::blank() }
    }

    fn plain(sketch: &Sketch) -> Vec<String> {
        sketch.lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn nothing_is_drawn_where_nothing_is_wrong() {
        assert!(of(&Report::blank()).is_none());
    }

    #[test]
    fn the_map_has_a_dot_a_bin_and_marks_the_first_wrong_cell() {
        let sketch = of(&report(16, &[(0, 0, 9.0), (5, 3, 9.0), (15, 15, 9.0)])).unwrap();
        let lines = plain(&sketch);
        let map: Vec<String> = lines.iter().map(|line| line.chars().take(10).collect()).collect();
        assert_eq!(map[..6], ["┌v───────┐", ">⠁       │", "│ ⠐      │", "│        │", "│       ⢀│", "└────────┘"]);
        assert!(sketch.caption.starts_with("Where it is wrong: a dot is one cell,"), "{}", sketch.caption);
    }

    #[test]
    fn under_a_wrong_value_stands_the_expected_one_and_lines_part_blocks() {
        let report = report(16, &[(6, 7, 9.0), (6, 8, f32::NAN)]);
        let lines = plain(&of(&report).unwrap());
        let first = report.first_mismatch.as_ref().unwrap();
        assert!(lines[0].ends_with("      5      6      7│     8      9"), "{lines:#?}");
        assert!(lines[3].ends_with("─────────────────────┼─────────────"), "{lines:#?}");
        assert!(lines[4].contains(" 9.0000│   nan "), "{lines:#?}");
        assert!(lines[5].contains(&format!("{:.4}│", first.expected.0)), "{lines:#?}");
        assert_eq!(lines.len(), 1 + 5 + 1 + 1, "a heading, five rows, a rule, one row of expected values");
    }

    #[test]
    fn values_that_look_alike_are_told_by_their_difference() {
        let near = Grid::initial(16, 1).at(6, 7) + 2e-5;
        let sketch = of(&report(16, &[(6, 7, near)])).unwrap();
        assert!(sketch.caption.contains("how far off it is"), "{}", sketch.caption);
        assert!(plain(&sketch).iter().any(|line| line.contains(" +2e-5")), "{:#?}", plain(&sketch));
    }

    #[test]
    fn the_largest_drawing_fits_the_terminal() {
        let all: Vec<(usize, usize, f32)> = (0..2048 * 2048).map(|at| (at / 2048, at % 2048, -1.25e9)).collect();
        let lines = plain(&of(&report(2048, &all)).unwrap());
        let widest = lines.iter().map(|line| line.chars().count()).max();
        assert!(widest <= Some(78), "{widest:?}");
        assert!(lines.len() <= 18, "{lines:#?}");
    }

    #[test]
    fn a_neighbourhood_from_other_hands_is_left_out_unless_it_is_whole() {
        let mut odd = report(16, &[(6, 7, 9.0)]);
        if let Some(around) = odd.first_mismatch.as_mut().and_then(|first| first.around.as_mut()) {
            around.wrong[2] = "é".to_owned();
        }
        let sketch = of(&odd).unwrap();
        assert!(!sketch.caption.contains("around") && sketch.lines.len() == 6, "{}", sketch.caption);
    }

    #[test]
    fn values_fit_six_columns() {
        let values = [0.0, 1.0836058, -0.0426, 12.3456, -123.456, 999999.4, 4.2e-5, -1.5e10, 1e-300, f64::NAN];
        let shown = ["0.0000", "1.0836", "-0.043", "12.346", "-123.5", "999999", "4.2e-5", "-2e10", "1e-300", "nan"];
        assert_eq!(values.map(short), shown);
        assert!(values.map(short).iter().all(|text| text.len() <= VALUE));
    }
}
