//! The grader's side of engine cuda: trials to a worker, its words back as an observation. Calls no driver itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use crossbeam_channel::RecvTimeoutError;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rustix::rand::GetRandomFlags;

use super::faults::run_fault;
use super::message::{GpuInfo, KernelFacts, RawObservation, Reply, Request, Run};
use super::observation::observation;
use super::program::{Program, geometry_for, load_request};
use super::shared::{FIRST, INITIAL, SharedGrids};
use crate::confine;
use crate::execute::process::{Event, WorkerProcess};
use crate::execute::{Observation, Processor, RunFault, Runner, Trial, Watch};
use crate::grid::Grid;

/// Wall time of one launch.
const LAUNCH_WALL: Duration = Duration::from_secs(3);
/// Wall time of a run: some thousand times what the reference needs.
const RUN_WALL: Duration = Duration::from_secs(120);
/// How long a worker may be silent: while it starts, and while it runs (it speaks ten times a second).
const START_WALL: Duration = Duration::from_secs(60);
const SILENCE: Duration = Duration::from_secs(30);
/// How often a running launch is looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a worker under a tool may take to end, which is when the tool writes its summary.
const CLOSE_WALL: Duration = Duration::from_secs(20);
/// Environment that the driver needs to find itself and the GPU that was meant.
const KEPT_VARIABLES: [&str; 6] = [
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MPS_PIPE_DIRECTORY",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
];

/// Runs trials of one program on a GPU.
pub struct CudaRunner {
    /// This binary, whose hidden subcommand is the worker.
    executable: PathBuf,
    under: Option<Under>,
    program: Option<Program>,
    worker: Option<Worker>,
    gpu: Option<Result<GpuInfo, String>>,
    /// Grids that a worker started ahead is to make room for: cells on a side, and how many a run may keep.
    expected: Option<(usize, usize)>,
    /// Whether the kernels do nothing that they should not.
    trusted: bool,
    patterns: ChaCha8Rng,
}

/// A tool that starts the worker and watches it.
#[derive(Clone, Debug)]
pub struct Under {
    /// Its command line, up to the program that it starts.
    pub command: Vec<PathBuf>,
    /// When everything has to be over.
    pub deadline: Instant,
}

/// A worker, and how far it has come.
struct Worker {
    process: WorkerProcess<Reply>,
    shared: SharedGrids,
    /// What it said first: the GPU's compute capability, or why there is none.
    found: Option<Result<u32, String>>,
    /// Whether it was told to make a context, and whether it has.
    opened: bool,
    ready: bool,
    /// Needs of the loaded kernels; empty before they are loaded.
    facts: Vec<KernelFacts>,
}

/// A worker that nobody wants any more.
pub struct Leaving(Worker);

impl Leaving {
    /// Ends it and waits until it is gone: the driver takes a while, and disturbs what else runs on the GPU.
    pub fn end(self) {
        drop(self.0);
    }
}

/// The GPU that workers get, or why there is none: starts one to ask.
pub fn probe(executable: &Path) -> Result<Result<GpuInfo, String>> {
    CudaRunner::start(executable)?.gpu()
}

impl CudaRunner {
    /// Starts a worker, which makes its context while the caller does something else. `executable` is this binary.
    pub fn start(executable: &Path) -> Result<Self> {
        Self::started(executable, None)
    }

    /// The same under a tool: runs then use grids without guard bands, and a worker is given time to end.
    pub fn start_under(executable: &Path, under: Under) -> Result<Self> {
        Self::started(executable, Some(under))
    }

    /// The same with a worker that starts when it is needed.
    pub fn later(executable: &Path) -> Result<Self> {
        let mut seed = [0; 32];
        rustix::rand::getrandom(&mut seed, GetRandomFlags::empty()).context("no random numbers")?;
        Ok(Self {
            executable: executable.to_owned(),
            under: None,
            program: None,
            worker: None,
            gpu: None,
            expected: None,
            trusted: false,
            patterns: ChaCha8Rng::from_seed(seed),
        })
    }

