//! Engine cuda on a GPU: the shipped kernels, faults one by one, counts, times. Tests named gpu_ need a GPU, nvcc and g++;
//! HEAT_GRADER_BIN names the heat-grader whose worker they start, where it is not cargo's.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use heat_grader::compile::gpu::{self, GpuBuilds, ReferenceBuilds};
use heat_grader::compile::nvcc::Outcome;
use heat_grader::compile::toolkit::{HostCompiler, Toolkit, find_host_compiler, find_toolkit};
use heat_grader::execute::cuda::{Counted, CudaRunner, GpuInfo, Kernel, Program, TimingPlan, prepare, probe, time};
use heat_grader::execute::{HazardKind, Memory, Observation, Processor, RunFault, Runner, TimedBy, Trial, Watch};
use heat_grader::grid::Grid;
use heat_grader::judge::timing::{table, timing};
use heat_grader::submission::Geometry;

const MODEL: &str = include_str!("../../fixtures/right/plain/heat.cu");
const SIGNATURE: &str = "(const float* __restrict__ in, float* __restrict__ out, int n, float r)";
/// The limits of a Tesla T4, which are the lesson's.
const LESSON: u32 = 75;

fn executable() -> PathBuf {
    std::env::var_os("HEAT_GRADER_BIN").map_or_else(|| env!("CARGO_BIN_EXE_heat-grader").into(), PathBuf::from)
}

fn tools() -> (Toolkit, HostCompiler) {
    (find_toolkit(true).found().expect("nvcc"), find_host_compiler().found().expect("g++"))
}

fn the_gpu() -> GpuInfo {
    probe(&executable()).expect("a worker starts").expect("a GPU")
}

type Shape = fn(u32) -> Geometry;

/// Blocks of 32 x 8 threads over the interior.
fn tiles(n: u32) -> Geometry {
    Geometry { grid: [(n - 2).div_ceil(32), (n - 2).div_ceil(8), 1], block: [32, 8, 1], shared: 0 }
}

fn whole(n: u32) -> Geometry {
    Geometry { grid: [n.div_ceil(32), n.div_ceil(8), 1], block: [32, 8, 1], shared: 0 }
}

fn kernel(name: &str, cubin: &[u8], entry: &str, shape: Shape, timesteps: u32) -> Kernel {
    let geometry = Arc::new(move |n| Ok(shape(n)));
    Kernel { name: name.to_owned(), cubin: Arc::from(cubin), entry: entry.to_owned(), geometry, timesteps }
}

fn counted(builds: &gpu::Counted, entry: &str) -> Counted {
    let (cubin, counter) = (Arc::from(&builds.cubin[..]), builds.counter.clone());
    Counted { cubin, entry: entry.to_owned(), counter, slots: builds.slots }
}

fn copy_grid(reference: &ReferenceBuilds) -> Kernel {
    kernel("copyGrid", &reference.copy, &reference.copy_grid, whole, 1)
}

/// The reference's program with one of its two single-step kernels.
fn reference_program(builds: &ReferenceBuilds, tiled: bool) -> Program {
    let step = |name: &str, entry: &str| kernel(name, &builds.steps, entry, tiles, 1);
    let global = step("heatStepGlobal", &builds.heat_step_global);
    let tiled_step = step("heatStepTiled", &builds.heat_step_tiled);
    let (kernel, other) = if tiled { (tiled_step, global) } else { (global, tiled_step) };
    let counted = Some(counted(&builds.counted, &kernel.entry));
    Program { kernel, counted, also_timed: vec![copy_grid(builds), other], arch: LESSON }
}

fn program(builds: &GpuBuilds, shape: Shape) -> Program {
    let counted = builds.counted.as_ref().ok().map(|build| counted(build, &builds.entry));
    let kernel = kernel("heatTwoStep", &builds.plain, &builds.entry, shape, 2);
    Program { kernel, counted, also_timed: Vec::new(), arch: LESSON }
}

fn runner(program: Program) -> CudaRunner {
    let mut runner = CudaRunner::start(&executable()).expect("a worker starts");
    runner.load(program);
    runner
}

fn build(tools: &(Toolkit, HostCompiler), source: &str, name: &str, arch: u32) -> GpuBuilds {
    match gpu::build(&tools.0, &tools.1, source, name, arch).expect("nvcc runs").outcome {
        Outcome::Compiled(builds) => builds,
        other => panic!("{other:?}"),
    }
}

fn trial(n: usize, launches: u32, watch: Watch) -> Trial {
    let initial = Arc::new(Grid::initial(n, 7));
    Trial {
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
    }
}

