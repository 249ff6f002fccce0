//! The whole tool on real submissions: right ones, wrong ones, and what is none at all.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

#[path = "cli_batch.rs"]
mod batch;
#[path = "slurm/mod.rs"]
mod cluster;
#[path = "cli_shards.rs"]
mod shards;

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// `check` with a fixed seed; no compiler is fetched for tests.
fn check(path: &Path) -> Command {
    let mut command = Command::cargo_bin("heat-grader").expect("the binary");
    command.arg("check").arg(path).args(["--seed", "1", "--offline", "--fresh"]);
    command
}

fn plain() -> String {
    fs::read_to_string(fixture("right/plain/heat.cu")).expect("the plain fixture")
}

/// Runs `check` on a folder whose heat.cu holds these bytes: exit code and everything printed.
fn checked(bytes: &[u8]) -> (i32, String) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("heat.cu"), bytes).expect("heat.cu");
    outcome(&mut check(folder.path()))
}

fn outcome(command: &mut Command) -> (i32, String) {
    let output = command.output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().expect("no signal"), text)
}

#[test]
fn a_right_kernel_passes_with_the_models_count_whatever_its_path_and_line_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let odd = folder.path().join("Zoë's \"heat\" $(touch pwned) `x`");
    fs::create_dir(&odd).expect("an odd folder");
    fs::write(odd.join("heat.cu"), format!("\u{feff}{}", plain().replace('\n', "\r\n"))).expect("heat.cu");
    let (code, text) = outcome(check(&odd).current_dir(folder.path()));
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("0.843 words read per cell-step"), "{text}");
    assert!(!folder.path().join("pwned").exists());
}

#[test]
fn a_wrong_kernel_fails_and_names_row_column_and_both_values() {
    let output = check(&fixture("wrong/halo_one_cell")).args(["--report", "-"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    let first = &report["first_mismatch"];
    for key in ["row", "column", "expected", "got", "difference", "launch"] {
        assert!(first[key].is_number(), "{key}: {first}");
    }
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains(&format!("row {}", first["row"])), "{text}");
    assert!(text.contains(&format!("column {}", first["column"])), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_report_but_for_durations() {
    let report = || {
        let output = check(&fixture("wrong/no_barrier_after_load")).args(["--report", "-"]).output().expect("it runs");
        let mut report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["durations"] = Value::Null;
        report
    };
    assert_eq!(report(), report());
}

#[test]
fn what_is_no_submission_gets_one_sentence_and_the_right_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let (code, text) = outcome(&mut check(&folder.path().join("nowhere")));
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("does not exist"), "{text}");
    let (code, text) = outcome(&mut check(folder.path()));
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("no heat.cu"), "{text}");
    let other = folder.path().join("notes.txt");
    fs::write(&other, "no kernel").expect("a file");
    assert_eq!(outcome(&mut check(&other)).0, 2);
}

#[test]
fn the_one_heat_cu_further_down_is_graded_and_a_class_is_told_who_grades_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    let report = || -> Value {
        let output = check(folder.path()).args(["--report", "-"]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    put("ann/hw 3/heat.cu", "// no kernel\n");
    let one = report();
    assert_eq!(one["failing_check"], "kernel");
    assert_eq!(one["submission"]["file"], "ann/hw 3/heat.cu");
    assert_eq!(one["checks"][0]["summary"], "1 line of source, found in ann/hw 3/heat.cu");
    put("bob/heat.cu", "// no kernel\n");
    let class = report();
    assert_eq!(class["failing_check"], "source");
    let said = class["checks"][0]["summary"].as_str().expect("a sentence");
    assert!(said.contains("looks like a class") && said.contains("`heat-grader batch`"), "{said}");
    // What lies further down is nobody's business where there is one at the top.
    put("heat.cu", "// no kernel\n");
    assert_eq!(report()["submission"]["file"], Value::Null);
}

#[test]
fn files_that_are_no_source_fail_at_source() {
    let (code, text) = checked(b"");
    assert!(code == 1 && text.contains("empty"), "{code}: {text}");
    let (code, text) = checked(b"\x7fELF\0\0\0");
    assert!(code == 1 && text.contains("not text"), "{code}: {text}");
    let (code, text) = checked(&vec![b'/'; 20 << 20]);
    assert!(code == 1 && text.contains("larger than"), "{code}: {text}");
}

#[test]
fn the_unmodified_reference_has_no_two_step_kernel_yet() {
    let (code, text) = checked(include_bytes!("../../reference/heat.cu"));
    assert!(code == 1 && text.contains("no two-step kernel yet"), "{code}: {text}");
}

#[test]
fn a_link_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("heat.cu")).expect("a link");
    let (code, text) = outcome(&mut check(folder.path()));
    assert_eq!(code, 1, "{text}");
    assert!(!text.contains("root:"), "{text}");
}

#[test]
fn nothing_is_left_in_the_temporary_folder() {
    let scratch = tempfile::tempdir().expect("a folder");
    let (code, text) = outcome(check(&fixture("wrong/one_step_only")).env("TMPDIR", scratch.path()));
    assert_eq!(code, 1, "{text}");
    assert_eq!(fs::read_dir(scratch.path()).expect("the folder").count(), 0);
}

#[test]
fn an_archive_is_graded_like_its_folder_and_a_bad_one_fails_at_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("hw \u{1b}[31m.tar");
    let mut tar = tar::Builder::new(fs::File::create(&archive).expect("a tar"));
    tar.append_dir_all("hw", fixture("wrong/one_step_only")).expect("a folder");
    tar.finish().expect("a tar");
    let report = |path: &Path, code: i32| -> Value {
        let output = check(path).args(["--report", "-"]).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code));
        assert!(!output.stdout.contains(&0x1b) && !String::from_utf8_lossy(&output.stderr).contains("\u{1b}[31m."));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (packed, plain) = (report(&archive, 1), report(&fixture("wrong/one_step_only"), 1));
    for same in ["failing_check", "first_mismatch", "checks"] {
        assert_eq!(packed[same], plain[same]);
    }
    assert_eq!(packed["submission"]["sha256"], plain["submission"]["sha256"]);
    let cut = folder.path().join("cut.zip");
    fs::write(&cut, b"PK\x03\x04").expect("a file");
    let report = report(&cut, 1);
    assert_eq!((&report["failing_check"], &report["verdict"]), (&"source".into(), &"fail".into()));
    assert!(
        report["checks"][0]["summary"].as_str().is_some_and(|said| said.contains("cut.zip is damaged")),
        "{report}"
    );
}
