//! Submissions that mean harm, a right one after each, and graders that are killed: nothing has an effect, nothing is left.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::Value;

/// One at a time: each keeps all cores busy.
fn in_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn heat_grader(temporary: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heat-grader"));
    command.env("TMPDIR", temporary).env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// `check` or `grade`, its exit code, its report and what it printed.
fn report(command: &mut Command, words: &[&str], submission: &Path) -> (i32, Value, String) {
    let output = command.args(words).arg(submission).args(["--seed", "1", "--offline", "--report", "-"]).output();
    let output = output.expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code().expect("no signal"), report, text)
}

/// Whether this machine has the walls that a test is about; says so where it has not.
fn has_walls() -> bool {
    let offer = heat_grader::confine::offer();
    let walls = offer.landlock > 0 && offer.seccomp;
    if !walls {
        eprintln!("left out: this kernel offers no Landlock or no seccomp");
    }
    walls
}

/// Processes that have to do with a folder: they work in it, or have something of it in memory.
fn processes_of(folder: &Path) -> Vec<String> {
    let needle = folder.to_string_lossy().into_owned();
    let touches = |process: &Path| {
        let works = fs::read_link(process.join("cwd")).is_ok_and(|at| at.starts_with(folder));
        works || fs::read_to_string(process.join("maps")).is_ok_and(|maps| maps.contains(&needle))
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    let of_folder = all.filter(|process| process.join("maps").exists() && touches(process));
    of_folder.map(|process| fs::read_to_string(process.join("comm")).unwrap_or_default().trim().to_owned()).collect()
}

/// Waits until a condition holds; false when it does not within so many seconds.
fn within(seconds: u64, condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < deadline {
        if condition() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    condition()
}

/// Copies a fixture.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for file in ["heat.cu", "verdict.json"] {
        fs::copy(from.join(file), to.join(file)).expect("a fixture's file");
    }
}

#[test]
fn a_hostile_submission_gets_its_verdict_the_right_one_after_it_passes_and_nothing_is_left() {
    let _turn = in_turn();
    a_right_one_after_each(|name| ["constructor_forks", "kernel_exits", "kernel_forges_replies"].contains(&name));
}

#[test]
#[ignore = "eight minutes on two busy cores; selftest grades the same fixtures without the right one after each"]
fn long_every_hostile_submission_gets_its_verdict_the_right_one_after_it_passes_and_nothing_is_left() {
    let _turn = in_turn();
    a_right_one_after_each(|_| true);
}

fn a_right_one_after_each(wanted: impl Fn(&str) -> bool) {
    if !has_walls() {
        return;
    }
    let (temporary, set) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    for kind in ["right", "wrong"] {
        fs::create_dir(set.path().join(kind)).expect("a folder");
    }
    // In the order of their names: a hostile one, a right one, and so on, all by one grader.
    let mut count = 0;
    for fixture in fs::read_dir(fixtures().join("hostile")).expect("fixtures").flatten() {
        let name = fixture.file_name().to_string_lossy().into_owned();
        if !wanted(&name) {
            continue;
        }
        copy(&fixture.path(), &set.path().join(format!("hostile/{name}")));
        copy(&fixtures().join("right/cuda_barrier"), &set.path().join(format!("hostile/{name}_then_right")));
        count += 2;
    }
    let mut command = heat_grader(temporary.path());
    command.args(["selftest", "--offline", "--engine", "cpu", "--fixtures"]).arg(set.path());
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains(&format!("{count} of {count} fixtures agree")), "{said}");
    assert_eq!(processes_of(temporary.path()), Vec::<String>::new());
    assert_eq!(fs::read_dir(temporary.path()).expect("the folder").count(), 0);
    for trace in ["/tmp/heat-grader-was-here", "/was-here.txt", "was-here.txt"] {
        assert!(!Path::new(trace).exists(), "{trace}");
    }
}

#[test]
fn what_was_tried_is_said_and_no_line_of_a_file_is_shown() {
    let _turn = in_turn();
    if !has_walls() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a folder");
    let tried = [
        ("constructor_reads_passwd", "a static constructor tried to open a file"),
        ("constructor_exits", "a static constructor tried to end the process"),
        ("kernel_opens_socket", "heat.cu:12: launch 1 tried to open a socket"),
        ("includes_passwd", "heat.cu:1"),
    ];
    for (name, words) in tried {
        let fixture = fixtures().join("hostile").join(name);
        let (code, report, text) = report(&mut heat_grader(temporary.path()), &["check"], &fixture);
        assert_eq!(code, 1, "{name}: {text}");
        assert!(report["checks"].to_string().contains(words), "{name}: {text}");
        assert!(!report.to_string().contains("root:") && !text.contains("root:"), "{name}: {text}");
        assert_eq!(report["environment"]["sandbox"]["kind"], "full", "{name}");
    }
}

