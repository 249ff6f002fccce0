//! Pure judgement: observations in, checks out. Imports no process, file system or GPU.
//!
//! [`plan`] says which trials are made. Each becomes a [`case::Case`], which asks for runs until it knows what the trial
//! came to. The [`Judge`] folds these outcomes in the order of the plan, whichever finished first, so that the same
//! submission and seed give the same report; it stops at the first failure of a check that stops the trials.

pub mod advice;
pub mod answer;
mod bracket;
pub mod case;
pub mod cells;
mod clock;
pub mod diagnosis;
pub mod error_map;
pub mod hazards;
pub mod loads;
pub mod neighbourhood;
pub mod outcome;
pub mod plan;
mod portable;
pub mod reads;
pub mod sanitizer;
pub mod timing;
mod values;
mod words;

use advice::Advice;
use diagnosis::{Cause, Known};
use hazards::SeenHazard;
use loads::{Apron, ReadsMap};
use outcome::{FirstMismatch, Outcome};
use plan::{Kind, Means, Planned, Scope};
use reads::Reads;
use timing::Timing;

use crate::execute::{RunFault, limits};
use crate::exercise::Exercise;
use crate::verdict::{Check, CheckId, Status};

pub use words::{actor as actor_words, counted, grouped};

/// What may change a judgement besides the submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub scope: Scope,
    /// Whether `portable` gates.
    pub strict: bool,
    /// What every initial grid is drawn from.
    pub seed: u64,
}

/// Outcomes so far, as the checks see them.
pub struct Seen<'a> {
    pub exercise: &'a Exercise,
    pub means: &'a Means,
    pub plan: &'a [Planned],
    /// In the order of the plan.
    pub outcomes: &'a [Outcome],
}

impl Seen<'_> {
    /// Outcomes of the trials that gate.
    fn gating(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.iter().filter(|outcome| outcome.planned.kind != Kind::Portable)
    }

    /// Whether every trial that serves a check has been folded and ran to its end.
    fn complete_for(&self, id: CheckId) -> bool {
        let serves = |planned: &Planned| serves(planned.kind, id);
        let ended = |outcome: &Outcome| outcome.fault.is_none() || id == CheckId::Portable;
        self.plan.iter().filter(|planned| serves(planned)).count()
            == self.outcomes.iter().filter(|outcome| serves(&outcome.planned) && ended(outcome)).count()
    }
}

/// Whether a trial of this kind serves this check.
fn serves(kind: Kind, id: CheckId) -> bool {
    match id {
        CheckId::Values | CheckId::Ring => !matches!(kind, Kind::Portable | Kind::Time | Kind::Repeat),
        CheckId::Memory => matches!(kind, Kind::Hazards | Kind::Count),
        CheckId::Race => kind == Kind::Hazards,
        CheckId::Reads => kind == Kind::Count,
        CheckId::Portable => kind == Kind::Portable,
        _ => false,
    }
}

/// Folds outcomes in the order of its plan.
pub struct Judge<'a> {
    exercise: &'a Exercise,
    options: Options,
    means: Means,
    plan: Vec<Planned>,
    outcomes: Vec<Outcome>,
    known: Known,
}

/// What the trials of a submission came to.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Checks `values` to `time` in order, preceded by `launch` when a launch was refused.
    pub checks: Vec<Check>,
    /// Why it is wrong, the likeliest first; empty when nothing is wrong or nothing is certain.
    pub causes: Vec<Cause>,
    /// What could be better; no check rests on it.
    pub advice: Vec<Advice>,
    /// The first cell that disagrees, in row-major order, at the first launch where one does.
    pub first_mismatch: Option<FirstMismatch>,
    /// What the count trial counted.
    pub reads: Option<Reads>,
    /// How often each cell is read in a launch; `None` when no thread was watched.
    pub reads_map: Option<ReadsMap>,
    /// What one block reads and writes, likewise.
    pub apron: Option<Apron>,
    /// What the clock said; `None` without a GPU, and when no timing was made.
    pub timing: Option<Timing>,
    /// All hazards of the trials that gate, each site once.
    pub hazards: Vec<SeenHazard>,
    /// What static constructors printed, and the kernel in the deterministic trials, unescaped.
    pub output: String,
    /// Seconds that the submission's launches took, a value a trial.
    pub seconds: Vec<(Kind, f64)>,
}

impl<'a> Judge<'a> {
    /// A judge who has seen nothing.
    pub fn new(exercise: &'a Exercise, options: Options, means: Means) -> Self {
        let plan = plan::plan(exercise, options.scope, options.seed, &means);
        Self { exercise, options, means, plan, outcomes: Vec::new(), known: Known::default() }
    }

    /// The same judge, who knows more of the submission than its outcomes: for the diagnosis.
    pub fn knowing(self, known: Known) -> Self {
        Self { known, ..self }
    }

