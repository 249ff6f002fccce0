//! The counters of the counted build: an array of 64-bit bytes-read sums in the module, read after every launch.
//!
//! A copy of the array within the GPU after each launch costs a few microseconds and no wait; the copies come to the host
//! when the run pauses anyway. The counters start at random values, so a kernel that sets them cannot hit what they
//! should come to, and one that makes them go backwards is seen.

use cudarc::driver::sys::CUdeviceptr;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::driver::{Answer, Gpu, Pinned};

/// Bytes of copies kept on the GPU before they are taken to the host.
const LOG: usize = 16 << 20;
/// More bytes than one slot can count in a launch.
const MOST_A_SLOT: u64 = 1 << 44;

/// The counter array of a module, and room for its copies.
pub struct Counter {
    at: CUdeviceptr,
    slots: usize,
    /// The log and its copy on the host, from the first counted run on.
    log: Option<(CUdeviceptr, Pinned<u64>)>,
    /// Copies that fit into the log, and copies in it.
    room: usize,
    logged: usize,
    /// The counters after the launch looked at last.
    last: Vec<u64>,
    words: Vec<u64>,
}

impl Counter {
    pub fn new(at: CUdeviceptr, slots: usize) -> Self {
        let room = (LOG / (slots.max(1) * 8)).clamp(1, 512);
        Self { at, slots, log: None, room, logged: 0, last: Vec::new(), words: Vec::new() }
    }

    /// Sets the counters to start values of a new run.
    pub fn begin(&mut self, gpu: &Gpu, seed: u64) -> Answer<()> {
        if self.log.is_none() {
            let length = self.room * self.slots;
            self.log = Some((gpu.allocate(length * 8)?, Pinned::new(length)?));
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(1);
        self.last = (0..self.slots).map(|_| random.next_u64()).collect();
        self.logged = 0;
        self.words.clear();
        gpu.upload(self.at, &self.last)
    }

    /// Puts a copy of the counters on the stream.
    pub fn log(&mut self, gpu: &Gpu) -> Answer<()> {
        let Some((log, _)) = &self.log else { return Ok(()) };
        let bytes = self.slots * 8;
        gpu.copy(log + (self.logged * bytes) as u64, self.at, bytes)?;
        self.logged += 1;
        Ok(())
    }

    /// Whether [`Counter::settle`] must come before the next copy.
    pub fn is_full(&self) -> bool {
        self.logged == self.room
    }

    /// Puts a copy of the log to the host on the stream, for [`Counter::settle`].
    pub fn fetch(&mut self, gpu: &Gpu) -> Answer<()> {
        let Some((log, host)) = &mut self.log else { return Ok(()) };
        gpu.download(host, *log, self.logged * self.slots)
    }

    /// Adds up what was fetched, once the stream is idle.
    pub fn settle(&mut self) {
        let Some((_, host)) = &self.log else { return };
        for now in host.slice()[..self.logged * self.slots].chunks_exact(self.slots.max(1)) {
            self.words.push(words_between(&self.last, now));
            self.last.copy_from_slice(now);
        }
        self.logged = 0;
    }

    /// Words read, a value for each launch so far.
    pub fn take_words(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.words)
    }
}

/// 4-byte words counted between two looks at the counters; 0 when a counter moved in a way that counting cannot.
fn words_between(before: &[u64], after: &[u64]) -> u64 {
    let mut bytes = 0;
    for (before, after) in before.iter().zip(after) {
        let counted = after.wrapping_sub(*before);
        if counted > MOST_A_SLOT {
            return 0;
        }
        bytes += counted;
    }
    bytes.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_summed_whatever_the_counters_start_at() {
        assert_eq!(words_between(&[7, u64::MAX - 3], &[15, 4]), 4);
        assert_eq!(words_between(&[0], &[5]), 2);
    }

    #[test]
    fn a_counter_that_goes_backwards_makes_the_count_unbelievable() {
        assert_eq!(words_between(&[100, 100], &[108, 99]), 0);
    }
}
