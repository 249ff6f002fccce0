//! Pure reporting: a judged grade in, text, JSON or the file of another system out.
//!
//! [`Report`] is the whole result of a grade, and the JSON that pipelines read: its fields are the contract, version
//! [`SCHEMA`], and `schema-1.json` beside this file is its JSON Schema. [`text`] is what a learner reads; [`gradescope`],
//! [`junit`] and [`github`] are what the systems of those names read; [`html`] is the class page that an instructor opens,
//! [`picture`] the wrong cells and the cells read as PNG, [`apron`] what one block reads as SVG.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::confine::Sandbox;
use crate::execute::HazardKind;
use crate::execute::sanitized::SanitizerTool;
pub use crate::judge::diagnosis::Code;
pub use crate::judge::error_map::ErrorMap;
pub use crate::judge::loads::{Apron, ReadsMap};
use crate::judge::plan::Scope;
pub use crate::judge::timing::Timing;
use crate::submission::LaunchSource;
use crate::verdict::{Check, CheckId, Verdict};

pub mod apron;
pub mod build;
pub mod escape;
pub mod github;
pub mod gradescope;
mod hint;
pub mod html;
pub mod json;
pub mod junit;
pub mod picture;
mod real;
mod sketch;
pub mod text;
pub mod trade;
mod wrap;

pub use real::Real;

/// The version of the report's JSON. A new field keeps it; a removed or changed one raises it.
pub const SCHEMA: u32 = 1;

/// The result of grading one submission.
///
/// Rows and columns are 0-based with the ring included; lines and columns of heat.cu and launches count from 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Version of this format: 1.
    pub schema: u32,
    pub verdict: Verdict,
    /// 0 passed, 1 the submission failed, 2 usage error, 3 could not grade.
    pub exit_code: u8,
    /// The first gating check that failed; null unless the verdict is `fail`.
    pub failing_check: Option<CheckId>,
    /// Why nothing could be graded, when that is the grader's or the machine's doing, or the command line's; else null.
    pub error: Option<String>,
    /// What ran the kernel: `cpu` or `cuda`; null when nothing was run.
    pub engine: Option<String>,
    /// Null when the grade never began.
    pub scope: Option<Scope>,
    /// Whether `portable` gates.
    pub strict: bool,
    /// What every initial grid was drawn from, below 2^53; `--seed` repeats it.
    pub seed: Option<u64>,
    /// Null when it could not be read.
    pub submission: Option<Submission>,
    /// All twelve checks in order; empty when the grade never began.
    pub checks: Vec<Check>,
    /// Why it failed, the likeliest first; empty when nothing failed or nothing is certain.
    #[serde(default)]
    pub causes: Vec<Cause>,
    /// Faults of main(), which is never run, that are certain from the text. They decide nothing.
    #[serde(default)]
    pub remarks: Vec<Remark>,
    /// What could be better about the kernel. It decides nothing, and is given only where every cell is right.
    #[serde(default)]
    pub advice: Vec<Advice>,
    /// The first cell that disagrees with the reference; null when none does.
    pub first_mismatch: Option<FirstMismatch>,
    /// All wrong cells of that grid after that launch, in coarse bins; null when none disagrees.
    #[serde(default)]
    pub error_map: Option<ErrorMap>,
    /// Null when no launch was counted.
    pub reads: Option<Reads>,
    /// How often a launch on a small grid reads each cell; null when no thread was watched.
    #[serde(default)]
    pub reads_map: Option<ReadsMap>,
    /// What one block of a watched launch reads and writes; null when no thread was watched.
    #[serde(default)]
    pub apron: Option<Apron>,
    /// Each site once, in the order in which they were seen.
    pub hazards: Vec<Hazard>,
    /// What compute-sanitizer's tools said; null unless they were asked for and could run.
    #[serde(default)]
    pub sanitizer: Option<Vec<Sanitizer>>,
    /// Null on an engine without a GPU.
    pub timing: Option<Timing>,
    /// What ptxas gave the kernel; null when it was not built for a GPU.
    pub gpu_build: Option<GpuBuild>,
    /// The learner's own words, control characters escaped; null when none were handed in.
    pub answer: Option<Answer>,
    /// What the compilers said about heat.cu.
    pub diagnostics: Vec<Diagnostic>,
    /// What the kernel or a static constructor printed: the learner's text, control characters escaped, at most 4 KiB.
    pub output: String,
    pub environment: Environment,
    /// Seconds that each stage took.
    pub durations: Durations,
}

