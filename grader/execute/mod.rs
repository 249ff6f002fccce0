//! Effect 2: run kernels. A [`Trial`] goes in, an [`Observation`] comes out; nothing here knows what is right.
//!
//! An engine hands out [`Runner`]s, one for the reference (submission zero) and one for each stream of a submission's
//! trials. A runner owns a worker process; a crash or hang of learner's code ends that process only.

pub mod cpu;
pub mod cuda;
pub mod limits;
mod process;
pub mod sanitized;
mod service;
mod times;
pub mod wire;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::grid::{Grid, Window};

pub use times::{KernelTimes, RawTimes, TimedBy};

/// How closely a trial watches the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Watch {
    /// Nothing but the grids; all cores.
    Fast,
    /// Words read from global memory, and accesses outside the grids; all cores.
    Count,
    /// Everything: words read, races, never-written reads, out-of-range accesses, barriers; one OS thread, deterministic.
    Full,
}

/// One run of a kernel: `launches` launches on an n x n grid, swapping two buffers.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The grid before the first launch; its n is the trial's n.
    pub initial: Arc<Grid>,
    /// The diffusion number handed to the kernel.
    pub r: f32,
    /// Launches, at least 1.
    pub launches: u32,
    pub watch: Watch,
    /// After which launches (from 1, ascending) the grid is wanted. Final grids must be asked for too.
    pub keep: Vec<u32>,
    /// Cells whose last writers in the last launch are wanted; needs [`Watch::Full`].
    pub writers_of: Option<Window>,
    /// Whether it is wanted how often the first launch reads each cell; needs [`Watch::Full`].
    pub cell_reads: bool,
    /// What the order is drawn from in which the threads of each block run, and blocks run backwards then; in the order of
    /// their numbers when `None`. Engine cpu.
    pub order: Option<u64>,
    /// What the program's variables hold before the first launch; as they are when `None`. Engine cpu.
    pub state: Option<Arc<DeviceState>>,
    /// After which kept launches the program's variables are wanted as well; engine cpu, [`Watch::Fast`].
    pub keep_state: Vec<u32>,
    /// Whether an engine may take a shorter way than the kernel as it is written (see [`cpu`]) once a launch that way gave
    /// the same bits. A failure is judged by runs without.
    pub shortcuts: bool,
}

/// What a program's `__device__` variables hold, which outlives launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceState {
    /// Symbol and size in bytes of each variable, in the order of `bytes`.
    pub variables: Vec<(String, usize)>,
    pub bytes: Vec<u8>,
}

/// What a trial showed.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The kept grids, by launch. Shorter than `Trial::keep` when the run ended early.
    pub grids: Vec<(u32, Grid)>,
    /// The program's variables after launches, where they were asked for and it has some.
    pub states: Vec<(u32, Arc<DeviceState>)>,
    /// 4-byte words read from global memory, a value a launch; empty when not counted ([`Watch::Fast`]). A launch whose
    /// counters went backwards, which only a kernel that writes to them can do, counts as 0: too few to be believed.
    pub words_read: Vec<u64>,
    /// Hazards in order of first appearance, each site once ([`Watch::Full`]; out-of-range ones also [`Watch::Count`]).
    pub hazards: Vec<Hazard>,
    /// The first launch that changed its input grid, and the cell in row-major order where it did.
    pub input_changed: Option<InputChange>,
    /// Whether launches were made by a shortcut.
    pub shortcut: bool,
    /// Who last wrote the cells asked for, row-major; `None` where nobody did. Empty when the run ended early.
    pub writers: Vec<Option<LastWrite>>,
    /// How often the first launch read each cell of its input, where that was asked for and it ran to its end.
    pub cell_reads: Option<CellReads>,
    /// What ended the run before its last launch.
    pub fault: Option<RunFault>,
    /// What the kernel printed (capped; raw bytes made lossy UTF-8, unescaped: never show it as is).
    pub output: String,
    /// What static constructors printed before the first launch, likewise; in one observation of a submission.
    pub constructors_printed: String,
    /// CPU time of the launches, seconds.
    pub cpu_seconds: f64,
    /// Wall time of the launches that ended, seconds.
    pub wall_seconds: f64,
}

impl Observation {
    /// The grid kept after `launch`, if the run got that far.
    pub fn grid_after(&self, launch: u32) -> Option<&Grid> {
        self.grids.iter().find(|(kept, _)| *kept == launch).map(|(_, grid)| grid)
    }

