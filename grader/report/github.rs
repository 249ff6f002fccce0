//! A report as GitHub Actions shows it: workflow commands, one line each, that become annotations.
//!
//! The runner takes any line of a step's output, on stdout and stderr alike, for a command when it starts with `::`
//! (white space aside) or holds `##[` anywhere; so text that a learner controls is escaped as the documentation of
//! workflow commands says, and what is printed beside the commands goes through [`harmless`].

use super::Report;
use crate::verdict::{Check, CheckId, Status, Verdict};

/// Annotations of one kind that GitHub shows a step.
const SHOWN: usize = 10;

/// The report as workflow commands: an `error` for each failed check, or for what the compiler said in its stead, a
/// `warning` for each warning, and last the verdict where no check tells it.
pub fn render(report: &Report) -> String {
    let file = file(report);
    let mut text = String::new();
    for check in &report.checks {
        let kind = match check.status {
            Status::Fail if check.id.gates(report.strict) => "error",
            Status::Fail | Status::Warn => "warning",
            Status::Pass | Status::Skip => continue,
        };
        let told = if check.id == CheckId::Compile { compiler_errors(report, file.as_deref()) } else { String::new() };
        if told.is_empty() {
            text.push_str(&command(
                kind,
                file.as_deref(),
                place(check, report),
                check.id.name(),
                &words(check, report),
            ));
        }
        text.push_str(&told);
    }
    text + &closing(report)
}

/// Line and column of a check; what was found by running the kernel is shown at the kernel where it has no line.
fn place(check: &Check, report: &Report) -> Option<(u32, Option<u32>)> {
    let of_kernel = || {
        let ran = CheckId::Values <= check.id && check.id <= CheckId::Time;
        report.submission.as_ref()?.kernel_line.filter(|_| ran).map(|line| (line, None))
    };
    let own = check.place.map(|place| (place.line, (place.column > 0).then_some(place.column)));
    // The store that wrote a wrong cell tells more than the kernel that it is in.
    let store =
        || report.first_mismatch.as_ref()?.line.filter(|_| check.id == CheckId::Values).map(|line| (line, None));
    own.or_else(store).or_else(of_kernel)
}

fn compiler_errors(report: &Report, file: Option<&str>) -> String {
    let errors = report.diagnostics.iter().filter(|said| said.severity == "error");
    let placed = errors.filter_map(|said| Some((said, said.line?)));
    let annotation = |(said, line): (&super::Diagnostic, u32)| {
        let title = format!("compile ({})", said.tool);
        command("error", file, Some((line, said.column)), &title, &said.message)
    };
    placed.take(SHOWN).map(annotation).collect()
}

fn closing(report: &Report) -> String {
    match (report.verdict, report.ungraded_because()) {
        (_, Some(reason)) => command("error", None, None, "could not be graded", &reason),
        (Verdict::Pass, _) => {
            let reads = report.reads.as_ref();
            let figure = reads
                .map(|reads| format!("{:.3} words read per cell-step, budget {}", reads.per_cell_step, reads.budget));
            command("notice", None, None, "passed", &figure.unwrap_or_default())
        }
        _ => String::new(),
    }
}

