//! The grader's side of engine cpu: trials to a worker, its words back as an observation.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use crossbeam_channel::RecvTimeoutError;

use super::message::{Reply, Request, Run};
use super::object::{ObjectMap, Table};
use super::process::{self, Event, WorkerProcess};
use super::raw::{MASK_WITHOUT_CALLER, RawFault, RawObservation};
use super::symbols::Symbols;
use super::telling::{Raw, Telling};
use super::yardstick::{LEAST, LONGEST_LAUNCHES, Yardstick};
use crate::confine::{self, calls};
use crate::execute::{
    DeviceState, Memory, Observation, Place, Processor, RunFault, Runner, Trial, Watch, limits, wire,
};
use crate::grid::Grid;
use crate::submission::{Geometry, GeometryOf};

/// Wall time of one launch, after which the machine is to blame.
const LAUNCH_WALL: Duration = Duration::from_secs(300);
/// Fewest launches of a trial in which trying out a shortcut pays off: the first is made twice, and so is each whose grid is kept.
/// Of the three sharp ones it spares the second, which coroutines take ten times as long for where threads wait in helpers.
const SHORTCUT_LAUNCHES: u32 = 3;
/// Bytes of a program's variables, those of its host code included; the shadow of each takes ten more.
const MOST_VARIABLES: u64 = 96 << 20;
/// CPU time that static constructors get.
const CONSTRUCTORS_CPU: Duration = Duration::from_secs(2);
/// Bytes of pointers to constructors that g++ puts into every object.
const OF_THE_COMPILER: u64 = 8;
/// How often a running launch is looked at.
const GLANCE: Duration = Duration::from_millis(50);
/// Glances in a row at a worker all of whose threads sleep, after which nobody will wake them; or in all launches of a trial,
/// three times as many.
const ASLEEP: u32 = 200;

/// One program, built for the host.
#[derive(Clone)]
pub struct Program {
    /// The object without hooks, and the one with them.
    pub fast: PathBuf,
    pub checked: Option<PathBuf>,
    /// The kernel's name without template arguments, for the static shared memory that it uses.
    pub kernel: String,
    /// heat.cu as handed in; its lines say which array an index was meant for.
    pub source: Arc<str>,
    pub geometry: Arc<GeometryOf>,
    /// Mangled names of the variables that it loads on a GPU, where a compiler for one has told.
    pub loads: Option<Arc<BTreeSet<String>>>,
}

impl Program {
    /// What one of its objects holds.
    fn map_of(&self, object: &Path) -> Result<ObjectMap> {
        let map = ObjectMap::read(object)?;
        Ok(match &self.loads {
            Some(loads) => map.folding_all_but(loads),
            None => map,
        })
    }
}

/// Runs trials of one program on this machine's processors.
pub struct CpuRunner {
    program: Program,
    /// This binary, whose hidden subcommand is the worker.
    executable: PathBuf,
    lanes: usize,
    role: Role,
    fast: Option<Loaded>,
    checked: Option<Loaded>,
    /// Whether the static constructors had their turn.
    constructed: bool,
    /// What static constructors printed, until it is reported.
    constructors_printed: String,
}

/// Whose launches a runner makes.
#[derive(Clone, Default)]
pub enum Role {
    /// The reference's: how long they take is noted.
    Reference(Yardstick),
    /// A submission's: they may take so many times as long.
    Submission(Yardstick),
    /// Nobody's that anything is known of.
    #[default]
    Alone,
}

/// A worker that has loaded one of the two objects.
struct Loaded {
    worker: WorkerProcess,
    /// Glances of a trial at which all of its threads slept.
    naps: u32,
    map: ObjectMap,
    symbols: Symbols,
}

impl CpuRunner {
    /// `executable` is this binary; `lanes` OS threads share the blocks of fast and counted trials.
    pub fn new(program: Program, executable: &Path, lanes: usize) -> Self {
        Self {
            program,
            executable: executable.to_owned(),
            lanes: lanes.max(1),
            role: Role::Alone,
            fast: None,
            checked: None,
            constructed: false,
            constructors_printed: String::new(),
        }
    }

