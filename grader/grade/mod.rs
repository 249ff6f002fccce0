//! One submission down the pipe: read, compile, find the kernel and its launch, run the trials, judge, report.
//!
//! What each station does lies behind [`Stations`]; this file is the order in which they are asked and what becomes of
//! their answers. A submission's fault ends the pipe with a failed check and the rest skipped; the machine's fault is an
//! error, and the caller makes it a report with the verdict `ungraded`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::compile::gpu::GpuBuilds;
use crate::compile::nvcc::KernelUse;
use crate::confine;
use crate::execute::Place;
use crate::execute::cuda::GpuInfo;
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::judge;
use crate::judge::advice::{self, Footprint};
use crate::judge::answer::{self, Given};
use crate::judge::diagnosis::Known;
use crate::judge::plan::{Planned, Scope};
use crate::judge::{Judge, Judgement, Options};
use crate::progress::Progress;
use crate::report::{self, Diagnostic, Launch, Report, build, escape};
use crate::submission::remarks::{Filled, Remark};
use crate::submission::{GeometryOf, Kernel};
use crate::verdict::{Check, CheckId, Status};

mod engines;
mod initial;
mod later;
mod same;
pub mod seed;
mod start;
mod stations;
pub mod trials;
mod turns;
mod unchanged;
mod workshop;

pub use later::Waiting;
pub use same::same_for;
pub use seed::MAX_SEED;
pub use stations::{Machine, Read, no_cuda};
use trials::{Engine, Unwatchable};
pub use unchanged::check;
pub use workshop::{REFERENCE, Workshop};

/// What to grade, and how.
#[derive(Clone, Debug)]
pub struct Order {
    /// A folder with heat.cu, a .cu file, or an archive of either.
    pub path: PathBuf,
    pub scope: Scope,
    /// Whether a verdict needs nvcc to have compiled the file; else its absence is a warning.
    pub needs_nvcc: bool,
    /// Whether `portable` gates.
    pub strict: bool,
    /// Drawn at random when `None`.
    pub seed: Option<u64>,
    /// 75 is sm_75; that of the GPU, or the lesson's, when `None`.
    pub arch: Option<u32>,
    pub engine: EngineChoice,
    /// Whether compute-sanitizer watches the kernel as well, where there is a GPU.
    pub sanitize: bool,
    /// OS threads that engine cpu may use for one launch; all cores when `None`.
    pub threads: Option<usize>,
    /// Show no progress.
    pub quiet: bool,
}

/// Which engine is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// cuda where there is a GPU, else cpu.
    #[default]
    Auto,
    Cuda,
    Cpu,
}

/// A grade, with what the text report shows besides.
#[derive(Clone, Debug)]
pub struct Graded {
    pub report: Report,
    /// heat.cu's text, when it could be read.
    pub source: Option<String>,
    /// How long ago the report was made, where it is an earlier check's of the same submission.
    pub unchanged_for: Option<Duration>,
}

impl Graded {
    /// A report on nothing that was read.
    pub fn without_source(report: Report) -> Self {
        Self { report, source: None, unchanged_for: None }
    }
}

/// A submission as text.
#[derive(Clone, Debug)]
pub struct Source {
    /// As it was given.
    pub path: String,
    pub name: String,
    /// Where it was found, where that is not the top of what was given.
    pub inside: Option<String>,
    pub text: String,
    /// 64 hexadecimal digits.
    pub sha256: String,
    pub answer: Option<Given>,
}

/// Why nothing could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The command line names something that cannot be a submission.
    Usage(String),
    /// The submission fails at `source`.
    Fault(String),
}

/// What nvcc made of the file.
#[derive(Clone, Debug)]
pub struct Cuda {
    /// Check `compile`.
    pub check: Check,
    pub diagnostics: Vec<Diagnostic>,
    /// nvcc's version; `None` when there is no nvcc.
    pub nvcc: Option<String>,
    /// The builds for the GPU, where one is to be used.
    pub gpu: Option<GpuBuilds>,
}

/// The kernel that was found, and how it is launched on the exercise's grid.
#[derive(Clone)]
pub struct Found {
    pub kernel: Kernel,
    /// Else the failed check `launch`.
    pub launch: Result<Launch, Check>,
    /// The launch for any n; `None` when there is no launch.
    pub geometry: Option<Arc<GeometryOf>>,
    /// Line where the kernel uses the exercise's n as a number of its own.
    pub written_n: Option<u32>,
    /// A variable that the kernel reads and that only host code fills.
    pub filled: Option<Filled>,
    /// Faults of the host's code that are certain from the text.
    pub remarks: Vec<Remark>,
}

/// An engine ready to run trials, or why there is none.
pub enum Prepared<'e> {
    Engine(Box<dyn Engine + 'e>),
    /// Not the submission's fault: the host compiler does not take what nvcc takes, say.
    Cannot(String),
    /// No compiler makes a program of the file, which is its own doing.
    TooMuch(String),
}

