//! What the grades of one run share: the compilers, looked up once, and the reference, built once and kept for other runs.

use std::sync::{Arc, Mutex, OnceLock};

use anyhow::{Context, Result, anyhow};

use super::turns::{Turn, Turns};
use crate::compile::gpu::{self, ReferenceBuilds};
use crate::compile::host::{self, HostBuilds, HostCode, Wanted};
use crate::compile::kept::{BUILDS, Key, Shelf};
use crate::compile::nvcc::Outcome;
use crate::compile::toolkit::{self, HostCompiler, Lookup, Toolkit};
use crate::execute::cuda::GpuInfo;

/// The reference: submission zero.
pub const REFERENCE: &str = include_str!("../../reference/heat.cu");
/// Its kernel on the cpu engine: the same bits as heatStepTiled's, sooner.
pub const REFERENCE_KERNEL: &str = "heatStepGlobal";

/// The compilers and the reference of a run, safe to share among threads.
pub struct Workshop {
    offline: bool,
    /// What compilers made earlier.
    shelf: Shelf,
    host_compiler: Lookup<HostCompiler>,
    toolkit: OnceLock<Lookup<Toolkit>>,
    reference: OnceLock<Result<HostBuilds, String>>,
    gpu_reference: Mutex<Vec<Arc<ReferenceBuilds>>>,
    /// The GPU, or why there is none, where several grades go side by side; else each looks for itself.
    shared_gpu: Option<(Turns, Result<GpuInfo, String>)>,
}

impl Workshop {
    /// Looks for g++; `offline` forbids fetching nvcc later.
    pub fn new(offline: bool) -> Self {
        let host_compiler = toolkit::find_host_compiler();
        Self {
            offline,
            shelf: Shelf::usual(BUILDS),
            host_compiler,
            toolkit: OnceLock::new(),
            reference: OnceLock::new(),
            gpu_reference: Mutex::default(),
            shared_gpu: None,
        }
    }

    /// The same with everything compiled anew, for what is to prove the compilers.
    pub fn compiling_anew(self) -> Self {
        Self { shelf: Shelf::nowhere(), ..self }
    }

    /// What compilers made earlier.
    pub fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// The same for grades that go side by side and take turns on the GPU.
    pub fn sharing(self, gpu: Result<GpuInfo, String>) -> Self {
        let turns = Turns::on(gpu.as_ref().map_or(0, |gpu| gpu.memory));
        Self { shared_gpu: Some((turns, gpu)), ..self }
    }

    /// The GPU that grades share, or why there is none; `None` where they share none.
    pub fn shared_gpu(&self) -> Option<&Result<GpuInfo, String>> {
        self.shared_gpu.as_ref().map(|(_, gpu)| gpu)
    }

    /// A grade's turn on the GPU, not yet begun.
    pub fn turn(&self) -> Arc<Turn> {
        Turn::of(self.shared_gpu.as_ref().map(|(turns, _)| turns.clone()))
    }

    pub fn host_compiler(&self) -> &Lookup<HostCompiler> {
        &self.host_compiler
    }

    /// nvcc, fetched on the first call where the machine has none.
    pub fn toolkit(&self) -> &Lookup<Toolkit> {
        self.toolkit.get_or_init(|| toolkit::find_toolkit(self.offline))
    }

    /// The reference, built once for each architecture. That it cannot be built is the machine's fault.
    pub fn gpu_reference(&self, toolkit: &Toolkit, gxx: &HostCompiler, arch: u32) -> Result<Arc<ReferenceBuilds>> {
        // Held while building: whoever else wants the same waits for it.
        let mut built = self.gpu_reference.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = built.iter().find(|known| known.arch == arch) {
            return Ok(known.clone());
        }
        let named = format!("sm_{arch} {} {}", toolkit.version, gxx.version);
        let key = Key::new("reference").with(named).with_file(&toolkit.nvcc).with_file(&toolkit.ptxas);
        let kept = self.shelf.get::<ReferenceBuilds>(&key);
        let builds = Arc::new(match kept {
            Some(builds) => builds,
            None => {
                let builds = gpu::build_reference(toolkit, gxx, arch)?;
                self.shelf.put(&key, &builds);
                builds
            }
        });
        built.push(builds.clone());
        Ok(builds)
    }

    /// The reference, built for the host on the first call. That it cannot be built is the machine's fault.
    pub fn reference(&self, gxx: &HostCompiler) -> Result<&HostBuilds> {
        let built =
            self.reference.get_or_init(|| build_reference(&self.shelf, gxx).map_err(|error| format!("{error:#}")));
        built.as_ref().map_err(|reason| anyhow!("{reason}"))
    }
}

fn build_reference(shelf: &Shelf, gxx: &HostCompiler) -> Result<HostBuilds> {
    let key = Key::new("host reference").with(&gxx.version).with_file(&gxx.gxx);
    if let Some(object) = shelf.get::<Vec<u8>>(&key) {
        return HostBuilds::of_object(&object);
    }
    let object = fast_reference(gxx)?;
    shelf.put(&key, &object);
    HostBuilds::of_object(&object)
}

/// The bytes of the reference's fast build.
fn fast_reference(gxx: &HostCompiler) -> Result<Vec<u8>> {
    let named = format!("g++ {} does not take the reference", gxx.version);
    match host::build(gxx, REFERENCE, REFERENCE_KERNEL, Wanted::Fast, HostCode::Reached(REFERENCE_KERNEL))?.outcome {
        Outcome::Compiled(builds) => std::fs::read(&builds.fast).context("cannot read what g++ made"),
        Outcome::Rejected(said) => {
            Err(anyhow!("{named}: {}", said.shown.first().map_or("no reason given", |first| &first.message)))
        }
        Outcome::LimitHit { sentence, .. } => Err(anyhow!("{named}: {sentence}")),
    }
}
