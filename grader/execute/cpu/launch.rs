//! Runs a trial inside the worker: launches one after another, blocks shared among lanes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Instant;

use anyhow::{Result, anyhow};
use rustix::time::{ClockId, clock_gettime};

use super::abi::KernelFn;
use super::arena::{Arena, Buffer, GridMap};
use super::checker::Checker;
use super::lane::{Arguments, BlockEnd, Lane, site};
use super::loops::Loops;
use super::message::Run;
use super::object::{LoadedObject, ObjectMap};
use super::raw::{RawFault, RawHazard, RawObservation};
use super::signals;
use super::tally::Tally;
use crate::execute::{DeviceState, Watch};
use crate::memory::copy_of;

/// Launches after which the input grid is compared with what it was: the sharp ones.
const INPUT_COMPARED: u32 = 3;
/// Blocks a lane takes at a time.
const CHUNK: u64 = 4;
/// Stack of a lane's OS thread: the thread-local segment is carved out of it.
const LANE_STACK: usize = 16 << 20;

/// What lanes share during a trial.
struct Shared {
    start: Barrier,
    finish: Barrier,
    next_block: AtomicU64,
    stop: AtomicBool,
    /// A block could not run as loops; nothing else is wrong.
    needs_coroutines: AtomicBool,
    quit: AtomicBool,
    plan: Mutex<Plan>,
    fault: Mutex<Option<RawFault>>,
    bytes_read: AtomicU64,
}

/// One launch.
#[derive(Clone, Copy)]
struct Plan {
    launch: u32,
    arguments: Arguments,
    grids: GridMap,
    /// What runs a whole block, if not coroutines.
    loops: Option<KernelFn>,
}

// SAFETY: the pointers in a plan lead to the arena, which outlives the trial and is meant to be shared.
unsafe impl Send for Plan {}

/// Most bytes of a program's variables that are handed out.
const MOST_STATE: usize = 64 << 20;

/// What is told of a trial while it runs.
pub enum Told<'t> {
    /// A launch begins.
    Launch(u32),
    /// The grid after a launch.
    Grid(u32, &'t [f32]),
    /// What the program's variables hold after a launch.
    State(u32, DeviceState),
}

/// Runs `run` from `initial`.
pub fn run_trial(
    object: &LoadedObject,
    map: &Arc<ObjectMap>,
    arena: &mut Arena,
    run: &Run,
    initial: &[f32],
    mut tell: impl FnMut(Told) -> Result<()>,
) -> Result<RawObservation> {
    arena.fill(initial)?;
    poison_interior(arena.cells_mut(Buffer::B), run.n);
    let blocks = run.geometry.grid.iter().map(|&blocks| u64::from(blocks)).product::<u64>();
    // A lane that would find no block is not worth setting up.
    let useful = usize::try_from(blocks.div_ceil(CHUNK)).unwrap_or(usize::MAX);
    let lanes = if run.watch == Watch::Full { 1 } else { run.lanes.min(useful).max(1) };
    let shared = Shared::new(lanes);
    let mut lane = new_lane(object, map, run)?;
    std::thread::scope(|scope| {
        for _ in 1..lanes {
            let (shared, map) = (&shared, map.clone());
            let body = move || other_lane(object, &map, run, shared);
            std::thread::Builder::new().stack_size(LANE_STACK).spawn_scoped(scope, body)?;
        }
        let mut pace = Pace { lane: &mut lane, shared: &shared, arena, run, object };
        let result = launches(&mut pace, map, &mut tell);
        shared.quit.store(true, Ordering::Release);
        shared.start.wait();
        result
    })
}

impl Shared {
    fn new(lanes: usize) -> Self {
        let arguments = Arguments { input: std::ptr::null(), output: std::ptr::null_mut(), n: 0, r: 0.0 };
        Self {
            start: Barrier::new(lanes),
            finish: Barrier::new(lanes),
            next_block: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            needs_coroutines: AtomicBool::new(false),
            quit: AtomicBool::new(false),
            plan: Mutex::new(Plan { launch: 0, arguments, grids: GridMap { input: Buffer::A, bytes: 0 }, loops: None }),
            fault: Mutex::new(None),
            bytes_read: AtomicU64::new(0),
        }
    }

