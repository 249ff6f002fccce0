//! Effect 1: compilers. Yields every build that a grade needs, so that nothing loops back to it.
//!
//! [`toolkit`] finds the compilers ([`fetch`] downloads nvcc once where there is none), [`nvcc`] asks whether a text is
//! CUDA, [`gpu`] and [`ptx`] turn it into cubins, one of which counts its reads, [`host`] builds it for engine cpu ([`rewrite`],
//! [`unreached`], [`tables`], [`thread_loops`]), [`conditions`] and [`preprocessed`] ask whether both see one program,
//! [`once`] does none of it twice ([`kept`] remembers), [`diagnostics`] reads what compilers say, [`process`] runs them.

pub mod conditions;
mod declarations;
pub mod diagnostics;
mod externals;
pub mod fetch;
pub mod functions;
pub mod gpu;
pub mod host;
mod host_headers;
mod host_only;
pub mod kept;
mod kernels;
mod naming;
mod never_built;
pub mod nvcc;
pub mod once;
mod output;
pub mod preprocessed;
pub mod process;
pub mod ptx;
mod rewrite;
pub mod scratch;
mod spelling;
mod tables;
pub mod thread_loops;
pub mod toolkit;
mod unreached;
mod unseen;

#[cfg(test)]
#[path = "../tests/compile_fuzz.rs"]
mod fuzz;
