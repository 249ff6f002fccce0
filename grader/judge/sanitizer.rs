//! What compute-sanitizer's findings mean for the checks `memory` and `race`.
//!
//! They matter most where engine cpu cannot watch the kernel. Where it can, it sees more (a load one word past a shared
//! array that lies in another one, an unfilled shared word, an early return), and its words come first.

use super::hazards::advice;
use super::{Seen, words};
use crate::execute::HazardKind;
use crate::execute::sanitized::{Finding, FindingKind, Sanitized, SanitizerTool};
use crate::verdict::{Check, CheckId, Status};

/// The check that a finding belongs to. Barriers are `race`'s, as on engine cpu.
fn check_of(kind: FindingKind) -> CheckId {
    match kind {
        FindingKind::OutOfRange | FindingKind::Misaligned | FindingKind::NeverWritten | FindingKind::Other => {
            CheckId::Memory
        }
        FindingKind::Race | FindingKind::MaybeRace | FindingKind::Divergence => CheckId::Race,
    }
}

/// The tools that a check rests on.
fn tools_of(id: CheckId) -> &'static [SanitizerTool] {
    match id {
        CheckId::Memory => &[SanitizerTool::Memcheck, SanitizerTool::Initcheck],
        CheckId::Race => &[SanitizerTool::Racecheck, SanitizerTool::Synccheck],
        _ => &[],
    }
}

/// How grave a finding is: as the same hazard is that engine cpu sees.
fn gravity(kind: FindingKind, grids_right: bool) -> Status {
    match kind {
        FindingKind::MaybeRace => Status::Warn,
        FindingKind::NeverWritten if grids_right => Status::Warn,
        _ => Status::Fail,
    }
}

/// The gravest finding of a check, worded; `None` when there is none.
pub fn check(seen: &Seen, id: CheckId) -> Option<Check> {
    let grids_right = seen.gating().all(|outcome| outcome.grids_right() && outcome.fault.is_none());
    let all =
        seen.means.sanitized.iter().flat_map(|ran| ran.findings.iter().flatten().map(|finding| (ran.tool, finding)));
    let mut found: Vec<(SanitizerTool, &Finding)> = all.filter(|(_, finding)| check_of(finding.kind) == id).collect();
    found.sort_by_key(|(_, finding)| gravity(finding.kind, grids_right) != Status::Fail);
    let ((tool, first), more) = found.split_first()?;
    let summary = format!("{} ({} of compute-sanitizer)", message(first), tool.name());
    let mut check = Check::new(id, gravity(first.kind, grids_right), summary).at(first.place);
    check.details.extend(next_step(first.kind).map(str::to_owned));
    check.details.extend(more.iter().take(3).map(|(_, finding)| format!("Also {}.", message(finding))));
    Some(check)
}

/// The graver of what the sanitizer and the trials say of one check; of equals the trials' word, which knows more.
pub fn graver(sanitizer: Option<Check>, trials: Option<Check>) -> Option<Check> {
    match (sanitizer, trials) {
        (Some(sanitizer), Some(trials)) if trials.status == Status::Fail || sanitizer.status != Status::Fail => {
            let also = format!("Also {}.", sanitizer.summary);
            Some(trials.with(also))
        }
        (sanitizer, trials) => sanitizer.or(trials),
    }
}

/// The tools of a check, when all of them ran and found nothing: `compute-sanitizer's memcheck and initcheck`.
pub fn silent(seen: &Seen, id: CheckId) -> Option<String> {
    let quiet = |tool: &SanitizerTool| {
        let ran = seen.means.sanitized.iter().find(|ran| ran.tool == *tool);
        ran.is_some_and(|ran| ran.findings.as_ref().is_ok_and(Vec::is_empty))
    };
    let tools = tools_of(id);
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    tools.iter().all(quiet).then(|| format!("compute-sanitizer's {}", names.join(" and ")))
}

/// One tool's answer for the report: how often it complained, its first complaint, and that one's line.
pub fn answer(ran: &Sanitized) -> (Option<u64>, String, Option<u32>) {
    match &ran.findings {
        Ok(found) => {
            let first = found.first();
            let line = first.and_then(|first| Some(first.place?.line));
            (Some(found.iter().map(|finding| finding.count).sum()), first.map_or_else(String::new, message), line)
        }
        Err(reason) => (None, format!("gave no answer: {reason}"), None),
    }
}

/// A finding in one sentence.
pub fn message(finding: &Finding) -> String {
    let Finding { kind, said, memory, store, place, actor, other, count } = finding;
    let access = if *store == Some(true) { "a store" } else { "a load" };
    let to = if *store == Some(true) { "to" } else { "from" };
    let what = match kind {
        FindingKind::OutOfRange if memory == "global" => format!("{access} outside both grids"),
        FindingKind::OutOfRange => format!("{access} {to} {memory} memory that it does not have"),
        FindingKind::Misaligned => {
            format!("{access} {to} {memory} memory at an address that is not a multiple of its size")
        }
        FindingKind::NeverWritten => format!("a load of {memory} memory that nobody has written"),
        FindingKind::Race | FindingKind::MaybeRace => {
            let likely = if *kind == FindingKind::Race { "" } else { "perhaps " };
            let with = match other {
                Some(other) if Some(*other) == *place => " on the same line".to_owned(),
                Some(other) => format!(" at heat.cu:{}", other.line),
                None => String::new(),
            };
            format!("{likely}no barrier between {access} of a shared word and another thread's access{with}")
        }
        FindingKind::Divergence => "a barrier that not all threads of the block reach together".to_owned(),
        FindingKind::Other => format!("the tool says: {said}"),
    };
    let by = actor.as_ref().map_or_else(String::new, |actor| format!(" by {}", words::actor(actor)));
    let times = words::counted(*count, "time");
    format!("{}: {what}{by}, seen {times}", words::place(*place))
}

fn next_step(kind: FindingKind) -> Option<&'static str> {
    Some(match kind {
        FindingKind::OutOfRange => advice(HazardKind::OutOfRange),
        FindingKind::Misaligned => "A vector access needs an address that is a multiple of the vector's size.",
        FindingKind::NeverWritten => advice(HazardKind::NeverWritten),
        FindingKind::Race | FindingKind::MaybeRace => advice(HazardKind::ReadWriteRace),
        FindingKind::Divergence => advice(HazardKind::BarrierDivergence),
        FindingKind::Other => return None,
    })
}
