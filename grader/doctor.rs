//! What this machine has, and what the lack of something changes: `heat-grader doctor`.
//!
//! Looks only: nothing is fetched or written but a probe file in the cache folder, and no finding is an error.

mod driver;
mod gpu;

use std::path::Path;

use anstyle::{AnsiColor, Style};

use crate::compile::diagnostics::plain;
use crate::compile::fetch::{Cache, free_bytes};
use crate::compile::kept::{self, BUILDS, REPORTS, Shelf};
use crate::compile::nvcc::{LESSON_ARCH, prove};
use crate::compile::process::{Tool, find_program};
use crate::compile::scratch::scratch;
use crate::compile::toolkit::{Lookup, Origin, Toolkit, find_host_compiler, find_toolkit};
use crate::confine::{self, landlock, seccomp, tree};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Found,
    Missing,
    /// There, but not as it should be.
    Degraded,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Nvcc,
    Pip,
    HostCompiler,
    Gpu,
    Sanitizer,
    Landlock,
    Seccomp,
    ProcessTrees,
    Cache,
    Machine,
}

/// One thing looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub subject: Subject,
    /// `nvcc`, `host compiler`: what a reader calls it.
    pub name: &'static str,
    pub state: State,
    /// What was found, or why nothing was.
    pub detail: String,
    /// What that changes; empty when nothing.
    pub effect: String,
}

impl Finding {
    fn new(subject: Subject, state: State, detail: impl Into<String>, effect: impl Into<String>) -> Self {
        Self { subject, name: subject.name(), state, detail: detail.into(), effect: effect.into() }
    }

    fn found(subject: Subject, detail: impl Into<String>) -> Self {
        Self::new(subject, State::Found, detail, "")
    }
}

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Nvcc => "nvcc",
            Self::Pip => "pip",
            Self::HostCompiler => "host compiler",
            Self::Gpu => "GPU",
            Self::Sanitizer => "sanitizer",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::ProcessTrees => "process trees",
            Self::Cache => "cache folder",
            Self::Machine => "machine",
        }
    }
}

/// Looks at everything. Never fetches: it says whether a grade would.
pub fn examine(offline: bool) -> Vec<Finding> {
    let pip = pip();
    let mut findings = vec![nvcc(offline, pip.state), pip, host_compiler(), gpu::gpu(), gpu::sanitizer()];
    findings.extend([landlock_offer(), seccomp_offer(), process_trees(), cache(), machine()]);
    findings
}

/// Whether `check` can give a verdict here: it needs g++, and does without nvcc.
pub fn can_check(findings: &[Finding]) -> bool {
    usable(findings, Subject::HostCompiler)
}

/// Whether `grade` and `batch` can: they need nvcc (or a way to fetch it) as well.
pub fn can_grade(findings: &[Finding]) -> bool {
    can_check(findings) && usable(findings, Subject::Nvcc)
}

fn usable(findings: &[Finding], subject: Subject) -> bool {
    findings.iter().any(|finding| finding.subject == subject && finding.state != State::Missing)
}

/// One line a finding, then what can be done here.
pub fn render(findings: &[Finding], colour: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        let (mark, hue) = match finding.state {
            State::Found => ("[ok]  ", AnsiColor::Green),
            State::Degraded => ("[warn]", AnsiColor::Yellow),
            State::Missing => ("[none]", AnsiColor::Red),
        };
        let style = if colour { Style::new().fg_color(Some(hue.into())) } else { Style::new() };
        text.push_str(&format!("{style}{mark}{style:#} {:<16} {}\n", finding.name, finding.detail));
        if !finding.effect.is_empty() {
            text.push_str(&format!("{:24}{}\n", "", finding.effect));
        }
    }
    text.push_str(conclusion(findings));
    text
}

fn conclusion(findings: &[Finding]) -> &'static str {
    match (can_check(findings), can_grade(findings)) {
        (_, true) if confine::refusal().is_some() => {
            "This machine can check; it can grade only with --outer-sandbox (in a container) or --no-sandbox.\n"
        }
        (_, true) => "This machine can check and grade.\n",
        (true, false) => "This machine can check, but not grade: without nvcc a grade is ungraded.\n",
        (false, false) => "This machine can neither check nor grade.\n",
    }
}

fn nvcc(offline: bool, pip: State) -> Finding {
    match find_toolkit(true) {
        Lookup::Found(toolkit) => compiling(&toolkit),
        Lookup::Missing { reason, .. } if !offline && pip == State::Found => {
            let effect = "the first check or grade fetches one with pip (104.5 MB, once)";
            Finding::new(Subject::Nvcc, State::Degraded, reason, effect)
        }
        Lookup::Missing { reason, remedy } => {
            let effect = format!("check cannot say whether a file is CUDA, and grade gives ungraded; {remedy}");
            Finding::new(Subject::Nvcc, State::Missing, reason, effect)
        }
    }
}

