//! The two grids of a trial, each in the middle of a large slot of one mapping at a fixed address: a stray index is
//! attributed to the grid it strayed from, and addresses are the same in every run.

use anyhow::{Context, Result, bail};

use crate::execute::Memory;
use crate::memory::ask_for_large_pages;

const BASE: usize = 0x6000_0000_0000;
/// Bytes of one slot: far more than the largest grid, so that a stray index stays in its slot.
const SLOT: usize = 1 << 30;
const MIDDLE: usize = SLOT / 2;
/// How much farther into its slot the second grid lies, bytes. Processors tell lines of their first cache apart by a few low bits of
/// the address (and AMD's predict the way by a hash of bits 12 to 27): cells of the same number in both grids, which a kernel
/// touches together, must differ there. Measured on such a processor: half the time for a naive step.
const SHIFT: usize = 3 * 4096 + 256;

/// The mapped arena.
pub struct Arena {
    cells: usize,
}

/// Which buffer of the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    A = 0,
    B = 1,
}

impl Buffer {
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl Arena {
    /// Maps the arena; once a process.
    pub fn map() -> Result<Self> {
        // SAFETY: MAP_FIXED_NOREPLACE never replaces an existing mapping.
        let got = unsafe {
            libc::mmap(
                BASE as *mut libc::c_void,
                2 * SLOT,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        if got == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error()).context("cannot map the arena of the grids");
        }
        if got as usize != BASE {
            bail!("the arena of the grids was mapped elsewhere");
        }
        Ok(Self { cells: 0 })
    }

    /// Fills both buffers with `initial` (n * n cells) and forgets whatever lay around them.
    pub fn fill(&mut self, initial: &[f32]) -> Result<()> {
        if initial.len() * 4 > SLOT / 4 {
            bail!("a grid of {} cells does not fit the arena", initial.len());
        }
        self.cells = initial.len();
        // SAFETY: the arena is ours and no kernel runs.
        if unsafe { libc::madvise(BASE as *mut libc::c_void, 2 * SLOT, libc::MADV_DONTNEED) } != 0 {
            return Err(std::io::Error::last_os_error()).context("cannot clear the arena of the grids");
        }
        for buffer in [Buffer::A, Buffer::B] {
            ask_for_large_pages(address(buffer), 4 * initial.len());
            self.cells_mut(buffer).copy_from_slice(initial);
        }
        Ok(())
    }

    pub fn address(&self, buffer: Buffer) -> usize {
        address(buffer)
    }

    pub fn cells(&self, buffer: Buffer) -> &[f32] {
        // SAFETY: the cells lie inside the mapping; nobody writes them while they are borrowed (no kernel runs).
        unsafe { std::slice::from_raw_parts(self.address(buffer) as *const f32, self.cells) }
    }

    pub fn cells_mut(&mut self, buffer: Buffer) -> &mut [f32] {
        // SAFETY: as above, and &mut self makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address(buffer) as *mut f32, self.cells) }
    }
}

/// Address of a buffer's first cell.
pub fn address(buffer: Buffer) -> usize {
    BASE + buffer as usize * (SLOT + SHIFT) + MIDDLE
}

/// Where the grids lie in one launch; what the hooks look addresses up in.
#[derive(Clone, Copy)]
pub struct GridMap {
    /// The buffer that is `in` of this launch; the other one is `out`.
    pub input: Buffer,
    /// Bytes of one grid.
    pub bytes: usize,
}

/// An address looked up in the arena.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    pub input: bool,
    /// Byte offset from the grid's first cell; outside 0..bytes when the access strayed.
    pub offset: i64,
}

impl GridMap {
    /// `None` when the address is not in the arena.
    #[inline(always)]
    pub fn spot(&self, address: usize) -> Option<Spot> {
        let from_base = address.wrapping_sub(BASE);
        if from_base >= 2 * SLOT {
            return None;
        }
        let second = from_base >= SLOT;
        let offset = (from_base & (SLOT - 1)) as i64 - (MIDDLE + usize::from(second) * SHIFT) as i64;
        Some(Spot { input: second == (self.input == Buffer::B), offset })
    }

    /// Whether `bytes` at the spot lie inside the grid.
    #[inline(always)]
    pub fn inside(&self, spot: Spot, bytes: usize) -> bool {
        spot.offset >= 0 && spot.offset as usize + bytes <= self.bytes
    }
}

impl Spot {
    pub fn memory(self) -> Memory {
        let cell = self.offset.div_euclid(4);
        if self.input { Memory::In { cell } } else { Memory::Out { cell } }
    }
}
