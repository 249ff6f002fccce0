//! What times come to, from made-up rounds.

use super::*;
use crate::execute::cuda::GpuInfo;

fn kernel(by: TimedBy, kernel: &str, timesteps: u32, rounds: &[f64]) -> KernelTimes {
    KernelTimes { by, kernel: kernel.to_owned(), timesteps, launches: 500, rounds: rounds.to_vec(), same_grids: true }
}

/// The lesson's figures for a Tesla T4, and a two-step kernel of 0.4 ms a launch.
fn lesson() -> RawTimes {
    use TimedBy::{Reference, Submission};
    let gpu = GpuInfo {
        name: "Tesla T4".to_owned(),
        uuid: "GPU-0".to_owned(),
        arch: 75,
        driver: "12.6".to_owned(),
        memory: 16 << 30,
        multiprocessors: 40,
        shared_per_block: 65_536,
        clocks: None,
    };
    let kernels = vec![
        kernel(Reference, COPY, 1, &[0.138, 0.137, 0.139]),
        kernel(Reference, GLOBAL, 1, &[0.173, 0.172, 0.174]),
        kernel(Reference, TILED, 1, &[0.283, 0.281, 0.285]),
        kernel(Submission, COPY, 1, &[0.138, 0.138, 0.139]),
        kernel(Submission, "heatTwoStep", 2, &[0.40, 0.39, 0.41]),
    ];
    RawTimes { gpu, n: 2048, kernels, clocks_before: None, clocks_after: None }
}

fn judged(times: &RawTimes) -> Timing {
    timing(times, &|kernel| (kernel == TILED).then_some(1.328), 7).expect("all kernels have rounds")
}

#[test]
fn the_lessons_times_give_the_lessons_table() {
    let timing = judged(&lesson());
    let row = |at: usize| {
        let row = &timing.rows[at];
        (row.kernel.as_str(), format!("{:.1}", row.gb_per_s), format!("{:.1}", row.percent_of_copy))
    };
    // The lesson's own figures come from unrounded times: 244.0, 194.2 and 118.6 GB/s, 79.6 and 48.6 %.
    assert_eq!(row(0), (COPY, "243.1".to_owned(), "100.0".to_owned()));
    assert_eq!(row(1), (GLOBAL, "194.0".to_owned(), "79.8".to_owned()));
    assert_eq!(row(2), (TILED, "118.6".to_owned(), "48.8".to_owned()));
    // Two timesteps a launch: the bytes are a launch's, the share of copy is a timestep's.
    assert_eq!(row(3), ("heatTwoStep", "83.9".to_owned(), "69.0".to_owned()));
    assert_eq!(timing.rows[2].reads, Some(1.328));
    let table = table(&timing);
    assert_eq!(table.len(), 5);
    assert!(table[3].starts_with("heatStepTiled ") && table[3].ends_with("1.328"), "{table:?}");
    assert!(table[4].ends_with('-'), "{table:?}");
}

#[test]
fn the_ratio_is_that_of_medians_and_its_interval_holds_it() {
    let timing = judged(&lesson());
    assert!((timing.ratio - 0.2 / 0.283).abs() < 1e-12);
    let [low, high] = timing.interval;
    assert!(low < timing.ratio && timing.ratio < high, "{:?}", timing.interval);
    assert!(low >= 0.195 / 0.285 - 1e-12 && high <= 0.205 / 0.281 + 1e-12, "{:?}", timing.interval);
    assert_eq!(judged(&lesson()), timing, "the same seed gives the same interval");
}

#[test]
fn one_slow_round_does_not_move_the_median() {
    let mut times = lesson();
    times.kernels[4].rounds.push(4.0);
    times.kernels[4].rounds.push(0.40);
    assert!((judged(&times).ratio - 0.2 / 0.283).abs() < 1e-12);
}

#[test]
fn rounds_that_never_vary_give_an_interval_without_width() {
    let mut times = lesson();
    times.kernels[2].rounds = vec![0.5];
    times.kernels[4].rounds = vec![0.5];
    assert_eq!((judged(&times).ratio, judged(&times).interval), (0.5, [0.5, 0.5]));
}

#[test]
fn copies_that_part_make_the_ratio_unreliable_either_way() {
    for (copy, reliable) in [(0.1407, true), (0.1409, false), (0.1353, true), (0.1351, false)] {
        let mut times = lesson();
        times.kernels[3].rounds = vec![copy];
        assert_eq!(judged(&times).unreliable.is_none(), reliable, "{copy}");
    }
    let mut times = lesson();
    times.kernels[4].same_grids = false;
    assert!(judged(&times).unreliable.is_some());
}

#[test]
fn the_check_reports_and_never_fails() {
    let check = time(&judged(&lesson()));
    assert_eq!(check.status, Status::Pass);
    assert!(
        check.summary.starts_with("0.20000 ms a timestep, 0.707 times heatStepTiled's (faster"),
        "{}",
        check.summary
    );
    let mut times = lesson();
    times.kernels[3].rounds = vec![0.2];
    times.kernels[4].rounds = vec![4.0];
    let check = time(&judged(&times));
    assert_eq!(check.status, Status::Warn);
    assert!(check.summary.contains("slower"), "{}", check.summary);
}

#[test]
fn without_rounds_of_every_kernel_there_is_nothing_to_say() {
    for at in 0..5 {
        let mut times = lesson();
        times.kernels[at].rounds.clear();
        assert_eq!(timing(&times, &|_| None, 7), None);
    }
}

#[test]
fn the_median_of_an_even_number_lies_between() {
    assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 3.0, 2.0]), median(&[])), (2.0, 2.5, 0.0));
}
