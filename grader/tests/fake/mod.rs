//! An engine that needs no compiler: it computes the stencil itself, and a test says what goes wrong on the way.

pub mod stations;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use heat_grader::execute::{
    Actor, BlockReads, CellReads, Hazard, HazardKind, LastWrite, Observation, Place, Processor, RunFault, Runner,
    Trial, Watch,
};
use heat_grader::exercise::Exercise;
use heat_grader::grade::trials::{Engine, run};
use heat_grader::grid::{Grid, Window};
use heat_grader::judge::case::Program;
use heat_grader::judge::diagnosis::Known;
use heat_grader::judge::plan::{Means, Scope};
use heat_grader::judge::{Judge, Judgement, Options};
use heat_grader::verdict::{Check, CheckId, Status};

/// One launch of a fake kernel: its input grid, r, and how many launches this worker made before in this trial.
pub type Kernel = dyn Fn(&Grid, f32, u32) -> Grid + Send + Sync;
/// A last touch on what a trial showed.
pub type Touch = dyn Fn(&Trial, &mut Observation) + Send + Sync;

/// The exercise at sizes that a debug build computes in no time.
pub fn exercise() -> Exercise {
    let mut exercise = Exercise::shipped().expect("reference/exercise.toml");
    exercise.exercise.n = 40;
    exercise.exercise.quick_n = 24;
    exercise.exercise.steps = 200;
    exercise.trials.hazards.sizes = vec![20, 28];
    exercise.trials.sharp.sizes = vec![40];
    exercise.trials.portable.sizes = vec![3, 5, 7];
    exercise
}

/// One timestep.
pub fn step(grid: &Grid, r: f32) -> Grid {
    let n = grid.n();
    let mut cells = grid.cells().to_vec();
    for row in 1..n - 1 {
        for column in 1..n - 1 {
            let around = grid.at(row - 1, column)
                + grid.at(row + 1, column)
                + grid.at(row, column - 1)
                + grid.at(row, column + 1);
            let centre = grid.at(row, column);
            cells[row * n + column] = centre + r * (around - 4.0 * centre);
        }
    }
    Grid::from_cells(n, cells).expect("same size")
}

/// Two timesteps.
pub fn two_steps(grid: &Grid, r: f32) -> Grid {
    step(&step(grid, r), r)
}

/// The grid with one cell replaced.
pub fn with_cell(grid: &Grid, row: usize, column: usize, value: f32) -> Grid {
    let mut cells = grid.cells().to_vec();
    cells[row * grid.n() + column] = value;
    Grid::from_cells(grid.n(), cells).expect("same size")
}

/// An engine whose submission is the given kernel.
pub struct FakeEngine {
    pub kernel: Arc<Kernel>,
    pub touch: Arc<Touch>,
    /// Runs of the submission.
    pub runs: Arc<AtomicUsize>,
    /// Runners that it got on the GPU.
    pub runners_on_gpu: Arc<AtomicUsize>,
    pub means: Means,
    /// Whether other grades want the GPU as well.
    pub spares_gpu: bool,
}

impl FakeEngine {
    pub fn new(kernel: impl Fn(&Grid, f32, u32) -> Grid + Send + Sync + 'static) -> Self {
        Self {
            kernel: Arc::new(kernel),
            touch: Arc::new(|_, _| {}),
            runs: Arc::default(),
            runners_on_gpu: Arc::default(),
            means: Means::default(),
            spares_gpu: false,
        }
    }

    /// The right kernel.
    pub fn right() -> Self {
        Self::new(|grid, r, _| two_steps(grid, r))
    }

    /// The same beside a GPU.
    pub fn with(mut self, means: Means) -> Self {
        self.means = means;
        self
    }

    pub fn touched(mut self, touch: impl Fn(&Trial, &mut Observation) + Send + Sync + 'static) -> Self {
        self.touch = Arc::new(touch);
        self
    }
}

impl Engine for FakeEngine {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn means(&self) -> Means {
        self.means.clone()
    }

    fn spares_gpu(&self) -> bool {
        self.spares_gpu
    }

    fn runner(&self, program: Program, on: Processor) -> anyhow::Result<Box<dyn Runner>> {
        if (program, on) == (Program::Submission, Processor::Gpu) {
            self.runners_on_gpu.fetch_add(1, Ordering::Relaxed);
        }
        Ok(match program {
            Program::Reference => Box::new(FakeRunner {
                kernel: Arc::new(|grid, r, _| step(grid, r)),
                touch: Arc::new(|_, _| {}),
                runs: Arc::default(),
            }),
            Program::Submission => {
                Box::new(FakeRunner { kernel: self.kernel.clone(), touch: self.touch.clone(), runs: self.runs.clone() })
            }
        })
    }
}