/// What was graded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The path as it was given.
    pub path: String,
    /// Its last component.
    pub name: String,
    /// Where the program, or the archive that it came in, was found in a folder that does not have heat.cu at its top:
    /// `hw3/heat.cu`; null otherwise.
    #[serde(default)]
    pub file: Option<String>,
    /// SHA-256 of the source file's bytes, 64 hexadecimal digits; null when it could not be read.
    pub sha256: Option<String>,
    /// The kernel's name; null when it was not found.
    pub kernel: Option<String>,
    /// The line that defines it.
    pub kernel_line: Option<u32>,
    /// Null when it could not be evaluated.
    pub launch: Option<Launch>,
}

/// How the kernel is launched on the exercise's grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared: u32,
    pub source: LaunchSource,
    /// The line of the directive or launch statement.
    pub line: Option<u32>,
}

/// A fault that explains what failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub code: Code,
    /// What the kernel does, in one sentence.
    pub sentence: String,
    /// What shows it, a sentence each.
    pub evidence: Vec<String>,
    /// The command that prints the page on it.
    pub explain: String,
}

/// Something to mend beside the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    pub code: Code,
    /// Line of heat.cu.
    pub line: u32,
    pub sentence: String,
    /// The command that prints the page on it.
    pub explain: String,
}

/// What could be better about a kernel; no verdict rests on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    pub code: Code,
    /// Line of heat.cu, where it is about one.
    pub line: Option<u32>,
    pub sentence: String,
    /// The command that prints the page on it.
    pub explain: String,
}

/// The first cell, in row-major order, that disagrees, at the first launch where one does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FirstMismatch {
    /// Cells a side of the grid.
    pub n: u32,
    pub r: Real,
    /// Timesteps advanced when the mismatch appeared.
    pub steps: u32,
    /// The launch after which the cell is wrong.
    pub launch: u32,
    /// The last launch known to be right; 0 is the initial grid. `launch - 1` where the launch is known exactly.
    pub last_right: u32,
    pub row: u32,
    pub column: u32,
    pub expected: Real,
    pub got: Real,
    /// |got - expected|
    pub difference: Real,
    /// Block (x, y, z) of the thread that last wrote the cell; null when nobody did or it is not known.
    pub block: Option<[u32; 3]>,
    /// That thread (x, y, z) in its block.
    pub thread: Option<[u32; 3]>,
    /// Line of heat.cu at which it did.
    #[serde(default)]
    pub line: Option<u32>,
    /// The cells around it; null in reports of graders that did not look.
    #[serde(default)]
    pub around: Option<Neighbourhood>,
}

/// A few rows and columns around the first cell that disagrees, after that launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Neighbourhood {
    /// Row of its first cells.
    pub row: u32,
    /// Column of its first cells.
    pub column: u32,
    /// A list a row.
    pub expected: Vec<Vec<Real>>,
    /// Likewise.
    pub got: Vec<Vec<Real>>,
    /// A string a row and a character a cell: `#` where it is wrong, else `.`.
    pub wrong: Vec<String>,
    /// Rows at which the cells of other blocks begin, by who wrote them.
    pub block_rows: Vec<u32>,
    /// Columns likewise.
    pub block_columns: Vec<u32>,
}

