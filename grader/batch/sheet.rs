//! `summary.csv`: the summary's rows for a spreadsheet. Pure.
//!
//! RFC 4180, in UTF-8 with its mark, without which Excel takes names for another encoding. A cell that a spreadsheet would
//! take for a formula gets an apostrophe in front: names and kernels are the learner's to choose.

use anyhow::Result;

use super::summary::{Row, Summary};
use crate::judge::plan::Scope;
use crate::verdict::{CheckId, Verdict};

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a spreadsheet begins a formula with, where text stands: the full-width forms too.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

const HEADER: [&str; 19] = [
    "learner",
    "verdict",
    "failing_check",
    "reason",
    "cause",
    "note",
    "warnings",
    "reads_per_cell_step",
    "ms_per_timestep",
    "ratio_to_tiled",
    "engine",
    "scope",
    "kernel",
    "same_bytes",
    "same_kernel",
    "path",
    "report",
    "sha256",
    "seconds",
];

/// The sheet's bytes.
pub fn render(summary: &Summary) -> Result<Vec<u8>> {
    let mut sheet = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(MARK.to_vec());
    sheet.write_record(HEADER)?;
    for row in &summary.submissions {
        sheet.write_record(cells(row))?;
    }
    sheet.into_inner().map_err(|error| anyhow::anyhow!("{error}"))
}

fn cells(row: &Row) -> [String; 19] {
    let text = |text: &str| plain(text);
    let maybe = |text: &Option<String>| plain(text.as_deref().unwrap_or_default());
    let number = |number: Option<f64>, digits: usize| number.map_or_else(String::new, |n| format!("{n:.digits$}"));
    let group = |number: Option<usize>| number.map_or_else(String::new, |number| format!("group {number}"));
    [
        text(&row.learner),
        verdict(row.verdict).to_owned(),
        row.failing_check.map_or("", CheckId::name).to_owned(),
        maybe(&row.reason),
        maybe(&row.cause),
        maybe(&row.note),
        row.warnings.iter().map(|check| check.name()).collect::<Vec<_>>().join(" "),
        number(row.reads, 4),
        number(row.ms, 5),
        number(row.ratio, 4),
        maybe(&row.engine),
        row.scope.map_or("", Scope::name).to_owned(),
        maybe(&row.kernel),
        group(row.same_bytes),
        group(row.same_kernel),
        text(&row.path),
        maybe(&row.report),
        maybe(&row.sha256),
        number(row.seconds, 1),
    ]
}

fn plain(text: &str) -> String {
    if text.starts_with(FORMULA) { format!("'{text}") } else { text.to_owned() }
}

/// A verdict in one word.
pub fn verdict(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Pass) => "pass",
        Some(Verdict::Fail) => "fail",
        Some(Verdict::Ungraded) => "ungraded",
        None => "not graded",
    }
}
