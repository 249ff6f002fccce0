//! The worker process: this binary's hidden subcommand that runs cubins. It never holds the answer beside learner's code.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context, Result, anyhow, ensure};

use super::clocks::Nvml;
use super::counter::Counter;
use super::driver::{Function, Gpu, Module};
use super::grids::Grids;
use super::message::{Load, LoadKernel, RawRound, Reply, Request, Round, Run};
use super::rounds::Rounds;
use super::run::{Pulse, run_trial};
use crate::confine;
use crate::execute::service::{end_with_parent, flush_prints, take_over_stdout};
use crate::execute::wire;

/// Serves requests on standard input until it ends. The context is made before the first of them is read, so that this
/// goes on while the grader compiles. Replies go to what was standard output; what kernels print goes to standard error.
pub fn main() -> Result<()> {
    confine::worker::before_driver()?;
    end_with_parent(|| {});
    let mut replies = take_over_stdout()?;
    let gpu = match Gpu::open() {
        Ok(gpu) => gpu,
        Err(reason) => return wire::write(&mut replies, &Reply::NoDevice(reason), &[]),
    };
    let mut info = gpu.info()?;
    let nvml = Nvml::open(&info.uuid);
    info.clocks = nvml.as_ref().and_then(Nvml::clocks);
    wire::write(&mut replies, &Reply::Ready(info), &[])?;
    let pulse = Pulse::new(&gpu, &replies)?;
    let mut bench = Bench { gpu: &gpu, pulse, nvml, loaded: None, grids: None, rounds: None };
    let mut requests = BufReader::with_capacity(1 << 20, std::io::stdin());
    while let Some((request, blob)) = wire::read::<Request>(&mut requests)? {
        let (reply, blob) = match bench.serve(request, &blob) {
            Ok((reply, with_grid)) => (reply, with_grid.then(|| bench.cells())),
            Err(error) => (Reply::Failed(format!("{error:#}")), None),
        };
        flush_prints();
        write(&replies, &reply, blob.unwrap_or_default())?;
    }
    Ok(())
}

fn write(mut replies: &File, reply: &Reply, cells: &[f32]) -> Result<()> {
    wire::write(&mut replies, reply, wire::bytes_of(cells))
}

/// All that a worker has.
struct Bench<'a> {
    gpu: &'a Gpu,
    pulse: Pulse<'a>,
    nvml: Option<Nvml>,
    loaded: Option<Loaded>,
    grids: Option<Grids>,
    rounds: Option<Rounds>,
}

struct Loaded {
    kernels: Vec<Function>,
    counted: Option<(Function, Counter)>,
}

impl Bench<'_> {
    /// The reply, and whether the grid fetched last goes with it.
    fn serve(&mut self, request: Request, blob: &[u8]) -> Result<(Reply, bool)> {
        let plain = |reply| Ok((reply, false));
        match request {
            Request::Load(load) => {
                let loaded = Loaded::new(self.gpu, &load, blob)?;
                let counted = loaded.counted.iter().map(|(function, _)| function.facts);
                let facts = loaded.kernels.iter().map(|function| function.facts).chain(counted).collect();
                self.loaded = Some(loaded);
                plain(Reply::Loaded(facts))
            }
            Request::Run(run) => plain(Reply::Done(self.run(&run, wire::cells_of(blob))?)),
            Request::Prepare { n } => {
                self.grids_of(n, false)?;
                if let Some(old) = self.rounds.replace(Rounds::prepare(self.gpu, n, &wire::cells_of(blob))?) {
                    old.free(self.gpu);
                }
                plain(Reply::Prepared)
            }
            Request::Round(round) => {
                let seen = self.round(&round)?;
                let keep = round.keep && seen.fault.is_none();
                Ok((Reply::Round(seen), keep))
            }
            Request::Clocks => plain(Reply::Clocks(self.nvml.as_ref().and_then(Nvml::clocks))),
        }
    }

    fn run(&mut self, run: &Run, initial: Vec<f32>) -> Result<super::message::RawObservation> {
        ensure!(initial.len() == run.n * run.n, "the initial grid has another size");
        self.grids_of(run.n, run.bare)?;
        let loaded = self.loaded.as_mut().ok_or_else(|| anyhow!("nothing was loaded"))?;
        let grids = self.grids.as_mut().ok_or_else(|| anyhow!("there are no grids"))?;
        let (function, counter) = if run.counted {
            let (function, counter) = loaded.counted.as_mut().ok_or_else(|| anyhow!("no counted build was loaded"))?;
            (*function, Some(counter))
        } else {
            (loaded.kernel(0)?, None)
        };
        run_trial(&mut self.pulse, &function, counter, grids, run, initial)
    }

    fn round(&mut self, round: &Round) -> Result<RawRound> {
        let n = self.rounds.as_ref().map(Rounds::n).ok_or_else(|| anyhow!("no round was prepared"))?;
        self.grids_of(n, false)?;
        let loaded = self.loaded.as_ref().ok_or_else(|| anyhow!("nothing was loaded"))?;
        let (Some(grids), Some(rounds)) = (&mut self.grids, &mut self.rounds) else {
            return Err(anyhow!("no round was prepared"));
        };
        rounds.round(&mut self.pulse, &loaded.kernel(round.kernel)?, grids, round)
    }

    /// Makes room for grids of n x n cells; bare ones are always new, so that nobody has written to them.
    fn grids_of(&mut self, n: usize, bare: bool) -> Result<()> {
        if self.grids.as_ref().is_some_and(|grids| grids.n == n && grids.bare() == bare && !bare) {
            return Ok(());
        }
        if let Some(old) = self.grids.take() {
            old.free(self.gpu);
        }
        self.grids = Some(Grids::new(self.gpu, n, bare).context("no room for the grids on the GPU")?);
        Ok(())
    }

    fn cells(&self) -> &[f32] {
        self.grids.as_ref().map_or(&[], Grids::cells)
    }
}

impl Loaded {
    fn new(gpu: &Gpu, load: &Load, blob: &[u8]) -> Result<Self> {
        ensure!(load.images.iter().sum::<usize>() == blob.len(), "the modules have another size");
        let mut rest = blob;
        let mut modules = Vec::new();
        for &length in &load.images {
            let (image, after) = rest.split_at(length);
            rest = after;
            modules.push(gpu.load(image).context("the driver cannot load the compiled kernel")?);
        }
        let function = |kernel: &LoadKernel| -> Result<(Module, Function)> {
            let module = *modules.get(kernel.image).ok_or_else(|| anyhow!("a module is missing"))?;
            let function =
                gpu.function(module, &kernel.entry).with_context(|| format!("no kernel {}", kernel.entry))?;
            Ok((module, function))
        };
        let kernels = load.kernels.iter().map(|kernel| Ok(function(kernel)?.1)).collect::<Result<_>>()?;
        let counted = match &load.counted {
            Some(counted) => {
                let (module, function) = function(&counted.kernel)?;
                let (at, bytes) = gpu.global(module, &counted.counter).context("the counters are missing")?;
                ensure!(bytes >= counted.slots * 8, "there are fewer counters than slots");
                Some((function, Counter::new(at, counted.slots)))
            }
            None => None,
        };
        Ok(Self { kernels, counted })
    }

    fn kernel(&self, at: usize) -> Result<Function> {
        self.kernels.get(at).copied().ok_or_else(|| anyhow!("kernel {at} was not loaded"))
    }
}
