//! Fetches the CUDA compiler once, for machines that have none: five wheels, pinned by version and hash, by one call
//! of the user's own pip, into the user's cache folder.
//!
//! A download becomes visible by a rename at the very end, under a lock, so that a grader killed half-way leaves
//! nothing usable and two graders fetch once.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use data_encoding::HEXLOWER;
use regex::Regex;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::diagnostics::{pattern, plain};
use super::process::{Finished, Limits, Tool, is_executable};
use super::toolkit::{Origin, Toolkit};
use crate::progress::{Progress, note};

/// The wheels of nvcc 13.0.88 for Linux on x86-64; the hashes are those of the files themselves (sha256).
const REQUIREMENTS: &str = "\
nvidia-cuda-nvcc==13.0.88 --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-nvvm==13.0.88 --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-crt==13.0.88 --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-cuda-runtime==13.0.96 --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cccl==13.0.85 --hash=sha256:e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
";
/// Bytes that pip downloads.
const DOWNLOAD: u64 = 104_500_000;
/// Bytes that must be free: the wheels, and what they unpack to.
const ROOM: u64 = 450 << 20;
/// Where the wheels put the toolkit.
const ROOT: &str = "nvidia/cu13";
/// Name prefix of downloads that are under way.
const PARTIAL: &str = "partial-";

/// The grader's cache folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    pub folder: PathBuf,
}

/// Why nothing was fetched, and what the reader can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub reason: String,
    pub remedy: String,
}

impl Failure {
    fn new(reason: impl Into<String>, remedy: &str) -> Self {
        Self { reason: reason.into(), remedy: format!("{remedy}, or install the CUDA toolkit") }
    }
}

impl Cache {
    /// `$HEAT_GRADER_CACHE`, else `$XDG_CACHE_HOME/heat-grader`, else `~/.cache/heat-grader`; `None` without a home.
    pub fn usual() -> Option<Self> {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = folder("HEAT_GRADER_CACHE")
            .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("heat-grader")))
            .or_else(|| folder("HOME").map(|home| home.join(".cache/heat-grader")))?;
        Some(Self { folder })
    }

    /// The fetched toolkit, if it is there and answers.
    pub fn toolkit(&self) -> Option<Toolkit> {
        let root = self.install().join(ROOT);
        let whole = ["nvvm/bin/cicc", "bin/cudafe++", "bin/ptxas"].iter().all(|part| is_executable(&root.join(part)))
            && ["nvvm/libdevice", "include/cuda_runtime.h"].iter().all(|part| root.join(part).exists());
        whole.then(|| Toolkit::at(&root.join("bin/nvcc"), Origin::Cache).ok()).flatten()
    }

    /// Named after the pins, so that other pins never meet an old download.
    fn install(&self) -> PathBuf {
        let digest = Sha256::digest(REQUIREMENTS.as_bytes());
        self.folder.join(format!("cuda-13.0.88-{}", HEXLOWER.encode(&digest[..4])))
    }
}

/// Fetches the compiler into `cache` with the pip of `python`; a second grader that comes at the same time waits for
/// the first and uses what it fetched.
pub fn fetch(cache: &Cache, python: Option<&Path>) -> Result<Toolkit, Failure> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Failure::new("there is none to fetch for this processor", "grade on Linux, x86-64"));
    }
    let python =
        python.ok_or_else(|| Failure::new("there is no python3 to fetch it with", "install python3 with pip"))?;
    let _lock = lock(&cache.folder).map_err(|error| {
        let reason = format!("the cache folder {} cannot be used: {error:#}", cache.folder.display());
        Failure::new(reason, "set HEAT_GRADER_CACHE to a folder that can be written")
    })?;
    if let Some(toolkit) = cache.toolkit() {
        return Ok(toolkit);
    }
    clean(cache);
    has_room(&cache.folder)?;
    has_pip(python, &cache.folder)?;
    download(cache, python)?;
    cache.toolkit().ok_or_else(|| Failure::new("what pip installed does not run", "see `heat-grader doctor`"))
}

/// Takes the cache's lock, which the kernel gives back when this process ends, however it ends.
fn lock(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder)?;
    let file = File::options().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            note("waiting for another heat-grader that is fetching the CUDA compiler ...");
            file.lock()?;
        }
        Err(fs::TryLockError::Error(error)) => return Err(error.into()),
    }
    Ok(file)
}

