//! What an instructor reads when a batch is done. Pure.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table, presets};

use super::duplicates::Likeness;
use super::summary::{Row, Summary};
use crate::judge::plan::Scope;
use crate::report::escape;
use crate::verdict::Verdict;

/// Learners of a group, and names of what was ignored, that are told.
const SHOWN: usize = 8;
/// Columns of a table, whatever the terminal says it has.
const WIDTH: u16 = 100;

/// How the batch went, besides what it came to.
#[derive(Clone, Debug)]
pub struct Course {
    /// The folder of results, as it was given.
    pub out: String,
    /// Submissions graded in this run.
    pub graded: usize,
    /// Submissions that it did not come to.
    pub left: usize,
    /// Seconds.
    pub took: f64,
    /// What was written there.
    pub products: Vec<String>,
    /// From how many folders reports were put together, when nothing was graded.
    pub merged: Option<usize>,
    /// Whose reports were moved out of the way, because they are nobody's in the class.
    pub aside: Vec<String>,
}

/// The end of a batch on the terminal.
pub fn render(summary: &Summary, course: &Course) -> String {
    let counts = &summary.counts;
    let mut text = format!("\n{}: {} passed", submissions(counts.submissions), counts.pass);
    for (count, word) in [(counts.fail, "failed"), (counts.ungraded, "ungraded"), (counts.not_graded, "not graded yet")]
    {
        if count > 0 || word == "failed" {
            write!(text, ", {count} {word}").ok();
        }
    }
    let kept = counts.submissions - counts.not_graded - course.graded.min(counts.submissions - counts.not_graded);
    let earlier = if kept > 0 { format!(", {kept} known from before") } else { String::new() };
    match course.merged {
        Some(1) => writeln!(text, "\nreports of one folder").ok(),
        Some(folders) => writeln!(text, "\nreports of {folders} folders").ok(),
        None => writeln!(text, "\n{} graded in {}{earlier}", course.graded, duration(course.took)).ok(),
    };
    if summary.submissions.iter().any(|row| row.scope == Some(Scope::Quick)) {
        text.push_str("quick: the thousand timesteps ran on a smaller grid than the lesson's\n");
    }
    if !summary.failing_checks.is_empty() {
        text.push_str("\nFailed most:\n");
        let rows = summary.failing_checks.iter().map(|failing| {
            [failing.check.name().to_owned(), failing.submissions.to_string(), failed_by(summary, failing.check)]
        });
        text.push_str(&table(rows));
    }
    let of = |wanted: fn(&Row) -> bool| summary.submissions.iter().filter(move |row| wanted(row));
    if counts.ungraded > 0 {
        text.push_str("\nUngraded, which is never the learner's fault (--retry-ungraded grades them again, where the reason is gone):\n");
        let rows = of(|row| row.verdict == Some(Verdict::Ungraded));
        text.push_str(&table(
            rows.map(|row| [row.learner.clone(), shown(row.reason.as_deref().unwrap_or("no reason given"))]),
        ));
    }
    if course.merged.is_some() && counts.not_graded > 0 {
        let missing: Vec<String> = of(|row| row.verdict.is_none()).map(|row| row.learner.clone()).collect();
        writeln!(text, "\nNot graded yet: {}", some_of(&missing)).ok();
    }
    if summary.submissions.iter().any(|row| row.note.is_some()) {
        text.push_str("\nTo know about:\n");
        let rows = of(|row| row.note.is_some());
        text.push_str(&table(rows.map(|row| [row.learner.clone(), shown(row.note.as_deref().unwrap_or_default())])));
    }
    if !summary.groups.is_empty() {
        text.push_str("\nAlike, for you to look at:\n");
        let rows = summary.groups.iter().map(|group| {
            let why = match group.kind {
                Likeness::SameBytes => "same file",
                Likeness::SameKernel => "same kernel but for names, constants outside it and comments",
            };
            [format!("group {}", group.number), why.to_owned(), some_of(&group.learners)]
        });
        text.push_str(&table(rows));
    }
    text.push('\n');
    if !summary.ignored.is_empty() {
        writeln!(text, "ignored   {}", some_of(&summary.ignored)).ok();
    }
    if !course.aside.is_empty() {
        let why = if course.merged.is_some() { "no report in these folders" } else { "no longer in the class" };
        writeln!(text, "earlier   {}: {why}, moved to {}/earlier/", some_of(&course.aside), shown(&course.out)).ok();
    }
    writeln!(text, "reports   {}/reports/", shown(&course.out)).ok();
    if !course.products.is_empty() {
        writeln!(
            text,
            "summary   {}",
            course.products.iter().map(|name| format!("{}/{name}", shown(&course.out))).collect::<Vec<_>>().join(", ")
        )
        .ok();
    }
    if course.left > 0 {
        let left = submissions(course.left);
        writeln!(text, "\nInterrupted with {left} left to grade. The same command goes on from here.").ok();
    }
    text
}

/// The last sentence of a batch that found no room for its results.
pub fn no_room(out: &str, written: usize, of: usize) -> String {
    let out = shown(out);
    format!(
        "heat-grader: the disk with {out} is full; {written} of {of} reports are there and whole, and with more room the same command goes on from them\n"
    )
}

/// `1 submission`, `20 submissions`.
pub fn submissions(count: usize) -> String {
    format!("{count} submission{}", if count == 1 { "" } else { "s" })
}

fn failed_by(summary: &Summary, check: crate::verdict::CheckId) -> String {
    let learners = summary.submissions.iter().filter(|row| row.failing_check == Some(check));
    some_of(&learners.map(|row| row.learner.clone()).collect::<Vec<_>>())
}

/// The first few names, and how many more there are.
fn some_of(names: &[String]) -> String {
    let mut text = names.iter().take(SHOWN).map(|name| shown(name)).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        write!(text, " and {} more", names.len() - SHOWN).ok();
    }
    text
}

fn shown(text: &str) -> String {
    escape::line(text)
}

/// `41 s`, `12 min 5 s`.
pub fn duration(seconds: f64) -> String {
    let seconds = seconds.round().max(0.0) as u64;
    match seconds {
        0..100 => format!("{seconds} s"),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

fn table<const COLUMNS: usize>(rows: impl Iterator<Item = [String; COLUMNS]>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    rows.for_each(|row| {
        table.add_row(row);
    });
    table.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}
