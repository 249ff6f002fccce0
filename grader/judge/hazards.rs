//! Checks `memory` and `race`: what the watched trials saw besides the grids.

use super::Seen;
use super::outcome::{Outcome, RunsDiffer};
use super::plan::Kind;
use super::sanitizer;
use super::words;
use crate::execute::{Hazard, HazardKind, InputChange, Memory, RunFault};
use crate::verdict::{Check, CheckId, Status};

const NO_OTHER_CODE: &str = "A kernel reads one grid, writes the other, and does nothing else.";
/// Other hazards named in one check's details.
const MORE: usize = 3;

/// A hazard and the size it was seen at.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenHazard {
    /// Cells a side of the trial that showed it.
    pub n: u32,
    pub hazard: Hazard,
}

impl SeenHazard {
    /// The hazard in one sentence.
    pub fn message(&self) -> String {
        words::hazard(&self.hazard, self.n)
    }
}

/// The check a hazard belongs to.
pub fn check_of(kind: HazardKind) -> CheckId {
    match kind {
        HazardKind::OutOfRange
        | HazardKind::NeverWritten
        | HazardKind::InputWritten
        | HazardKind::ConstantWritten
        | HazardKind::ForeignLocal => CheckId::Memory,
        HazardKind::WriteWriteRace
        | HazardKind::SameValueRace
        | HazardKind::ReadWriteRace
        | HazardKind::BarrierDivergence
        | HazardKind::BarrierAfterExit => CheckId::Race,
    }
}

/// How grave a hazard is. Idle halo threads that read, but do not use, an unfilled word and threads that return early
/// from a tile that the others fill completely do no harm: they are found out by wrong grids.
pub fn gravity(kind: HazardKind, grids_right: bool) -> Status {
    match kind {
        HazardKind::SameValueRace => Status::Warn,
        HazardKind::NeverWritten | HazardKind::BarrierAfterExit if grids_right => Status::Warn,
        _ => Status::Fail,
    }
}

/// All hazards of the gating trials, each site once, in the order in which they were seen.
pub fn all(seen: &Seen) -> Vec<SeenHazard> {
    let mut sites = std::collections::HashSet::new();
    let of_one = |outcome: &Outcome| {
        let n = outcome.planned.n;
        outcome.hazards.iter().map(move |hazard| SeenHazard { n, hazard: hazard.clone() }).collect::<Vec<_>>()
    };
    let site = |hazard: &Hazard| (hazard.kind, hazard.place, hazard.other.and_then(|(_, place)| place));
    seen.gating().flat_map(of_one).filter(|seen| sites.insert(site(&seen.hazard))).collect()
}

/// Check `memory`; `None` when nothing is wrong so far and trials are still missing.
pub fn memory(seen: &Seen) -> Option<Check> {
    let fault = || {
        seen.gating().find_map(|outcome| denied(outcome).or_else(|| crash(outcome)).or_else(|| changed_input(outcome)))
    };
    let found = hazards_of(seen, CheckId::Memory);
    let failing = found.as_ref().is_some_and(|check| check.status == Status::Fail);
    let check =
        if failing { found } else { sanitizer::graver(sanitizer::check(seen, CheckId::Memory), fault().or(found)) };
    check.or_else(|| {
        let pass = || match &seen.means.unwatched {
            Some(reason) => {
                unwatched(seen, CheckId::Memory, "the guard bands around both grids and the input are intact", reason)
            }
            None => Check::new(
                CheckId::Memory,
                Status::Pass,
                "no access outside grids and arrays, no read of an unwritten word",
            ),
        };
        seen.complete_for(CheckId::Memory).then(|| constructors_print(seen).unwrap_or_else(pass))
    })
}

/// Static constructors that print do no harm, and no kernel needs them.
fn constructors_print(seen: &Seen) -> Option<Check> {
    seen.gating().find(|outcome| !outcome.constructors_printed.is_empty())?;
    let summary = "a static constructor printed something before the kernel ran: for the instructor to look at";
    Some(Check::new(CheckId::Memory, Status::Warn, summary).with(NO_OTHER_CODE))
}

/// Check `race`; `None` when nothing is wrong so far and trials are still missing.
pub fn race(seen: &Seen) -> Option<Check> {
    let found = hazards_of(seen, CheckId::Race);
    let failing = found.as_ref().is_some_and(|check| check.status == Status::Fail);
    let ran = || seen.gating().find_map(deadlock).or_else(|| runs_differ(seen)).or(found.clone());
    let check = if failing { found } else { sanitizer::graver(sanitizer::check(seen, CheckId::Race), ran()) };
    check.or_else(|| {
        let pass = || match &seen.means.unwatched {
            Some(reason) => {
                unwatched(seen, CheckId::Race, "runs of the same thousand timesteps end with the same bits", reason)
            }
            None => {
                Check::new(CheckId::Race, Status::Pass, "no two threads meet between barriers, all reach each barrier")
            }
        };
        let complete = match seen.means.unwatched {
            Some(_) => seen.complete_for(CheckId::Values),
            None => seen.complete_for(CheckId::Race),
        };
        complete.then(pass)
    })
}

