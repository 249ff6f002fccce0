//! Check `portable`: odd and tiny sizes. Vector loads that need a row of a multiple of 4 are fair at 2048, so it warns.

use std::collections::BTreeSet;

use super::Seen;
use super::hazards::gravity;
use super::outcome::Outcome;
use super::plan::Kind;
use super::words;
use crate::execute::RunFault;
use crate::verdict::{Check, CheckId, Status};

/// Check `portable`; `None` while trials are missing. `strict` makes trouble a `fail`.
pub fn portable(seen: &Seen, strict: bool) -> Option<Check> {
    if !seen.complete_for(CheckId::Portable) {
        return None;
    }
    let tried: Vec<&Outcome> = seen.outcomes.iter().filter(|outcome| outcome.planned.kind == Kind::Portable).collect();
    let unjudged =
        |outcome: &&&Outcome| matches!(outcome.fault, Some(RunFault::CannotJudge { .. } | RunFault::WallLimit { .. }));
    if let Some(outcome) = tried.iter().find(unjudged) {
        let summary = format!("could not be judged: {}", trouble(outcome).unwrap_or_default());
        return Some(Check::new(CheckId::Portable, Status::Skip, summary));
    }
    // A size may be tried on both processors: one that shows trouble is enough.
    let all: BTreeSet<u32> = tried.iter().map(|outcome| outcome.planned.n).collect();
    let troubled = tried.iter().filter(|outcome| trouble(outcome).is_some()).map(|outcome| outcome.planned.n);
    let troubled: BTreeSet<u32> = troubled.collect();
    let list = |sizes: Vec<u32>| sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let (bad, good) = (list(troubled.iter().copied().collect()), list(all.difference(&troubled).copied().collect()));
    if bad.is_empty() {
        return Some(Check::new(CheckId::Portable, Status::Pass, format!("right at n = {good} too")));
    }
    let but = if good.is_empty() { String::new() } else { format!("; right at n = {good}") };
    let status = if strict { Status::Fail } else { Status::Warn };
    let mut check = Check::new(CheckId::Portable, status, format!("not right at n = {bad}{but}"));
    check.details.extend(tried.into_iter().filter_map(trouble).map(|trouble| format!("{trouble}.")));
    Some(check)
}

/// What went wrong at one size.
fn trouble(outcome: &Outcome) -> Option<String> {
    let n = outcome.planned.n;
    let hazard = || {
        let grave = |kind| gravity(kind, outcome.grids_right()) == Status::Fail;
        let hazard = outcome.hazards.iter().find(|hazard| grave(hazard.kind))?;
        Some(format!("n = {n}: {}", words::hazard(hazard, n)))
    };
    let cell = || {
        let wrong = outcome.values.as_ref().or(outcome.ring.as_ref())?;
        let first = wrong.cells.first;
        Some(format!(
            "n = {n}: row {}, column {} is wrong after launch {}: expected {}, got {}",
            first.row,
            first.column,
            wrong.launch,
            words::value(first.expected),
            words::value(first.got)
        ))
    };
    let input =
        || outcome.input_changed.map(|change| format!("n = {n}: launch {} changed its input grid", change.launch));
    outcome
        .fault
        .as_ref()
        .map(|fault| format!("n = {n}: {}", ended(fault)))
        .or_else(hazard)
        .or_else(cell)
        .or_else(input)
}

fn ended(fault: &RunFault) -> String {
    match fault {
        RunFault::LaunchRefused { launch, reason } => format!("launch {launch} was refused: {reason}"),
        RunFault::Crash { launch, what, place, .. } => {
            format!("{}: launch {launch} crashed: {what}", words::place(*place))
        }
        RunFault::Denied { what, .. } => format!("it tried to {what}"),
        RunFault::TooSlow { seconds, .. } => format!("took {seconds:.0} s of CPU time, too long to go on"),
        RunFault::Hang { launch, place, .. } => format!("{}: launch {launch} did not finish", words::place(*place)),
        RunFault::Deadlock { launch } => format!("launch {launch} never ended: no thread could leave its barrier"),
        RunFault::CannotJudge { construct, place } => format!("{} uses {construct}", words::place(*place)),
        RunFault::WallLimit { launch, .. } => format!("the machine was too busy to finish launch {launch}"),
    }
}
