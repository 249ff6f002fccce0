//! Effect 1: compilers. Yields every build that a grade needs, so that nothing loops back to it.
//!
//! [`toolkit`] finds the compilers ([`fetch`] downloads nvcc once where there is none), [`nvcc`] asks whether a text is
//! CUDA and turns it into PTX and cubins, [`diagnostics`] reads what compilers say, [`process`] runs them.

pub mod diagnostics;
pub mod fetch;
pub mod host;
mod host_only;
pub mod landlock;
pub mod nvcc;
mod output;
pub mod process;
mod rewrite;
pub mod scratch;
pub mod toolkit;
