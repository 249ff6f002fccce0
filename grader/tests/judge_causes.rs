//! Causes as a whole judgement has them, over a fake engine: which one comes first, and when there is none.

use crate::fake;

use fake::*;
use heat_grader::execute::{Actor, Hazard, HazardKind, Memory, Place, RunFault};
use heat_grader::grid::Grid;
use heat_grader::judge::Judgement;
use heat_grader::judge::diagnosis::{Code, Known};
use heat_grader::submission::remarks::Filled;
use heat_grader::verdict::{CheckId, Status};

fn codes(judgement: &Judgement) -> Vec<Code> {
    judgement.causes.iter().map(|cause| cause.code).collect()
}

/// A race in shared memory between lines 57 and 60.
fn race(name: &str) -> Hazard {
    Hazard {
        memory: Some(Memory::Shared { name: name.to_owned(), byte: 8, lengths: Vec::new() }),
        other: Some((Actor { block: [0, 0, 0], thread: [2, 0, 0] }, Some(Place { line: 60, column: 1 }))),
        ..hazard(HazardKind::ReadWriteRace)
    }
}

fn seeing(engine: FakeEngine, hazards: Vec<Hazard>) -> FakeEngine {
    engine.touched(move |trial, seen| {
        if trial.watch == heat_grader::execute::Watch::Full {
            seen.hazards = hazards.clone();
        }
    })
}

#[test]
fn a_right_kernel_has_no_cause_whatever_harmless_thing_was_seen() {
    assert!(codes(&judged(&FakeEngine::right())).is_empty());
    let idle =
        vec![hazard(HazardKind::NeverWritten), hazard(HazardKind::BarrierAfterExit), hazard(HazardKind::SameValueRace)];
    let judgement = judged(&seeing(FakeEngine::right(), idle));
    assert_eq!(check(&judgement, CheckId::Memory).status, Status::Warn);
    assert!(codes(&judgement).is_empty());
}

#[test]
fn what_odd_sizes_show_is_a_cause_where_they_decide() {
    let odd = || {
        FakeEngine::right().touched(|trial, seen| {
            if trial.initial.n() == 7 {
                let memory = Some(Memory::In { cell: 49 });
                seen.hazards = vec![Hazard { memory, ..hazard(HazardKind::OutOfRange) }];
            }
        })
    };
    assert!(codes(&judged(&odd())).is_empty(), "a warning has no cause");
    let strict = judged_with(&odd(), true);
    assert_eq!((letters(&strict).as_str(), codes(&strict)), ("pppppf", vec![Code::IndexOutOfRange]));
    assert!(strict.causes[0].sentence.contains("outside the grid"), "{:?}", strict.causes);
    let known = Known { written_n: Some(31), ..Known::default() };
    let written = judged_knowing(&odd(), true, known);
    assert_eq!(codes(&written), [Code::HardCodedN, Code::IndexOutOfRange]);
    assert!(written.causes[0].evidence[0].contains("n = 7"), "{:?}", written.causes);
}

#[test]
fn a_missing_timestep_is_a_cause_and_an_unexplained_cell_is_none() {
    let judgement = judged(&FakeEngine::new(|grid, r, _| step(grid, r)));
    assert_eq!(codes(&judgement), [Code::OnlyOneStep]);
    assert!(judgement.causes[0].evidence[0].contains("before launch 1, gives the same value in every one of 324"));
    let unexplained = judged(&FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 3, 5, 9.0)));
    assert!(codes(&unexplained).is_empty());
}

#[test]
fn a_variable_that_only_host_code_fills_is_the_cause_of_another_r() {
    let known = || Known { filled: Some(Filled { name: "dR".to_owned(), line: 35 }), ..Known::default() };
    let judgement = judged_knowing(&FakeEngine::new(|grid, r, _| step(&step(grid, r), 0.1)), false, known());
    assert_eq!(codes(&judgement), [Code::FilledByHost, Code::WrongR]);
    assert!(judgement.causes[0].sentence.contains("dR") && judgement.causes[0].sentence.contains("(line 35)"));
    assert!(codes(&judged_knowing(&FakeEngine::right(), false, known())).is_empty(), "a right kernel has no cause");
    let raced = judged_knowing(&seeing(FakeEngine::right(), vec![race("tile")]), false, known());
    assert_eq!(codes(&raced), [Code::MissingBarrier], "what the threads did has nothing to do with it");
}

