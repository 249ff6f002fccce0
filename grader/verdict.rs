//! The words of a verdict: checks, their statuses, and what they add up to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::execute::Place;

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

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub id: CheckId,
    pub status: Status,
    /// One sentence: what, where, how much.
    pub summary: String,
    /// Further sentences: what else was seen, and what to look at next.
    pub details: Vec<String>,
    /// The line of heat.cu that the check is about, when there is one.
    pub place: Option<Place>,
}

impl Check {
    /// A check with nothing but its summary.
    pub fn new(id: CheckId, status: Status, summary: impl Into<String>) -> Self {
        Self { id, status, summary: summary.into(), details: Vec::new(), place: None }
    }

    /// The same check with one more sentence.
    pub fn with(mut self, detail: impl Into<String>) -> Self {
        self.details.push(detail.into());
        self
    }

    /// The same check, about a place in heat.cu.
    pub fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }
}

impl Verdict {
    /// What the checks add up to. A gate that is missing or skipped can never make a pass: it was not judged.
    pub fn of(checks: &[Check], strict: bool) -> Self {
        let status = |id: CheckId| checks.iter().find(|check| check.id == id).map(|check| check.status);
        let gates = || CheckId::ALL.into_iter().filter(|id| id.gates(strict));
        if gates().any(|id| status(id) == Some(Status::Fail)) {
            Self::Fail
        } else if gates().all(|id| matches!(status(id), Some(Status::Pass | Status::Warn))) {
            Self::Pass
        } else {
            Self::Ungraded
        }
    }
}

/// The check that decides a failed grade: the first gate that failed.
pub fn failing_check(checks: &[Check], strict: bool) -> Option<CheckId> {
    checks.iter().find(|check| check.status == Status::Fail && check.id.gates(strict)).map(|check| check.id)
}