    /// Seconds of all launches, one that did not end included.
    pub fn seconds(&self) -> f64 {
        let endless = match self.fault {
            Some(RunFault::Hang { seconds, .. } | RunFault::WallLimit { wall_seconds: seconds, .. }) => seconds,
            _ => 0.0,
        };
        self.wall_seconds + endless
    }
}

/// The last store to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastWrite {
    pub actor: Actor,
    /// Line of heat.cu, when known.
    pub place: Option<Place>,
}

/// How often a launch read each cell of its input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellReads {
    /// Cells a side of the grid.
    pub n: usize,
    /// Reads of each cell by all blocks, row-major; 65,535 stands for that and more.
    pub all: Vec<u16>,
    /// The same of one block in the middle of the launch; `None` when it touched neither grid.
    pub of_block: Option<BlockReads>,
}

impl CellReads {
    /// Whether they are of n x n cells, the block's as well, and tell of each cell once.
    pub fn are_of(&self, n: usize) -> bool {
        let of_block = |block: &BlockReads| {
            let Window { rows, columns } = &block.window;
            let inside = rows.start <= rows.end && rows.end <= n && columns.start <= columns.end && columns.end <= n;
            inside && [block.reads.len(), block.written.len()] == [rows.len() * columns.len(); 2]
        };
        self.n == n && self.all.len() == n * n && self.of_block.as_ref().is_none_or(of_block)
    }
}

/// What one block reads of `in` and writes of `out`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockReads {
    /// blockIdx x, y, z
    pub block: [u32; 3],
    /// The smallest window with all cells that it touched.
    pub window: Window,
    /// Its reads of each cell of the window, row-major.
    pub reads: Vec<u16>,
    /// Whether it wrote each cell of the window.
    pub written: Vec<bool>,
    /// Bytes of the shared arrays that it touched, static and dynamic.
    pub shared: u64,
    /// Bytes that it read of `in`.
    pub bytes: u64,
    /// The same by the line of heat.cu that reads them, rising; a line that is not known is left out.
    pub by_line: Vec<(u32, u64)>,
    /// Bytes that it read of other global memory (variables, tables, `out`), likewise.
    pub elsewhere: Vec<(u32, u64)>,
    /// The shared arrays that it touched, and what its first warp did in them, an access of its lanes at a time.
    pub arrays: Vec<SharedArray>,
    pub uses: Vec<SharedUse>,
}

/// A shared array of a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedArray {
    pub name: String,
    /// As it is declared, outermost first; empty where that is not known.
    pub lengths: Vec<u32>,
    /// The 4-byte words that the block touched, rising.
    pub touched: Vec<u32>,
    /// Whether there are accesses to it of which it is not known which lanes made them together.
    pub uneven: bool,
}

/// The 4-byte words that the lanes of a warp touched together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedUse {
    /// Of heat.cu, from 1.
    pub line: u32,
    /// Place in [`BlockReads::arrays`].
    pub array: usize,
    /// A word a lane, counted from the array's start.
    pub words: Vec<u32>,
}

/// A CUDA thread in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Actor {
    /// blockIdx x, y, z
    pub block: [u32; 3],
    /// threadIdx x, y, z
    pub thread: [u32; 3],
}

/// A place in heat.cu, 1-based; column 0 when unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

/// The first cell of its input that a launch changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputChange {
    pub launch: u32,
    pub row: usize,
    pub column: usize,
    pub before: f32,
    pub after: f32,
}

/// Which memory an access touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Memory {
    /// The input grid: cell index row * n + column, may be out of range.
    In { cell: i64 },
    /// The output grid, likewise.
    Out { cell: i64 },
    /// A shared array: its name, the byte offset from its start, and the lengths that it is declared with, outermost first;
    /// none where they are not known, or its elements are not 4 bytes each.
    Shared { name: String, byte: i64, lengths: Vec<u32> },
    /// A row (a plane) that a shared array does not have: its name, the first index, and the lengths that it is declared with.
    SharedRow { name: String, index: i64, lengths: Vec<u32> },
    /// A local array: its name when known, and the index.
    Local { name: String, index: i64 },
    /// A __device__ variable.
    Device { name: String },
    /// A __constant__ variable.
    Constant { name: String },
    /// Anywhere else: a host pointer, null, a wild address.
    Wild { address: u64 },
}