#[test]
fn a_fault_that_begins_late_is_explained_at_the_launch_where_it_begins() {
    let judgement = judged(&FakeEngine::new(|grid, r, before| match before {
        0..=39 => two_steps(grid, r),
        _ => step(&step(grid, r), 0.1),
    }));
    assert_eq!(codes(&judgement), [Code::WrongR]);
    assert!(judgement.causes[0].sentence.contains("r = 0.1"), "{:?}", judgement.causes);
    assert!(judgement.causes[0].evidence[0].contains("launch 41"), "{:?}", judgement.causes);
}

#[test]
fn what_the_threads_did_is_a_cause_with_both_lines() {
    let raced = judged(&seeing(FakeEngine::right(), vec![race("tile")]));
    assert_eq!(codes(&raced), [Code::MissingBarrier]);
    assert!(raced.causes[0].sentence.contains("line 57 and at line 60"), "{:?}", raced.causes);
    let table = [
        (HazardKind::BarrierDivergence, Code::BarrierNotReachedByAll),
        (HazardKind::InputWritten, Code::InPlaceUpdate),
        (HazardKind::WriteWriteRace, Code::TwoWriters),
        (HazardKind::OutOfRange, Code::IndexOutOfRange),
    ];
    for (kind, code) in table {
        assert_eq!(codes(&judged(&seeing(FakeEngine::right(), vec![hazard(kind)]))), [code]);
    }
    let between_blocks = Hazard {
        memory: Some(Memory::Out { cell: 40 }),
        other: Some((Actor { block: [1, 0, 0], thread: [0, 0, 0] }, None)),
        ..hazard(HazardKind::ReadWriteRace)
    };
    assert_eq!(codes(&judged(&seeing(FakeEngine::right(), vec![between_blocks]))), [Code::BlocksExchange]);
}

#[test]
fn a_fault_of_arithmetic_comes_before_what_the_threads_did_and_a_race_hides_what_it_leaves_unfilled() {
    let two = judged(&seeing(FakeEngine::new(|grid, r, _| step(grid, r)), vec![race("tile")]));
    assert_eq!(codes(&two), [Code::OnlyOneStep, Code::MissingBarrier]);
    let spoilt = || FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 3, 5, 9.0));
    let never = |name: &str| Hazard { memory: race(name).memory, ..hazard(HazardKind::NeverWritten) };
    let codes_of = |hazards: Vec<Hazard>| codes(&judged(&seeing(spoilt(), hazards)));
    assert_eq!(codes_of(vec![never("tile"), race("tile")]), [Code::MissingBarrier]);
    assert_eq!(codes_of(vec![never("sides"), race("tile")]), [Code::MissingBarrier, Code::SharedNotFilled]);
    let passed_by = hazard(HazardKind::BarrierDivergence);
    assert_eq!(codes_of(vec![never("tile"), passed_by]), [Code::BarrierNotReachedByAll]);
}

#[test]
fn a_barrier_that_not_all_reach_is_not_called_missing() {
    let at = |line: u32| Hazard { place: Some(Place { line, column: 5 }), ..hazard(HazardKind::BarrierAfterExit) };
    let codes_of = |hazards: Vec<Hazard>| {
        let spoilt = FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 3, 5, 9.0));
        codes(&judged(&seeing(spoilt, hazards)))
    };
    assert_eq!(codes_of(vec![race("tile"), at(58)]), [Code::BarrierNotReachedByAll], "between lines 57 and 60");
    assert_eq!(codes_of(vec![race("tile"), at(70)]), [Code::MissingBarrier, Code::BarrierNotReachedByAll]);
    let two = Hazard {
        other: Some((Actor { block: [0; 3], thread: [2, 0, 0] }, Some(Place { line: 22, column: 5 }))),
        ..hazard(HazardKind::BarrierDivergence)
    };
    let judgement = judged(&seeing(FakeEngine::right(), vec![two]));
    assert!(judgement.causes[0].sentence.contains("some at line 22 and others at line 57"), "{:?}", judgement.causes);
}

