//! The page's words for verdicts, statuses and figures.

use crate::report::Report;
use crate::verdict::{Check, CheckId, Status, Verdict};

use super::safe;

/// A verdict's word; there is none yet where nothing was graded.
pub fn verdict(verdict: impl Into<Option<Verdict>>) -> &'static str {
    match verdict.into() {
        Some(Verdict::Pass) => "passed",
        Some(Verdict::Fail) => "failed",
        Some(Verdict::Ungraded) => "ungraded",
        None => "not graded yet",
    }
}

/// A verdict's class in the stylesheet, and its sign, which says it without colour.
pub fn verdict_sign(verdict: impl Into<Option<Verdict>>) -> (&'static str, &'static str) {
    match verdict.into() {
        Some(Verdict::Pass) => status_sign(Status::Pass),
        Some(Verdict::Fail) => status_sign(Status::Fail),
        Some(Verdict::Ungraded) => ("ungraded", "?"),
        None => ("waiting", "…"),
    }
}

/// A status's word.
pub fn status(status: Status) -> &'static str {
    match status {
        Status::Pass => "passed",
        Status::Fail => "failed",
        Status::Warn => "warned",
        Status::Skip => "not made",
    }
}

/// A status's class in the stylesheet, and its sign.
pub fn status_sign(status: Status) -> (&'static str, &'static str) {
    match status {
        Status::Pass => ("pass", "✓"),
        Status::Fail => ("fail", "✕"),
        Status::Warn => ("warn", "!"),
        Status::Skip => ("skip", "–"),
    }
}

/// The check of that id; reports on nothing have none.
pub fn check(report: &Report, id: CheckId) -> Option<&Check> {
    report.checks.iter().find(|check| check.id == id)
}

/// What decided, in one sentence.
pub fn reason(report: &Report) -> String {
    match report.verdict {
        Verdict::Pass => match &report.reads {
            Some(reads) => format!(
                "{} words read per cell-step, within the budget of {}",
                figure(reads.per_cell_step),
                reads.budget
            ),
            None => "every check that decides was passed".to_owned(),
        },
        Verdict::Fail => {
            let failing = report.failing_check.and_then(|id| check(report, id));
            failing.map_or_else(String::new, |check| safe(&check.summary))
        }
        Verdict::Ungraded => {
            let skipped =
                report.checks.iter().find(|check| check.status == Status::Skip && check.id.gates(report.strict));
            match (&report.error, skipped) {
                (Some(error), _) => safe(error),
                (None, Some(check)) => format!("{}: {}", check.id.name(), safe(&check.summary)),
                (None, None) => "no check was made".to_owned(),
            }
        }
    }
}

/// A figure with the three decimals of the text report.
pub fn figure(value: f64) -> String {
    format!("{value:.3}")
}

/// Words read per cell-step.
pub fn reads(report: &Report) -> Option<f64> {
    report.reads.as_ref().map(|reads| reads.per_cell_step).filter(|reads| reads.is_finite())
}

/// The time over heatStepTiled's.
pub fn ratio(report: &Report) -> Option<f64> {
    report.timing.as_ref().map(|timing| timing.ratio).filter(|ratio| ratio.is_finite())
}

/// `1 learner`, `2 learners`.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", crate::judge::grouped(count as u64), if count == 1 { one } else { many })
}
