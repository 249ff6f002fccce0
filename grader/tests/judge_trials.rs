//! Fake observations in, statuses out: the judge and the streams that feed it, with no compiler and no worker.

use crate::fake;

use std::sync::atomic::{AtomicUsize, Ordering};

use fake::*;
use heat_grader::execute::{HazardKind, InputChange, Memory, Place, Processor, RunFault, Trial, Watch};
use heat_grader::judge::outcome::Writer;
use heat_grader::judge::plan::{Means, Uncounted};
use heat_grader::verdict::{CheckId, Status};

#[test]
fn a_right_kernel_passes_every_check() {
    let judgement = judged(&FakeEngine::right());
    assert_eq!(letters(&judgement), "pppppp");
    assert_eq!(check(&judgement, CheckId::Time).status, Status::Skip);
    assert!(judgement.first_mismatch.is_none());
    assert_eq!(judgement.reads.map(|reads| reads.per_cell_step()), Some(1.0));
}

#[test]
fn a_fault_in_the_first_launch_is_found_at_the_first_size_and_stops_the_trials() {
    let judgement = judged(&FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 3, 5, 9.0)));
    assert_eq!(letters(&judgement), "fsssss");
    let first = judgement.first_mismatch.clone().expect("a mismatch");
    assert_eq!((first.n, first.launch, first.last_right), (20, 1, 0));
    assert_eq!((first.cell.row, first.cell.column, first.cell.got), (3, 5, 9.0));
    assert!(matches!(first.writer, Writer::By(write) if write.actor.thread == [3, 4, 0]));
    assert_eq!((first.map.n, first.map.wrong_cells), (20, 1));
    assert!(first.map.at(3, 5).is_some());
    assert_eq!(check(&judgement, CheckId::Reads).summary, "not reached: `values` failed");
}

#[test]
fn one_step_too_few_is_wrong_everywhere() {
    let judgement = judged(&FakeEngine::new(step));
    let values = check(&judgement, CheckId::Values);
    assert!(values.details[0].starts_with("324 of 400 cells are wrong"), "{values:?}");

    fn step(grid: &heat_grader::grid::Grid, r: f32, _: u32) -> heat_grader::grid::Grid {
        fake::step(grid, r)
    }
}

#[test]
fn a_fault_that_needs_a_hot_cell_is_placed_by_bisection() {
    // Goes wrong in the launch that finds cell (20, 20) of the 40 x 40 grid cooled or warmed past a mark: late, and
    // depending on the grid alone, so that it shows again from any grid before it.
    let late = |grid: &heat_grader::grid::Grid, r: f32, _: u32| {
        let next = two_steps(grid, r);
        let gone = grid.n() == 40 && spread(grid) < 0.02;
        if gone { with_cell(&next, 20, 20, 5.0) } else { next }
    };
    fn spread(grid: &heat_grader::grid::Grid) -> f32 {
        (grid.at(20, 20) - grid.at(20, 21)).abs() + (grid.at(20, 20) - grid.at(21, 20)).abs()
    }
    let initial =
        heat_grader::judge::plan::plan(&exercise(), heat_grader::judge::plan::Scope::Full, 11, &Means::default());
    let long = initial.iter().find(|planned| planned.launches == 100).expect("the long run");
    let long = long.trial(std::sync::Arc::new(long.initial()));
    let (mut grid, mut launch) = (long.initial.as_ref().clone(), 1);
    while spread(&grid) >= 0.02 {
        (grid, launch) = (two_steps(&grid, 0.2), launch + 1);
    }
    assert!(launch > 3, "late enough for this test: {launch}");
    let judgement = judged(&FakeEngine::new(late));
    let first = judgement.first_mismatch.clone().expect("a mismatch");
    assert_eq!((first.n, first.launch, first.last_right), (40, launch, launch - 1), "{first:?}");
    assert_eq!((first.cell.row, first.cell.column), (20, 20));
    assert_eq!((first.map.n, first.map.wrong_cells), (40, 1), "the map is of that launch, before the fault spreads");
}

