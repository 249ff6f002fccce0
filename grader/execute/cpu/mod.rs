//! Engine cpu: heat.cu compiled for the host, every CUDA thread a coroutine, memory watched through compiler hooks.
//!
//! The grader's side: [`engine`] starts a worker process and turns what it says into an observation, with [`symbols`]
//! for lines. The worker's side, in the order of a launch: [`worker`] serves requests, [`launch`] shares blocks among
//! lanes, [`lane`] runs a block ([`switch`], [`stacks`], [`warp`], [`copies`]), [`hooks`] answers the compiled code through
//! the table of [`abi`], [`print`] what it prints, [`checker`] looks accesses up in [`shadow`] memory and the [`arena`] of the grids.

mod abi;
mod arena;
mod banks;
mod checker;
mod copies;
pub mod engine;
mod hooks;
mod lane;
mod launch;
mod loops;
mod message;
mod object;
mod print;
mod process;
mod raw;
mod shadow;
mod signals;
mod stacks;
mod switch;
mod symbols;
mod tally;
mod telling;
mod warp;
pub mod worker;
mod yardstick;

pub use abi::DYNAMIC_SHARED;
pub use engine::{CpuRunner, Program, Role, this_executable};
pub use yardstick::Yardstick;
