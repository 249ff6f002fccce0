//! The two grids of a run on the GPU, each between two guard bands.
//!
//! A store a little outside a grid hits no unmapped page and traps nothing; it changes a word of a band. The bands hold
//! random words, drawn for the run, so a kernel that reads them gets nonsense and one that stores there shows. A tool that
//! sees accesses outside an allocation gets bare grids, which have no bands.

use std::ops::Range;

use cudarc::driver::sys::CUdeviceptr;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::driver::{Answer, Gpu, Pinned};
use super::message::BandChange;

/// Bytes of a band: at least a MiB and 64 rows.
const BAND: usize = 1 << 20;
const BAND_ROWS: usize = 64;
/// What grid addresses are multiples of, as cudaMalloc's are.
const ALIGNMENT: usize = 256;
/// A quiet NaN: what the output's interior holds before the first launch.
const POISON: u32 = 0x7fc0_0000;

/// One of the two buffers; which is input changes with every launch.
pub type Buffer = usize;

/// The buffer that a launch (from 1) reads; it writes the other one.
pub fn input_of(launch: u32) -> Buffer {
    (launch as usize + 1) % 2
}

/// Both buffers, and host memory to look at them.
pub struct Grids {
    pub n: usize,
    /// Words of a band; 0 for bare grids.
    band: usize,
    /// Smaller grids use it as well.
    place: Place,
    cells: Pinned<f32>,
    /// What the bands held at first: before and behind the first grid, before and behind the second.
    pattern: Vec<u32>,
    seen: Pinned<u32>,
    /// Buffers whose bands have been found changed.
    spoiled: [bool; 2],
}

/// Where both buffers lie on the GPU, their bands included.
pub struct Place {
    /// Words of each allocation.
    room: usize,
    bases: [CUdeviceptr; 2],
}

impl Place {
    fn new(gpu: &Gpu, room: usize) -> Answer<Self> {
        let allocate = || gpu.allocate(room * 4);
        Ok(Self { room, bases: [allocate()?, allocate()?] })
    }

    pub fn free(self, gpu: &Gpu) {
        self.bases.into_iter().for_each(|base| gpu.free(base));
    }
}

impl Grids {
    /// Memory for grids of n x n cells.
    pub fn new(gpu: &Gpu, n: usize, bare: bool) -> Answer<Self> {
        let band = if bare { 0 } else { band_for(n) };
        Ok(Self {
            n,
            band,
            place: Place::new(gpu, n * n + 2 * band)?,
            cells: Pinned::new(n * n)?,
            pattern: vec![0; 4 * band],
            seen: Pinned::new((4 * band).max(1))?,
            spoiled: [false; 2],
        })
    }

    /// Whether they have no guard bands.
    pub fn bare(&self) -> bool {
        self.band == 0
    }

    /// Whether grids of n x n cells find room between guard bands.
    pub fn fit(&self, n: usize) -> bool {
        let band = band_for(n);
        !self.bare() && n * n + 2 * band <= self.place.room && 4 * band <= self.seen.slice().len()
    }

    /// Becomes grids of n x n cells, which must [`Grids::fit`]. The stream must be idle.
    pub fn reshape(&mut self, n: usize) {
        self.n = n;
        self.band = band_for(n);
        self.pattern.resize(4 * self.band, 0);
    }

    /// Gives the memory back. The stream must be idle.
    pub fn free(self, gpu: &Gpu) {
        self.place.free(gpu);
    }

    /// Memory for the same grids elsewhere on the GPU.
    pub fn elsewhere(&self, gpu: &Gpu) -> Answer<Place> {
        Place::new(gpu, self.place.room)
    }

    /// Moves to another place and leaves it this one; what the grids hold stays behind. The stream must be idle.
    pub fn exchange(&mut self, place: &mut Place) {
        std::mem::swap(&mut self.place, place);
    }

    /// Where a grid's first cell lies.
    pub fn address(&self, buffer: Buffer) -> CUdeviceptr {
        self.place.bases[buffer] + self.band as u64 * 4
    }

    /// Addresses of a launch's input and output.
    pub fn of_launch(&self, launch: u32) -> [CUdeviceptr; 2] {
        [self.address(input_of(launch)), self.address(1 - input_of(launch))]
    }

