//! The report in all its formats, over whole grades with fake stations.

#[path = "html/mod.rs"]
mod html;
#[path = "report_gradescope.rs"]
mod report_gradescope;
#[path = "report_junit.rs"]
mod report_junit;

use crate::fake;

use fake::stations::FakeStations;
use fake::{FakeEngine, ended_by, hazard, step, two_steps, with_cell};
use heat_grader::execute::{Hazard, HazardKind, Memory, Processor, RunFault, Watch};
use heat_grader::exercise::Exercise;
use heat_grader::exit_code::ExitCode;
use heat_grader::grade::{Graded, Refusal};
use heat_grader::report::text::Help;
use heat_grader::report::{Report, github, gradescope, json, junit, text};
use heat_grader::verdict::{Check, CheckId, Status, Verdict};

fn plain_text(graded: &Graded) -> String {
    anstream::adapter::strip_str(&text::render(&graded.report, graded.source.as_deref())).to_string()
}

/// Grades of all kinds, by name.
fn samples() -> Vec<(&'static str, Graded)> {
    let grade = |engine| FakeStations::with(engine).grade();
    let wrong = || FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 3, 5, 9.0));
    let raced = FakeEngine::right().touched(|trial, seen| {
        if trial.watch == Watch::Full {
            let mut race = hazard(HazardKind::ReadWriteRace);
            race.memory = Some(Memory::Shared { name: "tile".to_owned(), byte: 148, lengths: Vec::new() });
            race.other = race.actor.map(|actor| (actor, race.place));
            seen.hazards.push(race);
        }
    });
    let hung = FakeEngine::right().touched(|_, seen| {
        let place = hazard(HazardKind::OutOfRange).place;
        ended_by(seen, RunFault::Hang { launch: 1, seconds: 10.0, on: Processor::Cpu, place, actor: None });
    });
    let chatty = FakeEngine::right().touched(|_, seen| {
        seen.output = format!("\u{1b}[32mPASSED\u{1b}[0m\r\n{}\n{}", "x".repeat(200), "line\n".repeat(20));
    });
    let nan = FakeEngine::new(|grid, r, _| with_cell(&two_steps(grid, r), 1, 1, f32::NAN));
    let mut no_kernel = FakeStations::with(FakeEngine::right());
    no_kernel.find = Err(Check::new(CheckId::Kernel, Status::Fail, "no two-step kernel yet"));
    let mut no_engine = FakeStations::with(FakeEngine::right());
    no_engine.engine = None;
    let mut no_source = FakeStations::with(FakeEngine::right());
    no_source.read = Err(Refusal::Fault("the folder has no heat.cu".to_owned()));
    let error = Report::of_error("no space left on device", ExitCode::Ungraded);
    vec![
        ("right", grade(FakeEngine::right())),
        ("wrong", grade(wrong())),
        ("raced", grade(raced)),
        ("hung", grade(hung)),
        ("chatty", grade(chatty)),
        ("one_step", grade(FakeEngine::new(|grid, r, _| step(grid, r)))),
        ("nan", grade(nan)),
        ("no_compile", FakeStations::with(FakeEngine::right()).with_compile_error().grade()),
        ("no_kernel", no_kernel.grade()),
        ("no_engine", no_engine.grade()),
        ("no_source", no_source.grade()),
        ("error", Graded::without_source(error)),
    ]
}

#[test]
fn a_file_that_no_compiler_makes_a_program_of_fails_at_compile() {
    let mut stations = FakeStations::with(FakeEngine::right());
    stations.too_much = Some("g++ 12.2.0: compiling this file takes too long".to_owned());
    let report = stations.grade().report;
    let said =
        |id: CheckId| report.checks.iter().filter(|check| check.id == id).map(|check| check.status).collect::<Vec<_>>();
    assert_eq!((said(CheckId::Compile), said(CheckId::Values)), (vec![Status::Fail], vec![Status::Skip]));
    assert_eq!(report.verdict, Verdict::Fail);
}

#[test]
fn verdicts_and_exit_codes_follow_the_checks() {
    let expected = [
        ("right", Verdict::Pass, 0, None),
        ("wrong", Verdict::Fail, 1, Some(CheckId::Values)),
        ("raced", Verdict::Fail, 1, Some(CheckId::Race)),
        ("hung", Verdict::Fail, 1, Some(CheckId::Values)),
        ("chatty", Verdict::Pass, 0, None),
        ("one_step", Verdict::Fail, 1, Some(CheckId::Values)),
        ("nan", Verdict::Fail, 1, Some(CheckId::Values)),
        ("no_compile", Verdict::Fail, 1, Some(CheckId::Compile)),
        ("no_kernel", Verdict::Fail, 1, Some(CheckId::Kernel)),
        ("no_engine", Verdict::Ungraded, 3, None),
        ("no_source", Verdict::Fail, 1, Some(CheckId::Source)),
        ("error", Verdict::Ungraded, 3, None),
    ];
    for ((name, graded), (expected, verdict, code, failing)) in samples().iter().zip(expected) {
        assert_eq!(*name, expected);
        let report = &graded.report;
        assert_eq!((report.verdict, report.exit_code, report.failing_check), (verdict, code, failing), "{name}");
        if *name != "error" {
            assert_eq!(report.checks.iter().map(|check| check.id).collect::<Vec<_>>(), CheckId::ALL, "{name}");
        }
    }
}

