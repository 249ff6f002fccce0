//! What runs the two programs of a grade: engine cpu, engine cuda, or both side by side.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};

use super::later::Later;
use super::start::Pair;
use super::trials::{Engine, TimedRun, Unwatchable};
use super::turns::{TableReads, Turn};
use super::workshop::{REFERENCE, REFERENCE_KERNEL};
use crate::compile::gpu::{GpuBuilds, ReferenceBuilds};
use crate::compile::host::HostBuilds;
use crate::compile::ptx::NotCountable;
use crate::execute::cpu::{self, CpuRunner, Role, Yardstick, this_executable};
use crate::execute::cuda::sanitize::{Sizes, sanitize};
use crate::execute::cuda::{self, Counted, CudaRunner, TimingPlan};
use crate::execute::sanitized::Sanitized;
use crate::execute::{Observation, Processor, RawTimes, RunFault, Runner, Trial, Watch};
use crate::exercise::Exercise;
use crate::judge::case::Program;
use crate::judge::plan::{Means, Uncounted};
use crate::judge::timing::{COPY, GLOBAL, TILED};
use crate::outbox;
use crate::submission::{Geometry, GeometryOf};

/// GPU time to aim at in a timing, milliseconds. Fewer than six rounds of each kernel are never made.
const TIMING_BUDGET: f64 = 300.0;

/// The engines of one grade: at least one of them.
pub struct Engines<'e> {
    /// Or why it cannot run the submission. With a GPU it is waited for when the first watched trial is to run.
    pub cpu: Later<'e, Result<Cpu, String>>,
    pub gpu: Option<Gpu>,
    /// What compute-sanitizer said, or why it did not run; `None` when it was not asked for.
    pub sanitized: Option<Result<Vec<Sanitized>, String>>,
}

impl Engine for Engines<'_> {
    fn name(&self) -> &'static str {
        if self.gpu.is_some() { "cuda" } else { "cpu" }
    }

    fn means(&self) -> Means {
        let uncounted = self.gpu.as_ref().and_then(|gpu| gpu.uncounted.clone());
        let sanitized = self.sanitized.iter().flatten().flatten().cloned().collect();
        let unwatched = self.cpu.known().and_then(|cpu| cpu.as_ref().err()).cloned();
        Means { gpu: self.gpu.is_some(), unwatched, uncounted, sanitized }
    }

    fn not_sanitized(&self) -> Option<String> {
        self.sanitized.as_ref()?.as_ref().err().cloned()
    }

    fn runner(&self, program: Program, on: Processor) -> Result<Box<dyn Runner>> {
        match on {
            Processor::Cpu => match self.cpu.get()? {
                Ok(cpu) => Ok(cpu.runner(program)),
                Err(reason) => Err(Unwatchable(reason.clone()).into()),
            },
            Processor::Gpu => Ok(self.gpu.as_ref().context("there is no GPU")?.runner(program)),
        }
    }

    fn time(&self, trial: &Trial, satisfied: &dyn Fn(&RawTimes) -> bool) -> Result<TimedRun> {
        self.gpu.as_ref().context("there is no GPU")?.time(trial, satisfied)
    }

    fn count_reference(&self, trial: &Trial) -> Result<()> {
        self.gpu.as_ref().map_or(Ok(()), |gpu| gpu.table_reads(trial).map(|_| ()))
    }

    fn spares_gpu(&self) -> bool {
        self.gpu.as_ref().is_some_and(|gpu| gpu.desk.turn.has_others())
    }

    fn done_on_gpu(&self) {
        self.gpu.iter().for_each(Gpu::done);
    }
}

/// What the exercise says of the kernels that it ships.
#[derive(Clone, Copy)]
pub struct Shipped<'a> {
    pub exercise: &'a Exercise,
}

impl Shipped<'_> {
    /// Their launch: the exercise's default.
    fn geometry(&self) -> Arc<GeometryOf> {
        let ([bx, by], [tx, ty]) = (self.exercise.launch.block, self.exercise.launch.tile);
        Arc::new(move |n| {
            let interior = n.saturating_sub(2);
            Ok(Geometry { grid: [interior.div_ceil(tx), interior.div_ceil(ty), 1], block: [bx, by, 1], shared: 0 })
        })
    }

    /// copyGrid's launch: it copies the ring as well.
    fn copy_geometry(&self) -> Arc<GeometryOf> {
        let [bx, by] = self.exercise.launch.block;
        Arc::new(move |n| Ok(Geometry { grid: [n.div_ceil(bx), n.div_ceil(by), 1], block: [bx, by, 1], shared: 0 }))
    }
}