#[test]
fn without_the_walls_the_same_submission_gets_through_and_the_report_says_so() {
    let _turn = in_turn();
    let temporary = tempfile::tempdir().expect("a folder");
    let fixture = fixtures().join("hostile/kernel_opens_socket");
    let mut command = heat_grader(temporary.path());
    let (code, report, text) = report(&mut command, &["check", "--no-sandbox"], &fixture);
    assert_eq!(code, 0, "{text}");
    assert_eq!(report["environment"]["sandbox"]["kind"], "none");
    assert!(text.contains("no sandbox"), "{text}");
}

/// The same command where the kernel has no Landlock.
fn without_landlock(command: &mut Command) -> &mut Command {
    let rules = [(libc::SYS_landlock_create_ruleset, Vec::new())].into();
    let refuse = SeccompAction::Errno(libc::ENOSYS as u32);
    let arch = std::env::consts::ARCH.try_into().expect("an architecture");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).expect("a filter");
    let program: BpfProgram = filter.try_into().expect("a program");
    // SAFETY: applying a filter makes two system calls.
    unsafe { command.pre_exec(move || seccompiler::apply_filter(&program).map_err(std::io::Error::other)) }
}

#[test]
fn grade_refuses_without_landlock_unless_a_container_is_the_wall_and_check_says_what_is_missing() {
    let _turn = in_turn();
    if !has_walls() {
        return;
    }
    let temporary = tempfile::tempdir().expect("a folder");
    let fixture = fixtures().join("wrong/no_kernel");
    let run = |words: &[&str]| report(without_landlock(&mut heat_grader(temporary.path())), words, &fixture);
    let (code, refused, _) = run(&["grade"]);
    assert_eq!(code, 3);
    assert!(refused["error"].as_str().is_some_and(|error| error.contains("--outer-sandbox")), "{refused}");
    let (code, outer, text) = run(&["grade", "--outer-sandbox"]);
    assert_ne!(code, 2, "{text}");
    let expected = serde_json::json!({ "kind": "outer", "landlock_abi": null, "seccomp": true });
    assert_eq!(outer["environment"]["sandbox"], expected);
    let (code, partial, text) = run(&["check"]);
    assert_eq!((code, &partial["environment"]["sandbox"]["kind"]), (1, &Value::from("partial")), "{text}");
    assert!(text.contains("not everything could be walled in"), "{text}");
}

#[test]
fn no_compiler_and_no_worker_outlives_a_grader_that_is_killed_or_interrupted() {
    let _turn = in_turn();
    let compiling = |folder: &Path| processes_of(folder).iter().any(|name| name.starts_with("cc1plus"));
    let running = |folder: &Path| {
        let all = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path().join("maps"));
        let object = format!("{}/", folder.display());
        let loaded = |maps: String| maps.lines().any(|line| line.contains(&object) && line.contains("fast.so"));
        all.filter_map(|maps| fs::read_to_string(maps).ok()).any(loaded)
    };
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGINT] {
        for stage in [&compiling as &dyn Fn(&Path) -> bool, &running] {
            let (temporary, reports) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
            let report = reports.path().join("report.json");
            fs::write(&report, "an older report").expect("a file");
            let mut command = heat_grader(temporary.path());
            command.args(["check", "--offline", "--engine", "cpu"]).arg(fixtures().join("right/plain"));
            command.arg("--report").arg(&report);
            let mut grader = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
            assert!(within(60, || stage(temporary.path())), "the grader never came to that");
            // SAFETY: a plain system call on a child that has not been reaped.
            unsafe { libc::kill(grader.id() as i32, signal) };
            grader.wait().expect("it ends");
            assert!(within(10, || processes_of(temporary.path()).is_empty()), "{:?}", processes_of(temporary.path()));
            if signal != libc::SIGKILL {
                let left: Vec<_> = fs::read_dir(temporary.path()).expect("the folder").flatten().collect();
                assert!(left.is_empty(), "after signal {signal}: {left:?}");
                let said = fs::read_to_string(&report).expect("a report");
                assert!(said.contains("interrupted before"), "after signal {signal}: {said}");
            }
        }
    }
}
