//! Where a grade goes: the report in the format asked for, the text beside it, the exit code.
//!
//! Three promises. A report is delivered whatever happened. Where standard output is a report's, it holds nothing else;
//! the text is on stderr then. And what a report cannot say (it has no place, or its format has no word for it) is said
//! on stderr, `--quiet` or not.

use crate::album::Album;
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::grade::Graded;
use crate::outbox::{self, Target};
use crate::report::text::Help;
use crate::report::{Report, escape, github, gradescope, junit, text};
use crate::verdict::Verdict;

/// What a report is written as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Json,
    /// Gradescope's results.json.
    Gradescope,
    /// JUnit XML.
    Junit,
    /// Annotations on standard output, with the JSON as the report.
    Github,
}

/// Where one command's result goes.
#[derive(Clone, Debug, Default)]
pub struct Delivery {
    /// Nowhere when `None`.
    pub target: Option<Target>,
    pub format: Format,
    /// Prints no text.
    pub quiet: bool,
    /// Whether the text says which way to go after the first failure.
    pub hint: bool,
    /// Whether an interrupted grade leaves the report of an earlier one as it is.
    pub keeps: bool,
    /// Where the pictures go; nowhere when `None`.
    pub album: Option<Album>,
}

impl Delivery {
    /// Whether the report can be put where it belongs, as far as can be told beforehand; else why not.
    pub fn check(&self) -> Result<(), String> {
        match &self.target {
            Some(Target::Stdout) if self.format == Format::Github => {
                Err("with --format github the annotations are on standard output; let --report name a file".to_owned())
            }
            Some(target) => target.check(),
            None => Ok(()),
        }
    }

    /// Puts report and text where they belong. A report that cannot be written is a grade that did not happen.
    pub fn deliver(&self, graded: &Graded) -> ExitCode {
        let report = &graded.report;
        let shown = !self.quiet || self.target.is_none();
        let taken = self.target == Some(Target::Stdout) || self.format == Format::Github;
        let print = if taken || report.error.is_some() { outbox::warn } else { outbox::print };
        if shown {
            let help = if self.hint { Help::Hint } else { Help::Named };
            let notice = graded.unchanged_for.map(text::unchanged).unwrap_or_default();
            print(&(notice + &text::render_with(report, graded.source.as_deref(), help)));
        }
        match self.album.as_ref().filter(|_| report.exit_code != ExitCode::Usage as u8).map(|album| album.put(report)) {
            Some(Ok(files)) if shown => print(&github::harmless(&pictures(&files))),
            Some(Err(error)) => outbox::warn(&format!("heat-grader: the pictures could not be written: {error:#}\n")),
            _ => {}
        }
        if let Err(error) = self.write(graded) {
            outbox::warn(&format!("heat-grader: the report could not be written: {error:#}\n"));
            return if report.exit_code == ExitCode::Usage as u8 { ExitCode::Usage } else { ExitCode::Ungraded };
        }
        ExitCode::from_status(report.exit_code)
    }

    /// The same delivery to nowhere but the terminal.
    pub fn to_nobody(&self) -> Self {
        Self { target: None, album: None, ..self.clone() }
    }

    /// The report of a grade that was interrupted: nobody must take an older one for it.
    pub fn interrupted(&self) {
        if self.keeps {
            return;
        }
        outbox::warn("heat-grader: interrupted\n");
        let report = Report::of_error("interrupted before the grade was done", ExitCode::Ungraded);
        if self.target.is_some() {
            self.write(&Graded::without_source(report)).ok();
        }
    }

    fn write(&self, graded: &Graded) -> anyhow::Result<()> {
        let report = &graded.report;
        match self.format {
            Format::Json => self.target.as_ref().map_or(Ok(()), |target| target.write(report)),
            Format::Junit => self.target.as_ref().map_or(Ok(()), |target| target.put(&junit::render_one(report)?)),
            Format::Gradescope => self.write_results(graded),
            Format::Github => {
                Target::Stdout.put(&github::render(report))?;
                let file = self.target.as_ref().filter(|target| **target != Target::Stdout);
                file.map_or(Ok(()), |target| target.write(report))
            }
        }
    }

    /// Without a verdict there is no results.json, and none from earlier either.
    fn write_results(&self, graded: &Graded) -> anyhow::Result<()> {
        if graded.report.verdict == Verdict::Ungraded {
            let reason = graded.report.ungraded_because().unwrap_or_default();
            let said = format!("heat-grader: ungraded, so there are no results: {reason}\n");
            outbox::warn(&github::harmless(&said));
            return self.target.as_ref().map_or(Ok(()), Target::remove);
        }
        let results = gradescope::render(&graded.report, graded.source.as_deref(), &Exercise::shipped()?.points)?;
        match (&self.target, results) {
            (Some(target), Some(results)) => target.put(&results),
            _ => Ok(()),
        }
    }
}

/// Which pictures were written.
fn pictures(files: &[String]) -> String {
    if files.is_empty() {
        return "\nno pictures: nothing was watched\n".to_owned();
    }
    let lines: String = files.iter().map(|file| format!("  {}\n", escape::line(file))).collect();
    format!("\npictures:\n{lines}")
}