/// Engine cpu for one grade.
pub struct Cpu {
    reference: cpu::Program,
    submission: cpu::Program,
    /// Keeps the submission's objects on disk; the workshop keeps the reference's.
    _builds: HostBuilds,
    executable: PathBuf,
    lanes: usize,
    yardstick: Yardstick,
}

impl Cpu {
    /// `kernel` is the submission's, `source` its text; `threads` OS threads, all cores when `None`, share the blocks of a
    /// launch.
    pub fn new(
        reference: &HostBuilds,
        builds: HostBuilds,
        kernel: &str,
        source: &str,
        geometry: Arc<GeometryOf>,
        shipped: Shipped,
        threads: Option<usize>,
    ) -> Result<Self> {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let program = |builds: &HostBuilds, kernel: &str, source: &str, geometry| cpu::Program {
            fast: builds.fast.clone(),
            checked: builds.checked.clone(),
            kernel: kernel.to_owned(),
            source: Arc::from(source),
            geometry,
            loads: None,
        };
        Ok(Self {
            reference: program(reference, REFERENCE_KERNEL, REFERENCE, shipped.geometry()),
            submission: program(&builds, kernel, source, geometry),
            _builds: builds,
            executable: this_executable()?,
            lanes: threads.unwrap_or_else(cores).min(16),
            yardstick: Yardstick::default(),
        })
    }

    /// The same, knowing which variables the submission loads on a GPU.
    pub fn loading(mut self, loads: Option<Arc<BTreeSet<String>>>) -> Self {
        self.submission.loads = loads;
        self
    }

    fn runner(&self, program: Program) -> Box<dyn Runner> {
        let (program, role) = match program {
            Program::Reference => (&self.reference, Role::Reference(self.yardstick.clone())),
            Program::Submission => (&self.submission, Role::Submission(self.yardstick.clone())),
        };
        Box::new(CpuRunner::new(program.clone(), &self.executable, self.lanes).with_role(role))
    }
}

/// The two workers of a grade, and its place among others. A worker that starts here holds a seat.
struct Desk {
    workers: [Mutex<CudaRunner>; 2],
    turn: Arc<Turn>,
}

