//! Has the binary carry its own sources, for `heat-grader gradescope init`: an autograder is built from exactly what this
//! binary was built from, wherever the binary was copied to.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// What a build needs, and one right kernel to prove it with. Tests and benches are never built from it.
const PARTS: [&str; 7] =
    ["Cargo.toml", "Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "grader", "reference", "fixtures/right/plain"];
const LEFT_OUT: [&str; 2] = ["grader/tests", "grader/benches"];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let mut files = Vec::new();
    for part in PARTS {
        list(&root, Path::new(part), &mut files)?;
    }
    files.sort();
    let mut text = String::from("&[\n");
    for file in &files {
        // Not the folders: a change to a test would build the library anew. A new source comes with a change to another.
        println!("cargo:rerun-if-changed={file}");
        let path = root.join(file);
        text.push_str(&format!("    ({:?}, include_bytes!({:?})),\n", file, path.display().to_string()));
    }
    text.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("sources.rs");
    fs::write(out, text)
}

/// Adds every file at or below `part`, relative to `root`; hidden ones are editors' and systems'.
fn list(root: &Path, part: &Path, files: &mut Vec<String>) -> io::Result<()> {
    let hidden = part.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    if hidden || LEFT_OUT.iter().any(|left_out| part == Path::new(left_out)) {
        return Ok(());
    }
    if !root.join(part).is_dir() {
        files.push(part.to_string_lossy().into_owned());
        return Ok(());
    }
    for entry in fs::read_dir(root.join(part))? {
        list(root, &part.join(entry?.file_name()), files)?;
    }
    Ok(())
}
