//! Why a kernel is wrong: causes, the likeliest first, or none.
//!
//! Nothing is guessed. A fault of the arithmetic is a cause when a kernel with that fault, run here on the grid before the
//! first wrong launch ([`scene`]), gives the submission's value in every cell that it wrote. A fault of the threads is a
//! cause when the watched launch saw it ([`threads`]). Where neither holds there is no cause, and the report shows what was
//! seen ([`pattern`]).

use std::sync::Arc;

use super::hazards::{self, SeenHazard};
use super::outcome::{FirstMismatch, Outcome, Writer};
use super::plan::Kind;
use super::{Seen, loads, reads};
use crate::execute::{HazardKind, InputChange, Memory};
use crate::submission::remarks::Filled;
use crate::submission::{Geometry, GeometryOf};
use crate::verdict::{Check, CheckId, Status};

mod budget;
pub mod code;
mod coverage;
pub(super) mod pattern;
mod ring;
mod scene;
mod stencil;
#[cfg(test)]
mod tests;
mod threads;
mod tiles;
mod weights;
mod whole;

pub use code::Code;
use scene::Scene;
use threads::Rank;

/// Most causes in a report.
const MOST: usize = 4;

/// Why a kernel is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub code: Code,
    /// What the kernel does, in one sentence.
    pub sentence: String,
    /// What shows it, a sentence each.
    pub evidence: Vec<String>,
}

impl Cause {
    fn new(code: Code, sentence: impl Into<String>) -> Self {
        Self { code, sentence: sentence.into(), evidence: Vec::new() }
    }

    /// The same cause with one more sentence of evidence.
    fn with(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    /// A cause that was found by trying it.
    fn tried(code: Code, sentence: impl Into<String>, scene: &Scene) -> Self {
        let written = scene.interior().filter(|&(row, column)| !scene.is_unwritten(row, column)).count();
        Self::new(code, sentence).with(format!(
            "A kernel with this fault, tried on the grid before launch {}, gives the same value in every one of {} \
             interior cells (n = {}).",
            scene.launch,
            super::grouped(written as u64),
            scene.n()
        ))
    }
}

/// What else is known of the submission.
#[derive(Clone, Default)]
pub struct Known {
    pub launch: Option<Arc<GeometryOf>>,
    /// Line of heat.cu where the kernel uses the exercise's n as a number of its own.
    pub written_n: Option<u32>,
    /// A variable that the kernel reads and that only host code fills.
    pub filled: Option<Filled>,
}

impl Known {
    fn geometry(&self, n: u32) -> Option<Geometry> {
        self.launch.as_ref().and_then(|launch| launch(n).ok())
    }
}

/// The causes of what failed, the likeliest first; none when every gate passed or nothing is certain.
pub fn causes(seen: &Seen, checks: &[Check], known: &Known) -> Vec<Cause> {
    let failed = |id: CheckId| checks.iter().any(|check| check.id == id && check.status == Status::Fail);
    let mut causes = Vec::new();
    let from_threads = threads::causes(&failed_hazards(seen, &failed));
    let (mut scheduled, mut accesses) = (Vec::new(), Vec::new());
    for (rank, cause) in from_threads {
        if rank == Rank::Schedule { scheduled.push(cause) } else { accesses.push(cause) }
    }
    let wrong = seen.gating().find_map(|outcome| Some((outcome, outcome.first.as_ref()?)));
    let scene = wrong.as_ref().and_then(|(outcome, first)| scene_of(seen, outcome, first, known));
    let far = wrong.is_some_and(|(outcome, first)| at_far_walls(outcome, first))
        || (failed(CheckId::Memory) && far_outside(seen));
    match &scene {
        Some(scene) => from_grids(scene, scheduled, accesses, &mut causes),
        None => causes.extend(scheduled.into_iter().chain(accesses)),
    }
    if let Some(cause) = far.then(|| written_n(seen.exercise.exercise.n, seen.gating(), known)).flatten() {
        // What it leads to is said as well, after it.
        causes.insert(0, cause);
    }
    if failed(CheckId::Values)
        && causes.first().is_none_or(|cause| is_arithmetic(cause.code))
        && let Some(filled) = &known.filled
    {
        // What it leads to is said as well, after it.
        causes.insert(0, never_filled(filled));
    }
    if causes.is_empty() && failed(CheckId::Memory) {
        causes.extend(seen.gating().find_map(|outcome| outcome.input_changed).map(stored_into_input));
    }
    if failed(CheckId::Reads) {
        let n = seen.exercise.exercise.n;
        let over = reads::measured(seen).filter(|reads| !reads.within_budget() && reads.is_plausible());
        causes.extend(
            over.map(|reads| {
                budget::cause(&reads, n as usize, known.geometry(n).as_ref(), loads::apron(seen).as_ref())
            }),
        );
    }
    if failed(CheckId::Portable) && causes.is_empty() {
        causes = at_odd_sizes(seen, known);
    }
    causes.truncate(MOST);
    causes
}

/// What the odd sizes alone show: a size written into the kernel, and what its threads did there.
fn at_odd_sizes(seen: &Seen, known: &Known) -> Vec<Cause> {
    let odd = || seen.outcomes.iter().filter(|outcome| outcome.planned.kind == Kind::Portable);
    let harmful = |outcome: &Outcome| {
        let (n, grids_right) = (outcome.planned.n, outcome.grids_right());
        let hazards =
            outcome.hazards.iter().filter(|hazard| hazards::gravity(hazard.kind, grids_right) == Status::Fail);
        hazards.map(|hazard| SeenHazard { n, hazard: hazard.clone() }).collect::<Vec<_>>()
    };
    let hazards: Vec<SeenHazard> = odd().flat_map(harmful).collect();
    let written = written_n(seen.exercise.exercise.n, odd(), known);
    written.into_iter().chain(threads::causes(&hazards).into_iter().map(|(_, cause)| cause)).collect()
}

/// Puts what the grids show and what the threads did in order.
fn from_grids(scene: &Scene, scheduled: Vec<Cause>, accesses: Vec<Cause>, causes: &mut Vec<Cause>) {
    let telling = scene.is_telling();
    let whole = telling.then(|| whole::cause(scene).or_else(|| weights::cause(scene))).flatten();
    let explained = whole.is_some();
    // What lies past an array's end, taken for a neighbour, looks like a weight that no stencil has.
    let strays = accesses.iter().any(|cause| cause.code == Code::IndexOutOfRange);
    causes.extend(whole.filter(|cause| !(strays && cause.code == Code::WrongStencil)));
    // Where threads race, an order of them can look like a fault of the tiles: then the race is said first.
    let raced = !scheduled.is_empty();
    let tiled = (telling && !explained).then(|| tiles::cause(scene)).flatten();
    let ring = ring::cause(scene);
    let alone = ring.as_ref().is_some_and(|(_, alone)| *alone);
    let (first, last) =
        if raced { (scheduled, tiled.into_iter().collect()) } else { (Vec::from_iter(tiled), scheduled) };
    causes.extend(first);
    causes.extend(last);
    let mut ring = ring.map(|(cause, _)| cause);
    if alone {
        causes.extend(ring.take());
    }
    causes.extend(coverage::cause(scene));
    causes.extend(accesses);
    causes.extend(ring);
}

/// The launch to look at, where the grid before it is known.
fn scene_of<'s>(seen: &Seen, outcome: &Outcome, first: &'s FirstMismatch, known: &Known) -> Option<Scene<'s>> {
    let before = first.before.as_ref()?;
    let tolerance = seen.exercise.tolerance(seen.exercise.timesteps(1), before.max_abs());
    let unwritten = first.writer == Writer::Nobody;
    let geometry = known.geometry(outcome.planned.n);
    Scene::new((before, &first.after), outcome.planned.r, tolerance, (first.launch, geometry), unwritten)
}