impl Desk {
    /// The program's worker, once this grade has a seat.
    fn worker(&self, program: Program) -> MutexGuard<'_, CudaRunner> {
        self.turn.sit();
        let mut worker = self.held(program);
        if program == Program::Reference && !worker.is_well() {
            self.turn.left_reference().into_iter().for_each(|left| worker.take_over(left));
        }
        worker
    }

    /// The same for who wants nothing run.
    fn held(&self, program: Program) -> MutexGuard<'_, CudaRunner> {
        self.workers[program as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Engine cuda for one grade.
pub struct Gpu {
    desk: Arc<Desk>,
    /// Workers on their way out.
    ending: Mutex<Vec<JoinHandle<()>>>,
    programs: [cuda::Program; 2],
    /// The reference's other kernel with its counted build: what the table's reads are counted with.
    global: cuda::Program,
    uncounted: Option<Uncounted>,
}

impl Gpu {
    /// `kernel` is the submission's name for reports.
    pub fn new(
        pair: Pair,
        turn: Arc<Turn>,
        reference: &ReferenceBuilds,
        builds: GpuBuilds,
        kernel: &str,
        geometry: Arc<GeometryOf>,
        shipped: Shipped,
    ) -> Self {
        let steps: Arc<[u8]> = Arc::from(reference.steps.as_slice());
        let shipped_kernel = |name: &str, entry: &str| cuda::Kernel {
            name: name.to_owned(),
            cubin: steps.clone(),
            entry: entry.to_owned(),
            geometry: shipped.geometry(),
            timesteps: 1,
        };
        let copy = cuda::Kernel {
            name: COPY.to_owned(),
            cubin: Arc::from(reference.copy.as_slice()),
            entry: reference.copy_grid.clone(),
            geometry: shipped.copy_geometry(),
            timesteps: 1,
        };
        let counting: Arc<[u8]> = Arc::from(reference.counted.cubin.as_slice());
        let counted = |entry: &str| Counted {
            cubin: counting.clone(),
            entry: entry.to_owned(),
            counter: reference.counted.counter.clone(),
            slots: reference.counted.slots,
        };
        let arch = builds.arch;
        let global = shipped_kernel(GLOBAL, &reference.heat_step_global);
        let tiled = cuda::Program {
            kernel: shipped_kernel(TILED, &reference.heat_step_tiled),
            counted: Some(counted(&reference.heat_step_tiled)),
            also_timed: vec![copy.clone(), global.clone()],
            arch,
        };
        let global_counted = Some(counted(&reference.heat_step_global));
        let global = cuda::Program { kernel: global, counted: global_counted, also_timed: Vec::new(), arch };
        let entry = builds.entry.clone();
        let (counted, uncounted) = match builds.counted {
            Ok(counted) => {
                let cubin = Arc::from(counted.cubin);
                (Some(Counted { cubin, entry: entry.clone(), counter: counted.counter, slots: counted.slots }), None)
            }
            Err(NotCountable { construct, line, hides }) => (None, Some(Uncounted { construct, line, hides })),
        };
        let timesteps = shipped.exercise.exercise.steps_per_launch;
        let kernel =
            cuda::Kernel { name: kernel.to_owned(), cubin: Arc::from(builds.plain), entry, geometry, timesteps };
        let submission = cuda::Program { kernel, counted, also_timed: vec![copy], arch };
        let desk = Arc::new(Desk { workers: [pair.reference, pair.submission].map(Mutex::new), turn });
        Self { desk, ending: Mutex::default(), programs: [tiled, submission], global, uncounted }
    }

    /// Loads the modules of both programs, unless others share the GPU and one of them has: then workers start when engine cpu
    /// has found nothing. An error says why the driver does not take them.
    pub fn loads(&self) -> Result<()> {
        if self.desk.turn.is_known_to_load() {
            return Ok(());
        }
        for program in [Program::Reference, Program::Submission] {
            let mut worker = self.desk.worker(program);
            worker.load(self.programs[program as usize].clone());
            worker.load_now()?;
        }
        self.desk.turn.has_loaded();
        Ok(())
    }

    /// Runs the submission under compute-sanitizer, on the small grids whose threads engine cpu watches.
    pub fn sanitize(&self, sanitizer: &Path, exercise: &Exercise, seed: u64) -> Result<Vec<Sanitized>> {
        let hazards = &exercise.trials.hazards;
        let grids = hazards.sizes.iter().copied().zip(hazards.r.iter().copied()).collect();
        let launches = hazards.launches.last().copied().unwrap_or(1);
        let submission = &self.programs[Program::Submission as usize];
        let _beside = self.desk.turn.beside();
        Ok(sanitize(sanitizer, &this_executable()?, submission, &Sizes { grids, launches, seed }))
    }

    /// Gives up the GPU after all went well there. The reference's worker goes to the next grade, if the submission's has outlived
    /// its kernel: what kills one context has been seen to harm another.
    fn done(&self) {
        if self.desk.turn.has_others() && self.desk.held(Program::Submission).is_well() {
            let left = self.desk.held(Program::Reference).pass_on();
            left.into_iter().for_each(|reference| self.desk.turn.leave_reference(reference));
        }
        self.let_go();
    }

    /// Ends both workers in the background, while nobody times, and with them this grade's seat. Who wants them again gets
    /// fresh ones.
    fn let_go(&self) {
        let (seat, turn) = (self.desk.turn.leave(), self.desk.turn.clone());
        let workers = [Program::Reference, Program::Submission].map(|program| self.desk.held(program).let_go());
        if workers.iter().all(Option::is_none) {
            return;
        }
        let ending = std::thread::spawn(move || {
            let _beside = turn.beside();
            std::thread::scope(|scope| {
                workers.into_iter().flatten().for_each(|worker| drop(scope.spawn(|| worker.end())));
            });
            drop(seat);
        });
        self.ending.lock().unwrap_or_else(PoisonError::into_inner).push(ending);
    }

    fn runner(&self, program: Program) -> Box<dyn Runner> {
        Box::new(self.lent(program, &self.programs[program as usize]))
    }

    fn lent(&self, worker: Program, program: &cuda::Program) -> Lent {
        Lent { desk: self.desk.clone(), worker, program: program.clone(), fresh: true }
    }

    /// Words that the reference's kernels read per cell-step, by name, counted on the first call.
    fn table_reads(&self, trial: &Trial) -> Result<&TableReads> {
        let known = self.desk.turn.table_reads();
        if let Some(reads) = known.get() {
            return Ok(reads);
        }
        let mut reads = Vec::new();
        for program in [&self.global, &self.programs[Program::Reference as usize]] {
            let count = Trial { launches: 1, keep: Vec::new(), watch: Watch::Count, ..trial.clone() };
            let seen = self.lent(Program::Reference, program).run(&count)?;
            let words = *seen.words_read.first().with_context(|| format!("{} was not counted", program.kernel.name))?;
            let cells = Exercise::interior_cells(trial.initial.n() as u32);
            reads.push((program.kernel.name.clone(), words as f64 / cells as f64));
        }
        Ok(known.get_or_init(|| reads))
    }

    /// Times both programs until `satisfied`.
    fn time(&self, trial: &Trial, satisfied: &dyn Fn(&RawTimes) -> bool) -> Result<TimedRun> {
        let reads = self.table_reads(trial)?.clone();
        let plan =
            TimingPlan { initial: trial.initial.clone(), r: trial.r, launches: trial.launches, budget: TIMING_BUDGET };
        self.desk.turn.sit();
        // No other trial of this grade is on the GPU any more, so that both workers may be held while it waits.
        let (mut reference, mut submission) = {
            let _beside = self.desk.turn.beside();
            let mut workers = (self.desk.worker(Program::Reference), self.desk.worker(Program::Submission));
            workers.0.load(self.programs[Program::Reference as usize].clone());
            workers.1.load(self.programs[Program::Submission as usize].clone());
            cuda::prepare(&mut workers.0, &mut workers.1, &plan)?;
            workers
        };
        let _alone = self.desk.turn.alone();
        let mut waiting = |waited: Duration| {
            outbox::warn(&format!("waiting for the GPU: another grader times on it ({} s)\n", waited.as_secs()));
        };
        let timed = cuda::time(&mut reference, &mut submission, &plan, satisfied, &mut waiting)?;
        Ok(TimedRun { timed, reads })
    }
}

impl Drop for Gpu {
    /// Waits until both workers have ended.
    fn drop(&mut self) {
        self.done();
        for ending in self.ending.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = ending.join();
        }
    }
}