    /// The same for a program of a grade.
    pub fn with_role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// What the object does besides being a kernel (nothing, unless somebody means harm), or does unseen.
    fn misbehaves(&mut self, watch: Watch) -> Result<Option<RunFault>> {
        let object = if watch == Watch::Fast { Some(&self.program.fast) } else { self.program.checked.as_ref() };
        let known = if watch == Watch::Fast { &self.fast } else { &self.checked }.is_some();
        if let (false, Some(object)) = (known, object) {
            let map = self.program.map_of(object)?;
            if map.runs_when_loaded {
                let what = "run code while the program is loaded (by an ifunc, say)".to_owned();
                return Ok(Some(RunFault::Denied { launch: 0, what, place: None }));
            }
            const CALL: &str = "a structure that a call takes or gives by value and that no hook sees";
            let call = map.unseen_call.map(|line| (CALL.to_owned(), line));
            let table = || map.tables.iter().find(|table| !table.seen);
            let unseen =
                |table: &Table| (format!("the constant table {}, whose reads no hook sees", table.name), table.line);
            if let Some((construct, line)) = call.or_else(|| table().map(unseen)) {
                let place = (line > 0).then_some(Place { line, column: 0 });
                return Ok(Some(RunFault::CannotJudge { construct, place }));
            }
            let variables = map.data.end.saturating_sub(map.data.start);
            if variables > MOST_VARIABLES {
                let construct = format!(
                    "{variables} bytes of variables outside functions, of which engine cpu watches {MOST_VARIABLES} at most"
                );
                return Ok(Some(RunFault::CannotJudge { construct, place: None }));
            }
        }
        let theirs = matches!(self.role, Role::Submission(_)) && watch == Watch::Full;
        if !theirs || std::mem::replace(&mut self.constructed, true) {
            return Ok(None);
        }
        self.construct()
    }

    /// Runs the static constructors, in a worker of their own. They are no part of the kernel and may not get along with our
    /// headers, so nothing is a fault but what the sandbox forbids, and an end that looks like success.
    fn construct(&mut self) -> Result<Option<RunFault>> {
        let constructors = ObjectMap::read(&self.program.fast)?.constructors;
        if constructors.end - constructors.start <= OF_THE_COMPILER {
            return Ok(None);
        }
        let mut loaded = self.load(&self.program.fast)?;
        let _ = loaded.worker.send(&Request::Construct, &[]);
        let event = loaded.next_event(0, Limits::of_one(CONSTRUCTORS_CPU), Duration::ZERO);
        self.constructors_printed = self.without_paths(loaded.worker.take_output());
        let fault = match event {
            Ok(Event::Reply(Reply::Ready, _)) | Err(_) => return Ok(None),
            Ok(Event::Ended) if loaded.worker.wait_briefly().is_some_and(|status| status.success()) => {
                let what = "end the process before the kernel ran".to_owned();
                RunFault::Denied { launch: 0, what, place: None }
            }
            Ok(event) => loaded.ended(event, 0),
        };
        Ok(Some(fault).filter(|fault| matches!(fault, RunFault::Denied { .. })))
    }

    /// What was printed without the folders of this machine in which the worker and its object lie, which code can ask for.
    fn without_paths(&self, printed: String) -> String {
        let folders = [&self.executable, &self.program.fast].map(|file| file.parent().map(|folder| folder.join("")));
        let named = folders.into_iter().flatten().filter(|folder| folder.components().count() > 1);
        named.fold(printed, |text, folder| text.replace(&*folder.to_string_lossy(), ""))
    }

    /// Starts a worker and has it load the object. No learner's code runs yet, so a failure is the machine's.
    fn load(&self, object: &Path) -> Result<Loaded> {
        let map = self.program.map_of(object)?;
        for _ in 0..confine::STARTS {
            let mut worker = process::start(&self.executable)?;
            let request = Request::Load { object: object.to_owned(), map: map.clone() };
            // A worker that ends while loading shows as the end of its replies below.
            let _ = worker.send(&request, &[]);
            let mut loaded = Loaded { worker, naps: 0, map: map.clone(), symbols: Symbols::read(object)? };
            match loaded.next_event(0, Limits::of_one(LEAST), Duration::ZERO) {
                Ok(Event::Reply(Reply::Ready, _)) => return Ok(loaded),
                Ok(Event::Reply(Reply::Failed(error), _)) => bail!("the worker: {error}"),
                Ok(Event::Ended) if loaded.worker.wait_briefly().is_some_and(confine::is_interrupted) => {}
                _ => {
                    let said = loaded.worker.take_output();
                    bail!("the worker process could not load the compiled kernel: {}", said.trim())
                }
            }
        }
        bail!("the worker process was interrupted")
    }

