//! JUnit XML: well-formed, as the Jenkins schema has it, and with the verdict in the right place.

use heat_grader::exit_code::ExitCode;
use heat_grader::judge::plan::Scope;
use heat_grader::report::{Report, junit};
use heat_grader::verdict::{CheckId, Verdict};
use roxmltree::{Document, Node};

use super::samples;

fn elements<'a, 'i>(node: Node<'a, 'i>, name: &'a str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

fn number(node: Node, attribute: &str) -> usize {
    node.attribute(attribute).and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{attribute}: {node:?}"))
}

/// What the Jenkins schema asks: element names, their order, required attributes, and counts that add up.
fn obeys_the_schema(document: &Document) {
    let root = document.root_element();
    assert!(root.has_tag_name("testsuites"));
    let mut totals = [0; 3];
    for suite in root.children().filter(Node::is_element) {
        assert!(suite.has_tag_name("testsuite") && suite.attribute("name").is_some());
        assert!(suite.attribute("time").is_some_and(|seconds| seconds.parse::<f64>().is_ok()));
        let order = ["properties", "testcase", "system-out", "system-err"];
        let places: Vec<usize> = suite
            .children()
            .filter(Node::is_element)
            .map(|child| order.iter().position(|name| child.has_tag_name(*name)).expect("a known element"))
            .collect();
        assert!(places.is_sorted(), "{places:?}");
        let counted =
            |name: &str| elements(suite, "testcase").filter(|case| elements(*case, name).next().is_some()).count();
        let (failures, errors) = (counted("failure"), counted("error"));
        assert_eq!(number(suite, "tests"), elements(suite, "testcase").count());
        assert_eq!((number(suite, "failures"), number(suite, "errors")), (failures, errors));
        assert_eq!(number(suite, "skipped"), counted("skipped"));
        for case in elements(suite, "testcase") {
            assert!(case.attribute("name").is_some() && case.attribute("classname").is_some());
            let outcomes: Vec<&str> =
                case.children().filter(Node::is_element).map(|child| child.tag_name().name()).collect();
            assert!(
                matches!(outcomes[..], ["failure" | "error" | "skipped" | "system-out"]),
                "one outcome a case: {outcomes:?}"
            );
        }
        totals = [totals[0] + number(suite, "tests"), totals[1] + failures, totals[2] + errors];
    }
    assert_eq!(["tests", "failures", "errors"].map(|count| number(root, count)), totals);
}

#[test]
fn every_report_is_well_formed_junit_with_its_verdict() {
    for (name, graded) in samples() {
        let report = &graded.report;
        let text = junit::render_one(report).unwrap();
        let document = Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        obeys_the_schema(&document);
        let suite = elements(document.root_element(), "testsuite").next().unwrap();
        let failed = elements(suite, "testcase").find(|case| elements(*case, "failure").next().is_some());
        let failing = failed.and_then(|case| case.attribute("name"));
        assert_eq!(failing, report.failing_check.map(CheckId::name), "{name}");
        assert_eq!(number(suite, "errors"), usize::from(report.verdict == Verdict::Ungraded), "{name}");
        let scope = document.descendants().find(|node| node.attribute("name") == Some("scope"));
        assert_eq!(scope.and_then(|node| node.attribute("value")), report.scope.map(Scope::name), "{name}");
    }
}

#[test]
fn a_failure_says_where_and_a_skipped_check_why() {
    let (_, wrong) = samples().into_iter().find(|(name, _)| *name == "wrong").unwrap();
    let text = junit::render_one(&wrong.report).unwrap();
    let document = Document::parse(&text).unwrap();
    let failure = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
    assert_eq!(failure.attribute("type"), Some("values"));
    let check = wrong.report.checks.iter().find(|check| check.id == CheckId::Values).unwrap();
    assert_eq!(failure.attribute("message"), Some(check.summary.as_str()));
    assert!(check.details.iter().all(|detail| failure.text().unwrap().contains(detail)));
    let skipped = document.descendants().find(|node| node.has_tag_name("skipped")).unwrap();
    assert!(skipped.attribute("message").unwrap().contains("not reached"));
}

#[test]
fn what_was_never_graded_is_one_error() {
    let report = Report::of_error("no space left on device", ExitCode::Ungraded);
    let text = junit::render(&[("ada", Some(&report))]).unwrap();
    let document = Document::parse(&text).unwrap();
    obeys_the_schema(&document);
    let error = document.descendants().find(|node| node.has_tag_name("error")).unwrap();
    assert_eq!(error.attribute("message"), Some("no space left on device"));
    assert_eq!(error.parent().unwrap().attribute("classname"), Some("ada"));
}

#[test]
fn who_is_not_graded_yet_is_skipped_and_counted() {
    let (_, right) = samples().into_iter().find(|(name, _)| *name == "right").unwrap();
    let text = junit::render(&[("ada", Some(&right.report)), ("</bob>", None)]).unwrap();
    let document = Document::parse(&text).unwrap();
    obeys_the_schema(&document);
    let suite = elements(document.root_element(), "testsuite").nth(1).unwrap();
    assert_eq!((suite.attribute("name"), number(suite, "tests"), number(suite, "skipped")), (Some("</bob>"), 1, 1));
    let skipped = suite.descendants().find(|node| node.has_tag_name("skipped")).unwrap();
    assert_eq!(skipped.attribute("message"), Some("not graded yet"));
    assert_eq!(number(document.root_element(), "tests"), right.report.checks.len() + 1);
}

#[test]
fn many_submissions_are_a_suite_each_and_add_up() {
    let graded = samples();
    let reports: Vec<(&str, Option<&Report>)> =
        graded.iter().map(|(name, graded)| (*name, Some(&graded.report))).collect();
    let text = junit::render(&reports).unwrap();
    let document = Document::parse(&text).unwrap();
    obeys_the_schema(&document);
    let names: Vec<_> = elements(document.root_element(), "testsuite").filter_map(|s| s.attribute("name")).collect();
    assert_eq!(names, graded.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn learners_text_is_text_and_what_xml_cannot_hold_is_gone() {
    let evil = "</testcase>&amp;<failure message=\"\u{0}\u{1b}[31m\u{fffe}\"/>]]>";
    let (_, mut chatty) = samples().into_iter().find(|(name, _)| *name == "chatty").unwrap();
    chatty.report.checks[0].summary = evil.to_owned();
    chatty.report.output = format!("{evil}\nPASSED");
    let text = junit::render(&[(evil, Some(&chatty.report))]).unwrap();
    let document = Document::parse(&text).unwrap();
    obeys_the_schema(&document);
    assert!(!document.descendants().any(|node| node.has_tag_name("failure")));
    let suite = elements(document.root_element(), "testsuite").next().unwrap();
    let shown = evil.replace(['\u{0}', '\u{1b}', '\u{fffe}'], "");
    assert_eq!(suite.attribute("name"), Some(shown.as_str()));
    let printed = elements(suite, "system-out").next().and_then(|out| out.text()).unwrap();
    assert_eq!(printed, format!("The submission printed:\n  | {shown}\n  | PASSED\n"), "behind a bar");
}