/// The hazards of checks that failed, without those that do no harm.
fn failed_hazards(seen: &Seen, failed: &impl Fn(CheckId) -> bool) -> Vec<SeenHazard> {
    let grids_right = seen.gating().all(|outcome| outcome.grids_right() && outcome.fault.is_none());
    let harmful = |seen: &SeenHazard| {
        failed(hazards::check_of(seen.hazard.kind)) && hazards::gravity(seen.hazard.kind, grids_right) == Status::Fail
    };
    hazards::all(seen).into_iter().filter(harmful).collect()
}

/// Whether the wrong cells of a grid of another size than the exercise's lie along the far walls only.
fn at_far_walls(outcome: &Outcome, first: &FirstMismatch) -> bool {
    let far = first.after.n().saturating_sub(3);
    let wrong = outcome.values.as_ref().map(|wrong| &wrong.cells);
    wrong.is_some_and(|cells| cells.near_ring() == cells.count && cells.rows.1.max(cells.columns.1) >= far)
}

/// Whether an access went to rows that only another size's grid has.
fn far_outside(seen: &Seen) -> bool {
    seen.gating().any(|outcome| {
        let n = i64::from(outcome.planned.n);
        // Of a site the first such access is kept, which an unguarded load makes in the row below the grid.
        let far = |cell: i64| cell >= n * (n + 1);
        outcome.hazards.iter().any(|hazard| match hazard.memory {
            Some(Memory::In { cell } | Memory::Out { cell }) => hazard.kind == HazardKind::OutOfRange && far(cell),
            _ => false,
        })
    })
}

/// A number in place of n, where the kernel fails at another n.
fn written_n<'o>(n: u32, mut outcomes: impl Iterator<Item = &'o Outcome>, known: &Known) -> Option<Cause> {
    let line = known.written_n?;
    let other = outcomes.find(|outcome| {
        outcome.planned.n != n && (!outcome.grids_right() || outcome.fault.is_some() || !outcome.hazards.is_empty())
    })?;
    let said = format!("The kernel counts on n = {n} (line {line}), where it has to use the n that it is given.");
    Some(Cause::new(Code::HardCodedN, said).with(format!("It goes wrong at n = {}.", other.planned.n)))
}

/// Whether another value of r, or of what stands for it, looks like this.
fn is_arithmetic(code: Code) -> bool {
    use Code::{GridNotAdvanced, OnlyOneStep, UnstableR, WrongR, WrongStencil};
    matches!(code, GridNotAdvanced | OnlyOneStep | UnstableR | WrongR | WrongStencil)
}

/// The kernel reads a variable that holds something else here than where the program runs.
fn never_filled(Filled { name, line }: &Filled) -> Cause {
    let said = format!(
        "The kernel reads {name}, which the program fills before the launch (line {line}); the grader runs nothing of the \
         program but the kernel, so that {name} still holds what it was declared with."
    );
    Cause::new(Code::FilledByHost, said).with("The kernel is given n and r as its parameters, and gets nothing else.")
}

fn stored_into_input(change: InputChange) -> Cause {
    let InputChange { launch, row, column, before, after } = change;
    Cause::new(Code::InPlaceUpdate, "The kernel stores into the grid that it reads.")
        .with(format!("Launch {launch} changed row {row}, column {column} of its input from {before} to {after}."))
}
