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
        let is_own = |hazard: &Hazard| code_of(hazard) == Some(code) && !only_late(hazard, hazards);
        let own: Vec<&SeenHazard> = hazards.iter().filter(|seen| is_own(&seen.hazard)).collect();
        let first = own.first()?;
        // One line may be listed for each of its columns.
        let mut told = HashSet::new();
        let sites = own.iter().filter(|seen| told.insert(subject(&seen.hazard))).take(NAMED);
        let evidence: Vec<String> = sites.map(|seen| format!("{}.", seen.message())).collect();
        let cause = evidence.into_iter().fold(Cause::new(code, sentence(code, &first.hazard)), Cause::with);
        Some((rank(&first.hazard), cause))
    };
    order.into_iter().filter_map(of).collect()
}

/// What a thread fills too late for want of a barrier is not filled when it is read, and is no fault of its own.
fn only_late(hazard: &Hazard, hazards: &[SeenHazard]) -> bool {
    let all = || hazards.iter().map(|seen| &seen.hazard);
    let barrier_missed = || all().any(|other| code_of(other) == Some(Code::BarrierNotReachedByAll));
    hazard.kind == HazardKind::NeverWritten && (raced_for(hazard, all()) || barrier_missed())
}

fn rank(hazard: &Hazard) -> Rank {
    match hazard.kind {
        HazardKind::NeverWritten | HazardKind::OutOfRange | HazardKind::BarrierAfterExit => Rank::Access,
        _ => Rank::Schedule,
    }
}

fn code_of(hazard: &Hazard) -> Option<Code> {
    let shared = matches!(hazard.memory, Some(Memory::Shared { .. }));
    let one_block = hazard.actor.zip(hazard.other).is_some_and(|(actor, (other, _))| actor.block == other.block);
    Some(match hazard.kind {
        HazardKind::BarrierDivergence | HazardKind::BarrierAfterExit => Code::BarrierNotReachedByAll,
        HazardKind::InputWritten => Code::InPlaceUpdate,
        HazardKind::ReadWriteRace if matches!(hazard.memory, Some(Memory::In { .. })) => Code::InPlaceUpdate,
        HazardKind::ReadWriteRace if shared || one_block => Code::MissingBarrier,
        HazardKind::ReadWriteRace => Code::BlocksExchange,
        HazardKind::WriteWriteRace => Code::TwoWriters,
        HazardKind::NeverWritten if shared => Code::SharedNotFilled,
        HazardKind::OutOfRange => Code::IndexOutOfRange,
        HazardKind::NeverWritten | HazardKind::SameValueRace => return None,
    })
}

fn sentence(code: Code, hazard: &Hazard) -> String {
    let line = |place: Option<crate::execute::Place>| place.map(|place| place.line);
    let (here, there) = (line(hazard.place), hazard.other.and_then(|(_, place)| line(place)));
    let at = here.map_or_else(String::new, |line| format!(" at line {line}"));
    match code {
        Code::BarrierNotReachedByAll => format!("Not all threads of a block reach the barrier{at}."),
        Code::InPlaceUpdate => "The kernel stores into the grid that it reads.".to_owned(),
        Code::BlocksExchange => {
            "Blocks read what other blocks write in the same launch, and nothing makes one wait for another.".to_owned()
        }
        Code::MissingBarrier => match (here, there) {
            (Some(one), Some(other)) if one != other => {
                let (first, second) = (one.min(other), one.max(other));
                format!("A barrier is missing between what is done at line {first} and at line {second}.")
            }
            _ => format!("A barrier is missing between two uses of shared memory{at}."),
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
            _ => format!("An access reaches outside every grid and array{at}."),
        },
    }
}

/// The kernel, by its line where that is known.
fn uses(line: Option<u32>) -> String {
    line.map_or_else(|| "The kernel uses".to_owned(), |line| format!("Line {line} uses"))
}