    /// All trials, in the order in which their outcomes must be folded.
    pub fn plan(&self) -> &[Planned] {
        &self.plan
    }

    /// How many outcomes were folded.
    pub fn folded(&self) -> usize {
        self.outcomes.len()
    }

    /// Takes in the outcome of the next trial of the plan. Ignored once [`Judge::decided`]: whether a later trial had
    /// been started by then is chance, and must not show in the report.
    pub fn fold(&mut self, mut outcome: Outcome) {
        if !self.decided() {
            debug_assert_eq!(self.plan.get(self.outcomes.len()), Some(&outcome.planned));
            // Once, and not with every look at the checks: the grids are large.
            outcome.runs_differ = self.outcomes.iter().find_map(|earlier| outcome.differs_from(earlier));
            self.outcomes.push(outcome);
        }
    }

    /// Whether the trials still missing can be left out.
    pub fn decided(&self) -> bool {
        let ended = self.seen().gating().any(|outcome| outcome.fault.is_some());
        let stopped = |check: &Check| check.status == Status::Fail && check.id.stops_trials();
        ended || self.outcomes.len() == self.plan.len() || self.found().iter().flatten().any(stopped)
    }

    /// The judgement over what was folded.
    pub fn finish(self) -> Judgement {
        let found = self.found();
        let mut checks: Vec<Check> = launch_refused(&self.seen()).into_iter().collect();
        let reason = not_reached(checks.iter().chain(found.iter().flatten()));
        let ids = [CheckId::Values, CheckId::Ring, CheckId::Memory, CheckId::Race, CheckId::Reads, CheckId::Portable];
        let skipped = |id| Check::new(id, Status::Skip, reason.clone());
        checks.extend(ids.into_iter().zip(found).map(|(id, check)| check.unwrap_or_else(|| skipped(id))));
        let seen = self.seen();
        let (time, timing) = clock::time(&seen, self.options.seed);
        checks.push(time.unwrap_or_else(|| skipped(CheckId::Time)));
        let strict_failure = |outcome: &&Outcome| self.options.strict || outcome.planned.kind != Kind::Portable;
        let causes = diagnosis::causes(&seen, &checks, &self.known);
        Judgement {
            causes,
            advice: advice::advice(&seen),
            checks,
            first_mismatch: self.outcomes.iter().filter(strict_failure).find_map(|outcome| outcome.first.clone()),
            reads: reads::measured(&seen),
            reads_map: loads::map(&seen),
            apron: loads::apron(&seen),
            timing,
            hazards: hazards::all(&seen),
            output: output(&seen),
            seconds: self.outcomes.iter().map(|outcome| (outcome.planned.kind, outcome.wall_seconds)).collect(),
        }
    }

    fn seen(&self) -> Seen<'_> {
        Seen { exercise: self.exercise, means: &self.means, plan: &self.plan, outcomes: &self.outcomes }
    }

    /// Checks `values`, `ring`, `memory`, `race`, `reads`, `portable`; `None` where trials are missing.
    fn found(&self) -> [Option<Check>; 6] {
        let seen = self.seen();
        [
            values::values(&seen),
            values::ring(&seen),
            hazards::memory(&seen),
            hazards::race(&seen),
            reads::reads(&seen),
            portable::portable(&seen, self.options.strict),
        ]
    }
}

/// What static constructors printed, and what the kernel printed first: the trials on one OS thread, whose order of lines is
/// the same every time.
fn output(seen: &Seen) -> String {
    let watched = || seen.gating().filter(|outcome| outcome.planned.kind == Kind::Hazards);
    let early: String = watched().map(|outcome| outcome.constructors_printed.as_str()).collect();
    early + watched().map(|outcome| outcome.output.as_str()).find(|text| !text.is_empty()).unwrap_or_default()
}

/// Check `launch`, when the engine refused one.
fn launch_refused(seen: &Seen) -> Option<Check> {
    seen.gating().find_map(|outcome| match &outcome.fault {
        Some(RunFault::LaunchRefused { launch, reason }) => {
            let summary = format!("launch {launch} was refused: {reason} (n = {})", outcome.planned.n);
            Some(Check::new(CheckId::Launch, Status::Fail, summary).with(limits::remedy(reason)))
        }
        _ => None,
    })
}

/// Why a check was not made: the first failure, else the first that could not be judged.
pub fn not_reached<'c>(checks: impl Iterator<Item = &'c Check> + Clone) -> String {
    let with = |status: Status| checks.clone().find(|check| check.status == status && check.id.gates(false));
    match (with(Status::Fail), with(Status::Skip)) {
        (Some(check), _) => format!("not reached: `{}` failed", check.id.name()),
        (None, Some(check)) => format!("not reached: `{}` could not be judged", check.id.name()),
        (None, None) => "not reached".to_owned(),
    }
}