    fn started(executable: &Path, under: Option<Under>) -> Result<Self> {
        let mut worker = Worker::start(executable, under.as_ref())?;
        worker.open();
        Ok(Self { under, worker: Some(worker), ..Self::later(executable)? })
    }

    /// Starts the worker, where there is none, as far as this disturbs nothing on the GPU: it makes its context when it is needed.
    pub fn start_without_context(&mut self) -> Result<()> {
        let expected = self.expected.take();
        let worker = self.at_least_started()?;
        expected.into_iter().for_each(|(n, kept)| worker.make_room(n, FIRST + kept));
        Ok(())
    }

    fn at_least_started(&mut self) -> Result<&mut Worker> {
        Ok(match &mut self.worker {
            Some(worker) => worker,
            slot => slot.insert(Worker::start(&self.executable, self.under.as_ref())?),
        })
    }

    /// The same for kernels of the grader's own: nobody looks whether they store outside their grids, or into the input.
    pub fn trusting(self) -> Self {
        Self { trusted: true, ..self }
    }

    /// Lets the worker make room for grids of n x n cells, of which a run may keep so many, before they are needed: at once, or
    /// when it is started ahead.
    pub fn expect(&mut self, n: usize, kept: usize) {
        match &mut self.worker {
            Some(worker) => worker.make_room(n, FIRST + kept),
            None => self.expected = Some((n, kept)),
        }
    }

    /// Waits for the compute capability of the worker's GPU (75 for sm_75), or the reason why it has none. This is known
    /// before there is a context, and makes none.
    pub fn arch(&mut self) -> Result<Result<u32, String>> {
        let wall = self.within(START_WALL);
        let worker = self.at_least_started()?;
        if worker.found.is_none() {
            worker.found = Some(match worker.answer(wall)?.ok_or_else(|| silent(wall))? {
                Reply::Found { arch } => Ok(arch),
                Reply::NoDevice(reason) => Err(reason),
                _ => bail!("the worker answered out of turn"),
            });
        }
        worker.found.clone().ok_or_else(|| silent(wall))
    }

    /// Waits for the worker's GPU, or the reason why it has none.
    pub fn gpu(&mut self) -> Result<Result<GpuInfo, String>> {
        match &self.gpu {
            Some(known) => Ok(known.clone()),
            None => self.greet(),
        }
    }

    /// Says what trials run from now on. Modules are loaded with the first of them.
    pub fn load(&mut self, program: Program) {
        if let Some(worker) = &mut self.worker {
            worker.facts.clear();
        }
        self.program = Some(program);
    }

    /// Loads the modules at once. An error says why the driver does not take them.
    pub fn load_now(&mut self) -> Result<()> {
        self.loaded().map(|_| ())
    }

    /// Hears from the worker, started when there is none, whether it has a GPU.
    fn greet(&mut self) -> Result<Result<GpuInfo, String>> {
        let found = self.arch()?;
        let wall = self.within(START_WALL);
        let worker = self.worker.as_mut().ok_or_else(|| anyhow!("the worker was not started"))?;
        worker.open();
        let said = match found {
            Err(reason) => Err(reason),
            Ok(_) => match worker.answer(wall)?.ok_or_else(|| silent(wall))? {
                Reply::Ready(info) => Ok(info),
                Reply::NoDevice(reason) => Err(reason),
                _ => bail!("the worker answered out of turn"),
            },
        };
        worker.ready = true;
        self.gpu = Some(said.clone());
        Ok(said)
    }

