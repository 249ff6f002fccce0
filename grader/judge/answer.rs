//! Check `answer`: the learner's two rows and one sentence. Reported, never gating.

use super::reads::Reads;
use crate::verdict::{Check, CheckId, Status};

/// How far the reads row may lie from the measured count besides its own rounding. Counted from a tile's constants
/// (432 / 512 = 0.84375) it misses the apron cells that fall outside the grid (0.84283 measured at n = 2048).
const CONSTANTS: f64 = 0.01;
/// How far GB/s times milliseconds may lie from the bytes of a launch.
const CONSISTENT: f64 = 0.05;

/// What the learner handed in besides the kernel, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// The rows, a line each.
    pub rows: Vec<String>,
    /// When the learner would ship it.
    pub ship: String,
}

/// Compares the answer with what was measured on an n x n grid.
pub fn answer(given: Option<&Given>, reads: Option<&Reads>, n: u32) -> Check {
    let Some(given) = given.filter(|given| !given.rows.is_empty() || !given.ship.trim().is_empty()) else {
        let summary = "no rows and no sentence found";
        return Check::new(CheckId::Answer, Status::Warn, summary)
            .with("Fill in `rows:` and `ship:` at the end of heat.cu, or in an answer.md beside it.");
    };
    let remarks = remarks(given, reads, n);
    let troubled = remarks.iter().any(|remark| remark.trouble);
    let (status, summary) = match (troubled, reads.is_some()) {
        (true, _) => (Status::Warn, "the rows or the sentence need another look"),
        (false, true) => (Status::Pass, "two rows and a sentence, in agreement with what was measured"),
        (false, false) => (Status::Skip, "not compared: no words were counted"),
    };
    let mut check = Check::new(CheckId::Answer, status, summary);
    check.details = remarks.into_iter().map(|remark| remark.text).collect();
    check
}

/// One sentence about the answer, and whether it is a complaint.
struct Remark {
    text: String,
    trouble: bool,
}

fn remark(trouble: bool, text: String) -> Remark {
    Remark { text, trouble }
}

fn remarks(given: &Given, reads: Option<&Reads>, n: u32) -> Vec<Remark> {
    let rows: Vec<Vec<Number>> = given.rows.iter().map(|row| numbers(row)).filter(|row| !row.is_empty()).collect();
    let timing = rows.iter().position(|row| is_timing(row));
    let counted = rows.iter().enumerate().find(|(at, _)| Some(*at) != timing).and_then(|(_, row)| row.first());
    let mut remarks = Vec::new();
    match (counted, reads) {
        (Some(number), Some(reads)) => remarks.push(reads_row(number, reads)),
        (None, _) => remarks.push(remark(true, "There is no row with the words read per cell-step.".to_owned())),
        (Some(_), None) => {}
    }
    match timing {
        Some(at) => remarks.push(timing_row(&rows[at], n)),
        None => remarks.push(remark(true, "There is no row with a time in ms.".to_owned())),
    }
    if given.ship.trim().is_empty() {
        remarks.push(remark(true, "There is no sentence on when you would ship it.".to_owned()));
    }
    remarks
}

/// A number as the learner wrote it.
#[derive(Clone, Debug, PartialEq)]
struct Number {
    value: f64,
    /// Half a unit of its last digit.
    rounding: f64,
    /// The letters or sign right after it, in lower case: `ms`, `x`, `%`, `gb/s`, or empty.
    unit: String,
}

/// The numbers of a row, those inside a name or in brackets left out.
fn numbers(row: &str) -> Vec<Number> {
    let open = row.split(['(', '[']).next().unwrap_or_default();
    let fields: Vec<&str> = open.split(|c: char| c.is_whitespace() || matches!(c, '|' | ',' | ';' | ':')).collect();
    let mut numbers: Vec<Number> = Vec::new();
    for field in fields.into_iter().filter(|field| !field.is_empty()) {
        let end = field.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(field.len());
        let (digits, unit) = field.split_at(end);
        match digits.parse::<f64>() {
            Ok(value) => {
                let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
                let rounding = 0.5 * 0.1f64.powi(decimals.min(15) as i32);
                numbers.push(Number { value, rounding, unit: unit.to_lowercase() });
            }
            Err(_) => {
                if let Some(last) = numbers.last_mut().filter(|last| last.unit.is_empty()) {
                    last.unit = field.to_lowercase();
                }
            }
        }
    }
    numbers
}

/// A row with a unit of time, or with the columns of the lesson's part 1: time (ms), GB/s, % of copy.
fn is_timing(row: &[Number]) -> bool {
    let unit = row.first().map(|number| number.unit.as_str());
    matches!(unit, Some("ms" | "us" | "µs" | "s")) || (row.len() >= 3 && unit == Some(""))
}

