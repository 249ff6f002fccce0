//! Where results leave the process: terminal, report files, and the sentence of an internal error.

use std::any::Any;
use std::io::{ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, anyhow};

use crate::report::{Report, json};

/// Prints on stdout, colours only where they are wanted. A reader that has gone away is no reason to fail.
pub fn print(text: &str) {
    let mut out = anstream::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// Prints on stderr, likewise.
pub fn warn(text: &str) {
    let mut out = anstream::stderr();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// Where a report goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Stdout,
    File(PathBuf),
}

impl Target {
    /// `-` is standard output.
    pub fn of(typed: PathBuf) -> Self {
        if typed == Path::new("-") { Self::Stdout } else { Self::File(typed) }
    }

    /// Whether a report can be put there, as far as can be told beforehand; else why not.
    pub fn check(&self) -> Result<(), String> {
        let Self::File(file) = self else { return Ok(()) };
        if file.is_dir() {
            return Err(format!("{} is a folder; --report names a file", file.display()));
        }
        let folder = folder_of(file);
        match folder {
            folder if folder.is_dir() => Ok(()),
            folder if folder.exists() => Err(format!("{} is a file, not a folder", folder.display())),
            folder => Err(format!("the folder {} does not exist", folder.display())),
        }
    }

    /// Writes the report as JSON, as [`Target::put`] does.
    pub fn write(&self, report: &Report) -> anyhow::Result<()> {
        self.put(&json::render(report)?)
    }

    /// Writes the text: to a file as a whole, by rename, so that nobody reads half of it.
    pub fn put(&self, text: &str) -> anyhow::Result<()> {
        match self {
            Self::Stdout => match std::io::stdout().lock().write_all(text.as_bytes()) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
                written => written.context("standard output"),
            },
            Self::File(file) => replace(file, text.as_bytes()).with_context(|| file.display().to_string()),
        }
    }

    /// Takes away what an earlier run left in the file; a device or pipe stays.
    pub fn remove(&self) -> anyhow::Result<()> {
        let Self::File(file) = self else { return Ok(()) };
        if !std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file()) {
            return Ok(());
        }
        std::fs::remove_file(file).with_context(|| file.display().to_string())
    }
}

/// The folder that a file lies in.
pub fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// How the names of files begin that are still being written.
pub const TEMPORARY: &str = ".heat-grader-";

/// There is no room for what is to be written: what is there already stays as it is.
#[derive(Debug, thiserror::Error)]
#[error("the disk is full")]
pub struct Full;

/// Writes a file as a whole, by rename, so that nobody reads half of it.
///
/// # Errors
/// [`Full`] where there is no room; others name no temporary file, which nobody has typed.
pub fn replace(file: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    put(file, bytes).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => anyhow!(Full),
        // A kind without words of its own says nothing.
        _ if error.raw_os_error().is_some() => anyhow!(error),
        kind => anyhow!(std::io::Error::from(kind)),
    })
}

fn put(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    // A device or pipe (/dev/stdout, a process substitution) is written to, not replaced.
    if std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(file, bytes);
    }
    let readable = std::fs::Permissions::from_mode(0o644);
    let mut temporary =
        tempfile::Builder::new().prefix(TEMPORARY).permissions(readable).tempfile_in(folder_of(file))?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(file)?;
    Ok(())
}

/// Where and why the first panic of the process happened.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Runs the grader's own code; a panic in it, on whatever thread, becomes an error of one sentence.
pub fn guarded<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    // The hook is the process's own; tests, which share a process, take turns.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| {
        let what = message_of(info.payload());
        let at = info.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
        let mut first = PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert_with(|| format!("internal error{at}: {what}"));
    }));
    let outcome = caught(work);
    std::panic::set_hook(before);
    outcome
}

/// What a panic was given to say.
fn message_of(payload: &dyn Any) -> &str {
    let formatted = payload.downcast_ref::<String>().map(String::as_str);
    formatted.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// As [`guarded`], inside of it: for one piece of work of several, whose panic must not end the others.
pub fn caught<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let mut first = PANIC.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Err(anyhow!(first.take().unwrap_or_else(|| "internal error".to_owned())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_code::ExitCode;

    #[test]
    fn a_report_replaces_its_file_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        std::fs::write(&file, "old").unwrap();
        Target::File(file.clone()).write(&Report::of_error("x", ExitCode::Ungraded)).unwrap();
        assert!(std::fs::read_to_string(&file).unwrap().contains("\"ungraded\""));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn an_earlier_report_is_removed_and_none_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::File(folder.path().join("results.json"));
        target.put("old").unwrap();
        target.remove().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        target.remove().unwrap();
        Target::File("/dev/null".into()).remove().unwrap();
        assert!(Path::new("/dev/null").exists());
    }

    #[test]
    fn a_full_disk_is_told_in_one_way() {
        let full = Target::File("/dev/full".into()).put("a report").unwrap_err();
        assert!(full.is::<Full>());
        assert_eq!(format!("{full:#}"), "/dev/full: the disk is full");
    }

    #[test]
    fn a_temporary_file_is_not_named() {
        let nowhere = Target::File("no-such-folder/r.json".into());
        let error = nowhere.write(&Report::of_error("x", ExitCode::Ungraded)).unwrap_err();
        let said = format!("{error:#}");
        assert!(said.starts_with("no-such-folder/r.json: ") && !said.contains(".heat-grader-"), "{said}");
    }

    #[test]
    fn a_bare_file_name_lies_in_the_current_folder() {
        assert_eq!(folder_of(Path::new("r.json")), Path::new("."));
        assert!(Target::of("nowhere/r.json".into()).check().is_err());
        assert_eq!(Target::of("-".into()), Target::Stdout);
    }

    #[test]
    fn a_panic_becomes_one_sentence() {
        let error = guarded::<()>(|| panic!("the sky fell")).unwrap_err().to_string();
        assert!(error.starts_with("internal error at ") && error.ends_with("the sky fell"), "{error}");
    }
}
