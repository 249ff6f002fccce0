//! Effect 1: compilers. Yields every build that a grade needs, so that nothing loops back to it.
//!
//! [`toolkit`] finds the compilers ([`fetch`] downloads nvcc once where there is none), [`nvcc`] asks whether a text is
//! CUDA and turns it into PTX and cubins, [`diagnostics`] reads what compilers say, [`process`] runs them.

mod declarations;
pub mod diagnostics;
pub mod fetch;
pub mod host;
pub mod landlock;
pub mod nvcc;
mod output;
pub mod process;
mod rewrite;
pub mod scratch;
pub mod thread_loops;
pub mod toolkit;
