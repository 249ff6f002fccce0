//! What a learner reads: one line a check, the first failure explained, one line of figures, the verdict.
//!
//! The text carries ANSI colours; print it through `anstream`, which takes them out where they are not wanted. Every
//! line of learner's text (source, compiler messages that quote it, what the kernel printed) is escaped and stands
//! behind a bar, so that none of it can pass for the grader's words, nor for a command to GitHub where that keeps the log.

use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::wrap::{WIDTH, cut, wrap, wrapped};
use super::{Diagnostic, Report};
use super::{escape, github, hint, sketch, trade};
use crate::execute::Place;
use crate::exit_code::ExitCode;
use crate::explain;
use crate::judge::timing;
use crate::verdict::{Check, CheckId, Status, Verdict};

/// Columns before a check's summary.
const INDENT: usize = 14;
/// Lines of source shown before and after the one in question.
const AROUND: u32 = 2;
/// Sentences of evidence shown.
const EVIDENCE: usize = 3;
/// Compiler messages shown.
const MESSAGES: usize = 4;
/// Lines shown of the learner's sentence.
const SHIP: usize = 6;
/// Lines shown of what the kernel printed.
const PRINTED: usize = 5;

/// The report as text, with ANSI colours. `source` is heat.cu's text, for the excerpt.
pub fn render(report: &Report, source: Option<&str>) -> String {
    render_with(report, source, Help::Named)
}

/// What is said beyond the first failure and its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// Nothing: whoever reads it cannot type a command.
    None,
    /// The commands that say more.
    Named,
    /// Which way to go, the second stage of help as the lesson has it.
    Hint,
}

/// The same with other help.
pub fn render_with(report: &Report, source: Option<&str>, help: Help) -> String {
    if let (Some(error), true) = (&report.error, report.exit_code == ExitCode::Usage as u8) {
        return github::harmless(&wrapped(&format!("heat-grader: {error}"), 0));
    }
    let mut text = heading(report);
    if let Some(error) = &report.error {
        text.push_str(&wrapped(&format!("could not grade: {error}"), 0));
    }
    text.push_str(&check_lines(report));
    if let Some(check) = report.failing_check.and_then(|id| report.checks.iter().find(|check| check.id == id)) {
        text.push_str(&explanation(check, report, source));
        text.push_str(&beside(check, report, source));
        text.push_str(&first_cause(report, help));
        text.push_str(&second_stage(report, check, help));
    }
    text.push_str(&remarks(report));
    text.push_str(&sanitizer(report));
    text.push_str(&printed(&report.output));
    text.push_str(&told_trade(report));
    text.push_str(&advice(report));
    text.push_str(&closing(report));
    github::harmless(&text)
}

/// What goes before a report that an earlier check made of the same submission, `age` ago.
pub fn unchanged(age: Duration) -> String {
    let counted = |number: u64, unit: &str| format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" });
    let age = match age.as_secs() {
        0..60 => "a moment ago".to_owned(),
        seconds @ 60..3600 => counted(seconds / 60, "minute"),
        seconds => counted(seconds / 3600, "hour"),
    };
    let said = format!("this very file was checked {age}, with this result; --fresh checks again");
    format!("{}\n", wrapped(&said, 0))
}

/// What to mend in main(), where the text makes it certain.
fn remarks(report: &Report) -> String {
    let mut text = String::new();
    for remark in &report.remarks {
        let said = format!("heat.cu:{}: {} (`{}`)", remark.line, remark.sentence, remark.explain);
        text.push_str(&wrapped(&said, 2));
    }
    if text.is_empty() { text } else { format!("\nIn the program around the kernel, which is never run here:\n{text}") }
}

/// What could be better about a kernel whose words were counted.
fn advice(report: &Report) -> String {
    let said = |advice: &super::Advice| wrapped(&format!("{} (`{}`)", advice.sentence, advice.explain), 2);
    let text: String = report.advice.iter().map(said).collect();
    if text.is_empty() { text } else { format!("\nAdvice, on which no verdict rests:\n{text}") }
}