#[test]
fn a_fault_of_a_late_launch_number_is_placed_from_the_beginning() {
    let late = |grid: &heat_grader::grid::Grid, r: f32, before: u32| {
        let next = two_steps(grid, r);
        if before >= 60 { with_cell(&next, 7, 7, 9.0) } else { next }
    };
    let judgement = judged(&FakeEngine::new(late));
    let first = judgement.first_mismatch.clone().expect("a mismatch");
    assert_eq!((first.launch, first.last_right), (61, 60), "{first:?}");
    assert_eq!((first.cell.row, first.cell.column, first.cell.got), (7, 7, 9.0));
    assert_eq!(first.map.wrong_cells, 1);
    assert_eq!(letters(&judgement), "fpppps");
}

#[test]
fn a_drift_within_the_long_runs_tolerance_is_seen_by_the_spots() {
    // 3e-5 a launch: over the bound of one launch (4e-6), under that of the run (4e-4), undone by diffusion.
    let drift = |grid: &heat_grader::grid::Grid, r: f32, before: u32| {
        let next = two_steps(grid, r);
        if before < 3 || grid.n() < 20 {
            return next;
        }
        let cell = next.at(9, 9) + 3e-5;
        with_cell(&next, 9, 9, cell)
    };
    let judgement = judged(&FakeEngine::new(drift));
    assert_eq!(check(&judgement, CheckId::Values).status, Status::Fail);
    let first = judgement.first_mismatch.clone().expect("a mismatch");
    assert_eq!((first.cell.row, first.cell.column), (9, 9));
    assert!(first.map.at(9, 9).is_some());
}

#[test]
fn nan_fails_values() {
    let judgement = judged(&FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 1, 1, f32::NAN)));
    assert_eq!(check(&judgement, CheckId::Values).status, Status::Fail);
    assert!(check(&judgement, CheckId::Values).details[0].contains("NaN"));
}

#[test]
fn a_changed_ring_fails_ring_and_is_a_wrong_cell_as_well() {
    let judgement = judged(&FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 0, 4, 3.0)));
    assert_eq!(letters(&judgement), "ffssss");
    let first = judgement.first_mismatch.clone().expect("a mismatch");
    assert_eq!((first.launch, first.cell.row, first.cell.column), (1, 0, 4));
    assert!(first.map.at(0, 4).is_some());
    assert!(check(&judgement, CheckId::Values).details.iter().any(|detail| detail.contains("see `ring`")));
}

#[test]
fn the_least_change_of_the_ring_is_one() {
    let nudge = |grid: &heat_grader::grid::Grid, r: f32, _: u32| {
        let next = two_steps(grid, r);
        let up = f32::from_bits(next.at(4, 0).to_bits() + 1);
        with_cell(&next, 4, 0, up)
    };
    assert_eq!(letters(&judged(&FakeEngine::new(nudge))), "sfssss");
}

/// Hazards of the watched trials, and the statuses that they come to.
#[test]
fn hazards_come_to_these_statuses() {
    let table = [
        (HazardKind::OutOfRange, "ssfsss"),
        (HazardKind::InputWritten, "ssfsss"),
        (HazardKind::ConstantWritten, "ssfsss"),
        (HazardKind::ForeignLocal, "ssfsss"),
        (HazardKind::NeverWritten, "ppwppp"),
        (HazardKind::ReadWriteRace, "pppfpp"),
        (HazardKind::WriteWriteRace, "pppfpp"),
        (HazardKind::SameValueRace, "pppwpp"),
        (HazardKind::BarrierDivergence, "pppfpp"),
        (HazardKind::BarrierAfterExit, "pppwpp"),
    ];
    for (kind, expected) in table {
        let engine = FakeEngine::right().touched(move |trial, seen| {
            if trial.watch == Watch::Full && trial.initial.n() >= 20 {
                seen.hazards.push(hazard(kind));
            }
        });
        let judgement = judged(&engine);
        assert_eq!(letters(&judgement), expected, "{kind:?}");
        assert_eq!(judgement.hazards.len(), 1, "each site once, at both sizes: {kind:?}");
    }
}

#[test]
fn unfilled_cells_and_early_returns_fail_when_the_grids_are_wrong() {
    for (kind, expected) in [(HazardKind::NeverWritten, "fsfsss"), (HazardKind::BarrierAfterExit, "fssfss")] {
        let wrong = FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 3, 3, 9.0));
        let judgement = judged(&wrong.touched(move |_, seen| seen.hazards.push(hazard(kind))));
        assert_eq!(letters(&judgement), expected, "{kind:?}");
    }
}

