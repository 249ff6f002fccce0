//! Runs a judge's plan on an engine: streams of trials side by side, folded in the order of the plan.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use anyhow::{Context, bail};

use super::initial::Initials;
use crate::execute::cuda::Timed;
use crate::execute::{Observation, Processor, RawTimes, Runner, Trial};
use crate::exercise::Exercise;
use crate::judge::Judge;
use crate::judge::case::{Case, Program, Request};
use crate::judge::outcome::{Clocked, Outcome};
use crate::judge::plan::{Kind, Means, Planned};
use crate::judge::timing;

/// Gives runners for the two programs of a grade, each with a worker of its own.
pub trait Engine: Sync {
    /// `cpu` or `cuda`.
    fn name(&self) -> &'static str;

    /// What it can do with the submission, as far as it is known.
    fn means(&self) -> Means {
        Means::default()
    }

    /// Why compute-sanitizer did not run where it was asked for.
    fn not_sanitized(&self) -> Option<String> {
        None
    }

    /// A runner for whom nothing of the program has run yet. [`Unwatchable`] when it comes out only now that engine cpu cannot
    /// run the submission: [`Engine::means`] then says so.
    fn runner(&self, program: Program, on: Processor) -> anyhow::Result<Box<dyn Runner>>;

    /// Times the submission against the reference, longer where `satisfied` is not with the times so far; only with a GPU.
    fn time(&self, _trial: &Trial, _satisfied: &dyn Fn(&RawTimes) -> bool) -> anyhow::Result<TimedRun> {
        bail!("this engine has no GPU to time on")
    }

    /// Counts what the reference's kernels read, for the timing's table, ahead of [`Engine::time`].
    fn count_reference(&self, _trial: &Trial) -> anyhow::Result<()> {
        Ok(())
    }

    /// Whether the GPU is wanted by many: then it is left to submissions in which engine cpu has found nothing.
    fn spares_gpu(&self) -> bool {
        false
    }

    /// Hears that no further trial is planned on the GPU, so that what ends slowly can begin to.
    fn done_on_gpu(&self) {}
}

/// Engine cpu, which watches threads, cannot run the submission after all.
#[derive(Debug)]
pub struct Unwatchable(pub String);

impl fmt::Display for Unwatchable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Unwatchable {}

/// What a timing brought back.
pub struct TimedRun {
    pub timed: Timed,
    /// Words read per cell-step by the reference's kernels, by name.
    pub reads: Vec<(String, f64)>,
}

/// The trials that run one after another. The watched ones use one OS thread, the long ones all cores or the GPU: side by
/// side they fill a machine better than in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stream {
    Watched,
    Long,
    /// On a GPU: the counted run, the repeated one and the odd sizes, beside the long one. While the submission's process works
    /// for one of them, the reference's, or the judge, works for the other.
    Beside,
}

const STREAMS: [Stream; 3] = [Stream::Watched, Stream::Long, Stream::Beside];

fn stream_of(planned: &Planned) -> Stream {
    match (planned.on, planned.kind) {
        (Processor::Gpu, Kind::Count | Kind::Repeat | Kind::Portable) => Stream::Beside,
        (Processor::Gpu, _) => Stream::Long,
        (Processor::Cpu, Kind::Sharp | Kind::Repeat | Kind::Thousand | Kind::Time) => Stream::Long,
        (Processor::Cpu, Kind::Hazards | Kind::Count | Kind::Portable) => Stream::Watched,
    }
}

/// Runs trials until the judge has decided. `report` hears of every trial that begins (on several threads).
///
/// An error is the grader's or the machine's fault, and only one that the judge would have come to: a later trial's
/// error does not matter when an earlier one decides.
pub fn run(
    engine: &dyn Engine,
    exercise: &Exercise,
    judge: &mut Judge,
    report: &(dyn Fn(&Planned) + Sync),
) -> anyhow::Result<()> {
    let (cancelled, initials) = (AtomicBool::new(false), Initials::default());
    let plan = judge.plan().to_vec();
    let (told, results) = mpsc::channel();
    std::thread::scope(|scope| {
        let orders = STREAMS.map(|_| {
            let (order, orders) = mpsc::channel::<(usize, Planned)>();
            let (told, cancelled, initials) = (told.clone(), &cancelled, &initials);
            scope.spawn(move || {
                let mut bench = Bench { engine, exercise, cancelled, initials, runners: Vec::new(), kind: None };
                for (at, planned) in orders {
                    report(&planned);
                    if told.send((at, bench.outcome(planned))).is_err() {
                        break;
                    }
                }
            });
            order
        });
        // The workers hold the only senders: when both are gone without a word, receiving fails and does not wait.
        drop(told);
        let outcome = Dispatcher::new(&plan, orders).drive(engine, judge, &results);
        cancelled.store(true, Ordering::Relaxed);
        outcome
    })
}

/// What one trial came to; `None` when it was called off.
type Result = anyhow::Result<Option<Outcome>>;

/// Who runs what next.
struct Dispatcher<'p> {
    plan: &'p [Planned],
    orders: [mpsc::Sender<(usize, Planned)>; STREAMS.len()],
    queues: [VecDeque<usize>; STREAMS.len()],
    busy: [bool; STREAMS.len()],
    /// What came back and waits for its turn to be folded.
    done: Vec<Option<Result>>,
    /// Whether a trial has come back, by its place in the plan.
    back: Vec<bool>,
}

impl<'p> Dispatcher<'p> {
    fn new(plan: &'p [Planned], orders: [mpsc::Sender<(usize, Planned)>; STREAMS.len()]) -> Self {
        let of = |stream| (0..plan.len()).filter(|&at| stream_of(&plan[at]) == stream).collect();
        Self {
            plan,
            orders,
            queues: STREAMS.map(of),
            busy: [false; STREAMS.len()],
            done: plan.iter().map(|_| None).collect(),
            back: vec![false; plan.len()],
        }
    }