/// One line a tool, or why there is none.
fn sanitizer(report: &Report) -> String {
    let mut text = String::new();
    for ran in report.sanitizer.iter().flatten() {
        let said = match ran.errors {
            Some(0) => "nothing found",
            _ => &ran.message,
        };
        text.push_str(&wrapped(&format!("{}: {said}", ran.tool.name()), 2));
    }
    if !text.is_empty() {
        return format!("\ncompute-sanitizer, on small grids:\n{text}");
    }
    let reason = report.environment.sanitizer_reason.as_ref();
    reason.map_or(text, |reason| format!("\n{}", wrapped(&format!("compute-sanitizer did not run: {reason}"), 0)))
}

fn heading(report: &Report) -> String {
    let Some(submission) = &report.submission else { return String::new() };
    let shown = if submission.path == "." { &submission.name } else { &submission.path };
    let mut parts = vec![escape::line(shown)];
    parts.extend(engine(report).map(|engine| format!("{engine} engine")));
    parts.extend(report.scope.map(|scope| scope.name().to_owned()));
    parts.extend(report.seed.map(|seed| format!("seed {seed}")));
    let mut text = format!("{}\n", parts.join(" · "));
    if let Some(gpu) = &report.environment.gpu {
        text.push_str(&wrapped(&format!("on {gpu}"), 0));
    }
    if let Some(reason) = &report.environment.engine_reason {
        text.push_str(&wrapped(&format!("engine cpu, because {reason}"), 0));
    }
    if let Some(words) = report.environment.sandbox.and_then(|sandbox| sandbox.words()) {
        text.push_str(&wrapped(&words, 0));
    }
    text + "\n"
}

/// The engine that ran the kernel, or would have; nothing when the grade ended before that was settled.
fn engine(report: &Report) -> Option<&str> {
    let environment = &report.environment;
    let settled = environment.engine_reason.is_some() || environment.host_compiler.is_some();
    let chosen = if environment.gpu.is_some() { Some("cuda") } else { settled.then_some("cpu") };
    report.engine.as_deref().or(chosen)
}

/// check50's faces, and the colour of each.
fn face(status: Status) -> (&'static str, Style) {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match status {
        Status::Pass => (":)", colour(AnsiColor::Green)),
        Status::Fail => (":(", colour(AnsiColor::Red).bold()),
        Status::Warn => (":/", colour(AnsiColor::Yellow)),
        Status::Skip => (":|", Style::new().dimmed()),
    }
}

/// A line a check; what was not reached, one after the other for the same reason, shares one.
fn check_lines(report: &Report) -> String {
    let mut text = String::new();
    let alike = |one: &Check, next: &Check| {
        one.status == Status::Skip && next.status == Status::Skip && one.summary == next.summary
    };
    for checks in report.checks.chunk_by(alike) {
        match checks {
            [check] => text.push_str(&check_line(check, report.verdict == Verdict::Fail)),
            _ => {
                let (face, style) = face(Status::Skip);
                let names: Vec<&str> = checks.iter().map(|check| check.id.name()).collect();
                let summary = checks.first().map_or("", |check| &check.summary);
                let lines = wrapped(&format!("{} - {summary}", names.join(", ")), 3);
                text.push_str(&format!("{style}{face}{style:#} {}", lines.trim_start()));
            }
        }
    }
    text
}

fn check_line(check: &Check, failed: bool) -> String {
    let (face, style) = face(check.status);
    let summary = wrapped(&check.summary, INDENT);
    let mut text = format!("{style}{face}{style:#} {:<10} {}", check.id.name(), summary.trim_start());
    let told = matches!(check.id, CheckId::Memory | CheckId::Race | CheckId::Answer);
    if told && check.status == Status::Warn && !failed {
        // Nothing failed, so no paragraph further down says more.
        check.details.iter().for_each(|detail| text.push_str(&wrapped(detail, INDENT)));
    }
    text
}

fn explanation(check: &Check, report: &Report, source: Option<&str>) -> String {
    let bold = Style::new().bold();
    let mut text = format!("\n{bold}{}{bold:#}: {}\n", check.id.name(), asked(check.id));
    for detail in &check.details {
        text.push_str(&wrapped(detail, 2));
    }
    if check.id == CheckId::Compile {
        text.push_str(&messages(&report.diagnostics));
    }
    if let (Some(place), Some(source)) = (check.place, source) {
        text.push_str(&excerpt(source, place));
    }
    if report.failing_check == Some(check.id) {
        text.push_str(&wrong_cells(check.id, report));
    }
    text
}

