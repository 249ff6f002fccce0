//! `gradescope init`, and its scripts in Gradescope's folder layout under a scratch root.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use predicates::prelude::*;
use tempfile::TempDir;

use super::{heat_grader, json};

/// Path, bytes and permission bits of every entry.
fn unzipped(zip: &Path) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut archive = zip::ZipArchive::new(fs::File::open(zip).unwrap()).unwrap();
    let mut entries = BTreeMap::new();
    for at in 0..archive.len() {
        let mut entry = archive.by_index(at).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        entries.insert(entry.name().unwrap().to_string(), (bytes, entry.unix_mode().unwrap() & 0o777));
    }
    entries
}

/// What Gradescope has made when its image is built, up to `setup.sh`: `source` from the zip, `run_autograder` copied.
fn root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let made = root.path().join("made");
    let init = heat_grader().args(["gradescope", "init"]).arg(&made).assert().code(0);
    let said = String::from_utf8(init.get_output().stdout.clone()).unwrap();
    assert!(said.contains("autograder.zip is ready to upload"), "{said}");
    assert!(said.contains("*Autograder Points* to what a pass earns, 100\n"), "{said}");
    for entry in fs::read_dir(&made).unwrap() {
        let entry = entry.unwrap();
        let name = entry.path().display().to_string() + if entry.path().is_dir() { "/" } else { "" };
        assert!(said.contains(&name), "{name} is not in {said}");
    }
    for (name, (bytes, mode)) in unzipped(&made.join("autograder.zip")) {
        put(&root.path().join("source").join(name), &bytes, mode);
    }
    fs::copy(root.path().join("source/run_autograder"), root.path().join("run_autograder")).unwrap();
    for folder in ["submission", "results", "bin"] {
        fs::create_dir(root.path().join(folder)).unwrap();
    }
    root
}

