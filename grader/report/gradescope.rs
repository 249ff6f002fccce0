//! A report as Gradescope's results.json: one test a check, fields as its autograder specification names them.
//!
//! A submission that could not be graded has no results.json: Gradescope then shows that the autograder failed, which
//! nobody takes for a zero. All text is `text`, so that nothing of a learner's is read as HTML or Markdown.

use serde::Serialize;

use super::Report;
use super::text::{self, Help};
use crate::points::Points;
use crate::verdict::{Check, Status, Verdict};

/// The file, indented, with a final newline; `None` when there is no verdict. `source` is heat.cu's text.
pub fn render(report: &Report, source: Option<&str>, points: &Points) -> anyhow::Result<Option<String>> {
    results(report, source, points).map(|results| Ok(serde_json::to_string_pretty(&results)? + "\n")).transpose()
}

#[derive(Serialize)]
struct Results<'a> {
    score: f64,
    /// Seconds.
    execution_time: f64,
    /// The report as a learner reads it.
    output: String,
    output_format: Format,
    visibility: Visibility,
    /// What run_autograder printed is for the instructor.
    stdout_visibility: Visibility,
    tests: Vec<Test<'a>>,
    extra_data: Extra<'a>,
}

#[derive(Serialize)]
struct Test<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_score: Option<f64>,
    /// Left out for a check that was not made: it neither passed nor failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<TestStatus>,
    name: &'a str,
    number: String,
    output: String,
    output_format: Format,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<&'static str>,
    visibility: Visibility,
}

/// For the instructor's own scripts; Gradescope only keeps it.
#[derive(Serialize)]
struct Extra<'a> {
    verdict: Verdict,
    failing_check: Option<&'static str>,
    engine: Option<&'a str>,
    seed: Option<u64>,
    sha256: Option<&'a str>,
    words_per_cell_step: Option<f64>,
    grader: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    Text,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Visibility {
    Visible,
    Hidden,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum TestStatus {
    Passed,
    Failed,
}

fn results<'a>(report: &'a Report, source: Option<&str>, points: &Points) -> Option<Results<'a>> {
    let score = points.score(report.verdict, &report.checks)?;
    let sha256 = report.submission.as_ref().and_then(|submission| submission.sha256.as_deref());
    Some(Results {
        score,
        execution_time: report.durations.total,
        output: anstream::adapter::strip_str(&text::render_with(report, source, Help::None)).to_string(),
        output_format: Format::Text,
        visibility: Visibility::Visible,
        stdout_visibility: Visibility::Hidden,
        tests: report.checks.iter().enumerate().map(|(at, check)| test(at, check, report, points)).collect(),
        extra_data: Extra {
            verdict: report.verdict,
            failing_check: report.failing_check.map(|id| id.name()),
            engine: report.engine.as_deref(),
            seed: report.seed,
            sha256,
            words_per_cell_step: report.reads.as_ref().map(|reads| reads.per_cell_step),
            grader: &report.environment.grader,
        },
    })
}

fn test<'a>(at: usize, check: &'a Check, report: &Report, points: &Points) -> Test<'a> {
    let status = match check.status {
        Status::Fail if check.id.gates(report.strict) => Some(TestStatus::Failed),
        Status::Pass | Status::Warn | Status::Fail => Some(TestStatus::Passed),
        Status::Skip => None,
    };
    let warns = matches!((check.status, &status), (Status::Warn, _) | (Status::Fail, Some(TestStatus::Passed)));
    let compiler = report.compiler_lines(check);
    let place = check.place.filter(|_| compiler.is_empty()).map(|place| format!("heat.cu:{}", place.line));
    let cause = report.cause_line(check.id);
    let lines = std::iter::once(&check.summary).chain(&check.details).chain(&compiler).chain(&cause).chain(&place);
    Test {
        score: points.earned_by(check),
        max_score: points.of_check(check.id),
        status,
        name: check.id.name(),
        number: (at + 1).to_string(),
        output: lines.map(String::as_str).collect::<Vec<_>>().join("\n"),
        output_format: Format::Text,
        tags: if warns { vec!["warning"] } else { Vec::new() },
        visibility: Visibility::Visible,
    }
}
