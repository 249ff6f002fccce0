//! Runs a trial inside the worker: launches on the stream, a look at grids, bands and counters where the run pauses.

use std::fs::File;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::counter::Counter;
use super::driver::{Answer, DriverError, Function, Gpu, Pinned};
use super::faults::{OUT_OF_MEMORY, is_the_machines};
use super::grids::{Grids, input_of};
use super::message::{RawFault, RawObservation, Reply, Run};
use super::shared::{FIRST, INITIAL, SharedGrids};
use crate::execute::wire;

/// Launches after which the run pauses, and the input is compared with what it was: the sharp ones.
const WATCHED: u32 = 3;
/// Launches put on the stream ahead of the one that runs. The driver's queue holds about a thousand commands and blocks
/// when it is full, which would keep a hang from being noticed.
const AHEAD: u32 = 64;
/// How often the grader hears which launch runs.
const BEAT: Duration = Duration::from_millis(100);
/// How often the stream is looked at, and after how long without a finished launch it is waited for in earnest.
const NAP: Duration = Duration::from_micros(50);
const STALL: Duration = Duration::from_millis(20);
/// Bytes of local memory a thread from which a launch without room is the kernel's fault: 16 KiB for each of the 270,000
/// threads that a large GPU holds are 4 GiB.
const LOCAL_IS_LARGE: u64 = 16 << 10;

/// What the stream has done, and the channel on which the grader is told.
///
/// The GPU itself writes the number of each finished launch to host memory. That number is right even when the context
/// has died of the next launch and every call of the driver fails.
pub struct Pulse<'a> {
    pub gpu: &'a Gpu,
    finished: Pinned<u32>,
    replies: &'a File,
    beaten: Instant,
}

impl<'a> Pulse<'a> {
    pub fn new(gpu: &'a Gpu, replies: &'a File) -> Answer<Self> {
        Ok(Self { gpu, finished: Pinned::new(1)?, replies, beaten: Instant::now() })
    }

    /// Sends a frame to the grader.
    pub fn say(&mut self, reply: &Reply) -> Result<()> {
        self.beaten = Instant::now();
        wire::write(&mut self.replies, reply, &[])
    }

    /// Waits until the stream is idle, telling the grader which launch runs. The waiting is a thread's that can be blocked
    /// for ever: the grader then ends the process.
    pub fn wait(&mut self) -> Result<Answer<()>> {
        let gpu = self.gpu;
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| gpu.synchronise());
            while !waiter.is_finished() {
                self.beat()?;
                std::thread::sleep(NAP);
            }
            waiter.join().map_err(|_| anyhow!("the thread that waits for the GPU ended early"))
        })
    }

    /// Waits until the stream has finished `launches`, or something seems to have gone wrong: then until it is idle.
    fn wait_for(&mut self, launches: u32) -> Result<Answer<()>> {
        let (mut seen, mut since) = (self.finished.first(), Instant::now());
        while seen < launches {
            self.beat()?;
            if since.elapsed() > STALL {
                return self.wait();
            }
            std::thread::sleep(NAP);
            let now = self.finished.first();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        Ok(Ok(()))
    }

    /// Tells the grader now and then which launch runs.
    fn beat(&mut self) -> Result<()> {
        if self.beaten.elapsed() > BEAT {
            self.say(&Reply::Launch(self.running()))?;
        }
        Ok(())
    }

    /// The launch that runs, or failed.
    pub fn running(&self) -> u32 {
        self.finished.first() + 1
    }

    fn begin(&mut self) {
        self.finished.set_first(0);
    }

    fn mark(&self, launch: u32) -> Answer<()> {
        self.gpu.mark(&self.finished, launch)
    }
}

/// Why a run stopped: by its own fault, or the machine's.
pub enum Stop {
    Fault(RawFault),
    Machine(anyhow::Error),
}

impl From<anyhow::Error> for Stop {
    fn from(error: anyhow::Error) -> Self {
        Self::Machine(error)
    }
}

impl From<DriverError> for Stop {
    fn from(error: DriverError) -> Self {
        Self::Machine(error.into())
    }
}

/// A failure while `launch` ran.
pub fn crashed(launch: u32) -> impl Fn(DriverError) -> Stop {
    move |error| {
        if is_the_machines(error.0) {
            Stop::Machine(anyhow::Error::from(error).context(format!("launch {launch} failed")))
        } else {
            Stop::Fault(RawFault::Crashed { launch, code: error.0 })
        }
    }
}

/// One run under way.
struct Running<'a, 'g> {
    pulse: &'a mut Pulse<'g>,
    function: &'a Function,
    counter: Option<&'a mut Counter>,
    grids: &'a mut Grids,
    shared: &'a mut SharedGrids,
    run: &'a Run,
    /// What the coming launch's input holds, where inputs are compared.
    input: Vec<f32>,
    /// Grids that have been put into the shared memory.
    kept: usize,
    seen: RawObservation,
}

/// Runs `run` from the initial grid in the shared memory, where the kept ones go. An error is the machine's fault.
pub fn run_trial(
    pulse: &mut Pulse,
    function: &Function,
    counter: Option<&mut Counter>,
    grids: &mut Grids,
    shared: &mut SharedGrids,
    run: &Run,
) -> Result<RawObservation> {
    let (seen, input) = (RawObservation::default(), Vec::new());
    let mut running = Running { pulse, function, counter, grids, shared, run, input, kept: 0, seen };
    match running.all() {
        Ok(()) => {}
        Err(Stop::Fault(fault)) => running.seen.fault = Some(fault),
        Err(Stop::Machine(error)) => return Err(error),
    }
    if let Some(counter) = running.counter {
        running.seen.words_read = counter.take_words();
    }
    Ok(running.seen)
}