/// The stations before the judge, as a grade needs them. Errors are the machine's fault.
pub trait Stations: Sync {
    /// A submission built for the host, or why it cannot be.
    type Host: Send;

    /// Reads the submission.
    fn read(&self) -> anyhow::Result<Result<Source, Refusal>>;
    /// Has nvcc compile it; the kernel, when it was found, is built for the GPU as well.
    fn compile(&self, source: &Source, kernel: Option<&Kernel>) -> anyhow::Result<Cuda>;
    /// Finds the kernel and its launch; else the failed check `kernel`.
    fn find(&self, source: &Source) -> Result<Found, Check>;
    /// Builds it for the host.
    fn host(&self, source: &Source, found: &Found) -> anyhow::Result<Self::Host>;
    /// Puts together what was built. The host's build may still be under way: trials on a GPU do not wait for it.
    fn engine<'e>(
        &'e self,
        source: &Source,
        found: &Found,
        host: Waiting<'e, Self::Host>,
        gpu: Option<GpuBuilds>,
    ) -> anyhow::Result<Prepared<'e>>;
    /// The GPU, or why engine cpu is used where the best engine is wanted; `None` when engine cpu was asked for.
    fn gpu(&self) -> Option<Result<GpuInfo, String>>;
    /// Version of the host compiler; `None` when there is none.
    fn host_compiler(&self) -> Option<String>;
}

/// Grades one submission on this machine.
pub fn grade(order: &Order, exercise: &Exercise, workshop: &Workshop) -> anyhow::Result<Graded> {
    graded(&Machine::new(order, exercise, workshop), order, exercise)
}

/// Grades a submission that `read` reads; the order's path is what the report calls it.
pub fn grade_read(order: &Order, read: &Read, exercise: &Exercise, workshop: &Workshop) -> anyhow::Result<Graded> {
    graded(&Machine::new(order, exercise, workshop).reading(read), order, exercise)
}

fn graded(machine: &Machine, order: &Order, exercise: &Exercise) -> anyhow::Result<Graded> {
    let mut graded = grade_with(machine, order, exercise)?;
    graded.report.environment.sandbox = Some(confine::sandbox());
    Ok(graded)
}

/// Grades one submission with the given stations.
pub fn grade_with(stations: &impl Stations, order: &Order, exercise: &Exercise) -> anyhow::Result<Graded> {
    let started = Instant::now();
    let seed = order.seed.map_or_else(seed::random, Ok)?;
    let mut draft = Draft::new(order, seed);
    let source = match stations.read()? {
        Ok(source) => source,
        Err(Refusal::Usage(reason)) => {
            return Ok(Graded::without_source(Report::of_error(reason, ExitCode::Usage)));
        }
        Err(Refusal::Fault(reason)) => {
            draft.add(Check::new(CheckId::Source, Status::Fail, reason));
            return Ok(draft.finish(None, started));
        }
    };
    draft.take_source(&source);
    run_stations(stations, &source, exercise, &mut draft)?;
    let timed = draft.report.timing.is_some();
    draft.add(answer::answer(source.answer.as_ref(), draft.reads.as_ref(), exercise.exercise.n, timed));
    Ok(draft.finish(Some(source), started))
}

