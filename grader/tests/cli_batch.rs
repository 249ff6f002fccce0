//! `batch` as a whole: exit codes, an interrupt, a kill in the middle, and what a second run makes of them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use heat_grader::compile::toolkit::find_toolkit;
use serde_json::Value;

/// A program that nvcc takes and that has no kernel to grade: it fails at `kernel`, soon. The number makes it one's own.
fn no_kernel(number: usize) -> String {
    format!("__global__ void other(float* out) {{ out[threadIdx.x] = {number}.0f; }}\nint main() {{ return 0; }}\n")
}

/// Three learners, and a folder for what is temporary.
fn class() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (number, learner) in ["ann", "bob", "cy"].iter().enumerate() {
        fs::create_dir_all(root.path().join("class").join(learner)).expect("a folder");
        fs::write(root.path().join("class").join(learner).join("heat.cu"), no_kernel(number)).expect("heat.cu");
    }
    fs::create_dir(root.path().join("tmp")).expect("a folder");
    root
}

/// Whether a submission takes long enough here for a signal to come while it is graded: the compiler's time, that is.
fn takes_a_while() -> bool {
    let compiler = find_toolkit(true).found().is_some();
    if !compiler {
        eprintln!("no nvcc here: nothing tested");
    }
    compiler
}

/// `batch class --out OUT` in the folder, one submission at a time, in a process group of its own.
fn batch(root: &Path, out: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("heat-grader"));
    command
        .current_dir(root)
        .env("TMPDIR", root.join("tmp"))
        // With builds from an earlier run a submission would be over before a signal can come.
        .env("HEAT_GRADER_NO_CACHE", "1")
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.args(["batch", "class", "--out", out, "--seed", "1", "--jobs", "1", "--offline", "--engine", "cpu"]);
    command
}

