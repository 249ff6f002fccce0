//! Causes that a watched launch shows by itself: who touched what, and which barrier was missed.

use std::collections::HashSet;

use super::Cause;
use super::code::Code;
use crate::execute::{Hazard, HazardKind, Memory};
use crate::judge::hazards::{SeenHazard, raced_for, subject};

/// Hazards named as evidence of one cause.
const NAMED: usize = 3;

/// How a hazard's cause stands to the wrong cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Makes the grid depend on the schedule, so that no guess about it can be trusted.
    Schedule,
    /// May be what went wrong, or do no harm.
    Access,
}

/// The causes among the hazards of checks that failed, the gravest first.
pub fn causes(hazards: &[SeenHazard]) -> Vec<(Rank, Cause)> {
    let order = [
        Code::BarrierNotReachedByAll,
        Code::InPlaceUpdate,
        Code::BlocksExchange,
        Code::MissingBarrier,
        Code::TwoWriters,
        Code::SharedNotFilled,
        Code::IndexOutOfRange,
    ];
    let of = |code: Code| {
        let own: Vec<&SeenHazard> =
            hazards.iter().filter(|seen| code_of(&seen.hazard, hazards) == Some(code)).collect();
        let first = own.first()?;
        // One line may be listed for each of its columns.
        let mut told = HashSet::new();
        let sites = own.iter().filter(|seen| told.insert(subject(&seen.hazard))).take(NAMED);
        let evidence: Vec<String> = sites.map(|seen| format!("{}.", seen.message())).collect();
        let cause = evidence.into_iter().fold(Cause::new(code, sentence(code, &first.hazard)), Cause::with);
        Some((rank(&first.hazard, hazards), cause))
    };
    order.into_iter().filter_map(of).collect()
}

fn rank(hazard: &Hazard, all: &[SeenHazard]) -> Rank {
    match hazard.kind {
        HazardKind::BarrierAfterExit if all.iter().any(|race| is_around(&race.hazard, hazard)) => Rank::Schedule,
        HazardKind::NeverWritten | HazardKind::OutOfRange | HazardKind::BarrierAfterExit => Rank::Access,
        _ => Rank::Schedule,
    }
}

/// The cause that a hazard shows, seen among `all`; none where another one's has led to it.
fn code_of(hazard: &Hazard, all: &[SeenHazard]) -> Option<Code> {
    let others = || all.iter().map(|seen| &seen.hazard);
    let shared = is_shared(hazard);
    Some(match hazard.kind {
        HazardKind::BarrierDivergence | HazardKind::BarrierAfterExit => Code::BarrierNotReachedByAll,
        HazardKind::InputWritten => Code::InPlaceUpdate,
        HazardKind::ReadWriteRace if matches!(hazard.memory, Some(Memory::In { .. })) => Code::InPlaceUpdate,
        // There is a barrier, and not all come to it.
        HazardKind::ReadWriteRace if shared && others().any(|barrier| is_around(hazard, barrier)) => return None,
        HazardKind::ReadWriteRace if shared => Code::MissingBarrier,
        // Threads that meet in a grid meet across blocks as well, sooner or later.
        HazardKind::ReadWriteRace if others().any(|other| is_race_in_grid(other) && other.is_between_blocks()) => {
            Code::BlocksExchange
        }
        HazardKind::ReadWriteRace if hazard.other.is_some() && !hazard.is_between_blocks() => Code::MissingBarrier,
        HazardKind::ReadWriteRace => Code::BlocksExchange,
        // An index past the end of a row leads to the word of another thread.
        HazardKind::WriteWriteRace if others().any(|stray| strays_into(stray, hazard)) => return None,
        HazardKind::WriteWriteRace => Code::TwoWriters,
        HazardKind::NeverWritten if shared && !only_late(hazard, all) => Code::SharedNotFilled,
        HazardKind::OutOfRange => Code::IndexOutOfRange,
        HazardKind::NeverWritten
        | HazardKind::SameValueRace
        | HazardKind::ConstantWritten
        | HazardKind::ForeignLocal => return None,
    })
}

fn is_shared(hazard: &Hazard) -> bool {
    matches!(hazard.memory, Some(Memory::Shared { .. }))
}

fn is_barrier(hazard: &Hazard) -> bool {
    matches!(hazard.kind, HazardKind::BarrierDivergence | HazardKind::BarrierAfterExit)
}