fn words(check: &Check, report: &Report) -> String {
    let cause = report.cause_lines(check.id);
    let lines = std::iter::once(&check.summary).chain(&check.details).chain(&cause);
    lines.map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// heat.cu as the repository knows it; `None` when it lies in an archive or nothing was read.
fn file(report: &Report) -> Option<String> {
    let submission = report.submission.as_ref()?;
    let path = submission.path.strip_prefix("./").unwrap_or(&submission.path).trim_end_matches('/');
    let ends = |path: &str, ending: &str| path.to_ascii_lowercase().ends_with(ending);
    let is_packed = |path: &str| [".zip", ".tar", ".tar.gz", ".tgz"].into_iter().any(|ending| ends(path, ending));
    let inside = submission.file.as_deref().unwrap_or("heat.cu");
    match path {
        _ if is_packed(path) || is_packed(inside) => None,
        "" | "." => Some(inside.to_owned()),
        _ if ends(path, ".cu") => Some(path.to_owned()),
        _ => Some(format!("{path}/{inside}")),
    }
}

/// `::error file=heat.cu,line=33,col=9,title=heat-grader: memory::message`
fn command(kind: &str, file: Option<&str>, place: Option<(u32, Option<u32>)>, title: &str, message: &str) -> String {
    let mut properties = Vec::new();
    if let Some(file) = file {
        properties.push(format!("file={}", property(file)));
        if let Some((line, column)) = place {
            properties.push(format!("line={line}"));
            properties.extend(column.map(|column| format!("col={column}")));
        }
    }
    properties.push(format!("title={}", property(&format!("heat-grader: {title}"))));
    format!("::{kind} {}::{}\n", properties.join(","), data(message))
}

/// A message, escaped.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a property, escaped.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

/// Text for a log, with everything that the runner would take for a command spelled out.
pub fn harmless(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for line in text.split_inclusive(['\n', '\r']) {
        let words = line.trim_start();
        let (space, words) = line.split_at(line.len() - words.len());
        safe.push_str(space);
        match words.strip_prefix("::") {
            Some(rest) => safe.extend(["\\u{3a}:", &rest.replace("##[", "#\\u{23}[")]),
            None => safe.push_str(&words.replace("##[", "#\\u{23}[")),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::Place;
    use crate::exit_code::ExitCode;
    use crate::report::{Diagnostic, Submission};

    fn failed(path: &str, check: Check) -> Report {
        let submission = Submission { path: path.to_owned(), ..Submission::default() };
        Report { submission: Some(submission), ..Report::blank() }.with_checks(vec![check])
    }

    #[test]
    fn a_failed_check_is_an_error_at_its_line_with_its_details() {
        let check = Check::new(CheckId::Memory, Status::Fail, "out of range, 50% over").with("look at the halo");
        let report = failed("subs/ada", check.at(Some(Place { line: 33, column: 9 })));
        let expected = "::error file=subs/ada/heat.cu,line=33,col=9,title=heat-grader%3A memory::\
                        out of range, 50%25 over%0Alook at the halo\n";
        assert_eq!(render(&report), expected);
    }

    #[test]
    fn learners_text_cannot_end_a_property_a_message_or_a_line() {
        let evil = "x,line=1::\n::add-mask::y\r%0A::stop-commands::z";
        let mut report = failed(evil, Check::new(CheckId::Kernel, Status::Fail, evil));
        report.checks[0].summary = evil.to_owned();
        report.checks[0].place = Some(Place { line: 2, column: 0 });
        let text = render(&report);
        assert_eq!(text.lines().count(), 1, "{text}");
        let (properties, message) = text["::error ".len()..].split_once("::").unwrap();
        assert_eq!(properties.matches(',').count(), 2, "file, line and title: {properties}");
        assert_eq!(message, "x,line=1::%0A::add-mask::y%0D%250A::stop-commands::z\n");
    }

    #[test]
    fn a_wrong_cell_is_shown_at_the_kernel_and_a_missing_row_at_no_line() {
        let mut report = failed("subs/ada", Check::new(CheckId::Values, Status::Fail, "wrong"));
        report.checks.push(Check::new(CheckId::Answer, Status::Warn, "no rows"));
        report.submission.as_mut().unwrap().kernel_line = Some(509);
        let text = render(&report);
        assert!(
            text.starts_with("::error file=subs/ada/heat.cu,line=509,title=heat-grader%3A values::wrong\n"),
            "{text}"
        );
        assert!(text.ends_with("::warning file=subs/ada/heat.cu,title=heat-grader%3A answer::no rows\n"), "{text}");
    }

    #[test]
    fn compiler_errors_stand_for_the_check_and_no_more_of_them_than_github_shows() {
        let mut report = failed(".", Check::new(CheckId::Compile, Status::Fail, "nvcc: 30 errors"));
        let said = |line| Diagnostic {
            severity: if line == 1 { "warning" } else { "error" }.to_owned(),
            line: Some(line),
            column: None,
            message: "expected a \";\"".to_owned(),
            tool: "nvcc".to_owned(),
        };
        report.diagnostics = (1..40).map(said).collect();
        let text = render(&report);
        assert_eq!(text.lines().count(), SHOWN);
        assert!(
            text.contains("::error file=heat.cu,line=2,title=heat-grader%3A compile (nvcc)::expected a \";\"\n"),
            "{text}"
        );
    }

    #[test]
    fn an_ungraded_report_says_why_and_archives_have_no_file() {
        let text = render(&Report::of_error("disk full", ExitCode::Ungraded));
        assert_eq!(text, "::error title=heat-grader%3A could not be graded::disk full\n");
        for (path, expected) in
            [("a.ZIP", None), ("b.tar.gz", None), ("./c.cu", Some("c.cu")), ("d/", Some("d/heat.cu"))]
        {
            let report = failed(path, Check::new(CheckId::Source, Status::Fail, ""));
            assert_eq!(file(&report).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn a_program_that_lay_further_down_is_named_where_it_lies() {
        for (path, inside, expected) in [
            ("subs/ada", "hw3/heat.cu", Some("subs/ada/hw3/heat.cu")),
            (".", "hw3/heat.cu", Some("hw3/heat.cu")),
            ("subs/ada", "homework.zip", None),
        ] {
            let mut report = failed(path, Check::new(CheckId::Source, Status::Pass, ""));
            report.submission.as_mut().unwrap().file = Some(inside.to_owned());
            assert_eq!(file(&report).as_deref(), expected, "{path} {inside}");
        }
    }

    #[test]
    fn a_log_line_is_no_command() {
        let log = "::error::x\n  ::add-mask::y\r\n\t##[group]a ::b\n:) plain\n\n";
        let expected = "\\u{3a}:error::x\n  \\u{3a}:add-mask::y\r\n\t#\\u{23}[group]a ::b\n:) plain\n\n";
        assert_eq!(harmless(log), expected);
    }
}
