//! A command line that cannot be read: what is said, and in which format.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::ValueEnum;

use super::options::ReportFormat;
use crate::delivery::{Delivery, Format};
use crate::exit_code::ExitCode;
use crate::grade::Graded;
use crate::outbox::{self, Target};
use crate::report::Report;

/// A command line that clap refuses, or that asks for help. Where a report was asked for on stdout, stdout gets one.
pub fn refuse(error: &clap::Error, typed: &[OsString]) -> ExitCode {
    let code = if error.use_stderr() { ExitCode::Usage } else { ExitCode::Passed };
    let format = value_of("--format", typed).and_then(|typed| ReportFormat::from_str(typed.to_str()?, false).ok());
    let format = format.map(Format::from).unwrap_or_default();
    let target = value_of("--report", typed).filter(|typed| *typed == "-").map(|_| Target::Stdout);
    let pointer = only_of_grade(error, typed);
    if target.is_none() && format != Format::Github && pointer.is_none() {
        error.print().ok();
        return code;
    }
    outbox::warn(&pointer.map_or_else(|| error.render().ansi().to_string(), |said| format!("error: {said}\n")));
    if code == ExitCode::Usage && (target.is_some() || format == Format::Github) {
        let sentence = pointer.map_or_else(|| first_sentence(error), str::to_owned);
        let delivery = Delivery { target: target.or(Some(Target::Stdout)), format, quiet: true, ..Delivery::default() };
        delivery.deliver(&Graded::without_source(Report::of_error(sentence, code)));
    }
    code
}

/// What to say to somebody who gives `check` an option that only `grade` has.
fn only_of_grade(error: &clap::Error, typed: &[OsString]) -> Option<&'static str> {
    let check = typed.get(1).is_some_and(|command| command == "check");
    let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    let Some(clap::error::ContextValue::String(option)) = error.get(clap::error::ContextKind::InvalidArg) else {
        return None;
    };
    match option.split('=').next() {
        Some("--format") if check && unknown => Some(
            "`check` has no --format: it prints text and can write JSON; \
             `heat-grader grade PATH --format FORMAT --report FILE` writes the other formats",
        ),
        Some("--quiet") if check && unknown => {
            Some("`check` has no --quiet: `heat-grader grade PATH --quiet --report FILE` prints nothing")
        }
        _ => None,
    }
}

/// What clap says is wrong, without its advice: its first paragraph on one line.
fn first_sentence(error: &clap::Error) -> String {
    let said = error.render().to_string();
    let paragraph: Vec<&str> = said.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    paragraph.join(" ").replace("error: ", "")
}

/// What was typed for an option, as `--option VALUE` or `--option=VALUE`; asked only of a command line that clap could
/// not read.
fn value_of<'a>(option: &str, typed: &'a [OsString]) -> Option<&'a OsStr> {
    let mut typed = typed.iter();
    while let Some(word) = typed.next() {
        if word == option {
            return typed.next().map(OsString::as_os_str);
        }
        let joined = word.as_bytes().strip_prefix(option.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        if let Some(value) = joined {
            return Some(OsStr::from_bytes(value));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_options_value_is_typed_in_two_ways() {
        let value = |words: &[&str]| {
            let typed = words.iter().map(OsString::from).collect::<Vec<_>>();
            value_of("--report", &typed).map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(value(&["check", "--report", "-"]).as_deref(), Some("-"));
        assert_eq!(value(&["check", "--report=-"]).as_deref(), Some("-"));
        assert_eq!(value(&["check", "--report", "x", "-"]).as_deref(), Some("x"));
        assert_eq!(value(&["check", "--reports=-", "--report"]), None);
    }
}
