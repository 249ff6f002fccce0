//! Check `answer`: the learner's two rows and one sentence. Reported, never gating.

use super::reads::Reads;
use crate::verdict::{Check, CheckId, Status};

/// How far the reads row may lie from the measured count besides its own rounding. Counted from a tile's constants
/// (432 / 512 = 0.84375) it misses the apron cells that fall outside the grid (0.84283 measured at n = 2048).
const CONSTANTS: f64 = 0.01;
/// Half a unit of the second decimal, the lesson's own precision.
const ROUNDING: f64 = 0.005;
/// How far GB/s times milliseconds may lie from the bytes of a launch.
const CONSISTENT: f64 = 0.05;

/// What is asked of somebody who cannot measure the time.
const WITHOUT_GPU: &str =
    "The time is what heat.cu prints on a machine with a GPU; without one, leave its row out: this check fails nobody.";

/// What the learner handed in besides the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    pub rows: Vec<GivenRow>,
    /// When the learner would ship it; empty when not said.
    pub ship: String,
}

/// One row, and what it is about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GivenRow {
    /// As written.
    pub text: String,
    /// Every number after the row's name.
    pub numbers: Vec<f64>,
    /// Words read per cell-step, in a row about reads.
    pub reads: Option<f64>,
    /// Milliseconds, in a row about time.
    pub ms: Option<f64>,
    /// The time over heatStepTiled's.
    pub ratio: Option<f64>,
}

