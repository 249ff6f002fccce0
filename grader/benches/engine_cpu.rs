//! Time of the cpu engine, in nanoseconds a cell-step, for the kernels of the lesson and the model kernel: `cargo bench`.
//!
//! One worker, one and two lanes; launch times as the worker measures them, without start-up and transfers.

use std::path::Path;
use std::sync::Arc;

use heat_grader::compile::host::{HostCode, Wanted, build};
use heat_grader::compile::nvcc::Outcome;
use heat_grader::compile::toolkit::find_host_compiler;
use heat_grader::execute::cpu::{CpuRunner, Program};
use heat_grader::execute::{Runner, Trial, Watch};
use heat_grader::grid::Grid;
use heat_grader::submission::Geometry;

/// n, launches, how closely watched.
const RUNS: [(usize, u32, Watch); 3] = [(512, 40, Watch::Fast), (512, 4, Watch::Count), (260, 4, Watch::Full)];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let (reference, model) = (read("reference/heat.cu"), read("fixtures/right/plain/heat.cu"));
    println!("{:<16}{:<8}{:>6}{:>16}{:>16}", "kernel", "watch", "lanes", "ns CPU", "ns wall");
    for (source, kernel, steps) in
        [(&reference, "heatStepGlobal", 1), (&reference, "heatStepTiled", 1), (&model, "heatTwoStep", 2)]
    {
        let gxx = find_host_compiler().found().expect("g++");
        let Outcome::Compiled(builds) =
            build(&gxx, source, kernel, Wanted::FastAndChecked, HostCode::Reached(kernel)).expect("g++ runs").outcome
        else {
            panic!("{kernel} does not compile")
        };
        let geometry = |n: u32| {
            Ok(Geometry { grid: [(n - 2).div_ceil(32), (n - 2).div_ceil(8), 1], block: [32, 8, 1], shared: 0 })
        };
        let program = Program {
            fast: builds.fast.clone(),
            checked: builds.checked.clone(),
            kernel: kernel.to_owned(),
            source: Arc::from(source.as_str()),
            geometry: Arc::new(geometry),
        };
        for lanes in [1, 2] {
            let mut runner = CpuRunner::new(program.clone(), Path::new(env!("CARGO_BIN_EXE_heat-grader")), lanes);
            for (n, launches, watch) in RUNS {
                let initial = Arc::new(Grid::initial(n, 7));
                let trial = Trial {
                    initial,
                    r: 0.2,
                    launches,
                    watch,
                    keep: vec![launches],
                    writers_of: None,
                    cell_reads: false,
                    shortcuts: true,
                };
                runner.run(&trial).expect("a warm-up");
                let seen = runner.run(&trial).expect("a run");
                let cell_steps = ((n - 2) * (n - 2)) as f64 * f64::from(launches) * f64::from(steps);
                let nanoseconds = |seconds: f64| seconds / cell_steps * 1e9;
                println!(
                    "{kernel:<16}{:<8}{lanes:>6}{:>16.1}{:>16.1}",
                    format!("{watch:?}"),
                    nanoseconds(seen.cpu_seconds),
                    nanoseconds(seen.wall_seconds)
                );
            }
        }
    }
}
