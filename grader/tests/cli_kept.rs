//! What the grader remembers from one run to the next: it is asked for by the same question alone, and says so.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use heat_grader::compile::toolkit::find_toolkit;
use tempfile::TempDir;

/// A submission, and a cache folder of its own.
struct Desk {
    folder: TempDir,
    toolkit: PathBuf,
}

impl Desk {
    /// `None` on a machine without nvcc, where nothing is ever kept.
    fn new() -> Option<Self> {
        let toolkit = find_toolkit(true).found()?.root;
        let folder = tempfile::tempdir().expect("a folder");
        let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/wrong/shared_one_past/heat.cu");
        fs::create_dir(folder.path().join("me")).expect("a folder");
        fs::copy(fixture, folder.path().join("me/heat.cu")).expect("heat.cu");
        Some(Self { folder, toolkit })
    }

    /// Exit code, standard output and standard error of a check.
    fn check(&self, options: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_heat-grader"))
            .args(["check", "me", "--offline", "--engine", "cpu"])
            .args(options)
            .current_dir(self.folder.path())
            .env("CUDA_HOME", &self.toolkit)
            .env("HEAT_GRADER_CACHE", self.folder.path().join("cache"))
            .env("NO_COLOR", "1")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .output()
            .expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn kept(&self, room: &str) -> usize {
        fs::read_dir(self.folder.path().join("cache").join(room)).map_or(0, Iterator::count)
    }
}

const NOTICE: &str = "this very file was checked";

#[test]
fn a_check_of_what_has_not_changed_repeats_the_result_and_says_so() {
    let Some(desk) = Desk::new() else { return };
    let off = [("HEAT_GRADER_NO_CACHE", "1")];
    let (code, without, _) = desk.check(&["--seed", "1"], &off);
    assert_eq!((code, desk.kept("reports"), desk.kept("builds")), (Some(1), 0, 0), "{without}");
    let (code, first, _) = desk.check(&[], &[]);
    assert!(code == Some(1) && !first.contains(NOTICE), "{first}");
    // The reference, nvcc's result and two objects of g++'s.
    assert_eq!((desk.kept("reports"), desk.kept("builds")), (1, 4));
    let (code, second, _) = desk.check(&[], &[]);
    let (notice, rest) = second.split_once("\n\n").expect("a notice and a report");
    assert!(code == Some(1) && notice.starts_with(NOTICE), "{second}");
    // With its seed, which another check would have drawn anew.
    assert_eq!(rest, first);
    let (_, fresh, _) = desk.check(&["--fresh"], &[]);
    assert!(!fresh.contains(NOTICE) && fresh.lines().next() != first.lines().next(), "{fresh}");
    let (_, told, _) = desk.check(&["--report", "r.json"], &[]);
    assert!(!told.contains(NOTICE), "a report is of this very run: {told}");
    let (_, off, _) = desk.check(&[], &off);
    assert!(!off.contains(NOTICE), "{off}");
    assert_eq!((desk.kept("reports"), desk.kept("builds")), (1, 4), "the last one took the first one's place");
    fs::write(desk.folder.path().join("me/answer.md"), "rows:\nship: never\n").expect("answer.md");
    let (_, answered, _) = desk.check(&[], &[]);
    assert!(!answered.contains(NOTICE), "{answered}");
    assert_eq!((desk.kept("reports"), desk.kept("builds")), (2, 4), "only the answer is new");
}