/// The first wrong cell, drawn where a check of the grids failed.
fn wrong_cells(id: CheckId, report: &Report) -> String {
    let of_grids = matches!(id, CheckId::Values | CheckId::Ring | CheckId::Portable);
    let Some(sketch) = of_grids.then(|| sketch::of(report)).flatten() else { return String::new() };
    let drawn: String = sketch.lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{}{drawn}", wrapped(&sketch.caption, 2))
}

/// The likeliest cause with what shows it; nothing when none is certain.
fn first_cause(report: &Report, help: Help) -> String {
    let Some(cause) = report.causes.first() else { return String::new() };
    let bold = Style::new().bold();
    let sentence = wrapped(&format!("Cause: {}", cause.sentence), 2);
    let mut text = format!("\n{}", sentence.replacen("Cause:", &format!("{bold}Cause:{bold:#}"), 1));
    // What a check's own line says is not said again.
    let said = |evidence: &String| report.checks.iter().any(|check| check.summary == evidence.trim_end_matches('.'));
    for evidence in cause.evidence.iter().filter(|evidence| !said(evidence)).take(EVIDENCE) {
        let lines = wrapped(evidence, 4);
        text.push_str(&format!("  - {}", lines.trim_start()));
    }
    if help != Help::None {
        text.push_str(&format!("  `{}` tells more.\n", cause.explain));
    }
    text
}

/// Which way to go, or how to get to know it.
fn second_stage(report: &Report, failing: &Check, help: Help) -> String {
    match help {
        Help::None => return String::new(),
        Help::Named => {
            // Right after the line that names a cause's page, or by itself.
            let above = if report.causes.is_empty() { "\n" } else { "" };
            return format!("{above}{}", wrapped("The same check with `--hint` says which way to go.", 2));
        }
        Help::Hint => {}
    }
    // The writer of a wrong cell is known where there was one.
    let unwritten = report.first_mismatch.as_ref().is_some_and(|first| first.got.0.is_nan() && first.block.is_none());
    let of_check = || hint::of_check(failing.id, unwritten).to_owned();
    let said = report.causes.first().map_or_else(of_check, |cause| explain::hint(cause.code));
    let bold = Style::new().bold();
    format!("\n{}", wrapped(&format!("Hint: {said}"), 2).replacen("Hint:", &format!("{bold}Hint:{bold:#}"), 1))
}

/// A failed check that may explain the failing one: a race first, because it leaves words unwritten as well.
fn beside(failing: &Check, report: &Report, source: Option<&str>) -> String {
    let ids: &[CheckId] = match failing.id {
        CheckId::Values | CheckId::Ring => &[CheckId::Race, CheckId::Memory],
        CheckId::Memory => &[CheckId::Race],
        _ => &[],
    };
    let failed = |id: &CheckId| report.checks.iter().find(|check| check.id == *id && check.status == Status::Fail);
    ids.iter().find_map(failed).map_or_else(String::new, |check| explanation(check, report, source))
}

/// What a check asks of the kernel, in the lesson's words.
fn asked(id: CheckId) -> &'static str {
    match id {
        CheckId::Source => "a folder with a readable heat.cu, an archive of one, or a .cu file",
        CheckId::Compile => "heat.cu must compile with nvcc",
        CheckId::Kernel => "one kernel of your own that takes (const float*, float*, int, float)",
        CheckId::Launch => "a launch that the grader can work out and the hardware can take",
        CheckId::Values => "each launch must advance every cell by two timesteps",
        CheckId::Ring => "the ring keeps exactly the temperature it started with",
        CheckId::Memory => "threads stay inside the grids and arrays and use only what was written",
        CheckId::Race => "no thread may depend on which other thread comes first",
        CheckId::Reads => "a two-step tile reads global memory once for two timesteps",
        CheckId::Portable => "the kernel is given n and must heed it at any size",
        CheckId::Time => "time a timestep, against heatStepTiled",
        CheckId::Answer => "two new result rows and one sentence",
    }
}

