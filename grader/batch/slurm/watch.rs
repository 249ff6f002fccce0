//! Watches the tasks of a job array until each has come back, or has been submitted as often as it may be.
//!
//! A task that comes to its end leaves its exit code in the folder of results. That alone counts as coming back: Slurm's
//! word is only taken for the opposite, that a task is no longer there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::queue::{Queue, is_alive};
use crate::exit_code::ExitCode;

/// How often the folder is looked at; Slurm is asked less often.
const TICK: Duration = Duration::from_millis(250);
/// Answers in which a task is gone before that is believed: its exit code may be on its way through a network's file system.
const GONE: u32 = 2;

/// What to watch, and how.
pub struct Watch<'a> {
    pub queue: &'a Queue,
    /// Where exit codes come to lie: `JOB_TASK.exit`.
    pub folder: &'a Path,
    /// Most times that a task is submitted.
    pub attempts: u32,
    /// Between two questions to Slurm.
    pub poll: Duration,
    /// Whether to stop watching.
    pub stopping: &'a dyn Fn() -> bool,
    /// Makes the script for an attempt, from 1.
    pub script: &'a dyn Fn(u32) -> anyhow::Result<PathBuf>,
    /// Is told that an array was submitted.
    pub submitted: &'a dyn Fn(&str, &[u32]) -> anyhow::Result<()>,
    /// Is told what happens: from time to time that nothing does.
    pub tell: &'a dyn Fn(&Event),
}

/// What happens to tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Time passes.
    Tick,
    /// A task came back.
    Back(u32),
    /// A task did not, for this reason, and is submitted again.
    Again(u32, String),
    /// A task is not submitted any more.
    Lost(u32, String),
    /// Slurm does not answer.
    Silent,
}

/// How the watch ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ending {
    /// Tasks that are given up, and why.
    pub lost: BTreeMap<u32, String>,
    /// The arrays that may still be in the queue when the watch was stopped.
    pub left: Option<Vec<String>>,
}

/// A task that was submitted.
struct Task {
    job: String,
    attempt: u32,
    /// Answers in a row in which it is gone.
    gone: u32,
    /// What Slurm said of it last.
    state: String,
}

impl Watch<'_> {
    /// Submits the tasks and watches them.
    ///
    /// # Errors
    /// When nothing can be submitted at all.
    pub fn run(&self, tasks: &[u32]) -> anyhow::Result<Ending> {
        let mut ending = Ending::default();
        let mut watched = BTreeMap::new();
        self.submit(tasks, 1, &mut watched)?.map_or(Ok(()), |why| Err(anyhow::anyhow!(why)))?;
        let mut asked = Instant::now();
        let mut is_silent = false;
        while !watched.is_empty() {
            if (self.stopping)() {
                let mut jobs: Vec<String> = watched.into_values().map(|task: Task| task.job).collect();
                jobs.dedup();
                ending.left = Some(jobs);
                return Ok(ending);
            }
            std::thread::sleep(TICK.min(self.poll));
            if asked.elapsed() >= self.poll {
                let answers = self.ask(&mut watched);
                if !answers && !is_silent {
                    (self.tell)(&Event::Silent);
                }
                (asked, is_silent) = (Instant::now(), !answers);
            }
            let again = self.look(&mut watched, &mut ending);
            for (attempt, tasks) in again {
                if let Some(why) = self.submit(&tasks, attempt, &mut watched)? {
                    tasks.iter().for_each(|task| self.give_up(*task, why.clone(), &mut ending));
                }
            }
            (self.tell)(&Event::Tick);
        }
        Ok(ending)
    }

    /// The inner error is what `sbatch` says.
    fn submit(&self, tasks: &[u32], attempt: u32, watched: &mut BTreeMap<u32, Task>) -> anyhow::Result<Option<String>> {
        let script = (self.script)(attempt)?;
        let job = match self.queue.submit(&script, tasks) {
            Ok(job) => job,
            Err(why) => return Ok(Some(why)),
        };
        (self.submitted)(&job, tasks)?;
        for task in tasks {
            watched.insert(*task, Task { job: job.clone(), attempt, gone: 0, state: String::new() });
        }
        Ok(None)
    }

    /// Asks Slurm about all tasks; whether it answered.
    fn ask(&self, watched: &mut BTreeMap<u32, Task>) -> bool {
        let mut jobs: Vec<String> = watched.values().map(|task| task.job.clone()).collect();
        jobs.sort();
        jobs.dedup();
        let Some(states) = self.queue.states(&jobs) else { return false };
        for (number, task) in watched {
            let state = states.get(&(task.job.clone(), *number));
            task.gone = if state.is_some_and(|state| is_alive(state)) { 0 } else { task.gone + 1 };
            if let Some(state) = state {
                task.state.clone_from(state);
            }
        }
        true
    }

    /// Takes out tasks that came back and those that will not; what is to be submitted again is returned by attempt.
    fn look(&self, watched: &mut BTreeMap<u32, Task>, ending: &mut Ending) -> BTreeMap<u32, Vec<u32>> {
        let mut again: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let numbers: Vec<u32> = watched.keys().copied().collect();
        for number in numbers {
            let Some(task) = watched.get(&number) else { continue };
            let why = match self.exit_code(&task.job, number) {
                Some(code) if code == ExitCode::Passed as i32 || code == ExitCode::Ungraded as i32 => {
                    watched.remove(&number);
                    (self.tell)(&Event::Back(number));
                    continue;
                }
                Some(code) => format!("ended with exit code {code}"),
                None if task.gone < GONE => continue,
                None if task.state.is_empty() || is_alive(&task.state) => "left the queue".to_owned(),
                None => format!("ended as {}", task.state),
            };
            let why = format!("task {}_{number} {why}", task.job);
            let attempt = task.attempt + 1;
            watched.remove(&number);
            if attempt > self.attempts {
                self.give_up(number, why, ending);
            } else {
                (self.tell)(&Event::Again(number, why));
                again.entry(attempt).or_default().push(number);
            }
        }
        again
    }

    fn give_up(&self, task: u32, why: String, ending: &mut Ending) {
        (self.tell)(&Event::Lost(task, why.clone()));
        ending.lost.insert(task, why);
    }

    /// What a task left.
    fn exit_code(&self, job: &str, task: u32) -> Option<i32> {
        std::fs::read_to_string(self.folder.join(format!("{job}_{task}.exit"))).ok()?.trim().parse().ok()
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
