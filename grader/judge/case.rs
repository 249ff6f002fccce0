//! One planned trial followed to its end: compared with the reference, and when a cell is wrong, placed.
//!
//! A [`Case`] asks for runs ([`Case::next`]) and is told what they showed ([`Case::fold`]); it runs nothing itself. What
//! it asks for, in this order:
//!
//! 1. the submission's trial, then the reference's over the same timesteps;
//! 2. for each spot, the reference from the submission's own grid before that launch;
//! 3. where nothing is wrong and reads are counted: the first launch and each spot once more, counted, and the last two
//!    spots under full watch: what waits for a later launch or a larger grid shows there;
//! 4. when something is wrong and the launch is not known: both again, from the last grid known to be right, with a few
//!    grids kept in between, until the launch is known ([`Bracket`]);
//! 5. that launch alone under full watch, for the thread that wrote the first wrong cell.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};

use super::bracket::{Bracket, Start, WrongLaunch};
use super::cells::{Difference, WrongCell, compare};
use super::error_map::ErrorMap;
use super::neighbourhood::Neighbourhood;
use super::outcome::{FirstMismatch, Outcome, Writer};
use super::plan::{Kind, Planned};
use crate::execute::{DeviceState, Hazard, InputChange, Observation, Processor, Trial, Watch};
use crate::exercise::Exercise;
use crate::grid::Grid;

/// Whose kernel a run is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// reference/heat.cu's single-step kernel: one timestep a launch.
    Reference,
    /// The submitted kernel: two timesteps a launch.
    Submission,
}

/// A run that a case wants made.
#[derive(Clone, Debug)]
pub struct Request {
    pub program: Program,
    /// What runs it.
    pub on: Processor,
    pub trial: Trial,
    /// Whether the run must start in a fresh worker: device variables keep what earlier launches left in them.
    pub fresh: bool,
}

/// What the case waits for.
enum Step {
    Submission,
    Reference,
    /// The reference from the grid before the spot with this index.
    Spot(usize),
    /// The launch with this index in [`Case::counted`], counted.
    Count(usize),
    NarrowSubmission(Bracket),
    NarrowReference(Bracket, Box<Observation>),
    Attribute(Bracket),
    Done,
}

/// A planned trial on its way to an [`Outcome`].
pub struct Case<'a> {
    exercise: &'a Exercise,
    trial: Trial,
    /// Largest |u| of the initial grid: it never grows, so it bounds that of every later one.
    max_abs: f32,
    step: Step,
    /// The submission's kept grids of the planned trial.
    kept: Vec<(u32, Arc<Grid>)>,
    /// What the submission's variables held after launches.
    states: Vec<(u32, Arc<DeviceState>)>,
    /// Whether a run took a shortcut of the engine's.
    shortcut: bool,
    outcome: Outcome,
}

impl<'a> Case<'a> {
    /// A case with nothing run yet; `initial` is the trial's initial grid.
    pub fn new(exercise: &'a Exercise, planned: Planned, initial: Arc<Grid>) -> Self {
        let (max_abs, trial) = (initial.max_abs(), planned.trial(initial));
        Self {
            exercise,
            trial,
            max_abs,
            step: Step::Submission,
            kept: Vec::new(),
            states: Vec::new(),
            shortcut: false,
            outcome: Outcome::new(planned),
        }
    }

    /// The run to make next; `None` when the case is closed.
    pub fn next(&self) -> Option<Request> {
        match &self.step {
            Step::Submission => Some(self.submission()),
            Step::Reference => Some(self.reference(&self.trial.initial, &self.compared())),
            Step::Spot(at) => {
                self.kept_grid(self.outcome.planned.spots[*at] - 1).map(|grid| self.reference(grid, &[1]))
            }
            Step::Count(at) => self.counting(self.counted()[*at]),
            Step::NarrowSubmission(bracket) => {
                let keep = bracket.keep();
                let launches = keep.last().copied().unwrap_or(1);
                let initial = bracket.initial(&self.trial.initial);
                let trial = Trial {
                    initial,
                    launches,
                    keep,
                    watch: Watch::Fast,
                    cell_reads: false,
                    shortcuts: false,
                    keep_state: Vec::new(),
                    ..self.trial.clone()
                };
                Some(Request { program: Program::Submission, on: self.outcome.planned.on, trial, fresh: true })
            }
            Step::NarrowReference(bracket, _) => {
                Some(self.reference(&bracket.initial(&self.trial.initial), &bracket.keep()))
            }
            Step::Attribute(bracket) => self.outcome.first.as_ref().map(|first| Request {
                program: Program::Submission,
                on: Processor::Cpu,
                fresh: false,
                trial: Trial {
                    initial: bracket.right.1.clone(),
                    launches: 1,
                    keep: vec![1],
                    watch: Watch::Full,
                    cell_reads: false,
                    keep_state: Vec::new(),
                    writers_of: Some(first.around.window.clone()),
                    ..self.trial.clone()
                },
            }),
            Step::Done => None,
        }
    }

