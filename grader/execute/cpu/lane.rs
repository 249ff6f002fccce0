//! A lane: one OS thread that runs blocks, one at a time, every CUDA thread of the block a coroutine.
//!
//! Threads start in order on one stack until somebody has to wait; only then does the next one get a stack of its own. CUDA
//! promises no order, so some trials draw one for each block ([`order`]): what a kernel makes of it differs then.
//! A kernel without barriers therefore never switches. A waiting thread names a counter and the value it must leave;
//! whoever completes a barrier or a warp operation moves the counter on, which frees all waiters at once.

mod barrier;
mod order;
mod warps;

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicUsize;

use anyhow::Result;

use self::barrier::Barrier;
use super::abi::KernelFn;
use super::arena::GridMap;
use super::checker::{Checker, Standing, Touch};
use super::copies::Copies;
use super::object::LaneVariables;
use super::raw::{RawFault, Site};
use super::stacks::{Stacks, prefetch};
use super::switch;
use super::warp::Warp;
use crate::execute::{Actor, Watch};
use crate::submission::Geometry;

/// Most threads a block can have.
pub const MAX_THREADS: usize = 1024;

/// threadIdx where loops keep their own. The word behind it lets asynchronous copies land at once.
const NO_THREAD: [u32; 4] = [u32::MAX, u32::MAX, u32::MAX, 1];

/// Bytes of the innermost frames of a thread that waits at a barrier.
const WAITING_FRAMES: usize = 4 * 64;

thread_local! {
    static LANE: Cell<*mut Lane> = const { Cell::new(ptr::null_mut()) };
}

/// The lane of the running OS thread; null outside a launch.
#[inline(always)]
pub fn current() -> *mut Lane {
    LANE.get()
}

/// A counter that nobody moves: what a finished thread waits on.
static NEVER: u32 = 0;

/// A counter that has left the value of a thread that only lets others go first.
static LET_OTHERS: u32 = 0;

/// Atomics in a row after which a thread lets others go first: one that asks again and again for what another one is to store would
/// ask for ever.
const ATOMICS_IN_A_ROW: u32 = 256;
/// Atomics of a block that runs as loops, where nobody can go first, after which coroutines run it.
const ATOMICS_IN_LOOPS: u32 = 1 << 18;

/// One CUDA thread of the running block.
pub struct Thread {
    /// Its flat number in the block, x fastest.
    number: usize,
    /// Saved stack pointer while it waits.
    context: *mut u8,
    /// It waits for as long as the counter holds this value.
    waits_on: *const u32,
    wait_value: u32,
    stack: u32,
    /// It has arrived at a barrier that it has not waited at.
    arrived_ahead: bool,
    /// How often it has arrived at such barriers.
    arrivals: u32,
    /// threadIdx as the compiled code holds it, and 0.
    index: [u32; 4],
}

/// How a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEnd {
    Done,
    /// No thread could go on.
    Deadlock,
    /// As loops over its threads it cannot run: a thread has to wait for others, or to say which one it is.
    NeedsCoroutines,
    /// A thread trapped, or used what this engine cannot run; the lane holds the fault.
    Stopped,
}

/// A memory, by the number that cuda_runtime.h has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryOf {
    None = 0,
    Global = 1,
    Shared = 2,
    Local = 3,
    Constant = 4,
}

