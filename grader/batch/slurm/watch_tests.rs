use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A Slurm of shell scripts. What becomes of a task is in `plan/TASK`, a line an attempt: an exit code that it leaves, or a
/// state in which it stays.
struct Fake(tempfile::TempDir);

const SBATCH: &str = r#"
job=$(( $(cat "$at/job") + 1 )); echo "$job" >"$at/job"
echo "$@" >>"$at/sbatch.log"
[ ! -e "$at/refuse" ] || { echo "sbatch: error: Batch job submission failed: Invalid account" >&2; exit 1; }
for word; do case $word in --array=*) list=${word#--array=} ;; esac; done
for part in $(echo "$list" | tr , ' '); do
    for task in $(seq "${part%-*}" "${part#*-}"); do
        fate=$(head -n 1 "$at/plan/$task"); sed -i 1d "$at/plan/$task"
        case $fate in
            [0-9]*) echo "$fate" >"$at/out/${job}_$task.exit"; fate=COMPLETED ;;
        esac
        [ "$fate" = FORGOTTEN ] || echo "${job}_$task|$fate" >>"$at/states"
    done
done
echo "$job;cluster"
"#;
const SQUEUE: &str = r#"
echo "$@" >>"$at/squeue.log"
[ ! -e "$at/silent" ] || { echo "squeue: error: Unable to contact slurm controller" >&2; exit 1; }
cat "$at/states"
"#;
/// Slurm's accounts, kept where `accounts` is; some sites have none.
const SACCT: &str = r#"
echo "$@" >>"$at/sacct.log"
[ -e "$at/accounts" ] || { echo "sacct: error: Slurm accounting storage is disabled" >&2; exit 1; }
cat "$at/accounts"
"#;

