//! `batch --slurm` against a real Slurm of three nodes, one of which is killed in the middle.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use heat_grader::batch::shard::Shard;
use serde_json::Value;

const SHARDS: u32 = 6;
const TINY: usize = 22;
/// The one submission that is graded to the end: long enough for its node to be killed meanwhile.
const REAL: &str = "plain";

/// The cluster of `cluster.sh`; ended with the test, however that ends.
struct Cluster(PathBuf);

impl Cluster {
    fn start(folder: &Path) -> Self {
        let cluster = Self(folder.to_owned());
        cluster.script(&["start"]);
        cluster
    }

    fn script(&self, words: &[&str]) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("grader/tests/slurm/cluster.sh");
        let (command, rest) = words.split_first().expect("a command");
        let status = Command::new("bash").arg(script).arg(command).arg(&self.0).args(rest).status().expect("bash");
        assert!(status.success(), "cluster.sh {command}");
    }

    /// Tasks with their states and nodes, as Slurm has them.
    fn tasks(&self) -> BTreeMap<String, (String, String)> {
        let mut squeue = Command::new("squeue");
        squeue.env("SLURM_CONF", self.0.join("slurm.conf"));
        squeue.args(["--noheader", "--array", "--states=all", "--format=%i|%T|%N"]);
        let output = squeue.output().expect("squeue");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let task = |line: &str| {
            let mut parts = line.split('|').map(str::to_owned);
            Some((parts.next()?, (parts.next()?, parts.next()?)))
        };
        text.lines().filter_map(task).collect()
    }

    /// Where shard `shard` runs, once it does.
    fn node_of(&self, shard: u32, child: &mut Child) -> String {
        wait(child, "the task to run", || {
            let ending = format!("_{shard}");
            let tasks = self.tasks();
            let running = tasks.iter().find(|(id, (state, _))| id.ends_with(&ending) && state == "RUNNING");
            running.map(|(_, (_, node))| node.clone())
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.script(&["stop"]);
    }
}

fn wait<T>(child: &mut Child, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "waited for {what}");
        assert!(child.try_wait().expect("a status").is_none(), "it ended before {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn class(root: &Path) {
    let hand_in = |learner: &str, text: &str| {
        fs::create_dir_all(root.join("the class").join(learner)).expect("a folder");
        fs::write(root.join("the class").join(learner).join("heat.cu"), text).expect("heat.cu");
    };
    for number in 0..TINY {
        let text =
            format!("__global__ void other(float* out) {{ out[0] = {number}.0f; }}\nint main() {{ return 0; }}\n");
        hand_in(&format!("learner_{number}"), &text);
    }
    hand_in(REAL, &super::plain());
}

fn batch(root: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("heat-grader"));
    command.current_dir(root).env("SLURM_CONF", root.join("slurm/slurm.conf"));
    command.args([
        "batch",
        "the class",
        "--out",
        "out 100%",
        "--slurm",
        "--slurm-poll=1",
        "--gpu",
        "--quick",
        "--offline",
    ]);
    command.args(["--engine=cpu", "--seed=1", &format!("--shards={SHARDS}"), "--slurm-option=--comment=end of term"]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn outcome(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

/// Reports in a folder of results by learner, with their dates.
fn reports(out: &Path) -> BTreeMap<String, SystemTime> {
    let entries = fs::read_dir(out.join("reports")).into_iter().flatten().flatten();
    let dated = |entry: fs::DirEntry| {
        let name = entry.path().file_stem().expect("a name").to_string_lossy().into_owned();
        (name, entry.metadata().and_then(|metadata| metadata.modified()).expect("a date"))
    };
    entries.map(dated).collect()
}

#[test]
#[ignore = "needs root, and Debian's slurm-wlm and munge"]
fn slurm_a_node_is_killed_and_every_submission_is_reported_once() {
    let root = tempfile::tempdir().expect("a folder");
    let root = root.path();
    class(root);
    let cluster = Cluster::start(&root.join("slurm"));
    let out = root.join("out 100%");
    let place = |shard: u32| out.join(format!("shards/{shard}-of-{SHARDS}"));

    let mut child = batch(root, &[]).spawn().expect("it starts");
    let shard = Shard::of(REAL, SHARDS);
    let node = cluster.node_of(shard, &mut child);
    // To Slurm a task runs before its script does, and a step's daemon without one would outlive its node.
    let log = out.join(format!("slurm/1_{shard}.log"));
    wait(&mut child, "the script to run", || log.exists().then_some(()));
    wait(&mut child, "a first report", || (0..SHARDS).any(|shard| !reports(&place(shard)).is_empty()).then_some(()));
    cluster.script(&["kill", &node]);
    assert!(!place(shard).join("reports").join(format!("{REAL}.json")).exists(), "it was too late for that");
    let (code, text) = outcome(child);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ended as NODE_FAIL; submitted again"), "{text}");
    assert!(text.contains(&format!("{} submissions: 1 passed, {TINY} failed", TINY + 1)), "{text}");

    let everybody: Vec<String> = (0..TINY).map(|number| format!("learner_{number}")).chain([REAL.to_owned()]).collect();
    let summary: Value = serde_json::from_slice(&fs::read(out.join("summary.json")).expect("a summary")).expect("JSON");
    assert_eq!(summary["complete"], true);
    for learner in &everybody {
        let rows = summary["submissions"].as_array().expect("rows");
        let own: Vec<_> = rows.iter().filter(|row| row["learner"] == learner.as_str()).collect();
        assert_eq!(own.len(), 1, "{learner}");
        assert_eq!(own[0]["failing_check"], if learner == REAL { Value::Null } else { "kernel".into() }, "{learner}");
        let shards = (0..SHARDS).filter(|shard| reports(&place(*shard)).contains_key(learner)).count();
        assert_eq!(shards, 1, "{learner}");
    }
    assert_eq!(reports(&out).len(), everybody.len());

    // Again: nothing is graded twice.
    let before: Vec<_> = (0..SHARDS).map(|shard| reports(&place(shard))).collect();
    let (code, text) = outcome(batch(root, &[]).spawn().expect("it starts"));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!((0..SHARDS).map(|shard| reports(&place(shard))).collect::<Vec<_>>(), before);

    // Ctrl-C ends the array.
    let mut child = batch(root, &["--force"]).spawn().expect("it starts");
    cluster.node_of(shard, &mut child);
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(interrupt.success());
    let (code, text) = outcome(child);
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("Cancelled job") && text.contains("1 passed"), "{text}");
    assert!(cluster.tasks().values().any(|(state, _)| state == "CANCELLED" || state == "COMPLETING"), "{text}");
}
