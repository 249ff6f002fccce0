//! The compilers' work, done once for each content: what was handed to a compiler, its flags and the compiler itself are the
//! key, what it made is kept ([`super::kept`]).
//!
//! Only what was compiled is kept. A rejection may be the machine's doing (a header that is not installed), and costs little.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::diagnostics::Diagnostics;
use super::gpu::{self, GpuBuilds};
use super::kept::{Key, Shelf, Stamp};
use super::nvcc::{Build, Cuda, Outcome};
use super::toolkit::{HostCompiler, Toolkit};

/// A key for what g++ makes.
pub(super) fn key_of_gxx(what: &str, gxx: &HostCompiler) -> Key {
    Key::new(what).with(&gxx.version).with_file(&gxx.gxx)
}

/// A key for what follows from all compilers.
pub fn key_of_tools(key: Key, toolkit: &Toolkit, gxx: &HostCompiler) -> Key {
    let key = key.with(&toolkit.version).with(&gxx.version).with_file(&gxx.gxx);
    let cicc = toolkit.root.join("nvvm/bin/cicc");
    [&toolkit.nvcc, &toolkit.ptxas, &cicc].into_iter().fold(key, |key, tool| key.with_file(tool))
}

fn key_of_cuda(toolkit: &Toolkit, gxx: &HostCompiler, source: &str, kernel: Option<&str>, arch: u32) -> Key {
    let key = key_of_tools(Key::new("cuda"), toolkit, gxx);
    key.with(kernel.unwrap_or_default()).with(arch.to_le_bytes()).with(source)
}

/// The headers that nvcc read for a text, as they were; `None` when it is not on the shelf, or one has changed since.
pub fn headers_of(
    shelf: &Shelf,
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
) -> Option<Vec<Stamp>> {
    let made = shelf.get::<Made>(&key_of_cuda(toolkit, gxx, source, kernel, arch))?;
    made.headers.iter().all(Stamp::holds).then_some(made.headers)
}

/// What nvcc made of a text, and the files that it read for that.
#[derive(Serialize, Deserialize)]
struct Made {
    cuda: Cuda,
    builds: Option<GpuBuilds>,
    warnings: Diagnostics,
    headers: Vec<Stamp>,
}

/// As [`gpu::check_and_build`]; from the shelf where this text was compiled before and no header has changed since. The name of
/// the counter stays what was drawn for this text, which cannot know it.
pub fn check_and_build(
    shelf: &Shelf,
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
) -> Result<Build<(Cuda, Option<GpuBuilds>)>> {
    let started = Instant::now();
    let key = key_of_cuda(toolkit, gxx, source, kernel, arch);
    if let Some(Made { cuda, builds, warnings, headers }) = shelf.get::<Made>(&key)
        && headers.iter().all(Stamp::holds)
    {
        return Ok(Build { outcome: Outcome::Compiled((cuda, builds)), warnings, wall: started.elapsed() });
    }
    let build = gpu::check_and_build(toolkit, gxx, source, kernel, arch)?;
    if let Outcome::Compiled((cuda, builds)) = &build.outcome
        && let Some(preprocessed) = &cuda.preprocessed
        && !depends_on_more(source)
    {
        let headers = preprocessed.included().iter().map(|path| Stamp::of(path)).collect();
        let (cuda, builds, warnings) = (cuda.clone(), builds.clone(), build.warnings.clone());
        shelf.put(&key, &Made { cuda, builds, warnings, headers });
    }
    Ok(build)
}

/// Whether what becomes of a text may depend on the hour, or on files that are not there.
fn depends_on_more(source: &str) -> bool {
    ["__DATE__", "__TIME__", "__TIMESTAMP__", "__has_include"].iter().any(|word| source.contains(word))
}

/// A file that g++ makes at `path`: written there from the shelf, else made by `make` and kept.
pub(super) fn object(
    shelf: &Shelf,
    key: &Key,
    path: PathBuf,
    make: impl FnOnce() -> Result<Build<PathBuf>>,
) -> Result<Build<PathBuf>> {
    let started = Instant::now();
    if let Some((object, warnings)) = shelf.get::<(Vec<u8>, Diagnostics)>(key) {
        fs::write(&path, object).context("cannot write to the temporary folder")?;
        return Ok(Build { outcome: Outcome::Compiled(path), warnings, wall: started.elapsed() });
    }
    let build = make()?;
    if let Outcome::Compiled(object) = &build.outcome
        && let Some(bytes) = read_own(object)
    {
        shelf.put(key, &(bytes, &build.warnings));
    }
    Ok(build)
}

/// The bytes of a file in a compiler's own folder, which is no link to another one.
fn read_own(path: &Path) -> Option<Vec<u8>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let mut bytes = Vec::new();
    let is_file = file.metadata().is_ok_and(|seen| seen.is_file());
    (is_file && (&file).read_to_end(&mut bytes).is_ok()).then_some(bytes)
}

/// The files that line markers (`# 12 "/usr/include/stdio.h" 1`) name by their full paths.
pub(super) fn included(text: &str) -> BTreeSet<PathBuf> {
    let named = |line: &str| {
        let path = line.strip_prefix("# ")?.split('"').nth(1)?;
        path.starts_with('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(named).collect()
}

#[cfg(test)]
#[path = "../tests/compile_once.rs"]
mod tests;