struct FakeRunner {
    kernel: Arc<Kernel>,
    touch: Arc<Touch>,
    runs: Arc<AtomicUsize>,
}

impl Runner for FakeRunner {
    fn run(&mut self, trial: &Trial) -> anyhow::Result<Observation> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        let mut seen = Observation::default();
        let mut grid = trial.initial.as_ref().clone();
        for launch in 1..=trial.launches {
            grid = (self.kernel)(&grid, trial.r, launch - 1);
            if trial.keep.contains(&launch) {
                seen.grids.push((launch, grid.clone()));
            }
            if trial.watch != Watch::Fast {
                seen.words_read.push(2 * Exercise::interior_cells(grid.n() as u32));
            }
        }
        if let Some(window) = &trial.writers_of {
            // Every four columns have a block of their own.
            let block = |column: usize| [column as u32 / 4, 2, 0];
            let by = |column: usize| Actor { block: block(column), thread: [3, 4, 0] };
            let write = |column: usize| LastWrite { actor: by(column), place: Some(Place { line: 61, column: 9 }) };
            seen.writers = window.cells().map(|(_, column)| Some(write(column))).collect();
        }
        if trial.cell_reads {
            seen.cell_reads = Some(cell_reads(trial.initial.n()));
        }
        (self.touch)(trial, &mut seen);
        Ok(seen)
    }
}

/// Every cell read once, and a block of 4 x 2 cells with two cells around them.
fn cell_reads(n: usize) -> CellReads {
    let window = Window { rows: 6..12, columns: 4..12 };
    let written = |(row, column): (usize, usize)| (8..10).contains(&row) && (6..10).contains(&column);
    let of_block = BlockReads {
        block: [1, 3, 0],
        reads: window.cells().map(|_| 1).collect(),
        written: window.cells().map(written).collect(),
        window,
        shared: 384,
        bytes: 192,
        by_line: vec![(57, 192)],
        elsewhere: Vec::new(),
        arrays: Vec::new(),
        uses: Vec::new(),
    };
    CellReads { n, all: vec![1; n * n], of_block: Some(of_block) }
}

/// The judgement over a fake engine's submission.
pub fn judged(engine: &FakeEngine) -> Judgement {
    judged_with(engine, false)
}

/// The same with or without `--strict`.
pub fn judged_with(engine: &FakeEngine, strict: bool) -> Judgement {
    judged_knowing(engine, strict, Known::default())
}

/// The same with what the text says.
pub fn judged_knowing(engine: &FakeEngine, strict: bool, known: Known) -> Judgement {
    let exercise = exercise();
    let options = Options { scope: Scope::Full, strict, seed: 11 };
    let mut judge = Judge::new(&exercise, options, engine.means.clone()).knowing(known);
    run(engine, &exercise, &mut judge, &|_| {}).expect("the fake engine makes no errors");
    judge.finish()
}

/// One check of a judgement.
pub fn check(judgement: &Judgement, id: CheckId) -> &Check {
    judgement.checks.iter().find(|check| check.id == id).unwrap_or_else(|| panic!("no check {id:?}"))
}

/// The statuses of `values`, `ring`, `memory`, `race`, `reads`, `portable`, a letter each: p f w s.
pub fn letters(judgement: &Judgement) -> String {
    let ids = [CheckId::Values, CheckId::Ring, CheckId::Memory, CheckId::Race, CheckId::Reads, CheckId::Portable];
    let letter = |id| match check(judgement, id).status {
        Status::Pass => 'p',
        Status::Fail => 'f',
        Status::Warn => 'w',
        Status::Skip => 's',
    };
    ids.into_iter().map(letter).collect()
}

/// A hazard at heat.cu:57.
pub fn hazard(kind: HazardKind) -> Hazard {
    Hazard {
        kind,
        memory: None,
        store: false,
        bytes: 4,
        place: Some(Place { line: 57, column: 9 }),
        actor: Some(Actor { block: [0, 0, 0], thread: [1, 0, 0] }),
        other: None,
        launch: 1,
        count: 3,
    }
}

/// Ends the run before its first launch is done.
pub fn ended_by(seen: &mut Observation, fault: RunFault) {
    seen.grids.clear();
    seen.words_read.clear();
    seen.fault = Some(fault);
}
