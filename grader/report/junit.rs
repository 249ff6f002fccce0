//! Reports as JUnit XML, the dialect that Jenkins, GitLab and Azure read: a test suite a submission, a test case a check.
//!
//! A gating check that failed is a `failure`. The check without which there is no verdict is an `error`, which is never
//! the learner's; what was not reached is `skipped`, and a warning is a passed case that says so in its `system-out`.

use std::io;

use anyhow::Result;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::Report;
use crate::verdict::{Check, Status, Verdict};

/// The case of a submission that no check could be made of.
const GRADE: &str = "grade";

/// One report, in a suite named after its submission.
pub fn render_one(report: &Report) -> Result<String> {
    let name = report.submission.as_ref().map_or("heat-grader", |submission| &submission.name);
    render(&[(name, Some(report))])
}

/// Reports as one document, each in a suite of the given name. Where there is no report yet, the suite has one case, which
/// was skipped.
pub fn render(reports: &[(&str, Option<&Report>)]) -> Result<String> {
    let suites: Vec<Suite> = reports.iter().map(|(name, report)| Suite::of(name, *report)).collect();
    let total = |count: fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>().to_string();
    let seconds: f64 = suites.iter().map(Suite::seconds).sum();
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer
        .create_element("testsuites")
        .with_attribute(("name", "heat-grader"))
        .with_attribute(("tests", total(|suite| suite.cases.len()).as_str()))
        .with_attribute(("failures", total(|suite| suite.count(Outcome::Failure)).as_str()))
        .with_attribute(("errors", total(|suite| suite.count(Outcome::Error)).as_str()))
        .with_attribute(("time", format!("{seconds:.3}").as_str()))
        .write_inner_content(|writer| suites.iter().try_for_each(|suite| suite.write(writer)))?;
    Ok(String::from_utf8(writer.into_inner())? + "\n")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failure,
    Error,
    Skipped,
}

struct Suite<'a> {
    name: String,
    report: Option<&'a Report>,
    cases: Vec<Case>,
}

struct Case {
    name: &'static str,
    outcome: Outcome,
    summary: String,
    /// What there is to say beyond the summary; for a passed case, all that there is to say.
    text: String,
}

impl<'a> Suite<'a> {
    fn of(name: &str, report: Option<&'a Report>) -> Self {
        let Some(report) = report else {
            let summary = "not graded yet".to_owned();
            let case = Case { name: GRADE, outcome: Outcome::Skipped, summary, text: String::new() };
            return Self { name: allowed(name), report, cases: vec![case] };
        };
        let unjudged = report.unjudged().map(|check| check.id);
        let mut cases: Vec<Case> =
            report.checks.iter().map(|check| Case::of(check, report, unjudged == Some(check.id))).collect();
        if let (None, Some(reason)) = (unjudged, report.ungraded_because()) {
            cases.push(Case { name: GRADE, outcome: Outcome::Error, summary: reason, text: String::new() });
        }
        Self { name: allowed(name), report: Some(report), cases }
    }

    fn seconds(&self) -> f64 {
        self.report.map_or(0.0, |report| report.durations.total)
    }

    fn count(&self, outcome: Outcome) -> usize {
        self.cases.iter().filter(|case| case.outcome == outcome).count()
    }

    fn write(&self, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
        let count = |outcome| self.count(outcome).to_string();
        let seconds = format!("{:.3}", self.seconds());
        writer
            .create_element("testsuite")
            .with_attribute(("name", self.name.as_str()))
            .with_attribute(("tests", self.cases.len().to_string().as_str()))
            .with_attribute(("failures", count(Outcome::Failure).as_str()))
            .with_attribute(("errors", count(Outcome::Error).as_str()))
            .with_attribute(("skipped", count(Outcome::Skipped).as_str()))
            .with_attribute(("time", seconds.as_str()))
            .write_inner_content(|writer| {
                if let Some(report) = self.report {
                    write_properties(report, writer)?;
                }
                self.cases.iter().try_for_each(|case| case.write(writer, &self.name))?;
                let Some(report) = self.report.filter(|report| !report.output.is_empty()) else { return Ok(()) };
                let printed = report.output.lines().map(|line| format!("  | {line}\n")).collect::<String>();
                element(writer, "system-out", &format!("The submission printed:\n{printed}"))
            })?;
        Ok(())
    }
}

