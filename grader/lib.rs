//! heat-grader: the autograder for *a kernel that takes two timesteps of the 2D heat equation per launch*.
//!
//! ```text
//! submission --> compile --> execute --> judge --> report
//!                effect 1    effect 2    pure      pure
//! ```
//!
//! The modules below stand in the order of that pipeline. What is asked comes first ([`exercise`], [`grid`]), then the
//! five stations ([`submission`], [`compile`], [`execute`], [`judge`], [`report`]), then what drives them: [`grade`]
//! takes one submission down the pipe, [`batch`] many side by side, [`confine`] holds the walls around both effects, [`cli`] is the face. A learner's fault is data on this road; the grader's own
//! fault is an [`anyhow::Error`] and ends with exit code 3.

pub mod exercise;
pub mod grid;
mod memory;

pub mod submission;

pub mod compile;

pub mod execute;

pub mod judge;
pub mod points;
pub mod verdict;

pub mod report;

pub mod album;
pub mod autograder;
pub mod batch;
pub mod cli;
pub mod confine;
pub mod delivery;
pub mod doctor;
pub mod exit_code;
pub mod explain;
pub mod grade;
pub mod interrupt;
pub mod outbox;
pub mod progress;
pub mod selftest;
mod watch;

#[cfg(test)]
#[path = "tests/mutate.rs"]
mod mutate;