impl Fake {
    /// With the fates of each task, in the order of its attempts.
    fn new(plan: &[&str]) -> Self {
        let fake = Self(tempfile::tempdir().unwrap());
        let at = fake.0.path();
        for folder in ["bin", "plan", "out"] {
            fs::create_dir(at.join(folder)).unwrap();
        }
        for (name, text) in [("job", "11"), ("states", ""), ("sbatch.log", ""), ("squeue.log", ""), ("scancel.log", "")]
        {
            fs::write(at.join(name), text).unwrap();
        }
        for (task, fates) in plan.iter().enumerate() {
            fs::write(at.join("plan").join(task.to_string()), fates.replace(' ', "\n") + "\n").unwrap();
        }
        let cancel = "echo \"$@\" >>\"$at/scancel.log\"\n";
        for (name, text) in [("sbatch", SBATCH), ("squeue", SQUEUE), ("sacct", SACCT), ("scancel", cancel)] {
            let path = at.join("bin").join(name);
            fs::write(&path, format!("#!/bin/sh\nat='{}'\n{text}", at.display())).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fake
    }

    fn queue(&self) -> Queue {
        Queue { path: Some(format!("{}:/usr/bin:/bin", self.0.path().join("bin").display()).into()) }
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn touch(&self, name: &str) {
        fs::write(self.0.path().join(name), "").unwrap();
    }

    /// Watches the tasks until they are through, or until `stopping` looks at an event and says so.
    fn watch(&self, tasks: &[u32], stopping: &dyn Fn(&[Event]) -> bool) -> (anyhow::Result<Ending>, Vec<Event>) {
        let events = RefCell::new(Vec::new());
        let queue = self.queue();
        let watch = Watch {
            queue: &queue,
            folder: &self.0.path().join("out"),
            attempts: 3,
            poll: Duration::from_millis(5),
            stopping: &|| stopping(&events.borrow()),
            script: &|attempt| Ok(PathBuf::from(format!("attempt{attempt}.sh"))),
            submitted: &|_, _| Ok(()),
            tell: &|event| events.borrow_mut().push(event.clone()),
        };
        let ending = watch.run(tasks);
        (ending, events.into_inner().into_iter().filter(|event| *event != Event::Tick).collect())
    }
}

#[test]
fn tasks_that_come_back_are_done_ungraded_submissions_included() {
    let fake = Fake::new(&["0", "3", "0"]);
    let (ending, mut events) = fake.watch(&[0, 1, 2], &|_| false);
    assert_eq!(ending.unwrap(), Ending::default());
    events.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(events, [Event::Back(0), Event::Back(1), Event::Back(2)]);
    assert_eq!(fake.log("sbatch.log"), "--parsable --no-requeue --array=0-2 attempt1.sh\n");
}

#[test]
fn what_does_not_come_back_is_submitted_again_together_and_given_up_in_the_end() {
    let fake = Fake::new(&["0", "NODE_FAIL 0", "130 FORGOTTEN TIMEOUT", "NODE_FAIL OUT_OF_MEMORY 0"]);
    let (ending, events) = fake.watch(&[0, 1, 2, 3], &|_| false);
    assert!(fake.log("sbatch.log").starts_with("--parsable --no-requeue --array=0-3 attempt1.sh\n"));
    assert!(fake.log("sbatch.log").contains("attempt3.sh"));
    let lost = ending.unwrap().lost;
    assert_eq!(lost.keys().collect::<Vec<_>>(), [&2]);
    assert!(lost[&2].ends_with("_2 ended as TIMEOUT"), "{lost:?}");
    let again = |task: u32| events.iter().filter(|event| matches!(event, Event::Again(of, _) if *of == task)).count();
    assert_eq!([0, 1, 2, 3].map(again), [0, 1, 2, 2]);
    let said = format!("{events:?}");
    for why in
        ["_2 ended with exit code 130", "_2 left the queue", "_1 ended as NODE_FAIL", "_3 ended as OUT_OF_MEMORY"]
    {
        assert!(said.contains(why), "{why} not in {said}");
    }
}

#[test]
fn while_slurm_is_silent_results_are_waited_for() {
    let fake = Fake::new(&["RUNNING"]);
    fake.touch("silent");
    let came = RefCell::new(0);
    let (ending, events) = fake.watch(&[0], &|events| {
        *came.borrow_mut() += 1;
        if *came.borrow() == 10 {
            assert_eq!(events.iter().filter(|event| **event == Event::Silent).count(), 1);
            fs::write(fake.0.path().join("out/12_0.exit"), "0\n").unwrap();
        }
        assert!(*came.borrow() < 100);
        false
    });
    assert_eq!(ending.unwrap(), Ending::default());
    assert_eq!(events, [Event::Silent, Event::Back(0)]);
}

#[test]
fn where_squeue_is_silent_the_accounts_say_which_tasks_are_gone() {
    let fake = Fake::new(&["FORGOTTEN 0", "FORGOTTEN", "FORGOTTEN 3"]);
    fake.touch("silent");
    let accounts = "12_0|NODE_FAIL\n12_1|RUNNING\n12_2|CANCELLED by 0\n13_0|COMPLETED\n13_2|COMPLETED\n";
    fs::write(fake.0.path().join("accounts"), accounts).unwrap();
    let (ending, mut events) =
        fake.watch(&[0, 1, 2], &|events| events.iter().filter(|e| matches!(e, Event::Back(_))).count() == 2);
    // What runs by them is left alone.
    assert_eq!(ending.unwrap(), Ending { lost: BTreeMap::new(), left: Some(vec!["12".to_owned()]) });
    events.sort_by_key(|event| format!("{event:?}"));
    let again = |task: u32, why: &str| Event::Again(task, format!("task 12_{task} ended as {why}"));
    assert_eq!(events, [again(0, "NODE_FAIL"), again(2, "CANCELLED"), Event::Back(0), Event::Back(2)]);
    let asked = fake.log("sacct.log");
    assert!(
        asked.starts_with("--noheader --parsable2 --allocations --array --format=JobID,State --jobs=12\n"),
        "{asked}"
    );
    // Accounts that know of no task yet are no answer.
    fs::write(fake.0.path().join("accounts"), "").unwrap();
    assert_eq!(fake.queue().states(&["12".to_owned()]), None);
}

#[test]
fn a_task_that_runs_is_left_alone_and_a_stopped_watch_names_its_jobs() {
    let fake = Fake::new(&["RUNNING", "PENDING", "0"]);
    let (ending, events) = fake.watch(&[0, 1, 2], &|events| events.len() > 20);
    let jobs = ending.unwrap().left.unwrap();
    assert_eq!(jobs, ["12"]);
    assert_eq!(events, [Event::Back(2)]);
    assert!(fake.log("squeue.log").lines().all(|asked| asked.ends_with("--jobs=12")));
    fake.queue().cancel(&jobs).unwrap();
    assert_eq!(fake.log("scancel.log"), "12\n");
}

#[test]
fn what_sbatch_refuses_is_said_in_its_words() {
    let fake = Fake::new(&["0"]);
    fake.touch("refuse");
    let why = fake.watch(&[0], &|_| false).0.unwrap_err().to_string();
    assert!(why.starts_with("sbatch: ") && why.ends_with("Invalid account"), "{why}");
}

#[test]
fn what_sbatch_refuses_later_is_given_up_for_that_reason() {
    let fake = Fake::new(&["NODE_FAIL 0", "0"]);
    let (ending, _) = fake.watch(&[0, 1], &|events| {
        if events.contains(&Event::Tick) {
            fake.touch("refuse");
        }
        false
    });
    assert!(ending.unwrap().lost[&0].contains("Invalid account"));
}