impl Case {
    fn of(check: &Check, report: &Report, unjudged: bool) -> Self {
        let mut lines = check.details.clone();
        lines.extend(report.compiler_lines(check));
        lines.extend(report.cause_lines(check.id));
        // Most sentences name their line themselves.
        let place = check.place.map(|place| format!("heat.cu:{}", place.line));
        let names = |line: &String, place: &String| {
            line.split(place.as_str()).skip(1).any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        let place = place.filter(|place| !lines.iter().chain([&check.summary]).any(|line| names(line, place)));
        lines.extend(place);
        let outcome = match check.status {
            Status::Fail if check.id.gates(report.strict) => Outcome::Failure,
            Status::Skip if unjudged => Outcome::Error,
            Status::Skip => Outcome::Skipped,
            Status::Pass => Outcome::Passed,
            Status::Warn | Status::Fail => {
                lines.insert(0, format!("warning: {}", check.summary));
                Outcome::Passed
            }
        };
        if check.status == Status::Pass {
            lines.insert(0, check.summary.clone());
        }
        Self { name: check.id.name(), outcome, summary: check.summary.clone(), text: lines.join("\n") }
    }

    fn write(&self, writer: &mut Writer<Vec<u8>>, suite: &str) -> io::Result<()> {
        let case =
            writer.create_element("testcase").with_attribute(("name", self.name)).with_attribute(("classname", suite));
        case.write_inner_content(|writer| {
            let message = allowed(&self.summary);
            let (text, message) = (allowed(&self.text), ("message", message.as_str()));
            let named = match self.outcome {
                Outcome::Passed => return element(writer, "system-out", &text),
                Outcome::Skipped => {
                    return writer.create_element("skipped").with_attribute(message).write_empty().map(drop);
                }
                Outcome::Failure => "failure",
                Outcome::Error => "error",
            };
            let failed = writer.create_element(named).with_attribute(message).with_attribute(("type", self.name));
            failed.write_text_content(BytesText::new(&text)).map(drop)
        })?;
        Ok(())
    }
}

/// What was graded, and how: enough to repeat it.
fn write_properties(report: &Report, writer: &mut Writer<Vec<u8>>) -> io::Result<()> {
    let verdict = match report.verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Ungraded => "ungraded",
    };
    let properties = [
        ("verdict", Some(verdict.to_owned())),
        ("engine", report.engine.clone()),
        ("scope", report.scope.map(|scope| scope.name().to_owned())),
        ("seed", report.seed.map(|seed| seed.to_string())),
        ("sha256", report.submission.as_ref().and_then(|submission| submission.sha256.clone())),
        ("words_per_cell_step", report.reads.as_ref().map(|reads| format!("{:.4}", reads.per_cell_step))),
        ("grader", Some(report.environment.grader.clone())),
    ];
    writer.create_element("properties").write_inner_content(|writer| {
        for (name, value) in properties {
            let Some(value) = value else { continue };
            let property = writer.create_element("property").with_attribute(("name", name));
            property.with_attribute(("value", allowed(&value).as_str())).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn element(writer: &mut Writer<Vec<u8>>, name: &str, text: &str) -> io::Result<()> {
    writer.create_element(name).write_text_content(BytesText::new(&allowed(text))).map(drop)
}

/// The text without what XML 1.0 cannot hold, escaped or not (section 2.2, `Char`).
fn allowed(text: &str) -> String {
    let holds = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().filter(holds).collect()
}
