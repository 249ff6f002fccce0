//! The lines of heat.cu worth seeing: the kernel, and every line that a check, a hazard or a compiler points at.

use std::collections::{BTreeMap, BTreeSet};

use super::safe;
use crate::report::Report;
use crate::verdict::Status;

/// Lines shown before and after a line in question, and before the kernel's first.
const AROUND: u32 = 3;
/// Most lines of a kernel.
const KERNEL: u32 = 160;
/// Most lines in question.
const MARKS: usize = 12;
/// Most characters of a line.
const WIDTH: usize = 240;

/// One line of source, harmless to show.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// From 1.
    pub number: u32,
    pub text: String,
    /// What is said about it; empty for a line that only stands around.
    pub notes: Vec<String>,
}

/// Runs of consecutive lines, in order.
pub fn excerpt(source: &str, report: &Report) -> Vec<Vec<Line>> {
    let lines: Vec<&str> = source.lines().collect();
    let last = lines.len() as u32;
    let marks = marks(report);
    let mut shown = BTreeSet::new();
    let mut show = |from: u32, to: u32| shown.extend(from.max(1)..=to.min(last));
    let kernel = report.submission.as_ref().and_then(|submission| submission.kernel_line);
    if let Some(first) = kernel.filter(|line| (1..=last).contains(line)) {
        show(first.saturating_sub(AROUND), end_of_body(&lines, first) + 1);
    }
    for line in marks.keys() {
        show(line.saturating_sub(AROUND), line.saturating_add(AROUND));
    }
    let mut runs: Vec<Vec<Line>> = Vec::new();
    for number in shown {
        let notes = marks.get(&number).cloned().unwrap_or_default();
        let line = Line { number, text: shown_text(lines[number as usize - 1]), notes };
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|before| before.number + 1 == number) => run.push(line),
            _ => runs.push(vec![line]),
        }
    }
    runs
}

/// Lines in question and what is said about them, each sentence once.
fn marks(report: &Report) -> BTreeMap<u32, Vec<String>> {
    let troubled = report.checks.iter().filter(|check| matches!(check.status, Status::Fail | Status::Warn));
    let checks =
        troubled.filter_map(|check| Some((check.place?.line, format!("{}: {}", check.id.name(), check.summary))));
    let errors = report.diagnostics.iter().filter(|said| said.severity == "error");
    let errors = errors.filter_map(|said| Some((said.line?, format!("{}: {}", said.tool, said.message))));
    let hazards = report.hazards.iter().flat_map(|hazard| {
        let here = hazard.line.map(|line| (line, hazard.message.clone()));
        let other = hazard.other.as_ref().and_then(|other| other.line);
        let there = other.filter(|line| hazard.line != Some(*line));
        here.into_iter().chain(there.map(|line| (line, format!("the other side: {}", hazard.message))))
    });
    let mut marks: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (line, words) in checks.chain(errors).chain(hazards) {
        if !marks.contains_key(&line) && marks.len() == MARKS {
            continue;
        }
        let notes = marks.entry(line).or_default();
        let words = safe(&words);
        // A check's summary tells its first hazard already.
        if notes.len() < 2 && !notes.iter().any(|note| note.contains(&words) || words.contains(note.as_str())) {
            notes.push(words);
        }
    }
    marks
}

fn shown_text(line: &str) -> String {
    let line = safe(&line.trim_end().replace('\t', "    "));
    match line.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The line on which the function beginning at line `first` ends: its braces counted outside of comments and literals.
/// For looking at only: a body that macros open or close comes out too long or too short.
fn end_of_body(lines: &[&str], first: u32) -> u32 {
    let (mut depth, mut opened, mut comment) = (0i32, false, false);
    let most = first.saturating_add(KERNEL).min(lines.len() as u32);
    for number in first..=most {
        let mut rest = lines[number as usize - 1].chars().peekable();
        while let Some(c) = rest.next() {
            match (c, rest.peek()) {
                ('*', Some('/')) if comment => comment = false,
                _ if comment => {}
                ('/', Some('/')) => break,
                ('/', Some('*')) => comment = true,
                ('"' | '\'', _) => skip_literal(&mut rest, c),
                // A declaration has no body.
                (';', _) if !opened => return number,
                ('{', _) => (depth, opened) = (depth + 1, true),
                ('}', _) => depth -= 1,
                _ => {}
            }
        }
        if opened && depth <= 0 {
            return number;
        }
    }
    most
}

/// Past the end of a literal, or of the line.
fn skip_literal(rest: &mut impl Iterator<Item = char>, quote: char) {
    while let Some(c) = rest.next() {
        match c {
            '\\' => _ = rest.next(),
            _ if c == quote => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Place;
    use crate::report::Submission;
    use crate::verdict::{Check, CheckId};

    fn report(kernel_line: Option<u32>, place: Option<u32>) -> Report {
        let mut report = Report::blank();
        report.submission = Some(Submission { kernel_line, ..Submission::default() });
        let at = place.map(|line| Place { line, column: 0 });
        report.with_checks(vec![Check::new(CheckId::Memory, Status::Fail, "out of range").at(at)])
    }

    fn numbers(runs: &[Vec<Line>]) -> Vec<(u32, u32)> {
        runs.iter().map(|run| (run[0].number, run[run.len() - 1].number)).collect()
    }

    const SOURCE: &str = "1\n2\n3\n4\n__global__ void k()\n{\n  '}'; \"}\"; // }\n  /* } */ if (x) { y(); }\n  9\n}\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20";

    #[test]
    fn the_kernel_is_shown_to_its_last_brace() {
        assert_eq!(numbers(&excerpt(SOURCE, &report(Some(5), None))), [(2, 11)]);
        assert_eq!(end_of_body(&["void k();", "{"], 1), 1);
        assert_eq!(end_of_body(&["void k() {", "("], 1), 2, "a body without an end");
    }

    #[test]
    fn a_line_elsewhere_has_a_run_of_its_own_and_is_marked() {
        let runs = excerpt(SOURCE, &report(Some(5), Some(18)));
        assert_eq!(numbers(&runs), [(2, 11), (15, 20)]);
        let marked: Vec<&Line> = runs.iter().flatten().filter(|line| !line.notes.is_empty()).collect();
        assert_eq!((marked.len(), marked[0].number, marked[0].notes[0].as_str()), (1, 18, "memory: out of range"));
    }

    #[test]
    fn lines_that_are_not_there_are_no_trouble() {
        for line in [0, 21, u32::MAX] {
            assert!(excerpt(SOURCE, &report(Some(line), Some(line))).len() <= 1);
            assert!(excerpt("", &report(Some(line), Some(line))).is_empty());
        }
    }

    #[test]
    fn what_is_shown_is_harmless_and_not_endless() {
        let source = format!("int a; // \u{202e}\u{1b}[31m\n{}", "é".repeat(1000));
        let runs = excerpt(&source, &report(None, Some(1)));
        assert_eq!(runs[0][0].text, "int a; // \\u{202e}\\u{1b}[31m");
        assert_eq!(runs[0][1].text.chars().count(), WIDTH + 1);
    }
}
