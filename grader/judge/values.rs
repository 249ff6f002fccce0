//! Checks `values` and `ring`: is every cell what the single-step reference makes it?

use super::Seen;
use super::diagnosis::pattern;
use super::outcome::{FirstMismatch, Outcome, Writer, Wrong};
use super::plan::Kind;
use super::words;
use crate::execute::{LastWrite, Processor, RunFault};
use crate::exercise::Exercise;
use crate::verdict::{Check, CheckId, Status};

/// Check `values`; `None` when nothing is wrong so far and trials are still missing.
pub fn values(seen: &Seen) -> Option<Check> {
    if let Some(check) = seen.gating().find_map(|outcome| wrong_values(seen.exercise, outcome)) {
        return Some(check);
    }
    if let Some(check) = seen.gating().find_map(unfinished) {
        return Some(check);
    }
    seen.complete_for(CheckId::Values).then(|| Check::new(CheckId::Values, Status::Pass, all_right(seen)))
}

fn all_right(seen: &Seen) -> String {
    let longest = seen.gating().max_by_key(|outcome| outcome.planned.launches);
    longest.map_or_else(String::new, |outcome| {
        let timesteps = seen.exercise.timesteps(outcome.planned.launches);
        let n = outcome.planned.n;
        let furthest = seen.gating().map(|outcome| outcome.furthest).fold(0.0, f32::max);
        let by = match furthest {
            0.0 => "bit for bit the reference's".to_owned(),
            _ => format!(
                "within {} of the reference's (rounding explains {})",
                words::small(furthest.into()),
                words::small(seen.exercise.tolerance(timesteps, 1.0))
            ),
        };
        format!("every cell right, up to {} timesteps at n = {n}; {by}", words::grouped(timesteps.into()))
    })
}

/// Of a trial that comes after a right one.
const ANY_ORDER: &str = "Threads and blocks ran in a drawn order there, since CUDA promises none; a smaller grid came out right \
                         with all in the order of their numbers. Does an atomic's result depend on who comes first?";

fn wrong_values(exercise: &Exercise, outcome: &Outcome) -> Option<Check> {
    let wrong = outcome.values.as_ref()?;
    let cell = wrong.cells.first;
    let summary = format!(
        "row {}, column {} is wrong after launch {}: expected {}, got {} (n = {})",
        cell.row,
        cell.column,
        wrong.launch,
        words::value(cell.expected),
        words::value(cell.got),
        outcome.planned.n
    );
    let mut check = Check::new(CheckId::Values, Status::Fail, summary).with(extent(exercise, outcome, wrong));
    if outcome.ring.as_ref().is_some_and(|ring| ring.cells.first == cell) {
        check.details.push("The cell lies on the ring: see `ring`.".to_owned());
    }
    if let Some(first) = &outcome.first {
        check.details.extend(written_by(first));
        check.details.extend(placed(first));
    }
    check.details.extend(pattern::facts(outcome, wrong));
    let planned = &outcome.planned;
    if planned.any_order && planned.kind == Kind::Hazards && planned.on == Processor::Cpu {
        check.details.push(ANY_ORDER.to_owned());
    }
    Some(check)
}

fn extent(exercise: &Exercise, outcome: &Outcome, wrong: &Wrong) -> String {
    let cells = &wrong.cells;
    let of = words::grouped(u64::from(outcome.planned.n).pow(2));
    // The tolerance for |u| = 1: the scale that a learner can compare with.
    let tolerance = words::small(exercise.tolerance(exercise.timesteps(1), 1.0));
    let by = format!(
        "by up to {} (rounding explains about {tolerance} a launch where |u| is 1)",
        words::small(cells.largest)
    );
    let size = match cells.not_finite {
        0 => by,
        bad if bad == cells.count => "NaN or infinite".to_owned(),
        bad => format!("{} of them NaN or infinite, the others {by}", words::grouped(bad)),
    };
    if cells.count == 1 {
        return format!("It is the only one of {of} cells: {size}.");
    }
    let (rows, columns) = (words::span("row", cells.rows), words::span("column", cells.columns));
    format!("{} of {of} cells are wrong, in {rows}, {columns}: {size}.", words::grouped(cells.count))
}