fn put(path: &Path, bytes: impl AsRef<[u8]>, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn run(root: &TempDir, script: &str, steps: &[&str]) -> Output {
    let mut command = Command::new(root.path().join(script));
    let path = format!("{}:{}", root.path().join("stubs").display(), std::env::var("PATH").unwrap());
    command.args(steps).env("AUTOGRADER_ROOT", root.path()).env("PATH", path).output().unwrap()
}

fn grader_in_place(root: &TempDir) {
    let binary = heat_grader().get_program().to_owned();
    std::os::unix::fs::symlink(binary, root.path().join("bin/heat-grader")).unwrap();
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_zip_holds_the_scripts_at_its_root_and_the_sources_and_nothing_that_the_folder_has_not() {
    let place = tempfile::tempdir().unwrap();
    let made = place.path().join("new/autograder");
    heat_grader().args(["gradescope", "init"]).arg(&made).assert().code(0);
    let entries = unzipped(&made.join("autograder.zip"));
    for script in ["setup.sh", "run_autograder"] {
        let (bytes, mode) = &entries[script];
        assert!(bytes.starts_with(b"#!/usr/bin/env bash\n") && *mode == 0o755, "{script}");
    }
    let (read_me, _) = &entries["README.md"];
    assert!(String::from_utf8_lossy(read_me).contains("*Autograder Points*"), "what to do with it");
    for source in ["Cargo.toml", "Cargo.lock", "grader/build.rs", "grader/main.rs", "fixtures/right/plain/heat.cu"] {
        assert!(entries.contains_key(&format!("heat-grader/{source}")), "{source}");
    }
    for (name, (bytes, mode)) in &entries {
        let file = made.join(name);
        assert_eq!(&fs::read(&file).unwrap(), bytes, "{name}");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, *mode, "{name}");
    }
    heat_grader()
        .args(["gradescope", "init"])
        .arg(&made)
        .assert()
        .code(2)
        .stderr(predicate::str::contains("not empty"));
}

#[test]
fn a_submission_that_fails_has_results_and_the_script_succeeds() {
    let root = root();
    grader_in_place(&root);
    put(&root.path().join("results/results.json"), "stale", 0o644);
    let output = run(&root, "run_autograder", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let results = json(&fs::read(root.path().join("results/results.json")).unwrap());
    assert_eq!(results["score"], 0.0);
    assert_eq!(results["tests"][0]["status"], "failed");
    assert!(results["output"].as_str().unwrap().contains("no heat.cu"), "{results}");
}

#[test]
fn without_a_verdict_there_are_no_results_and_the_script_says_why() {
    let root = root();
    grader_in_place(&root);
    put(&root.path().join("results/results.json"), "{\"score\": 100}", 0o644);
    fs::remove_dir(root.path().join("submission")).unwrap();
    let output = run(&root, "run_autograder", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!root.path().join("results/results.json").exists());
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("submission does not exist") && error.contains("is not graded"), "{error}");
    // Nor where the image was never set up.
    fs::remove_file(root.path().join("bin/heat-grader")).unwrap();
    let output = run(&root, "run_autograder", &[]);
    assert_eq!(output.status.code(), Some(127));
}

#[test]
fn a_run_needs_no_gpu_and_no_network_and_takes_the_container_for_the_wall() {
    let root = root();
    let arguments = root.path().join("arguments");
    let stub = format!("#!/bin/sh\necho \"$@\" > '{}'\necho \"$HEAT_GRADER_CACHE\" >> '{0}'\n", arguments.display());
    put(&root.path().join("bin/heat-grader"), stub, 0o755);
    assert_eq!(run(&root, "run_autograder", &[]).status.code(), Some(0));
    let typed = fs::read_to_string(arguments).unwrap();
    for option in ["--engine cpu", "--outer-sandbox", "--offline", "--format gradescope"] {
        assert!(typed.contains(option), "{option}: {typed}");
    }
    assert!(typed.contains(&format!("{}/cache", root.path().display())), "{typed}");
}

#[test]
fn set_up_builds_from_the_sources_and_keeps_the_binary_only() {
    let root = root();
    let cargo = "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in\n--manifest-path) test -f \"$2\" || exit 9;;\n\
                 --target-dir) mkdir -p \"$2/release\"; echo '#!/bin/sh' > \"$2/release/heat-grader\";;\nesac; shift; done\n";
    put(&root.path().join("stubs/cargo"), cargo, 0o755);
    put(&root.path().join("stubs/rustc"), "#!/bin/sh\necho 'rustc 1.99.0 (stub)'\n", 0o755);
    let output = run(&root, "source/setup.sh", &["rust", "build", "tidy"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let binary = fs::metadata(root.path().join("bin/heat-grader")).unwrap();
    assert_eq!(binary.permissions().mode() & 0o777, 0o755);
    assert!(!root.path().join("build").exists() && !root.path().join("rust").exists());
}

#[test]
fn set_up_gets_a_newer_rust_where_the_images_is_too_old() {
    let root = root();
    put(&root.path().join("stubs/rustc"), "#!/bin/sh\necho 'rustc 1.75.0 (stub)'\n", 0o755);
    put(&root.path().join("stubs/apt-cache"), "#!/bin/sh\nexit 100\n", 0o755);
    let installer = "#!/bin/sh\necho 'mkdir -p \"$CARGO_HOME/bin\"; echo installed > \"$CARGO_HOME/bin/log\"'\n";
    put(&root.path().join("stubs/curl"), installer, 0o755);
    let output = run(&root, "source/setup.sh", &["rust"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(root.path().join("rust/cargo/bin/log").exists(), "{}", said(&output));
    // A release that packages rustup is asked for that.
    put(&root.path().join("stubs/apt-cache"), "#!/bin/sh\nexit 0\n", 0o755);
    put(&root.path().join("stubs/curl"), "#!/bin/sh\nexit 7\n", 0o755);
    for stub in ["apt-get", "rustup"] {
        put(&root.path().join("stubs").join(stub), format!("#!/bin/sh\necho {stub} \"$@\"\n"), 0o755);
    }
    let output = run(&root, "source/setup.sh", &["rust"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("rustup default stable"), "{}", said(&output));
}

#[test]
fn set_up_fails_where_no_cuda_compiler_could_be_fetched() {
    let root = root();
    let stub = |nvcc: &str| {
        format!(
            "#!/bin/sh\nwhile [ $# -gt 0 ]; do [ $1 = --report ] && echo '\"nvcc\": {nvcc}' > \"$2\"; shift; done\n"
        )
    };
    put(&root.path().join("bin/heat-grader"), stub("null"), 0o755);
    let output = run(&root, "source/setup.sh", &["prove"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no CUDA compiler could be fetched"), "{}", said(&output));
    put(&root.path().join("bin/heat-grader"), stub("\"13.0.88\""), 0o755);
    let output = run(&root, "source/setup.sh", &["prove"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("The container is the sandbox (--outer-sandbox)"));
}
