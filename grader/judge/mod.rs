//! Pure judgement: observations in, checks out. Imports no process, file system or GPU.

pub mod cells;
