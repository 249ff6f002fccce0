//! A class graded by a Slurm job array: its shards are the tasks, their folders of results are merged at the end.
//!
//! ```text
//! OUT/batch.json, class.json   the seed, and who is in the class
//! OUT/shards/K-of-N/           the results of one shard
//! OUT/slurm/job.sh             the script; logs and exit codes of tasks lie beside it
//! OUT/reports/, summary.json   everything together
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::find::{self, Class};
use super::key::Content;
use super::merge::{self, Known, Source};
use super::out::{self, Out};
use super::roster::{CLASS, Listed, Own, Roster};
use super::shard::Shard;
use super::summary::Facts;
use super::text::{self, Course};
use super::{Options, usage};
use crate::exit_code::ExitCode;
use crate::interrupt;
use crate::outbox;
use crate::progress::{self, Progress};
use crate::report::escape;

pub mod queue;
pub mod script;
pub mod watch;

use queue::{Queue, is_alive};
use script::Job;
use watch::{Event, Watch};

/// Submissions that a task grades, unless told otherwise.
const A_TASK: usize = 8;
/// Most tasks, unless told otherwise; Slurm's own limit is 1001.
const TASKS: usize = 100;
const SHARDS: &str = "shards";
const SLURM: &str = "slurm";
/// The arrays that were submitted, one a line.
const JOBS: &str = "slurm/jobs";

/// How the array is to be.
#[derive(Clone, Debug)]
pub struct Array {
    /// Whether the script is only printed.
    pub print: bool,
    pub shards: Option<u32>,
    pub gpu: bool,
    /// More options of `sbatch`.
    pub options: Vec<String>,
    /// Most times that a task is submitted.
    pub attempts: u32,
    /// Between two questions to Slurm.
    pub poll: Duration,
    /// Options of `batch` for each task.
    pub words: Vec<String>,
    /// The same for the first attempt alone.
    pub first: Vec<String>,
}

/// Grades a class by a job array, or prints the array's script.
pub fn run(options: &Options, array: &Array) -> Result<ExitCode> {
    let began = Instant::now();
    let class = match find::find(&options.folder, &options.out)? {
        Ok(class) => class,
        Err(reason) => return usage(reason),
    };
    if let Some(reason) = merge::occupied(&options.out) {
        return usage(reason);
    }
    let count = match shards(&options.out, array.shards, class.submissions.len()) {
        Ok(count) => count,
        Err(reason) => return usage(reason),
    };
    let queue = Queue::default();
    let out = match Out::open(&options.out)? {
        Ok(out) => out,
        Err(reason) => return usage(reason),
    };
    if let Some(job) = still_there(&queue, &options.out).filter(|_| !array.print) {
        return usage(format!(
            "job {job} of an earlier run is still in the queue; wait for it, or end it: scancel {job}"
        ));
    }
    let seed = out.seed(options.seed)?;
    let roster = roster(options, &class);
    out.write(CLASS, roster.render()?.as_bytes())?;
    let mut tasks: Vec<u32> = class.submissions.iter().map(|handed| Shard::of(&handed.learner, count)).collect();
    tasks.sort_unstable();
    tasks.dedup();
    for task in &tasks {
        out::prepare(&place(&options.out, *task, count), seed)?;
    }
    std::fs::create_dir_all(options.out.join(SLURM))?;
    let job = match job(options, array, count, &tasks) {
        Ok(job) => job,
        Err(reason) => return usage(reason),
    };
    if array.print {
        let words = [job.words.clone(), array.first.clone()].concat();
        outbox::print(&script::render(&Job { words, ..job.clone() }));
        outbox::print(&afterwards(&job));
        return Ok(ExitCode::Passed);
    }
    let ending = follow(options, array, &queue, &job)?;
    let sources = sources(&options.out, &tasks, count)?;
    let (mut lost, mut doubts) = (BTreeMap::new(), BTreeMap::new());
    for handed in class.submissions.iter().filter(|_| ending.left.is_none()) {
        let task = Shard::of(&handed.learner, count);
        let why = match ending.lost.get(&task) {
            Some(why) => format!("its shard {task} did not come back in {} attempts: {why}", array.attempts),
            None => format!("its shard {task} came back without a report on it"),
        };
        if ending.lost.contains_key(&task) {
            doubts.insert(handed.learner.clone(), format!("this may be an earlier report: {why}"));
        }
        lost.insert(handed.learner.clone(), format!("{why} (logs lie in {SLURM}/ of the results)"));
    }
    let known = Known { class: Some(roster), lost, doubts };
    let merged = merge::merge(&sources, &known, &out)?;
    let course = Course {
        out: options.out.display().to_string(),
        graded: 0,
        left: if ending.left.is_some() { merged.summary.counts.not_graded } else { 0 },
        took: began.elapsed().as_secs_f64(),
        products: merged.products.clone(),
        merged: Some(sources.len()),
        aside: merged.aside.clone(),
    };
    outbox::print(&text::render(&merged.summary, &course));
    Ok(match merged.exit_code() {
        _ if ending.left.is_some() => ExitCode::Interrupted,
        _ if !ending.lost.is_empty() => ExitCode::Ungraded,
        code => code,
    })
}