/// An nvcc that answers may still refuse the g++ beside it, so it is asked to compile a kernel.
fn compiling(toolkit: &Toolkit) -> Finding {
    let origin = match toolkit.origin {
        Origin::CudaHome => "from CUDA_HOME",
        Origin::Path => "on PATH",
        Origin::UsrLocal => "in /usr/local/cuda",
        Origin::Cache => "fetched earlier",
    };
    let detail = format!("{} {origin}: {}", toolkit.version, toolkit.nvcc.display());
    let Some(gxx) = find_host_compiler().found() else { return Finding::found(Subject::Nvcc, detail) };
    match prove(toolkit, &gxx, LESSON_ARCH) {
        Ok(()) => Finding::found(Subject::Nvcc, detail),
        Err(error) => {
            let effect = format!("grade gives ungraded: {}", plain(&format!("{error:#}"), 300));
            Finding::new(Subject::Nvcc, State::Missing, format!("{detail}, which does not work"), effect)
        }
    }
}

fn pip() -> Finding {
    let effect = "without it nvcc cannot be fetched where there is none";
    let Some(python) = find_program("python3") else {
        return Finding::new(Subject::Pip, State::Missing, "no python3 was found on PATH", effect);
    };
    let answer = scratch().and_then(|folder| Tool::new(&python, folder.path()).args(["-m", "pip", "--version"]).run());
    match answer {
        Ok(finished) if finished.success() => {
            let version = finished.stdout.split_whitespace().nth(1).unwrap_or("of unknown version").to_owned();
            Finding::found(Subject::Pip, format!("{version} of {}", python.display()))
        }
        _ => {
            let detail = format!("{} has no pip", python.display());
            Finding::new(
                Subject::Pip,
                State::Missing,
                detail,
                format!("{effect} (Debian, Ubuntu: apt install python3-pip)"),
            )
        }
    }
}

fn host_compiler() -> Finding {
    match find_host_compiler() {
        Lookup::Found(compiler) => {
            Finding::found(Subject::HostCompiler, format!("g++ {}: {}", compiler.version, compiler.gxx.display()))
        }
        Lookup::Missing { reason, remedy } => {
            Finding::new(Subject::HostCompiler, State::Missing, reason, format!("nothing can be compiled; {remedy}"))
        }
    }
}

fn landlock_offer() -> Finding {
    match landlock::abi() {
        0 => Finding::new(
            Subject::Landlock,
            State::Missing,
            "not offered by this kernel",
            "grade refuses without it: work in a container and say --outer-sandbox; check goes on with what there is",
        ),
        abi => Finding::found(Subject::Landlock, format!("ABI {abi}: {}", landlock::covers(abi))),
    }
}

fn seccomp_offer() -> Finding {
    if seccomp::offered() {
        Finding::found(Subject::Seccomp, "filters are offered")
    } else {
        Finding::new(
            Subject::Seccomp,
            State::Missing,
            "filters are not offered by this kernel",
            "learners' code can make any system call, so grade refuses as without landlock",
        )
    }
}

fn process_trees() -> Finding {
    if tree::lists_children() {
        Finding::found(
            Subject::ProcessTrees,
            "end with the grader, whatever they fork (child subreaper; no namespaces needed)",
        )
    } else {
        let effect = "what a compiler starts in a session of its own outlives it, up to its limit of CPU time";
        Finding::new(Subject::ProcessTrees, State::Degraded, "this kernel does not list children", effect)
    }
}

fn cache() -> Finding {
    let Some(Cache { folder }) = Cache::usual() else {
        let effect = "nothing can be kept between grades; set HEAT_GRADER_CACHE";
        return Finding::new(Subject::Cache, State::Degraded, "there is no home folder", effect);
    };
    let shown = folder.display();
    let existing = folder.ancestors().find(|part| part.exists()).unwrap_or(Path::new("/"));
    let free = free_bytes(existing).map_or("unknown".into(), |bytes| format!("{} MB", bytes / 1_000_000));
    if rustix::fs::access(existing, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok() {
        Finding::found(Subject::Cache, format!("{shown} ({free} free; {})", kept()))
    } else {
        Finding::new(
            Subject::Cache,
            State::Degraded,
            format!("{shown} cannot be written"),
            "nothing can be fetched; set HEAT_GRADER_CACHE",
        )
    }
}

/// How much earlier runs left there.
fn kept() -> String {
    if kept::is_off() {
        return format!("{} is set: nothing is kept", kept::OFF);
    }
    let megabytes = |room| Shelf::usual(room).bytes() as f64 / 1e6;
    let most = (BUILDS.most + REPORTS.most) / 1_000_000;
    format!("{:.1} MB of builds and {:.1} MB of reports kept, at most {most}", megabytes(BUILDS), megabytes(REPORTS))
}

fn machine() -> Finding {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        memory.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse::<u64>().ok())
    };
    let total = kib("MemTotal:").unwrap_or(0) >> 20;
    let free = kib("MemAvailable:").unwrap_or(0) >> 10;
    let detail = format!("{cores} cores, {total} GiB of memory ({free} MiB available)");
    if free < 1024 {
        return Finding::new(
            Subject::Machine,
            State::Degraded,
            detail,
            "a compiler may run out of memory, which gives ungraded",
        );
    }
    Finding::found(Subject::Machine, detail)
}

#[cfg(test)]
#[path = "tests/compile_doctor.rs"]
mod tests;