    /// The worker for a trial, started when there is none.
    fn loaded(&mut self, watch: Watch) -> Result<&mut Loaded> {
        let fast = watch == Watch::Fast;
        if (if fast { &self.fast } else { &self.checked }).is_none() {
            let object = if fast { Some(&self.program.fast) } else { self.program.checked.as_ref() };
            let object = object.ok_or_else(|| anyhow!("this program was built without hooks"))?;
            let loaded = Some(self.load(object)?);
            *(if fast { &mut self.fast } else { &mut self.checked }) = loaded;
        }
        let slot = if fast { &mut self.fast } else { &mut self.checked };
        slot.as_mut().ok_or_else(|| anyhow!("the worker was not started"))
    }

    /// What the object for a trial holds.
    fn map(&self, watch: Watch) -> Result<ObjectMap> {
        let (object, loaded) = match watch {
            Watch::Fast => (Some(&self.program.fast), &self.fast),
            Watch::Count | Watch::Full => (self.program.checked.as_ref(), &self.checked),
        };
        match (loaded, object) {
            (Some(loaded), _) => Ok(loaded.map.clone()),
            (None, Some(object)) => self.program.map_of(object),
            (None, None) => Err(anyhow!("this program was built without hooks")),
        }
    }

    /// The geometry of a trial, if an architecture of the exercise would run it.
    fn geometry(&self, n: usize, map: &ObjectMap) -> Result<Geometry, String> {
        let geometry = (self.program.geometry)(n as u32)?;
        limits::check(&geometry, map.static_shared(&self.program.kernel))?;
        Ok(geometry)
    }
}

impl Runner for CpuRunner {
    fn run(&mut self, trial: &Trial) -> Result<Observation> {
        let (lanes, source) = (self.lanes, self.program.source.clone());
        let refused = |reason| Observation {
            fault: Some(RunFault::LaunchRefused { launch: 1, reason }),
            ..Observation::default()
        };
        // Before anything is loaded: there may be no room for what no launch could have.
        let map = self.map(trial.watch)?;
        let geometry = match self.geometry(trial.initial.n(), &map) {
            Ok(geometry) => geometry,
            Err(reason) => return Ok(refused(reason)),
        };
        if let fault @ Some(_) = self.misbehaves(trial.watch)? {
            return Ok(Observation { fault, ..Observation::default() });
        }
        let limits = match &self.role {
            Role::Submission(yardstick) => Limits { launch: yardstick.limit(trial), run: yardstick.run_limit(trial) },
            // Neither of them is a stranger's.
            Role::Reference(_) | Role::Alone => {
                Limits { launch: LEAST, run: trial.launches.max(LONGEST_LAUNCHES) * LEAST }
            }
        };
        let mut raw = self.loaded(trial.watch)?.run(trial, geometry, lanes, limits)?;
        raw.output = self.without_paths(raw.output);
        let broken = raw.fault.is_some();
        if (broken || raw.seen.misled) && may_run_loops(trial) {
            // No fault is told of a way of running that is not the kernel as it is written.
            self.fast = None;
            return self.run(&Trial { shortcuts: false, ..trial.clone() });
        }
        let loaded = self.loaded(trial.watch)?;
        let seen = Telling {
            symbols: &loaded.symbols,
            source: &source,
            map: &map,
            n: trial.initial.n(),
            shapes: OnceCell::new(),
        }
        .observation(raw);
        if let (Role::Reference(yardstick), Watch::Fast, false) = (&self.role, trial.watch, broken) {
            yardstick.note(trial, seen.cpu_seconds);
        }
        if broken {
            *(if trial.watch == Watch::Fast { &mut self.fast } else { &mut self.checked }) = None;
        }
        Ok(Observation { constructors_printed: std::mem::take(&mut self.constructors_printed), ..seen })
    }
}

/// CPU time that a launch may use, and all launches of a run together.
#[derive(Clone, Copy)]
struct Limits {
    launch: Duration,
    run: Duration,
}

impl Limits {
    /// For what is no launch among others.
    fn of_one(launch: Duration) -> Self {
        Self { launch, run: Duration::MAX }
    }
}