#[test]
fn blocks_that_meet_in_a_grid_are_told_of_blocks() {
    let met = |block: u32| Hazard {
        memory: Some(Memory::Out { cell: 40 }),
        place: Some(Place { line: 57 + block, column: 5 }),
        other: Some((Actor { block: [block, 0, 0], thread: [2, 0, 0] }, Some(Place { line: 60, column: 1 }))),
        ..hazard(HazardKind::ReadWriteRace)
    };
    let judgement = judged(&seeing(FakeEngine::right(), vec![met(0), met(1)]));
    assert_eq!(codes(&judgement), [Code::BlocksExchange], "not a barrier for those of one block");
    let race = check(&judged(&seeing(FakeEngine::right(), vec![met(1)])), CheckId::Race).clone();
    assert!(race.summary.contains("races with another block's access"), "{race:?}");
    assert!(race.details[1].starts_with("No __syncthreads() makes one block wait for another"), "{race:?}");
    let stored = Hazard { kind: HazardKind::WriteWriteRace, ..met(1) };
    let judgement = judged(&seeing(FakeEngine::right(), vec![met(0), stored]));
    assert_eq!(codes(&judgement), [Code::BlocksExchange, Code::TwoWriters], "blocks meet there by their stores");
    let own = judged(&seeing(FakeEngine::right(), vec![met(0)]));
    assert_eq!(codes(&own), [Code::MissingBarrier]);
}

#[test]
fn an_index_that_leads_into_the_next_row_is_no_second_owner_of_its_words() {
    let memory = || Some(Memory::Shared { name: "tile".to_owned(), byte: 4 * 36, lengths: vec![12, 36] });
    let twice = Hazard { memory: memory(), ..hazard(HazardKind::WriteWriteRace) };
    let stray = Hazard { memory: memory(), store: true, ..hazard(HazardKind::OutOfRange) };
    assert_eq!(codes(&judged(&seeing(FakeEngine::right(), vec![twice.clone(), stray]))), [Code::IndexOutOfRange]);
    assert_eq!(codes(&judged(&seeing(FakeEngine::right(), vec![twice]))), [Code::TwoWriters]);
}

#[test]
fn a_number_in_place_of_n_is_a_cause_where_the_far_walls_or_far_rows_show_it() {
    let far_walls = |grid: &Grid, r: f32, _: u32| {
        let n = grid.n();
        let next = two_steps(grid, r);
        (1..n - 1).fold(next, |next, row| {
            let value = next.at(row, n - 2) + 1.0 + row as f32 / 7.0;
            with_cell(&next, row, n - 2, value)
        })
    };
    let known = || Known { written_n: Some(31), ..Known::default() };
    let judgement = judged_knowing(&FakeEngine::new(far_walls), false, known());
    assert_eq!(codes(&judgement), [Code::HardCodedN]);
    assert!(judgement.causes[0].sentence.contains("(line 31)"));
    assert!(
        codes(&judged(&FakeEngine::new(far_walls))).is_empty(),
        "without the number in the text nothing is certain"
    );
    let middle = FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 9, 9, 9.0));
    assert!(codes(&judged_knowing(&middle, false, known())).is_empty());
    let load = |cell| Hazard { memory: Some(Memory::In { cell }), ..hazard(HazardKind::OutOfRange) };
    let outside = |cell| codes(&judged_knowing(&seeing(FakeEngine::right(), vec![load(cell)]), false, known()));
    assert_eq!(outside(12_291), [Code::HardCodedN, Code::IndexOutOfRange]);
    assert_eq!(outside(20 * 20 + 5), [Code::IndexOutOfRange], "the row below the grid");
}

