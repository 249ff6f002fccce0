//! Times the reference's kernels and the submission's on one GPU, in turns.
//!
//! Two workers, so that the context with the learner's kernel never holds the reference. A pass times the reference's
//! kernels and then the submission's, the next one does so in reverse (A B B A), and so on: what drifts over a pass, as
//! clocks and temperature do, falls on both alike. Both workers time copyGrid, which says whether they had the same GPU.
//!
//! A round is a few warm-up launches and `launches` launches between two events. Before the first pass a short round of
//! each kernel tells how many passes fit into the GPU time allowed, two at least; a kernel so slow that its round would
//! not fit gets rounds of fewer launches. Each pass has its grids in another place. Where the times of these passes do not
//! satisfy the caller, more of them are made.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::engine::CudaRunner;
use super::faults::run_fault;
use super::lock::GpuLock;
use super::message::{Clocks, GpuInfo, KernelFacts, RawRound, Reply, Request, Round};
use super::program::geometry_for;
use crate::execute::{KernelTimes, Processor, RawTimes, RunFault, TimedBy};
use crate::grid::Grid;
use crate::submission::Geometry;

/// Launches of the round before the first pass, and of each warm-up.
const WARMUPS: u32 = 3;
/// Most double passes (A B B A), which make two rounds of each kernel.
const MOST_DOUBLE_PASSES: u32 = 10;
/// Fewest, while a double pass takes no longer than a few seconds.
const LEAST_DOUBLE_PASSES: u32 = 3;
/// How many times as many are made at most where the caller is not satisfied.
const MOST_EXTENSION: u32 = 3;
/// GPU time of a round from which it gets fewer launches, milliseconds.
const LONG_ROUND: f64 = 2000.0;
/// Wall time that a round may take beyond what its launches should, times how much longer they may take.
const ROUND_WALL: Duration = Duration::from_secs(10);
const ROUND_SLACK: f64 = 10.0;