    fn plan(&self) -> Plan {
        *self.plan.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

fn new_lane(object: &LoadedObject, map: &Arc<ObjectMap>, run: &Run) -> Result<Box<Lane>> {
    let variables = object.lane_variables(map)?;
    let bytes = run.n * run.n * 4;
    let segment = (variables.segment(), map.segment_bytes as usize);
    let starts = [Buffer::A, Buffer::B].map(super::arena::address);
    let checker = Checker::new(run.watch, map.clone(), object.base, segment, (starts, bytes));
    let mut lane = Lane::new(object.kernel, variables, checker, GridMap { input: Buffer::A, bytes })?;
    lane.enter();
    signals::enter_lane()?;
    Ok(lane)
}

fn other_lane(object: &LoadedObject, map: &Arc<ObjectMap>, run: &Run, shared: &Shared) {
    let mut lane = new_lane(object, map, run);
    loop {
        shared.start.wait();
        if shared.quit.load(Ordering::Acquire) {
            return;
        }
        match &mut lane {
            Ok(lane) => work(lane, run, shared),
            Err(_) => shared.stop.store(true, Ordering::Relaxed),
        }
        shared.finish.wait();
    }
}

/// What makes the launches of one trial.
pub(super) struct Pace<'a> {
    lane: &'a mut Lane,
    shared: &'a Shared,
    pub arena: &'a mut Arena,
    pub run: &'a Run,
    pub object: &'a LoadedObject,
}

fn launches(pace: &mut Pace, map: &ObjectMap, tell: &mut impl FnMut(Told) -> Result<()>) -> Result<RawObservation> {
    let mut seen = RawObservation::default();
    let mut input = Buffer::A;
    let run = pace.run;
    let mut loops = Loops::new(pace);
    pace.lane.checker.tally =
        (run.cell_reads && run.watch == Watch::Full).then(|| Box::new(Tally::new(run.n, &run.geometry)));
    for launch in 1..=run.launches {
        tell(Told::Launch(launch))?;
        let before = (launch <= INPUT_COMPARED).then(|| copy_of(pace.arena.cells(input)));
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        loops.launch(pace, launch, input);
        if loops.misled() {
            seen.misled = true;
            return Ok(seen);
        }
        let Pace { lane, shared, arena, object, .. } = &mut *pace;
        seen.wall_seconds += wall.elapsed().as_secs_f64();
        seen.cpu_seconds += cpu_seconds() - cpu;
        if run.watch != Watch::Fast {
            seen.words_read.push(shared.bytes_read.swap(0, Ordering::Relaxed) / 4);
        }
        seen.hazards = merge(std::mem::take(&mut seen.hazards), lane.checker.take_hazards());
        if let (Some(before), None) = (before, seen.input_changed) {
            seen.input_changed = first_change(launch, &before, arena.cells(input));
        }
        seen.fault = shared.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if seen.fault.is_some() {
            return Ok(seen);
        }
        if shared.stop.load(Ordering::Relaxed) {
            return Err(anyhow!("a lane could not be set up"));
        }
        seen.launches_done = launch;
        if let Some(mut tally) = lane.checker.tally.take() {
            let place = |code: usize| site(code, object.base);
            let reads = |&(code, bytes): &(usize, u64)| Some((place(code)?, bytes));
            seen.read_sites = tally.sites.iter().filter_map(reads).collect();
            seen.other_sites = tally.elsewhere.iter().filter_map(reads).collect();
            seen.banks = std::mem::take(&mut tally.banks).seen(place);
            seen.cell_reads = Some(tally.counted());
        }
        let output = input.other();
        if run.keep.contains(&launch) {
            tell(Told::Grid(launch, arena.cells(output)))?;
        }
        if run.keep_state.contains(&launch)
            && let Some(state) = object.state(map, MOST_STATE)
        {
            tell(Told::State(launch, state))?;
        }
        if let (Some(window), true) = (&run.writers_of, launch == run.launches) {
            let address = |(row, column): (usize, usize)| arena.address(output) + (row * run.n + column) * 4;
            let writer = |cell| lane.checker.writer(output as usize, address(cell));
            seen.writers = window.cells().map(writer).collect();
        }
        input = output;
    }
    seen.loops = loops.used();
    Ok(seen)
}

impl Pace<'_> {
    /// One launch on all lanes, by coroutines or by what runs a whole block; returns when every block has run or one could
    /// not go on.
    pub fn launch(&mut self, launch: u32, input: Buffer, loops: Option<KernelFn>) {
        let plan = Plan {
            launch,
            arguments: Arguments {
                input: self.arena.address(input) as *const f32,
                output: self.arena.address(input.other()) as *mut f32,
                n: self.run.n as i32,
                r: self.run.r,
            },
            grids: GridMap { input, bytes: self.run.n * self.run.n * 4 },
            loops,
        };
        *self.shared.plan.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = plan;
        self.shared.next_block.store(0, Ordering::Relaxed);
        self.shared.start.wait();
        work(self.lane, self.run, self.shared);
        self.shared.finish.wait();
    }