/// The source line in question with a few around it.
fn excerpt(source: &str, place: Place) -> String {
    let first = place.line.saturating_sub(AROUND).max(1);
    let mut text = String::from("\n");
    let lines = source.lines().enumerate().skip(first as usize - 1).take((place.line + AROUND + 1 - first) as usize);
    for (at, line) in lines {
        let number = at as u32 + 1;
        let mark = if number == place.line { '>' } else { ' ' };
        text.push_str(&format!("{mark} {number:>5} | {}\n", cut(&plain(line), WIDTH - 10)));
    }
    text
}

/// A source line as it may be shown: tabs as spaces, the rest harmless.
fn plain(line: &str) -> String {
    escape::line(&line.replace('\t', "    "))
}

fn messages(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics.iter().filter(|said| said.severity == "error").take(MESSAGES) {
        let place = diagnostic.line.map_or_else(|| "heat.cu".to_owned(), |line| format!("heat.cu:{line}"));
        let said = format!("{place}: {}", escape::line(&diagnostic.message));
        for line in wrap(&said, WIDTH - 4) {
            text.push_str(&format!("  | {line}\n"));
        }
    }
    text
}

fn printed(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    if lines.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nYour code printed:\n");
    for line in lines.iter().take(PRINTED) {
        text.push_str(&format!("  | {}\n", cut(&plain(line), WIDTH - 4)));
    }
    if lines.len() > PRINTED {
        text.push_str(&format!("  ({} more lines in the JSON report)\n", lines.len() - PRINTED));
    }
    text
}

/// What two timesteps a launch cost, and the learner's own sentence about it.
fn told_trade(report: &Report) -> String {
    let told = trade::sentences(report);
    if told.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}", wrapped(&format!("The trade: {}", told.join(" ")), 0));
    if let Some(ship) = trade::ship(report) {
        text.push_str("You would ship it:\n");
        text.extend(wrap(&escape::line(ship), WIDTH - 4).into_iter().take(SHIP).map(|line| format!("  | {line}\n")));
    }
    text
}

fn closing(report: &Report) -> String {
    let mut text = String::from("\n");
    if let Some(timing) = &report.timing {
        text.extend(timing::table(timing).into_iter().map(|line| line + "\n"));
    }
    if let Some(reads) = &report.reads {
        text.push_str(&format!("{:.3} words read per cell-step, budget {}\n", reads.per_cell_step, reads.budget));
    }
    let (word, (_, style)) = match report.verdict {
        Verdict::Pass => ("PASSED", face(Status::Pass)),
        Verdict::Fail => ("FAILED", face(Status::Fail)),
        Verdict::Ungraded => ("UNGRADED", face(Status::Warn)),
    };
    let why = match (report.verdict, report.failing_check) {
        (Verdict::Fail, Some(id)) => format!(" at `{}`", id.name()),
        (Verdict::Ungraded, _) => ": could not be judged here; this does not count against you".to_owned(),
        _ => String::new(),
    };
    text.push_str(&format!("{style}{word}{style:#}{why}\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_result_says_its_age_and_how_to_get_another() {
        let said = |seconds| unchanged(Duration::from_secs(seconds)).replace('\n', " ");
        assert_eq!(said(59), "this very file was checked a moment ago, with this result; --fresh checks again  ");
        for (seconds, age) in
            [(60, "1 minute ago"), (7199, "1 hour ago"), (7200, "2 hours ago"), (179, "2 minutes ago")]
        {
            assert!(said(seconds).contains(age), "{}", said(seconds));
        }
    }

    #[test]
    fn a_place_outside_the_source_shows_what_there_is() {
        assert_eq!(excerpt("one\ntwo", Place { line: 2, column: 0 }), "\n      1 | one\n>     2 | two\n");
        assert_eq!(excerpt("one", Place { line: 900, column: 0 }), "\n");
        assert_eq!(excerpt("one", Place { line: 0, column: 0 }), "\n      1 | one\n");
    }
}
