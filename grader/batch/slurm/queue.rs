//! Slurm's commands. The only file that runs them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::script::ranges;
use crate::report::escape;

/// States in which a task is still to come, or under way. All others are ends.
const ALIVE: [&str; 14] = [
    "PENDING",
    "RUNNING",
    "SUSPENDED",
    "COMPLETING",
    "CONFIGURING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESIZING",
    "RESV_DEL_HOLD",
    "SIGNALING",
    "SPECIAL_EXIT",
    "STAGE_OUT",
    "STOPPED",
];

/// A task of a job array: the array's number and the task's.
pub type Name = (String, u32);

/// Where commands are looked for.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The process's own PATH when `None`.
    pub path: Option<OsString>,
}

impl Queue {
    /// Submits these tasks of the script's, and returns the array's number. Slurm is told not to requeue by itself, so that
    /// nobody but us does it. The error is what `sbatch` says.
    pub fn submit(&self, script: &Path, tasks: &[u32]) -> Result<String, String> {
        let array = format!("--array={}", ranges(tasks));
        let said = self.run("sbatch", &["--parsable", "--no-requeue", &array], Some(script))?;
        // With several clusters the cluster's name follows.
        let number = said.trim().split(';').next().unwrap_or_default();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("sbatch gave no number of a job: {}", escape::line(&said)));
        }
        Ok(number.to_owned())
    }

    /// States of the tasks of these arrays, by squeue, else sacct; `None` when neither answers. A task that is not there
    /// has left the queue.
    pub fn states(&self, jobs: &[String]) -> Option<BTreeMap<Name, String>> {
        let list = format!("--jobs={}", jobs.join(","));
        let asked = ["--noheader", "--array", "--states=all", "--format=%i|%T", &list];
        match self.run("squeue", &asked, None) {
            Ok(said) => Some(parse(&said)),
            // Slurm has forgotten them, so none of them is left.
            Err(why) if why.contains("Invalid job id") => Some(BTreeMap::new()),
            Err(_) => {
                let asked = ["--noheader", "--parsable2", "--allocations", "--array", "--format=JobID,State", &list];
                self.run("sacct", &asked, None).ok().map(|said| parse(&said)).filter(|states| !states.is_empty())
            }
        }
    }

    /// Cancels arrays; what cannot be cancelled has ended.
    pub fn cancel(&self, jobs: &[String]) -> Result<(), String> {
        let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
        if jobs.is_empty() { Ok(()) } else { self.run("scancel", &jobs, None).map(drop) }
    }

    fn run(&self, program: &str, words: &[&str], file: Option<&Path>) -> Result<String, String> {
        let mut command = Command::new(program);
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        // In a group of its own: Ctrl-C is for this process, which has yet to tell Slurm of it.
        command.args(words).args(file).stdin(Stdio::null()).process_group(0);
        let output = command.output().map_err(|error| match error.kind() {
            ErrorKind::NotFound => format!("{program} was not found; is this a machine that submits to Slurm?"),
            _ => format!("{program}: {error}"),
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches(program).trim_start_matches(": ");
        Err(format!("{program}: {}", escape::line(said)))
    }
}

/// Whether a task in this state may still come back.
pub fn is_alive(state: &str) -> bool {
    ALIVE.contains(&state)
}

/// Lines such as `12_3|RUNNING`, `12_4|CANCELLED by 0`.
fn parse(said: &str) -> BTreeMap<Name, String> {
    let task = |line: &str| {
        let (name, state) = line.trim().split_once('|')?;
        let (job, task) = name.split_once('_')?;
        let state = state.split(|c: char| !(c.is_ascii_uppercase() || c == '_')).next()?;
        Some(((job.to_owned(), task.parse().ok()?), state.to_owned()))
    };
    said.lines().filter_map(task).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_task_by_task() {
        let states = parse(
            "12_0|RUNNING\n12_10|NODE_FAIL\n13_0|CANCELLED by 0\nslurm_load_jobs\n12_[3-4]|PENDING\n14|RUNNING\n",
        );
        let of = |job: &str, task| states.get(&(job.to_owned(), task)).map(String::as_str);
        assert_eq!((of("12", 0), of("12", 10), of("13", 0)), (Some("RUNNING"), Some("NODE_FAIL"), Some("CANCELLED")));
        assert_eq!(states.len(), 3);
        assert!(is_alive("PENDING") && is_alive("COMPLETING") && !is_alive("NODE_FAIL") && !is_alive("TIMEOUT"));
    }

    #[test]
    fn a_machine_without_slurm_is_told_so() {
        let queue = Queue { path: Some("/nowhere".into()) };
        assert!(queue.submit(Path::new("job.sh"), &[0]).unwrap_err().contains("sbatch was not found"));
        assert_eq!(queue.states(&["1".to_owned()]), None);
        assert_eq!(queue.cancel(&[]), Ok(()));
    }
}
