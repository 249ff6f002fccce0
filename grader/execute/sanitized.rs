//! What NVIDIA's compute-sanitizer said about a kernel, as data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Actor, Place};

/// A tool of compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SanitizerTool {
    /// Accesses outside an allocation, or outside all shared memory of a block, and misaligned ones. One that strays from
    /// one array of a block or thread into the next is not seen; engine cpu sees it.
    Memcheck,
    /// Shared memory that two threads touch between barriers.
    Racecheck,
    /// Reads of global memory that nobody wrote; shared memory is not watched.
    Initcheck,
    /// Barriers that not all threads reach.
    Synccheck,
}

impl SanitizerTool {
    pub const ALL: [Self; 4] = [Self::Memcheck, Self::Racecheck, Self::Initcheck, Self::Synccheck];

    /// What `--tool` and reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck",
            Self::Racecheck => "racecheck",
            Self::Initcheck => "initcheck",
            Self::Synccheck => "synccheck",
        }
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingKind {
    OutOfRange,
    Misaligned,
    NeverWritten,
    /// Two threads of a block and one shared word; the second access is in [`Finding::other`].
    Race,
    /// The tool is not sure that it is one.
    MaybeRace,
    /// Threads of a block or warp that do not reach a barrier together.
    Divergence,
    /// Something else, in the tool's words.
    Other,
}

/// One site that a tool complains about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// The tool's own first line, without control characters.
    pub said: String,
    /// `global`, `shared` or `local`; empty when not said.
    pub memory: String,
    /// Whether the access was a store; `None` when not said, and for barriers.
    pub store: Option<bool>,
    /// Line of heat.cu, when known.
    pub place: Option<Place>,
    /// The first thread that did it; races have none.
    pub actor: Option<Actor>,
    /// The line of the other access of a race.
    pub other: Option<Place>,
    /// Threads, or hazards of a race, that the tool counted there.
    pub count: u64,
}

/// What one tool came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanitized {
    pub tool: SanitizerTool,
    /// Each site once, in the order in which they were reported; or why the tool gave no answer.
    pub findings: Result<Vec<Finding>, String>,
}