#[test]
fn a_changed_input_fails_memory() {
    let change = InputChange { launch: 1, row: 2, column: 3, before: 0.5, after: 0.75 };
    let judgement = judged(&FakeEngine::right().touched(move |_, seen| seen.input_changed = Some(change)));
    assert_eq!(letters(&judgement), "ssfsss");
    assert!(check(&judgement, CheckId::Memory).summary.contains("row 2, column 3"));
}

/// What ends a run early, and the statuses that it comes to; the launch check stands apart.
#[test]
fn faults_come_to_these_statuses() {
    let place = Some(Place { line: 57, column: 0 });
    let crash = RunFault::Crash {
        launch: 1,
        what: "wild load".to_owned(),
        memory: Some(Memory::Wild { address: 16 }),
        place,
        actor: None,
    };
    let table = [
        (crash, "ssfsss", None),
        (RunFault::Hang { launch: 1, seconds: 10.0, on: Processor::Cpu, place, actor: None }, "fsssss", None),
        (RunFault::TooSlow { launch: 7, seconds: 100.0 }, "fsssss", None),
        (RunFault::Deadlock { launch: 1 }, "sssfss", None),
        (
            RunFault::LaunchRefused { launch: 1, reason: "2048 threads a block".to_owned() },
            "ssssss",
            Some(Status::Fail),
        ),
        (RunFault::CannotJudge { construct: "inline PTX".to_owned(), place }, "ssssss", None),
        (RunFault::WallLimit { launch: 1, wall_seconds: 60.0 }, "ssssss", None),
    ];
    for (fault, expected, launch) in table {
        let ending = fault.clone();
        let engine = FakeEngine::right().touched(move |_, seen| ended_by(seen, ending.clone()));
        let judgement = judged(&engine);
        assert_eq!(letters(&judgement), expected, "{fault:?}");
        let found = judgement.checks.iter().find(|check| check.id == CheckId::Launch).map(|check| check.status);
        assert_eq!(found, launch, "{fault:?}");
        if let RunFault::Hang { seconds, .. } = fault {
            assert!(judgement.seconds.iter().map(|(_, taken)| taken).sum::<f64>() >= seconds, "a hang takes its time");
        }
    }
}

#[test]
fn reads_over_the_budget_fail_and_do_not_stop_the_trials() {
    let engine = FakeEngine::right().touched(|trial, seen| {
        let cells = (trial.initial.n() as u64 - 2).pow(2);
        seen.words_read.iter_mut().for_each(|words| *words = 10 * cells);
    });
    let judgement = judged(&engine);
    assert_eq!(letters(&judgement), "ppppfp");
    assert!(check(&judgement, CheckId::Reads).summary.starts_with("5.000 words read per cell-step, over the budget"));
}

#[test]
fn the_larger_of_the_counted_launches_counts() {
    let engine = FakeEngine::right().touched(|_, seen| {
        if let Some(third) = seen.words_read.get_mut(2) {
            *third *= 3;
        }
    });
    assert_eq!(judged(&engine).reads.map(|reads| reads.per_cell_step()), Some(3.0));
}

#[test]
fn a_launch_of_the_long_run_that_reads_more_than_the_first_one_counts() {
    // The long run's counted launches keep no grid: the first one, then the drawn ones.
    let counted = AtomicUsize::new(0);
    let engine = FakeEngine::right().touched(move |trial, seen| {
        if trial.watch == Watch::Count && trial.keep.is_empty() && counted.fetch_add(1, Ordering::Relaxed) == 2 {
            seen.words_read.iter_mut().for_each(|words| *words *= 3);
        }
    });
    let judgement = judged(&engine);
    assert_eq!(letters(&judgement), "ppppfp");
    let said = &check(&judgement, CheckId::Reads).summary;
    assert!(
        said.starts_with("3.000 words read per cell-step in launch ") && said.ends_with("over the budget of 1.5"),
        "{said}"
    );
    let cause = &judgement.causes[0].sentence;
    assert!(cause.contains("reads more than launch 1 did"), "{cause}");
}

