//! What was handed in, read as text only: the file, its kernel, its launch, its answer. Runs nothing.

pub mod answer;
pub mod archive;
mod arithmetic;
mod arrivals;
pub mod beside;
mod calls;
mod collector;
pub mod conditions;
mod constructors;
pub mod constructs;
mod containers;
mod defaults;
mod destructors;
pub mod directive;
mod effects;
pub mod evaluate;
mod execute;
mod expansion;
mod expressions;
pub mod fault;
mod find;
pub mod folder;
mod forget;
pub mod handed;
mod instances;
pub mod interpreter;
pub mod kernel;
mod lambdas;
pub mod launch;
mod lex_literals;
pub mod lexer;
mod library;
pub mod macros;
mod objects;
mod operators;
mod overloads;
pub mod owner;
mod packs;
mod parse_casts;
mod parse_lambdas;
mod parse_structs;
mod parse_types;
pub mod parser;
mod places;
pub mod program;
mod reach;
pub mod remarks;
mod run_to;
mod scan;
mod scan_functions;
mod scan_local;
mod scan_names;
mod shapes;
mod signature;
mod sites;
pub mod source;
mod statements;
mod text;
pub mod tree;
mod twins;
pub mod types;
pub mod value;
mod walk;

#[cfg(test)]
mod archive_tests;
#[cfg(test)]
mod fixture_tests;
#[cfg(test)]
mod follow_tests;
#[cfg(test)]
mod host_code_tests;
#[cfg(test)]
mod launch_tests;
#[cfg(test)]
mod launch_values_tests;
#[cfg(test)]
mod robustness_tests;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{Answer, AnswerRow, AnswerSource, find_answer};
pub use constructs::{Construct, constructs};
pub use kernel::{KernelFault, find_kernel};
pub use launch::{Launch, LaunchFault, find_launch};
pub use program::Program;
pub use shapes::{SharedShape, shared_shapes};
pub use source::{ReadError, SourceFault, Submission, UsageError, read};

/// Takes a submission's text apart, for [`find_kernel`] and [`find_launch`]. Never fails: what cannot be read is
/// passed over.
pub fn parse(submission: &Submission) -> Arc<Program> {
    Arc::new(Program::new(&submission.text))
}

/// How a kernel is launched on an n x n grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Geometry {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block, bytes.
    pub shared: u32,
}

/// Gives the launch for a grid of n x n cells, or why there is none.
pub type GeometryOf = dyn Fn(u32) -> Result<Geometry, String> + Send + Sync;

/// Which of the contract's three sources gave the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LaunchSource {
    /// `// grader: kernel=NAME block=32x8 tile=32x8 shared=0`
    Directive,
    /// The learner's own launch statement.
    LaunchStatement,
    /// Block 32x8, tile 32x8.
    Default,
}

/// The learner's kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name without template arguments, namespaces included: `ns::twoStep`.
    pub name: String,
    /// The C++ expression that calls it from the end of heat.cu: `ns::twoStep<32, 8>`.
    pub call: String,
    /// Line of its definition in heat.cu, from 1.
    pub line: u32,
}
