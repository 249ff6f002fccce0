//! Engine cuda: cubins run on a GPU, in a worker process that alone talks to the driver.
//!
//! The grader's side: [`engine`] starts a worker, gives it a [`program`] and turns what it says into an [`observation`],
//! [`faults`] puts driver errors into words, [`timing`] lets two workers take turns under the GPU's [`lock`]. The worker's
//! side: [`worker`] serves requests, [`run`] makes a trial and [`rounds`] a timed round on [`grids`] between guard bands,
//! [`shared`] memory carries grids
//! between both, [`counter`] reads the counted build's counters, [`clocks`] asks NVML, and [`driver`] is all that calls the driver.
//! [`sanitize`] starts the same worker under NVIDIA's compute-sanitizer and reads its [log](`sanitizer_log`).

mod clocks;
mod counter;
mod driver;
pub mod engine;
mod faults;
mod grids;
mod lock;
mod message;
mod observation;
mod program;
mod rounds;
mod run;
pub mod sanitize;
mod sanitizer_log;
mod shared;
pub mod timing;
pub mod worker;

pub use engine::{CudaRunner, probe};
pub use message::{Clocks, GpuInfo};
pub use program::{Counted, Kernel, Program};
pub use timing::{Timed, TimedGrid, TimingPlan, prepare, time};