/// Compares the answer with what was measured on an n x n grid. `timed`: the kernel was timed here, so that its time can be
/// asked for.
pub fn answer(given: Option<&Given>, reads: Option<&Reads>, n: u32, timed: bool) -> Check {
    let Some(given) = given.filter(|given| !given.rows.is_empty() || !given.ship.trim().is_empty()) else {
        let summary = "no result rows and no sentence found";
        return Check::new(CheckId::Answer, Status::Warn, summary)
            .with("Fill in `rows:` and `ship:` at the end of heat.cu, or in an answer.md beside it.")
            .with(WITHOUT_GPU);
    };
    let remarks = remarks(given, reads, n, timed);
    let troubled = remarks.iter().any(|remark| remark.trouble);
    let (status, summary) = match (troubled, reads.is_some()) {
        (true, _) => (Status::Warn, "the result rows or the sentence need another look"),
        (false, true) if given.rows.iter().any(|row| row.ms.is_some()) => {
            (Status::Pass, "both result rows and the sentence agree with what was measured")
        }
        (false, true) => (Status::Pass, "the result row and the sentence agree with what was measured"),
        (false, false) => (Status::Skip, "not compared: no words were counted"),
    };
    let mut check = Check::new(CheckId::Answer, status, summary);
    // What is in order is not told beside what is not.
    check.details =
        remarks.into_iter().filter(|remark| remark.trouble || !troubled).map(|remark| remark.text).collect();
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

fn remarks(given: &Given, reads: Option<&Reads>, n: u32, timed: bool) -> Vec<Remark> {
    let mut remarks = Vec::new();
    match (given.rows.iter().find_map(|row| row.reads), reads) {
        (Some(number), Some(reads)) => remarks.push(reads_row(number, reads)),
        (None, _) => remarks.push(remark(true, "There is no result row with the words read per cell-step.".to_owned())),
        (Some(_), None) => {}
    }
    match given.rows.iter().find_map(|row| Some((row, row.ms?))) {
        Some((row, ms)) => remarks.push(timing_row(row, ms, n)),
        None if timed => remarks.push(remark(true, "There is no result row with a time in ms.".to_owned())),
        None => remarks.push(remark(false, format!("There is no result row with a time in ms. {WITHOUT_GPU}"))),
    }
    if given.ship.trim().is_empty() {
        remarks.push(remark(true, "There is no sentence on when you would ship it.".to_owned()));
    }
    remarks
}

fn reads_row(number: f64, reads: &Reads) -> Remark {
    let measured = reads.per_cell_step();
    let near = |target: f64| (number - target).abs() <= ROUNDING + CONSTANTS * target;
    if near(measured) {
        return remark(false, format!("The reads row says {number}; measured {measured:.3}."));
    }
    if near(measured * f64::from(reads.timesteps)) {
        let text =
            format!("The reads row says {number}, which is per cell and launch; per cell-step it is {measured:.3}.");
        return remark(true, text);
    }
    remark(true, format!("The reads row says {number}, but measured were {measured:.3} words read per cell-step."))
}

/// A time must be above 0; with a bandwidth beside it (the lesson's columns: time, GB/s, % of copy), the two must move
/// one grid in and one out a launch, or a timestep: both are in use.
fn timing_row(row: &GivenRow, ms: f64, n: u32) -> Remark {
    if ms <= 0.0 {
        return remark(true, "The timing row has no time above 0.".to_owned());
    }
    let bandwidth = row.numbers.get(1).filter(|_| row.ratio.is_none() && row.numbers.len() >= 3);
    let Some(&bandwidth) = bandwidth else {
        return remark(false, format!("The timing row says {ms} ms."));
    };
    let bytes = 8.0 * f64::from(n).powi(2);
    let moved = bandwidth * 1e9 * ms * 1e-3;
    let agrees = |launches: f64| (moved * launches / bytes - 1.0).abs() <= CONSISTENT;
    if agrees(1.0) || agrees(2.0) || agrees(0.5) {
        return remark(false, format!("The timing row says {ms} ms at {bandwidth} GB/s."));
    }
    let expected = bytes / (ms * 1e-3) / 1e9;
    remark(
        true,
        format!("The timing row does not add up: {ms} ms a launch is {expected:.1} GB/s at n = {n}, not {bandwidth}."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: Reads =
        Reads { words: 7_056_400, launch: 1, first: 7_056_400, cells: 4_186_116, timesteps: 2, budget: 1.5 };

    fn reads(number: f64) -> GivenRow {
        GivenRow { reads: Some(number), ..GivenRow::default() }
    }

    fn time(numbers: &[f64], ratio: Option<f64>) -> GivenRow {
        GivenRow { ms: numbers.first().copied(), numbers: numbers.to_vec(), ratio, ..GivenRow::default() }
    }

    fn judged(rows: &[GivenRow], ship: &str) -> Check {
        answer(Some(&Given { rows: rows.to_vec(), ship: ship.to_owned() }), Some(&READS), 2048, true)
    }

    #[test]
    fn the_programs_own_rows_agree() {
        let check = judged(&[reads(0.844), time(&[0.141, 0.5], Some(0.5))], "Never.");
        assert_eq!((check.status, check.details.len()), (Status::Pass, 2), "{check:?}");
    }

    #[test]
    fn the_lessons_columns_agree() {
        let check = judged(&[reads(0.84), time(&[0.3, 111.8, 46.0], None)], "When it wins.");
        assert_eq!(check.status, Status::Pass, "{check:?}");
    }

    #[test]
    fn a_count_a_launch_is_told_apart_from_a_wrong_one() {
        let first = |number| judged(&[reads(number), time(&[0.3], None)], "Never.").details[0].clone();
        assert!(first(1.69).contains("per cell and launch"));
        assert!(first(1.33).contains("measured were 0.843"));
    }

    #[test]
    fn a_bandwidth_that_does_not_follow_from_the_time_is_told() {
        let check = judged(&[reads(0.84), time(&[0.3, 500.0, 46.0], None)], "Never.");
        assert!(check.status == Status::Warn && check.details[0].contains("add up"), "{check:?}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let check = judged(&[reads(0.84)], " ");
        assert_eq!(check.status, Status::Warn);
        assert_eq!(check.details.len(), 2);
        assert_eq!(answer(None, Some(&READS), 2048, true).status, Status::Warn);
        assert_eq!(answer(Some(&Given::default()), None, 2048, true).status, Status::Warn);
    }

    #[test]
    fn a_time_is_asked_only_of_who_can_measure_it() {
        let given = Given { rows: vec![reads(0.84)], ship: "Never.".to_owned() };
        let of = |timed| answer(Some(&given), Some(&READS), 2048, timed);
        assert_eq!(of(true).status, Status::Warn);
        let without = of(false);
        assert!(without.status == Status::Pass && without.details[1].contains("leave its row out"), "{without:?}");
    }

    #[test]
    fn odd_numbers_are_no_trouble() {
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            judged(&[reads(odd), time(&[odd, odd, odd], None)], "x");
        }
    }
}