/// Removes what a killed grader left, and an install that does not answer. Under the lock nobody else owns either.
fn clean(cache: &Cache) {
    fs::remove_dir_all(cache.install()).ok();
    for entry in fs::read_dir(&cache.folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

fn has_room(folder: &Path) -> Result<(), Failure> {
    match free_bytes(folder) {
        Some(free) if free < ROOM => {
            let reason = format!("{} has {} MB free, and {} MB are needed", folder.display(), free >> 20, ROOM >> 20);
            Err(Failure::new(reason, "free some space or set HEAT_GRADER_CACHE to another folder"))
        }
        _ => Ok(()),
    }
}

/// Bytes that this user may still write under `folder`.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let room = rustix::fs::statvfs(folder).ok()?;
    room.f_bavail.checked_mul(room.f_frsize)
}

fn has_pip(python: &Path, folder: &Path) -> Result<(), Failure> {
    let remedy = "install pip for python3 (Debian, Ubuntu: apt install python3-pip)";
    match pip(python, folder).arg("--version").run() {
        Ok(finished) if finished.success() => Ok(()),
        Ok(_) => Err(Failure::new("python3 has no pip", remedy)),
        Err(error) => Err(Failure::new(format!("python3 does not start: {error:#}"), remedy)),
    }
}

/// pip with the user's proxy and index settings, but none that would install elsewhere.
fn pip(python: &Path, folder: &Path) -> Tool {
    let limits = Limits {
        cpu: Duration::from_secs(600),
        wall: Duration::from_secs(3600),
        address_space: None,
        file_size: None,
        output: 256 << 10,
    };
    let quiet = [
        ("PIP_USER", "0"),
        ("PIP_REQUIRE_VIRTUALENV", "0"),
        ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ("PIP_NO_INPUT", "1"),
    ];
    let tool = Tool::new(python, folder).inherit_environment().limits(limits);
    quiet.into_iter().fold(tool, |tool, (name, value)| tool.env(name, value)).args(["-m", "pip"])
}

fn download(cache: &Cache, python: &Path) -> Result<(), Failure> {
    let unwritable = |error: anyhow::Error| {
        Failure::new(format!("{error:#}"), "set HEAT_GRADER_CACHE to a folder that can be written")
    };
    let partial = prepare(&cache.folder).map_err(unwritable)?;
    note("fetching the CUDA 13.0 compiler (104.5 MB, once) ...");
    let finished = while_watching(partial.path(), || install(python, partial.path())).map_err(unwritable)?;
    if !finished.success() {
        return Err(refusal(&finished));
    }
    publish(partial.path(), &cache.install()).map_err(unwritable)
}

/// A folder for one download: requirements.txt, pip's temporary files, the install.
fn prepare(folder: &Path) -> Result<TempDir> {
    let partial = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(folder).context("cannot make a folder")?;
    fs::create_dir(partial.path().join("tmp"))?;
    fs::write(partial.path().join("requirements.txt"), REQUIREMENTS)?;
    Ok(partial)
}

fn install(python: &Path, partial: &Path) -> Result<Finished> {
    pip(python, partial)
        .env("TMPDIR", partial.join("tmp"))
        .args(["install", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir", "--no-compile"])
        .args(["--progress-bar=off", "-r", "requirements.txt", "--target", "install"])
        .run()
}

/// Finishes the install and makes it visible.
fn publish(partial: &Path, install: &Path) -> Result<()> {
    let fresh = partial.join("install");
    let root = fresh.join(ROOT);
    // Only programs that link nvvm themselves need it (63 MB); cicc has its own.
    fs::remove_file(root.join("lib/libnvvm.so.4")).ok();
    // nvcc's profile looks for libraries in lib64.
    std::os::unix::fs::symlink("lib", root.join("lib64")).ok();
    fs::rename(&fresh, install).with_context(|| format!("cannot move the download to {}", install.display()))
}

/// Runs `work` while a bar follows the growth of `folder`.
fn while_watching<T>(folder: &Path, work: impl FnOnce() -> T) -> T {
    let bar = Progress::bytes(DOWNLOAD, "CUDA 13.0 compiler");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let size = size_of(folder);
                bar.set(size);
                if size > DOWNLOAD {
                    bar.message("unpacking");
                }
                std::thread::park_timeout(Duration::from_millis(200));
            }
        });
        let outcome = work();
        done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        bar.finish();
        outcome
    })
}

/// Bytes of all files under `folder`; what vanishes meanwhile does not count.
fn size_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_of(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

/// Why pip refused, without the names of hosts and accounts that its messages carry.
fn refusal(finished: &Finished) -> Failure {
    let said = &finished.stderr;
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if finished.timed_out.is_some() {
        Failure::new("the download took longer than an hour", "try again")
    } else if has(&["THESE PACKAGES DO NOT MATCH THE HASHES", "HashMismatch"]) {
        Failure::new("the files offered are not the pinned ones (hash mismatch)", "try again on another network")
    } else if has(&["No space left", "Disk quota exceeded"]) {
        Failure::new("the disk is full", "free some space or set HEAT_GRADER_CACHE to another folder")
    } else if has(&[
        "ConnectionError",
        "NewConnectionError",
        "Temporary failure",
        "timed out",
        "ProxyError",
        "Max retries",
        "SSLError",
    ]) {
        Failure::new("the Python package index could not be reached", "connect this machine to the network")
    } else if has(&["No matching distribution", "is not a supported wheel"]) {
        Failure::new("the package index offers none that this python3 takes", "use a newer python3 and pip")
    } else {
        Failure::new(format!("pip said: {}", last_error(said)), "see why pip fails")
    }
}

fn last_error(said: &str) -> String {
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\w+://\S+|host='[^']*'"));
    let line =
        said.lines().rev().find(|line| line.contains("ERROR") || line.contains("Error")).or(said.lines().next_back());
    plain(&ADDRESS.replace_all(line.unwrap_or("nothing"), "(address)"), 200)
}

#[cfg(test)]
#[path = "../tests/compile_fetch.rs"]
mod tests;
