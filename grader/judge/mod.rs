//! Pure judgement: observations in, checks out. Imports no process, file system or GPU.

mod bracket;
pub mod case;
pub mod cells;
pub mod plan;