fn reads_row(number: &Number, reads: &Reads) -> Remark {
    let measured = reads.per_cell_step();
    let near = |value: f64, target: f64| (value - target).abs() <= number.rounding + CONSTANTS * target;
    if near(number.value, measured) {
        return remark(false, format!("The reads row says {}; measured {measured:.3}.", number.value));
    }
    let timesteps = f64::from(reads.timesteps);
    if near(number.value, measured * timesteps) {
        let text = format!(
            "The reads row says {}, which is per cell and launch; per cell-step it is {measured:.3}.",
            number.value
        );
        return remark(true, text);
    }
    remark(true, format!("The reads row says {}; measured {measured:.3} words read per cell-step.", number.value))
}

/// A time must be above 0; with a bandwidth beside it, the two must move one grid in and one out a launch (or a
/// timestep: both are in use).
fn timing_row(row: &[Number], n: u32) -> Remark {
    let ms = row[0].value * if matches!(row[0].unit.as_str(), "us" | "µs") { 1e-3 } else { 1.0 };
    if ms <= 0.0 {
        return remark(true, "The timing row has no time above 0.".to_owned());
    }
    let bandwidth = row.iter().skip(1).find(|number| number.unit.starts_with("gb"));
    let bandwidth = bandwidth.or_else(|| row.get(1).filter(|number| row.len() >= 3 && number.unit.is_empty()));
    let Some(bandwidth) = bandwidth else {
        return remark(false, format!("The timing row says {ms} ms."));
    };
    let bytes = 8.0 * f64::from(n).powi(2);
    let moved = bandwidth.value * 1e9 * ms * 1e-3;
    let slack = CONSISTENT + row[0].rounding / row[0].value + bandwidth.rounding / bandwidth.value.max(1e-9);
    let agrees = |launches: f64| (moved * launches / bytes - 1.0).abs() <= slack;
    if agrees(1.0) || agrees(2.0) || agrees(0.5) {
        return remark(false, format!("The timing row says {ms} ms at {} GB/s.", bandwidth.value));
    }
    let expected = bytes / (ms * 1e-3) / 1e9;
    let text = format!("The timing row does not add up: {ms} ms a launch is {expected:.1} GB/s at n = {n}, not {}.", bandwidth.value);
    remark(true, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: Reads = Reads { words: 7_056_400, cells: 4_186_116, timesteps: 2, budget: 1.5 };

    fn judged(rows: &[&str], ship: &str) -> Check {
        let given = Given { rows: rows.iter().map(|row| (*row).to_owned()).collect(), ship: ship.to_owned() };
        answer(Some(&given), Some(&READS), 2048)
    }

    #[test]
    fn the_programs_own_rows_agree() {
        let check = judged(&["heatTwoStep               0.844", "heatTwoStep               0.141 ms    0.50x"], "Never.");
        assert_eq!((check.status, check.details.len()), (Status::Pass, 2), "{check:?}");
    }

    #[test]
    fn the_lessons_columns_agree() {
        let check = judged(&["heatTwoStep  0.84  (432 apron cells for 512)", "heatTwoStep 0.300 111.8 46.0"], "When it wins.");
        assert_eq!(check.status, Status::Pass, "{check:?}");
    }

    #[test]
    fn a_count_a_launch_is_told_apart_from_a_wrong_one() {
        let rows = |reads| judged(&[reads, "k 0.3 ms"], "Never.").details[0].clone();
        assert!(rows("k 1.69").contains("per cell and launch"));
        assert!(rows("k 1.33").contains("measured 0.843"));
    }

    #[test]
    fn a_bandwidth_that_does_not_follow_from_the_time_is_told() {
        let check = judged(&["k 0.84", "k 0.300 500.0 46.0"], "Never.");
        assert!(check.status == Status::Warn && check.details[1].contains("add up"), "{check:?}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let check = judged(&["k 0.84"], " ");
        assert_eq!(check.status, Status::Warn);
        assert_eq!(check.details.len(), 3);
        assert_eq!(answer(None, Some(&READS), 2048).status, Status::Warn);
        assert_eq!(answer(Some(&Given::default()), None, 2048).status, Status::Warn);
    }

    #[test]
    fn odd_text_is_no_trouble() {
        for row in ["", "|---|---|", "NaN ms", "1e999 ms", ".", "...", "0 ms 0 0", "9".repeat(400).as_str(), "µs µs 3µs"] {
            judged(&[row, row], "x");
        }
    }
}
