//! One run over a plan: each submission is read, graded or given the report of one with the same program, and delivered.

use std::collections::BTreeMap;
use std::sync::Mutex;

use anyhow::Result;

use super::key::Content;
use super::lanes::Share;
use super::sheet;
use super::work::{Batch, Grade, Item, Job, Outcome, locked, ungraded};
use crate::compile::diagnostics::without_folders;
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::grade;
use crate::interrupt;
use crate::outbox::{self, Full};
use crate::progress::Progress;
use crate::report::Report;
use crate::submission::{ReadError, Submission};
use crate::verdict::{Status, Verdict};

/// One run over a plan.
pub struct Shift<'a> {
    batch: &'a Batch,
    exercise: &'a Exercise,
    grade: &'a Grade<'a>,
    stopping: &'a (dyn Fn() -> bool + Sync),
    progress: &'a Progress,
    /// How many came to what.
    done: Mutex<BTreeMap<&'static str, usize>>,
}

impl<'a> Shift<'a> {
    pub fn new(
        batch: &'a Batch,
        exercise: &'a Exercise,
        grade: &'a Grade<'a>,
        stopping: &'a (dyn Fn() -> bool + Sync),
        progress: &'a Progress,
    ) -> Self {
        Self { batch, exercise, grade, stopping, progress, done: Mutex::default() }
    }

    /// Grades one of the submissions with this program; the others get the same report about their own answers.
    pub fn work(&self, job: &Job, share: Share) {
        let mut model: Option<Report> = None;
        for &at in &job.items {
            let item = &self.batch.items[at];
            if locked(&self.batch.outcomes)[at] != Outcome::Waiting {
                model = model.or_else(|| Some(self.batch.out.kept(&item.handed.learner)?.report));
                model = model.filter(|model| model.verdict != Verdict::Ungraded);
            }
        }
        // Known ones with another program's bytes by now say nothing; what is graded here is read here.
        for &at in &job.items {
            if locked(&self.batch.outcomes)[at] != Outcome::Waiting {
                continue;
            }
            if model.is_none() && (self.stopping)() && at != job.items[0] {
                return;
            }
            let item = &self.batch.items[at];
            let read = item.handed.read();
            let content = Content::of(&read);
            let as_planned = content.program == item.content.program;
            let report = match (&model, &read) {
                (Some(model), Ok(read)) if as_planned => {
                    Ok(grade::same_for(model, &item.handed.path.to_string_lossy(), read, self.exercise))
                }
                _ => self.graded(item, read, share),
            };
            let report = report.unwrap_or_else(|error| ungraded(item, &format!("{error:#}")));
            if as_planned && content.is_read && report.verdict != Verdict::Ungraded {
                model = model.or_else(|| Some(report.clone()));
            }
            self.deliver(at, &content, &report);
        }
    }

    fn graded(&self, item: &Item, read: Result<Submission, ReadError>, share: Share) -> Result<Report> {
        // Read once: what is graded is what the key is about.
        let read = Mutex::new(Some(read));
        let once = || {
            let again = || item.handed.read();
            locked(&read).take().unwrap_or_else(again)
        };
        let mut report = outbox::caught(|| (self.grade)(item, &once, share))?.report;
        if report.exit_code == ExitCode::Usage as u8 {
            // Nobody typed it.
            report.exit_code = ExitCode::Ungraded as u8;
        }
        Ok(report)
    }

    /// A job that broke down: whatever of it has no report yet is ungraded.
    pub fn broken(&self, job: &Job, why: &str) {
        for &at in &job.items {
            let item = &self.batch.items[at];
            if locked(&self.batch.outcomes)[at] == Outcome::Waiting {
                self.deliver(at, &item.content, &ungraded(item, why));
            }
        }
    }

    fn deliver(&self, at: usize, content: &Content, report: &Report) {
        let item = &self.batch.items[at];
        let learner = &item.handed.learner;
        let key = self.batch.key(content);
        if interrupt::ending() {
            return;
        }
        let outcome = match self.batch.out.put(learner, &key, &content.whole, report) {
            Ok(true) => Outcome::Graded,
            Ok(false) => Outcome::Stays(reason(report)),
            Err(error) => {
                if error.is::<Full>() {
                    self.batch.note_full();
                }
                Outcome::Lost(without_folders(&format!("{error:#}")))
            }
        };
        let lost = matches!(outcome, Outcome::Lost(_));
        self.batch.note(at, outcome);
        self.tell(learner, report, lost);
    }

    fn tell(&self, learner: &str, report: &Report, lost: bool) {
        if self.batch.quiet {
            return;
        }
        let word = sheet::verdict(Some(if lost { Verdict::Ungraded } else { report.verdict }));
        let mut done = locked(&self.done);
        *done.entry(word).or_default() += 1;
        let counts: Vec<String> = done.iter().map(|(word, count)| format!("{count} {word}")).collect();
        let count: usize = done.values().sum();
        self.progress.inc(1);
        self.progress.message(&counts.join(", "));
        if self.progress.is_hidden() {
            let of = self.progress.total();
            let at = report.failing_check.map_or_else(String::new, |check| format!(" at {}", check.name()));
            self.progress.note(&format!("{count:>4}/{of}  {learner}: {word}{at}"));
        }
    }
}

fn reason(report: &Report) -> String {
    let skipped = || report.checks.iter().find(|check| check.status == Status::Skip);
    report.error.clone().or_else(|| Some(skipped()?.summary.clone())).unwrap_or_else(|| "no reason given".to_owned())
}
