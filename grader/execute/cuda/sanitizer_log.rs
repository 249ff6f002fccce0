//! Reads a log of compute-sanitizer, releases 2021 to 2025. Text in, findings out.
//!
//! A log is lines behind a bar (`=========`). A record begins with a line that stands one space behind the bar; what
//! belongs to it is indented by more. The words of the first line say what it is about.

use std::sync::LazyLock;

use regex::Regex;

use crate::execute::sanitized::{Finding, FindingKind};
use crate::execute::{Actor, Place};

const BAR: &str = "=========";
/// Characters kept of a tool's own words.
const LONGEST: usize = 160;

macro_rules! pattern {
    ($name:ident, $text:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).expect("a pattern of the grader's own"));
    };
}
pattern!(ACCESS, r"(?i)^(?:invalid|uninitialized) __(global|shared|local)__ (?:memory )?(read|write|atomic)");
pattern!(RACE, r"(?i)^(error|warning): race reported between (read|write) access at");
pattern!(PLACE, r"\bheat\.cu:(\d+)");
pattern!(THREAD, r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)");
pattern!(HAZARDS, r"\[(\d+) hazards?\]");
pattern!(UNPRINTED, r"SUMMARY: (\d+) errors were not printed");

/// The findings of a log, each site once. `None`: the tool did not come to its end.
pub fn findings(log: &str) -> Option<Vec<Finding>> {
    let mut found: Vec<Finding> = Vec::new();
    let mut ended = false;
    let mut unprinted = 0;
    for record in records(log) {
        ended |= record[0].contains("SUMMARY:");
        unprinted += UNPRINTED.captures(record[0]).and_then(|count| count[1].parse::<u64>().ok()).unwrap_or(0);
        let Some(finding) = finding(&record) else { continue };
        let same = |known: &&mut Finding| {
            (known.kind, known.place, known.store) == (finding.kind, finding.place, finding.store)
        };
        match found.iter_mut().find(same) {
            Some(known) => known.count += finding.count,
            None => found.push(finding),
        }
    }
    // Of several sites it is not known which were left out: their counts are of what was printed.
    if let [only] = &mut found[..] {
        only.count += unprinted;
    }
    (ended || !found.is_empty()).then_some(found)
}

/// Records, each with its first line first, bars and indents taken off.
fn records(log: &str) -> Vec<Vec<&str>> {
    let mut records: Vec<Vec<&str>> = Vec::new();
    for line in log.lines().filter_map(|line| line.strip_prefix(BAR)) {
        let text = line.trim();
        match records.last_mut() {
            _ if text.is_empty() => {}
            Some(record) if line.starts_with("  ") => record.push(text),
            _ => records.push(vec![text]),
        }
    }
    records
}

fn finding(record: &[&str]) -> Option<Finding> {
    let head = record[0];
    let lower = head.to_lowercase();
    let place = |line: &&str| {
        let number = PLACE.captures(line)?.get(1)?.as_str().parse().ok()?;
        Some(Place { line: number, column: 0 })
    };
    let access = ACCESS.captures(head);
    let race = RACE.captures(head);
    let kind = match (&access, &race) {
        (Some(_), _) if lower.starts_with("uninitialized") => FindingKind::NeverWritten,
        (Some(_), _) if record.iter().any(|line| line.contains("misaligned")) => FindingKind::Misaligned,
        (Some(_), _) => FindingKind::OutOfRange,
        (_, Some(race)) if race[1].eq_ignore_ascii_case("error") => FindingKind::Race,
        (_, Some(_)) => FindingKind::MaybeRace,
        _ if lower.starts_with("barrier error detected") => FindingKind::Divergence,
        _ if THREAD.is_match(&record.join(" ")) => FindingKind::Other,
        _ => return None,
    };
    let word = access.as_ref().or(race.as_ref()).and_then(|captures| captures.get(2)).map(|word| word.as_str());
    let hazards: u64 = record.iter().filter_map(|line| HAZARDS.captures(line)?[1].parse::<u64>().ok()).sum();
    Some(Finding {
        kind,
        said: head.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect(),
        memory: access.as_ref().map_or_else(String::new, |captures| captures[1].to_lowercase()),
        store: word.map(|word| !word.eq_ignore_ascii_case("read")),
        // The innermost frame that lies in heat.cu: below a frame in one of CUDA's headers comes the line that called it.
        place: record.iter().filter(|line| !line.starts_with("and ")).find_map(place),
        actor: record.iter().find_map(|line| actor(line)),
        other: record.iter().filter(|line| line.starts_with("and ")).find_map(place),
        count: hazards.max(1),
    })
}

fn actor(line: &str) -> Option<Actor> {
    let captures = THREAD.captures(line)?;
    let triple = |from: usize| -> Option<[u32; 3]> {
        Some([captures[from].parse().ok()?, captures[from + 1].parse().ok()?, captures[from + 2].parse().ok()?])
    };
    Some(Actor { block: triple(4)?, thread: triple(1)? })
}

#[cfg(test)]
#[path = "../../tests/sanitizer_log.rs"]
mod tests;