/// Submits and watches the array. An interrupt cancels it.
fn follow(options: &Options, array: &Array, queue: &Queue, job: &Job) -> Result<watch::Ending> {
    let shown = escape::line(&options.folder.display().to_string());
    let total: usize = job.tasks.len();
    interrupt::finish_first(Some(Box::new(|| progress::note("Cancelling the job array."))));
    let quiet = options.quiet;
    let note = |line: &str| {
        if !quiet {
            progress::note(line);
        }
    };
    let bar = Progress::count(total as u64, "tasks");
    let submitted = |number: &str, tasks: &[u32]| {
        let path = options.out.join(JOBS);
        let earlier = std::fs::read_to_string(&path).unwrap_or_default();
        outbox::replace(&path, format!("{earlier}{number}\n").as_bytes())?;
        note(&format!("{shown}: job {number}, tasks {} of {} shards", script::ranges(tasks), job.shards));
        Ok(())
    };
    let write = |attempt: u32| {
        let mut job = job.clone();
        if attempt == 1 {
            job.words.extend(array.first.clone());
        }
        let path = options.out.join(SLURM).join("job.sh");
        outbox::replace(&path, script::render(&job).as_bytes())?;
        Ok(path)
    };
    let tell = |event: &Event| match event {
        Event::Tick => {}
        Event::Silent => note("Slurm does not answer; waiting for the tasks' results"),
        Event::Back(task) => {
            bar.inc(1);
            if bar.is_hidden() {
                note(&format!("shard {task} came back"));
            }
        }
        Event::Again(task, why) => note(&format!("shard {task}: {why}; submitted again")),
        Event::Lost(task, why) => note(&format!("shard {task}: {why}; given up")),
    };
    let watch = Watch {
        queue,
        folder: &options.out.join(SLURM),
        attempts: array.attempts,
        poll: array.poll,
        stopping: &interrupt::stopping,
        script: &write,
        submitted: &submitted,
        tell: &tell,
    };
    let ending = watch.run(&job.tasks)?;
    bar.finish();
    if let Some(jobs) = &ending.left {
        match queue.cancel(jobs) {
            Ok(()) => {
                progress::note(&format!("Cancelled job {}. The same command goes on from here.", jobs.join(", ")))
            }
            Err(why) => outbox::warn(&format!("heat-grader: job {} may still run: {why}\n", jobs.join(", "))),
        }
    }
    interrupt::finish_first(None);
    Ok(ending)
}

/// How many shards there are: as many as an earlier run made, whose work would be lost on another number.
fn shards(out: &Path, typed: Option<u32>, submissions: usize) -> Result<u32, String> {
    let names = out.join(SHARDS).read_dir().into_iter().flatten().flatten();
    let mut counts = names.filter_map(|entry| entry.file_name().to_str()?.split_once("-of-")?.1.parse::<u32>().ok());
    match (counts.next(), typed) {
        (Some(earlier), Some(typed)) if earlier != typed => {
            Err(format!("{} was begun with {earlier} shards; say --shards {earlier}, or another --out", out.display()))
        }
        (Some(count), _) | (None, Some(count)) => Ok(count),
        (None, None) => Ok(submissions.div_ceil(A_TASK).clamp(1, TASKS) as u32),
    }
}

fn place(out: &Path, task: u32, count: u32) -> PathBuf {
    out.join(SHARDS).join(format!("{task}-of-{count}"))
}

/// The number of an earlier array that may still write into the folder.
fn still_there(queue: &Queue, out: &Path) -> Option<String> {
    let jobs = std::fs::read_to_string(out.join(JOBS)).ok()?;
    let jobs: Vec<String> = jobs.lines().map(str::to_owned).collect();
    jobs.iter()
        .find(|job| {
            let states = queue.states(std::slice::from_ref(job)).unwrap_or_default();
            states.values().any(|state| is_alive(state))
        })
        .cloned()
}

/// Everybody, with what they handed in.
fn roster(options: &Options, class: &Class) -> Roster {
    let facts = Facts {
        folder: options.folder.display().to_string(),
        scope: options.order.scope,
        strict: options.order.strict,
        ignored: class.ignored.clone(),
    };
    let listed = |handed: &find::Handed| {
        let content = Content::of(&handed.read());
        let bytes = content.is_read.then_some(content.program);
        Listed { own: Some(Own { content: content.whole, bytes, kernel: None, note: None }), ..Listed::other(handed) }
    };
    Roster { merged: true, ..Roster::of(&facts, class.submissions.iter().map(listed).collect()) }
}

/// The shards whose batches have begun.
fn sources(out: &Path, tasks: &[u32], count: u32) -> Result<Vec<Source>> {
    let places = tasks.iter().map(|task| place(out, *task, count));
    let read = |folder: PathBuf| Ok(Source { roster: Roster::read(&folder)?, folder });
    places.map(read).collect()
}

/// What the script is made of. An error says which path cannot be written into one.
fn job(options: &Options, array: &Array, count: u32, tasks: &[u32]) -> Result<Job, String> {
    let plain = |path: PathBuf| {
        let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
        text.map(str::to_owned).ok_or_else(|| format!("{}: Slurm needs a path of plain text", path.display()))
    };
    let found = |path: std::io::Result<PathBuf>| path.map_err(|error| error.to_string()).and_then(plain);
    Ok(Job {
        grader: found(std::env::current_exe())?,
        from: found(std::env::current_dir())?,
        folder: plain(options.folder.clone())?,
        out: plain(options.out.clone())?,
        shards: count,
        tasks: tasks.to_vec(),
        gpu: array.gpu,
        options: array.options.clone(),
        words: array.words.clone(),
    })
}

/// What to do when a script that was submitted by hand is through.
fn afterwards(job: &Job) -> String {
    let (from, out) = (script::quoted(&job.from), script::quoted(&job.out));
    let grader = script::quoted(&job.grader);
    format!("# When all tasks are done: cd {from} && {grader} merge {out}/shards/* --out={out}\n")
}