    /// A worker that has loaded the program's modules, started when there is none.
    fn loaded(&mut self) -> Result<(&mut Worker, &Program)> {
        if !self.worker.as_ref().is_some_and(|worker| worker.ready) {
            self.greet()?.map_err(|reason| anyhow!("there is no GPU to run on: {reason}"))?;
        }
        let wall = self.within(START_WALL);
        let program = self.program.as_ref().ok_or_else(|| anyhow!("no program was loaded"))?;
        let worker = self.worker.as_mut().ok_or_else(|| anyhow!("the worker was not started"))?;
        if worker.facts.is_empty() {
            let (load, blob) = load_request(program);
            worker.facts = match worker.ask(&Request::Load(load), &blob, wall)? {
                Reply::Loaded(facts) => facts,
                _ => bail!("the worker answered out of turn"),
            };
            let expected = program.kernels().count() + usize::from(program.counted.is_some());
            ensure!(worker.facts.len() == expected, "the worker loaded other kernels than it was given");
        }
        Ok((worker, program))
    }

    /// The program that was loaded.
    pub(super) fn program(&self) -> Result<&Program> {
        self.program.as_ref().ok_or_else(|| anyhow!("no program was loaded"))
    }

    /// Asks a worker that has loaded the program. The worker is ended when it does not answer in time; that is an error.
    pub(super) fn ask(&mut self, request: &Request, wall: Duration) -> Result<Reply> {
        self.loaded()?.0.ask(request, &[], wall)
    }

    /// Hands the worker the initial grid of the rounds to come.
    pub(super) fn hand_over(&mut self, initial: &Grid) -> Result<()> {
        let (worker, _) = self.loaded()?;
        worker.shared.make_room(initial.n(), FIRST + 1)?;
        worker.shared.put(initial.n(), INITIAL, initial.cells())
    }

    /// The final grid of the last round, n x n cells, when it was asked for.
    pub(super) fn round_grid(&mut self, n: usize) -> Result<Grid> {
        self.loaded()?.0.shared.grid(n, FIRST)
    }

    /// The same for a request that runs a kernel, which may never end: `None` when there was no answer in time.
    pub(super) fn ask_kernel(&mut self, request: &Request, wall: Duration) -> Result<Option<Reply>> {
        let worker = self.loaded()?.0;
        let _ = worker.process.send(request, &[]);
        let answer = worker.answer(wall)?;
        if answer.is_none() {
            self.end_worker();
        }
        Ok(answer)
    }

    /// What kernels need, in the order of [`Program::kernels`].
    pub(super) fn facts(&mut self) -> Result<Vec<KernelFacts>> {
        Ok(self.loaded()?.0.facts.clone())
    }

    /// Ends the worker; the next request gets a fresh one.
    pub(super) fn end_worker(&mut self) {
        if let (Some(worker), Some(_)) = (&mut self.worker, &self.under) {
            worker.process.close(CLOSE_WALL);
        }
        self.worker = None;
    }

    /// Lets go of the worker, for the caller to end.
    pub fn let_go(&mut self) -> Option<Leaving> {
        self.worker.take().map(Leaving)
    }

    /// Lets go of the worker, with its context, for another grade's programs; `None` where it is not ready for one.
    pub fn pass_on(&mut self) -> Option<Self> {
        let worker = self.worker.take_if(|worker| worker.ready)?;
        let patterns = ChaCha8Rng::from_rng(&mut self.patterns);
        let (executable, gpu) = (self.executable.clone(), self.gpu.clone());
        let (under, program, worker, expected) = (None, None, Some(worker), None);
        Some(Self { executable, under, program, worker, gpu, expected, trusted: self.trusted, patterns })
    }

    /// Takes over a worker that was passed on, where this runner has none.
    pub fn take_over(&mut self, mut left: Self) {
        if self.worker.is_none() {
            (self.worker, self.gpu) = (left.worker.take(), left.gpu.take());
            self.worker.iter_mut().for_each(|worker| worker.facts.clear());
        }
    }

    /// Whether there is a worker, which has outlived everything that it ran.
    pub fn is_well(&self) -> bool {
        self.worker.is_some()
    }

    /// The wall time itself, or what is left until the deadline.
    fn within(&self, wall: Duration) -> Duration {
        self.under.as_ref().map_or(wall, |under| wall.min(under.deadline.saturating_duration_since(Instant::now())))
    }

