//! How a worker walls itself in, step by step: nothing of the learner's runs before the last one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::landlock::{self, Paths};
use super::{folder_of, seccomp, system_folders};
use std::os::fd::AsFd;

/// CPU time of a worker, seconds: the grader watches every launch, so this is for a worker that it lost sight of.
const MOST_CPU: u64 = 6 * 3600;
/// Writable memory: the arena of the grids (2 GiB, of which little is touched), shadow memory, the stacks of a block of 1024
/// threads on each core (272 MiB).
const DATA: u64 = 3 << 30;
const DATA_A_CORE: u64 = 512 << 20;
/// Cores that engine cpu uses at most.
const MOST_LANES: u64 = 16;
const MOST_FILES: u64 = 64;

/// Libraries that objects need. They are loaded first, so that the object's folder is all that is opened afterwards.
const LIBRARIES: [&str; 3] = ["libstdc++.so.6", "libm.so.6", "libgcc_s.so.1"];

/// What a worker is told on its command line, so that it puts up the walls that its grader was asked for.
pub fn arguments() -> &'static [&'static str] {
    if super::wanted() { &[] } else { &["--no-sandbox"] }
}

/// Before an object is loaded, and before this process has a second thread: files, most system calls, limits.
pub fn before_loading(object: &Path) -> Result<()> {
    for library in LIBRARIES {
        // SAFETY: these are the system's own libraries; without one, the loader says what is missing.
        if let Ok(library) = unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL) } {
            std::mem::forget(library);
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    // More arenas than that, and malloc reads the number of cores from a file.
    // SAFETY: changes a setting of malloc's.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, cores.min(32) as i32) };
    // What rustix reads from a file before its first look at a clock, it reads now.
    let _ = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    limit(Resource::Core, 0)?;
    limit(Resource::Cpu, MOST_CPU)?;
    limit(Resource::Data, DATA + DATA_A_CORE * cores.min(MOST_LANES))?;
    limit(Resource::Nofile, MOST_FILES)?;
    // A limit of 0 sends a signal for what is written to a file; what goes through pipes is not meant.
    limit(Resource::Fsize, 0)?;
    if !super::wanted() {
        return Ok(());
    }
    let paths = Paths { read: [system_folders(), vec![folder_of(object)]].concat(), ..Paths::default() };
    restrict_files(&paths)?;
    filter(&seccomp::before_loading()?, false)
}

/// Before any of the learner's code runs, on all threads: the rest.
pub fn before_running() -> Result<()> {
    if super::wanted() { filter(&seccomp::before_running()?, true) } else { Ok(()) }
}

/// Before the driver is started. It reads much about the machine, so this wall keeps away what is the users'.
pub fn before_driver() -> Result<()> {
    limit(Resource::Core, 0)?;
    if !super::wanted() {
        return Ok(());
    }
    let devices = std::fs::read_dir("/dev").into_iter().flatten().flatten().map(|entry| entry.path());
    let nvidia = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"nvidia"));
    // The driver names its threads, which is a write below /proc/self.
    let own = ["/proc/self", "/dev/shm", "/dev/zero", "/dev/dxg"].map(PathBuf::from);
    let read = ["/proc", "/sys", "/etc", "/run", "/var/run", "/dev", "/opt", "/usr"].map(PathBuf::from);
    let libraries = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let libraries = std::env::split_paths(&libraries).filter(|folder| folder.is_absolute()).collect();
    let paths = Paths {
        read: [read.into(), system_folders(), libraries].concat(),
        devices: devices.filter(nvidia).chain(own).collect(),
        ..Paths::default()
    };
    restrict_files(&paths)?;
    filter(&seccomp::driver()?, false)
}

fn restrict_files(paths: &Paths) -> Result<()> {
    match landlock::ruleset(paths)? {
        Some(ruleset) => landlock::restrict_self(ruleset.as_fd()).context("cannot restrict the worker's files"),
        None => Ok(()),
    }
}

fn filter(programs: &[seccompiler::BpfProgram], all_threads: bool) -> Result<()> {
    if !super::offer().seccomp {
        return Ok(());
    }
    for program in programs {
        let applied =
            if all_threads { seccomp::apply_filter_all_threads(program) } else { seccomp::apply_filter(program) };
        applied.context("cannot filter the worker's system calls")?;
    }
    Ok(())
}

fn limit(resource: Resource, most: u64) -> Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let most = Some(hard.map_or(most, |hard| hard.min(most)));
    setrlimit(resource, Rlimit { current: most, maximum: most }).context("cannot limit the worker")
}