    /// Whether the last launch ran to its end.
    pub fn went_well(&self) -> bool {
        !self.shared.stop.load(Ordering::Relaxed)
    }

    /// Whether the last launch only could not run as loops. Forgets it, so that it can be made by coroutines.
    pub fn take_needs_coroutines(&mut self) -> bool {
        let needs = self.shared.needs_coroutines.swap(false, Ordering::Relaxed);
        if needs {
            self.shared.stop.store(false, Ordering::Relaxed);
        }
        needs
    }
}

/// A lane's share of the launch: takes blocks until none is left.
fn work(lane: &mut Lane, run: &Run, shared: &Shared) {
    let plan = shared.plan();
    lane.checker.begin_launch(plan.launch, run.geometry.block, run.geometry.grid);
    lane.begin_launch((run.geometry, run.order), plan.arguments, plan.grids, plan.loops);
    let [x, y, z] = run.geometry.grid.map(u64::from);
    let blocks = x * y * z;
    while !shared.stop.load(Ordering::Relaxed) {
        let first = shared.next_block.fetch_add(CHUNK, Ordering::Relaxed);
        if first >= blocks {
            break;
        }
        for turn in first..(first + CHUNK).min(blocks) {
            // CUDA promises no order of blocks either.
            let block = if run.order.is_some() { blocks - 1 - turn } else { turn };
            let index = [block % x, block / x % y, block / (x * y)].map(|part| part as u32);
            let end = lane.run_block(index);
            if lane.stacks().unguarded() {
                shared.stop.store(true, Ordering::Relaxed);
                return;
            }
            if end == BlockEnd::NeedsCoroutines {
                shared.needs_coroutines.store(true, Ordering::Relaxed);
                shared.stop.store(true, Ordering::Relaxed);
                return;
            }
            if end != BlockEnd::Done {
                stop(lane, shared, end);
                return;
            }
        }
    }
    shared.bytes_read.fetch_add(std::mem::take(&mut lane.bytes_read), Ordering::Relaxed);
}

fn stop(lane: &mut Lane, shared: &Shared, end: BlockEnd) {
    let fault = match (end, lane.fault.take()) {
        (_, Some(fault)) => fault,
        (_, None) => RawFault::Deadlock,
    };
    let mut slot = shared.fault.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    slot.get_or_insert(fault);
    shared.stop.store(true, Ordering::Relaxed);
}

/// The output's interior starts as NaN, so that a cell nobody writes shows; its ring is part of the contract.
pub(super) fn poison_interior(cells: &mut [f32], n: usize) {
    for row in 1..n.saturating_sub(1) {
        cells[row * n + 1..row * n + n - 1].fill(f32::NAN);
    }
}

fn first_change(launch: u32, before: &[f32], after: &[f32]) -> Option<(u32, usize, u32, u32)> {
    if super::super::wire::bytes_of(before) == super::super::wire::bytes_of(after) {
        return None;
    }
    let changed = |(old, new): (&f32, &f32)| old.to_bits() != new.to_bits();
    let cell = before.iter().zip(after).position(changed)?;
    Some((launch, cell, before[cell].to_bits(), after[cell].to_bits()))
}

/// Hazards of earlier launches first; a site seen again is counted.
fn merge(mut all: Vec<RawHazard>, new: Vec<RawHazard>) -> Vec<RawHazard> {
    for hazard in new {
        match all
            .iter_mut()
            .find(|known| known.kind == hazard.kind && known.site == hazard.site && same_memory(known, &hazard))
        {
            Some(known) => known.count += hazard.count,
            None => all.push(hazard),
        }
    }
    all
}

fn same_memory(a: &RawHazard, b: &RawHazard) -> bool {
    a.memory.as_ref().map(std::mem::discriminant) == b.memory.as_ref().map(std::mem::discriminant)
}

/// CPU time of this process, seconds.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
