//! Times of kernels as they were measured: no statistics here.

use serde::{Deserialize, Serialize};

use super::cuda::{Clocks, GpuInfo};

/// Whose worker timed a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimedBy {
    Reference,
    Submission,
}

/// The rounds of one kernel in one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelTimes {
    pub by: TimedBy,
    /// The kernel's name.
    pub kernel: String,
    /// Timesteps that one launch advances; 1 for a copy.
    pub timesteps: u32,
    /// Launches of a round.
    pub launches: u32,
    /// Milliseconds a launch, a value for each round in the order in which they were made.
    pub rounds: Vec<f64>,
    /// Whether every round ended with the same grid, bit for bit.
    pub same_grids: bool,
}

/// What a timing measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RawTimes {
    pub gpu: GpuInfo,
    /// Cells a side.
    pub n: u32,
    /// In the order of a pass: the reference's kernels, then the submission's.
    pub kernels: Vec<KernelTimes>,
    /// Clocks before the first round and right after the last; null without NVML.
    pub clocks_before: Option<Clocks>,
    pub clocks_after: Option<Clocks>,
}

impl RawTimes {
    /// The rounds of a kernel by its name.
    pub fn of(&self, by: TimedBy, kernel: &str) -> Option<&KernelTimes> {
        self.kernels.iter().find(|times| times.by == by && times.kernel == kernel)
    }
}
