//! Memory that the grader and a worker both see. Grids go through it: a pipe would copy each of them four times.
//!
//! It is a row of slots of n x n cells. The grader puts the initial grid into the first one; the worker puts the grids that
//! are wanted into those behind it, in order, and then says so by the pipe. Nobody writes to a slot that the other may be
//! reading: a run's slots are the worker's until it is done. No learner's code can reach this memory, because none runs in
//! the worker itself.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::Command;
use std::ptr::NonNull;

use anyhow::{Context, Result, ensure};
use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

use crate::grid::Grid;
use crate::memory::copy_of;

/// The descriptor that a worker inherits.
const DESCRIPTOR: RawFd = 3;
/// Slot of the initial grid.
pub const INITIAL: usize = 0;
/// Slot of the first grid that comes back.
pub const FIRST: usize = 1;

/// One side's view.
pub struct SharedGrids {
    file: OwnedFd,
    map: Option<Mapping>,
}

struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping is memory of the process, not of a thread.
unsafe impl Send for Mapping {}

impl SharedGrids {
    /// The grader's side: no room yet.
    pub fn create() -> Result<Self> {
        let file = rustix::fs::memfd_create("heat-grader grids", MemfdFlags::CLOEXEC).context("no shared memory")?;
        Ok(Self { file, map: None })
    }

    /// The worker's side, from the descriptor that it was started with. Called once.
    pub fn inherited() -> Result<Self> {
        // SAFETY: the grader starts workers with this descriptor, and nothing else uses it.
        let file = unsafe { OwnedFd::from_raw_fd(DESCRIPTOR) };
        rustix::fs::fstat(&file).context("the worker was started without shared memory")?;
        Ok(Self { file, map: None })
    }

    /// Lets a command inherit this memory.
    pub fn hand_to(&self, command: &mut Command) -> Result<()> {
        let parent_fd = self.file.try_clone().context("cannot hand shared memory on")?;
        let mapping = FdMapping { parent_fd, child_fd: DESCRIPTOR };
        command.fd_mappings(vec![mapping]).context("cannot hand shared memory on")?;
        Ok(())
    }

    /// Makes room for so many slots of n x n cells. What slots held is lost.
    pub fn make_room(&mut self, n: usize, slots: usize) -> Result<()> {
        let bytes = (n * n * 4 * slots).max(1);
        if self.map.as_ref().is_some_and(|map| map.bytes >= bytes) {
            return Ok(());
        }
        let size = rustix::fs::fstat(&self.file).context("no shared memory")?.st_size;
        if (size as usize) < bytes {
            rustix::fs::ftruncate(&self.file, bytes as u64).context("no room for grids in shared memory")?;
        }
        self.map = None;
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping wherever the system likes; the file is at least as long.
        let at = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, access, flags, &self.file, 0) };
        let at = NonNull::new(at.context("no room for grids in shared memory")?.cast()).context("no shared memory")?;
        self.map = Some(Mapping { at, bytes });
        Ok(())
    }

    /// Has the system find the memory now and not when it is first touched.
    pub fn touch(&self) {
        if let Some(map) = &self.map {
            // SAFETY: the mapping's own pages, whose contents stay. Where the system does not know this, they come later.
            let _ = unsafe {
                rustix::mm::madvise(map.at.as_ptr().cast(), map.bytes, rustix::mm::Advice::LinuxPopulateWrite)
            };
        }
    }

    /// The grid of n x n cells in a slot. An error when there is no such slot.
    pub fn cells(&self, n: usize, slot: usize) -> Result<&[f32]> {
        let at = self.place(n, slot)?;
        // SAFETY: within the mapping, aligned (it starts a page), every bit pattern is a float, and nobody writes there
        // meanwhile (see the module's head).
        Ok(unsafe { std::slice::from_raw_parts(at, n * n) })
    }

    /// A copy of it.
    pub fn grid(&self, n: usize, slot: usize) -> Result<Grid> {
        Grid::from_cells(n, copy_of(self.cells(n, slot)?)).context("a grid of another size")
    }

    /// Puts a grid into a slot.
    pub fn put(&mut self, n: usize, slot: usize, cells: &[f32]) -> Result<()> {
        ensure!(cells.len() == n * n, "a grid of another size was to be put into shared memory");
        let at = self.place(n, slot)?;
        // SAFETY: as above, and the two do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(cells.as_ptr(), at, n * n) };
        Ok(())
    }

    fn place(&self, n: usize, slot: usize) -> Result<*mut f32> {
        let map = self.map.as_ref().context("there is no shared memory")?;
        let bytes = n * n * 4;
        ensure!((slot + 1) * bytes <= map.bytes, "a slot lies outside the shared memory");
        // SAFETY: within the mapping, as just checked.
        Ok(unsafe { map.at.as_ptr().add(slot * bytes) }.cast())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and no slice of it is left.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_see_the_same_grids() {
        let mut grader = SharedGrids::create().unwrap();
        let mut worker = SharedGrids { file: grader.file.try_clone().unwrap(), map: None };
        grader.make_room(2, 3).unwrap();
        worker.make_room(2, 3).unwrap();
        grader.put(2, INITIAL, &[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(worker.cells(2, INITIAL).unwrap(), [1.0, 2.0, 3.0, 4.0]);
        worker.put(2, FIRST + 1, &[5.0; 4]).unwrap();
        assert_eq!(grader.cells(2, FIRST + 1).unwrap(), [5.0; 4]);
    }

    #[test]
    fn room_grows_and_a_slot_outside_is_an_error() {
        let mut grids = SharedGrids::create().unwrap();
        assert!(grids.cells(2, 0).is_err());
        grids.make_room(2, 1).unwrap();
        assert!(grids.cells(2, 1).is_err() && grids.put(2, 0, &[0.0; 3]).is_err());
        grids.make_room(64, 8).unwrap();
        assert_eq!(grids.cells(64, 7).unwrap().len(), 4096);
        grids.make_room(2, 1).unwrap();
        assert!(grids.put(2, 0, &[0.0; 4]).is_ok());
    }
}
