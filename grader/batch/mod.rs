//! A class's submissions, graded side by side into one folder of results.
//!
//! ```text
//! find --> plan --> lanes --> out --> products
//! ```
//!
//! [`find`] says what was handed in, [`work`] what of it needs grading; [`shift`] grades that, in [`lanes`], each
//! submission by itself with [`crate::grade`]. [`out`] owns the folder of results. Every report is written as soon as it is there, so that
//! whatever ends a batch, the next one goes on from there; [`products`] are made from the reports at the end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;

use crate::compile::scratch::scratch;
use crate::confine;
use crate::execute::cpu::this_executable;
use crate::execute::cuda::engine;
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::grade::{self, EngineChoice, Order, Workshop};
use crate::interrupt;
use crate::outbox;
use crate::progress;

pub mod duplicates;
pub mod find;
pub mod key;
pub mod lanes;
pub mod merge;
pub mod names;
pub mod out;
pub mod products;
pub mod roster;
pub mod shard;
pub mod sheet;
pub mod shift;
pub mod slurm;
pub mod summary;
pub mod text;
pub mod work;

#[cfg(test)]
mod find_tests;
#[cfg(test)]
mod work_tests;

use find::Class;
use out::Out;
use roster::{CLASS, Listed, Roster};
use shard::Shard;
use summary::Facts;
use text::Course;
use work::{Batch, Means, Plan};

/// Memory that a lane may take, bytes: grids, and compilers at work.
const LANE: u64 = 700 << 20;

/// What `batch` was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// A folder or an archive of submissions.
    pub folder: PathBuf,
    /// The folder of results.
    pub out: PathBuf,
    /// How each is graded; its path and seed are each submission's own.
    pub order: Order,
    /// What every seed is derived from; kept from the first time when `None`.
    pub seed: Option<u64>,
    pub offline: bool,
    /// Submissions graded at once; as many as there are cores, and memory for, when `None`.
    pub jobs: Option<usize>,
    /// Whether what is known is graded again.
    pub force: bool,
    /// Whether what is ungraded is.
    pub retry_ungraded: bool,
    pub quiet: bool,
    /// The part of the class to grade; all of it when `None`.
    pub shard: Option<Shard>,
}

/// Grades a class.
pub fn run(options: &Options) -> Result<ExitCode> {
    let began = Instant::now();
    let mut class = match find::find(&options.folder, &options.out)? {
        Ok(class) => class,
        Err(reason) => return usage(reason),
    };
    if let Some(reason) = misplaced(options) {
        return usage(reason);
    }
    if let Some(reason) = confine::refusal() {
        anyhow::bail!("{reason}");
    }
    drop(scratch()?);
    let mut workshop = Workshop::new(options.offline);
    if options.order.engine != EngineChoice::Cpu {
        let gpu = engine::probe(&this_executable()?)?;
        if let (EngineChoice::Cuda, Err(reason)) = (options.order.engine, &gpu) {
            // Before the class is compiled for nothing.
            anyhow::bail!("{}", grade::no_cuda(reason));
        }
        workshop = workshop.sharing(gpu);
    }
    let out = match Out::open(&options.out)? {
        Ok(out) => out,
        Err(reason) => return usage(reason),
    };
    let seed = out.seed(options.seed)?;
    let exercise = Exercise::shipped()?;
    let means = Means { seed, common: key::common(&options.order, &workshop, &format!("{exercise:?}"))? };
    let facts = Facts {
        folder: options.folder.display().to_string(),
        scope: options.order.scope,
        strict: options.order.strict,
        ignored: class.ignored.clone(),
    };
    let others = options.shard.map_or_else(Vec::new, |shard| take(&mut class, shard));
    let learners = class.submissions.iter().map(|handed| handed.learner.clone()).collect();
    let aside = out.retain(&learners)?;
    out.recall(learners.iter().map(String::as_str))?;
    let batch = Arc::new(batch(class, out, means, options));
    let listed = batch.items.iter().map(Listed::own).chain(others).collect();
    let shard = options.shard.map(|shard| shard.to_string());
    let mut roster = Roster { shard, ..Roster::of(&facts, listed) };
    batch.out.write(CLASS, roster.render()?.as_bytes())?;
    let plan = batch.plan();
    announce(&batch, &plan, options);
    heed_interrupts(&batch, &facts);
    let order = |item: &work::Item, share: lanes::Share| Order {
        path: item.handed.path.clone(),
        seed: Some(item.seed),
        threads: Some(share.threads),
        quiet: true,
        ..options.order.clone()
    };
    batch.run(&plan, &exercise, &interrupt::stopping, &|item, read, share| {
        grade::grade_read(&order(item, share), read, &exercise, &workshop)
    });
    interrupt::finish_first(None);
    let (summary, products) = batch.finish(&facts);
    // From here on there is nothing to add.
    interrupt::set_last_words(None);
    let noted = if roster.note(&summary) { batch.out.write(CLASS, roster.render()?.as_bytes()) } else { Ok(()) };
    let course = Course {
        out: options.out.display().to_string(),
        graded: batch.graded(),
        left: if batch.is_full() { 0 } else { batch.left() },
        took: began.elapsed().as_secs_f64(),
        products: products.as_ref().cloned().unwrap_or_default(),
        merged: None,
        aside,
    };
    outbox::print(&text::render(&summary, &course));
    if batch.is_full() {
        outbox::warn(&text::no_room(&course.out, batch.written(&summary), summary.counts.submissions));
        return Ok(ExitCode::Ungraded);
    }
    products.and(noted)?;
    Ok(batch.exit_code(&summary))
}