/// What to time.
#[derive(Clone, Debug)]
pub struct TimingPlan {
    /// The grid before each round.
    pub initial: Arc<Grid>,
    pub r: f32,
    /// Launches of a round.
    pub launches: u32,
    /// GPU time to aim at in all, milliseconds: 500 gives 8 to 10 rounds of each kernel on an H200, and the least, 6, on a
    /// Tesla T4.
    pub budget: f64,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Timed {
    pub times: RawTimes,
    /// The submitted kernel's final grid after a round (those of all others have the same bits, unless the times say
    /// otherwise): to be compared with that of the untimed run.
    pub grid: Option<TimedGrid>,
    /// What ended the timing early; the submission's doing.
    pub fault: Option<RunFault>,
}

/// A grid and after how many launches of a round it was.
#[derive(Clone, Debug)]
pub struct TimedGrid {
    pub launches: u32,
    pub grid: Grid,
}

/// A kernel that is timed.
struct Entrant {
    by: TimedBy,
    /// Place in its program.
    kernel: usize,
    facts: KernelFacts,
    geometry: Geometry,
    /// Milliseconds a launch, as far as is known.
    expected: Option<f64>,
    times: KernelTimes,
}

/// Has both workers load what is timed and take the initial grid, which needs no GPU of its own.
pub fn prepare(reference: &mut CudaRunner, submission: &mut CudaRunner, plan: &TimingPlan) -> Result<()> {
    for runner in [reference, submission] {
        runner.hand_over(&plan.initial)?;
        match runner.ask(&Request::Prepare { n: plan.initial.n() }, ROUND_WALL)? {
            Reply::Prepared => {}
            _ => bail!("the worker answered out of turn"),
        }
    }
    Ok(())
}

/// Times both prepared programs' kernels until `satisfied`, which looks at the times so far once the plan is done. Waits for the GPU's
/// lock; `waiting` hears how long that has taken, if it takes long.
pub fn time(
    reference: &mut CudaRunner,
    submission: &mut CudaRunner,
    plan: &TimingPlan,
    satisfied: &dyn Fn(&RawTimes) -> bool,
    waiting: &mut dyn FnMut(Duration),
) -> Result<Timed> {
    let gpu = reference.gpu()?.map_err(|reason| anyhow::anyhow!("there is no GPU to time on: {reason}"))?;
    let _lock = GpuLock::take(&gpu.uuid, waiting)?;
    let mut field = Field { runners: [reference, submission], plan, gpu, entrants: Vec::new(), grid: None };
    let mut fault = field.enter()?;
    let clocks_before = field.clocks()?;
    if fault.is_none() {
        fault = field.run(satisfied)?;
    }
    let clocks_after = if fault.is_none() { field.clocks()? } else { None };
    Ok(Timed { times: RawTimes { clocks_before, clocks_after, ..field.times() }, grid: field.grid, fault })
}

/// The two workers and what they time.
struct Field<'a> {
    runners: [&'a mut CudaRunner; 2],
    plan: &'a TimingPlan,
    gpu: GpuInfo,
    entrants: Vec<Entrant>,
    grid: Option<TimedGrid>,
}

impl Field<'_> {
    /// Lists the kernels in the order of a pass: those timed beside the main one
    /// first.
    fn enter(&mut self) -> Result<Option<RunFault>> {
        let n = self.plan.initial.n();
        for by in [TimedBy::Reference, TimedBy::Submission] {
            let runner = &mut *self.runners[by as usize];
            let facts = runner.facts()?;
            let program = runner.program()?;
            let count = program.kernels().count();
            for (kernel, facts) in (1..count).chain([0]).map(|kernel| (kernel, facts[kernel])) {
                let of = program.kernels().nth(kernel).context("a kernel is missing")?;
                let geometry = match (geometry_for(of, &facts, program.arch, n), by) {
                    (Ok(geometry), _) => geometry,
                    (Err(reason), TimedBy::Submission) => {
                        return Ok(Some(RunFault::LaunchRefused { launch: 1, reason }));
                    }
                    (Err(reason), TimedBy::Reference) => bail!("the reference cannot be launched: {reason}"),
                };
                let times = KernelTimes {
                    by,
                    kernel: of.name.clone(),
                    timesteps: of.timesteps,
                    launches: self.plan.launches,
                    rounds: Vec::new(),
                    same_grids: true,
                };
                self.entrants.push(Entrant { by, kernel, facts, geometry, expected: None, times });
            }
        }
        Ok(None)
    }

    /// What was measured so far.
    fn times(&self) -> RawTimes {
        let kernels = self.entrants.iter().map(|entrant| entrant.times.clone()).collect();
        let (n, gpu) = (self.plan.initial.n() as u32, self.gpu.clone());
        RawTimes { gpu, n, kernels, clocks_before: None, clocks_after: None }
    }

    /// All rounds.
    fn run(&mut self, satisfied: &dyn Fn(&RawTimes) -> bool) -> Result<Option<RunFault>> {
        for at in 0..self.entrants.len() {
            match self.round(at, WARMUPS, 0, false)? {
                Ok(round) => self.entrants[at].expect(round.milliseconds / f64::from(WARMUPS)),
                Err(fault) => return Ok(Some(fault)),
            }
        }
        let pass: f64 = self.entrants.iter().map(Entrant::expected_round).sum();
        let planned = 2 * double_passes(pass, self.plan.budget);
        let mut pass = 0;
        while is_wanted(pass, planned, || satisfied(&self.times())) {
            let mut order: Vec<usize> = (0..self.entrants.len()).collect();
            if pass % 2 == 1 {
                order.reverse();
            }
            for at in order {
                let launches = self.entrants[at].times.launches;
                let submitted = self.entrants[at].by == TimedBy::Submission && self.entrants[at].kernel == 0;
                let keep = submitted && pass + 1 == planned;
                let round = match self.round(at, launches, pass as usize, keep)? {
                    Ok(round) => round,
                    Err(fault) => return Ok(Some(fault)),
                };
                let times = &mut self.entrants[at].times;
                times.rounds.push(round.milliseconds / f64::from(launches));
                times.same_grids &= round.same;
            }
            pass += 1;
        }
        Ok(None)
    }