    /// What the kernel printed since it was last asked.
    pub(super) fn take_output(&self) -> String {
        self.worker.as_ref().map(|worker| worker.process.take_output()).unwrap_or_default()
    }
}

impl Runner for CudaRunner {
    /// [`Watch::Count`] runs the counted build; the other two run the plain one, between guard bands like every run.
    /// Nothing tells threads apart here: the observation has no writer, and hazards have no thread.
    fn run(&mut self, trial: &Trial) -> Result<Observation> {
        let (pattern, bare, watched) = (self.patterns.next_u64(), self.under.is_some(), !self.trusted);
        // A tool makes launches slow: there only the deadline counts.
        let until = self.under.as_ref().map(|under| under.deadline);
        let (worker, program) = self.loaded()?;
        let counted = trial.watch == Watch::Count;
        ensure!(!counted || program.counted.is_some(), "this program was built without counters");
        let facts = if counted { worker.facts[worker.facts.len() - 1] } else { worker.facts[0] };
        let n = trial.initial.n();
        let geometry = match geometry_for(&program.kernel, &facts, program.arch, n) {
            Ok(geometry) => geometry,
            Err(reason) => {
                let fault = Some(RunFault::LaunchRefused { launch: 1, reason });
                return Ok(Observation { fault, ..Observation::default() });
            }
        };
        let (launches, keep) = (trial.launches, trial.keep.clone());
        let run = Run { n, r: trial.r, launches, counted, keep, geometry, bare, watched, pattern };
        worker.shared.make_room(n, FIRST + trial.keep.len())?;
        worker.shared.put(n, INITIAL, trial.initial.cells())?;
        // A worker that ended meanwhile shows as the end of its replies.
        let _ = worker.process.send(&Request::Run(run), &[]);
        let mut watched = Watched { worker, n, grids: Vec::new(), until };
        let (raw, fault) = watched.watch()?;
        let grids = watched.grids;
        let output = self.take_output();
        let fault = fault.or_else(|| raw.fault.map(|fault| run_fault(fault, &facts, &geometry, &output)));
        if fault.is_some() {
            // The context is gone with the kernel, or the worker is.
            self.end_worker();
        }
        Ok(observation(raw, grids, fault, output, n))
    }
}

/// A run under way, watched.
struct Watched<'a> {
    worker: &'a mut Worker,
    n: usize,
    grids: Vec<(u32, Grid)>,
    /// When the run has to be over, where that and nothing else limits it.
    until: Option<Instant>,
}

impl Watched<'_> {
    /// What the worker saw, or the fault that only the grader can see: a launch that does not end.
    fn watch(&mut self) -> Result<(RawObservation, Option<RunFault>)> {
        let began = Instant::now();
        let (mut launch, mut since, mut heard) = (None, began, began);
        loop {
            match self.worker.process.events.recv_timeout(GLANCE) {
                Ok(Event::Reply(reply, _)) => {
                    heard = Instant::now();
                    match reply {
                        Reply::Launch(next) if launch == Some(next) => {}
                        Reply::Launch(next) => (launch, since) = (Some(next), heard),
                        Reply::Grid(after) => {
                            let grid = self.worker.shared.grid(self.n, FIRST + self.grids.len())?;
                            self.grids.push((after, grid));
                            since = heard;
                        }
                        Reply::Done(seen) => return Ok((seen, None)),
                        Reply::Failed(error) => bail!("the worker: {error}"),
                        _ => bail!("the worker answered out of turn"),
                    }
                }
                Ok(Event::Ended | Event::Garbled) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.worker.ended());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.until.is_some_and(|until| Instant::now() > until) {
                self.worker.process.finish();
                bail!("it took too long");
            }
            let fault = match launch {
                _ if self.until.is_some() => continue,
                None if heard.elapsed() > START_WALL => bail!("the worker did not start the run"),
                None => continue,
                Some(launch) if since.elapsed() > LAUNCH_WALL || began.elapsed() > RUN_WALL => {
                    let seconds = if began.elapsed() > RUN_WALL { began.elapsed() } else { since.elapsed() };
                    let seconds = seconds.as_secs_f64();
                    RunFault::Hang { launch, seconds, on: Processor::Gpu, place: None, actor: None }
                }
                Some(launch) if heard.elapsed() > SILENCE => {
                    RunFault::WallLimit { launch, wall_seconds: heard.elapsed().as_secs_f64() }
                }
                Some(_) => continue,
            };
            self.worker.process.finish();
            return Ok((RawObservation::default(), Some(fault)));
        }
    }
}