    fn drive(
        mut self,
        engine: &dyn Engine,
        judge: &mut Judge,
        results: &mpsc::Receiver<(usize, Result)>,
    ) -> anyhow::Result<()> {
        loop {
            while let Some(result) = self.done.get_mut(judge.folded()).and_then(Option::take) {
                judge.fold(result?.context("a trial was called off before the judge had decided")?);
                if judge.decided() {
                    return Ok(());
                }
            }
            self.send_orders(engine.spares_gpu())?;
            let (at, result) = results.recv().context("the threads that run trials ended early")?;
            self.busy[stream_of(&self.plan[at]) as usize] = false;
            self.back[at] = true;
            self.done[at] = Some(result);
            if self.plan[at].on == Processor::Gpu && self.gpu_is_back(self.plan.len()) {
                engine.done_on_gpu();
            }
        }
    }

    fn send_orders(&mut self, spares_gpu: bool) -> anyhow::Result<()> {
        for stream in STREAMS.map(|stream| stream as usize) {
            let Some(&at) = self.queues[stream].front().filter(|_| !self.busy[stream]) else { continue };
            if self.may_start(at, spares_gpu) {
                self.queues[stream].pop_front();
                self.busy[stream] = true;
                self.orders[stream]
                    .send((at, self.plan[at].clone()))
                    .context("a thread that runs trials ended early")?;
            }
        }
        Ok(())
    }

    /// Whether every trial on the GPU among the first `count` has come back.
    fn gpu_is_back(&self, count: usize) -> bool {
        (0..count).all(|at| self.plan[at].on == Processor::Cpu || self.back[at])
    }

    /// The long run cannot be called off half-way, so it waits for what finds most faults in a second; on a GPU it is short.
    /// Nothing else runs on the GPU while a kernel is timed.
    fn may_start(&self, at: usize, spares_gpu: bool) -> bool {
        if self.plan[at].kind == Kind::Time {
            return self.gpu_is_back(at);
        }
        let watched =
            |before: &usize| self.plan[*before].kind == Kind::Hazards && self.plan[*before].on == Processor::Cpu;
        if spares_gpu && self.plan[at].on == Processor::Gpu && !(0..at).filter(watched).all(|before| self.back[before])
        {
            return false;
        }
        let quick = |before: &usize| matches!(self.plan[*before].kind, Kind::Hazards | Kind::Sharp);
        self.plan[at].kind != Kind::Thousand
            || self.plan[at].on == Processor::Gpu
            || (0..at).filter(quick).all(|before| self.back[before])
    }
}

/// One stream's runners.
struct Bench<'a> {
    engine: &'a dyn Engine,
    exercise: &'a Exercise,
    cancelled: &'a AtomicBool,
    initials: &'a Initials,
    runners: Vec<((Program, Processor), Box<dyn Runner>)>,
    kind: Option<Kind>,
}

impl Bench<'_> {
    fn outcome(&mut self, planned: Planned) -> Result {
        if planned.kind == Kind::Portable && self.kind != Some(Kind::Portable) {
            // A worker of its own: nothing that odd sizes do to it touches, or is excused by, what went before.
            self.runners.clear();
        }
        self.kind = Some(planned.kind);
        if planned.kind == Kind::Time {
            return Ok(Some(self.timed(planned)));
        }
        let counts_on_gpu = (planned.on, planned.kind) == (Processor::Gpu, Kind::Count);
        let initial = self.initials.of(&planned);
        let grid = initial.grid(&planned);
        let mut case = Case::new(self.exercise, planned, grid);
        if let Some(request) = case.next().filter(|_| counts_on_gpu) {
            // The reference's process has nothing else to do yet. What goes wrong is told when the timing comes to it.
            let _ = self.engine.count_reference(&request.trial);
        }
        while let Some(request) = case.next() {
            if self.cancelled.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let seen = match request.program {
                Program::Submission => self.observe(&request)?,
                Program::Reference => initial.reference(&request, || self.observe(&request))?,
            };
            case.fold(seen)?;
        }
        Ok(Some(case.close()))
    }

    /// Times the submission. That no time could be taken is no ground for leaving it ungraded.
    fn timed(&mut self, planned: Planned) -> Outcome {
        self.runners.clear();
        let trial = planned.trial(self.initials.of(&planned).grid(&planned));
        let mut outcome = Outcome::new(planned);
        // Where copyGrid says that the two processes did not have the same GPU, more rounds in more places tell better.
        match self.engine.time(&trial, &timing::copies_agree) {
            Ok(TimedRun { timed, reads }) => {
                let whole = timed.grid.filter(|round| round.launches == trial.launches);
                let last = whole.map(|round| Arc::new(round.grid));
                outcome.fault = timed.fault;
                outcome.timed = Some(Clocked::Measured { times: Box::new(timed.times), reads, last });
            }
            Err(error) => outcome.timed = Some(Clocked::Not(format!("{error:#}"))),
        }
        outcome
    }

    fn observe(&mut self, request: &Request) -> anyhow::Result<Observation> {
        let wanted = (request.program, request.on);
        if request.fresh {
            self.runners.retain(|(of, _)| *of != wanted);
        }
        let known = self.runners.iter().position(|(of, _)| *of == wanted);
        let at = match known {
            Some(at) => at,
            None => {
                self.runners.push((wanted, self.engine.runner(request.program, request.on)?));
                self.runners.len() - 1
            }
        };
        self.runners[at].1.run(&request.trial)
    }
}
