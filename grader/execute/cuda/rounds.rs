//! Timed rounds inside the worker: a warm-up, then launches between two events.
//!
//! Every round starts from the same grids, so every round of the submitted kernel must end with the same bits: what was
//! timed is the kernel that was checked. The grids lie between guard bands like those of a trial, which are not looked at.
//!
//! Where grids lie in the GPU's memory makes a percent or two of a kernel's time, the same in every round. So rounds are made
//! in several places, and what is said of them is the median.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use cudarc::driver::sys::{CUdeviceptr, CUevent};

use super::driver::{Function, Gpu};
use super::grids::{Grids, Place};
use super::message::{RawRound, Round};
use super::run::{Pulse, Stop, crashed};

/// Most places in which rounds are made, each with room for two grids.
const MOST_PLACES: usize = 24;

/// What rounds need beside the grids.
pub struct Rounds {
    n: usize,
    /// Those that rounds have been made in.
    places: Vec<Place>,
    /// The initial grid on the GPU.
    initial: CUdeviceptr,
    events: [CUevent; 2],
    /// The final grid of the first round, by kernel and launches.
    first: HashMap<(usize, u32), Vec<f32>>,
}

impl Rounds {
    /// Takes the initial grid of all rounds to come, which are made with these grids.
    pub fn prepare(gpu: &Gpu, grids: &Grids, initial: &[f32]) -> Result<Self> {
        let n = grids.n;
        ensure!(initial.len() == n * n, "the initial grid has another size");
        let places = Vec::new();
        let at = gpu.allocate(initial.len() * 4)?;
        gpu.upload(at, initial)?;
        Ok(Self { n, places, initial: at, events: [gpu.event()?, gpu.event()?], first: HashMap::new() })
    }

    pub fn n(&self) -> usize {
        self.n
    }

    pub fn free(self, gpu: &Gpu) {
        gpu.free(self.initial);
        self.places.into_iter().for_each(|place| place.free(gpu));
    }

    /// Makes a round; the final grid is then in [`Grids::cells`]. An error is the machine's fault.
    pub fn round(
        &mut self,
        pulse: &mut Pulse,
        function: &Function,
        grids: &mut Grids,
        round: &Round,
    ) -> Result<RawRound> {
        let place = self.place(pulse.gpu, grids, round.place)?;
        grids.exchange(&mut self.places[place]);
        let timed = self.timed(pulse, function, grids, round);
        grids.exchange(&mut self.places[place]);
        match timed {
            Ok(milliseconds) if !round.compare => Ok(RawRound { milliseconds, same: true, fault: None }),
            Ok(milliseconds) => {
                let first = self.first.entry((round.kernel, round.launches));
                let cells = grids.cells();
                let bits = |grid: &[f32]| crate::execute::wire::bytes_of(grid) == crate::execute::wire::bytes_of(cells);
                let same = bits(first.or_insert_with(|| cells.to_vec()));
                Ok(RawRound { milliseconds, same, fault: None })
            }
            Err(Stop::Fault(fault)) => Ok(RawRound { fault: Some(fault), ..RawRound::default() }),
            Err(Stop::Machine(error)) => Err(error),
        }
    }

    /// The place of this number; one that there is already, where the GPU has no room for another.
    fn place(&mut self, gpu: &Gpu, grids: &Grids, number: usize) -> Result<usize> {
        while self.places.len() <= number % MOST_PLACES {
            match grids.elsewhere(gpu) {
                Ok(place) => self.places.push(place),
                Err(error) if self.places.is_empty() => Err(error).context("no room for the grids on the GPU")?,
                Err(_) => break,
            }
        }
        Ok(number % self.places.len())
    }

    fn timed(&self, pulse: &mut Pulse, function: &Function, grids: &mut Grids, round: &Round) -> Result<f64, Stop> {
        let gpu = pulse.gpu;
        gpu.opt_in(function, &round.geometry).map_err(crashed(1))?;
        let launch = |number: u32, grids: &Grids| {
            gpu.launch(function, &round.geometry, grids.of_launch(number), self.n, round.r).map_err(crashed(number))
        };
        for number in 1..=round.warmups {
            launch(number, grids)?;
        }
        // No wait before the clock starts: the copies keep the GPU busy, and awake, until the launches are there.
        grids.fill_from(gpu, self.initial)?;
        gpu.record(self.events[0])?;
        for number in 1..=round.launches {
            launch(number, grids)?;
        }
        gpu.record(self.events[1])?;
        pulse.wait()?.map_err(crashed(round.launches))?;
        if !round.compare {
            return Ok(gpu.elapsed(self.events[0], self.events[1])?);
        }
        grids.fetch(gpu, round.launches as usize % 2)?;
        pulse.wait()?.context("the grid could not be read")?;
        Ok(gpu.elapsed(self.events[0], self.events[1])?)
    }
}
