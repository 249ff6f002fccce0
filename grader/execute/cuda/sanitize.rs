//! Runs a kernel under NVIDIA's compute-sanitizer: the same worker, started by one of its tools.
//!
//! Grids are then allocations of their own without guard bands, and the output's interior is left as it was allocated:
//! memcheck sees accesses outside an allocation and initcheck reads of what nobody wrote, so bands and poison would hide
//! both. A hang, a tool that does not start and one that does not end are no findings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::engine::{CudaRunner, Under};
use super::program::Program;
use super::sanitizer_log;
use crate::compile::scratch::scratch;
use crate::execute::sanitized::{Finding, Sanitized, SanitizerTool};
use crate::execute::{Runner, Trial, Watch};
use crate::grid::Grid;

/// Wall time of a tool. It needs some seconds, most of them to start.
const WALL: Duration = Duration::from_secs(60);
/// Bytes kept free behind each allocation, so that one is not taken for another: 64 rows of the larger grid and more.
const PADDING: usize = 1 << 17;

/// Small grids that a tool watches.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// n and r of each.
    pub grids: Vec<(u32, f32)>,
    pub launches: u32,
    pub seed: u64,
}

/// Runs all tools side by side. `sanitizer` is the compute-sanitizer, `executable` this binary. An error is the machine's.
pub fn sanitize(sanitizer: &Path, executable: &Path, program: &Program, sizes: &Sizes) -> Vec<Sanitized> {
    // Only the plain kernel: counters and the kernels that are timed beside it are not what is watched.
    let program = Program { counted: None, also_timed: Vec::new(), ..program.clone() };
    std::thread::scope(|scope| {
        let one = |tool| {
            let program = program.clone();
            scope.spawn(move || run(sanitizer, executable, program, sizes, tool))
        };
        let running = SanitizerTool::ALL.map(|tool| (tool, one(tool)));
        let ended = running.map(|(tool, thread)| {
            let findings = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Sanitized { tool, findings: findings.map_err(|error| format!("{error:#}")) }
        });
        ended.into()
    })
}

fn run(
    sanitizer: &Path,
    executable: &Path,
    program: Program,
    sizes: &Sizes,
    tool: SanitizerTool,
) -> Result<Vec<Finding>> {
    let folder = scratch()?;
    let log = folder.path().join("log");
    let under = Under { command: command(sanitizer, tool, &log), deadline: Instant::now() + WALL };
    let ran = trials(executable, under, program, sizes);
    let said = std::fs::read(&log).unwrap_or_default();
    // A finding counts also when the run did not come to its end: most findings end it.
    match (sanitizer_log::findings(&String::from_utf8_lossy(&said)), ran) {
        (Some(found), _) if !found.is_empty() => Ok(found),
        (_, Err(error)) => Err(error),
        (found, Ok(())) => found.context("it left no summary"),
    }
}

/// The trials of one tool; the worker, and the tool with it, has ended when this returns.
fn trials(executable: &Path, under: Under, program: Program, sizes: &Sizes) -> Result<()> {
    let mut runner = CudaRunner::start_under(executable, under)?;
    runner.load(program);
    let mut ran = Ok(());
    for &(n, r) in &sizes.grids {
        let initial = Arc::new(Grid::initial(n as usize, sizes.seed));
        let trial = Trial {
            initial,
            r,
            launches: sizes.launches,
            watch: Watch::Fast,
            keep: Vec::new(),
            state: None,
            keep_state: Vec::new(),
            writers_of: None,
            cell_reads: false,
            order: None,
            shortcuts: false,
        };
        match runner.run(&trial).map(|seen| seen.fault.is_some()) {
            Ok(false) => {}
            Ok(true) => break,
            Err(error) => {
                ran = Err(error);
                break;
            }
        }
    }
    runner.end_worker();
    ran
}

/// The command line up to the program that it starts.
fn command(sanitizer: &Path, tool: SanitizerTool, log: &Path) -> Vec<PathBuf> {
    let mut words: Vec<PathBuf> = vec![sanitizer.into(), "--tool".into(), tool.name().into()];
    words.extend(["--log-file".into(), log.into(), "--show-backtrace".into(), "device".into()]);
    words.extend(["--print-limit", "1000"].map(PathBuf::from));
    if tool == SanitizerTool::Memcheck {
        words.extend(["--padding".into(), PADDING.to_string().into()]);
        words.extend(["--report-api-errors", "no"].map(PathBuf::from));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_writes_its_log_where_it_is_read() {
        let words = |tool| {
            let words = command(Path::new("/cuda/compute-sanitizer"), tool, Path::new("/scratch/log"));
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        let said = words(SanitizerTool::Racecheck);
        assert!(said.starts_with("/cuda/compute-sanitizer --tool racecheck --log-file /scratch/log "), "{said}");
        assert!(words(SanitizerTool::Memcheck).contains("--padding 131072") && !said.contains("--padding"));
    }
}