#[test]
fn every_report_obeys_the_schema_and_survives_json() {
    let schema = serde_json::from_str(&json::schema().unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, graded) in samples() {
        let rendered = json::render(&graded.report).unwrap();
        let value = serde_json::from_str(&rendered).unwrap();
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(serde_json::from_str::<Report>(&rendered).unwrap(), graded.report, "{name}");
    }
}

#[test]
fn a_report_from_before_the_newest_fields_can_still_be_read() {
    let (_, right) = samples().into_iter().find(|(name, _)| *name == "right").unwrap();
    let mut value = serde_json::to_value(&right.report).unwrap();
    for (place, field) in [
        ("", "reads_map"),
        ("", "apron"),
        ("", "sanitizer"),
        ("/environment", "sandbox"),
        ("/environment", "sanitizer_reason"),
    ] {
        value.pointer_mut(place).and_then(|object| object.as_object_mut()?.remove(field)).expect(field);
    }
    let old = Report { reads_map: None, apron: None, ..right.report };
    assert_eq!(serde_json::from_value::<Report>(value).unwrap(), old);
}

#[test]
fn every_line_for_github_is_a_command_and_the_text_beside_it_holds_none() {
    for (name, mut graded) in samples() {
        if let Some(submission) = &mut graded.report.submission {
            submission.path = "::add-mask::ada ##[group]x".to_owned();
        }
        graded.report.output += "\n::stop-commands::x\n##[error]y";
        let commands = github::render(&graded.report);
        assert!(!commands.is_empty(), "{name}");
        for line in commands.lines() {
            assert!(
                ["::error ", "::warning ", "::notice "].iter().any(|kind| line.starts_with(kind)),
                "{name}: {line}"
            );
        }
        assert_eq!(commands.contains("passed::"), graded.report.verdict == Verdict::Pass, "{name}: {commands}");
        let text = plain_text(&graded);
        let command = |line: &str| line.trim_start().starts_with("::") || line.contains("##[");
        assert!(!text.lines().any(command), "{name}:\n{text}");
    }
}

#[test]
fn nan_is_a_string_in_json() {
    let (_, nan) = samples().into_iter().find(|(name, _)| *name == "nan").unwrap();
    let value = serde_json::to_value(&nan.report).unwrap();
    assert_eq!(value["first_mismatch"]["got"], "nan");
    assert!(value["first_mismatch"]["expected"].is_number());
}

#[test]
fn the_checked_in_schema_is_the_one_of_this_code() {
    let checked_in = include_str!("../report/schema-1.json");
    let message = "write it anew: cargo run --release -- schema > grader/report/schema-1.json";
    assert!(checked_in == json::schema().unwrap(), "{message}");
}

#[test]
fn no_line_is_wider_than_eighty_columns_and_no_control_character_is_left() {
    for (name, graded) in samples() {
        let text = plain_text(&graded);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{name}: {line}");
            assert!(!line.contains(|c: char| c.is_control()), "{name}: {line:?}");
        }
        assert!(text.lines().count() <= 45, "{name} fits a screen:\n{text}");
    }
}

