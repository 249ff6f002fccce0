//! Initial grids, and what the reference makes of them. Several trials of a grade begin with the same grid, which is drawn
//! once, and one run of the reference serves them all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Result;

use crate::execute::{Observation, Processor, Trial};
use crate::grid::Grid;
use crate::judge::case::Request;
use crate::judge::plan::Planned;

/// The initial grids of one grade, by cells a side and seed.
#[derive(Default)]
pub struct Initials(Mutex<HashMap<(u32, u64), Arc<Initial>>>);

/// One initial grid.
#[derive(Default)]
pub struct Initial {
    grid: OnceLock<Arc<Grid>>,
    /// The reference's runs from it.
    runs: Mutex<Vec<ReferenceRun>>,
}

struct ReferenceRun {
    on: Processor,
    trial: Trial,
    seen: Observation,
}

impl Initials {
    /// That of a trial.
    pub fn of(&self, planned: &Planned) -> Arc<Initial> {
        locked(&self.0).entry((planned.n, planned.seed)).or_default().clone()
    }
}

impl Initial {
    /// The grid itself, drawn when it is first wanted. `planned` is one of the trials that it was made for.
    pub fn grid(&self, planned: &Planned) -> Arc<Grid> {
        self.grid.get_or_init(|| Arc::new(planned.initial())).clone()
    }

    /// What the reference shows: what it showed before, or what `run` brings. Whoever asks meanwhile for a run from the same
    /// grid waits for it.
    pub fn reference(&self, request: &Request, run: impl FnOnce() -> Result<Observation>) -> Result<Observation> {
        if self.grid.get().is_none_or(|grid| !Arc::ptr_eq(grid, &request.trial.initial)) {
            return run();
        }
        let mut runs = locked(&self.runs);
        if let Some(known) = runs.iter().find(|known| known.answers(request)) {
            return Ok(known.seen.clone());
        }
        let seen = run()?;
        if seen.fault.is_none() {
            runs.push(ReferenceRun { on: request.on, trial: request.trial.clone(), seen: seen.clone() });
        }
        Ok(seen)
    }
}

impl ReferenceRun {
    /// Whether it has every grid that is wanted. How far it went on after the last of them does not matter.
    fn answers(&self, request: &Request) -> bool {
        let (mine, wanted) = (&self.trial, &request.trial);
        (self.on, mine.r, mine.watch, mine.shortcuts) == (request.on, wanted.r, wanted.watch, wanted.shortcuts)
            && wanted.writers_of.is_none()
            && wanted.keep.iter().all(|launch| mine.keep.contains(launch))
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::exercise::Exercise;
    use crate::judge::case::Program;
    use crate::judge::plan::{Kind, Means, Scope, plan};

    fn planned(kind: Kind) -> Planned {
        let exercise = Exercise::shipped().expect("reference/exercise.toml");
        plan(&exercise, Scope::Quick, 1, &Means::default())
            .into_iter()
            .find(|planned| planned.kind == kind)
            .expect("one")
    }

    #[test]
    fn a_run_of_the_reference_serves_whoever_wants_no_more_than_it_has() {
        let (initials, runs) = (Initials::default(), Cell::new(0));
        let asked = |planned: &Planned, keep: &[u32], initial: Option<Arc<Grid>>| {
            let drawn = initials.of(planned);
            let trial = planned.trial(initial.unwrap_or_else(|| drawn.grid(planned)));
            let trial = Trial { keep: keep.to_vec(), launches: 6, ..trial };
            let request = Request { program: Program::Reference, on: Processor::Cpu, trial, fresh: false };
            let before = runs.get();
            let run = || {
                runs.set(before + 1);
                let grids = keep.iter().map(|&launch| (launch, Grid::initial(3, 1))).collect();
                Ok(Observation { grids, ..Observation::default() })
            };
            let seen = drawn.reference(&request, run).expect("it runs");
            assert!(keep.iter().all(|&launch| seen.grid_after(launch).is_some()));
            runs.get() > before
        };
        let hazards = planned(Kind::Hazards);
        assert!(asked(&hazards, &[2, 6], None), "the first one runs");
        assert!(!asked(&hazards, &[2], None) && !asked(&hazards, &[6], None), "both are known");
        assert!(asked(&hazards, &[4], None), "a grid that was not kept");
        let other = Arc::new(initials.of(&hazards).grid(&hazards).as_ref().clone());
        assert!(asked(&hazards, &[2], Some(other)), "a grid that was not drawn here is nobody else's");
        let elsewhere = Planned { seed: hazards.seed + 1, ..hazards.clone() };
        assert!(asked(&elsewhere, &[2], None), "another seed is another grid");
        assert!(asked(&Planned { r: 0.1, ..hazards }, &[2], None), "another r is another run");
    }

    #[test]
    fn a_grid_is_drawn_once() {
        let (initials, hazards) = (Initials::default(), planned(Kind::Hazards));
        let [one, two] = [(); 2].map(|()| initials.of(&hazards).grid(&hazards));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(one.as_ref(), &hazards.initial());
    }
}
