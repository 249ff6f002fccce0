//! What of a class needs grading, and the grading of it: which reports are kept, which submissions share one grade, what
//! becomes of one whose grade breaks down. Knows nothing of compilers and kernels: the grade is a function that it is given.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;

use super::duplicates::{Prints, kernel_print};
use super::find::Handed;
use super::key::{Content, Parts, seed_of};
use super::lanes::{self, Share};
use super::out::Out;
use super::products::{self, Entry, Material};
use super::shift::Shift;
use super::summary::{self, Facts, Summary};
use crate::compile::diagnostics::without_folders;
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::grade::{Graded, Read};
use crate::memory;
use crate::outbox::{self, Full};
use crate::progress::Progress;
use crate::report::{self, Report, escape};
use crate::submission::ReadError;
use crate::verdict::Verdict;

/// Grades a submission that the second argument reads.
pub type Grade<'a> = dyn Fn(&Item, &Read, Share) -> Result<Graded> + Sync + 'a;

/// What every grade of a batch follows from.
pub struct Means {
    /// The batch's seed.
    pub seed: u64,
    /// The part of every key that is not the submission's.
    pub common: Parts,
}

/// What is graded again, and how many at once.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    pub force: bool,
    pub retry_ungraded: bool,
    pub lanes: usize,
    /// Cores that lanes share.
    pub cores: usize,
}

/// One submission.
pub struct Item {
    pub handed: Handed,
    pub content: Content,
    pub prints: Prints,
    /// What its initial grids are drawn from.
    pub seed: u64,
    /// Digest of everything that its report follows from.
    pub key: String,
}

/// What happened to a submission in this run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing yet.
    Waiting,
    /// Its report was there.
    Known,
    /// It was graded.
    Graded,
    /// Grading it again came to nothing, for this reason; its earlier verdict stays.
    Stays(String),
    /// Its report could not be written.
    Lost(String),
}

/// Submissions with the same heat.cu, which share a grade.
#[derive(Debug, PartialEq, Eq)]
pub struct Job {
    /// Their places among the items.
    pub items: Vec<usize>,
}

/// What is to be done.
pub struct Plan {
    jobs: Vec<Job>,
    /// Submissions without a report.
    pub pending: usize,
}

/// A class on its way.
pub struct Batch {
    pub items: Vec<Item>,
    pub out: Out,
    means: Means,
    choices: Choices,
    pub outcomes: Mutex<Vec<Outcome>>,
    pub quiet: bool,
    /// Whether there was no room for a report: nothing more is begun then, because it would be lost as well.
    full: AtomicBool,
}

impl Batch {
    /// Reads all submissions once, to know what they are.
    pub fn new(class: Vec<Handed>, out: Out, means: Means, choices: Choices, quiet: bool) -> Self {
        let known = Mutex::new(BTreeMap::new());
        let looked = |at: &usize, _: Share| {
            let read = class[*at].read();
            let content = Content::of(&read);
            let text = read.as_ref().ok().map(|read| read.text.as_str());
            // A text that the parser fails on is compared by its bytes alone.
            let kernel = text.and_then(|text| outbox::caught(|| Ok(kernel_print(text))).ok().flatten());
            let prints = Prints { bytes: content.is_read.then(|| content.program.clone()), kernel };
            locked(&known).insert(*at, (content, prints));
        };
        let all: Vec<usize> = (0..class.len()).collect();
        lanes::run(&all, choices.cores, choices.cores, &|| false, &looked, &|_, _| {});
        let mut known = known.into_inner().unwrap_or_else(PoisonError::into_inner);
        let item = |(at, handed): (usize, Handed)| {
            let (content, prints) = known.remove(&at).unwrap_or_else(|| (unreadable(&handed), Prints::default()));
            let seed = seed_of(means.seed, &content.program);
            let key = key(&means, &content);
            Item { handed, content, prints, seed, key }
        };
        let items: Vec<Item> = class.into_iter().enumerate().map(item).collect();
        let outcomes = Mutex::new(vec![Outcome::Waiting; items.len()]);
        Self { items, out, means, choices, outcomes, quiet, full: AtomicBool::new(false) }
    }