impl Loaded {
    fn run(&mut self, trial: &Trial, geometry: Geometry, lanes: usize, limits: Limits) -> Result<Raw> {
        let run = Run {
            n: trial.initial.n(),
            r: trial.r,
            launches: trial.launches,
            watch: trial.watch,
            keep: trial.keep.clone(),
            keep_state: trial.keep_state.clone(),
            writers_of: trial.writers_of.clone(),
            cell_reads: trial.cell_reads,
            order: trial.order,
            geometry,
            loops: may_run_loops(trial),
            lanes,
        };
        let n = run.n;
        self.naps = 0;
        // A worker that ended meanwhile shows as the end of its replies below.
        if let Some(state) = &trial.state {
            let _ = self.worker.send(&Request::Restore(state.variables.clone()), &state.bytes);
        }
        let _ = self.worker.send(&Request::Run(run), wire::bytes_of(trial.initial.cells()));
        let mut raw = Raw::default();
        let mut launch = 1;
        let before = process::cpu_time(&self.worker).unwrap_or_default();
        loop {
            match self.next_event(launch, limits, before) {
                Ok(Event::Reply(Reply::Launch(next), _)) => launch = next,
                Ok(Event::Reply(Reply::Grid(after), blob)) => match Grid::from_cells(n, wire::cells_of(&blob)) {
                    Some(grid) => raw.grids.push((after, grid)),
                    None => raw.fault = Some(self.ended(Event::Garbled, launch)),
                },
                Ok(Event::Reply(Reply::State(after, variables), bytes)) if trial.keep_state.contains(&after) => {
                    raw.states.retain(|(known, _)| *known != after);
                    raw.states.push((after, Arc::new(DeviceState { variables, bytes })));
                }
                // The variables were restored.
                Ok(Event::Reply(Reply::Ready, _)) if trial.state.is_some() => {}
                Ok(Event::Reply(Reply::Done(seen), _)) => raw.seen = *seen,
                Ok(Event::Reply(Reply::Failed(error), _)) => bail!("the worker: {error}"),
                Ok(event) => raw.fault = Some(self.ended(event, launch)),
                Err(fault) => raw.fault = Some(*fault),
            }
            let done = raw.seen.launches_done > 0 || raw.seen.fault.is_some() || raw.seen.misled;
            if done || raw.fault.is_some() {
                break;
            }
        }
        if raw.fault.is_none() && raw.seen.fault.is_some() {
            raw.fault = self.fault_of(&raw.seen, launch);
        }
        raw.output = self.worker.take_output();
        Ok(raw)
    }