/// What stands for a check that only a watched run could pass.
fn unwatched(seen: &Seen, id: CheckId, shown: &str, reason: &str) -> Check {
    let summary = match sanitizer::silent(seen, id) {
        Some(tools) => {
            format!("for the instructor to look at: {shown} and {tools} found nothing, but engine cpu saw no thread")
        }
        None => format!("for the instructor to look at: {shown}, but no thread was watched"),
    };
    Check::new(id, Status::Warn, summary).with(format!("{reason}."))
}

/// Two runs from the same grid that end differently: which thread comes first matters.
fn runs_differ(seen: &Seen) -> Option<Check> {
    let (differ, planned) = seen.gating().find_map(|outcome| Some((outcome.runs_differ?, &outcome.planned)))?;
    let n = planned.n;
    let runs = if planned.kind == Kind::Time { "a timed and an untimed run" } else { "two runs" };
    let RunsDiffer { launch, row, column, first, second } = differ;
    let summary = format!(
        "{runs} from the same grid differ: row {row}, column {column} is {first} in one and {second} in the other after \
         launch {launch} (n = {n})"
    );
    Some(Check::new(CheckId::Race, Status::Fail, summary).with(advice(HazardKind::ReadWriteRace)))
}

/// The gravest hazards of a check, worded; a failing one is put first.
fn hazards_of(seen: &Seen, id: CheckId) -> Option<Check> {
    let grids_right = seen.gating().all(|outcome| outcome.grids_right() && outcome.fault.is_none());
    let found = all(seen);
    let mut found: Vec<&SeenHazard> = found.iter().filter(|seen| check_of(seen.hazard.kind) == id).collect();
    found.sort_by_key(|seen| gravity(seen.hazard.kind, grids_right) != Status::Fail);
    let (first, more) = found.split_first()?;
    let status = gravity(first.hazard.kind, grids_right);
    let times = words::counted(first.hazard.count, "time");
    let mut check = Check::new(id, status, first.message())
        .with(format!(
            "First in launch {} at n = {}; seen {times} in all launches there.",
            first.hazard.launch, first.n
        ))
        .with(advice_on(&first.hazard, seen))
        .at(first.hazard.place);
    // One site is seen at several words, columns and sizes, and told once.
    let mut told = std::collections::HashSet::from([subject(&first.hazard)]);
    let more: Vec<&&SeenHazard> = more.iter().filter(|seen| told.insert(subject(&seen.hazard))).collect();
    check.details.extend(more.iter().take(MORE).map(|seen| format!("Also {}.", seen.message())));
    if more.len() > MORE {
        check.details.push(format!("And {} more.", words::counted((more.len() - MORE) as u64, "hazard")));
    }
    Some(check)
}

/// What a hazard is about: its kind, its lines and what was touched, whichever thread and word it was.
pub(super) fn subject(hazard: &Hazard) -> (HazardKind, Option<u32>, Option<u32>, Option<String>) {
    let line = |place: Option<crate::execute::Place>| place.map(|place| place.line);
    let touched = hazard.memory.as_ref().map(|memory| match memory {
        Memory::In { .. } => "in".to_owned(),
        Memory::Out { .. } => "out".to_owned(),
        Memory::Shared { name, .. } | Memory::SharedRow { name, .. } => format!("shared {name}"),
        Memory::Local { name, .. } => format!("local {name}"),
        Memory::Device { name } => format!("device {name}"),
        Memory::Constant { name } => format!("constant {name}"),
        Memory::Wild { .. } => "wild".to_owned(),
    });
    (hazard.kind, line(hazard.place), line(hazard.other.and_then(|(_, place)| place)), touched)
}

/// Whether threads race for the shared array of a hazard: then what was not written yet may be written too late.
pub(super) fn raced_for<'h>(hazard: &Hazard, mut all: impl Iterator<Item = &'h Hazard>) -> bool {
    let Some(Memory::Shared { name, .. }) = &hazard.memory else { return false };
    let same = |other: &Hazard| matches!(&other.memory, Some(Memory::Shared { name: touched, .. }) if touched == name);
    all.any(|other| other.kind == HazardKind::ReadWriteRace && same(other))
}

