//! What the grader and a worker of engine cuda say to each other.

use serde::{Deserialize, Serialize};

use crate::submission::Geometry;

/// To the worker. Before the first one it says by itself whether it has a GPU ([`Reply::Found`] or [`Reply::NoDevice`]).
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Make a context, which disturbs whatever runs on the GPU. Answered by [`Reply::Ready`] or [`Reply::NoDevice`]. Only
    /// [`Request::Room`] may come before it.
    Open,
    /// Make room for grids of n x n cells, and so many in the shared memory, which trials will want. Not answered.
    Room { n: usize, slots: usize },
    /// Load modules; the blob holds them one after another. Answered by [`Reply::Loaded`].
    Load(Load),
    /// Run a trial from the initial grid in the [shared memory](super::shared). Answered by launches and grids, then [`Reply::Done`].
    Run(Run),
    /// Take the initial grid for rounds from the shared memory. Answered by [`Reply::Prepared`].
    Prepare { n: usize },
    /// Time a kernel. Answered by [`Reply::Round`]; the final grid is then in the first slot, when that was asked for.
    Round(Round),
    /// Answered by [`Reply::Clocks`].
    Clocks,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Load {
    /// Bytes of each module in the blob.
    pub images: Vec<usize>,
    /// The first is the one that trials run; the others are only timed.
    pub kernels: Vec<LoadKernel>,
    pub counted: Option<LoadCounted>,
}

/// A kernel by its module and the name it has there.
#[derive(Debug, Serialize, Deserialize)]
pub struct LoadKernel {
    pub image: usize,
    pub entry: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct LoadCounted {
    pub kernel: LoadKernel,
    /// Name of the global array of 64-bit counters, and its length.
    pub counter: String,
    pub slots: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    pub n: usize,
    pub r: f32,
    pub launches: u32,
    /// Whether the counted build runs.
    pub counted: bool,
    pub keep: Vec<u32>,
    pub geometry: Geometry,
    /// Whether the grids are allocations of their own: no guard bands, nothing poisoned or fetched.
    pub bare: bool,
    /// Whether the kernel may do what it should not: the guard bands and the input are then looked at.
    pub watched: bool,
    /// What the guard bands' pattern and the counters' start are drawn from.
    pub pattern: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Round {
    /// Place of the kernel in [`Load::kernels`].
    pub kernel: usize,
    pub r: f32,
    pub geometry: Geometry,
    /// In which place on the GPU the grids lie: one that no round had yet, or one of theirs.
    pub place: usize,
    /// Launches before the clock starts.
    pub warmups: u32,
    /// Launches between the two events.
    pub launches: u32,
    /// Whether the final grid is compared with that of the first round.
    pub compare: bool,
    /// Whether the final grid is wanted; only of a round that compares.
    pub keep: bool,
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// There is a GPU of this compute capability (75 for sm_75); the context is still to be made.
    Found {
        arch: u32,
    },
    /// The context is made.
    Ready(GpuInfo),
    /// There is no GPU to work on, and why.
    NoDevice(String),
    /// What the kernels need, in the order of [`Load::kernels`], then the counted one.
    Loaded(Vec<KernelFacts>),
    /// This launch is under way; said several times a second.
    Launch(u32),
    /// The grid after a launch is in the next slot of the shared memory.
    Grid(u32),
    Done(RawObservation),
    Prepared,
    Round(RawRound),
    Clocks(Option<Clocks>),
    /// The worker itself failed, or the machine.
    Failed(String),
}

/// A GPU as its driver describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GpuInfo {
    pub name: String,
    /// `GPU-` and 32 hexadecimal digits in groups, as nvidia-smi shows it.
    pub uuid: String,
    /// Compute capability without its dot: 75 for sm_75.
    pub arch: u32,
    /// The CUDA release that the driver speaks: `13.0`.
    pub driver: String,
    /// Bytes of memory.
    pub memory: u64,
    pub multiprocessors: u32,
    /// Bytes of shared memory that a block can have when it opts in.
    pub shared_per_block: u32,
    /// Clocks and what holds them back, when the worker started; null without NVML.
    pub clocks: Option<Clocks>,
}

/// Clocks at one moment, as NVML gives them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Clocks {
    /// Of the multiprocessors, MHz.
    pub sm_mhz: u32,
    /// Of the memory, MHz.
    pub memory_mhz: u32,
    /// Degrees Celsius.
    pub temperature: u32,
    /// What keeps the clocks from their most: `idle`, `power cap`, `thermal slowdown` and so on.
    pub held_by: Vec<String>,
}

/// What one kernel needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelFacts {
    /// Bytes of shared memory of a block, without the dynamic part.
    pub static_shared: u64,
    pub registers: u32,
    /// Bytes of local memory of a thread.
    pub local: u64,
    /// Threads a block can have with these registers.
    pub most_threads: u32,
}

/// Everything that a run showed beside its grids.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RawObservation {
    /// 4-byte words, a value for each counted launch.
    pub words_read: Vec<u64>,
    pub bands: Vec<BandChange>,
    /// launch, cell index, bits before, bits after
    pub input_changed: Option<(u32, usize, u32, u32)>,
    pub fault: Option<RawFault>,
    pub wall_seconds: f64,
}

/// Changed words of the guard bands around one grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BandChange {
    /// After which launch it was seen.
    pub launch: u32,
    /// Whether the grid was that launch's input.
    pub input: bool,
    /// The changed word nearest to the grid, as a cell index: negative before the grid, n * n and more behind it.
    pub cell: i64,
    /// Changed words.
    pub count: u64,
}

/// What ended a run early, by the driver's error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawFault {
    /// The launch was refused before a thread ran.
    Refused { launch: u32, code: u32 },
    /// The launch began and failed.
    Crashed { launch: u32, code: u32 },
}

/// One timed round.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RawRound {
    /// Between the events, milliseconds for all launches.
    pub milliseconds: f64,
    /// Whether the final grid is, bit for bit, that of the kernel's first round of as many launches.
    pub same: bool,
    pub fault: Option<RawFault>,
}
