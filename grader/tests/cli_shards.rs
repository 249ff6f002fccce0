//! A class in shards: `batch --shard`, `merge`, and `batch --slurm` on a Slurm that is a few shell scripts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const LEARNERS: [&str; 7] = ["ann", "bob", "cy", "dot", "eve", "flo", "gil"];

/// A class whose files are empty: it is graded at once, and needs no compiler.
fn class() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (number, learner) in LEARNERS.iter().enumerate() {
        let folder = root.path().join("the class").join(learner);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("heat.cu"), "\n".repeat(number + 1)).expect("heat.cu");
    }
    root
}

fn command(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("heat-grader"));
    let path = format!("{}:{}", root.join("bin").display(), std::env::var("PATH").expect("PATH"));
    command.current_dir(root).args(words).env("PATH", path).env_remove("SLURM_CONF");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(root: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = command(root, words).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

const BATCH: [&str; 4] = ["batch", "the class", "--offline", "--engine=cpu"];

/// One shard into a folder of its own.
fn shard(root: &Path, shard: &str, out: &str, more: &[&str]) -> (Option<i32>, String) {
    run(root, &[&BATCH[..], &["--shard", shard, "--out", out], more].concat())
}

fn summary(root: &Path, out: &str) -> Value {
    serde_json::from_slice(&fs::read(root.join(out).join("summary.json")).expect("a summary")).expect("JSON")
}

/// Learners whose verdict is `fail`.
fn graded(root: &Path, out: &str) -> Vec<String> {
    let summary = summary(root, out);
    let rows = summary["submissions"].as_array().expect("rows").iter();
    let graded = rows.filter(|row| row["verdict"] == "fail");
    graded.map(|row| row["learner"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn shards_are_graded_apart_and_come_together_as_if_they_had_not_been() {
    let root = class();
    let root = root.path();
    let mut all = Vec::new();
    for at in ["0/3", "1/3"] {
        let out = at.replace('/', "of");
        assert_eq!(shard(root, at, &out, &["--seed=1"]).0, Some(0));
        let own = graded(root, &out);
        assert_eq!(summary(root, &out)["counts"]["submissions"], own.len());
        all.extend(own);
    }
    let (code, text) = run(root, &["merge", "0of3", "1of3", "--out", "m"]);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("reports of 2 folders") && text.contains("Not graded yet: "), "{text}");
    // A shard's folder has its seed from the first time.
    assert_eq!(shard(root, "2/3", "2of3", &["--seed=1"]).0, Some(0));
    let (code, text) = shard(root, "2/3", "2of3", &[]);
    assert!(code == Some(0) && text.contains("0 graded"), "{text}");
    all.extend(graded(root, "2of3"));
    all.sort();
    assert_eq!(all, LEARNERS, "each in one shard");
    let (code, text) = run(root, &["merge", "0of3", "1of3", "2of3", "--out", "m"]);
    assert_eq!(code, Some(0), "{text}");

    // Durations aside, the rows are those of the whole class at once.
    assert_eq!(run(root, &[&BATCH[..], &["--out=whole", "--seed=1"]].concat()).0, Some(0));
    let rows = |out: &str| {
        let mut summary = summary(root, out);
        for row in summary["submissions"].as_array_mut().expect("rows") {
            row["seconds"] = Value::Null;
        }
        summary
    };
    assert_eq!(rows("m"), rows("whole"));
    assert!(fs::read_to_string(root.join("m/index.html")).expect("a page").contains("gil"));
}

#[test]
fn what_would_mix_up_shards_is_a_usage_error() {
    let root = class();
    let root = root.path();
    let refused = |(code, text): (Option<i32>, String), why: &str| {
        assert!(code == Some(2) && text.contains(why), "{code:?} {text}");
    };
    refused(shard(root, "0/3", "a", &[]), "needs --seed");
    assert!(!root.join("a").exists());
    refused(shard(root, "3/3", "a", &["--seed=1"]), "0/3 to 2/3");
    assert_eq!(shard(root, "0/3", "a", &["--seed=1"]).0, Some(0));
    refused(shard(root, "1/3", "a", &[]), "a holds the results of shard 0/3");
    refused(run(root, &[&BATCH[..], &["--out=a"]].concat()), "a holds the results of shard 0/3");
    assert_eq!(shard(root, "1/3", "b", &["--seed=2"]).0, Some(0));
    refused(run(root, &["merge", "a", "b", "--out=m"]), "b was graded with another seed");
    refused(run(root, &["merge", "a", "--out=a"]), "--out has to be another folder");
    refused(run(root, &["merge", "a", "--out=b"]), "b holds a batch's own results");
    refused(run(root, &["merge", "the class", "--out=m"]), "no folder of results");
    assert!(!root.join("m").exists());
    assert_eq!(run(root, &["merge", "a", "--out=m"]).0, Some(3));
    refused(run(root, &[&BATCH[..], &["--out=m"]].concat()), "m holds merged results");
}

/// Puts a command on the PATH of these tests.
fn fake(root: &Path, name: &str, text: &str) {
    fs::create_dir_all(root.join("bin")).expect("a folder");
    let path = root.join("bin").join(name);
    fs::write(&path, format!("#!/usr/bin/env bash\nat='{}'\n{text}\n", root.display())).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
}

/// Runs each task at once, but for the first attempt of the last one.
const SBATCH: &str = r#"
for word; do case $word in --array=*) list=${word#--array=} ;; esac; done
n=$(( $(cat "$at/n" 2>/dev/null || echo 40) + 1 )); echo "$n" >"$at/n"
for part in ${list//,/ }; do
    for task in $(seq "${part%-*}" "${part#*-}"); do
        if [ "$n" = 41 ] && [ "$task" = 2 ]; then echo "41_2|NODE_FAIL" >>"$at/states"; continue; fi
        SLURM_ARRAY_JOB_ID=$n SLURM_ARRAY_TASK_ID=$task SLURM_CPUS_ON_NODE=1 bash "${!#}" >/dev/null 2>&1
    done
done
echo "$n""#;

#[test]
fn an_array_is_submitted_watched_submitted_again_and_merged() {
    let root = class();
    let root = root.path();
    fake(root, "sbatch", SBATCH);
    fake(root, "squeue", "cat \"$at/states\"");
    let array = ["--slurm", "--shards=3", "--slurm-poll=1", "--out=o ut"];
    let (code, text) = run(root, &[&BATCH[..], &array].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("shard 2: task 41_2 ended as NODE_FAIL; submitted again"), "{text}");
    assert!(text.contains("7 submissions: 0 passed, 7 failed") && text.contains("reports of 3 folders"), "{text}");
    assert_eq!(graded(root, "o ut"), LEARNERS);
    // The seed is nobody's to read off a script or a queue.
    let script = fs::read_to_string(root.join("o ut/slurm/job.sh")).expect("a script");
    assert!(!script.contains("seed"), "{script}");
    let log = fs::read_to_string(root.join("o ut/slurm/42_2.log")).expect("a log");
    assert!(log.contains("submissions in the class"), "{log}");
    // Another number of shards would grade everything anew.
    let (code, text) = run(root, &[&BATCH[..], &["--slurm", "--shards=2", "--out=o ut"]].concat());
    assert!(code == Some(2) && text.contains("begun with 3 shards"), "{text}");
}

#[test]
fn what_never_comes_back_is_ungraded_with_the_reason_and_without_slurm_nothing_is() {
    let root = class();
    let root = root.path();
    fake(root, "sbatch", "echo 7");
    fake(root, "squeue", "for task in 0 1 2; do echo \"7_$task|TIMEOUT\"; done");
    let array = ["--slurm", "--shards=3", "--slurm-poll=1", "--slurm-attempts=1", "--out=out"];
    let (code, text) = run(root, &[&BATCH[..], &array].concat());
    assert_eq!(code, Some(3), "{text}");
    let summary = summary(root, "out");
    assert_eq!(summary["counts"]["ungraded"], 7);
    let reason = summary["submissions"][0]["reason"].as_str().expect("a reason");
    assert!(reason.contains("did not come back in 1 attempts: task 7_") && reason.contains("TIMEOUT"), "{reason}");
    // Its folder has reports of an earlier run by then: they count, and are said to be that.
    let seed = "for k in 0 1 2; do bash \"$at/by_hand\" \"$k\"; done; echo 7";
    let binary = assert_cmd::cargo::cargo_bin("heat-grader");
    let grade = format!("'{}' batch 'the class' --shard=$1/3 --out=out/shards/$1-of-3 --quiet >&2\n", binary.display());
    fs::write(root.join("by_hand"), grade).expect("a script");
    fake(root, "sbatch", seed);
    fs::remove_file(root.join("out/slurm/jobs")).expect("the jobs of before");
    let (code, text) = run(root, &[&BATCH[..], &array].concat());
    assert!(code == Some(3) && text.contains("may be an earlier report"), "{code:?} {text}");
    assert_eq!(graded(root, "out"), LEARNERS);
    fake(root, "sbatch", "echo 'sbatch: error: Invalid partition' >&2; exit 1");
    let (code, text) = run(root, &[&BATCH[..], &["--slurm", "--out=none"]].concat());
    assert!(code == Some(3) && text.contains("sbatch: error: Invalid partition"), "{text}");
}

#[test]
fn an_interrupt_cancels_the_array_and_one_that_is_in_the_queue_is_not_doubled() {
    let root = class();
    let root = root.path();
    fake(root, "sbatch", "echo 9");
    fake(root, "squeue", "echo '9_0|PENDING'");
    fake(root, "scancel", "echo \"$@\" >\"$at/cancelled\"");
    let words = [&BATCH[..], &["--slurm", "--shards=1", "--slurm-poll=1", "--out=out"]].concat();
    let mut child = command(root, &words).spawn().expect("it starts");
    let began = Instant::now();
    while !root.join("out/slurm/jobs").exists() {
        assert!(began.elapsed() < Duration::from_secs(60) && child.try_wait().expect("a status").is_none());
        std::thread::sleep(Duration::from_millis(5));
    }
    // SAFETY: a plain system call on a child that has not been reaped.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("Cancelled job 9."), "{said}");
    assert_eq!(fs::read_to_string(root.join("cancelled")).expect("scancel ran").trim(), "9");
    assert_eq!(summary(root, "out")["counts"]["not_graded"], 7);
    let (code, text) = run(root, &words);
    assert!(code == Some(2) && text.contains("job 9 of an earlier run is still in the queue"), "{text}");
}

#[test]
fn a_printed_script_is_submitted_by_hand() {
    let root = class();
    let root = root.path();
    fake(root, "sbatch", "echo never >\"$at/asked\"");
    let words =
        [&BATCH[..], &["--print-slurm", "--shards=2", "--gpu", "--slurm-option=--time=30", "--out=out"]].concat();
    let output = command(root, &words).output().expect("it runs");
    let script = String::from_utf8(output.stdout).expect("text");
    assert!(script.contains("\n#SBATCH --gres=gpu:1\n#SBATCH --time=30\n") && !root.join("asked").exists(), "{script}");
    fs::write(root.join("job.sh"), &script).expect("a script");
    for task in ["0", "1"] {
        let mut bash = Command::new("bash");
        bash.arg("job.sh").current_dir(root).env("SLURM_ARRAY_TASK_ID", task).env("SLURM_ARRAY_JOB_ID", "5");
        assert!(bash.status().expect("bash").success());
    }
    let (_, last) = script.trim_end().rsplit_once("# When all tasks are done: ").expect("what to do then");
    assert!(Command::new("bash").args(["-c", last]).stdout(Stdio::null()).status().expect("bash").success());
    assert_eq!(graded(root, "out"), LEARNERS);
}