/// One OS thread's share of a launch.
pub struct Lane {
    /// Where the running thread stands: touched at every hook.
    pub standing: Standing,
    pub bytes_read: u64,
    pub checker: Checker,
    /// Where the access that is being looked at returns to in heat.cu's code; 0 when none is. A signal's handler reads it.
    pub asked_from: AtomicUsize,
    count: usize,
    /// Threads by flat number: threadIdx.
    indices: Vec<[u32; 4]>,
    /// The running thread's place in `threads`.
    current: usize,
    started: usize,
    /// What the order of a block's threads is drawn from; their own order when `None`.
    order: Option<u64>,
    /// Atomics that the running thread has made since it went on, or a block that runs as loops since it began.
    atomics: u32,
    live: usize,
    barrier: Barrier,
    /// In the order in which they run; a warp's are together.
    threads: Vec<Thread>,
    warps: Vec<Warp>,
    /// By place in `threads`.
    copies: Vec<Copies>,
    /// Blocks this lane has begun.
    blocks_begun: u64,
    stacks: Stacks,
    scheduler: *mut u8,
    retired: *mut u8,
    end: BlockEnd,
    pub fault: Option<RawFault>,
    pub variables: LaneVariables,
    kernel: KernelFn,
    /// What runs a whole block in this launch, if not coroutines.
    loops: Option<KernelFn>,
    pub arguments: Arguments,
    geometry: Geometry,
    pub block: [u32; 3],
}

/// The kernel's arguments in one launch.
#[derive(Clone, Copy)]
pub struct Arguments {
    pub input: *const f32,
    pub output: *mut f32,
    pub n: i32,
    pub r: f32,
}

impl Lane {
    pub fn new(kernel: KernelFn, variables: LaneVariables, checker: Checker, grids: GridMap) -> Result<Box<Self>> {
        let thread = || Thread {
            number: 0,
            context: ptr::null_mut(),
            waits_on: &NEVER,
            wait_value: 0,
            stack: 0,
            arrived_ahead: false,
            arrivals: 0,
            index: [0; 4],
        };
        Ok(Box::new(Self {
            standing: Standing { grids, block: 0, thread: 0, dynamic: 0, n: 0 },
            bytes_read: 0,
            checker,
            asked_from: AtomicUsize::new(0),
            count: 0,
            indices: vec![[0; 4]; MAX_THREADS],
            current: 0,
            started: 0,
            order: None,
            atomics: 0,
            live: 0,
            barrier: Barrier::default(),
            threads: (0..MAX_THREADS).map(|_| thread()).collect(),
            warps: (0..MAX_THREADS / 32).map(|_| Warp::default()).collect(),
            copies: (0..MAX_THREADS).map(|_| Copies::default()).collect(),
            blocks_begun: 0,
            stacks: Stacks::new(MAX_THREADS)?,
            scheduler: ptr::null_mut(),
            retired: ptr::null_mut(),
            end: BlockEnd::Done,
            fault: None,
            variables,
            kernel,
            loops: None,
            arguments: Arguments { input: ptr::null(), output: ptr::null_mut(), n: 0, r: 0.0 },
            geometry: Geometry { grid: [0; 3], block: [0; 3], shared: 0 },
            block: [0; 3],
        }))
    }

    /// Makes the lane this OS thread's own.
    pub fn enter(&mut self) {
        LANE.set(self);
    }

    /// Gets ready for blocks of this shape.
    pub fn begin_launch(
        &mut self,
        (geometry, order): (Geometry, Option<u64>),
        arguments: Arguments,
        grids: GridMap,
        loops: Option<KernelFn>,
    ) {
        self.loops = loops;
        self.order = order;
        self.geometry = geometry;
        self.arguments = arguments;
        self.standing =
            Standing { grids, block: 0, thread: 0, dynamic: geometry.shared as usize, n: arguments.n as usize };
        let [x, y, z] = geometry.block;
        self.count = (x * y * z) as usize;
        for (number, thread) in self.threads.iter_mut().take(self.count).enumerate() {
            let flat = number as u32;
            self.indices[number] = [flat % x, flat / x % y, flat / (x * y), 0];
            (thread.number, thread.index) = (number, self.indices[number]);
        }
        self.variables.set_shape(geometry.block, geometry.grid);
    }