/// A worker that trials borrow for one run at a time.
struct Lent {
    desk: Arc<Desk>,
    worker: Program,
    program: cuda::Program,
    /// Whether the modules are to be loaded anew.
    fresh: bool,
}

impl Runner for Lent {
    /// A context can also die of what another process did to the GPU, and a launch be held up while the driver ends a kernel of
    /// another's. So a crash or a hang is told when it comes again, in a fresh worker; nothing else that this process grades
    /// runs meanwhile.
    fn run(&mut self, trial: &Trial) -> Result<Observation> {
        let seen = self.run_once(trial)?;
        if !matches!(seen.fault, Some(RunFault::Crash { .. } | RunFault::Hang { .. })) {
            return Ok(seen);
        }
        let _alone = self.desk.turn.alone();
        self.fresh = true;
        self.run_with(trial)
    }
}

impl Lent {
    fn run_once(&mut self, trial: &Trial) -> Result<Observation> {
        if self.worker == Program::Submission {
            // The driver starts while this grade waits for its seat.
            self.desk.held(self.worker).start_without_context()?;
        }
        self.desk.turn.sit();
        let _beside = self.desk.turn.beside();
        self.run_with(trial)
    }

    fn run_with(&mut self, trial: &Trial) -> Result<Observation> {
        let mut worker = self.desk.worker(self.worker);
        if std::mem::take(&mut self.fresh) {
            // Loads the modules anew, so that their variables are as at their start; nobody else's run comes between.
            worker.load(self.program.clone());
        }
        worker.run(trial)
    }
}