    /// Looks which reports are known.
    pub fn plan(&self) -> Plan {
        let mut by_program: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut jobs = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            if self.is_known(item) {
                self.note(at, Outcome::Known);
            }
            if item.content.is_read {
                by_program.entry(&item.content.program).or_default().push(at);
            } else {
                jobs.push(Job { items: vec![at] });
            }
        }
        jobs.extend(by_program.into_values().map(|items| Job { items }));
        let outcomes = locked(&self.outcomes).clone();
        let waits = |at: &usize| outcomes[*at] == Outcome::Waiting;
        jobs.retain(|job| job.items.iter().any(waits));
        jobs.sort_by_key(|job| job.items.iter().copied().min());
        Plan { pending: outcomes.iter().filter(|outcome| **outcome == Outcome::Waiting).count(), jobs }
    }

    fn is_known(&self, item: &Item) -> bool {
        let kept = self.out.kept(&item.handed.learner).filter(|kept| kept.entry.key == item.key);
        let again =
            |kept: &Report| self.choices.force || (self.choices.retry_ungraded && kept.verdict == Verdict::Ungraded);
        kept.is_some_and(|kept| !again(&kept.report))
    }

    /// Does what is planned; begins nothing more once `stopping` says so.
    pub fn run(&self, plan: &Plan, exercise: &Exercise, stopping: &(dyn Fn() -> bool + Sync), grade: &Grade) {
        let progress = Progress::submissions(plan.pending as u64, self.quiet);
        let stopping = &|| stopping() || self.is_full();
        let shift = Shift::new(self, exercise, grade, stopping, &progress);
        lanes::run(
            &plan.jobs,
            self.choices.lanes,
            self.choices.cores,
            stopping,
            &|job, share| {
                shift.work(job, share);
                memory::give_back();
            },
            &|job, why| shift.broken(job, &why),
        );
        progress.finish();
    }

    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Notes that there was no room.
    pub fn note_full(&self) {
        self.full.store(true, Ordering::Relaxed);
    }

    /// Reports that are there, about what was handed in.
    pub fn written(&self, summary: &Summary) -> usize {
        let lost = locked(&self.outcomes).iter().filter(|outcome| matches!(outcome, Outcome::Lost(_))).count();
        summary.counts.submissions - summary.counts.not_graded - lost
    }

    /// Notes what became of the submission at this place.
    pub fn note(&self, at: usize, outcome: Outcome) {
        locked(&self.outcomes)[at] = outcome;
    }

    /// Submissions graded in this run.
    pub fn graded(&self) -> usize {
        let tried = |outcome: &&Outcome| !matches!(outcome, Outcome::Waiting | Outcome::Known);
        locked(&self.outcomes).iter().filter(tried).count()
    }

    /// Submissions that are still to be graded.
    pub fn left(&self) -> usize {
        locked(&self.outcomes).iter().filter(|outcome| **outcome == Outcome::Waiting).count()
    }

    pub fn lanes(&self) -> usize {
        self.choices.lanes
    }

    /// Digest of everything that the report on this content follows from.
    pub fn key(&self, content: &Content) -> String {
        key(&self.means, content)
    }

    /// All submissions with the reports that are about them.
    pub fn entries(&self) -> Vec<Entry> {
        let outcomes = locked(&self.outcomes).clone();
        self.items.iter().zip(outcomes).map(|(item, outcome)| self.entry(item, outcome)).collect()
    }

    fn entry(&self, item: &Item, outcome: Outcome) -> Entry {
        let learner = &item.handed.learner;
        let kept = self.out.kept(learner);
        // Interrupted before it was graded again, a submission that has not changed has its earlier report.
        let report = kept.filter(|kept| kept.entry.content == item.content.whole || outcome == Outcome::Graded);
        let (report, note) = match outcome {
            Outcome::Lost(why) => (Some(ungraded(item, &format!("its report could not be written: {why}"))), None),
            Outcome::Stays(why) => {
                let note = format!("could not be graded again, so its earlier verdict stays: {why}");
                (report.map(|kept| kept.report), Some(note))
            }
            _ => (report.map(|kept| kept.report), None),
        };
        let path = item.handed.path.display().to_string();
        Entry { learner: learner.clone(), path, report, note, prints: item.prints.clone() }
    }

    /// Makes the summary and writes all products; their names come with it, or why they are not all written.
    pub fn finish(&self, facts: &Facts) -> (Summary, Result<Vec<String>>) {
        let entries = self.entries();
        let summary = summary::of(&entries, facts);
        let source = |at: usize| Some(self.items.get(at)?.handed.read().ok()?.text);
        let products = products::write(&self.out, &Material { summary: &summary, entries: &entries, source: &source });
        if products.as_ref().is_err_and(|error| error.is::<Full>()) {
            self.note_full();
        }
        (summary, products)
    }

    /// Interrupted when something is left to do; ungraded when that is for want of room, when one is, or a grade came to nothing.
    pub fn exit_code(&self, summary: &Summary) -> ExitCode {
        let stays = locked(&self.outcomes).iter().any(|outcome| matches!(outcome, Outcome::Stays(_)));
        if self.is_full() {
            ExitCode::Ungraded
        } else if self.left() > 0 {
            ExitCode::Interrupted
        } else if stays || summary.counts.ungraded + summary.counts.not_graded > 0 {
            ExitCode::Ungraded
        } else {
            ExitCode::Passed
        }
    }
}

/// A report on a submission that could not be graded. Reports travel: no folder of this machine in them.
pub fn ungraded(item: &Item, why: &str) -> Report {
    let path = escape::line(&item.handed.path.to_string_lossy());
    let name = item.handed.path.file_name().map_or_else(|| path.clone(), |name| escape::line(&name.to_string_lossy()));
    let sha256 = item.content.is_read.then(|| item.content.program.clone());
    let submission = report::Submission { path, name, sha256, ..report::Submission::default() };
    Report {
        seed: Some(item.seed),
        submission: Some(submission),
        ..Report::of_error(without_folders(why), ExitCode::Ungraded)
    }
}

fn key(means: &Means, content: &Content) -> String {
    let seed = seed_of(means.seed, &content.program);
    means.common.clone().with(&content.whole).with(seed.to_le_bytes()).digest()
}

fn unreadable(handed: &Handed) -> Content {
    let error = std::io::Error::other("reading it broke down");
    Content::of(&Err(ReadError::Machine { path: handed.path.clone(), error }))
}

pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
