//! `grade --format` and `--quiet`: what lands where, and that a real kernel's report is valid in every format.

use std::fs;
use std::path::Path;

use heat_grader::exercise::Exercise;
use heat_grader::report::{Report, github, gradescope, json as report_json, junit};
use heat_grader::verdict::Verdict;
use predicates::prelude::*;
use serde_json::Value;

use super::{heat_grader, json};

/// `grade` of a folder without heat.cu, which fails at `source` at once: exit code, stdout and stderr.
fn graded(options: &[&str]) -> (Option<i32>, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = heat_grader();
    let output = command.arg("grade").arg(folder.path()).args(["--offline", "--outer-sandbox"]).args(options).output();
    let output = output.expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn valid(schema: &str, value: &Value) {
    let validator = jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap();
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

fn all_commands(text: &str) -> bool {
    !text.is_empty() && text.lines().all(|line| line.starts_with("::error ") || line.starts_with("::notice "))
}

#[test]
fn with_report_dash_stdout_is_the_format_and_the_text_is_on_stderr() {
    let (code, out, err) = graded(&["--report", "-", "--format", "junit"]);
    assert_eq!(code, Some(1));
    assert_eq!(roxmltree::Document::parse(&out).unwrap().root_element().attribute("failures"), Some("1"));
    assert!(err.contains("FAILED at `source`"), "{err}");

    let (code, out, err) = graded(&["--report", "-", "--format", "gradescope"]);
    let results = json(out.as_bytes());
    valid(include_str!("schemas/gradescope-results.json"), &results);
    assert_eq!((code, results["score"].as_f64()), (Some(1), Some(0.0)));
    assert!(err.contains("FAILED at `source`"), "{err}");
}

#[test]
fn github_gets_commands_on_stdout_and_json_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let (code, out, err) = graded(&["--format", "github", "--report", &file.to_string_lossy()]);
    assert_eq!(code, Some(1));
    assert!(all_commands(&out) && out.contains("title=heat-grader%3A source::"), "{out}");
    assert!(err.contains("FAILED at `source`"), "{err}");
    assert_eq!(json(&fs::read(&file).unwrap())["failing_check"], "source");

    let (code, out, err) = graded(&["--format", "github", "--report", "-"]);
    assert_eq!(code, Some(2), "both want standard output");
    assert!(all_commands(&out) && err.contains("--report name a file"), "{out}{err}");
}

#[test]
fn quiet_says_nothing_and_reports_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let (code, out, err) = graded(&["--quiet", "--report", &file.to_string_lossy()]);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(1), "", ""));
    assert_eq!(json(&fs::read(&file).unwrap())["verdict"], "fail");
    let (code, out, err) = graded(&["--quiet", "--report", "no/such/folder/r.json"]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("no/such/folder does not exist"), "no report can say it: {err}");
}

#[test]
fn a_command_line_that_cannot_be_read_is_reported_in_its_format() {
    let refused = |format: &str, more: &[&str]| {
        let mut command = heat_grader();
        command.args(["grade", ".", "--fast", "--format", format]).args(more);
        let output = command.assert().code(2).get_output().clone();
        assert!(String::from_utf8_lossy(&output.stderr).contains("--fast"), "{format}");
        String::from_utf8(output.stdout).unwrap()
    };
    let junit = refused("junit", &["--report", "-"]);
    assert_eq!(roxmltree::Document::parse(&junit).unwrap().root_element().attribute("errors"), Some("1"));
    assert_eq!(json(refused("json", &["--report=-"]).as_bytes())["exit_code"], 2);
    assert_eq!(json(refused("yaml", &["--report=-"]).as_bytes())["exit_code"], 2);
    assert_eq!(refused("gradescope", &["--report", "-"]), "");
    assert!(all_commands(&refused("github", &["--report", "x"])));
    assert_eq!(refused("junit", &["--report", "x"]), "");
}

#[test]
fn ungraded_leaves_no_results_not_even_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    for quiet in [None, Some("--quiet")] {
        fs::write(&file, "{\"score\": 100}").unwrap();
        let mut command = heat_grader();
        command.args(["grade", "no/such/place", "--format", "gradescope", "--report"]).arg(&file).args(quiet);
        let said = "ungraded, so there are no results: no/such/place does not exist";
        command.assert().code(2).stdout("").stderr(predicate::str::contains(said));
        assert!(!file.exists());
    }
    let mut command = heat_grader();
    command.args(["grade", ".", "--outer-sandbox", "--format", "gradescope", "--report", "-"]);
    command.env("TMPDIR", "/no/such/folder").assert().code(3).stdout("").stderr(predicate::str::contains("TMPDIR"));
}

#[test]
fn reports_of_real_kernels_are_valid_in_every_format() {
    let points = Exercise::shipped().unwrap().points;
    for name in ["semicolon_missing", "no_kernel", "two_launches", "halo_one_cell"] {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/wrong").join(name);
        let mut command = heat_grader();
        command.arg("check").arg(&fixture).args(["--offline", "--seed", "1", "--engine", "cpu", "--report", "-"]);
        let output = command.output().expect("it runs");
        let value = json(&output.stdout);
        valid(&report_json::schema().unwrap(), &value);
        let report: Report = serde_json::from_value(value).unwrap();
        assert_eq!(output.status.code(), Some(i32::from(report.exit_code)), "{name}");

        roxmltree::Document::parse(&junit::render_one(&report).unwrap()).unwrap();
        let source = fs::read_to_string(fixture.join("heat.cu")).unwrap();
        let results = gradescope::render(&report, Some(&source), &points).unwrap();
        assert_eq!(results.is_some(), report.verdict != Verdict::Ungraded, "{name}");
        if let Some(results) = results {
            valid(include_str!("schemas/gradescope-results.json"), &json(results.as_bytes()));
        }
        let commands = github::render(&report);
        assert!(commands.lines().all(|line| line.starts_with("::")), "{name}: {commands}");
    }
}