#[test]
fn what_happens_in_the_last_launches_of_the_long_run_alone_is_seen() {
    let late = |trial: &Trial| trial.watch == Watch::Full && trial.keep.is_empty();
    let engine = FakeEngine::right().touched(move |trial, seen| {
        seen.hazards.extend(late(trial).then(|| hazard(HazardKind::ReadWriteRace)));
    });
    let judgement = judged(&engine);
    assert_eq!(letters(&judgement), "pppfpp");
    let [seen] = &judgement.hazards[..] else { panic!("{:?}", judgement.hazards) };
    assert!(seen.hazard.launch > 1, "a launch of the long run, not of the run that watched it: {seen:?}");
    let change = InputChange { launch: 1, row: 2, column: 3, before: 0.5, after: 0.75 };
    let engine = FakeEngine::right().touched(move |trial, seen| seen.input_changed = late(trial).then_some(change));
    assert_eq!(letters(&judged(&engine)), "ppfpps");
}

#[test]
fn a_count_too_small_to_be_true_is_not_judged() {
    let engine = FakeEngine::right().touched(|_, seen| seen.words_read.iter_mut().for_each(|words| *words = 7));
    let judgement = judged(&engine);
    assert_eq!(letters(&judgement), "ppppsp");
    assert!(check(&judgement, CheckId::Reads).summary.starts_with("could not be judged: 7 words"));
}

#[test]
fn odd_sizes_warn_and_fail_only_when_strict() {
    let odd = || FakeEngine::new(|grid, r, _| if grid.n() == 5 { grid.clone() } else { two_steps(grid, r) });
    let judgement = judged_with(&odd(), false);
    assert_eq!(letters(&judgement), "pppppw");
    assert_eq!(check(&judgement, CheckId::Portable).summary, "not right at n = 5; right at n = 3, 7");
    assert!(judgement.first_mismatch.is_none());
    assert_eq!(letters(&judged_with(&odd(), true)), "pppppf");
}

#[test]
fn a_launch_refused_at_an_odd_size_is_no_failed_launch() {
    let engine = FakeEngine::right().touched(|trial, seen| {
        if trial.initial.n() == 3 {
            ended_by(seen, RunFault::LaunchRefused { launch: 1, reason: "an empty grid".to_owned() });
        }
    });
    let judgement = judged(&engine);
    assert_eq!(letters(&judgement), "pppppw");
    assert!(check(&judgement, CheckId::Portable).details[0].contains("an empty grid"));
}

#[test]
fn a_wrong_kernel_never_starts_the_long_run() {
    let engine = FakeEngine::new(|grid, _, _| grid.clone());
    judged(&engine);
    assert!(engine.runs.load(Ordering::Relaxed) < 12, "{:?}", engine.runs);
}

#[test]
fn an_engine_that_keeps_other_grids_is_an_error_and_no_verdict() {
    let exercise = exercise();
    let options = heat_grader::judge::Options { scope: heat_grader::judge::plan::Scope::Quick, strict: false, seed: 1 };
    let mut judge = heat_grader::judge::Judge::new(&exercise, options, Means::default());
    let engine = FakeEngine::right().touched(|_, seen| drop(seen.grids.pop()));
    assert!(heat_grader::grade::trials::run(&engine, &exercise, &mut judge, &|_| {}).is_err());
}

#[test]
fn one_seed_gives_one_judgement() {
    let engine = || FakeEngine::new(|grid, r, before| if before > 30 { grid.clone() } else { two_steps(grid, r) });
    let (one, two) = (judged(&engine()), judged(&engine()));
    assert_eq!((one.checks, one.first_mismatch), (two.checks, two.first_mismatch));
}

#[test]
fn a_mismatch_seen_by_a_shortcut_counts_only_where_it_shows_without() {
    let shortcut_breaks = |trial: &heat_grader::execute::Trial, seen: &mut heat_grader::execute::Observation| {
        seen.shortcut = trial.shortcuts && trial.launches > 3;
        if seen.shortcut {
            let (_, grid) = seen.grids.last_mut().expect("a grid is kept");
            *grid = with_cell(grid, 3, 5, 9.0);
        }
    };
    let judgement = judged(&FakeEngine::right().touched(shortcut_breaks));
    assert_eq!(letters(&judgement), "pppppp");
    assert!(judgement.first_mismatch.is_none());

    let wrong = |grid: &heat_grader::grid::Grid, r: f32, launch: u32| {
        let next = two_steps(grid, r);
        if launch >= 50 { with_cell(&next, 3, 5, 9.0) } else { next }
    };
    let shortcut_used = |trial: &heat_grader::execute::Trial, seen: &mut heat_grader::execute::Observation| {
        assert!(trial.watch == Watch::Fast || trial.launches <= 3);
        seen.shortcut = trial.shortcuts && trial.launches > 3;
    };
    let judgement = judged(&FakeEngine::new(wrong).touched(shortcut_used));
    assert_eq!(judgement.first_mismatch.expect("a mismatch").launch, 51);
}

