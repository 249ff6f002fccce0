//! Stacks of coroutines: one large mapping, a guard page below each.

use anyhow::{Context, Result};

/// Bytes of one stack, its guard page included.
const SPACING: usize = 256 * 1024;
const GUARD: usize = 4096;

/// Stacks for one lane's block.
pub struct Stacks {
    base: *mut u8,
    count: usize,
    free: Vec<u32>,
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
        let base = base.cast::<u8>();
        for index in 0..count {
            // SAFETY: the page lies inside the mapping just made.
            if unsafe { libc::mprotect(base.add(index * SPACING).cast(), GUARD, libc::PROT_NONE) } != 0 {
                return Err(std::io::Error::last_os_error()).context("cannot guard the stacks of CUDA threads");
            }
        }
        Ok(Self { base, count, free: (0..count as u32).rev().collect() })
    }

    /// Takes a stack and returns its index and its top, 16-byte aligned. Tops are staggered: stacks lie a power of two
    /// apart, and without it all of them would fight for the same few cache sets.
    pub fn take(&mut self) -> (u32, *mut u8) {
        let index = self.free.pop().unwrap_or(0);
        let colour = (index as usize % 48) * 320;
        // SAFETY: index < count, and the colour (at most 15 KiB) stays far above the guard page.
        let top = unsafe { self.base.add((index as usize + 1) * SPACING - 64 - colour) };
        (index, top)
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
