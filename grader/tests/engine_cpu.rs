//! Engine cpu against figures known from hardware: counts, races, out-of-range accesses, crashes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use heat_grader::compile::host::{HostBuilds, HostCode, Wanted, build};
use heat_grader::compile::nvcc::Outcome;
use heat_grader::compile::toolkit::find_host_compiler;
use heat_grader::execute::cpu::{CpuRunner, Program, Role, Yardstick};
use heat_grader::execute::{Actor, HazardKind, LastWrite, Memory, Observation, RunFault, Runner, Trial, Watch};
use heat_grader::grid::{Grid, Window};
use heat_grader::submission::Geometry;

/// A program and the builds that it runs from.
struct Built {
    runner: CpuRunner,
    _builds: HostBuilds,
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The kernel launched with blocks of 32 x 8 threads, a tile of the same size.
fn built(source: &str, kernel: &str) -> Built {
    let gxx = find_host_compiler().found().expect("g++");
    let builds =
        match build(&gxx, source, kernel, Wanted::FastAndChecked, HostCode::Reached(kernel)).expect("g++ runs").outcome
        {
            Outcome::Compiled(builds) => builds,
            other => panic!("{other:?}"),
        };
    let geometry =
        |n: u32| Ok(Geometry { grid: [(n - 2).div_ceil(32), (n - 2).div_ceil(8), 1], block: [32, 8, 1], shared: 0 });
    let program = Program {
        fast: builds.fast.clone(),
        checked: builds.checked.clone(),
        kernel: kernel.to_owned(),
        source: Arc::from(source),
        geometry: Arc::new(geometry),
        loads: None,
    };
    Built { runner: CpuRunner::new(program, Path::new(env!("CARGO_BIN_EXE_heat-grader")), 2), _builds: builds }
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

fn run(built: &mut Built, trial: &Trial) -> Observation {
    built.runner.run(trial).expect("the engine works")
}

#[test]
fn words_read_are_those_of_the_hardware_counter() {
    let reference = read("reference/heat.cu");
    let model = read("fixtures/right/plain/heat.cu");
    for (source, kernel, words) in [
        (&reference, "heatStepGlobal", 20_930_580),
        (&reference, "heatStepTiled", 5_561_092),
        (&model, "heatTwoStep", 7_056_400),
    ] {
        let mut built = built(source, kernel);
        let seen = run(&mut built, &trial(2048, 1, Watch::Count));
        assert_eq!((seen.fault, seen.words_read), (None, vec![words]), "{kernel}");
        let seen = run(&mut built, &trial(100, 3, Watch::Full));
        assert_eq!((seen.fault, seen.hazards), (None, vec![]), "{kernel}");
    }
}

#[test]
fn shipped_kernels_agree_to_the_last_bit_however_they_are_watched() {
    let reference = read("reference/heat.cu");
    let (mut global, mut tiled) = (built(&reference, "heatStepGlobal"), built(&reference, "heatStepTiled"));
    let expected = run(&mut global, &trial(131, 3, Watch::Fast)).grids;
    for watch in [Watch::Fast, Watch::Count, Watch::Full] {
        assert_eq!(run(&mut tiled, &trial(131, 3, watch)).grids, expected, "{watch:?}");
    }
}

/// Whether eight launches were made as loops over the threads, and that their grid is the one that coroutines make.
fn runs_as_loops(source: &str, kernel: &str) -> bool {
    let mut built = built(source, kernel);
    let loops = trial(131, 8, Watch::Fast);
    let coroutines = Trial { shortcuts: false, ..loops.clone() };
    let (with, without) = (run(&mut built, &loops), run(&mut built, &coroutines));
    // Bits, because a cell that nobody writes is NaN.
    let bits = |seen: &Observation| seen.grids[0].1.cells().iter().map(|cell| cell.to_bits()).collect::<Vec<_>>();
    assert_eq!((&with.fault, &without.fault), (&None, &None), "{kernel}");
    assert!(bits(&with) == bits(&without) && !without.shortcut, "{kernel}");
    with.shortcut
}

#[test]
fn kernels_cut_at_their_barriers_run_as_loops_and_give_the_same_bits() {
    let reference = read("reference/heat.cu");
    assert!(runs_as_loops(&reference, "heatStepGlobal"));
    assert!(runs_as_loops(&reference, "heatStepTiled"));
    assert!(runs_as_loops(&read("fixtures/right/plain/heat.cu"), "heatTwoStep"));
}

#[test]
fn what_loops_cannot_do_runs_as_coroutines() {
    let step = "const int i = threadIdx.y * 32 + threadIdx.x;\n__shared__ float t[256];\nt[i] = in[i];";
    let end = "if (blockIdx.x + blockIdx.y == 0 && i < 100) out[132 + i] = t[255 - i];";
    let loops = |before: &str, body: &str| runs_as_loops(&kernel(before, &format!("{step}\n{body}\n{end}")), "k");
    assert!(loops("", "__syncthreads();"));
    // A barrier that the text of the kernel does not show.
    assert!(!loops("#define WAIT(x) wait_here(x)\n__device__ void wait_here(int) { __syncthreads(); }", "WAIT(3);"));
    // Launches counted in a variable: a launch made twice would count twice.
    assert!(!loops("__device__ int launches;", "__syncthreads(); if (i == 0) atomicAdd(&launches, 1);"));
    // Locals that live across the barrier and cannot be computed again.
    assert!(loops(
        "",
        "float mine = t[i] * 2; float pair[2] = {mine, t[i]};\n__syncthreads();\nt[i] += mine + pair[1]; __syncthreads();"
    ));
    // A helper that asks which thread it runs in.
    assert!(loops(
        "__device__ int me() { return threadIdx.y * 32 + threadIdx.x; }",
        "__syncthreads(); t[me()] += me(); __syncthreads();"
    ));
    // A value that another thread may change before it is used again.
    assert!(loops(
        "",
        "float& next = t[(i + 1) % 256]; __syncthreads(); const float seen = next; __syncthreads(); next = seen * 2; __syncthreads();"
    ));
}

const SIGNATURE: &str = "(const float* __restrict__ in, float* __restrict__ out, int n, float r)";

/// A small kernel with this body, and lines of it before.
fn kernel(before: &str, body: &str) -> String {
    format!("#include <cuda_runtime.h>\n{before}\n__global__ void k{SIGNATURE} {{\n{body}\n}}\n")
}

fn seen(before: &str, body: &str) -> Observation {
    run(&mut built(&kernel(before, body), "k"), &trial(36, 1, Watch::Full))
}

/// Kinds and lines of the hazards.
fn hazards(seen: &Observation) -> Vec<(HazardKind, u32)> {
    seen.hazards.iter().map(|hazard| (hazard.kind, hazard.place.map_or(0, |place| place.line))).collect()
}

#[test]
fn a_missing_barrier_is_a_race_with_both_lines() {
    let seen = seen(
        "",
        "__shared__ float t[256];\nconst int me = threadIdx.y * 32 + threadIdx.x;\nt[me] = r;\n__syncthreads();\n\
         const float other = t[255 - me];\nt[me] = other + n;\nif (n < 0) out[0] = t[me];",
    );
    assert_eq!(hazards(&seen), [(HazardKind::ReadWriteRace, 8), (HazardKind::ReadWriteRace, 9)]);
    assert!(seen.hazards.iter().all(|hazard| hazard.other.is_some()));
}

#[test]
fn one_word_past_a_shared_array_is_out_of_range_though_another_array_follows() {
    let seen = seen(
        "",
        "__shared__ float a[256];\n__shared__ float b[256];\nconst int me = threadIdx.y * 32 + threadIdx.x;\n\
         a[me] = b[me] = r;\n__syncthreads();\nconst float* p = a;\nif (p[me + 1] < 0) out[n + 1] = 1;",
    );
    assert_eq!(hazards(&seen), [(HazardKind::OutOfRange, 10)]);
    assert!(matches!(&seen.hazards[0].memory, Some(Memory::Shared { byte: 1024, .. })), "{:?}", seen.hazards);
}

#[test]
fn a_local_index_out_of_range_is_named_by_its_array() {
    let seen =
        seen("", "float local[4];\nfor (int i = 0; i <= int(r * 20); ++i) local[i] = i;\nout[n + 1] = local[n % 4];");
    assert!(hazards(&seen).contains(&(HazardKind::OutOfRange, 5)), "{:?}", seen.hazards);
}

#[test]
fn a_walk_of_a_whole_shared_array_by_its_first_row_is_no_fault() {
    let seen = seen(
        "",
        "__shared__ float t[8][32];\nconst int me = threadIdx.y * 32 + threadIdx.x;\nt[0][me] = r;\n__syncthreads();\n\
         if (n < 0) out[0] = t[0][255 - me];",
    );
    assert_eq!((hazards(&seen), seen.fault), (vec![], None));
}

#[test]
fn barriers_on_different_lines_and_barriers_left_behind_are_told_apart() {
    let seen_apart = seen("", "if (threadIdx.x < 16) {\n__syncthreads();\n} else {\n__syncthreads();\n}");
    assert_eq!(hazards(&seen_apart), [(HazardKind::BarrierDivergence, 7)]);
    let left = seen("", "if (threadIdx.x >= 16) return;\n__syncthreads();");
    assert_eq!(hazards(&left), [(HazardKind::BarrierAfterExit, 5)]);
}

#[test]
fn lanes_joined_by_a_shuffle_do_not_race_and_get_each_others_values() {
    let seen = seen(
        "",
        "__shared__ float t[256];\nconst int me = threadIdx.y * 32 + threadIdx.x;\nt[me] = me;\n__syncwarp();\n\
         const float left = t[me ^ 1];\nconst float right = __shfl_xor_sync(0xffffffffu, float(me), 1);\n\
         if (left != right) out[-1] = 0;",
    );
    assert_eq!((hazards(&seen), seen.fault), (vec![], None));
}

#[test]
fn writing_the_input_is_seen_as_hazard_and_as_change() {
    let seen =
        seen("", "if (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0) const_cast<float*>(in)[n + 1] = 7;");
    assert_eq!(hazards(&seen), [(HazardKind::InputWritten, 4)]);
    let change = seen.input_changed.expect("a change");
    assert_eq!((change.launch, change.row, change.column, change.after), (1, 1, 1, 7.0));
}

#[test]
fn a_store_to_constant_memory_is_a_hazard_and_a_load_of_it_is_not_counted() {
    let before = "__constant__ float weights[256];";
    let body = "const int me = threadIdx.y * 32 + threadIdx.x;\nif (n < 0) out[0] = weights[me];\n";
    let stored = seen(before, &format!("{body}const_cast<float*>(weights)[me] = r;"));
    assert_eq!(hazards(&stored), [(HazardKind::ConstantWritten, 6)]);
    assert_eq!(stored.hazards[0].memory, Some(Memory::Constant { name: "weights".to_owned() }));
    let loaded = seen(before, "const int me = threadIdx.y * 32 + threadIdx.x;\nout[n + 1] = weights[me];");
    assert_eq!(loaded.words_read, [0]);
}

#[test]
fn local_memory_of_another_thread_is_out_of_reach_and_ones_own_is_not() {
    let body = |whose: &str| {
        format!(
            "__shared__ float* all[256];\nconst int me = threadIdx.y * 32 + threadIdx.x;\nfloat mine[2] = {{r, r}};\n\
             all[me] = mine;\n__syncthreads();\nfloat* theirs = all[{whose}];\ntheirs[n % 2] += 1;\n__syncthreads();\n\
             if (mine[n % 2] < 0) out[n + 1] = 1;"
        )
    };
    let other = seen("", &body("255 - me"));
    assert!(hazards(&other).iter().all(|&hazard| hazard == (HazardKind::ForeignLocal, 10)), "{:?}", other.hazards);
    let (owner, _) = other.hazards[0].other.expect("a thread that waits");
    assert_eq!(owner.thread[0] + other.hazards[0].actor.expect("a thread").thread[0], 31);
    assert_eq!(hazards(&seen("", &body("me"))), []);
}

#[test]
fn a_wild_store_ends_the_worker_only_and_says_where() {
    let source = kernel("", "if (n == 36) *(volatile float*)64 = r;");
    let mut built = built(&source, "k");
    let crashed = run(&mut built, &trial(36, 1, Watch::Fast));
    let Some(RunFault::Crash { launch: 1, place, memory, .. }) = &crashed.fault else { panic!("{:?}", crashed.fault) };
    assert_eq!((place.map(|place| place.line), memory), (Some(4), &Some(Memory::Wild { address: 64 })));
    assert_eq!(run(&mut built, &trial(35, 1, Watch::Fast)).fault, None, "the next trial has a worker of its own");
}

#[test]
fn host_code_never_runs_not_even_static_constructors() {
    let before = "#include <cstdlib>\nstruct Early { Early() { std::abort(); } };\nstatic Early early;";
    assert_eq!(seen(before, "if (n < 0) out[0] = 1;").fault, None);
}

#[test]
fn the_last_writer_of_a_cell_is_known() {
    let reference = read("reference/heat.cu");
    let window = Window { rows: 8..10, columns: 32..34 };
    let asked = Trial { writers_of: Some(window), ..trial(100, 1, Watch::Full) };
    let seen = run(&mut built(&reference, "heatStepTiled"), &asked);
    let by = |block, thread| Some(Actor { block, thread });
    let expected =
        [by([0, 0, 0], [31, 7, 0]), by([1, 0, 0], [0, 7, 0]), by([0, 1, 0], [31, 0, 0]), by([1, 1, 0], [0, 0, 0])];
    let actors: Vec<_> = seen.writers.iter().map(|write| write.map(|write| write.actor)).collect();
    assert_eq!(actors, expected);
    let stores = reference.lines().zip(1..).filter(|(line, _)| line.contains("out[")).map(|(_, line)| line);
    let stores: Vec<u32> = stores.collect();
    let line_of = |write: &Option<LastWrite>| write.and_then(|write| write.place).map(|place| place.line);
    assert!(seen.writers.iter().all(|write| line_of(write).is_some_and(|line| stores.contains(&line))), "{seen:?}");
}

#[test]
fn what_a_kernel_prints_is_captured_and_capped() {
    let seen = seen("", "for (int i = 0; i < 100; ++i) printf(\"verdict: pass %d\\n\", i);");
    assert!(seen.output.starts_with("verdict: pass 0\n") && seen.output.len() <= 64 * 1024, "{}", seen.output.len());
}

#[test]
fn more_variables_than_can_be_watched_are_left_to_a_gpu() {
    let source = kernel("__device__ char large[3000000000ull];", "large[n] = 1; out[0] = in[0];");
    for watch in [Watch::Full, Watch::Fast] {
        let seen = run(&mut built(&source, "k"), &trial(100, 1, watch));
        let Some(RunFault::CannotJudge { construct, .. }) = &seen.fault else { panic!("{watch:?}: {:?}", seen.fault) };
        assert!(construct.starts_with("3000") && construct.contains("bytes of variables"), "{construct}");
    }
    let source = kernel("__device__ float scratch[24000000];", "scratch[0] = r; out[0] = in[0];");
    assert_eq!(run(&mut built(&source, "k"), &trial(100, 1, Watch::Full)).fault, None);
}

#[test]
fn the_words_of_the_grader_itself_are_not_the_kernels() {
    // The grader's runtime has no memory left for its own work.
    let body = "void* taken = 0; for (unsigned long size = 1ul << 30; size > 8; size /= 2)\n\
                while ((taken = malloc(size)) != 0) out[0] += taken == in;\nprintf(\"%d\", n); __syncthreads();";
    let seen = seen("#include <cstdlib>", body);
    assert!(!seen.output.contains("memory allocation") && !seen.output.contains("panicked"), "{}", seen.output);
}

#[test]
fn what_a_kernel_prints_is_what_c_prints() {
    let first = "if (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0)";
    // More arguments than there are registers of either kind; g++ makes a puts and a putchar of the last two.
    let seen = seen(
        "",
        &format!(
            "{first} {{ const int taken = printf(\"%d %d %d %d %d %s %3.1f %d\\n\", 1, 2, 3, 4, 5, \"six\", r, n);\n\
             printf(\"%g %g %g %g %g %g %g %g %g %d\\n\", 1., 2., 3., 4., 5., 6., 7., 8., 9.5, taken);\n\
             printf(\"words\\n\"); printf(\"!\"); }}"
        ),
    );
    assert_eq!(seen.output, "1 2 3 4 5 six 0.2 36\n1 2 3 4 5 6 7 8 9.5 8\nwords\n!");
}

#[test]
fn what_a_kernel_prints_costs_next_to_nothing() {
    let body = "printf(\"%1000000000d\", n); printf(\"%.*s\", 1000000000, \"x\"); printf(\"%.1000000000f\", r);\n\
                for (int i = 0; i < 1000; ++i) printf(\"%f\", in[threadIdx.x]);";
    let seen = seen("", body);
    assert_eq!(seen.fault, None);
    assert!(seen.output.starts_with("    ") && seen.output.len() <= 64 * 1024, "{}", seen.output.len());
}

#[test]
fn every_read_of_a_launch_is_counted_at_its_cell_and_one_blocks_by_themselves() {
    let reference = read("reference/heat.cu");
    let asked = Trial { cell_reads: true, ..trial(100, 3, Watch::Full) };
    let seen = run(&mut built(&reference, "heatStepTiled"), &asked);
    let counted = seen.cell_reads.expect("it was asked for");
    assert_eq!(counted.all.iter().map(|&reads| u64::from(reads)).sum::<u64>(), seen.words_read[0]);
    let block = counted.of_block.expect("the middle block has cells");
    assert_eq!((block.block, &block.window), ([1, 6, 0], &Window { rows: 48..58, columns: 32..66 }));
    assert!(block.reads.iter().all(|&reads| reads == 1));
    assert_eq!(block.written.iter().filter(|written| **written).count(), 256);
    assert_eq!(block.shared, 34 * 10 * 4);
    let unasked = run(&mut built(&reference, "heatStepTiled"), &trial(100, 1, Watch::Full));
    assert_eq!(unasked.cell_reads, None);
}

#[test]
fn a_launch_that_spins_is_told_with_its_line_whenever_it_is_asked() {
    let source = read("fixtures/wrong/spins_on_flag/heat.cu");
    let spins = 1 + source.lines().position(|line| line.contains("while (turn")).expect("it spins") as u32;
    let Built { runner, _builds } = built(&source, "heatTwoStep");
    let mut runner = runner.with_role(Role::Submission(Yardstick::allowing(Duration::ZERO)));
    for at in 0..60 {
        let seen = runner.run(&trial(100, 1, Watch::Full)).expect("the engine works");
        let Some(RunFault::Hang { place: Some(place), .. }) = &seen.fault else { panic!("{at}: {:?}", seen.fault) };
        assert!((spins..=spins + 1).contains(&place.line), "{at}: {place:?}");
    }
}

#[test]
fn launches_that_each_end_in_time_do_not_go_on_for_ever() {
    let source = "__global__ void k(const float* in, float* out, int n, float r) {\n\
                  if (blockIdx.x + blockIdx.y + threadIdx.x + threadIdx.y == 0)\n\
                  for (volatile int turn = 0; turn < 10000000; ++turn);\n}\nint main() {}\n";
    let Built { runner, _builds } = built(source, "k");
    let mut runner = runner.with_role(Role::Submission(Yardstick::allowing(Duration::from_millis(300))));
    let seen = runner.run(&trial(100, 2000, Watch::Fast)).expect("the engine works");
    let Some(RunFault::TooSlow { launch, seconds }) = seen.fault else { panic!("{:?}", seen.fault) };
    assert!(launch > 1 && (3.0..10.0).contains(&seconds), "{launch} {seconds}");
}

#[test]
fn shared_memory_that_no_block_can_have_is_refused_and_not_loaded() {
    let source = "__global__ void k(const float* __restrict__ in, float* __restrict__ out, int n, float r) {\n\
                  __shared__ float large[1 << 28];\nlarge[threadIdx.x] = r;\n__syncthreads();\n\
                  out[threadIdx.x] = large[threadIdx.x] + in[0];\n}\nint main() {}\n";
    for watch in [Watch::Full, Watch::Fast] {
        let seen = run(&mut built(source, "k"), &trial(100, 1, watch));
        let Some(RunFault::LaunchRefused { launch: 1, reason }) = &seen.fault else {
            panic!("{watch:?}: {:?}", seen.fault)
        };
        assert!(reason.contains("1073741824") || reason.contains("1,073,741,824"), "{reason}");
    }
}