    /// Takes in what the run asked for by [`Case::next`] showed.
    ///
    /// Errors when the engine broke its word (a grid missing or of another size) or the reference did not run to its end:
    /// neither is the submission's doing.
    pub fn fold(&mut self, seen: Observation) -> anyhow::Result<()> {
        self.shortcut |= seen.shortcut;
        self.step = match std::mem::replace(&mut self.step, Step::Done) {
            Step::Submission => self.fold_submission(seen)?,
            Step::Reference => self.fold_reference(&seen)?,
            Step::Spot(at) => self.fold_spot(at, &seen)?,
            Step::Count(at) => self.fold_count(at, seen),
            Step::NarrowSubmission(bracket) => self.fold_narrow_submission(bracket, seen),
            Step::NarrowReference(bracket, submission) => self.fold_narrow_reference(bracket, &submission, &seen)?,
            Step::Attribute(_) => self.fold_attribution(&seen),
            Step::Done => bail!("a closed case was given an observation"),
        };
        Ok(())
    }

    /// What the trial came to, once [`Case::next`] gives nothing more.
    pub fn close(self) -> Outcome {
        self.outcome
    }

    fn fold_submission(&mut self, seen: Observation) -> anyhow::Result<Step> {
        if seen.fault.is_none() {
            let kept = seen.grids.iter().map(|(launch, _)| launch);
            ensure!(kept.eq(&self.trial.keep), "the engine kept other grids than it was asked for");
        }
        self.outcome.wall_seconds += seen.seconds();
        self.states = seen.states;
        self.kept = seen.grids.into_iter().map(|(launch, grid)| (launch, Arc::new(grid))).collect();
        let outcome = &mut self.outcome;
        if matches!(outcome.planned.kind, Kind::Thousand | Kind::Repeat) {
            outcome.last = self.kept.last().map(|(_, grid)| grid.clone());
        }
        outcome.words_read = (1..).zip(seen.words_read).collect();
        outcome.cell_reads = seen.cell_reads;
        outcome.hazards = seen.hazards;
        outcome.input_changed = seen.input_changed;
        outcome.fault = seen.fault;
        outcome.output = seen.output;
        outcome.constructors_printed = seen.constructors_printed;
        let compared = !self.kept.is_empty() && outcome.planned.kind != Kind::Repeat;
        Ok(if compared { Step::Reference } else { Step::Done })
    }

    /// The planned run of the submission.
    fn submission(&self) -> Request {
        let planned = &self.outcome.planned;
        // Device variables may hold what earlier launches left: the long runs start alike.
        let fresh = matches!(planned.kind, Kind::Thousand | Kind::Repeat);
        Request { program: Program::Submission, on: planned.on, trial: self.trial.clone(), fresh }
    }

    fn fold_reference(&mut self, seen: &Observation) -> anyhow::Result<Step> {
        let mut bracket = Bracket::new(self.trial.initial.clone());
        for launch in &self.compared() {
            let grid = self.kept_grid(*launch).context("a kept grid is missing")?.clone();
            let expected = self.reference_grid(seen, *launch)?;
            let difference = self.compare(expected, &grid, *launch)?;
            self.outcome.note(*launch, &difference);
            self.outcome.furthest = self.outcome.furthest.max(difference.within);
            match difference.first() {
                Some(cell) if bracket.wrong.is_none() => {
                    bracket.set_wrong(self.wrong(*launch, cell, expected, &grid, *launch));
                }
                None if bracket.wrong.is_none() => bracket.right = (*launch, grid.clone()),
                _ => {}
            }
        }
        if bracket.wrong.is_none() {
            return Ok(self.spot_after(None));
        }
        if self.shortcut {
            return Ok(self.without_shortcuts());
        }
        Ok(self.place(bracket))
    }

    /// After which launches a kept grid is compared with the reference's from the start: all of them but spots, which the
    /// reference is led to from the grid before.
    fn compared(&self) -> Vec<u32> {
        let spots = &self.outcome.planned.spots;
        let for_a_spot = |launch: u32| spots.contains(&launch) || spots.contains(&(launch + 1));
        let last = self.kept.last().map(|(launch, _)| *launch);
        let kept = self.kept.iter().map(|(launch, _)| *launch);
        kept.filter(|launch| Some(*launch) == last || !for_a_spot(*launch)).collect()
    }

