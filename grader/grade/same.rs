//! One grade for several submissions: where heat.cu is the same, only the answer is each learner's own.

use super::source_check;
use super::stations::answer_of;
use crate::exercise::Exercise;
use crate::judge::answer::answer;
use crate::judge::reads::Reads;
use crate::report::{Report, build, escape};
use crate::submission::Submission;
use crate::verdict::{Check, CheckId};

/// The report of a submission whose heat.cu is byte for byte that of the graded one: with its own name, path, file and answer.
pub fn same_for(report: &Report, path: &str, read: &Submission, exercise: &Exercise) -> Report {
    let mut report = report.clone();
    if let Some(submission) = &mut report.submission {
        (submission.path, submission.name) = (escape::line(path), escape::line(&read.name));
        submission.file = read.inside.as_deref().map(escape::line);
    }
    let given = answer_of(read);
    let reads = report.reads.as_ref();
    let reads = reads.map(|reads| Reads::of_launch(reads.words, reads.cells, reads.timesteps, reads.budget));
    let check = answer(given.as_ref(), reads.as_ref(), exercise.exercise.n, report.timing.is_some());
    report.answer = given.as_ref().map(build::answer);
    let checks = std::mem::take(&mut report.checks);
    let own = |other: Check| match other.id {
        CheckId::Source => source_check(&read.text, read.inside.as_deref()),
        CheckId::Answer => check.clone(),
        _ => other,
    };
    let checks = checks.into_iter().map(own).collect();
    report.with_checks(checks)
}