fn gpu() -> Means {
    Means { gpu: true, ..Means::default() }
}

#[test]
fn beside_a_gpu_a_right_kernel_passes_and_a_timing_that_fails_harms_nobody() {
    let judgement = judged(&FakeEngine::right().with(gpu()));
    assert_eq!(letters(&judgement), "pppppp");
    let time = check(&judgement, CheckId::Time);
    assert_eq!((time.status, &*time.summary), (Status::Skip, "not timed: this engine has no GPU to time on"));
}

#[test]
fn a_gpu_that_many_want_is_left_to_kernels_in_which_engine_cpu_finds_nothing() {
    let on_gpu = |kernel: fn(&heat_grader::grid::Grid, f32, u32) -> heat_grader::grid::Grid| {
        let engine = FakeEngine { spares_gpu: true, ..FakeEngine::new(kernel) }.with(gpu());
        let judgement = judged(&engine);
        (letters(&judgement), engine.runners_on_gpu.load(Ordering::Relaxed))
    };
    let (right, runners) = on_gpu(|grid, r, _| two_steps(grid, r));
    assert!(right == "pppppp" && runners > 0, "{right}, {runners}");
    let (wrong, runners) = on_gpu(|grid, _, _| grid.clone());
    assert!(wrong.starts_with('f') && runners == 0, "{wrong}, {runners}");
}

#[test]
fn two_runs_that_end_differently_are_a_race_though_both_are_right() {
    let runs = std::sync::atomic::AtomicU32::new(0);
    let jitter = move |trial: &heat_grader::execute::Trial, seen: &mut heat_grader::execute::Observation| {
        if trial.launches == 100 && trial.watch == Watch::Fast {
            let (_, grid) = seen.grids.last_mut().expect("a grid is kept");
            let up = if runs.fetch_add(1, Ordering::Relaxed) == 0 { 0.0 } else { 1e-6 };
            *grid = with_cell(grid, 3, 5, grid.at(3, 5) + up);
        }
    };
    let judgement = judged(&FakeEngine::right().with(gpu()).touched(jitter));
    assert_eq!(letters(&judgement), "pppfpp");
    let race = check(&judgement, CheckId::Race);
    assert!(race.summary.starts_with("two runs from the same grid differ: row 3, column 5 is "), "{race:?}");
}

#[test]
fn a_kernel_that_no_thread_was_watched_in_is_for_the_instructor() {
    let means = Means { unwatched: Some("heat.cu:7 uses inline assembly".to_owned()), ..gpu() };
    let judgement = judged(&FakeEngine::right().with(means));
    assert_eq!(letters(&judgement), "ppwwpp");
    for id in [CheckId::Memory, CheckId::Race] {
        let check = check(&judgement, id);
        assert!(check.summary.starts_with("for the instructor to look at: "), "{check:?}");
        assert_eq!(check.details, ["heat.cu:7 uses inline assembly."]);
    }
}

#[test]
fn what_cannot_be_counted_is_nobodys_fault_unless_it_hides_reads() {
    let uncounted = |hides| {
        let uncounted = Uncounted { construct: "a texture read (tex.1d)".to_owned(), line: Some(41), hides };
        let judgement = judged(&FakeEngine::right().with(Means { uncounted: Some(uncounted), ..gpu() }));
        let reads = check(&judgement, CheckId::Reads);
        (reads.status, reads.summary.clone(), reads.place.map(|place| place.line))
    };
    let skipped = "could not be judged: heat.cu:41: a texture read (tex.1d) cannot be counted".to_owned();
    assert_eq!(uncounted(false), (Status::Skip, skipped, Some(41)));
    let failed = "heat.cu:41: a texture read (tex.1d) hides what it reads".to_owned();
    assert_eq!(uncounted(true), (Status::Fail, failed, Some(41)));
}
