//! The words of a verdict: checks, their statuses, and what they add up to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The checks, in the order in which they are made and reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckId {
    Source,
    Compile,
    Kernel,
    Launch,
    Values,
    Ring,
    Memory,
    Race,
    Reads,
    Portable,
    Time,
    Answer,
}

impl CheckId {
    pub const ALL: [Self; 12] = [
        Self::Source,
        Self::Compile,
        Self::Kernel,
        Self::Launch,
        Self::Values,
        Self::Ring,
        Self::Memory,
        Self::Race,
        Self::Reads,
        Self::Portable,
        Self::Time,
        Self::Answer,
    ];

    /// The id as reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Compile => "compile",
            Self::Kernel => "kernel",
            Self::Launch => "launch",
            Self::Values => "values",
            Self::Ring => "ring",
            Self::Memory => "memory",
            Self::Race => "race",
            Self::Reads => "reads",
            Self::Portable => "portable",
            Self::Time => "time",
            Self::Answer => "answer",
        }
    }

    /// Whether a `fail` of this check fails the submission (`portable` gates only under `--strict`).
    pub fn gates(self, strict: bool) -> bool {
        self <= Self::Reads || (strict && self == Self::Portable)
    }

    /// Whether a `fail` of this check stops the trials that follow: a kernel that fails `race` or `reads` is still timed.
    pub fn stops_trials(self) -> bool {
        self <= Self::Memory
    }
}

/// What one check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pass,
    Fail,
    Warn,
    Skip,
}

/// What a submission came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Fail,
    /// The grader or the machine could not judge; never counted against the learner.
    Ungraded,
}
