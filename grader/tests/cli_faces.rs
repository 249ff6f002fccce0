//! The command line: exit codes, and what lands on stdout, stderr and in report files.

#[path = "cli_autograder.rs"]
mod cli_autograder;
#[path = "cli_reports.rs"]
mod cli_reports;

use assert_cmd::Command;
use predicates::prelude::*;
use serde_json::Value;

fn heat_grader() -> Command {
    let mut command = Command::cargo_bin("heat-grader").expect("the binary is built for tests");
    command.env("NO_COLOR", "1");
    command
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

#[test]
fn a_path_that_does_not_exist_is_a_usage_error() {
    heat_grader().args(["check", "no/such/place"]).assert().code(2).stderr(predicate::str::contains("does not exist"));
}

#[test]
fn an_unknown_option_is_a_usage_error() {
    heat_grader().args(["check", "--fast"]).assert().code(2).stdout("").stderr(predicate::str::contains("--fast"));
}

#[test]
fn help_and_version_are_no_errors() {
    heat_grader().arg("--help").assert().code(0).stdout(predicate::str::contains("Exit codes"));
    heat_grader().arg("--version").assert().code(0);
    heat_grader().assert().code(2);
}

#[test]
fn with_report_dash_stdout_is_json_even_for_usage_errors() {
    for words in [
        &["grade", "no/such/place", "--report", "-"][..],
        &["check", "--fast", "--report=-"],
        &["check", "--seed", "-3", "--report", "-"],
    ] {
        let output = heat_grader().args(words).assert().code(2).get_output().clone();
        let report = json(&output.stdout);
        assert_eq!(
            (report["verdict"].as_str(), report["exit_code"].as_u64()),
            (Some("ungraded"), Some(2)),
            "{words:?}"
        );
        assert!(report["error"].is_string() && !output.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn a_report_file_is_written_for_usage_errors_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report with spaces.json");
    heat_grader().args(["grade", "no/such/place", "--report"]).arg(&file).assert().code(2);
    assert_eq!(json(&std::fs::read(&file).unwrap())["schema"], 1);
}

#[test]
fn an_option_that_only_grade_has_points_there() {
    for (option, value) in [("--format", Some("junit")), ("--format=junit", None), ("--quiet", None)] {
        let refused = heat_grader().args(["check", option]).args(value).assert().code(2).stdout("");
        refused.stderr(predicate::str::contains("heat-grader grade PATH").and(predicate::str::contains("tip:").not()));
    }
    heat_grader().args(["grade", "--fast"]).assert().code(2).stderr(predicate::str::contains("--fast"));
}

#[test]
fn a_refusal_has_the_format_that_was_asked_for() {
    let command = ["check", ".", "--format", "junit", "--report", "-"];
    let refused = heat_grader().args(command).assert().code(2).get_output().clone();
    let text = String::from_utf8(refused.stdout).unwrap();
    assert!(text.starts_with("<?xml") && text.contains("heat-grader grade PATH"), "{text}");
    let missing = heat_grader().args(["grade", "--format", "junit", "--report", "-"]).assert().code(2);
    let text = String::from_utf8(missing.get_output().stdout.clone()).unwrap();
    assert!(text.contains("were not provided: &lt;PATH&gt;"), "{text}");
}

#[test]
fn pictures_into_a_place_that_cannot_be_are_told_before_anything_is_graded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let refused = heat_grader().args(["grade", ".", "--report", "-", "--picture"]).arg(&file).assert().code(2);
    let report = json(&refused.get_output().stdout);
    assert!(report["error"].as_str().is_some_and(|said| said.ends_with("is a file; --picture names a folder")));
    let album = folder.path().join("album");
    let none = heat_grader().args(["check", "--offline", "--picture"]).args([&album, folder.path()]).assert().code(1);
    none.stdout(predicate::str::contains("no pictures"));
    assert_eq!(std::fs::read_dir(&album).unwrap().count(), 0);
}

#[test]
fn a_report_into_no_folder_is_told_before_anything_is_graded() {
    let refused = heat_grader().args(["grade", ".", "--report", "no/such/folder/r.json"]).assert().code(2);
    refused.stderr(predicate::str::contains("no/such/folder does not exist"));
}

#[test]
fn a_folder_without_heat_cu_fails_at_source() {
    let folder = tempfile::tempdir().unwrap();
    let output = heat_grader()
        .arg("check")
        .arg(folder.path())
        .args(["--offline", "--report", "-"])
        .assert()
        .code(1)
        .get_output()
        .clone();
    let report = json(&output.stdout);
    assert_eq!(report["failing_check"], "source");
    assert_eq!(report["checks"].as_array().map(Vec::len), Some(12));
    assert_eq!(report["checks"][4]["summary"], "not reached: `source` failed");
}

#[test]
fn the_schema_is_printed() {
    let output = heat_grader().arg("schema").assert().code(0).get_output().clone();
    assert_eq!(json(&output.stdout)["title"], "Report");
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let binary = heat_grader().get_program().to_owned();
    let script = format!("'{}' schema | head -c 10; exit ${{PIPESTATUS[0]}}", binary.to_string_lossy());
    Command::new("bash").args(["-c", &script]).assert().code(0).stderr("");
}

#[test]
fn selftest_without_fixtures_says_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("right")).unwrap();
    std::fs::create_dir_all(folder.path().join("wrong")).unwrap();
    let refused = heat_grader().args(["selftest", "--fixtures"]).arg(folder.path()).assert().code(3);
    refused.stderr(predicate::str::contains("no fixture"));
}

#[test]
fn explain_prints_a_page_the_list_or_all_and_knows_no_other_code() {
    let said = |words: &[&str]| {
        let output = heat_grader().arg("explain").args(words).assert().code(0).stderr("").get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    let page = said(&["halo-too-small"]);
    assert!(page.starts_with("halo-too-small\n") && page.contains("\nIn the lesson\n"), "{page}");
    assert!(!page.contains("A hint") && page.contains("explain halo-too-small --hint"), "{page}");
    assert_eq!(said(&["Halo_Too_Small"]), page);
    assert!(said(&["halo-too-small", "--hint"]).contains("\nA hint\n"));
    let list = said(&[]);
    assert!(list.contains("  only-one-step ") && list.contains("  copy-every-step "), "{list}");
    let all = said(&["--all"]);
    assert!(all.starts_with("# ") && all.contains("\n## only-one-step: ") && all.contains("\n## copy-every-step: "));
    heat_grader().args(["explain", "halo"]).assert().code(2).stdout("").stderr(predicate::str::contains("lists them"));
    let meant = predicate::str::contains("(did you mean missing-barrier?)");
    heat_grader().args(["explain", "Missing_barier"]).assert().code(2).stderr(meant);
    heat_grader().args(["explain", "--all", "halo-too-small"]).assert().code(2);
}
