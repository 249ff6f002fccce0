//! Check `time` from the outcomes: the table of [`super::timing`], and whether timed rounds did what was checked.

use super::outcome::{Clocked, Outcome};
use super::plan::Kind;
use super::timing::{self, Timing};
use super::{Seen, reads};
use crate::verdict::{Check, CheckId, Status};

/// Check `time` and its figures; no check while the timing is missing.
pub fn time(seen: &Seen, seed: u64) -> (Option<Check>, Option<Timing>) {
    if !seen.means.gpu {
        let reason = "not timed: the cpu engine has no GPU to time on";
        return (Some(Check::new(CheckId::Time, Status::Skip, reason)), None);
    }
    let not = |reason: &str| (Some(Check::new(CheckId::Time, Status::Skip, format!("not timed: {reason}"))), None);
    match clocked(seen).map(|outcome| &outcome.timed) {
        Some(Some(Clocked::Measured { times, reads: of_reference, .. })) => {
            let own = reads::measured(seen).map(|reads| reads.per_cell_step());
            let of = |kernel: &str| {
                let known = of_reference.iter().find(|(name, _)| name == kernel).map(|(_, reads)| *reads);
                known.or_else(|| own.filter(|_| kernel != timing::COPY))
            };
            match timing::timing(times, &of, seed) {
                Some(timing) => (Some(timing::time(&timing)), Some(timing)),
                None => not("a kernel of the table has no round"),
            }
        }
        Some(Some(Clocked::Not(reason))) => not(reason),
        Some(None) | None => (None, None),
    }
}

fn clocked<'s>(seen: &'s Seen) -> Option<&'s Outcome> {
    seen.outcomes.iter().find(|outcome| outcome.planned.kind == Kind::Time)
}
