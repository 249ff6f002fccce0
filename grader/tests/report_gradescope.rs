//! Gradescope's results.json: the documented fields, the score, and none at all without a verdict.

use heat_grader::exercise::Exercise;
use heat_grader::grade::Graded;
use heat_grader::points::Points;
use heat_grader::report::gradescope;
use heat_grader::verdict::{CheckId, Verdict};
use serde_json::Value;

use super::samples;

fn points() -> Points {
    Exercise::shipped().expect("reference/exercise.toml").points
}

fn results(graded: &Graded, points: &Points) -> Option<Value> {
    let text = gradescope::render(&graded.report, graded.source.as_deref(), points).unwrap()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn sample(wanted: &str) -> Graded {
    samples().into_iter().find(|(name, _)| *name == wanted).unwrap().1
}

#[test]
fn results_obey_the_documentation_and_exist_only_with_a_verdict() {
    let schema = serde_json::from_str(include_str!("schemas/gradescope-results.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, graded) in samples() {
        let results = results(&graded, &points());
        let score = results.as_ref().and_then(|results| results["score"].as_f64());
        let expected = match graded.report.verdict {
            Verdict::Pass => Some(100.0),
            Verdict::Fail => Some(0.0),
            Verdict::Ungraded => None,
        };
        assert_eq!(score, expected, "{name}");
        let Some(results) = results else { continue };
        let errors: Vec<String> = validator.iter_errors(&results).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{name}: {errors:?}");
        assert_eq!(results["tests"].as_array().map(Vec::len), Some(CheckId::ALL.len()), "{name}");
    }
}

#[test]
fn the_schema_refuses_what_is_not_documented() {
    let schema = serde_json::from_str(include_str!("schemas/gradescope-results.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut right = results(&sample("right"), &points()).unwrap();
    right["tests"][0]["status"] = "skipped".into();
    assert!(!validator.is_valid(&right));
    assert!(!validator.is_valid(&serde_json::json!({ "tests": [{ "name": "no score anywhere" }] })));
}

#[test]
fn a_test_passes_fails_or_is_neither() {
    let results = results(&sample("wrong"), &points()).unwrap();
    let test = |id: CheckId| &results["tests"][CheckId::ALL.iter().position(|other| *other == id).unwrap()];
    assert_eq!(
        (test(CheckId::Launch)["status"].as_str(), test(CheckId::Launch)["number"].as_str()),
        (Some("passed"), Some("4"))
    );
    assert_eq!(test(CheckId::Values)["status"], "failed");
    assert!(test(CheckId::Race)["status"].is_null(), "not made");
    assert_eq!(results["visibility"], "visible");
    assert_eq!(results["stdout_visibility"], "hidden");
    assert_eq!(results["extra_data"]["failing_check"], "values");
}

#[test]
fn checks_with_points_carry_them() {
    let points: Points = toml::from_str("total = 10\ncompile = 2\nvalues = 5").unwrap();
    let failed = results(&sample("wrong"), &points).unwrap();
    assert_eq!(failed["score"], 2.0);
    assert_eq!((failed["tests"][1]["score"].as_f64(), failed["tests"][4]["score"].as_f64()), (Some(2.0), Some(0.0)));
    assert_eq!(failed["tests"][4]["max_score"], 5.0);
    assert!(failed["tests"][0]["score"].is_null());
    assert_eq!(results(&sample("right"), &points).unwrap()["score"], 10.0);
}

#[test]
fn learners_text_is_plain_text() {
    let mut chatty = sample("chatty");
    chatty.report.output = "<script>alert(1)</script> **PASSED**\nFAILED".to_owned();
    let results = results(&chatty, &points()).unwrap();
    let formats = results["tests"].as_array().unwrap().iter().chain([&results]).map(|said| &said["output_format"]);
    assert!(formats.into_iter().all(|format| format == "text"));
    let output = results["output"].as_str().unwrap();
    assert!(!output.contains('\u{1b}') && output.contains("\n  | <script>"), "{output}");
    assert!(!output.lines().any(|line| line.starts_with("FAILED")), "{output}");
}
