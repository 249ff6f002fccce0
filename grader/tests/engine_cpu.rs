//! Engine cpu against figures known from hardware: counts, races, out-of-range accesses, crashes.

use std::path::Path;
use std::sync::Arc;

use heat_grader::compile::host::{HostBuilds, Wanted, build};
use heat_grader::compile::nvcc::Outcome;
use heat_grader::compile::toolkit::find_host_compiler;
use heat_grader::execute::cpu::{CpuRunner, Program};
use heat_grader::execute::{Observation, Runner, Trial, Watch};
use heat_grader::grid::Grid;
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
    let builds = match build(&gxx, source, kernel, Wanted::FastAndChecked).expect("g++ runs").outcome {
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
    };
    Built {
        runner: CpuRunner::new(
            program,
            Path::new(env!("CARGO_BIN_EXE_heat-grader")),
            std::env::var("LANES").map_or(2, |l| l.parse().unwrap()),
        ),
        _builds: builds,
    }
}

fn trial(n: usize, launches: u32, watch: Watch) -> Trial {
    let initial = Arc::new(Grid::initial(n, 7));
    Trial { initial, r: 0.2, launches, watch, keep: vec![launches], writer_of: None }
}

fn run(built: &mut Built, trial: &Trial) -> Observation {
    let t = std::time::Instant::now();
    let seen = built.runner.run(trial).expect("the engine works");
    eprintln!(
        "n {} launches {} {:?}: cpu {:.3} wall {:.3} total {:?}",
        trial.initial.n(),
        trial.launches,
        trial.watch,
        seen.cpu_seconds,
        seen.wall_seconds,
        t.elapsed()
    );
    seen
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
        let seen = run(&mut built, &trial(260, 3, Watch::Full));
        eprintln!("{:?} {:?}", seen.hazards, seen.fault);
        run(&mut built, &trial(2048, 3, Watch::Fast));
        run(&mut built, &trial(512, 50, Watch::Fast));
    }
}

#[test]
#[ignore = "a measurement, not a test"]
fn speed() {
    let reference = read("reference/heat.cu");
    let model = read("fixtures/right/plain/heat.cu");
    for (source, kernel, steps) in
        [(&reference, "heatStepGlobal", 1), (&reference, "heatStepTiled", 1), (&model, "heatTwoStep", 2)]
    {
        let mut built = built(source, kernel);
        for (n, launches, watch) in
            [(512, 20, Watch::Fast), (512, 4, Watch::Count), (260, 4, Watch::Full), (1030, 6, Watch::Full)]
        {
            if std::env::var("ONLY").is_ok_and(|only| only != format!("{n}")) {
                continue;
            }
            run(&mut built, &trial(n, 1, watch));
            let seen = run(&mut built, &trial(n, launches, watch));
            let cells = ((n - 2) * (n - 2)) as f64 * f64::from(launches) * f64::from(steps);
            eprintln!(
                "{kernel} {watch:?}: {:.1} ns CPU, {:.1} ns wall a cell-step",
                seen.cpu_seconds / cells * 1e9,
                seen.wall_seconds / cells * 1e9
            );
        }
    }
}