impl Worker {
    fn start(executable: &Path, under: Option<&Under>) -> Result<Self> {
        let mut words = under.iter().flat_map(|under| under.command.iter().map(PathBuf::as_path)).chain([executable]);
        let mut command = Command::new(words.next().unwrap_or(executable));
        command.args(words);
        let kept = KEPT_VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        // A tool brings files and sockets of its own; what runs under it is a few small grids.
        let arguments = if under.is_some() { &["--no-sandbox"] } else { confine::worker::arguments() };
        command.arg("cuda-worker").args(arguments).env_clear().envs(kept).env("CUDA_CACHE_DISABLE", "1");
        // There is one stream: with one queue to the hardware, not eight, a context is made and ended in half the time.
        command.env("CUDA_DEVICE_MAX_CONNECTIONS", "1");
        if under.is_some() {
            // A tool may be a shell script.
            command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        }
        let shared = SharedGrids::create()?;
        shared.hand_to(&mut command)?;
        let process = WorkerProcess::start(command)?;
        Ok(Self { process, shared, found: None, opened: false, ready: false, facts: Vec::new() })
    }

    /// Tells it to make room for so many grids of n x n cells in the shared memory, and for those that runs use.
    fn make_room(&mut self, n: usize, slots: usize) {
        if self.shared.make_room(n, slots).is_ok() {
            // A worker that ended meanwhile shows as the end of its replies.
            let _ = self.process.send(&Request::Room { n, slots }, &[]);
        }
    }

    /// Tells it, once, to make its context.
    fn open(&mut self) {
        if !std::mem::replace(&mut self.opened, true) {
            // A worker that ended meanwhile shows as the end of its replies.
            let _ = self.process.send(&Request::Open, &[]);
        }
    }

    /// Sends a request and waits for its answer, past words on launches under way.
    fn ask(&mut self, request: &Request, blob: &[u8], wall: Duration) -> Result<Reply> {
        // A worker that ended meanwhile shows as the end of its replies.
        let _ = self.process.send(request, blob);
        self.answer(wall)?.ok_or_else(|| silent(wall))
    }

    /// The next answer; `None`, and the end of the worker, when there is none in time.
    fn answer(&mut self, wall: Duration) -> Result<Option<Reply>> {
        let deadline = Instant::now() + wall;
        loop {
            match self.process.events.recv_deadline(deadline) {
                Ok(Event::Reply(Reply::Launch(_), _)) => {}
                Ok(Event::Reply(Reply::Failed(error), _)) => bail!("the worker: {error}"),
                Ok(Event::Reply(reply, _)) => return Ok(Some(reply)),
                Ok(Event::Ended | Event::Garbled) | Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                Err(RecvTimeoutError::Timeout) => {
                    self.process.finish();
                    return Ok(None);
                }
            }
        }
    }

    /// The worker ended by itself. No learner's code runs in it, so that is the machine's fault.
    fn ended(&mut self) -> anyhow::Error {
        let status = self.process.wait_briefly().map_or_else(String::new, |status| format!(" ({status})"));
        anyhow!("the worker that runs kernels on the GPU ended{status}: {}", self.process.take_output().trim())
    }
}

fn silent(wall: Duration) -> anyhow::Error {
    anyhow!("the worker gave no answer within {} s", wall.as_secs())
}
