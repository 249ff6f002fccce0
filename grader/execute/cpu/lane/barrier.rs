//! The block's barrier: `__syncthreads` and its reducing kin, and barriers whose arrival and wait are apart.

use super::{BlockEnd, Lane, unsupported};
use crate::execute::Watch;
use crate::execute::cpu::raw::RawFault;

const REDUCE_START: [i32; 3] = [0, 1, 0];

/// What a barrier's site has where returned threads count as missing (cuda_runtime.h).
const WHOLE_BLOCK: u32 = 1 << 31;

/// What is not followed further than that.
const ARRIVED_ONLY: &str = "a barrier at which some threads arrive and do not wait";

/// What a GPU goes on from at once where the phase of the token is over.
const OLD_TOKEN: &str = "a wait for another arrival at a barrier than the thread's last one";

/// State of the block's barrier, for `__syncthreads` and its reducing kin.
#[derive(Default)]
pub(super) struct Barrier {
    phase: u32,
    arrived: usize,
    /// Threads that have returned do not reach it, and somebody waits for all of them.
    whole: bool,
    /// Threads that have arrived and returned without waiting.
    gone_ahead: usize,
    /// Line and thread of the first arrival of this phase.
    first: Option<(u32, usize)>,
    /// count, and, or of the values brought, for even and odd phases.
    reduced: [[i32; 3]; 2],
}

impl Barrier {
    /// A new block: nobody has arrived.
    pub(super) fn begin_block(&mut self) {
        (self.arrived, self.first, self.reduced) = (0, None, [REDUCE_START; 2]);
        (self.whole, self.gone_ahead) = (false, 0);
    }
}

impl Lane {
    /// `__syncthreads` on `line`: the running thread waits for the others.
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    #[inline(always)]
    pub unsafe fn arrive(lane: *mut Self, line: u32) {
        // SAFETY: one OS thread owns the lane; references end before the switch inside `wait`.
        unsafe {
            Self::needs_coroutines(lane);
            let this = &mut *lane;
            let phase = this.barrier.phase;
            this.barrier.whole |= line & WHOLE_BLOCK != 0;
            if this.checker.watch == Watch::Full {
                this.note_arrival(line & !WHOLE_BLOCK);
            }
            this.barrier.arrived += 1;
            if this.barrier.arrived >= this.live
                && let Some(end) = this.release()
            {
                Self::stop(lane, end);
            }
            Self::wait(lane, &raw const (*lane).barrier.phase, phase, Self::choose);
        }
    }

    /// `__syncthreads_count`, `_and`, `_or` (operation 0, 1, 2): also brings a value, and gets what became of all values.
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    pub unsafe fn reduce(lane: *mut Self, line: u32, operation: usize, value: i32) -> i32 {
        // SAFETY: as for `arrive`.
        unsafe {
            Self::needs_coroutines(lane);
            let set = (*lane).barrier.phase as usize & 1;
            let reduced = &mut (&mut (*lane).barrier.reduced)[set];
            reduced[0] += i32::from(value != 0);
            reduced[1] &= i32::from(value != 0);
            reduced[2] |= i32::from(value != 0);
            Self::arrive(lane, line);
            (&(*lane).barrier.reduced)[set][operation]
        }
    }

    /// Compares this arrival's barrier with the first one's.
    fn note_arrival(&mut self, line: u32) {
        match self.barrier.first {
            None => self.barrier.first = Some((line, self.standing.thread)),
            Some((first, thread)) if first != line => {
                let (here, there) = (self.actor(), self.actor_of(thread));
                self.checker.barrier_divergence(here, line, there, first);
            }
            Some(_) => {}
        }
    }

    /// `what` the running thread does at a barrier whose arrival and wait are apart: 0 waits, with the `token` of an arrival,
    /// 1 arrives and gets one, 2 both. Followed under full watch only.
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    pub unsafe fn split(lane: *mut Self, what: u32, token: u32, code: usize) -> u32 {
        // SAFETY: as for `arrive`.
        unsafe {
            if (*lane).checker.watch != Watch::Full {
                return 0;
            }
            let thread = (*lane).current;
            let thread = &mut (&mut (*lane).threads)[thread];
            if what != 0 && thread.arrived_ahead {
                unsupported(lane, ARRIVED_ONLY, code);
            }
            if what == 0 && !(thread.arrived_ahead && thread.arrivals == token) {
                unsupported(lane, OLD_TOKEN, code);
            }
            thread.arrived_ahead = what == 1;
            thread.arrivals = thread.arrivals.wrapping_add(u32::from(what != 0));
            thread.arrivals
        }
    }

    /// Whether the running thread has arrived at a barrier that it has not waited at.
    pub fn has_arrived_ahead(&self) -> bool {
        self.threads[self.current].arrived_ahead
    }

    /// The running thread has returned: the others wait for one less. Says when the block cannot go on.
    #[inline(always)]
    pub(super) fn leave_barrier(&mut self) -> Option<BlockEnd> {
        if std::mem::take(&mut self.threads[self.current].arrived_ahead) {
            self.barrier.gone_ahead += 1;
        }
        let opens = self.barrier.arrived > 0 && self.barrier.arrived >= self.live;
        if opens { self.release() } else { None }
    }

    /// Everybody has arrived, or returned: opens the barrier, unless it waits for those that have returned, too.
    fn release(&mut self) -> Option<BlockEnd> {
        let some_gone = self.live < self.count;
        let never_opens = self.barrier.whole && some_gone;
        if never_opens && self.barrier.gone_ahead > 0 {
            self.fault = Some(RawFault::Unsupported { construct: ARRIVED_ONLY.to_owned(), site: None });
            return Some(BlockEnd::Stopped);
        }
        if let (true, Some((line, thread))) = (some_gone, self.barrier.first) {
            let waiting = self.actor_of(thread);
            self.checker.barrier_after_exit(waiting, line);
        }
        if never_opens {
            return Some(BlockEnd::Deadlock);
        }
        self.barrier.phase = self.barrier.phase.wrapping_add(1);
        self.barrier.arrived = 0;
        self.barrier.first = None;
        self.barrier.whole = false;
        self.barrier.reduced[self.barrier.phase as usize & 1] = REDUCE_START;
        self.checker.begin_interval();
        None
    }
}