    /// Runs one block from start to end.
    pub fn run_block(&mut self, block: [u32; 3]) -> BlockEnd {
        self.block = block;
        self.standing.block = self.block_number();
        self.variables.set_block(block);
        self.variables.poison_shared(self.geometry.shared, self.loops.is_some());
        if self.loops.is_some() {
            return self.run_loops();
        }
        self.draw_order();
        self.barrier.begin_block();
        for warp in &mut self.warps[..self.count.div_ceil(32)] {
            warp.reset();
        }
        self.blocks_begun += 1;
        self.live = self.count;
        self.end = BlockEnd::Done;
        self.checker.begin_block();
        let first = self.start_next();
        // SAFETY: `first` is a fresh context on a free stack; this frame stays alive until somebody switches back.
        unsafe { switch::switch(&raw mut self.scheduler, first) };
        self.started = 0;
        if self.end != BlockEnd::Done {
            self.stacks.reset();
        }
        self.end
    }

    /// Runs one block as loops over its threads, on a coroutine's stack, which it can be abandoned on.
    fn run_loops(&mut self) -> BlockEnd {
        (self.end, self.atomics) = (BlockEnd::Done, 0);
        let (stack, top) = self.stacks.take();
        self.variables.set_thread(NO_THREAD);
        self.started = 1;
        // SAFETY: as in `run_block`.
        unsafe { switch::switch(&raw mut self.scheduler, switch::prepare(top, loops_main)) };
        self.started = 0;
        self.stacks.give(stack);
        self.end
    }

    /// Gives up a block that runs as loops; goes on where it runs as coroutines.
    ///
    /// # Safety
    /// Called on a coroutine's stack.
    #[inline(always)]
    unsafe fn needs_coroutines(lane: *mut Self) {
        // SAFETY: see `stop`.
        unsafe {
            if (*lane).loops.is_some() {
                Self::stop(lane, BlockEnd::NeedsCoroutines);
            }
        }
    }

    pub fn actor(&self) -> Actor {
        self.actor_of(self.standing.thread)
    }

    pub fn actor_of(&self, thread: usize) -> Actor {
        let [x, y, z, _] = self.indices[thread];
        Actor { block: self.block, thread: [x, y, z] }
    }

    /// Blocks of the grid before this one, x fastest.
    fn block_number(&self) -> u32 {
        let [x, y, _] = self.geometry.grid;
        self.block[0] + x.wrapping_mul(self.block[1] + y.wrapping_mul(self.block[2]))
    }

    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// Whether an address in the stacks lies in the running thread's own.
    pub fn is_own_local(&self, address: usize) -> bool {
        self.stacks.holds(self.threads[self.current].stack, address)
    }

    /// Whose local memory an address in the stacks is; `None` where that thread has ended.
    pub fn local_owner(&self, address: usize) -> Option<usize> {
        let is_of = |thread: &Thread| self.stacks.holds(thread.stack, address) && !ptr::eq(thread.waits_on, &NEVER);
        self.threads[..self.started].iter().find(|thread| is_of(thread)).map(|thread| thread.number)
    }

    /// The running thread's asynchronous copies.
    ///
    /// # Safety
    /// Called on a coroutine's stack.
    #[inline(always)]
    pub unsafe fn copies(&mut self) -> &mut Copies {
        // SAFETY: the caller's word.
        unsafe { Self::needs_coroutines(self) };
        self.copies[self.current].of_block(self.blocks_begun)
    }

    /// Whether an address lies in the values of a warp operation, which the CUDA headers read.
    pub fn in_exchange(&self, address: usize) -> bool {
        self.warps[self.current / 32].holds(address)
    }

    /// The compiler saw that an access leaves its object. Where that is a local one nobody else would see it.
    pub fn beyond_object(&mut self, touch: Touch) {
        if self.checker.watch == Watch::Full && self.stacks.contain(touch.address) {
            let standing = self.standing;
            self.checker.beyond_local(touch, &standing);
        }
    }

    /// The answer to a kernel's question.
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    pub unsafe fn memory_of_asked(lane: *mut Self, address: usize) -> MemoryOf {
        // SAFETY: the caller's word; what threads keep is elsewhere in a block that runs as loops.
        unsafe {
            Self::needs_coroutines(lane);
            (*lane).memory_of(address)
        }
    }

