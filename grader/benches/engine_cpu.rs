//! Time of engine cpu: `cargo bench --bench engine_cpu`. Every figure is nanoseconds of what its name says, by the wall clock
//! as the worker measures it, without start-up and transfers.
//!
//! `cell-step` is for the kernels of the lesson and the model two-step kernel, watched in three ways, on one and two OS threads.
//! `coroutine switch` is what a thread takes to get past a barrier that only coroutines can wait at; `hook` is what an
//! observed read takes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use heat_grader::compile::host::{HostBuilds, HostCode, Wanted, build};
use heat_grader::compile::nvcc::Outcome;
use heat_grader::compile::toolkit::find_host_compiler;
use heat_grader::execute::cpu::{CpuRunner, Program};
use heat_grader::execute::{Runner, Trial, Watch};
use heat_grader::grid::Grid;
use heat_grader::submission::Geometry;

/// How closely watched, n, launches of one run. Coroutines make the first launch of a run and the last one, loops those between:
/// as many as in a thousand timesteps.
const RUNS: [(Watch, usize, u32); 3] = [(Watch::Fast, 512, 500), (Watch::Count, 512, 4), (Watch::Full, 260, 4)];

/// Barriers within a loop in a branch: each is one switch a thread, as the source cannot be cut there.
const SWITCHES: u32 = 64;
const SWITCHING: &str = "\
__global__ void work(const float* in, float* out, int n, float r) {
    if (n > 0) {
        for (int turn = 0; turn < 64; turn++) {
            __syncthreads();
        }
    }
    int row = blockIdx.y * blockDim.y + threadIdx.y + 1, column = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (row < n - 1 && column < n - 1) {
        out[row * n + column] = in[row * n + column];
    }
}
";

/// Reads that no compiler merges, from a row that stays in the processor's cache.
const READS: u32 = 256;
const READING: &str = "\
__global__ void work(const float* in, float* out, int n, float r) {
    int row = blockIdx.y * blockDim.y + threadIdx.y + 1, column = blockIdx.x * blockDim.x + threadIdx.x + 1;
    if (row < n - 1 && column < n - 1) {
        const volatile float* cells = in;
        float sum = 0.0f;
        for (int at = 0; at < 256; at++) {
            sum += cells[at % 64];
        }
        out[row * n + column] = sum;
    }
}
";

/// A kernel with its objects.
struct Kernel {
    program: Program,
    _builds: HostBuilds,
}

impl Kernel {
    fn of(source: &str, name: &str) -> Self {
        let gxx = find_host_compiler().found().expect("g++");
        let built = build(&gxx, source, name, Wanted::FastAndChecked, HostCode::Reached(name)).expect("g++ runs");
        let Outcome::Compiled(builds) = built.outcome else { panic!("{name} does not compile") };
        let geometry = |n: u32| {
            Ok(Geometry { grid: [(n - 2).div_ceil(32), (n - 2).div_ceil(8), 1], block: [32, 8, 1], shared: 0 })
        };
        let program = Program {
            fast: builds.fast.clone(),
            checked: builds.checked.clone(),
            kernel: name.to_owned(),
            source: Arc::from(source),
            geometry: Arc::new(geometry),
            loads: None,
        };
        Self { program, _builds: builds }
    }

    /// Benchmarks runs of this kernel: the time of one of `things` that a launch does.
    fn measure(
        &self,
        criterion: &mut Criterion,
        name: &str,
        lanes: usize,
        (watch, n, launches): (Watch, usize, u32),
        things: f64,
    ) {
        let binary = Path::new(env!("CARGO_BIN_EXE_heat-grader"));
        let mut runner = CpuRunner::new(self.program.clone(), binary, lanes);
        let initial = Arc::new(Grid::initial(n, 7));
        let trial = Trial {
            initial,
            r: 0.2,
            launches,
            watch,
            keep: vec![launches],
            state: None,
            keep_state: Vec::new(),
            writers_of: None,
            cell_reads: false,
            order: None,
            shortcuts: true,
        };
        criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                // A run does many things: as many runs as criterion wants iterations, and the mean time of one thing in each.
                let run = |_| runner.run(&trial).expect("a run").wall_seconds / things / f64::from(launches);
                Duration::from_secs_f64((0..iterations).map(run).sum())
            });
        });
    }
}

fn interior(n: usize) -> f64 {
    ((n - 2) * (n - 2)) as f64
}

fn cell_steps(criterion: &mut Criterion) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let (reference, model) = (read("reference/heat.cu"), read("fixtures/right/plain/heat.cu"));
    for (source, name, steps) in
        [(&reference, "heatStepGlobal", 1.0), (&reference, "heatStepTiled", 1.0), (&model, "heatTwoStep", 2.0)]
    {
        let kernel = Kernel::of(source, name);
        for run in RUNS {
            for lanes in [1, 2] {
                let title = format!("cell-step/{name}/{:?}/{lanes}", run.0);
                kernel.measure(criterion, &title, lanes, run, interior(run.1) * steps);
            }
        }
    }
}

fn switches(criterion: &mut Criterion) {
    let kernel = Kernel::of(SWITCHING, "work");
    kernel.measure(criterion, "coroutine switch", 1, (Watch::Fast, 260, 4), interior(260) * f64::from(SWITCHES));
}

fn hooks(criterion: &mut Criterion) {
    let kernel = Kernel::of(READING, "work");
    for watch in [Watch::Fast, Watch::Count, Watch::Full] {
        let title = format!("hook/{watch:?}");
        kernel.measure(criterion, &title, 1, (watch, 132, 2), interior(132) * f64::from(READS));
    }
}

criterion_group! {
    name = engine;
    config = Criterion::default().sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = cell_steps, switches, hooks
}
criterion_main!(engine);