/// What to look at next, by what was touched.
fn advice_on(hazard: &Hazard, seen: &Seen) -> &'static str {
    match (hazard.kind, &hazard.memory) {
        (HazardKind::NeverWritten, _) if raced_for(hazard, seen.gating().flat_map(|outcome| &outcome.hazards)) => {
            "Threads race for that array (see `race`): the one that fills the word may only come later."
        }
        (HazardKind::OutOfRange, Some(Memory::Shared { .. } | Memory::SharedRow { .. } | Memory::Local { .. })) => {
            "Compare the largest index with the size the array is declared with: the apron has a halo on each side."
        }
        (HazardKind::ReadWriteRace, _) if hazard.is_between_blocks() => {
            "No __syncthreads() makes one block wait for another: within a launch no block may read what another one writes."
        }
        (HazardKind::OutOfRange, Some(Memory::Wild { .. })) => {
            "The address lies in no grid and no array: look at how the pointer was made."
        }
        (kind, _) => advice(kind),
    }
}

/// What to look at next.
pub(super) fn advice(kind: HazardKind) -> &'static str {
    match kind {
        HazardKind::OutOfRange => {
            "Guard the load and the store by the cell's own row and column, on both axes, against 0 and n - 1."
        }
        HazardKind::NeverWritten => {
            "Every shared cell that a timestep reads must have been filled before: all of the apron by the load, and by the first \
             step also the cells that it does not advance, on the ring."
        }
        HazardKind::InputWritten => "Each launch reads one grid and writes the other; the host swaps them.",
        HazardKind::ConstantWritten => {
            "A __constant__ variable keeps what it holds when the kernel starts: what a kernel works out belongs in a local \
             variable, or in shared memory where other threads of the block need it."
        }
        HazardKind::ForeignLocal => {
            "A pointer to a local variable means something to its own thread only: on a GPU another thread finds its own memory \
             there. Hand the value over in shared memory, or by a shuffle within a warp."
        }
        HazardKind::WriteWriteRace => {
            "Two threads own the same cell: look at how threads are mapped to cells of the tile."
        }
        HazardKind::SameValueRace => "Both write the same value, so it does no harm here; one owner a cell is safer.",
        HazardKind::ReadWriteRace => "A __syncthreads() between the two lets every thread see what the others stored.",
        HazardKind::BarrierDivergence | HazardKind::BarrierAfterExit => {
            "Guard the load and the store, never the barrier: all threads of a block must reach every __syncthreads()."
        }
    }
}

fn denied(outcome: &Outcome) -> Option<Check> {
    let RunFault::Denied { launch, what, place } = outcome.fault.as_ref()? else { return None };
    let who = if *launch == 0 { "a static constructor".to_owned() } else { format!("launch {launch}") };
    let summary = format!("{}: {who} tried to {what}", words::place(*place));
    let check = Check::new(CheckId::Memory, Status::Fail, summary).at(*place);
    Some(check.with("The sandbox stopped it there.").with(NO_OTHER_CODE))
}

fn crash(outcome: &Outcome) -> Option<Check> {
    let RunFault::Crash { launch, what, memory, place, actor } = outcome.fault.as_ref()? else { return None };
    let n = outcome.planned.n;
    let touched = memory.as_ref().map_or_else(String::new, |touched| format!(" at {}", words::memory(touched, n)));
    let summary = format!("{}: launch {launch} crashed: {what}{touched} (n = {n})", words::place(*place));
    let mut check = Check::new(CheckId::Memory, Status::Fail, summary).at(*place);
    check.details.extend(actor.as_ref().map(|actor| format!("It was {}.", words::actor(actor))));
    match memory {
        Some(Memory::In { .. } | Memory::Out { .. }) => check.details.push(advice(HazardKind::OutOfRange).to_owned()),
        Some(_) => check.details.push("Look at how the address of that access is made.".to_owned()),
        None => {}
    }
    Some(check)
}

fn changed_input(outcome: &Outcome) -> Option<Check> {
    let InputChange { launch, row, column, before, after } = outcome.input_changed?;
    let summary = format!(
        "launch {launch} changed its input grid: row {row}, column {column} held {before}, now {after} (n = {})",
        outcome.planned.n
    );
    Some(Check::new(CheckId::Memory, Status::Fail, summary).with(advice(HazardKind::InputWritten)))
}

fn deadlock(outcome: &Outcome) -> Option<Check> {
    let RunFault::Deadlock { launch } = outcome.fault.as_ref()? else { return None };
    let summary = format!("launch {launch} never ended: no thread of a block could go on (n = {})", outcome.planned.n);
    Some(Check::new(CheckId::Race, Status::Fail, summary).with(
        "Some thread waits for others that never come: at a __syncthreads() for all threads of its block, at a shuffle or \
         a __syncwarp() for all lanes that its mask names.",
    ))
}
