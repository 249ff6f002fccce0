//! A Gradescope autograder to upload: `heat-grader gradescope init`.
//!
//! Gradescope unpacks a zip into `/autograder/source`, runs its `setup.sh` once and `run_autograder` for each submission.
//! Ours builds this grader from source there, because a binary of this machine may not run on that one; the sources are
//! those that this binary was built from, which it carries, so that nothing is asked of the folder it is started in and
//! the autograder is the version that was tried.

use std::fs;
use std::io::{self, Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use zip::write::{SimpleFileOptions, ZipWriter};

/// The sources, by path from the root of the repository (see grader/build.rs).
const SOURCES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));
/// What Gradescope runs; at the root of the zip.
pub const SCRIPTS: [(&str, &str); 2] =
    [("setup.sh", include_str!("autograder/setup.sh")), ("run_autograder", include_str!("autograder/run_autograder"))];
/// What to do with it all.
pub const READ_ME: (&str, &str) = ("README.md", include_str!("autograder/README.md"));
/// The folder of the sources in the zip.
pub const FOLDER: &str = "heat-grader";
const ZIP: &str = "autograder.zip";

/// One file of the autograder.
struct Packed {
    path: PathBuf,
    bytes: &'static [u8],
    /// Permission bits.
    mode: u32,
}

/// Why there is nothing to upload: a folder that holds something already is never written to.
#[derive(Debug, thiserror::Error)]
#[error("{} {reason}; name a new or empty folder", folder.display())]
pub struct Occupied {
    folder: PathBuf,
    reason: &'static str,
}

/// Writes the autograder into `folder`, which must be new or empty: its files, and the zip of them. The zip's path.
///
/// It is put together beside the folder and moved there as a whole.
pub fn init(folder: &Path) -> Result<PathBuf> {
    vacant(folder)?;
    let absolute = std::path::absolute(folder)?;
    let parent = absolute.parent().context("a folder needs a place to lie in")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    let made = tempfile::Builder::new().prefix(".heat-grader-").tempdir_in(parent)?;
    let files = files();
    for file in &files {
        write(&made.path().join(&file.path), file.bytes, file.mode)?;
    }
    write(&made.path().join(ZIP), &zipped(&files)?, 0o644)?;
    fs::set_permissions(made.path(), fs::Permissions::from_mode(0o755))?;
    // Replaces an empty folder and nothing else: what came to lie in it meanwhile makes this fail.
    fs::rename(made.path(), &absolute).with_context(|| folder.display().to_string())?;
    Ok(folder.join(ZIP))
}

fn vacant(folder: &Path) -> Result<(), Occupied> {
    let occupied = |reason| Err(Occupied { folder: folder.to_owned(), reason });
    match fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => occupied("is not empty"),
        Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(folder).is_err() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => occupied("cannot be looked into"),
        Err(_) => occupied("is no folder"),
    }
}

fn files() -> Vec<Packed> {
    let file =
        |(path, text): (&'static str, &'static str), mode| Packed { path: path.into(), bytes: text.as_bytes(), mode };
    let scripts = SCRIPTS.map(|script| file(script, 0o755));
    let source =
        |(path, bytes): &(&str, &'static [u8])| Packed { path: Path::new(FOLDER).join(path), bytes, mode: 0o644 };
    scripts.into_iter().chain([file(READ_ME, 0o644)]).chain(SOURCES.iter().map(source)).collect()
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let put = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, bytes)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
    };
    put().with_context(|| path.display().to_string())
}

/// Always the same bytes for the same files.
fn zipped(files: &[Packed]) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        let options = SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated)
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(file.mode);
        zip.start_file(file.path.to_string_lossy(), options)?;
        zip.write_all(file.bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_are_what_a_build_needs_and_no_tests() {
        let has = |path: &str| SOURCES.iter().any(|(source, _)| *source == path);
        let needed = ["Cargo.toml", "Cargo.lock", "grader/build.rs", "grader/main.rs", "grader/autograder/setup.sh"];
        for path in needed.into_iter().chain(["reference/heat.cu", "fixtures/right/plain/heat.cu"]) {
            assert!(has(path), "{path}");
        }
        let stray = |path: &str| path.starts_with("grader/tests/") || path.split('/').any(|part| part.starts_with('.'));
        assert!(!SOURCES.iter().any(|(path, _)| stray(path)));
        let lib = SOURCES.iter().find(|(path, _)| *path == "grader/lib.rs").map(|(_, bytes)| *bytes);
        assert_eq!(lib, Some(include_bytes!("lib.rs").as_slice()));
    }

    #[test]
    fn the_same_files_make_the_same_zip() {
        assert_eq!(zipped(&files()).unwrap(), zipped(&files()).unwrap());
    }

    #[test]
    fn a_folder_that_holds_something_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("mine");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("notes"), "mine").unwrap();
        let said = init(&folder).unwrap_err();
        assert!(said.is::<Occupied>() && said.to_string().contains("is not empty"), "{said}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert!(init(&folder.join("notes")).unwrap_err().to_string().contains("is no folder"));
        std::os::unix::fs::symlink("nowhere", place.path().join("link")).unwrap();
        assert!(init(&place.path().join("link")).is_err(), "a dangling link is not followed");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2, "nothing half made is left");
    }
}
