//! The workers of engine cuda before there is an engine: they make their contexts while compilers run, or start when
//! their grade, one of many, comes to need the GPU.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use anyhow::{Result, bail};

use super::EngineChoice;
use crate::execute::cpu::this_executable;
use crate::execute::cuda::{CudaRunner, GpuInfo};

/// Grids that the runs of a grade keep at most, where nothing is wrong: the launches counted, the spot checks with the launch
/// before each and the last.
const REFERENCE_KEEPS: usize = 3;
const SUBMISSION_KEEPS: usize = 11;

/// The workers of engine cuda from their start on, until an engine takes them.
pub struct Start {
    choice: EngineChoice,
    pair: Mutex<Result<Option<Pair>, String>>,
    /// Set from the start where the workers are not: they start when they are needed.
    info: OnceLock<Result<GpuInfo, String>>,
    /// Cells on a side of the grids of workers that start when they are needed.
    deferred: Option<u32>,
}

/// The two workers, each with a context of its own.
pub struct Pair {
    pub reference: CudaRunner,
    pub submission: CudaRunner,
}

impl Start {
    /// Starts what the choice asks for, for grids of n x n cells. Returns at once.
    pub fn of(choice: EngineChoice, n: u32) -> Self {
        let pair = match choice {
            EngineChoice::Cpu => Ok(None),
            EngineChoice::Auto | EngineChoice::Cuda => Pair::of(n, CudaRunner::start).map(Some),
        };
        Self { choice, pair: Mutex::new(pair), info: OnceLock::new(), deferred: None }
    }

    /// The same with workers that start when they are needed, on a GPU that is known already.
    pub fn deferred(choice: EngineChoice, n: u32, info: Result<GpuInfo, String>) -> Self {
        Self { choice, pair: Mutex::new(Ok(None)), info: OnceLock::from(info), deferred: Some(n) }
    }

    /// The GPU's compute capability, once the workers know it; `None` when there is no GPU, or none was wanted. An error
    /// when there has to be one.
    pub fn arch(&self) -> Result<Option<u32>> {
        let arch = match &mut *self.pair.lock().unwrap_or_else(PoisonError::into_inner) {
            Ok(Some(pair)) => pair.reference.arch().ok().and_then(Result::ok),
            _ => None,
        };
        // Why there is none is told in one place.
        if arch.is_some() { Ok(arch) } else { Ok(self.info()?.and_then(Result::ok).map(|gpu| gpu.arch)) }
    }

    /// The GPU, or why there is none; `None` when none was wanted. Waits for the workers' first words. An error when there
    /// has to be one.
    pub fn info(&self) -> Result<Option<Result<GpuInfo, String>>> {
        if self.choice == EngineChoice::Cpu {
            return Ok(None);
        }
        let info = self.info.get_or_init(|| match &mut *self.pair.lock().unwrap_or_else(PoisonError::into_inner) {
            Ok(Some(pair)) => pair.reference.gpu().unwrap_or_else(|error| Err(format!("{error:#}"))),
            Ok(None) => Err("the GPU is in use".to_owned()),
            Err(reason) => Err(reason.clone()),
        });
        match info {
            Err(reason) if self.choice == EngineChoice::Cuda => bail!("engine cuda cannot run here: {reason}"),
            info => Ok(Some(info.clone())),
        }
    }

    /// The workers, once, or why there are none.
    pub fn take(&self) -> Result<Pair, String> {
        let mut pair = self.pair.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *pair, self.deferred) {
            (Ok(None), Some(n)) => Pair::of(n, CudaRunner::later),
            (Ok(pair), _) => pair.take().ok_or_else(|| "the GPU is in use".to_owned()),
            (Err(reason), _) => Err(reason.clone()),
        }
    }
}

impl Pair {
    /// For grids of n x n cells.
    fn of(n: u32, make: impl Fn(&Path) -> Result<CudaRunner>) -> Result<Self, String> {
        let made = || {
            let executable = this_executable()?;
            let mut pair = Self { reference: make(&executable)?.trusting(), submission: make(&executable)? };
            pair.reference.expect(n as usize, REFERENCE_KEEPS);
            pair.submission.expect(n as usize, SUBMISSION_KEEPS);
            Ok(pair)
        };
        made().map_err(|error: anyhow::Error| format!("{error:#}"))
    }
}
