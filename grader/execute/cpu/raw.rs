//! What a worker says of a run, before addresses of code have become lines of heat.cu.

use serde::{Deserialize, Serialize};

use super::banks::RawBanks;
use crate::execute::{Actor, CellReads, HazardKind, Memory};

/// A place in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Site {
    /// Return address of a hook, as an offset into the object.
    Code(u64),
    /// A line of heat.cu that the compiler itself handed over.
    Line(u32),
}

/// One hazard.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RawHazard {
    pub kind: HazardKind,
    pub memory: Option<Memory>,
    pub store: bool,
    pub bytes: u32,
    pub site: Option<Site>,
    pub actor: Actor,
    pub other: Option<(Actor, Option<Site>)>,
    pub launch: u32,
    pub count: u64,
}

/// Why a thread traps, beside what cuda_runtime.h has numbers for.
pub const MASK_WITHOUT_CALLER: i32 = 16;

/// What ended a run early, as the worker saw it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawFault {
    Trap { why: i32, site: Option<Site>, actor: Actor },
    Misaligned { alignment: u32, site: Option<Site>, actor: Actor },
    Unsupported { construct: String, site: Option<Site> },
    Deadlock,
}

/// Everything that a run showed beside its grids.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RawObservation {
    pub words_read: Vec<u64>,
    pub hazards: Vec<RawHazard>,
    /// launch, cell index, bits before, bits after
    pub input_changed: Option<(u32, usize, u32, u32)>,
    pub writers: Vec<Option<(Actor, Site)>>,
    pub cell_reads: Option<CellReads>,
    /// Where the block looked at there reads `in`, and how many bytes.
    pub read_sites: Vec<(Site, u64)>,
    /// The same of other global memory.
    pub other_sites: Vec<(Site, u64)>,
    /// What it does to its shared arrays.
    pub banks: RawBanks,
    /// Whether launches ran as loops over the threads of their blocks.
    pub loops: bool,
    /// Whether loops turned out not to be the kernel: the run says nothing.
    pub misled: bool,
    pub fault: Option<RawFault>,
    pub launches_done: u32,
    pub cpu_seconds: f64,
    pub wall_seconds: f64,
}
