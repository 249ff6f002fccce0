//! What the grader and a worker of engine cpu say to each other.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::object::ObjectMap;
use super::raw::RawObservation;
use crate::execute::{Actor, Watch};
use crate::grid::Window;
use crate::submission::Geometry;

/// To the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Load the object; answered by [`Reply::Ready`].
    Load { object: PathBuf, map: ObjectMap },
    /// Run the static constructors; answered by [`Reply::Ready`]. The worker serves nothing else.
    Construct,
    /// Give the program's variables, named with their sizes in bytes, what the blob holds; answered by [`Reply::Ready`].
    Restore(Vec<(String, usize)>),
    /// Run a trial; the blob holds the initial grid. Answered by launches and grids, then [`Reply::Done`].
    Run(Run),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    pub n: usize,
    pub r: f32,
    pub launches: u32,
    pub watch: Watch,
    pub keep: Vec<u32>,
    pub keep_state: Vec<u32>,
    pub writers_of: Option<Window>,
    pub cell_reads: bool,
    pub order: Option<u64>,
    pub geometry: Geometry,
    /// Whether blocks may run as loops over their threads.
    pub loops: bool,
    /// OS threads to share the blocks.
    pub lanes: usize,
}

/// From the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    Ready,
    /// A launch begins.
    Launch(u32),
    /// The grid after a launch; the blob holds it.
    Grid(u32),
    /// The program's variables after a launch, named with their sizes in bytes; the blob holds them.
    State(u32, Vec<(String, usize)>),
    Done(Box<RawObservation>),
    /// A signal ended the run (of SIGSYS, `address` is the number of the system call), or the grader asked where it stands (SIGUSR1). `codes` are
    /// code addresses, the innermost first. Written by the signal handler.
    Signal {
        signal: i32,
        address: u64,
        codes: Vec<u64>,
        actor: Option<Actor>,
        stack_overflow: bool,
    },
    /// The worker itself failed.
    Failed(String),
}