impl Running<'_, '_> {
    fn all(&mut self) -> Result<(), Stop> {
        let gpu = self.pulse.gpu;
        if self.watched() {
            self.grids.draw_bands(gpu, self.run.pattern)?;
            self.input = self.shared.cells(self.run.n, INITIAL)?.to_vec();
        }
        self.grids.fill(gpu, self.shared.cells(self.run.n, INITIAL)?)?;
        if let Some(counter) = &mut self.counter {
            counter.begin(gpu, self.run.pattern)?;
        }
        self.pulse.wait()?.context("the grids could not be filled")?;
        self.pulse.begin();
        gpu.opt_in(self.function, &self.run.geometry).map_err(|error| self.refused(1, error))?;
        self.pulse.say(&Reply::Launch(1))?;
        let mut since = Instant::now();
        for launch in 1..=self.run.launches {
            self.launch(launch)?;
            let kept = self.run.keep.contains(&launch);
            let full = self.counter.as_ref().is_some_and(|counter| counter.is_full());
            if (launch <= WATCHED && self.watched()) || kept || full || launch == self.run.launches {
                self.pause()?;
                self.seen.wall_seconds += since.elapsed().as_secs_f64();
                self.look(launch, kept)?;
                since = Instant::now();
            }
        }
        Ok(())
    }

    fn launch(&mut self, launch: u32) -> Result<(), Stop> {
        let gpu = self.pulse.gpu;
        if launch > AHEAD {
            self.pulse.wait_for(launch - AHEAD)?.map_err(|error| crashed(self.pulse.running())(error))?;
        }
        let addresses = self.grids.of_launch(launch);
        if let Err(error) = gpu.launch(self.function, &self.run.geometry, addresses, self.run.n, self.run.r) {
            // What an earlier launch died of may show only now.
            self.pause()?;
            return Err(self.refused(launch, error));
        }
        let logged = self.counter.as_mut().map_or(Ok(()), |counter| counter.log(gpu));
        logged.and_then(|()| self.pulse.mark(launch)).map_err(|error| crashed(self.pulse.running())(error))
    }

    /// A launch that the driver did not take.
    fn refused(&self, launch: u32, error: DriverError) -> Stop {
        // Little local memory a thread: it is the GPU that is full.
        let full = error.0 == OUT_OF_MEMORY && self.function.facts.local < LOCAL_IS_LARGE;
        if full || is_the_machines(error.0) {
            return Stop::Machine(anyhow::Error::from(error).context(format!("launch {launch} could not be made")));
        }
        Stop::Fault(RawFault::Refused { launch, code: error.0 })
    }

    /// Whether bands and input are looked at.
    fn watched(&self) -> bool {
        self.run.watched && !self.grids.bare()
    }

    /// Waits for all launches so far.
    fn pause(&mut self) -> Result<(), Stop> {
        self.pulse.wait()?.map_err(|error| crashed(self.pulse.running())(error))
    }

    /// What can be seen after `launch`, the stream being idle. Of bare grids nothing: a copy of cells that nobody wrote would
    /// be found fault with as the kernel's read of them is.
    fn look(&mut self, launch: u32, kept: bool) -> Result<(), Stop> {
        if self.grids.bare() {
            return Ok(());
        }
        let gpu = self.pulse.gpu;
        let (input, watched) = (input_of(launch), self.watched());
        let compared = watched && launch <= WATCHED && self.seen.input_changed.is_none();
        if watched {
            self.grids.fetch_bands(gpu)?;
        }
        if compared {
            self.grids.fetch(gpu, input)?;
        }
        if let Some(counter) = &mut self.counter {
            counter.fetch(gpu)?;
        }
        self.pulse.wait()?.context("the grids could not be read")?;
        if watched {
            self.seen.bands.extend(self.grids.changes(launch));
        }
        if let Some(counter) = &mut self.counter {
            counter.settle();
        }
        if compared {
            self.seen.input_changed = first_change(launch, &self.input, self.grids.cells());
        }
        if !kept && !compared {
            return Ok(());
        }
        self.grids.fetch(gpu, 1 - input)?;
        self.pulse.wait()?.context("the grid could not be read")?;
        if watched && launch < WATCHED {
            self.input.copy_from_slice(self.grids.cells());
        }
        if kept {
            self.shared.put(self.run.n, FIRST + self.kept, self.grids.cells())?;
            self.kept += 1;
            self.pulse.say(&Reply::Grid(launch))?;
        }
        Ok(())
    }
}

/// The first cell that differs, with the bits it had and has.
fn first_change(launch: u32, before: &[f32], after: &[f32]) -> Option<(u32, usize, u32, u32)> {
    if wire::bytes_of(before) == wire::bytes_of(after) {
        return None;
    }
    let cell = before.iter().zip(after).position(|(old, new)| old.to_bits() != new.to_bits())?;
    Some((launch, cell, before[cell].to_bits(), after[cell].to_bits()))
}
