//! Stacks of coroutines: one large mapping, a guard page below each.
//!
//! A stack gets its guard page when it is first taken. A kernel without barriers takes two of a thousand, and as many
//! changes of the mapping on each of sixteen lanes, which all wait for one lock of the system's, took longer than a trial.

use anyhow::{Context, Result};

const PAGE: usize = 4096;
/// Bytes of one stack, its guard page included. An odd number of pages: at a power of two all stacks would share a few
/// sets of the caches and, worse, of the TLB (measured: 1.25 times the time of a barrier kernel).
const SPACING: usize = 65 * PAGE;
const GUARD: usize = PAGE;

/// Bytes that a thread's first frames take.
const FIRST_FRAMES: usize = 6 * 64;

/// Asks for the cache lines of a range.
#[inline(always)]
pub fn prefetch(start: *const u8, bytes: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for offset in (0..bytes).step_by(64) {
        // SAFETY: a prefetch of any address is harmless.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset).cast()) };
    }
}

/// Stacks for one lane's block.
pub struct Stacks {
    base: *mut u8,
    count: usize,
    free: Vec<u32>,
    /// Stacks that have their guard page: the first ones.
    guarded: u32,
    /// Whether the system refused one.
    unguarded: bool,
}

impl Stacks {
    /// Reserves `count` stacks; pages are taken when touched.
    pub fn new(count: usize) -> Result<Self> {
        let length = count * SPACING;
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory of ours.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("cannot reserve stacks for CUDA threads");
        }
        let free = (0..count as u32).rev().collect();
        Ok(Self { base: base.cast(), count, free, guarded: 0, unguarded: false })
    }

    /// Takes a stack and returns its index and its top, 16-byte aligned; asks for the lines of the one that comes next.
    #[inline(always)]
    pub fn take(&mut self) -> (u32, *mut u8) {
        let index = self.free.pop().unwrap_or(0);
        if index >= self.guarded {
            // And the one above: what leaves this stack upwards would land in it.
            self.guard((index + 2).min(self.count as u32));
        }
        if let Some(&next) = self.free.last() {
            prefetch(self.top(next).wrapping_sub(FIRST_FRAMES), FIRST_FRAMES);
        }
        (index, self.top(index))
    }

    /// Gives the first `count` stacks their guard pages.
    #[cold]
    fn guard(&mut self, count: u32) {
        for index in self.guarded..count {
            // SAFETY: the page lies inside the mapping, below everything that its stack holds.
            let refused = unsafe {
                let page = self.base.add(index as usize * SPACING);
                libc::mprotect(page.cast(), GUARD, libc::PROT_NONE) != 0
            };
            self.unguarded |= refused;
        }
        self.guarded = count;
    }

    /// Whether a stack was handed out whose overflow nobody would see: nothing that ran since is to be believed.
    pub fn unguarded(&self) -> bool {
        self.unguarded
    }

    /// Tops are staggered within their page, so that the frames of a block's threads spread over all cache sets.
    #[inline(always)]
    fn top(&self, index: u32) -> *mut u8 {
        let colour = (index as usize % 11) * 320;
        // The colour (at most 3,200 bytes) stays far above the guard page.
        self.base.wrapping_add((index as usize + 1) * SPACING - 64 - colour)
    }

    /// Gives a stack back.
    pub fn give(&mut self, index: u32) {
        self.free.push(index);
    }

    /// Takes all stacks back, whoever holds them.
    pub fn reset(&mut self) {
        self.free.clear();
        self.free.extend((0..self.count as u32).rev());
    }

    /// Whether `address` lies in any of the stacks.
    pub fn contain(&self, address: usize) -> bool {
        address.wrapping_sub(self.base as usize) < self.count * SPACING
    }

    /// Whether `address` lies in this stack, or in its guard page.
    pub fn holds(&self, stack: u32, address: usize) -> bool {
        let start = (self.base as usize).wrapping_add(stack as usize * SPACING);
        address.wrapping_sub(start) < SPACING
    }

    /// Whether `address` lies in a guard page: a thread's local memory grew beyond its stack.
    pub fn guard_hit(&self, address: usize) -> bool {
        self.contain(address) && (address - self.base as usize) % SPACING < GUARD
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and no coroutine runs any more.
        unsafe { libc::munmap(self.base.cast(), self.count * SPACING) };
    }
}
