//! A check of what has not changed since the last one: it answers with the report made then, and says so.
//!
//! A check draws its initial grids anew each time, so it can never find a trial of its own already made; what can be found is
//! the whole answer to the same question. The same question has the same bytes of heat.cu and answer.md, path, options,
//! grader, exercise, compilers, headers that nvcc read, and walls. Only what engine cpu decided is kept (times on a GPU are
//! measured anew), nothing `ungraded`, and nothing for more than a day. A pipeline's `grade` never answers from memory.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::stations::Machine;
use super::{Graded, Order, Stations, Workshop, grade, graded};
use crate::compile::kept::{Key, Shelf, Stamp};
use crate::compile::nvcc::LESSON_ARCH;
use crate::compile::once;
use crate::confine;
use crate::exercise::Exercise;
use crate::report::{Report, escape};
use crate::submission::{self, Submission};
use crate::verdict::Verdict;

/// How long a report is good for: what a key cannot see (the system's kernel, say) does not stay unseen for ever.
const GOOD_FOR: Duration = Duration::from_secs(24 * 3600);

/// A report, with what it follows from besides its key.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// JSON.
    report: String,
    made: SystemTime,
    headers: Vec<Stamp>,
}

impl Kept {
    /// The report and its age, where it still holds.
    fn report(&self, now: SystemTime) -> Option<(Report, Duration)> {
        let age = now.duration_since(self.made).ok().filter(|age| *age < GOOD_FOR)?;
        let holds = self.headers.iter().all(Stamp::holds);
        holds.then(|| Some((serde_json::from_str(&self.report).ok()?, age)))?
    }
}

/// Grades one submission on this machine, unless `shelf` has its report; `fresh`: in any case, and keeps that.
pub fn check(order: &Order, exercise: &Exercise, workshop: &Workshop, shelf: &Shelf, fresh: bool) -> Result<Graded> {
    let Ok(read) = submission::read(&order.path) else { return grade(order, exercise, workshop) };
    // What is graded is what the key tells of, whatever happens to the file meanwhile.
    let again = || Ok(read.clone());
    let machine = Machine::new(order, exercise, workshop).reading(&again);
    let key = key(order, &read, exercise, workshop);
    let found = shelf.get::<Kept>(&key).filter(|_| !fresh).and_then(|kept| kept.report(SystemTime::now()));
    if let Some((report, age)) = found.filter(|(report, _)| is_of_this_gpu(report, &machine)) {
        return Ok(Graded { report, source: Some(read.text.clone()), unchanged_for: Some(age) });
    }
    let graded = graded(&machine, order, exercise)?;
    if may_be_kept(&graded.report)
        && let Some(headers) = headers(order, &read, workshop)
        && let Ok(report) = serde_json::to_string(&graded.report)
    {
        shelf.put(&key, &Kept { report, made: SystemTime::now(), headers });
    }
    Ok(graded)
}

/// All that is known before anything is compiled.
fn key(order: &Order, read: &Submission, exercise: &Exercise, workshop: &Workshop) -> Key {
    let order = Order { quiet: false, ..order.clone() };
    let key = Key::new("check").with(format!("{order:?} {exercise:?} {:?}", confine::sandbox()));
    let answer = format!("{:?} {:?} {:?} {:?}", read.name, read.inside, read.answer_md, read.answer_note);
    let key = key.with(&read.sha256).with(&read.text).with(answer);
    let (nvcc, gxx) = (workshop.toolkit().as_ref(), workshop.host_compiler().as_ref());
    match (nvcc, gxx) {
        (Some(nvcc), Some(gxx)) => once::key_of_tools(key, nvcc, gxx),
        // Without headers nothing is kept.
        _ => key,
    }
}

/// Engine cpu decided, and would again.
fn may_be_kept(report: &Report) -> bool {
    let decided = matches!(report.verdict, Verdict::Pass | Verdict::Fail) && report.error.is_none();
    decided && report.engine.as_deref() == Some("cpu") && report.environment.gpu.is_none()
}

/// Whether there is still no GPU, for the same reason.
fn is_of_this_gpu(report: &Report, machine: &Machine) -> bool {
    match machine.gpu() {
        Some(Ok(_)) => false,
        Some(Err(reason)) => report.environment.engine_reason == Some(escape::line(&reason)),
        None => report.environment.engine_reason.is_none(),
    }
}

/// The headers that nvcc read for the submission; `None` where it is not known that they are all.
fn headers(order: &Order, read: &Submission, workshop: &Workshop) -> Option<Vec<Stamp>> {
    let (nvcc, gxx) = (workshop.toolkit().as_ref()?, workshop.host_compiler().as_ref()?);
    once::headers_of(workshop.shelf(), nvcc, gxx, &read.text, None, order.arch.unwrap_or(LESSON_ARCH))
}

#[cfg(test)]
#[path = "../tests/grade_unchanged.rs"]
mod tests;