#[test]
fn what_a_kernel_prints_stands_behind_a_bar() {
    let (_, chatty) = samples().into_iter().find(|(name, _)| *name == "chatty").unwrap();
    let text = plain_text(&chatty);
    assert!(text.contains("\n  | \\u{1b}[32mPASSED\\u{1b}[0m\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("PASSED")).count(), 1);
}

#[test]
fn what_a_static_constructor_prints_is_shown_likewise_and_is_a_warning() {
    let early = FakeEngine::right().touched(|trial, seen| {
        if trial.watch == Watch::Full && trial.initial.n() == 20 {
            seen.constructors_printed = "PASSED\n".to_owned();
            seen.output = "hello\n".to_owned();
        }
    });
    let graded = FakeStations::with(early).grade();
    let memory = graded.report.checks.iter().find(|check| check.id == CheckId::Memory).unwrap();
    assert!(memory.status == Status::Warn && memory.summary.contains("a static constructor printed"), "{memory:?}");
    assert_eq!(graded.report.verdict, Verdict::Pass, "it does no harm");
    let text = plain_text(&graded);
    assert!(text.contains("\nYour code printed:\n  | PASSED\n  | hello\n"), "{text}");
}

#[test]
fn a_cause_stands_where_the_failure_is_explained_and_a_learners_name_in_it_is_escaped() {
    let hostile = FakeEngine::right().touched(|_, seen| {
        let memory = Some(Memory::Shared { name: "a\u{1b}[2J\nPASSED".to_owned(), byte: 0, lengths: Vec::new() });
        seen.hazards = vec![Hazard { memory, ..hazard(HazardKind::OutOfRange) }];
    });
    let graded = FakeStations::with(hostile).grade();
    let text = plain_text(&graded);
    let cause = text.split("\n\n").find(|part| part.trim_start().starts_with("Cause: ")).expect("a cause");
    assert!(
        cause.contains("a\\u{1b}[2J\\u{a}PASSED") && cause.contains("`heat-grader explain index-out-of-range`"),
        "{text}"
    );
    assert!(!text.lines().any(|line| line.starts_with("PASSED")), "{text}");
    let lines = graded.report.cause_lines(CheckId::Memory);
    assert!(lines[0].starts_with("Cause: An index runs past the end of array a\\u{1b}"), "{lines:?}");
    assert!(graded.report.cause_lines(CheckId::Values).is_empty());
    assert!(junit::render_one(&graded.report).unwrap().contains("heat-grader explain index-out-of-range"));
}

#[test]
fn every_error_of_the_compiler_stands_with_its_line_in_each_format() {
    let mut graded = FakeStations::with(FakeEngine::right()).with_compile_error().grade();
    let mut second = graded.report.diagnostics.iter().find(|said| said.severity == "error").unwrap().clone();
    (second.line, second.column, second.message) = (Some(77), Some(5), "expected a `;`".to_owned());
    graded.report.diagnostics.push(second);
    let points = Exercise::shipped().unwrap().points;
    let results = gradescope::render(&graded.report, None, &points).unwrap().unwrap();
    for shown in [results, junit::render_one(&graded.report).unwrap()] {
        assert!(shown.contains("heat.cu:77:5: expected a `;`"), "{shown}");
    }
    assert!(github::render(&graded.report).contains("line=77,col=5,"));
}

#[test]
fn an_annotation_stands_at_the_store_that_wrote_the_wrong_cell() {
    let (_, mut graded) = samples().into_iter().find(|(name, _)| *name == "wrong").unwrap();
    graded.report.first_mismatch.as_mut().expect("a wrong cell").line = Some(545);
    let text = github::render(&graded.report);
    assert!(text.lines().any(|line| line.starts_with("::error ") && line.contains(",line=545,")), "{text}");
}

#[test]
fn where_nobody_can_type_a_command_none_is_named() {
    let (_, graded) = samples().into_iter().find(|(name, _)| *name == "one_step").unwrap();
    let points = Exercise::shipped().unwrap().points;
    let results = gradescope::render(&graded.report, graded.source.as_deref(), &points).unwrap().unwrap();
    assert!(results.contains("Cause: "), "{results}");
    assert!(!results.contains("--hint") && !results.contains("heat-grader explain"), "{results}");
}

#[test]
fn the_text_reads_like_this() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| {
        for (name, graded) in samples() {
            insta::assert_snapshot!(format!("report_text_{name}"), plain_text(&graded));
        }
    });
}

#[test]
fn the_second_stage_of_help_is_for_those_who_ask() {
    let hinted = |name: &str| {
        let (_, graded) = samples().into_iter().find(|(known, _)| *known == name).unwrap();
        let rendered = text::render_with(&graded.report, graded.source.as_deref(), Help::Hint);
        (plain_text(&graded), anstream::adapter::strip_str(&rendered).to_string())
    };
    let (first, second) = hinted("one_step");
    assert!(
        first.contains("The same check with `--hint` says which way to go.") && !first.contains("Hint:"),
        "{first}"
    );
    assert!(second.contains("\n  Hint: Give the first step a place of its own"), "{second}");
    let (_, unexplained) = hinted("wrong");
    assert!(unexplained.contains("\n  Hint: Take one wrong cell and compute it by hand"), "{unexplained}");
    let (first, second) = hinted("right");
    assert_eq!(first, second, "who passed needs no help");
}

#[test]
fn the_trade_is_told_with_the_learners_sentence_beside_it() {
    let (_, right) = samples().into_iter().find(|(name, _)| *name == "right").unwrap();
    let text = plain_text(&right);
    let told = text.split("The trade:").nth(1).expect("the trade").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.starts_with("A block reads 48 words for 8 cells: 6.00 a cell and launch, 3.00 a cell-step."),
        "{text}"
    );
    assert!(told.contains("update 6 x 4 = 24 cells, its second 4 x 2 = 8. It takes 384 bytes"), "{text}");
    assert!(text.contains("\nYou would ship it:\n  | When the grid is \\u{1b}[31mlarge.\n"), "{text}");
}

#[test]
fn the_first_wrong_cell_is_drawn_with_its_neighbours() {
    let (_, wrong) = samples().into_iter().find(|(name, _)| *name == "wrong").unwrap();
    let around = wrong.report.first_mismatch.as_ref().and_then(|first| first.around.as_ref()).expect("neighbours");
    assert_eq!((around.row, around.column, &around.block_columns), (1, 3, &vec![4]));
    assert_eq!(around.wrong, [".....", ".....", "..#..", ".....", "....."]);
    let text = plain_text(&wrong);
    assert!(text.contains("Where it is wrong: a dot is one cell") && text.contains("9.0000"), "{text}");
    assert!(text.contains("lines part the cells of two blocks"), "{text}");
}
