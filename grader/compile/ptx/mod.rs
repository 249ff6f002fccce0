//! Counts the global reads of a kernel: an addition of the bytes before every statement of PTX that reads global memory.
//!
//! PTX is text, and text that a learner had a hand in (`asm`), so a disagreement with ptxas about what it says could
//! hide a read. Therefore [`text`] takes the PTX apart into statements and [`module`] writes them anew, one a line,
//! without comments: ptxas assembles that text and no other, for the plain build as for the counted one. Every statement
//! must be on the list of [`opcodes`]; anything else makes the kernel [`NotCountable`], never miscounted. [`rescan`]
//! then reads the result once more with eyes of its own.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub mod count;
pub mod module;
pub mod opcodes;
pub mod rescan;
pub mod scope;
pub mod text;

pub use module::Module;

/// Counters of a counted module: 32 lanes of 256 multiprocessors (a GPU with more shares some). An addition that all
/// threads make to one word takes several times the kernel's own time.
pub const SLOTS: usize = 32 * 256;

/// Why the reads of a kernel cannot be counted.
///
/// `hides` is true for what nvcc itself never writes, so that it comes from inline PTX, and what has no use in a stencil
/// kernel but to mislead a reader of the text:
///
/// - a preprocessor line (`#define`) or a character outside PTX's alphabet,
/// - a comment, a string, a brace or a statement that does not end, or a brace too many,
/// - a second `.version`, `.target` or `.address_size`,
/// - a name that the grader drew at random.
///
/// All else is CUDA that the grader cannot count: textures, surfaces, tensor copies and tensor-core loads, multicast
/// memory, calls through pointers and of functions that are not in the file, instructions unknown to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCountable {
    /// In plain words: `a texture read (tex.1d)`.
    pub construct: String,
    /// Line of heat.cu, when compiled with -lineinfo.
    pub line: Option<u32>,
    /// Whether it serves to hide reads.
    pub hides: bool,
}

impl NotCountable {
    /// Ordinary CUDA that cannot be counted.
    fn ordinary(construct: impl Into<String>, line: Option<u32>) -> Self {
        Self { construct: construct.into(), line, hides: false }
    }

    /// Something on the list above.
    fn hiding(construct: impl Into<String>, line: Option<u32>) -> Self {
        Self { construct: construct.into(), line, hides: true }
    }
}

/// The PTX with a counter of bytes read from global memory: [`SLOTS`] words of 64 bits under the name `counter`, whose
/// sum grows by the bytes of every read. `counter` is an identifier that the text cannot know; every function counts.
pub fn count_reads(ptx: &str, counter: &str) -> Result<String, NotCountable> {
    Module::parse(ptx)?.counted(counter)
}

/// As [`count_reads`], for these kernels and what they call: the rest is left out.
pub fn count_reads_of(ptx: &str, kernels: &[&str], counter: &str) -> Result<String, NotCountable> {
    Module::parse(ptx)?.keep(&BTreeSet::from_iter(kernels.iter().copied())).counted(counter)
}

#[cfg(test)]
#[path = "../../tests/compile_ptx.rs"]
mod tests;