fn outcome(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

/// Starts a batch and waits for its first report; what is sent to its group then is the rest of the story.
fn begun(root: &Path, out: &str) -> Child {
    let mut child = batch(root, out).spawn().expect("it starts");
    let began = Instant::now();
    while !root.join(out).join("reports/ann.json").exists() {
        assert!(began.elapsed() < Duration::from_secs(120), "no report came");
        assert!(child.try_wait().expect("a status").is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn send(child: &Child, signal: i32) {
    // SAFETY: a plain system call on a group whose leader has not been reaped.
    assert_eq!(unsafe { libc::kill(-(child.id() as i32), signal) }, 0);
}

/// All reports but for what a clock says.
fn reports(out: &Path) -> BTreeMap<String, Value> {
    let entries = fs::read_dir(out.join("reports")).expect("reports").map(|entry| entry.expect("an entry").path());
    let report = |path: std::path::PathBuf| {
        let mut report: Value = serde_json::from_slice(&fs::read(&path).expect("a report")).expect("JSON");
        report["durations"] = Value::Null;
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), report)
    };
    entries.map(report).collect()
}

fn modified(path: &Path) -> std::time::SystemTime {
    fs::metadata(path).and_then(|metadata| metadata.modified()).expect("a date")
}

#[test]
fn a_batch_that_was_killed_goes_on_to_the_same_reports_and_grades_nothing_twice() {
    if !takes_a_while() {
        return;
    }
    let root = class();
    let (code, text) = outcome(batch(root.path(), "whole").spawn().expect("it starts"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("3 submissions: 0 passed, 3 failed") && text.contains("kernel"), "{text}");

    let child = begun(root.path(), "out");
    send(&child, libc::SIGKILL);
    outcome(child);
    let out = root.path().join("out");
    let (before, date) = (reports(&out), modified(&out.join("reports/ann.json")));
    let (code, text) = outcome(batch(root.path(), "out").spawn().expect("it starts"));
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(modified(&out.join("reports/ann.json")), date, "graded twice: {text}");
    assert!(text.contains(&format!("; {} graded before", before.len())), "{text}");
    assert_eq!(reports(&out), reports(&root.path().join("whole")));
    for file in ["summary.json", "summary.csv"] {
        assert!(out.join(file).exists(), "{file}");
    }
}

#[test]
fn an_interrupt_lets_finish_what_runs_and_the_next_batch_goes_on() {
    if !takes_a_while() {
        return;
    }
    let root = class();
    let child = begun(root.path(), "out");
    send(&child, libc::SIGINT);
    let (code, text) = outcome(child);
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("Finishing what runs") && text.contains("The same command goes on"), "{text}");
    let out = root.path().join("out");
    for (learner, report) in reports(&out) {
        assert_eq!(report["failing_check"], "kernel", "{learner} was not left in peace: {report}");
    }
    let summary: Value = serde_json::from_slice(&fs::read(out.join("summary.json")).expect("a summary")).expect("JSON");
    assert_eq!(summary["complete"], false);
    assert_eq!(summary["submissions"][2]["verdict"], Value::Null);
    let junit = fs::read_to_string(out.join("junit.xml")).expect("junit.xml");
    assert!(
        junit.contains("<testsuite name=\"cy\"") && junit.contains("<skipped message=\"not graded yet\"/>"),
        "{junit}"
    );
    assert_eq!(fs::read_dir(root.path().join("tmp")).expect("the folder").count(), 0);
    let (code, text) = outcome(batch(root.path(), "out").spawn().expect("it starts"));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("known from before"), "{text}");
}

#[test]
fn a_second_interrupt_ends_it_at_once_and_leaves_nothing_behind() {
    if !takes_a_while() {
        return;
    }
    let root = class();
    let child = begun(root.path(), "out");
    send(&child, libc::SIGINT);
    std::thread::sleep(Duration::from_millis(150));
    send(&child, libc::SIGINT);
    let (code, text) = outcome(child);
    assert_eq!(code, Some(130), "{text}");
    assert_eq!(fs::read_dir(root.path().join("tmp")).expect("the folder").count(), 0);
    let summary = fs::read(root.path().join("out/summary.json")).expect("a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    assert!(summary["counts"]["not_graded"].as_u64() >= Some(1), "{summary}");
    let left = |name: &str| name.starts_with(".heat-grader-");
    for part in ["out", "out/reports", "out/ledger"] {
        for entry in fs::read_dir(root.path().join(part)).expect("a folder") {
            assert!(!left(&entry.expect("an entry").file_name().to_string_lossy()));
        }
    }
}

#[test]
fn what_is_typed_wrong_is_exit_code_2_and_an_archive_is_a_class() {
    let root = class();
    let run = |folder: &str, more: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("heat-grader"));
        let output = command.current_dir(root.path()).args(["batch", folder]).args(more).output().expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        (output.status.code(), text)
    };
    let (code, text) = run("nowhere", &["--out", "out"]);
    assert!(code == Some(2) && text.contains("nowhere does not exist"), "{text}");
    assert!(!root.path().join("out").exists());
    let (code, text) = run("class", &["--out", "class/ann/heat.cu"]);
    assert!(code == Some(2) && text.contains("is a file"), "{text}");
    assert_eq!(run("class", &[]).0, Some(2));
    assert_eq!(run("class", &["--out", "out", "--jobs", "0"]).0, Some(2));
    // Nothing in it that a compiler would be asked about.
    let mut tar = tar::Builder::new(fs::File::create(root.path().join("two.tar")).expect("a file"));
    for learner in ["ann", "bob"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        tar.append_data(&mut header, format!("two/{learner}/heat.cu"), &b"\n"[..]).expect("an entry");
    }
    tar.finish().expect("a tar");
    let (code, text) = run("two.tar", &["--out", "out", "--quiet", "--offline", "--engine", "cpu"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("2 submissions: 0 passed, 2 failed") && text.contains("source"), "{text}");
    assert!(!text.contains("1/2"), "{text}");
    let report = fs::read_to_string(root.path().join("out/reports/bob.json")).expect("a report");
    assert!(report.contains("\"path\": \"two.tar/two/bob\"") && report.contains("is empty"), "{report}");
}

#[test]
fn a_full_disk_is_one_sentence_and_costs_nothing_but_what_there_was_no_room_for() {
    let root = class();
    let out = root.path().join("out");
    fs::create_dir(&out).expect("a folder");
    // A device that is always full.
    std::os::unix::fs::symlink("/dev/full", out.join("summary.json")).expect("a link");
    let (code, text) = outcome(batch(root.path(), "out").spawn().expect("it starts"));
    let said = "heat-grader: the disk with out is full; 3 of 3 reports are there and whole, and with more room the same command goes on from them\n";
    assert!(code == Some(3) && text.ends_with(said), "{code:?} {text}");
    assert!(text.contains("3 submissions: 0 passed, 3 failed"), "{text}");
    fs::remove_file(out.join("summary.json")).expect("the link is gone");
    let (code, text) = outcome(batch(root.path(), "out").spawn().expect("it starts"));
    assert!(code == Some(0) && text.contains("0 graded in"), "{code:?} {text}");
}

#[test]
fn reports_of_who_is_no_longer_in_the_class_make_way_and_are_not_counted() {
    let root = class();
    let (code, text) = outcome(batch(root.path(), "out").spawn().expect("it starts"));
    assert_eq!(code, Some(0), "{text}");
    fs::rename(root.path().join("class/cy"), root.path().join("class/cyan")).expect("renamed");
    let (code, text) = outcome(batch(root.path(), "out").spawn().expect("it starts"));
    assert!(code == Some(0) && text.contains("earlier   cy: no longer in the class, moved to out/earlier/"), "{text}");
    let out = root.path().join("out");
    assert_eq!(reports(&out).keys().collect::<Vec<_>>(), ["ann", "bob", "cyan"]);
    assert!(out.join("earlier/cy.json").exists());
    let summary: Value = serde_json::from_slice(&fs::read(out.join("summary.json")).expect("a summary")).expect("JSON");
    assert_eq!(summary["counts"]["submissions"], 3);
    assert!(!fs::read_to_string(out.join("index.html")).expect("a page").contains("learner-cy\""));
    // Back under the old name, nothing is graded again.
    fs::rename(root.path().join("class/cyan"), root.path().join("class/cy")).expect("renamed");
    let (code, text) = outcome(batch(root.path(), "out").spawn().expect("it starts"));
    assert!(code == Some(0) && text.contains("0 graded in"), "{text}");
}

#[test]
fn engine_cuda_without_a_gpu_ends_before_anything_is_made() {
    if Path::new("/dev/nvidiactl").exists() {
        return;
    }
    let root = class();
    let words = ["batch", "class", "--out", "out", "--offline", "--engine", "cuda"];
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("heat-grader"));
    // Where there is a GPU, no more of it is seen than on a machine without one.
    let output =
        command.current_dir(root.path()).env("CUDA_VISIBLE_DEVICES", "").args(words).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.starts_with("heat-grader: engine cuda cannot run here: ") && text.lines().count() == 1, "{text}");
    assert!(!root.path().join("out").exists());
}

#[test]
fn the_help_tells_exit_codes_and_what_becomes_of_a_seed() {
    let help = |command: &str| {
        let mut grader = Command::new(assert_cmd::cargo::cargo_bin("heat-grader"));
        let output = grader.args([command, "--help"]).env("COLUMNS", "1000").output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for command in ["batch", "merge"] {
        let said = help(command);
        for code in [
            "Exit codes: 0 every submission passed or failed",
            "3 some are ungraded",
            "130 interrupted",
            "2 usage error",
        ] {
            assert!(said.contains(code), "{command} {code}: {said}");
        }
    }
    assert!(help("batch").contains("DIR/batch.json keeps it, and a re-run uses it again"));
    assert!(!help("grade").contains("batch.json"));
}
