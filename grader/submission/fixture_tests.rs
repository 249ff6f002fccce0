//! The bundled fixtures: the kernel and launch source that each verdict.json names are the ones found.

use std::path::Path;

use super::remarks::{self, HostFault};
use super::{LaunchSource, find_kernel, find_launch, parse, read};

#[derive(serde::Deserialize)]
struct Expected {
    kernel: Option<String>,
    launch_source: Option<LaunchSource>,
    failing_check: Option<String>,
    #[serde(default)]
    remarks: Vec<String>,
}

/// What main() is told, by the codes of a report.
fn code(fault: HostFault) -> &'static str {
    match fault {
        HostFault::OneBufferUnfilled => "one-buffer-unfilled",
        HostFault::UnstableR => "unstable-r",
        HostFault::CopyEveryStep => "copy-every-step",
        HostFault::LaunchNotSet | HostFault::WordsNotSet => "settings-left-over",
        HostFault::LaunchUnlike(_) => "launch-unlike",
    }
}

/// What was found, where it is not what is expected.
fn differs(folder: &Path, expected: &Expected) -> Option<String> {
    let failing = expected.failing_check.as_deref().unwrap_or_default();
    let submission = match read(folder) {
        Ok(submission) => submission,
        Err(error) => return (failing != "source").then(|| error.to_string()),
    };
    let program = parse(&submission);
    let kernel = match find_kernel(&program) {
        Ok(kernel) if failing == "kernel" => return Some(format!("found {}", kernel.call)),
        Ok(kernel) => kernel,
        Err(fault) => {
            return (failing != "kernel" && failing != "compile")
                .then(|| format!("{fault}\n{}", fault.details().join("\n")));
        }
    };
    let last = kernel.name.rsplit("::").next();
    if expected.kernel.is_some() && expected.kernel.as_deref() != last {
        return Some(format!("found {}", kernel.call));
    }
    let launch = find_launch(&program, &kernel);
    let remarks = remarks::all(&program, &kernel, launch.as_ref().ok(), 2048);
    let remarks: Vec<&str> = remarks.into_iter().map(|remark| code(remark.fault)).collect();
    if remarks != expected.remarks {
        return Some(format!("remarks {remarks:?}"));
    }
    match launch {
        // A launch that no device can make is found here and refused by the engine.
        Ok(launch) if failing == "launch" && expected.launch_source.is_none() => {
            Some(format!("found {:?} {:?}", launch.source, launch.geometry(2048)))
        }
        Ok(launch) => {
            let wrong = expected.launch_source.is_some_and(|source| source != launch.source);
            let geometry = launch.geometry(2048);
            (wrong || geometry.is_err()).then(|| format!("{:?} {geometry:?}", launch.source))
        }
        Err(fault) => (failing != "launch").then(|| format!("{fault}\n{}", fault.details().join("\n"))),
    }
}

#[test]
fn every_fixture_has_the_kernel_launch_and_remarks_that_it_says() {
    // Where the fixtures are being written in another checkout, its root may be named.
    let root = std::env::var("HEAT_GRADER_ROOT").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let mut wrong = Vec::new();
    for half in ["fixtures/right", "fixtures/wrong"] {
        let folders = std::fs::read_dir(Path::new(&root).join(half)).into_iter().flatten().flatten();
        for folder in folders.map(|entry| entry.path()) {
            let verdict = std::fs::read_to_string(folder.join("verdict.json"));
            let Some(expected) = verdict.ok().and_then(|text| serde_json::from_str::<Expected>(&text).ok()) else {
                continue;
            };
            wrong.extend(differs(&folder, &expected).map(|found| format!("{}: {found}", folder.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_kernel_that_does_not_fit_is_shown_and_not_a_shipped_one() {
    let shipped = "__global__ void copyGrid(const float* in, float* out, int n) {}\n";
    let line = |text: &str| {
        let fault = find_kernel(&parse(&super::Submission::from_text("test", text))).expect_err("no kernel");
        fault.line()
    };
    assert_eq!(line(&format!("{shipped}__global__ void two(float* in, float* out, int n, float r) {{}}")), Some(2));
    let two = |name: &str| format!("__global__ void {name}(const float* in, float* out, int n, float r) {{}}\n");
    assert_eq!(line(&format!("{shipped}{}{}", two("one"), two("other"))), None, "each is listed with its line");
}