/// Says what is wrong with what was typed.
fn usage(reason: String) -> Result<ExitCode> {
    outbox::warn(&format!("heat-grader: {}\n", crate::report::escape::line(&reason)));
    Ok(ExitCode::Usage)
}

/// Why the folder of results cannot be this batch's.
fn misplaced(options: &Options) -> Option<String> {
    let out = options.out.display();
    let kept = Roster::read(&options.out).ok().flatten();
    let wanted = options.shard.map(|shard| shard.to_string());
    let shown = |shard: &Option<String>| match shard {
        Some(shard) => format!("shard {shard}"),
        None => "a whole class".to_owned(),
    };
    if let Some(kept) = kept.as_ref().filter(|kept| kept.merged || kept.shard != wanted) {
        let holds =
            if kept.merged { "merged results".to_owned() } else { format!("the results of {}", shown(&kept.shard)) };
        return Some(format!("{out} holds {}; give another --out", crate::report::escape::line(&holds)));
    }
    let seeded = options.seed.is_some() || out::kept_seed(&options.out).ok().flatten().is_some();
    let unseeded = options.shard.is_some() && !seeded;
    unseeded
        .then(|| "--shard needs --seed N, the same for all shards, so that their reports belong together".to_owned())
}

/// Leaves a shard's submissions in the class; the others are returned.
fn take(class: &mut Class, shard: Shard) -> Vec<Listed> {
    let (own, others): (Vec<_>, Vec<_>) =
        std::mem::take(&mut class.submissions).into_iter().partition(|handed| shard.takes(&handed.learner));
    class.submissions = own;
    others.iter().map(Listed::other).collect()
}

fn batch(class: Class, out: Out, means: Means, options: &Options) -> Batch {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let room = usize::try_from(available_memory() / LANE).unwrap_or(usize::MAX).max(1);
    let lanes = options.jobs.unwrap_or(cores.min(room));
    let quick = work::Choices { force: options.force, retry_ungraded: options.retry_ungraded, lanes, cores };
    Batch::new(class.submissions, out, means, quick, options.quiet)
}

/// Bytes that can be had without swapping; where that is not known, as many as anybody wants.
fn available_memory() -> u64 {
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib << 10)
}

fn announce(batch: &Batch, plan: &Plan, options: &Options) {
    if options.quiet {
        return;
    }
    let known = batch.items.len() - plan.pending;
    let known = if known > 0 { format!("; {known} graded before") } else { String::new() };
    let lanes = batch.lanes().min(plan.pending);
    let at_once = if lanes > 1 { format!(", {lanes} at a time") } else { String::new() };
    let folder = crate::report::escape::line(&options.folder.display().to_string());
    progress::note(&format!("{} in {folder}{at_once}{known}", text::submissions(batch.items.len())));
}

/// The first interrupt lets what runs finish; the second one ends it, and still leaves the products of what is done.
fn heed_interrupts(batch: &Arc<Batch>, facts: &Facts) {
    interrupt::finish_first(Some(Box::new(|| {
        progress::finishing();
        progress::note("Finishing what runs; interrupt again to stop at once.");
    })));
    let (batch, facts) = (batch.clone(), facts.clone());
    interrupt::set_last_words(Some(Box::new(move || {
        let written = outbox::caught(|| batch.finish(&facts).1);
        batch.out.sweep();
        let why =
            written.err().map_or_else(String::new, |error| format!(" The summary could not be written: {error:#}."));
        progress::note(&format!("Stopped. The same command goes on from here.{why}"));
    })));
}
