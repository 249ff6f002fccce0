use super::*;
use crate::batch::products::Entry;
use crate::batch::sheet;
use crate::batch::text::{self, Course};
use crate::exit_code::ExitCode;
use crate::verdict::Check;

fn graded(verdict: Verdict, failing: Option<(CheckId, &str)>) -> Report {
    let checks = CheckId::ALL.into_iter().map(|id| match failing {
        Some((failing, why)) if failing == id => Check::new(id, Status::Fail, why),
        _ if verdict == Verdict::Ungraded => Check::new(id, Status::Skip, "inline assembly"),
        _ => Check::new(id, Status::Pass, "fine"),
    });
    let report = Report { scope: Some(Scope::Quick), ..Report::blank() }.with_checks(checks.collect());
    assert_eq!(report.verdict, verdict);
    report
}

fn entry(learner: &str, report: Option<Report>) -> Entry {
    let prints = Prints { bytes: Some(learner.to_owned()), kernel: None };
    Entry { learner: learner.to_owned(), path: format!("class/{learner}"), report, note: None, prints }
}

fn facts() -> Facts {
    let ignored = vec!["README.md".to_owned(), "\u{1b}[2J".to_owned()];
    Facts { folder: "class".to_owned(), scope: Scope::Quick, strict: false, ignored }
}

fn sample() -> Vec<Entry> {
    vec![
        entry("ann", Some(graded(Verdict::Pass, None))),
        entry("bob", Some(graded(Verdict::Fail, Some((CheckId::Race, "two, \"threads\"\nmeet"))))),
        entry("cy", Some(graded(Verdict::Fail, Some((CheckId::Race, "=cmd|' /C calc'!A0"))))),
        entry("dot", Some(graded(Verdict::Fail, Some((CheckId::Values, "wrong"))))),
        entry("eve", Some(graded(Verdict::Ungraded, None))),
        entry("flo", Some(Report::of_error("no space left", ExitCode::Ungraded))),
        entry("gil", None),
    ]
}

#[test]
fn verdicts_are_counted_and_the_most_frequent_fault_comes_first() {
    let summary = of(&sample(), &facts());
    let counts = Counts { submissions: 7, pass: 1, fail: 3, ungraded: 2, not_graded: 1 };
    assert_eq!((summary.counts, summary.complete), (counts, false));
    let failing: Vec<_> = summary.failing_checks.iter().map(|f| (f.check, f.submissions)).collect();
    assert_eq!(failing, [(CheckId::Race, 2), (CheckId::Values, 1)]);
    let reasons: Vec<_> = summary.submissions.iter().map(|row| row.reason.as_deref()).collect();
    assert_eq!(reasons[3..], [Some("wrong"), Some("inline assembly"), Some("no space left"), None]);
    assert_eq!(summary.submissions[0].report.as_deref(), Some("reports/ann.json"));
    assert_eq!(summary.submissions[6].report, None);
    assert!(summary.ignored[1].starts_with("\\u{1b}"));
}

#[test]
fn the_summary_is_as_its_checked_in_schema_says() {
    let schema = schema().unwrap();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("grader/batch/summary-1.json");
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&file, &schema).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), schema, "UPDATE_SCHEMA=1 writes it anew");
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let text = render(&of(&sample(), &facts())).unwrap();
    let errors: Vec<_> = validator.iter_errors(&serde_json::from_str(&text).unwrap()).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn a_sheet_holds_no_formula_and_every_cell_comes_back() {
    let mut entries = sample();
    for (at, kernel) in ["=HYPERLINK(\"x\")", "+1", "-1", "@SUM(A1)", "\tx", "＝1", "plain"].iter().enumerate() {
        entries[at].path = (*kernel).to_owned();
    }
    let bytes = sheet::render(&of(&entries, &facts())).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let text = text.strip_prefix('\u{feff}').expect("the mark");
    assert!(text.ends_with("\r\n") && text.starts_with("learner,verdict,"));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|other| other == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 7);
    for row in &rows {
        for cell in row {
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝']), "{cell}");
        }
    }
    assert_eq!(&rows[0][column("path")], "'=HYPERLINK(\"x\")");
    assert_eq!(&rows[6][column("path")], "plain");
    assert_eq!(&rows[1][column("reason")], "two, \"threads\"\\u{a}meet");
    assert_eq!(&rows[2][column("reason")], "'=cmd|' /C calc'!A0");
    let verdicts: Vec<&str> = rows.iter().map(|row| &row[column("verdict")]).collect();
    assert_eq!(verdicts, ["pass", "fail", "fail", "fail", "ungraded", "ungraded", "not graded"]);
    assert_eq!((&rows[1][column("failing_check")], &rows[1][column("scope")]), ("race", "quick"));
}

#[test]
fn the_end_of_a_batch_tells_counts_faults_reasons_groups_and_places() {
    let mut entries = sample();
    entries[1].prints = entries[0].prints.clone();
    entries[2].note = Some("graded again to no end".to_owned());
    let course = Course {
        out: "out".to_owned(),
        graded: 4,
        left: 1,
        took: 125.0,
        products: vec!["summary.json".to_owned(), "summary.csv".to_owned()],
        merged: None,
        aside: vec!["gone".to_owned()],
    };
    let text = text::render(&of(&entries, &facts()), &course);
    for wanted in [
        "7 submissions: 1 passed, 3 failed, 2 ungraded, 1 not graded yet",
        "4 graded in 2 min 5 s, 2 known from before",
        "smaller grid",
        "bob, cy",
        "no space left",
        "inline assembly",
        "--retry-ungraded",
        "graded again to no end",
        "same file",
        "ann, bob",
        "out/reports/",
        "out/summary.json, out/summary.csv",
        "README.md",
        "gone: no longer in the class, moved to out/earlier/",
        "1 submission left to grade",
    ] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "{text}");
    let merged = text::render(&of(&entries, &facts()), &Course { merged: Some(2), ..course });
    assert!(merged.contains("gone: no report in these folders, moved to out/earlier/"), "{merged}");
    let race = text.find("race").unwrap();
    assert!(race < text.find("values").unwrap());
}
