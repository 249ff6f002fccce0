use super::*;
use crate::compile::kept::REPORTS;
use crate::exit_code::ExitCode;
use crate::grade::EngineChoice;
use crate::judge::plan::Scope;

fn order() -> Order {
    Order {
        path: "subs/ada".into(),
        scope: Scope::Quick,
        needs_nvcc: false,
        strict: false,
        seed: None,
        arch: None,
        engine: EngineChoice::Cpu,
        sanitize: false,
        threads: None,
        quiet: false,
    }
}

fn passed() -> Report {
    let report = Report { engine: Some("cpu".to_owned()), verdict: Verdict::Pass, ..Report::blank() };
    Report { exit_code: ExitCode::Passed as u8, ..report }
}

#[test]
fn whatever_changes_the_question_changes_the_key() {
    let (cache, workshop, exercise) = (tempfile::tempdir().unwrap(), Workshop::new(true), Exercise::shipped().unwrap());
    let shelf = Shelf::within(cache.path(), REPORTS);
    let read = Submission::from_text("ada", "int main() {}\n");
    shelf.put(&key(&order(), &read, &exercise, &workshop), &1_u8);
    let found = |order: &Order, read: &Submission, exercise: &Exercise| {
        shelf.get::<u8>(&key(order, read, exercise, &workshop)).is_some()
    };
    assert!(found(&order(), &read, &exercise));
    // Whether progress is shown changes nothing.
    assert!(found(&Order { quiet: true, ..order() }, &read, &exercise));
    for other in [
        Order { scope: Scope::Full, ..order() },
        Order { strict: true, ..order() },
        Order { seed: Some(1), ..order() },
        Order { arch: Some(90), ..order() },
        Order { engine: EngineChoice::Auto, ..order() },
        Order { sanitize: true, ..order() },
        Order { path: "subs/bea".into(), ..order() },
    ] {
        assert!(!found(&other, &read, &exercise), "{other:?}");
    }
    let answered = |text: &str| Submission { answer_md: Some(text.to_owned()), ..read.clone() };
    for other in [
        Submission::from_text("ada", "int main() { }\n"),
        Submission::from_text("bea", "int main() {}\n"),
        // The same text with other line ends.
        Submission::from_text("ada", "int main() {}\r\n"),
        answered("rows:"),
        Submission { answer_note: Some("too long".to_owned()), ..read.clone() },
        Submission { inside: Some("hw3/heat.cu".to_owned()), ..read.clone() },
    ] {
        assert!(!found(&order(), &other, &exercise), "{other:?}");
    }
    let mut other = exercise.clone();
    other.exercise.n = 1024;
    assert!(!found(&order(), &read, &other));
}

#[test]
fn only_what_engine_cpu_decided_is_kept() {
    assert!(may_be_kept(&passed()) && may_be_kept(&Report { verdict: Verdict::Fail, ..passed() }));
    let mut on_gpu = passed();
    on_gpu.environment.gpu = Some("a GPU".to_owned());
    for report in [
        Report { verdict: Verdict::Ungraded, ..passed() },
        Report { engine: Some("cuda".to_owned()), ..passed() },
        Report { engine: None, ..passed() },
        Report { error: Some("interrupted".to_owned()), ..passed() },
        on_gpu,
    ] {
        assert!(!may_be_kept(&report), "{report:?}");
    }
}

#[test]
fn a_report_holds_for_a_day_while_no_header_changes() {
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("math.h");
    std::fs::write(&header, "a").unwrap();
    let made = SystemTime::now();
    let kept = Kept { report: serde_json::to_string(&passed()).unwrap(), made, headers: vec![Stamp::of(&header)] };
    let minute = Duration::from_secs(60);
    assert_eq!(kept.report(made + minute), Some((passed(), minute)));
    assert_eq!(kept.report(made + GOOD_FOR), None);
    // A clock that was set back says nothing about an age.
    assert_eq!(kept.report(made - minute), None);
    std::fs::write(&header, "ab").unwrap();
    assert_eq!(kept.report(made + minute), None);
    let damaged = Kept { report: "{}".to_owned(), made, headers: Vec::new() };
    assert_eq!(damaged.report(made), None);
}