fn is_race_in_grid(hazard: &Hazard) -> bool {
    matches!(hazard.kind, HazardKind::ReadWriteRace | HazardKind::WriteWriteRace) && !is_shared(hazard)
}

/// Whether a barrier that not all reach stands between the two lines of a race for shared memory.
fn is_around(race: &Hazard, barrier: &Hazard) -> bool {
    let (Some(one), Some((_, Some(other))), Some(at)) = (race.place, race.other, barrier.place) else { return false };
    // The earlier access and the barrier may share a line.
    let within = one.line.min(other.line) <= at.line && at.line < one.line.max(other.line);
    race.kind == HazardKind::ReadWriteRace && is_shared(race) && is_barrier(barrier) && within
}

/// Whether `stray` is an index past the end of the shared array for which `race` was seen.
fn strays_into(stray: &Hazard, race: &Hazard) -> bool {
    let name = |hazard: &Hazard| match &hazard.memory {
        Some(Memory::Shared { name, .. } | Memory::SharedRow { name, .. }) => Some(name.clone()),
        _ => None,
    };
    stray.kind == HazardKind::OutOfRange && stray.store && name(stray).is_some() && name(stray) == name(race)
}

/// What a thread fills too late for want of a barrier is not filled when it is read, and is no fault of its own.
fn only_late(hazard: &Hazard, all: &[SeenHazard]) -> bool {
    let others = || all.iter().map(|seen| &seen.hazard);
    raced_for(hazard, others()) || others().any(is_barrier)
}

fn sentence(code: Code, hazard: &Hazard) -> String {
    let line = |place: Option<crate::execute::Place>| place.map(|place| place.line);
    let (here, there) = (line(hazard.place), hazard.other.and_then(|(_, place)| line(place)));
    let at = here.map_or_else(String::new, |line| format!(" at line {line}"));
    match code {
        Code::BarrierNotReachedByAll => match (hazard.kind, here, there) {
            (HazardKind::BarrierDivergence, Some(one), Some(other)) if one != other => {
                let (first, second) = (one.min(other), one.max(other));
                format!(
                    "Threads of one block wait at two barriers, some at line {first} and others at line {second}: one of \
                     them is not reached by all."
                )
            }
            _ => format!("Not all threads of a block reach the barrier{at}."),
        },
        Code::InPlaceUpdate => {
            let store = if hazard.store { here } else { there };
            let at = store.map_or_else(String::new, |line| format!(" at line {line}"));
            format!("The kernel stores into the grid that it reads{at}.")
        }
        Code::BlocksExchange => {
            "Blocks read what other blocks write in the same launch, and nothing makes one wait for another.".to_owned()
        }
        Code::MissingBarrier => match (here, there) {
            (Some(one), Some(other)) if one != other => {
                let (first, second) = (one.min(other), one.max(other));
                format!("A barrier is missing between what is done at line {first} and at line {second}.")
            }
            _ if is_shared(hazard) => format!("A barrier is missing between two uses of shared memory{at}."),
            _ => format!("A barrier is missing between two uses of one grid{at}."),
        },
        Code::TwoWriters => match &hazard.memory {
            Some(Memory::Shared { name, .. }) => {
                format!("Several threads store different values into one word of shared array {name}{at}.")
            }
            _ => format!("Several threads write the same cell, and not the same value{at}."),
        },
        Code::SharedNotFilled => match &hazard.memory {
            Some(Memory::Shared { name, .. }) => {
                format!("{} cells of shared array {name} that no thread has filled.", uses(here))
            }
            _ => format!("{} shared cells that no thread has filled.", uses(here)),
        },
        _ => match &hazard.memory {
            Some(Memory::In { .. } | Memory::Out { .. }) => {
                let what = if hazard.store { "store" } else { "load" };
                format!("A {what} reaches outside the grid{at}.")
            }
            Some(
                Memory::Shared { name, byte: offset, .. }
                | Memory::SharedRow { name, index: offset, .. }
                | Memory::Local { name, index: offset },
            ) if !name.is_empty() => {
                let end = if *offset < 0 { "before the start" } else { "past the end" };
                format!("An index runs {end} of array {name}{at}.")
            }
            Some(Memory::Local { .. }) => format!("An access runs past the end of a local array{at}."),
            _ => format!("An access reaches outside every grid and array{at}."),
        },
    }
}

/// The kernel, by its line where that is known.
fn uses(line: Option<u32>) -> String {
    line.map_or_else(|| "The kernel uses".to_owned(), |line| format!("Line {line} uses"))
}