/// What kind of hazard; see the checks `memory` and `race`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HazardKind {
    /// An access outside its grid or array.
    OutOfRange,
    /// A read of a word that nobody has written (shared array, or the output grid in this launch).
    NeverWritten,
    /// Write and write, no barrier between them.
    WriteWriteRace,
    /// As above, but both wrote the same value.
    SameValueRace,
    /// Read and write, no barrier between them.
    ReadWriteRace,
    /// Threads of one block waited at different barriers, or a barrier nobody could leave.
    BarrierDivergence,
    /// Threads returned while others of their block waited at a barrier.
    BarrierAfterExit,
    /// A store into the `in` grid.
    InputWritten,
    /// A store to a `__constant__` variable.
    ConstantWritten,
    /// An access to a local variable of another thread, which is the other side.
    ForeignLocal,
}

/// One hazard, at the first pair of threads that showed it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hazard {
    pub kind: HazardKind,
    pub memory: Option<Memory>,
    /// Whether the access was a store (else a load); false for barriers.
    pub store: bool,
    /// Bytes accessed; 0 for barriers.
    pub bytes: u32,
    /// Where in heat.cu; null when the access lies in none of its lines.
    pub place: Option<Place>,
    /// Null when the engine cannot tell threads apart.
    pub actor: Option<Actor>,
    /// The other side of a race, the other barrier, or whose local memory it is.
    pub other: Option<(Actor, Option<Place>)>,
    /// The launch (from 1) in which it first appeared.
    pub launch: u32,
    /// How often it was seen in the trial.
    pub count: u64,
}

impl Hazard {
    /// Whether its two threads are of two blocks.
    pub fn is_between_blocks(&self) -> bool {
        self.actor.zip(self.other).is_some_and(|(actor, (other, _))| actor.block != other.block)
    }
}

/// What runs a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    Cpu,
    Gpu,
}

/// What ended a run early. All are the submission's doing but for [`RunFault::CannotJudge`] and [`RunFault::WallLimit`].
#[derive(Clone, Debug, PartialEq)]
pub enum RunFault {
    /// The launch was refused before a thread ran: too many threads, too much shared memory, an empty grid.
    LaunchRefused { launch: u32, reason: String },
    /// A wild access, abort, trap or other signal: what happened in words, with its address where known.
    Crash { launch: u32, what: String, memory: Option<Memory>, place: Option<Place>, actor: Option<Actor> },
    /// The submission's code tried what the sandbox forbids; launch 0 is before the first one, in a static constructor.
    Denied { launch: u32, what: String, place: Option<Place> },
    /// A launch used up its time: CPU time on engine cpu, wall time on a GPU.
    Hang { launch: u32, seconds: f64, on: Processor, place: Option<Place>, actor: Option<Actor> },
    /// Each launch came to its end in time, and all up to this one together took too much CPU time.
    TooSlow { launch: u32, seconds: f64 },
    /// No thread of a block could go on: the barrier hazard says where.
    Deadlock { launch: u32 },
    /// The engine cannot run an ordinary CUDA feature that the kernel uses.
    CannotJudge { construct: String, place: Option<Place> },
    /// Only the wall limit passed: the machine was too busy.
    WallLimit { launch: u32, wall_seconds: f64 },
}

/// Runs trials of one program, one after another.
pub trait Runner: Send {
    /// An error is the grader's or machine's fault; everything a kernel can do comes back as an observation. After a
    /// fault the runner starts a fresh worker for the next trial.
    fn run(&mut self, trial: &Trial) -> anyhow::Result<Observation>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_are_not_of_the_grid_are_told_from_those_that_are() {
        let reads = |window: Window, cells: usize| CellReads {
            n: 4,
            all: vec![1; 16],
            of_block: Some(BlockReads {
                block: [0; 3],
                window,
                reads: vec![1; cells],
                written: vec![true; cells],
                shared: 0,
                bytes: 4,
                by_line: Vec::new(),
                elsewhere: Vec::new(),
                arrays: Vec::new(),
                uses: Vec::new(),
            }),
        };
        let whole = reads(Window { rows: 1..3, columns: 0..4 }, 8);
        assert!(whole.are_of(4) && !whole.are_of(5));
        assert!(!reads(Window { rows: 1..3, columns: 0..4 }, 7).are_of(4), "a cell is missing");
        assert!(!reads(Window { rows: 0..usize::MAX, columns: 0..0 }, 0).are_of(4), "nobody could walk along it");
        let [from, to] = [3, 1];
        assert!(!reads(Window { rows: from..to, columns: 0..4 }, 0).are_of(4), "turned round");
        assert!(!CellReads { all: vec![1; 15], ..whole.clone() }.are_of(4));
        assert!(CellReads { of_block: None, ..whole }.are_of(4));
    }
}