    /// The worker's next word, watching the CPU time of the launch under way and that of the run, which began when the worker had
    /// used this much. A fault is a launch or a run that took too long.
    fn next_event(&mut self, launch: u32, limits: Limits, run_began: Duration) -> Result<Event, Box<RunFault>> {
        let started = Instant::now();
        let cpu_before = process::cpu_time(&self.worker).unwrap_or_default();
        let (mut asleep, mut cpu_seen) = (0, Duration::ZERO);
        // Short launches are over before they are glanced at.
        self.within(limits, launch, cpu_before.saturating_sub(run_began))?;
        loop {
            match self.worker.events.recv_timeout(GLANCE) {
                Ok(event) => return Ok(event),
                Err(RecvTimeoutError::Disconnected) => return Ok(Event::Ended),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = process::cpu_time(&self.worker).unwrap_or_default();
            let (cpu, all) = (now.saturating_sub(cpu_before), now.saturating_sub(run_began));
            if cpu > limits.launch {
                return Err(Box::new(self.hang(launch, cpu)));
            }
            self.within(limits, launch, all)?;
            let still = cpu == cpu_seen && process::is_asleep(&self.worker);
            (asleep, cpu_seen) = (if still { asleep + 1 } else { 0 }, cpu);
            self.naps += u32::from(still);
            if asleep == ASLEEP || self.naps == 3 * ASLEEP {
                self.worker.finish();
                let what = "it ended the thread that ran it, or sleeps".to_owned();
                let crash = RunFault::Crash { launch, what, memory: None, place: None, actor: None };
                return Err(Box::new(crash));
            }
            if started.elapsed() > LAUNCH_WALL {
                let wall_seconds = started.elapsed().as_secs_f64();
                return Err(Box::new(RunFault::WallLimit { launch, wall_seconds }));
            }
        }
    }

    /// Ends a run whose launches together have used more CPU time than they may.
    fn within(&mut self, limits: Limits, launch: u32, used: Duration) -> Result<(), Box<RunFault>> {
        if used <= limits.run {
            return Ok(());
        }
        self.worker.finish();
        Err(Box::new(RunFault::TooSlow { launch, seconds: used.as_secs_f64() }))
    }

    /// A launch used up its CPU time: asks where it stands, then ends the worker.
    fn hang(&mut self, launch: u32, cpu: Duration) -> RunFault {
        let (mut place, mut actor) = (None, None);
        let patience = Instant::now();
        while patience.elapsed() < Duration::from_secs(2) {
            // Again, where the last moment did not tell.
            process::ask_where(&self.worker);
            match self.worker.events.recv_timeout(GLANCE) {
                Ok(Event::Reply(Reply::Signal { codes, actor: who, .. }, _)) => {
                    (place, actor) = (self.symbols.place_of_any(&codes), who);
                    break;
                }
                Ok(Event::Ended | Event::Garbled) | Err(RecvTimeoutError::Disconnected) => break,
                _ => {}
            }
        }
        self.worker.finish();
        RunFault::Hang { launch, seconds: cpu.as_secs_f64(), on: Processor::Cpu, place, actor }
    }

    /// The run ended with something else than its result.
    fn ended(&mut self, event: Event, launch: u32) -> RunFault {
        let crash = |what: String| RunFault::Crash { launch, what, memory: None, place: None, actor: None };
        let denied = |what: String, place| RunFault::Denied { launch, what, place };
        match event {
            Event::Reply(Reply::Signal { signal: libc::SIGSYS, address, codes, .. }, _) => {
                denied(calls::attempt(address as libc::c_long), self.symbols.place_of_any(&codes))
            }
            Event::Reply(Reply::Signal { signal, address, codes, actor, stack_overflow }, _) => RunFault::Crash {
                launch,
                what: if stack_overflow {
                    "a thread's local memory overflowed its stack".to_owned()
                } else {
                    signal_words(signal)
                },
                memory: (signal == libc::SIGSEGV && !stack_overflow).then_some(Memory::Wild { address }),
                place: self.symbols.place_of_any(&codes),
                actor,
            },
            Event::Ended => match self.worker.wait_briefly() {
                // glibc blocks signals while it starts a process, so that this one cannot be told by name.
                Some(status) if status.signal() == Some(libc::SIGSYS) => {
                    denied("do what the sandbox forbids (start another process, most likely)".to_owned(), None)
                }
                Some(status) => crash(format!("the process that ran the kernel ended ({status})")),
                None => crash("the process that ran the kernel ended".to_owned()),
            },
            Event::Garbled | Event::Reply(..) => {
                self.worker.finish();
                crash("the kernel overwrote memory of the process that ran it".to_owned())
            }
        }
    }

    /// A fault that the worker itself reported.
    fn fault_of(&self, seen: &RawObservation, launch: u32) -> Option<RunFault> {
        Some(match seen.fault.as_ref()? {
            RawFault::Deadlock => RunFault::Deadlock { launch },
            RawFault::Unsupported { construct, site } => RunFault::CannotJudge {
                construct: construct.clone(),
                place: site.and_then(|site| self.symbols.place(site)),
            },
            RawFault::Misaligned { alignment, site, actor } => RunFault::Crash {
                launch,
                what: format!("misaligned address: this access needs one that is a multiple of {alignment} bytes"),
                memory: None,
                place: site.and_then(|site| self.symbols.place(site)),
                actor: Some(*actor),
            },
            RawFault::Trap { why, site, actor } => RunFault::Crash {
                launch,
                what: match *why {
                    1 => "an assertion failed",
                    2 => "misaligned address: an asynchronous copy needs two that are multiples of its size",
                    MASK_WITHOUT_CALLER => {
                        "a warp function is called by a lane that its mask lacks, which CUDA leaves undefined"
                    }
                    3 => "what the kernel tells the compiler to assume (__builtin_assume) does not hold",
                    _ => "a thread trapped",
                }
                .to_owned(),
                memory: None,
                place: site.and_then(|site| self.symbols.place(site)),
                actor: Some(*actor),
            },
        })
    }
}

fn signal_words(signal: i32) -> String {
    match signal {
        libc::SIGSEGV | libc::SIGBUS => "an access to memory that does not exist".to_owned(),
        libc::SIGFPE => "an integer division by zero".to_owned(),
        libc::SIGILL => "an operation without a result, such as an integer division by zero".to_owned(),
        libc::SIGABRT => "the kernel aborted (a failed assertion or memory that ran out, for example)".to_owned(),
        other => format!("signal {other} ended the kernel"),
    }
}

/// Whether a trial's blocks may run as loops over their threads.
fn may_run_loops(trial: &Trial) -> bool {
    trial.shortcuts && trial.watch == Watch::Fast && trial.launches >= SHORTCUT_LAUNCHES
}

/// The executable to start workers from: this very binary.
pub fn this_executable() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find the grader's own executable")
}