#[test]
fn a_site_is_named_once_and_an_index_before_the_start_as_such() {
    let before = |column: u32| Hazard {
        memory: Some(Memory::Shared { name: "tile".to_owned(), byte: -4, lengths: Vec::new() }),
        place: Some(Place { line: 57, column }),
        ..hazard(HazardKind::OutOfRange)
    };
    let judgement = judged(&seeing(FakeEngine::right(), vec![before(9), before(30)]));
    assert_eq!(judgement.causes[0].sentence, "An index runs before the start of array tile at line 57.");
    assert_eq!(judgement.causes[0].evidence.len(), 1, "{:?}", judgement.causes);
}

#[test]
fn a_site_seen_at_several_words_is_told_once() {
    let race = |word: i64, column: u32| Hazard {
        memory: Some(Memory::Shared { name: "tile".to_owned(), byte: 4 * word, lengths: vec![12, 36] }),
        place: Some(Place { line: 57, column }),
        ..hazard(HazardKind::ReadWriteRace)
    };
    let elsewhere = Hazard { place: Some(Place { line: 70, column: 3 }), ..race(1, 3) };
    let judgement = judged(&seeing(FakeEngine::right(), vec![race(304, 9), race(305, 20), elsewhere, race(9, 40)]));
    let race = check(&judgement, CheckId::Race);
    assert!(race.summary.starts_with("heat.cu:57: load of shared tile[8][16] (declared [12][36]) races"), "{race:?}");
    let also: Vec<&String> = race.details.iter().filter(|detail| detail.starts_with("Also ")).collect();
    assert!(also.len() == 1 && also[0].starts_with("Also heat.cu:70: "), "{race:?}");
    assert_eq!(judgement.causes[0].evidence.len(), 2, "{:?}", judgement.causes);
}

#[test]
fn a_word_that_threads_race_for_is_no_miscounted_apron() {
    let never = || Hazard { memory: race("tile").memory, ..hazard(HazardKind::NeverWritten) };
    let spoilt = || FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 9, 9, 9.0));
    let advice = |hazards: Vec<Hazard>| check(&judged(&seeing(spoilt(), hazards)), CheckId::Memory).details[1].clone();
    assert!(advice(vec![never()]).starts_with("Every shared cell that a timestep reads"));
    assert!(advice(vec![never(), race("tile")]).contains("(see `race`)"));
    assert!(advice(vec![never(), race("other")]).starts_with("Every shared cell that a timestep reads"));
    let judgement = judged(&seeing(spoilt(), vec![never()]));
    assert_eq!(judgement.causes[0].sentence, "Line 57 uses cells of shared array tile that no thread has filled.");
}

#[test]
fn an_index_that_leads_to_another_row_of_its_array_says_where() {
    let index = Hazard {
        memory: Some(Memory::Shared { name: "tile".to_owned(), byte: 4 * 36, lengths: vec![12, 36] }),
        ..hazard(HazardKind::OutOfRange)
    };
    let judgement = judged(&seeing(FakeEngine::right(), vec![index]));
    let said = &check(&judgement, CheckId::Memory).summary;
    assert!(said.contains("an index is out of range: it leads to shared tile[1][0] (declared [12][36])"), "{said}");
    let row = Hazard {
        memory: Some(Memory::SharedRow { name: "grids".to_owned(), index: 2, lengths: vec![2, 12, 36] }),
        ..hazard(HazardKind::OutOfRange)
    };
    let judgement = judged(&seeing(FakeEngine::right(), vec![row]));
    let said = &check(&judgement, CheckId::Memory).summary;
    assert!(said.contains("load of shared grids[2] (declared [2][12][36]) is out of range"), "{said}");
    assert_eq!(judgement.causes[0].sentence, "An index runs past the end of array grids at line 57.");
}

#[test]
fn a_launch_that_never_ends_blames_no_barrier_that_nobody_saw() {
    let stuck = FakeEngine::right().touched(|_, seen| ended_by(seen, RunFault::Deadlock { launch: 1 }));
    let race = check(&judged(&stuck), CheckId::Race).clone();
    assert!(race.details[0].contains("at a shuffle") && race.details[0].contains("its mask names"), "{race:?}");
}