    /// In which of CUDA's memories an address lies.
    pub fn memory_of(&self, address: usize) -> MemoryOf {
        if self.stacks.contain(address) {
            MemoryOf::Local
        } else if self.variables.in_segment(address) {
            MemoryOf::Shared
        } else if self.standing.grids.spot(address).is_some() {
            MemoryOf::Global
        } else {
            self.checker.memory_of_variable(address)
        }
    }

    /// Whether a block is running on this lane.
    pub fn running(&self) -> bool {
        self.started > 0
    }

    /// Makes the thread at a place in `threads` the running one.
    #[inline(always)]
    fn set_current(&mut self, place: usize) {
        (self.current, self.atomics) = (place, 0);
        let thread = &self.threads[place];
        self.standing.thread = thread.number;
        self.variables.set_thread(thread.index);
    }

    /// Starts the next thread that has not run yet on a stack of its own.
    fn start_next(&mut self) -> *mut u8 {
        let (stack, top) = self.stacks.take();
        self.set_current(self.started);
        self.started += 1;
        self.threads[self.current].stack = stack;
        // SAFETY: the stack was free and is large enough for the first frame.
        unsafe { switch::prepare(top, thread_main) }
    }

    /// Chooses who goes on: a thread not started yet, else the next one in order that need not wait. `None` when there
    /// is nobody.
    #[inline(always)]
    fn choose(&mut self) -> Option<*mut u8> {
        if self.started < self.count {
            return Some(self.start_next());
        }
        let mut next = self.current;
        for _ in 0..self.count {
            next += 1;
            if next == self.count {
                next = 0;
            }
            let thread = &self.threads[next];
            // SAFETY: counters live in this lane (barrier, warps) or are static.
            if unsafe { *thread.waits_on } != thread.wait_value {
                let context = thread.context;
                self.set_current(next);
                self.prefetch(next + 1);
                return Some(context);
            }
        }
        self.answer_masks()
    }

    /// Asks for the frames of the thread that will most likely go on after this one: a block's stacks together are larger
    /// than the first-level cache.
    #[inline(always)]
    fn prefetch(&self, thread: usize) {
        if let Some(thread) = self.threads.get(thread) {
            prefetch(thread.context, WAITING_FRAMES);
        }
    }

    /// Lets the running thread wait until `*counter` leaves `value`; `choose` says who goes on meanwhile.
    ///
    /// # Safety
    /// Called on the running thread's own stack; `counter` outlives the block.
    #[inline(always)]
    unsafe fn wait(lane: *mut Self, counter: *const u32, value: u32, choose: fn(&mut Self) -> Option<*mut u8>) {
        // SAFETY: one OS thread owns the lane; no reference to it is held across the switch.
        unsafe {
            let waiting = (*lane).current;
            let thread = &raw mut (&mut (*lane).threads)[waiting];
            (*thread).waits_on = counter;
            (*thread).wait_value = value;
            if *counter != value {
                return;
            }
            match choose(&mut *lane) {
                Some(next) => switch::switch(&raw mut (*thread).context, next),
                None => Self::stop(lane, BlockEnd::Deadlock),
            }
        }
    }

    /// The running thread is about to make an atomic access.
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    pub unsafe fn before_atomic(lane: *mut Self) {
        // SAFETY: as for `wait`.
        unsafe {
            (*lane).atomics = (*lane).atomics.wrapping_add(1);
            if (*lane).loops.is_some() {
                if (*lane).atomics > ATOMICS_IN_LOOPS {
                    Self::needs_coroutines(lane);
                }
            } else if (*lane).atomics.is_multiple_of(ATOMICS_IN_A_ROW) {
                Self::let_others(lane);
            }
        }
    }

    /// Lets other threads go first, if there are any that can.
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    unsafe fn let_others(lane: *mut Self) {
        // SAFETY: as for `wait`.
        unsafe {
            let waiting = (*lane).current;
            let thread = &raw mut (&mut (*lane).threads)[waiting];
            // Nobody chooses it now, and whoever it is that goes on may choose it later.
            (*thread).waits_on = &NEVER;
            (*thread).wait_value = NEVER;
            let next = (&mut *lane).choose();
            (*thread).waits_on = &LET_OTHERS;
            (*thread).wait_value = LET_OTHERS + 1;
            if let Some(next) = next {
                switch::switch(&raw mut (*thread).context, next);
            }
        }
    }

