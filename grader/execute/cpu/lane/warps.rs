//! What the lanes of a warp do together: shuffles, votes and `__syncwarp`, and the question who is there.

use super::Lane;
use crate::execute::cpu::warp::Warp;

impl Lane {
    /// Threads of the running thread's warp, from and up to.
    fn warp(&self) -> (usize, usize) {
        let first = self.standing.thread & !31;
        (first, (first + 32).min(self.count))
    }

    /// The next thread of the running thread's warp, after it and around, that need not wait; all have been started.
    fn ready_in_warp(&self) -> Option<usize> {
        let (current, (first, end)) = (self.standing.thread, self.warp());
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

    /// A warp operation of the running thread: see [`Warp::exchange`].
    ///
    /// # Safety
    /// Called on the running thread's own stack.
    pub unsafe fn exchange(lane: *mut Self, mask: u32, value: u64) -> *const u64 {
        // SAFETY: as for `arrive`.
        unsafe {
            Self::needs_coroutines(lane);
            let this = &mut *lane;
            let (warp, lane_bit) = (this.standing.thread / 32, this.standing.thread % 32);
            let existing = this.existing_mask(warp);
            let ticket = this.warps[warp].arrive(lane_bit, mask, value, existing);
            if ticket.complete {
                this.checker.warp_synced(warp, ticket.mask);
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
            let (warp, lane_bit) = (this.standing.thread / 32, this.standing.thread % 32);
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