    /// A round of one kernel; the inner error is a fault of the submitted kernel.
    fn round(&mut self, at: usize, launches: u32, place: usize, keep: bool) -> Result<Result<RawRound, RunFault>> {
        let entrant = &self.entrants[at];
        let runner = &mut *self.runners[entrant.by as usize];
        let Entrant { by, kernel, geometry, .. } = *entrant;
        let compare = by == TimedBy::Submission && kernel == 0;
        let (r, warmups) = (self.plan.r, WARMUPS);
        let request = Request::Round(Round { kernel, r, geometry, place, warmups, launches, compare, keep });
        let expected = entrant.expected.unwrap_or(0.0) * f64::from(launches);
        let wall = ROUND_WALL * WARMUPS + Duration::from_secs_f64(expected * ROUND_SLACK / 1000.0);
        let round = match (runner.ask_kernel(&request, wall)?, entrant.by) {
            (Some(Reply::Round(round)), _) => round,
            (None, TimedBy::Submission) => {
                let seconds = wall.as_secs_f64();
                // Which launch of the round it was is not known: nothing may run between the launches that are timed.
                let launch = 1;
                return Ok(Err(RunFault::Hang { launch, seconds, on: Processor::Gpu, place: None, actor: None }));
            }
            _ => bail!("the worker answered out of turn"),
        };
        if let Some(fault) = round.fault {
            let fault = run_fault(fault, &entrant.facts, &geometry, &runner.take_output());
            runner.end_worker();
            if entrant.by == TimedBy::Reference {
                bail!("the reference kernel {} failed while it was timed: {fault:?}", entrant.times.kernel);
            }
            return Ok(Err(fault));
        }
        if keep {
            self.grid = Some(TimedGrid { launches, grid: runner.round_grid(self.plan.initial.n())? });
        }
        Ok(Ok(round))
    }

    fn clocks(&mut self) -> Result<Option<Clocks>> {
        match self.runners[TimedBy::Reference as usize].ask(&Request::Clocks, ROUND_WALL)? {
            Reply::Clocks(clocks) => Ok(clocks),
            _ => bail!("the worker answered out of turn"),
        }
    }
}

impl Entrant {
    /// Takes in what a launch took, milliseconds; shortens rounds that would be long.
    fn expect(&mut self, launch: f64) {
        self.expected = Some(launch);
        if launch * f64::from(self.times.launches) > LONG_ROUND {
            self.times.launches = ((LONG_ROUND / launch) as u32).clamp(WARMUPS, self.times.launches);
        }
    }

    /// Milliseconds of GPU time that a round will take.
    fn expected_round(&self) -> f64 {
        self.expected.unwrap_or(0.0) * f64::from(self.times.launches)
    }
}

/// How many double passes fit into the budget, given what one pass takes, milliseconds.
fn double_passes(pass: f64, budget: f64) -> u32 {
    let fit = (budget / (2.0 * pass).max(0.001)) as u32;
    let least = if pass > LONG_ROUND { 1 } else { LEAST_DOUBLE_PASSES };
    fit.clamp(least, MOST_DOUBLE_PASSES)
}

/// Whether a pass is made after so many. There is always one back after one there.
fn is_wanted(made: u32, planned: u32, satisfied: impl FnOnce() -> bool) -> bool {
    made < planned || (made < MOST_EXTENSION * planned && (made % 2 == 1 || !satisfied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_done_and_as_much_again_twice_at_most_until_the_times_satisfy() {
        let passes = |enough: u32| {
            let mut made = 0;
            while is_wanted(made, 6, || made >= enough) {
                made += 1;
            }
            made
        };
        assert_eq!([0, 6, 7, 8, 17, u32::MAX].map(passes), [6, 6, 8, 8, 18, 18]);
    }

    #[test]
    fn as_many_passes_as_fit_and_a_few_whatever_they_take() {
        assert_eq!(double_passes(38.0, 500.0), 6);
        assert_eq!(double_passes(1.0, 500.0), MOST_DOUBLE_PASSES);
        assert_eq!(double_passes(516.0, 500.0), LEAST_DOUBLE_PASSES);
        assert_eq!(double_passes(9000.0, 500.0), 1);
    }
}