    /// The next spot whose two grids were kept.
    fn spot_after(&self, at: Option<usize>) -> Step {
        let spots = &self.outcome.planned.spots;
        let both_kept = |spot: u32| self.kept_grid(spot).is_some() && self.kept_grid(spot - 1).is_some();
        let next = (at.map_or(0, |at| at + 1)..spots.len()).find(|&at| both_kept(spots[at]));
        next.map_or_else(|| self.count_after(None), Step::Spot)
    }

    /// The launches to count: the first one, and the spots whose grid before was kept.
    fn counted(&self) -> Vec<u32> {
        let planned = &self.outcome.planned;
        let spots = planned.spots.iter().filter(|_| planned.counts_spots).copied();
        spots.clone().take(1).map(|_| 1).chain(spots.filter(|spot| self.kept_grid(spot - 1).is_some())).collect()
    }

    fn count_after(&self, at: Option<usize>) -> Step {
        let next = at.map_or(0, |at| at + 1);
        if next < self.counted().len() { Step::Count(next) } else { Step::Done }
    }

    /// One launch of the submission from its own grid before it, and with its variables as they were then, counted.
    fn counting(&self, launch: u32) -> Option<Request> {
        let initial = if launch == 1 { &self.trial.initial } else { self.kept_grid(launch - 1)? };
        let state = self.states.iter().find(|(after, _)| after + 1 == launch).map(|(_, state)| state.clone());
        let trial = Trial {
            initial: initial.clone(),
            launches: 1,
            watch: if self.is_watched(launch) { Watch::Full } else { Watch::Count },
            keep: Vec::new(),
            state,
            keep_state: Vec::new(),
            ..self.trial.clone()
        };
        Some(Request { program: Program::Submission, on: self.outcome.planned.on, trial, fresh: false })
    }

    /// Whether a counted launch is watched as well: the last two of the spots, of which the last one is the last launch.
    fn is_watched(&self, launch: u32) -> bool {
        self.outcome.planned.spots.iter().rev().take(2).any(|spot| *spot == launch)
    }

    /// A fault is none of the planned run, which had none.
    fn fold_count(&mut self, at: usize, seen: Observation) -> Step {
        let launch = self.counted()[at];
        if let (None, [words]) = (&seen.fault, &seen.words_read[..]) {
            self.outcome.words_read.push((launch, *words));
        }
        self.outcome.wall_seconds += seen.seconds();
        // The run's first launch was this one.
        self.outcome.hazards.extend(seen.hazards.into_iter().map(|hazard| Hazard { launch, ..hazard }));
        let changed = seen.input_changed.map(|change| InputChange { launch, ..change });
        self.outcome.input_changed = self.outcome.input_changed.take().or(changed);
        self.count_after(Some(at))
    }

    fn fold_spot(&mut self, at: usize, seen: &Observation) -> anyhow::Result<Step> {
        let spots = &self.outcome.planned.spots;
        let launch = spots[at];
        let grid = self.kept_grid(launch).context("a spot's grid was not kept")?;
        let expected = self.reference_grid(seen, 1)?;
        let difference = self.compare(expected, grid, 1)?;
        let Some(cell) = difference.first() else { return Ok(self.spot_after(Some(at))) };
        if self.shortcut {
            return Ok(self.without_shortcuts());
        }
        let mut bracket = Bracket::new(self.trial.initial.clone());
        if let Some(before) = at.checked_sub(1).map(|before| spots[before])
            && let Some(grid) = self.kept_grid(before)
        {
            bracket.right = (before, grid.clone());
        }
        bracket.set_wrong(self.wrong(launch, cell, expected, grid, 1));
        self.outcome.note(launch, &difference);
        Ok(self.place(bracket))
    }

    /// Starts anew without the engine's shortcuts: only such a run is ground for a failure.
    fn without_shortcuts(&mut self) -> Step {
        self.trial.shortcuts = false;
        self.shortcut = false;
        self.kept.clear();
        self.states.clear();
        self.outcome = Outcome::new(self.outcome.planned.clone());
        Step::Submission
    }

    fn fold_narrow_submission(&mut self, bracket: Bracket, seen: Observation) -> Step {
        self.outcome.wall_seconds += seen.seconds();
        if seen.fault.is_some() {
            return self.give_up(&bracket);
        }
        Step::NarrowReference(bracket, Box::new(seen))
    }

