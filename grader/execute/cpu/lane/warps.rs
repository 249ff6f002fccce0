//! What the lanes of a warp do together: shuffles, votes and `__syncwarp`, and the question who is there.

use super::{Lane, fail};
use crate::execute::cpu::raw::{MASK_WITHOUT_CALLER, RawFault, Site};
use crate::execute::cpu::warp::Warp;

/// What a warp operation's line has where it orders no memory (cuda_runtime.h).
const UNORDERED: u32 = 1 << 31;

impl Lane {
    /// Places of the threads of the running thread's warp, from and up to.
    fn warp(&self) -> (usize, usize) {
        let first = self.current & !31;
        (first, (first + 32).min(self.count))
    }

    /// The place of the next thread of the running thread's warp, after it and around, that need not wait; all have been started.
    fn ready_in_warp(&self) -> Option<usize> {
        let (current, (first, end)) = (self.current, self.warp());
        (current + 1..end).chain(first..current).find(|&next| {
            let thread = &self.threads[next];
            // SAFETY: as in `choose`.
            unsafe { *thread.waits_on != thread.wait_value }
        })
    }

    /// Chooses who goes on when a thread waits for its warp: first of all a thread of that warp, whose 32 stacks a core keeps
    /// close while those of a whole block take turns in its cache.
    fn choose_in_warp(&mut self) -> Option<*mut u8> {
        let (first, end) = self.warp();
        if self.started < end {
            return Some(self.start_next());
        }
        if let Some(next) = self.ready_in_warp() {
            let context = self.threads[next].context;
            self.set_current(next);
            return Some(context);
        }
        // Nobody of this warp can go on, so those of it that ask at one place are together.
        if self.warps[first / 32].answer() { self.choose_in_warp() } else { self.choose() }
    }

    /// Nobody can go on: answers the first warp whose lanes ask who is with them, and chooses one of those.
    #[cold]
    pub(super) fn answer_masks(&mut self) -> Option<*mut u8> {
        let warps = self.count.div_ceil(32);
        if self.warps[..warps].iter_mut().any(Warp::answer) { self.choose() } else { None }
    }

    /// A warp operation of the running thread, on `line`: see [`Warp::arrive`].
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    pub unsafe fn exchange(lane: *mut Self, mask: u32, value: u64, line: u32) -> *const u64 {
        // SAFETY: as for `arrive`.
        unsafe {
            Self::needs_coroutines(lane);
            let this = &mut *lane;
            let (warp, lane_bit) = (this.current / 32, this.standing.thread % 32);
            if mask >> lane_bit & 1 == 0 {
                let site = Some(Site::Line(line & !UNORDERED));
                fail(lane, RawFault::Trap { why: MASK_WITHOUT_CALLER, site, actor: this.actor() });
            }
            let mask = mask & this.existing_mask(warp);
            let ticket = this.warps[warp].arrive(lane_bit, mask, value, line & UNORDERED == 0);
            if ticket.ordered != 0 {
                this.checker.warp_synced(this.standing.thread / 32, ticket.ordered);
            }
            Self::wait(lane, ticket.counter, ticket.value, Self::choose_in_warp);
            ticket.values
        }
    }

    /// Lanes of a warp that the block has at all.
    fn existing_mask(&self, warp: usize) -> u32 {
        let lanes = (self.count - warp * 32).min(32);
        if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 }
    }

    /// Lanes of the running thread's warp that are with it: those that ask at the same `site` before any of them goes on.
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    pub unsafe fn active_mask(lane: *mut Self, site: usize) -> u32 {
        // SAFETY: as for `arrive`.
        unsafe {
            Self::needs_coroutines(lane);
            let this = &mut *lane;
            let (warp, lane_bit) = (this.current / 32, this.standing.thread % 32);
            let (counter, value) = this.warps[warp].ask(lane_bit, site);
            // The last one to come answers: a thread that waits cannot be the one that is chosen.
            if this.started >= this.warp().1 && this.ready_in_warp().is_none() {
                this.warps[warp].answer();
            }
            Self::wait(lane, counter, value, Self::choose_in_warp);
            (&(*lane).warps)[warp].with(lane_bit)
        }
    }
}
