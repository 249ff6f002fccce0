//! What compute-sanitizer's findings do to the checks, and how they are reported.

use crate::fake;

use fake::{FakeEngine, check, judged};
use heat_grader::execute::sanitized::{Finding, FindingKind, Sanitized, SanitizerTool};
use heat_grader::execute::{Actor, Place};
use heat_grader::judge::plan::Means;
use heat_grader::report::text;
use heat_grader::verdict::{CheckId, Status};

use fake::stations::FakeStations;

fn at(line: u32) -> Option<Place> {
    Some(Place { line, column: 0 })
}

fn finding(kind: FindingKind) -> Finding {
    let actor = Some(Actor { block: [1, 0, 0], thread: [5, 3, 0] });
    let (memory, said) = ("global".to_owned(), "in the tool's words".to_owned());
    Finding { kind, said, memory, store: Some(false), place: at(57), actor, other: None, count: 34 }
}

/// A GPU whose four tools found nothing but this.
fn with(tool: SanitizerTool, found: Vec<Finding>) -> Means {
    let of = |each| Sanitized { tool: each, findings: Ok(if each == tool { found.clone() } else { Vec::new() }) };
    Means { gpu: true, sanitized: SanitizerTool::ALL.map(of).into(), ..Means::default() }
}

fn without_engine_cpu(means: Means) -> Means {
    Means { unwatched: Some("heat.cu:7 uses inline assembly".to_owned()), ..means }
}

#[test]
fn a_kernel_that_only_the_sanitizer_watched_is_still_for_the_instructor() {
    let judgement = judged(&FakeEngine::right().with(without_engine_cpu(with(SanitizerTool::Memcheck, Vec::new()))));
    let (memory, race) = (check(&judgement, CheckId::Memory), check(&judgement, CheckId::Race));
    assert_eq!((memory.status, race.status), (Status::Warn, Status::Warn));
    assert!(memory.summary.contains("and compute-sanitizer's memcheck and initcheck found nothing"), "{memory:?}");
    assert!(race.summary.contains("and compute-sanitizer's racecheck and synccheck found nothing"), "{race:?}");
}

#[test]
fn a_tool_without_an_answer_changes_nothing() {
    let mut means = without_engine_cpu(with(SanitizerTool::Memcheck, Vec::new()));
    means.sanitized[0].findings = Err("it took too long".to_owned());
    let judgement = judged(&FakeEngine::right().with(means));
    assert!(check(&judgement, CheckId::Memory).summary.ends_with("but no thread was watched"));
    assert!(check(&judgement, CheckId::Race).summary.contains("found nothing"));
}

#[test]
fn an_access_outside_the_grids_fails_memory_with_or_without_engine_cpu() {
    let means = with(SanitizerTool::Memcheck, vec![finding(FindingKind::OutOfRange)]);
    for means in [without_engine_cpu(means.clone()), means] {
        let judgement = judged(&FakeEngine::right().with(means));
        let memory = check(&judgement, CheckId::Memory);
        assert_eq!((memory.status, memory.place), (Status::Fail, at(57)));
        assert_eq!(
            memory.summary,
            "heat.cu:57: a load outside both grids by block (1, 0), thread (5, 3), seen 34 times (memcheck of \
             compute-sanitizer)"
        );
    }
}

#[test]
fn a_race_fails_race_and_one_that_may_be_none_warns() {
    let race = |kind| {
        let found = Finding { actor: None, other: at(59), ..finding(kind) };
        let judgement = judged(&FakeEngine::right().with(with(SanitizerTool::Racecheck, vec![found])));
        let race = check(&judgement, CheckId::Race);
        (race.status, race.summary.clone(), check(&judgement, CheckId::Memory).status)
    };
    let (status, summary, memory) = race(FindingKind::Race);
    assert_eq!((status, memory), (Status::Fail, Status::Pass));
    assert!(summary.starts_with(
        "heat.cu:57: no barrier between a load of a shared word and another thread's access at heat.cu:59"
    ));
    assert_eq!(race(FindingKind::MaybeRace).0, Status::Warn);
}

#[test]
fn a_word_that_nobody_wrote_is_a_warning_as_long_as_the_grids_are_right() {
    let means = with(SanitizerTool::Initcheck, vec![finding(FindingKind::NeverWritten)]);
    let right = judged(&FakeEngine::right().with(means.clone()));
    assert_eq!(check(&right, CheckId::Memory).status, Status::Warn);
    let wrong = judged(&FakeEngine::new(|grid, r, _| fake::step(grid, r)).with(means));
    assert_eq!(check(&wrong, CheckId::Memory).status, Status::Fail);
}

#[test]
fn a_report_has_a_line_for_each_tool() {
    let means = with(SanitizerTool::Memcheck, vec![finding(FindingKind::OutOfRange)]);
    let graded = FakeStations::with(FakeEngine::right().with(means)).grade();
    let said = graded.report.sanitizer.as_ref().expect("the tools ran");
    let figures: Vec<_> = said.iter().map(|ran| (ran.tool.name(), ran.errors, ran.line)).collect();
    let quiet = |name| (name, Some(0), None);
    assert_eq!(figures, [("memcheck", Some(34), Some(57)), quiet("racecheck"), quiet("initcheck"), quiet("synccheck")]);
    let shown = anstream::adapter::strip_str(&text::render(&graded.report, None)).to_string();
    assert!(shown.contains("compute-sanitizer, on small grids:\n  memcheck: heat.cu:57: a load outside both grids"));
    assert!(shown.contains("\n  synccheck: nothing found\n"), "{shown}");
}

#[test]
fn a_report_says_why_the_sanitizer_did_not_run() {
    let mut graded = FakeStations::with(FakeEngine::right()).grade();
    assert!(!text::render(&graded.report, None).contains("sanitizer"));
    graded.report.environment.sanitizer_reason = Some("it needs a GPU".to_owned());
    assert!(text::render(&graded.report, None).contains("\ncompute-sanitizer did not run: it needs a GPU\n"));
}