    /// Leaves the block for good: all its coroutines are abandoned where they stand.
    ///
    /// # Safety
    /// Called on a coroutine's stack.
    pub unsafe fn stop(lane: *mut Self, end: BlockEnd) -> ! {
        // SAFETY: the scheduler's context was saved by run_block, which this switch returns to.
        unsafe {
            (*lane).end = end;
            let scheduler = (*lane).scheduler;
            switch::switch(&raw mut (*lane).retired, scheduler);
        }
        unreachable!("an abandoned coroutine was resumed")
    }

    /// The running thread returned from the kernel. Says when the block cannot go on.
    #[inline(always)]
    fn retire(&mut self) -> Option<BlockEnd> {
        let (warp, lane_bit) = (self.standing.thread / 32, self.standing.thread % 32);
        let thread = &mut self.threads[self.current];
        (thread.waits_on, thread.wait_value) = (&NEVER, NEVER);
        self.live -= 1;
        let end = self.leave_barrier();
        self.warps[self.current / 32].retire(lane_bit, |lanes| self.checker.warp_synced(warp, lanes));
        end
    }
}

/// Where every coroutine starts: runs the current thread, then those that have not started yet, until somebody else
/// must go on.
unsafe extern "C" fn thread_main() -> ! {
    let lane = current();
    // SAFETY: as below; neither changes within a launch.
    let (kernel, arguments) = unsafe { ((*lane).kernel, (*lane).arguments) };
    loop {
        // SAFETY: the lane outlives its coroutines and only this OS thread touches it; no reference is held while the
        // kernel runs or across a switch.
        unsafe {
            kernel(arguments.input, arguments.output, arguments.n, arguments.r);
            if let Some(end) = (*lane).retire() {
                Lane::stop(lane, end);
            }
            let this = &mut *lane;
            if this.started < this.count {
                let stack = this.threads[this.current].stack;
                this.set_current(this.started);
                this.started += 1;
                this.threads[this.current].stack = stack;
                continue;
            }
            let stack = this.threads[this.current].stack;
            if this.live == 0 {
                this.stacks.give(stack);
                Lane::stop(lane, BlockEnd::Done);
            }
            match this.choose() {
                Some(next) => {
                    this.stacks.give(stack);
                    switch::switch(&raw mut (*lane).retired, next);
                }
                None => Lane::stop(lane, BlockEnd::Deadlock),
            }
        }
    }
}

/// Where a block as loops starts.
unsafe extern "C" fn loops_main() -> ! {
    let lane = current();
    // SAFETY: as in `thread_main`.
    unsafe {
        let Arguments { input, output, n, r } = (*lane).arguments;
        if let Some(block) = (*lane).loops {
            block(input, output, n, r);
        }
        Lane::stop(lane, BlockEnd::Done)
    }
}

/// Ends the block with a fault of the running thread.
///
/// # Safety
/// Called on the running thread's own stack.
pub unsafe fn fail(lane: *mut Lane, fault: RawFault) -> ! {
    // SAFETY: see `Lane::stop`.
    unsafe {
        Lane::needs_coroutines(lane);
        (*lane).fault = Some(fault);
        Lane::stop(lane, BlockEnd::Stopped)
    }
}

/// Ends the block because this engine cannot run a construct.
///
/// # Safety
/// Called on the running thread's own stack.
pub unsafe fn unsupported(lane: *mut Lane, construct: &str, code: usize) -> ! {
    // SAFETY: the caller's word.
    unsafe {
        let site = site(code, (*lane).checker.base);
        fail(lane, RawFault::Unsupported { construct: construct.to_owned(), site })
    }
}

/// A site from a return address, as an offset into the object that starts at `base`.
pub fn site(address: usize, base: usize) -> Option<Site> {
    address.checked_sub(base).map(|offset| Site::Code(offset as u64))
}