/// Words read from global memory by one launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reads {
    /// 4-byte words read by the counted launch that read most.
    pub words: u64,
    /// Interior cells that it updated.
    pub cells: u64,
    /// Timesteps that it advanced.
    pub timesteps: u32,
    /// words / (cells * timesteps)
    pub per_cell_step: f64,
    /// Most words allowed per cell-step.
    pub budget: f64,
}

/// Something that threads did to memory or to a barrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hazard {
    pub kind: HazardKind,
    /// Line of heat.cu; null when the access lies in none.
    pub line: Option<u32>,
    /// Column of that line; null when not known.
    pub column: Option<u32>,
    /// blockIdx x, y, z; null when not known.
    pub block: Option<[u32; 3]>,
    /// threadIdx x, y, z; null when not known.
    pub thread: Option<[u32; 3]>,
    /// The other side of a race, or the other barrier.
    pub other: Option<Other>,
    /// One sentence.
    pub message: String,
    /// Cells a side of the trial that showed it.
    pub n: u32,
    /// The launch in which it first appeared.
    pub launch: u32,
    /// How often that trial saw it.
    pub count: u64,
}

/// The other thread of a hazard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// blockIdx x, y, z
    pub block: [u32; 3],
    /// threadIdx x, y, z
    pub thread: [u32; 3],
    /// Its line of heat.cu.
    pub line: Option<u32>,
}

/// What one tool of compute-sanitizer said of the kernel on small grids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sanitizer {
    pub tool: SanitizerTool,
    /// What it counted: threads of accesses and barriers, hazards of races. Null when it gave no answer.
    pub errors: Option<u64>,
    /// The first finding in one sentence, or why there was no answer; empty when nothing was found.
    pub message: String,
    /// Line of heat.cu of that finding; null when not known.
    pub line: Option<u32>,
}

/// What the kernel takes on the GPU, as ptxas says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuBuild {
    /// 75 is sm_75.
    pub arch: u32,
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory a block, bytes.
    pub shared: u32,
    /// Stack frame a thread, bytes: local arrays and spills.
    pub stack: u32,
    /// Bytes spilled a thread.
    pub spill_stores: u32,
    pub spill_loads: u32,
}

/// The learner's two rows and sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub rows: Vec<String>,
    /// When the learner would ship the kernel; empty when not said.
    pub ship: String,
}

/// One message of a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnostic {
    /// `error`, `warning` or `note`.
    pub severity: String,
    /// Line of heat.cu; null when the message belongs to none.
    pub line: Option<u32>,
    /// Column of that line; null when the compiler gave none.
    pub column: Option<u32>,
    /// One line, in the compiler's words.
    pub message: String,
    /// `nvcc`, `host_compiler` or `ptxas`.
    pub tool: String,
}

/// What graded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// Version of nvcc; null when there is none.
    pub nvcc: Option<String>,
    /// Version of the host compiler; null when there is none.
    pub host_compiler: Option<String>,
    /// Name of the GPU; null when none was to be used.
    pub gpu: Option<String>,
    /// The CUDA release that its driver speaks: `13.0`.
    pub driver: Option<String>,
    /// Why engine cpu ran the kernel where the best engine was asked for; null when there was no choice to explain.
    pub engine_reason: Option<String>,
    /// Why compute-sanitizer did not run where it was asked for; else null.
    #[serde(default)]
    pub sanitizer_reason: Option<String>,
    /// Which walls stood around compilers and kernels; null when the grade never began.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
    /// Version of this grader.
    pub grader: String,
}

impl Environment {
    /// This grader, and nothing else known.
    pub fn of_this_grader() -> Self {
        Self { grader: env!("CARGO_PKG_VERSION").to_owned(), ..Self::default() }
    }
}

/// Wall time, seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Durations {
    /// From the first byte read to the report.
    pub total: f64,
    /// nvcc and the host compiler, side by side.
    pub compile: f64,
    /// All trials.
    pub trials: f64,
    /// The submission's own launches, by kind of trial.
    pub by_trial: BTreeMap<String, f64>,
}
