//! The worker process: this binary's hidden subcommand that runs cubins. It never holds the answer beside learner's code.

use std::fs::File;
use std::io::BufReader;

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::clocks::{Nvml, Sensors};
use super::counter::Counter;
use super::driver::{Device, Function, Gpu, Module};
use super::grids::Grids;
use super::message::{Load, LoadKernel, RawRound, Reply, Request, Round, Run};
use super::rounds::Rounds;
use super::run::{Pulse, run_trial};
use super::shared::{FIRST, INITIAL, SharedGrids};
use crate::confine;
use crate::execute::service::{end_with_grader, end_with_parent, flush_prints, take_over_stdout};
use crate::execute::wire;

/// Serves requests on standard input until it ends. The driver is started before the first of them is read, so that this
/// goes on while the grader does something else. Replies go to what was standard output; what kernels print goes to standard error.
pub fn main() -> Result<()> {
    end_with_grader()?;
    confine::worker::before_driver()?;
    end_with_parent(|| {});
    let mut replies = take_over_stdout()?;
    let none = |replies: &mut File, reason| wire::write(replies, &Reply::NoDevice(reason), &[]);
    // The grader waits for this word alone before it compiles.
    let nvml = Nvml::load();
    let known = nvml.as_ref().and_then(Nvml::common_arch);
    if let Some(arch) = known {
        wire::write(&mut replies, &Reply::Found { arch }, &[])?;
    }
    let device = match Device::find() {
        Ok(device) => device,
        Err(reason) => return none(&mut replies, reason),
    };
    if known.is_none() {
        wire::write(&mut replies, &Reply::Found { arch: device.arch()? }, &[])?;
    }
    let mut requests = BufReader::with_capacity(1 << 20, std::io::stdin());
    let mut shared = SharedGrids::inherited()?;
    let mut expected = None;
    loop {
        match wire::read::<Request>(&mut requests)? {
            Some((Request::Open, _)) => break,
            Some((Request::Room { n, slots }, _)) => {
                expected = Some(n);
                let _ = shared.make_room(n, slots);
                shared.touch();
            }
            Some(_) => bail!("a request that needs a context came before there was one"),
            None => return Ok(()),
        }
    }
    let gpu = match device.open() {
        Ok(gpu) => gpu,
        Err(reason) => return none(&mut replies, reason),
    };
    let mut info = gpu.info()?;
    let sensors = nvml.and_then(|nvml| nvml.sensors(&info.uuid));
    info.clocks = sensors.as_ref().and_then(Sensors::clocks);
    wire::write(&mut replies, &Reply::Ready(info), &[])?;
    let pulse = Pulse::new(&gpu, &replies)?;
    let mut bench = Bench { gpu: &gpu, pulse, sensors, shared, loaded: None, grids: None, rounds: None };
    if let Some(n) = expected {
        // Whoever needs it and does not get it will say so.
        let _ = bench.grids_of(n, false);
    }
    while let Some((request, blob)) = wire::read::<Request>(&mut requests)? {
        if let Request::Room { n, slots } = request {
            // Whoever needs it and does not get it will say so.
            let _ = bench.grids_of(n, false).and_then(|()| bench.shared.make_room(n, slots));
            bench.shared.touch();
            continue;
        }
        let reply = bench.serve(request, &blob).unwrap_or_else(|error| Reply::Failed(format!("{error:#}")));
        flush_prints();
        wire::write(&mut &replies, &reply, &[])?;
    }
    Ok(())
}

/// All that a worker has.
struct Bench<'a> {
    gpu: &'a Gpu,
    pulse: Pulse<'a>,
    sensors: Option<Sensors>,
    shared: SharedGrids,
    loaded: Option<Loaded>,
    grids: Option<Grids>,
    rounds: Option<Rounds>,
}

struct Loaded {
    modules: Vec<Module>,
    kernels: Vec<Function>,
    counted: Option<(Function, Counter)>,
}

impl Bench<'_> {
    fn serve(&mut self, request: Request, blob: &[u8]) -> Result<Reply> {
        Ok(match request {
            Request::Load(load) => {
                let loaded = Loaded::new(self.gpu, &load, blob)?;
                let counted = loaded.counted.iter().map(|(function, _)| function.facts);
                let facts = loaded.kernels.iter().map(|function| function.facts).chain(counted).collect();
                if let Some(old) = self.loaded.replace(loaded) {
                    old.modules.into_iter().for_each(|module| self.gpu.unload(module));
                }
                Reply::Loaded(facts)
            }
            Request::Run(run) => Reply::Done(self.run(&run)?),
            Request::Prepare { n } => {
                self.grids_of(n, false)?;
                self.shared.make_room(n, FIRST + 1)?;
                let grids = self.grids.as_ref().ok_or_else(|| anyhow!("there are no grids"))?;
                let rounds = Rounds::prepare(self.gpu, grids, self.shared.cells(n, INITIAL)?)?;
                if let Some(old) = self.rounds.replace(rounds) {
                    old.free(self.gpu);
                }
                Reply::Prepared
            }
            Request::Round(round) => {
                let seen = self.round(&round)?;
                if let (true, None, Some(grids)) = (round.keep, seen.fault, &self.grids) {
                    self.shared.put(grids.n, FIRST, grids.cells())?;
                }
                Reply::Round(seen)
            }
            Request::Open | Request::Room { .. } => return Err(anyhow!("a request that is not answered")),
            Request::Clocks => Reply::Clocks(self.sensors.as_ref().and_then(Sensors::clocks)),
        })
    }

    fn run(&mut self, run: &Run) -> Result<super::message::RawObservation> {
        self.grids_of(run.n, run.bare)?;
        self.shared.make_room(run.n, FIRST + run.keep.len())?;
        let loaded = self.loaded.as_mut().ok_or_else(|| anyhow!("nothing was loaded"))?;
        let grids = self.grids.as_mut().ok_or_else(|| anyhow!("there are no grids"))?;
        let (function, counter) = if run.counted {
            let (function, counter) = loaded.counted.as_mut().ok_or_else(|| anyhow!("no counted build was loaded"))?;
            (*function, Some(counter))
        } else {
            (loaded.kernel(0)?, None)
        };
        run_trial(&mut self.pulse, &function, counter, grids, &mut self.shared, run)
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
        if let Some(grids) = self.grids.as_mut().filter(|grids| !bare && grids.fit(n)) {
            grids.reshape(n);
            return Ok(());
        }
        if let Some(old) = self.grids.take() {
            old.free(self.gpu);
        }
        self.grids = Some(Grids::new(self.gpu, n, bare).context("no room for the grids on the GPU")?);
        Ok(())
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
        Ok(Self { modules, kernels, counted })
    }

    fn kernel(&self, at: usize) -> Result<Function> {
        self.kernels.get(at).copied().ok_or_else(|| anyhow!("kernel {at} was not loaded"))
    }
}