    fn fold_narrow_reference(
        &mut self,
        mut bracket: Bracket,
        submission: &Observation,
        reference: &Observation,
    ) -> anyhow::Result<Step> {
        // A run in which the fault does not show as it did says nothing about the run in which it did.
        if !bracket.is_repeated_by(submission) {
            return Ok(Step::NarrowSubmission(bracket.restarted()));
        }
        let before = bracket.start_launch();
        let mut last_right = None;
        let mut reproduced = false;
        for run in bracket.keep() {
            let grid = submission.grid_after(run).context("a kept grid is missing")?;
            let expected = self.reference_grid(reference, run)?;
            let difference = self.compare(expected, grid, run)?;
            if let Some(cell) = difference.first() {
                let grid = Arc::new(grid.clone());
                bracket.set_wrong(self.wrong(before + run, cell, expected, &grid, run));
                self.outcome.note(before + run, &difference);
                reproduced = true;
                break;
            }
            last_right = Some((before + run, grid));
        }
        if let Some((launch, grid)) = last_right.filter(|_| reproduced) {
            bracket.right = (launch, Arc::new(grid.clone()));
        }
        Ok(match (reproduced, bracket.start) {
            (true, _) => self.place(bracket),
            // The two-timestep tolerance of a fresh start may be what it stays under: look from the beginning.
            (false, Start::LastRight) => Step::NarrowSubmission(bracket.restarted()),
            (false, Start::Beginning) => self.give_up(&bracket),
        })
    }

    /// Narrows the bracket further, or records the mismatch and asks who wrote it.
    fn place(&mut self, bracket: Bracket) -> Step {
        if self.outcome.planned.kind != Kind::Portable && !bracket.is_placed() {
            return Step::NarrowSubmission(bracket);
        }
        self.record(&bracket);
        let attributable = bracket.is_placed() && self.outcome.planned.attributable;
        if attributable { Step::Attribute(bracket) } else { Step::Done }
    }

    fn give_up(&mut self, bracket: &Bracket) -> Step {
        self.record(bracket);
        Step::Done
    }

    fn record(&mut self, bracket: &Bracket) {
        let (n, r) = (self.outcome.planned.n, self.outcome.planned.r);
        self.outcome.first = bracket.wrong.as_ref().map(|wrong| FirstMismatch {
            n,
            r,
            launch: wrong.launch,
            last_right: bracket.right.0,
            cell: wrong.cell,
            writer: Writer::Unknown,
            map: wrong.map.clone(),
            around: wrong.around.clone(),
            before: bracket.is_placed().then(|| bracket.right.1.clone()),
            after: wrong.grid.clone(),
        });
    }

    fn fold_attribution(&mut self, seen: &Observation) -> Step {
        if let Some(first) = &mut self.outcome.first {
            let here = (first.cell.row, first.cell.column);
            let cells = first.around.window.cells();
            first.writer = match cells.zip(&seen.writers).find(|(cell, _)| *cell == here) {
                Some((_, Some(write))) => Writer::By(*write),
                Some((_, None)) => Writer::Nobody,
                None => Writer::Unknown,
            };
            first.around.note_writers(&seen.writers);
        }
        Step::Done
    }

    /// The reference over the timesteps of the given launches, from `initial`.
    fn reference(&self, initial: &Arc<Grid>, launches: &[u32]) -> Request {
        let keep: Vec<u32> = launches.iter().map(|&launch| self.exercise.timesteps(launch)).collect();
        let trial = Trial {
            initial: initial.clone(),
            r: self.trial.r,
            launches: keep.last().copied().unwrap_or(1),
            watch: Watch::Fast,
            keep,
            state: None,
            keep_state: Vec::new(),
            writers_of: None,
            cell_reads: false,
            order: None,
            shortcuts: self.trial.shortcuts,
        };
        Request { program: Program::Reference, on: self.outcome.planned.on, trial, fresh: false }
    }

    /// The reference's grid after the timesteps of `launch` launches.
    fn reference_grid<'o>(&self, seen: &'o Observation, launch: u32) -> anyhow::Result<&'o Grid> {
        if let Some(fault) = &seen.fault {
            bail!("the reference kernel did not run to its end: {fault:?}");
        }
        seen.grid_after(self.exercise.timesteps(launch)).context("the reference's grid is missing")
    }

    fn compare(&self, expected: &Grid, got: &Grid, launches: u32) -> anyhow::Result<Difference> {
        compare(expected, got, self.tolerance(launches)).context("the engine returned a grid of another size")
    }

    /// How far cells may differ after this many launches.
    fn tolerance(&self, launches: u32) -> f64 {
        self.exercise.tolerance(self.exercise.timesteps(launches), self.max_abs)
    }

    /// A launch with wrong cells, `since` launches after the grids agreed.
    fn wrong(&self, launch: u32, cell: WrongCell, expected: &Grid, got: &Arc<Grid>, since: u32) -> WrongLaunch {
        let tolerance = self.tolerance(since);
        let map = ErrorMap::between(expected, got, tolerance);
        let around = Neighbourhood::of(&cell, expected, got, tolerance);
        WrongLaunch { launch, cell, grid: got.clone(), map, around }
    }

    fn kept_grid(&self, launch: u32) -> Option<&Arc<Grid>> {
        self.kept.iter().find(|(kept, _)| *kept == launch).map(|(_, grid)| grid)
    }
}
