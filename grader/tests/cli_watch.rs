//! `check --watch`: a check after every change, none of a file that has changed meanwhile, and nothing left behind.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A watching grader, with a folder of its own for temporary files.
struct Watching {
    child: Child,
    said: Receiver<u8>,
    temporary: TempDir,
}

impl Watching {
    fn start(submission: &Path) -> Self {
        Self::with(submission, &[])
    }

    /// The same with more options.
    fn with(submission: &Path, options: &[&OsStr]) -> Self {
        let temporary = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(env!("CARGO_BIN_EXE_heat-grader"))
            .args(["check", "--watch", "--fresh", "--offline", "--engine", "cpu"])
            .args(options)
            .arg(submission)
            .env("TMPDIR", temporary.path())
            .env("NO_COLOR", "1")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut stdout = child.stdout.take().expect("a pipe");
        let (send, said) = channel();
        std::thread::spawn(move || {
            let mut byte = [0];
            while stdout.read_exact(&mut byte).is_ok() && send.send(byte[0]).is_ok() {}
        });
        Self { child, said, temporary }
    }

    /// What it says until these words are among it.
    fn until(&self, words: &str) -> String {
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains(words) {
            let byte = self.said.recv_timeout(Duration::from_secs(60));
            text.push(byte.unwrap_or_else(|_| panic!("no `{words}`: {}", String::from_utf8_lossy(&text))));
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Ends it as a terminal or an editor does; returns its exit code.
    fn end(mut self, signal: i32) -> Option<i32> {
        // SAFETY: a plain system call on a child that has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
        let code = self.child.wait().expect("it ends").code();
        let left = fs::read_dir(self.temporary.path()).expect("the folder").count();
        assert_eq!(left, 0, "temporary files are left");
        code
    }
}

#[test]
fn every_change_is_checked_and_the_end_is_130() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("heat.cu");
    fs::write(&program, "").expect("a file");
    let watching = Watching::start(folder.path());
    watching.until("heat.cu is empty");
    watching.until("FAILED at `source`");
    fs::write(&program, b"int a;\0").expect("a file");
    watching.until("NUL");
    // As editors save: another file takes the name.
    fs::write(folder.path().join("new"), "").expect("a file");
    fs::rename(folder.path().join("new"), &program).expect("a file");
    watching.until("heat.cu is empty");
    assert_eq!(watching.end(libc::SIGTERM), Some(130));
}

#[test]
fn a_check_that_a_change_overtakes_says_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("heat.cu");
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/right/plain/heat.cu");
    fs::copy(plain, &program).expect("the fixture");
    let watching = Watching::start(folder.path());
    let at_work = || fs::read_dir(watching.temporary.path()).is_ok_and(|entries| entries.count() > 0);
    let began = Instant::now();
    while !at_work() {
        assert!(began.elapsed() < Duration::from_secs(60), "it makes no temporary folder");
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::write(&program, "").expect("a file");
    let said = watching.until("heat.cu is empty");
    assert!(!said.contains(":)"), "{said}");
    assert_eq!(watching.end(libc::SIGINT), Some(130));
}

#[test]
fn a_report_on_standard_output_cannot_be_watched() {
    assert_cmd::Command::cargo_bin("heat-grader")
        .expect("the binary is built for tests")
        .args(["check", "--watch", "--report", "-", "."])
        .assert()
        .code(2)
        .stdout(predicates::str::starts_with("{"))
        .stderr(predicates::str::contains("let --report name a file"));
}

#[test]
fn a_check_that_is_interrupted_leaves_the_report_of_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, report) = (folder.path().join("heat.cu"), folder.path().join("report.json"));
    fs::write(&program, "").expect("a file");
    let watching = Watching::with(folder.path(), &["--report".as_ref(), report.as_os_str()]);
    watching.until("FAILED at `source`");
    let verdict = || fs::read_to_string(&report).expect("a report").contains("\"verdict\": \"fail\"");
    while !report.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(verdict());
    let plain = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/right/plain/heat.cu");
    fs::copy(plain, &program).expect("the fixture");
    watching.until("----");
    let at_work = || fs::read_dir(watching.temporary.path()).is_ok_and(|entries| entries.count() > 0);
    let began = Instant::now();
    while !at_work() {
        assert!(began.elapsed() < Duration::from_secs(60), "it makes no temporary folder");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(watching.end(libc::SIGTERM), Some(130));
    assert!(verdict(), "the report of the last check that was done");
}