/// From the text to the last trial; returns early where a check failed or could not be judged.
fn run_stations(
    stations: &impl Stations,
    source: &Source,
    exercise: &Exercise,
    draft: &mut Draft,
) -> anyhow::Result<()> {
    let found = stations.find(source);
    let launchable = found.as_ref().ok().filter(|found| found.launch.is_ok());
    std::thread::scope(|scope| {
        // nvcc on this thread, the host compiler on another.
        let host = launchable.map(|found| scope.spawn(|| stations.host(source, found)));
        let began = Instant::now();
        // A sign of life within the first second; the trials have their own.
        let compiling = (!draft.quiet).then(|| Cleared(Progress::waiting("compiling")));
        let cuda = stations.compile(source, launchable.map(|found| &found.kernel));
        draft.report.durations.compile = began.elapsed().as_secs_f64();
        draft.report.environment.host_compiler = stations.host_compiler();
        draft.take_gpu(stations.gpu());
        let cuda = cuda?;
        draft.report.environment.nvcc = cuda.nvcc;
        draft.report.diagnostics = cuda.diagnostics;
        if draft.stopped_by(cuda.check) {
            return Ok(());
        }
        let found = match &found {
            Ok(found) => found,
            Err(check) => {
                draft.add(check.clone());
                return Ok(());
            }
        };
        draft.take_kernel(&found.kernel);
        draft.known =
            Known { launch: found.geometry.clone(), written_n: found.written_n, filled: found.filled.clone() };
        draft.report.remarks = found.remarks.iter().map(build::remark).collect();
        match &found.launch {
            Ok(launch) => draft.take_launch(launch.clone(), exercise.exercise.n),
            Err(check) => {
                draft.add(check.clone());
                return Ok(());
            }
        }
        let Some(host) = host else { return Ok(()) };
        let host = Box::new(|| host.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        draft.report.gpu_build = cuda.gpu.as_ref().map(gpu_build);
        let prepared = stations.engine(source, found, host, cuda.gpu)?;
        drop(compiling);
        // Without a GPU that was also the time of the host compiler.
        draft.report.durations.compile = began.elapsed().as_secs_f64();
        // Only now is it known whether the driver takes what was built.
        draft.take_gpu(stations.gpu());
        match prepared {
            Prepared::Engine(engine) => run_trials(engine.as_ref(), exercise, draft),
            Prepared::Cannot(reason) => {
                draft.add(Check::new(CheckId::Values, Status::Skip, format!("could not be judged: {reason}")));
                Ok(())
            }
            Prepared::TooMuch(sentence) => {
                draft.replace(Check::new(CheckId::Compile, Status::Fail, sentence));
                Ok(())
            }
        }
    })
}

fn run_trials(engine: &dyn Engine, exercise: &Exercise, draft: &mut Draft) -> anyhow::Result<()> {
    let began = Instant::now();
    draft.report.engine = Some(engine.name().to_owned());
    draft.report.environment.sanitizer_reason = engine.not_sanitized().map(|reason| escape::line(&reason));
    let judgement = match judgement(engine, exercise, draft) {
        // The engine knows by now what it can do.
        Err(error) if error.is::<Unwatchable>() => judgement(engine, exercise, draft)?,
        judgement => judgement?,
    };
    draft.report.durations.trials = began.elapsed().as_secs_f64();
    draft.take_judgement(judgement, exercise);
    Ok(())
}

/// Plans the trials by what the engine can do as far as it is known, runs and judges them.
fn judgement(engine: &dyn Engine, exercise: &Exercise, draft: &mut Draft) -> anyhow::Result<Judgement> {
    let means = engine.means();
    let sanitized = means.sanitized.iter().map(build::sanitizer).collect::<Vec<_>>();
    draft.report.sanitizer = Some(sanitized).filter(|ran| !ran.is_empty());
    if means.gpu {
        // A GPU takes the lesson's sizes in its stride.
        draft.options.scope = Scope::Full;
        draft.report.scope = Some(Scope::Full);
    }
    let mut judge = Judge::new(exercise, draft.options, means).knowing(draft.known.clone());
    let progress = (!draft.quiet).then(|| Progress::count(judge.plan().len() as u64, "trials"));
    let show = |planned: &Planned| {
        if let Some(progress) = &progress {
            progress.inc(1);
            progress.message(&format!("{}, n = {}", planned.kind.label(), planned.n));
        }
    };
    let outcome = trials::run(engine, exercise, &mut judge, &show);
    progress.iter().for_each(Progress::finish);
    outcome?;
    Ok(judge.finish())
}

/// A progress that is off the screen once this is dropped.
struct Cleared(Progress);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Check `source` of a text that could be read; it says which file was taken, where that had to be found.
fn source_check(text: &str, inside: Option<&str>) -> Check {
    let lines = judge::counted(text.lines().count() as u64, "line");
    let found = inside.map_or_else(String::new, |inside| format!(", found in {}", escape::line(inside)));
    Check::new(CheckId::Source, Status::Pass, format!("{lines} of source{found}"))
}

/// What ptxas gave the kernel, as the report has it.
fn gpu_build(builds: &GpuBuilds) -> report::GpuBuild {
    let KernelUse { registers, shared, stack, spill_stores, spill_loads, .. } = builds.uses;
    report::GpuBuild { arch: builds.arch, registers, shared, stack, spill_stores, spill_loads }
}

/// A report in the making.
struct Draft {
    report: Report,
    checks: Vec<Check>,
    reads: Option<judge::reads::Reads>,
    options: Options,
    quiet: bool,
    /// What the text says, for the diagnosis.
    known: Known,
}

impl Draft {
    fn new(order: &Order, seed: u64) -> Self {
        let path = escape::line(&order.path.to_string_lossy());
        let name = order.path.file_name().map_or_else(|| path.clone(), |name| escape::line(&name.to_string_lossy()));
        let submission = report::Submission { path, name, ..report::Submission::default() };
        let mut report = Report::blank();
        (report.scope, report.strict, report.seed) = (Some(order.scope), order.strict, Some(seed));
        report.submission = Some(submission);
        let options = Options { scope: order.scope, strict: order.strict, seed };
        Self { report, checks: Vec::new(), reads: None, options, quiet: order.quiet, known: Known::default() }
    }

    fn add(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Adds a check in the place of what was said of the same before.
    fn replace(&mut self, check: Check) {
        self.checks.retain(|earlier| earlier.id != check.id);
        self.checks.push(check);
    }

    /// Adds a check; whether it ends the pipe.
    fn stopped_by(&mut self, check: Check) -> bool {
        let stops = matches!(check.status, Status::Fail);
        self.add(check);
        stops
    }

    fn take_source(&mut self, source: &Source) {
        self.add(source_check(&source.text, source.inside.as_deref()));
        self.report.answer = source.answer.as_ref().map(build::answer);
        if let Some(submission) = &mut self.report.submission {
            submission.name = escape::line(&source.name);
            submission.file = source.inside.as_deref().map(escape::line);
            submission.sha256 = Some(source.sha256.clone());
        }
    }

    fn take_gpu(&mut self, gpu: Option<Result<GpuInfo, String>>) {
        let environment = &mut self.report.environment;
        match gpu {
            Some(Ok(gpu)) => (environment.gpu, environment.driver) = (Some(escape::line(&gpu.name)), Some(gpu.driver)),
            Some(Err(reason)) => {
                (environment.gpu, environment.driver) = (None, None);
                environment.engine_reason = Some(escape::line(&reason));
            }
            None => {}
        }
    }

    fn take_kernel(&mut self, kernel: &Kernel) {
        let summary = format!("{}, heat.cu:{}", kernel.name, kernel.line);
        self.add(Check::new(CheckId::Kernel, Status::Pass, summary));
        if let Some(submission) = &mut self.report.submission {
            submission.kernel = Some(escape::line(&kernel.name));
            submission.kernel_line = Some(kernel.line);
        }
    }

    fn take_launch(&mut self, launch: Launch, n: u32) {
        self.add(Check::new(CheckId::Launch, Status::Pass, build::launch_words(&launch, n)));
        if let Some(submission) = &mut self.report.submission {
            submission.launch = Some(launch);
        }
    }

    fn take_judgement(&mut self, judgement: Judgement, exercise: &Exercise) {
        let launched_at = self.report.submission.as_ref().and_then(|submission| submission.launch.as_ref()?.line);
        for mut check in judgement.checks {
            if check.id == CheckId::Launch && check.place.is_none() {
                check.place = launched_at.map(|line| Place { line, column: 0 });
            }
            self.replace(check);
        }
        self.report.causes = judgement.causes.iter().map(build::cause).collect();
        self.report.advice = judgement.advice.iter().map(build::advice).collect();
        if judgement.reads.is_some()
            && let Some(footprint) = self.footprint()
        {
            self.report.advice.extend(advice::of_footprint(&footprint).iter().map(build::advice));
        }
        let first = judgement.first_mismatch;
        self.report.first_mismatch = first.as_ref().map(|first| build::first_mismatch(first, exercise));
        self.report.error_map = first.map(|first| first.map);
        self.report.reads = judgement.reads.as_ref().map(build::reads);
        self.report.reads_map = judgement.reads_map;
        self.report.apron = judgement.apron;
        self.report.timing = judgement.timing;
        self.report.hazards = judgement.hazards.iter().map(build::hazard).collect();
        self.report.output = escape::block(&judgement.output, escape::OUTPUT);
        for (kind, seconds) in judgement.seconds {
            *self.report.durations.by_trial.entry(kind.label().to_owned()).or_default() += seconds;
        }
        self.reads = judgement.reads;
    }

    /// What a block takes of the GPU, where it was built for one.
    fn footprint(&self) -> Option<Footprint> {
        let report::GpuBuild { arch, registers, shared, spill_stores, spill_loads, .. } =
            *self.report.gpu_build.as_ref()?;
        let launch = self.report.submission.as_ref()?.launch.as_ref()?;
        let (threads, spills) = (launch.block.iter().product(), spill_stores + spill_loads);
        Some(Footprint { arch, threads, registers, shared: shared + launch.shared, spills })
    }

    /// Fills in the checks that were not reached and adds everything up.
    fn finish(mut self, source: Option<Source>, started: Instant) -> Graded {
        self.checks.sort_by_key(|check| check.id);
        let reason = judge::not_reached(self.checks.iter());
        let missing = |id: &CheckId| !self.checks.iter().any(|check| check.id == *id);
        let skipped: Vec<Check> =
            CheckId::ALL.into_iter().filter(missing).map(|id| Check::new(id, Status::Skip, reason.clone())).collect();
        self.checks.extend(skipped);
        self.checks.sort_by_key(|check| check.id);
        self.report.durations.total = started.elapsed().as_secs_f64();
        let source = source.map(|source| source.text);
        Graded { report: self.report.with_checks(self.checks), source, unchanged_for: None }
    }
}