/// Who wrote the first wrong cell, where that is known.
pub fn written_by(first: &FirstMismatch) -> Option<String> {
    match &first.writer {
        Writer::Unknown => None,
        Writer::Nobody => Some("No thread wrote this cell in that launch.".to_owned()),
        Writer::By(LastWrite { actor, place: None }) => Some(format!("Written by {}.", words::actor(actor))),
        Writer::By(LastWrite { actor, place }) => {
            Some(format!("Written at {} by {}.", words::place(*place), words::actor(actor)))
        }
    }
}

fn placed(first: &FirstMismatch) -> Option<String> {
    match first.launch - first.last_right {
        1 if first.launch > 3 => Some(format!("Every launch before launch {} was right.", first.launch)),
        1 => None,
        _ => Some(format!("The fault begins after launch {} and not later than {}.", first.last_right, first.launch)),
    }
}

/// A launch that never came to its end.
fn unfinished(outcome: &Outcome) -> Option<Check> {
    let n = outcome.planned.n;
    let fault = outcome.fault.as_ref()?;
    let skip = |summary: String| Check::new(CheckId::Values, Status::Skip, summary);
    Some(match fault {
        RunFault::Hang { launch, seconds, on, place, .. } => {
            let at = place.map_or_else(String::new, |_| format!(", at {}", words::place(*place)));
            let time = if *on == Processor::Cpu { "of CPU time" } else { "on the GPU" };
            let summary = format!("launch {launch} did not finish within {seconds:.0} s {time} (n = {n}){at}");
            let next = "Look for a loop whose end no thread reaches, or one that runs over the whole grid.";
            Check::new(CheckId::Values, Status::Fail, summary).with(next).at(*place)
        }
        RunFault::TooSlow { launch, seconds } => {
            let summary = format!(
                "the launches up to {launch} took {seconds:.0} s of CPU time together, too long to go on (n = {n})"
            );
            let next =
                "The reference needs a fiftieth of that, or less. Look for a loop that does not end when it should.";
            Check::new(CheckId::Values, Status::Fail, summary).with(next)
        }
        RunFault::CannotJudge { construct, place } => {
            skip(format!("cannot be judged on this machine: {} uses {construct}", words::place(*place))).at(*place)
        }
        RunFault::WallLimit { launch, wall_seconds } => skip(format!(
            "could not be judged: the machine was too busy to finish launch {launch} in {wall_seconds:.0} s"
        )),
        RunFault::Crash { launch, .. } => skip(format!("not compared: launch {launch} crashed (see `memory`)")),
        RunFault::Denied { .. } => skip("not compared: the sandbox ended the run (see `memory`)".to_owned()),
        RunFault::Deadlock { launch } => skip(format!("not compared: launch {launch} never ended (see `race`)")),
        RunFault::LaunchRefused { launch, .. } => {
            skip(format!("not compared: launch {launch} was refused (see `launch`)"))
        }
    })
}

/// Check `ring`; `None` when nothing is wrong so far and trials are still missing.
pub fn ring(seen: &Seen) -> Option<Check> {
    if let Some(check) = seen.gating().find_map(wrong_ring) {
        return Some(check);
    }
    let pass = || Check::new(CheckId::Ring, Status::Pass, "the ring holds exactly what it started with");
    seen.complete_for(CheckId::Ring).then(pass)
}

fn wrong_ring(outcome: &Outcome) -> Option<Check> {
    let wrong = outcome.ring.as_ref()?;
    let cell = wrong.cells.first;
    let summary = format!(
        "row {}, column {} lies on the ring and changed by launch {}: held {}, now {} (n = {})",
        cell.row,
        cell.column,
        wrong.launch,
        words::value(cell.expected),
        words::value(cell.got),
        outcome.planned.n
    );
    let ring_cells = 4 * u64::from(outcome.planned.n.saturating_sub(1));
    let mut check = Check::new(CheckId::Ring, Status::Fail, summary).with(format!(
        "{} of {} ring cells changed. The ring keeps its temperature in both timesteps: guard the store.",
        words::grouped(wrong.cells.count),
        words::grouped(ring_cells)
    ));
    if outcome.first.as_ref().is_some_and(|first| first.cell == cell) {
        check.details.extend(outcome.first.as_ref().and_then(written_by));
    }
    Some(check)
}