fn run(runner: &mut CudaRunner, trial: &Trial) -> Observation {
    runner.run(trial).expect("the engine works")
}

/// Whether two grids agree in every bit.
fn same(a: &Observation, b: &Observation) -> bool {
    let bits =
        |seen: &Observation| seen.grids.last().map(|(_, grid)| grid.cells().iter().map(|c| c.to_bits()).collect());
    let (a, b): (Option<Vec<u32>>, Option<Vec<u32>>) = (bits(a), bits(b));
    a.is_some() && a == b
}

#[test]
fn a_worker_says_whether_there_is_a_gpu() {
    if let Err(reason) = probe(&executable()).expect("a worker starts") {
        assert!(reason.contains("driver") || reason.contains("context"), "{reason}");
        let program =
            Program { kernel: kernel("k", &[], "k", tiles, 2), counted: None, also_timed: Vec::new(), arch: LESSON };
        let error = runner(program).run(&trial(36, 1, Watch::Fast)).expect_err("no GPU");
        assert!(format!("{error:#}").contains(&reason), "{error:#}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_shipped_kernels_agree_in_every_bit_and_counts_are_the_hardware_counters() {
    let started = Instant::now();
    let gpu = the_gpu();
    eprintln!("{gpu:?}, probed in {:.3} s", started.elapsed().as_secs_f64());
    let tools = tools();
    let reference = gpu::build_reference(&tools.0, &tools.1, gpu.arch).expect("the reference compiles");
    let model = build(&tools, MODEL, "heatTwoStep", gpu.arch);
    assert!(model.counted.is_ok(), "{:?}", model.counted);
    let mut runners = [
        ("heatStepGlobal", runner(reference_program(&reference, false)), 1, 20_930_580),
        ("heatStepTiled", runner(reference_program(&reference, true)), 1, 5_561_092),
        ("heatTwoStep", runner(program(&model, tiles)), 2, 7_056_400),
    ];
    for steps in [6, 1000] {
        let mut expected: Option<Observation> = None;
        for (name, runner, timesteps, words) in &mut runners {
            let launches = steps / *timesteps;
            let mut best = [f64::MAX; 2];
            for watch in [Watch::Fast, Watch::Count, Watch::Fast, Watch::Count] {
                let whole = Instant::now();
                let seen = run(runner, &trial(2048, launches, watch));
                let counted = watch == Watch::Count;
                eprintln!(
                    "{name}, {launches} launches, {watch:?}: {:.2} ms of launches, {:.0} ms in all",
                    seen.wall_seconds * 1e3,
                    whole.elapsed().as_secs_f64() * 1e3
                );
                best[usize::from(counted)] = best[usize::from(counted)].min(seen.wall_seconds);
                assert_eq!((&seen.fault, &seen.hazards, &seen.input_changed), (&None, &vec![], &None), "{name}");
                let counts = if counted { vec![*words; launches as usize] } else { Vec::new() };
                assert_eq!(seen.words_read, counts, "{name}");
                assert!(expected.as_ref().is_none_or(|expected| same(expected, &seen)), "{name}, {steps} steps");
                expected.get_or_insert(seen);
            }
            eprintln!("{name}, {launches} launches: counted takes {:.2} times as long", best[1] / best[0]);
        }
    }
}

/// A kernel with this body that runs for n = 100 only, so that the next trial finds it well.
fn misbehaving(before: &str, body: &str) -> String {
    let first = "const bool first = threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0;";
    format!(
        "#include <cuda_runtime.h>\n#include <cassert>\n#include <cstdio>\n{before}\n\
         __global__ void k{SIGNATURE} {{\n{first}\nif (n == 100) {{\n{body}\n}}\n\
         const int c = blockIdx.x * 32 + threadIdx.x + 1, w = blockIdx.y * 8 + threadIdx.y + 1;\n\
         if (c < n - 1 && w < n - 1) out[w * n + c] = in[w * n + c];\n}}\n"
    )
}

/// Launches 1, 2, 3 and so on of a kernel, counted by itself.
const CALLS: &str = "__device__ int calls;";

struct Bed {
    tools: (Toolkit, HostCompiler),
    arch: u32,
    /// A right kernel in a process of its own, to see whether the GPU is left well.
    right: CudaRunner,
    expected: Observation,
}

impl Bed {
    fn new() -> Self {
        let (tools, arch) = (tools(), the_gpu().arch);
        let mut right = runner(program(&build(&tools, MODEL, "heatTwoStep", arch), tiles));
        let expected = run(&mut right, &trial(260, 3, Watch::Fast));
        Self { tools, arch, right, expected }
    }

    /// Runs the kernel on a grid of 100 x 100 cells, then on one where it does nothing wrong, then a right kernel.
    fn seen(&mut self, before: &str, body: &str, shape: Shape, limits: u32, launches: u32) -> Observation {
        let built = build(&self.tools, &misbehaving(before, body), "k", self.arch);
        let mut runner = runner(Program { arch: limits, ..program(&built, shape) });
        let started = Instant::now();
        let seen = run(&mut runner, &trial(100, launches, Watch::Fast));
        eprintln!("{body:?}: {:?} {:?} after {:.2} s", seen.fault, seen.hazards, started.elapsed().as_secs_f64());
        let started = Instant::now();
        let after = run(&mut self.right, &trial(260, 3, Watch::Fast));
        assert!(after.fault.is_none() && same(&after, &self.expected), "{body}: {:?}", after.fault);
        eprintln!("   a right kernel after it: {:.3} s", started.elapsed().as_secs_f64());
        if shape as usize == tiles as Shape as usize {
            let started = Instant::now();
            let next = run(&mut runner, &trial(36, 1, Watch::Fast));
            assert_eq!((&next.fault, next.hazards), (&None, vec![]), "{body}");
            eprintln!("   the next trial: {:.3} s", started.elapsed().as_secs_f64());
        }
        seen
    }

    fn fault(&mut self, before: &str, body: &str, launches: u32) -> RunFault {
        let seen = self.seen(before, body, tiles, LESSON, launches);
        seen.fault.unwrap_or_else(|| panic!("{body}: no fault"))
    }
}

fn crash(fault: &RunFault) -> (u32, &str) {
    let RunFault::Crash { launch, what, .. } = fault else { panic!("{fault:?}") };
    (*launch, what)
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_crashes_are_faults_of_their_launch_and_leave_the_gpu_well() {
    let mut bed = Bed::new();
    assert_eq!(crash(&bed.fault("", "if (first) __trap();", 3)).0, 1);
    let wild = bed.fault("", "if (first) *(volatile float*)64 = r;", 3);
    assert!(crash(&wild).1.contains("illegal address"), "{wild:?}");
    let misaligned = bed.fault("", "if (first) *(volatile float*)((char*)out + 1) = r;", 3);
    assert!(crash(&misaligned).1.contains("misaligned"), "{misaligned:?}");
    let late = bed.fault(CALLS, "if (first && ++calls == 200) __trap();", 500);
    assert_eq!(crash(&late).0, 200);
    let seen = bed.seen("", "if (first) printf(\"about to fail\\n\"); assert(n < 0);", tiles, LESSON, 3);
    let (asserted, printed) = (seen.fault, seen.output);
    let Some(RunFault::Crash { place, actor, .. }) = &asserted else { panic!("{asserted:?}") };
    assert!(place.is_some() && actor.is_some(), "{asserted:?}, {printed:?}");
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_a_launch_that_does_not_end_is_a_hang_and_leaves_the_gpu_well() {
    let mut bed = Bed::new();
    for (body, launches, hung) in [
        ("while (*(volatile float*)out != 0.1234f) {}", 3, 1),
        ("if (first && ++calls == 150) while (*(volatile float*)out != 0.1234f) {}", 500, 150),
    ] {
        let fault = bed.fault(CALLS, body, launches);
        let RunFault::Hang { launch, seconds, on: Processor::Gpu, .. } = fault else { panic!("{fault:?}") };
        assert_eq!(launch, hung);
        assert!((3.0..8.0).contains(&seconds), "{seconds}");
    }
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_launches_that_cannot_be_are_refused_in_plain_words() {
    let mut bed = Bed::new();
    let mut refused = |before: &str, shape: Shape, limits: u32| {
        let seen = bed.seen(before, "", shape, limits, 3);
        match seen.fault {
            Some(RunFault::LaunchRefused { launch: 1, reason }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let threads = refused("", |n| Geometry { block: [64, 64, 1], ..tiles(n) }, LESSON);
    assert!(threads.contains("4096 threads"), "{threads}");
    let shared: Shape = |n| Geometry { shared: 80 * 1024, ..tiles(n) };
    assert!(refused("", shared, LESSON).contains("81920 bytes"));
    assert!(refused("", |n| Geometry { grid: [0, 1, 1], ..tiles(n) }, LESSON).contains("no blocks"));
    // What the driver alone knows: the registers of a kernel.
    let built = build(
        &bed.tools,
        &misbehaving("", "").replace("__global__ void", "__global__ __launch_bounds__(128) void"),
        "k",
        bed.arch,
    );
    let seen = run(&mut runner(program(&built, tiles)), &trial(100, 1, Watch::Fast));
    let Some(RunFault::LaunchRefused { reason, .. }) = &seen.fault else { panic!("{:?}", seen.fault) };
    assert!(reason.contains("at most 128"), "{reason}");
    // Shared memory above 48 KiB is opted in to where the architecture has it.
    let seen = bed.seen("", "", shared, bed.arch.max(86), 3);
    assert_eq!(seen.fault, None);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_stores_beside_the_grids_and_into_the_input_are_seen() {
    let mut bed = Bed::new();
    let mut hazards = |before: &str, body: &str, launches: u32| {
        let seen = bed.seen(before, body, tiles, LESSON, launches);
        assert_eq!(seen.fault, None);
        let of = |hazard: &heat_grader::execute::Hazard| {
            assert_eq!((hazard.kind, hazard.store), (HazardKind::OutOfRange, true));
            (hazard.launch, hazard.memory.clone().expect("a grid"), hazard.count)
        };
        (seen.hazards.iter().map(of).collect::<Vec<_>>(), seen.input_changed)
    };
    let out = |cell| Memory::Out { cell };
    assert_eq!(hazards("", "if (first) out[-1] = r;", 1), (vec![(1, out(-1), 1)], None));
    assert_eq!(hazards("", "if (first) out[n * n + 105] = r;", 2).0, [(1, out(10_105), 1), (2, out(10_105), 1)]);
    let input = hazards("", "if (first) const_cast<float*>(in)[-101] = r;", 1);
    assert_eq!(input.0, [(1, Memory::In { cell: -101 }, 1)]);
    assert_eq!(hazards(CALLS, "if (first && ++calls == 3) out[-2] = r;", 3).0, [(3, out(-2), 1)]);
    let late = hazards(CALLS, "if (first && ++calls == 250) out[-2] = r;", 500).0;
    assert_eq!(late.len(), 1, "{late:?}");
    let (_, changed) = hazards("", "if (first) const_cast<float*>(in)[n + 1] = 7;", 3);
    let changed = changed.expect("a change");
    assert_eq!((changed.launch, changed.row, changed.column, changed.after), (1, 1, 1, 7.0));
    let (_, second) = hazards(CALLS, "if (first && ++calls == 2) const_cast<float*>(in)[n + 2] = 7;", 3);
    assert_eq!(second.map(|change| (change.launch, change.column)), Some((2, 2)));
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_cells_that_nobody_writes_stay_poisoned_and_prints_are_captured() {
    let mut bed = Bed::new();
    let seen = bed.seen("", "if (first) printf(\"verdict: pass %d\\n\", n); return;", tiles, LESSON, 1);
    assert_eq!(seen.output, "verdict: pass 100\n");
    let grid = seen.grid_after(1).expect("kept");
    let cells = || (0..100).flat_map(|row| (0..100).map(move |column| (row, column)));
    assert!(cells().all(|(row, column)| grid.at(row, column).is_nan() != grid.on_ring(row, column)));
    let flood = bed.seen("", "for (int i = 0; i < 100; ++i) printf(\"x\\n\");", tiles, LESSON, 3);
    assert!(flood.output.starts_with("x\nx\n") && flood.output.len() <= 64 * 1024, "{}", flood.output.len());
    let mut keeping = trial(100, 4, Watch::Fast);
    keeping.keep = vec![1, 2, 4];
    let kept = run(&mut bed.right, &keeping);
    assert_eq!(kept.grids.iter().map(|(launch, _)| *launch).collect::<Vec<_>>(), [1, 2, 4]);
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_both_workers_are_timed_in_turns() {
    let (tools, gpu) = (tools(), the_gpu());
    let reference = gpu::build_reference(&tools.0, &tools.1, gpu.arch).expect("the reference compiles");
    let model = build(&tools, MODEL, "heatTwoStep", gpu.arch);
    let mut first = runner(reference_program(&reference, true));
    let also_timed = vec![copy_grid(&reference)];
    let mut second = runner(Program { also_timed, ..program(&model, tiles) });
    let initial = Arc::new(Grid::initial(2048, 7));
    let plan = TimingPlan { initial, r: 0.2, launches: 500, budget: 500.0 };
    let started = Instant::now();
    prepare(&mut first, &mut second, &plan).expect("the engine works");
    let timed = time(&mut first, &mut second, &plan, &|_| true, &mut |_| {}).expect("the engine works");
    eprintln!("timed in {:.2} s", started.elapsed().as_secs_f64());
    assert_eq!(timed.fault, None);
    for times in &timed.times.kernels {
        eprintln!("{:?} {} ms a launch: {:.5?}", times.by, times.kernel, times.rounds);
        assert!(times.same_grids && times.rounds.len() >= 6 && times.rounds.len() % 2 == 0, "{times:?}");
        assert!(times.rounds.iter().all(|ms| ms.is_finite() && *ms > 0.0), "{times:?}");
    }
    let names: Vec<_> = timed.times.kernels.iter().map(|times| (times.by, times.kernel.as_str())).collect();
    let (of_reference, of_submission) = (TimedBy::Reference, TimedBy::Submission);
    let expected = [
        (of_reference, "copyGrid"),
        (of_reference, "heatStepGlobal"),
        (of_reference, "heatStepTiled"),
        (of_submission, "copyGrid"),
        (of_submission, "heatTwoStep"),
    ];
    assert_eq!(names, expected);
    let untimed = run(&mut second, &trial(2048, 500, Watch::Fast));
    let grid = timed.grid.expect("the last round's grid");
    assert_eq!((grid.launches, Some(&grid.grid)), (500, untimed.grid_after(500)));
    let judged = timing(&timed.times, &|_| None, 7).expect("all kernels were timed");
    eprintln!("{judged:?}\n{}", table(&judged).join("\n"));
    eprintln!("clocks {:?} to {:?}", timed.times.clocks_before, timed.times.clocks_after);
    // Whoever is never satisfied gets three times the rounds, each kernel as many as the others.
    prepare(&mut first, &mut second, &plan).expect("the engine works");
    let longest = time(&mut first, &mut second, &plan, &|_| false, &mut |_| {}).expect("the engine works");
    let rounds: Vec<_> = longest.times.kernels.iter().map(|times| times.rounds.len()).collect();
    assert!(rounds[0] >= 18 && rounds.iter().all(|&of| of == rounds[0]) && rounds[0] % 6 == 0, "{rounds:?}");
    assert!(longest.grid.is_some_and(|kept| kept.grid == grid.grid));
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_reading_the_counters_costs_little_beside_counting() {
    let (tools, gpu) = (tools(), the_gpu());
    let reference = gpu::build_reference(&tools.0, &tools.1, gpu.arch).expect("the reference compiles");
    let model = build(&tools, MODEL, "heatTwoStep", gpu.arch);
    let counting = model.counted.as_ref().expect("the model can be counted");
    let also_timed = vec![kernel("counted", &counting.cubin, &model.entry, tiles, 2)];
    let mut second = runner(Program { also_timed, ..program(&model, tiles) });
    let initial = Arc::new(Grid::initial(2048, 7));
    let plan = TimingPlan { initial, r: 0.2, launches: 500, budget: 200.0 };
    let mut first = runner(reference_program(&reference, true));
    prepare(&mut first, &mut second, &plan).expect("the engine works");
    let timed = time(&mut first, &mut second, &plan, &|_| true, &mut |_| {}).expect("the engine works");
    let best = |name: &str| {
        let times = timed.times.of(TimedBy::Submission, name).expect("timed");
        500.0 * times.rounds.iter().copied().fold(f64::MAX, f64::min)
    };
    let runs = (0..3).map(|_| run(&mut second, &trial(2048, 500, Watch::Count)).wall_seconds * 1e3);
    let read = runs.fold(f64::MAX, f64::min);
    let (plain, counted) = (best("heatTwoStep"), best("counted"));
    eprintln!("500 launches: plain {plain:.2} ms, counted {counted:.2} ms, counted and read each time {read:.2} ms");
    assert!(read < 1.3 * counted, "{counted} {read}");
}

#[test]
#[ignore = "needs a GPU"]
fn gpu_a_kernel_that_faults_while_it_is_timed_is_a_fault_of_the_submission() {
    let (tools, gpu) = (tools(), the_gpu());
    let reference = gpu::build_reference(&tools.0, &tools.1, gpu.arch).expect("the reference compiles");
    let source = misbehaving(CALLS, "if (first && ++calls == 700) __trap();");
    let mut first = runner(reference_program(&reference, true));
    let also_timed = vec![copy_grid(&reference)];
    let mut second = runner(Program { also_timed, ..program(&build(&tools, &source, "k", gpu.arch), tiles) });
    let plan = TimingPlan { initial: Arc::new(Grid::initial(100, 7)), r: 0.2, launches: 500, budget: 100.0 };
    prepare(&mut first, &mut second, &plan).expect("the engine works");
    let timed = time(&mut first, &mut second, &plan, &|_| true, &mut |_| {}).expect("the engine works");
    assert!(matches!(timed.fault, Some(RunFault::Crash { .. })), "{:?}", timed.fault);
}
