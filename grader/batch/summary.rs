//! What a batch came to, in plain fields: `summary.json`. Pure. Its fields are a contract, version [`SCHEMA`];
//! `summary-1.json` beside this file is its JSON Schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duplicates::{Group, Likeness, Prints, groups};
use super::out::Out;
use super::products::Entry;
use crate::judge::plan::Scope;
use crate::report::{Report, escape};
use crate::verdict::{CheckId, Status, Verdict};

/// The version of the summary's JSON. A new field keeps it; a removed or changed one raises it.
pub const SCHEMA: u32 = 1;

/// What a batch came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Version of this format: 1.
    pub schema: u32,
    /// Version of the grader.
    pub grader: String,
    /// The folder or archive that was graded, as it was given.
    pub folder: String,
    /// What was asked for; each submission has what was done.
    pub scope: Scope,
    /// Whether `portable` gates.
    pub strict: bool,
    /// Whether every submission has its report.
    pub complete: bool,
    pub counts: Counts,
    /// How many submissions each check failed, the most frequent first. Only the check that decided counts.
    pub failing_checks: Vec<FailingCheck>,
    /// By learner.
    pub submissions: Vec<Row>,
    /// Submissions that are alike.
    pub groups: Vec<Group>,
    /// What lay beside the submissions and is nobody's.
    pub ignored: Vec<String>,
}

/// Submissions by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    pub submissions: usize,
    pub pass: usize,
    pub fail: usize,
    pub ungraded: usize,
    /// Not reached before the batch was interrupted.
    pub not_graded: usize,
}

/// How many submissions failed at a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailingCheck {
    pub check: CheckId,
    pub submissions: usize,
}

/// One submission. All but `learner` and `path` is null or empty for one that was not graded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Unique; names the report.
    pub learner: String,
    /// Where the submission was found, within an archive too.
    pub path: String,
    /// The report's file, from the folder of results.
    pub report: Option<String>,
    pub verdict: Option<Verdict>,
    /// The first gating check that failed.
    pub failing_check: Option<CheckId>,
    /// Why it failed or is ungraded, in one sentence.
    pub reason: Option<String>,
    /// Code of the likeliest cause; null when none is certain.
    pub cause: Option<String>,
    /// What there is to know about the report: that grading again came to nothing, say.
    pub note: Option<String>,
    /// Checks that warn.
    pub warnings: Vec<CheckId>,
    /// `cpu` or `cuda`; null when nothing was run.
    pub engine: Option<String>,
    /// `quick`: the thousand timesteps ran on a smaller grid.
    pub scope: Option<Scope>,
    /// Words read from global memory per cell-step.
    pub reads: Option<f64>,
    /// Milliseconds a timestep; null without a GPU, as is the ratio.
    pub ms: Option<f64>,
    /// The time a timestep over heatStepTiled's.
    pub ratio: Option<f64>,
    /// The kernel's name.
    pub kernel: Option<String>,
    /// SHA-256 of heat.cu.
    pub sha256: Option<String>,
    /// What the initial grids were drawn from.
    pub seed: Option<u64>,
    /// Number of its group with the same bytes.
    pub same_bytes: Option<usize>,
    /// Number of its group with the same kernel.
    pub same_kernel: Option<usize>,
    /// Wall time of the grade.
    pub seconds: Option<f64>,
}

/// What the summary says besides the entries.
#[derive(Clone, Debug)]
pub struct Facts {
    pub folder: String,
    pub scope: Scope,
    pub strict: bool,
    pub ignored: Vec<String>,
}

/// Adds up the entries, which are in the learners' order.
pub fn of(entries: &[Entry], facts: &Facts) -> Summary {
    let prints: Vec<(&str, &Prints)> = entries.iter().map(|entry| (entry.learner.as_str(), &entry.prints)).collect();
    let groups = groups(&prints);
    let submissions: Vec<Row> = entries.iter().map(|entry| row(entry, &groups)).collect();
    let count = |verdict| submissions.iter().filter(|row| row.verdict == verdict).count();
    let counts = Counts {
        submissions: submissions.len(),
        pass: count(Some(Verdict::Pass)),
        fail: count(Some(Verdict::Fail)),
        ungraded: count(Some(Verdict::Ungraded)),
        not_graded: count(None),
    };
    let mut failing: BTreeMap<CheckId, usize> = BTreeMap::new();
    submissions.iter().filter_map(|row| row.failing_check).for_each(|check| *failing.entry(check).or_default() += 1);
    let mut failing_checks: Vec<_> =
        failing.into_iter().map(|(check, submissions)| FailingCheck { check, submissions }).collect();
    failing_checks.sort_by_key(|failing| std::cmp::Reverse(failing.submissions));
    Summary {
        schema: SCHEMA,
        grader: env!("CARGO_PKG_VERSION").to_owned(),
        folder: escape::line(&facts.folder),
        scope: facts.scope,
        strict: facts.strict,
        complete: counts.not_graded == 0,
        counts,
        failing_checks,
        submissions,
        groups,
        ignored: facts.ignored.iter().map(|name| escape::line(name)).collect(),
    }
}

fn row(entry: &Entry, groups: &[Group]) -> Row {
    let group = |kind| {
        let group = groups.iter().find(|group| group.kind == kind && group.learners.contains(&entry.learner));
        group.map(|group| group.number)
    };
    let row = Row {
        learner: entry.learner.clone(),
        path: escape::line(&entry.path),
        note: entry.note.clone(),
        same_bytes: group(Likeness::SameBytes),
        same_kernel: group(Likeness::SameKernel),
        ..Row::default()
    };
    let Some(report) = &entry.report else { return row };
    let submission = report.submission.as_ref();
    let with = |status| report.checks.iter().filter(move |check| check.status == status).map(|check| check.id);
    Row {
        report: Some(Out::report_path(&entry.learner)),
        verdict: Some(report.verdict),
        failing_check: report.failing_check,
        reason: reason(report),
        cause: report.causes.first().map(|cause| cause.code.name().to_owned()),
        warnings: with(Status::Warn).collect(),
        engine: report.engine.clone(),
        scope: report.scope,
        reads: report.reads.as_ref().map(|reads| reads.per_cell_step),
        ms: report.timing.as_ref().and_then(|timing| timing.rows.last()).map(|row| row.ms),
        ratio: report.timing.as_ref().map(|timing| timing.ratio),
        kernel: submission.and_then(|submission| submission.kernel.clone()),
        sha256: submission.and_then(|submission| submission.sha256.clone()),
        seed: report.seed,
        seconds: Some(report.durations.total),
        ..row
    }
}

/// Why a submission failed or is ungraded.
fn reason(report: &Report) -> Option<String> {
    let first = |status: Status| {
        let gates = |id: CheckId| id.gates(report.strict);
        report.checks.iter().find(|check| check.status == status && gates(check.id)).map(|check| check.summary.clone())
    };
    match report.verdict {
        Verdict::Pass => None,
        Verdict::Fail => first(Status::Fail),
        Verdict::Ungraded => report.error.clone().or_else(|| first(Status::Skip)),
    }
}

/// The summary as JSON, indented, with a final newline.
pub fn render(summary: &Summary) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(summary)? + "\n")
}

/// The JSON Schema of a summary, indented, with a final newline.
pub fn schema() -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&schemars::schema_for!(Summary))? + "\n")
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