    /// Draws the bands' pattern.
    pub fn draw_bands(&mut self, gpu: &Gpu, seed: u64) -> Answer<()> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut bytes = vec![0; 4 * self.pattern.len()];
        random.fill_bytes(&mut bytes);
        self.pattern.clear();
        self.pattern.extend(bytes.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)));
        self.spoiled = [false; 2];
        for (at, band) in self.bands() {
            gpu.upload(at, &self.pattern[band])?;
        }
        Ok(())
    }

    /// Both grids from the host, the second one's interior poisoned; its ring is part of the contract. A bare grid's interior
    /// is left as it was allocated.
    pub fn fill(&mut self, gpu: &Gpu, initial: &[f32]) -> Answer<()> {
        gpu.upload(self.address(0), initial)?;
        if self.bare() {
            return self.fill_ring(gpu);
        }
        gpu.copy(self.address(1), self.address(0), initial.len() * 4)?;
        self.poison(gpu)
    }

    /// The same from a grid on the GPU.
    pub fn fill_from(&mut self, gpu: &Gpu, initial: CUdeviceptr) -> Answer<()> {
        for buffer in [0, 1] {
            gpu.copy(self.address(buffer), initial, self.n * self.n * 4)?;
        }
        self.poison(gpu)
    }

    /// The second grid's ring from the first one's: a row's last cell and the next one's first lie side by side.
    fn fill_ring(&self, gpu: &Gpu) -> Answer<()> {
        let n = self.n;
        let sides = (1..n.saturating_sub(2)).map(|row| (row * n + n - 1, 2));
        for (cell, length) in [(0, n + 1), (n * n - n - 1, n + 1)].into_iter().chain(sides) {
            gpu.copy(self.address(1) + cell as u64 * 4, self.address(0) + cell as u64 * 4, length * 4)?;
        }
        Ok(())
    }

    fn poison(&self, gpu: &Gpu) -> Answer<()> {
        let (n, inner) = (self.n, self.n.saturating_sub(2));
        if inner == 0 {
            return Ok(());
        }
        gpu.fill(self.address(1) + (n as u64 + 1) * 4, n * 4, POISON, (inner, inner))
    }

    /// Puts a copy of a grid to the host on the stream; [`Grids::cells`] is it once the stream is idle.
    pub fn fetch(&mut self, gpu: &Gpu, buffer: Buffer) -> Answer<()> {
        let (from, length) = (self.address(buffer), self.n * self.n);
        gpu.download(&mut self.cells, from, length)
    }

    /// The grid fetched last.
    pub fn cells(&self) -> &[f32] {
        &self.cells.slice()[..self.n * self.n]
    }

    /// Puts a copy of the bands to the host on the stream, for [`Grids::changes`].
    pub fn fetch_bands(&mut self, gpu: &Gpu) -> Answer<()> {
        for (at, band) in self.bands() {
            gpu.download_part(&mut self.seen, band, at)?;
        }
        Ok(())
    }

    /// What is new in the bands fetched last. Each buffer is told once: what changed later cannot be told apart.
    pub fn changes(&mut self, launch: u32) -> Vec<BandChange> {
        let mut changes = Vec::new();
        for buffer in [0, 1] {
            let of_buffer = 2 * buffer * self.band..2 * (buffer + 1) * self.band;
            let (was, is) = (&self.pattern[of_buffer.clone()], &self.seen.slice()[of_buffer]);
            if self.spoiled[buffer] || was == is {
                continue;
            }
            self.spoiled[buffer] = true;
            let (cell, count) = nearest_change(was, is, self.n * self.n);
            changes.push(BandChange { launch, input: buffer == input_of(launch), cell, count });
        }
        changes
    }

    /// Address on the GPU and place in the pattern of each band.
    fn bands(&self) -> [(CUdeviceptr, Range<usize>); 4] {
        let band = self.band;
        let behind = (band + self.n * self.n) as u64 * 4;
        let [first, second] = self.place.bases;
        let starts = [first, first + behind, second, second + behind];
        std::array::from_fn(|at| (starts[at], at * band..(at + 1) * band))
    }
}

/// Words of a guard band beside a grid of n x n cells.
fn band_for(n: usize) -> usize {
    BAND.max((BAND_ROWS * 4 * n).next_multiple_of(ALIGNMENT)) / 4
}

/// The changed word nearest to a grid of `cells` cells, as a cell index, and how many changed. The words are those of the
/// band before it, then those of the band behind it.
fn nearest_change(was: &[u32], is: &[u32], cells: usize) -> (i64, u64) {
    let band = was.len() / 2;
    let changed = || was.iter().zip(is).enumerate().filter(|(_, (was, is))| was != is).map(|(at, _)| at);
    let before = changed().take_while(|at| *at < band).last().map(|at| at as i64 - band as i64);
    let behind = changed().find(|at| *at >= band).map(|at| (at - band + cells) as i64);
    let nearest = match (before, behind) {
        (Some(before), Some(behind)) if -before > behind - cells as i64 => behind,
        (Some(before), _) => before,
        (None, behind) => behind.unwrap_or(0),
    };
    (nearest, changed().count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_take_turns() {
        assert_eq!([1, 2, 3, 500].map(input_of), [0, 1, 0, 1]);
    }

    #[test]
    fn a_changed_word_is_named_by_the_cell_it_would_be() {
        let was = [0; 8];
        let with = |places: &[usize]| {
            let mut is = was;
            places.iter().for_each(|&at| is[at] = 1);
            nearest_change(&was, &is, 100)
        };
        assert_eq!(with(&[3]), (-1, 1));
        assert_eq!(with(&[0, 2]), (-2, 2));
        assert_eq!(with(&[4]), (100, 1));
        assert_eq!(with(&[0, 6, 7]), (102, 3));
        assert_eq!(with(&[3, 7]), (-1, 2));
    }
}
