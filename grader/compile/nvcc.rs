//! Is a text CUDA? nvcc turns it into PTX, and ptxas assembles that, because some faults show there only (too much
//! static shared memory, say).
//!
//! The text is copied to a fixed name in a fresh folder (file names reach a shell inside nvcc) and the tools are
//! confined to the toolchain. A fault of the text, and a limit that it hits, is data; a toolchain that cannot compile
//! three lines of ours either is an error.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::conditions::{LeftIn, grown_too_large, has_conditions};
use super::diagnostics::{self, Diagnostic, Diagnostics, SOURCE_NAME, Severity, Speaker, pattern, plain};
use super::kernels::kernel_uses;
pub use super::kernels::{Entry, KernelUse, entries, most_threads, registers, variables_used};
use super::naming::Naming;
use super::preprocessed::Preprocessed;
use super::process::{Finished, Limit, Limits, Tool};
use super::scratch::scratch;
use super::toolkit::{HostCompiler, Toolkit};

/// The lesson's target: the Tesla T4.
pub const LESSON_ARCH: u32 = 75;

/// What a compiler made of a text.
#[derive(Clone, Debug, PartialEq)]
pub struct Build<T> {
    pub outcome: Outcome<T>,
    /// Warnings, whatever the outcome.
    pub warnings: Diagnostics,
    pub wall: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    Compiled(T),
    /// Holds at least one error.
    Rejected(Diagnostics),
    /// The text made the compiler use up a limit. All but [`Limit::Wall`] are the text's doing for certain; a busy
    /// machine can pass the wall limit with an honest text.
    LimitHit {
        limit: Limit,
        sentence: String,
    },
}

impl<T> Outcome<T> {
    /// Goes on with what was compiled; a rejection or a limit stays what it is.
    pub(super) fn and_then<U>(self, next: impl FnOnce(T) -> Result<Outcome<U>>) -> Result<Outcome<U>> {
        match self {
            Self::Compiled(product) => next(product),
            Self::Rejected(said) => Ok(Outcome::Rejected(said)),
            Self::LimitHit { limit, sentence } => Ok(Outcome::LimitHit { limit, sentence }),
        }
    }
}

/// A text that is CUDA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cuda {
    pub ptx: String,
    /// The mangled name of the kernel that was asked for; `None` when there was none, or nvcc named none.
    pub entry: Option<String>,
    /// The architecture compiled for: 75 is sm_75. Not the one asked for where this nvcc does not know that.
    pub arch: u32,
    pub assembled: Assembled,
    /// What its preprocessor left of the text, where it left that.
    pub preprocessed: Option<Preprocessed>,
}

/// PTX assembled by ptxas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Assembled {
    pub cubin: Vec<u8>,
    pub kernels: Vec<KernelUse>,
}

/// Compiles `source` for `arch` (75 is sm_75) and assembles the PTX. `kernel` is the C++ expression that names a kernel
/// at the end of the text (`ns::k<32, 8>`); it is instantiated, and its mangled name found. An error means that the
/// toolchain or the machine is at fault.
pub fn check_as_cuda(
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
) -> Result<Build<Cuda>> {
    let Build { outcome, warnings, wall } = check_with(toolkit, gxx, source, kernel, arch, |_, _| Ok(()))?;
    Ok(Build { outcome: outcome.and_then(|(cuda, ())| Ok(Outcome::Compiled(cuda)))?, warnings, wall })
}

/// The same with what `more` makes of the PTX and the architecture that it is for, beside ptxas.
pub(super) fn check_with<M: Send>(
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
    more: impl FnOnce(&Ptx, u32) -> Result<M> + Send,
) -> Result<Build<(Cuda, M)>> {
    let build = compile_and_assemble(toolkit, gxx, source, kernel, arch, more)?;
    if !matches!(build.outcome, Outcome::Compiled(_)) {
        prove(toolkit, gxx, arch)?;
    }
    Ok(build)
}

/// Compiles a kernel of ours that is right: a rejection counts only where the toolchain takes that. An error says why
/// it does not.
pub fn prove(toolkit: &Toolkit, gxx: &HostCompiler, arch: u32) -> Result<()> {
    const PROBE: &str = "__global__ void probe(const float* in, float* out, int n, float r) { out[n] = r * in[n]; }\n";
    match compile_and_assemble(toolkit, gxx, PROBE, None, arch, |_, _| Ok(()))?.outcome {
        Outcome::Compiled(_) => Ok(()),
        Outcome::Rejected(said) => {
            let first = said.shown.first().map_or("", |diagnostic| &diagnostic.message);
            bail!("nvcc {} with g++ {} compiles nothing on this machine: {first}", toolkit.version, gxx.version)
        }
        Outcome::LimitHit { sentence, .. } => bail!("nvcc compiles nothing on this machine: {sentence}"),
    }
}

fn compile_and_assemble<M: Send>(
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
    more: impl FnOnce(&Ptx, u32) -> Result<M> + Send,
) -> Result<Build<(Cuda, M)>> {
    let started = Instant::now();
    let (compiled, arch) = to_ptx(toolkit, gxx, source, kernel, arch)?;
    let mut warnings = compiled.warnings;
    let outcome = compiled.outcome.and_then(|ptx| {
        let (built, more) = std::thread::scope(|scope| {
            let more = scope.spawn(|| more(&ptx, arch));
            let built = assemble(toolkit, &ptx.text, arch, None);
            (built, more.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let built = built?;
        warnings.append(built.warnings);
        let Ptx { text, entry, preprocessed } = ptx;
        built.outcome.and_then(|assembled| {
            Ok(Outcome::Compiled((Cuda { ptx: text, entry, arch, assembled, preprocessed }, more?)))
        })
    })?;
    Ok(Build { outcome, warnings, wall: started.elapsed() })
}

/// What nvcc makes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx {
    pub text: String,
    /// As in [`Cuda`].
    pub entry: Option<String>,
    /// As in [`Cuda`].
    pub preprocessed: Option<Preprocessed>,
}

/// nvcc alone: the PTX of `source`, and the architecture it is for.
pub fn to_ptx(
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
) -> Result<(Build<Ptx>, u32)> {
    to_ptx_within(&Limits::default(), toolkit, gxx, source, kernel, arch)
}

fn to_ptx_within(
    limits: &Limits,
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
) -> Result<(Build<Ptx>, u32)> {
    let folder = scratch()?;
    let naming = kernel.map(Naming::of).transpose()?;
    let text = naming.as_ref().map_or(source.to_owned(), |naming| naming.appended_to(source));
    write_headers(folder.path()).context("cannot write to the temporary folder")?;
    let mut arch = arch;
    let mut run = |text: &str| {
        fs::write(folder.path().join(SOURCE_NAME), text).context("cannot write to the temporary folder")?;
        let finished = run_nvcc(limits, toolkit, gxx, folder.path(), arch)?;
        if !finished.stderr.contains("Unsupported gpu architecture") {
            return Ok(finished);
        }
        arch = nearest_arch(toolkit, folder.path(), arch)?;
        run_nvcc(limits, toolkit, gxx, folder.path(), arch)
    };
    let mut finished = run(&text)?;
    if naming.as_ref().is_some_and(|naming| naming.is_at_fault(&finished)) {
        finished = run(source)?;
    }
    let mut grown = None;
    let mut build = judge(&finished, source, folder.path(), || {
        let text = fs::read_to_string(folder.path().join("heat.ptx")).context("nvcc left no readable PTX")?;
        let preprocessed = fs::read(folder.path().join(PREPROCESSED)).ok();
        let left_in = has_conditions(source).then(|| left_in(toolkit, gxx, source, arch, Pass::Device)).transpose()?;
        let preprocessed = preprocessed.and_then(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            let own = naming.as_ref().map_or(&*text, |naming| naming.taken_off(&text));
            grown = grown_too_large(own);
            grown.is_none().then(|| Preprocessed::of(own, left_in.flatten()))
        });
        let (text, entry) = naming.as_ref().map_or((text.clone(), None), |naming| naming.taken_from(&text));
        Ok(Ptx { text, entry, preprocessed })
    })?;
    if let Some(sentence) = grown {
        // Unread, it cannot be held against what g++ makes of heat.cu.
        build.outcome = Outcome::LimitHit { limit: Limit::Memory, sentence };
    }
    if let Some(naming) = &naming {
        build.warnings.shown.retain(|said| !said.message.contains(&naming.name));
    }
    Ok((build, arch))
}

/// ptxas alone: assembles PTX for `arch`, with at most so many registers a thread.
pub fn assemble(toolkit: &Toolkit, ptx: &str, arch: u32, registers: Option<u32>) -> Result<Build<Assembled>> {
    let folder = scratch()?;
    fs::write(folder.path().join("heat.ptx"), ptx).context("cannot write to the temporary folder")?;
    let finished = Tool::new(&toolkit.ptxas, folder.path())
        // Lines for compute-sanitizer; they change no instruction.
        .args([
            "-v".to_owned(),
            "-lineinfo".into(),
            format!("-arch=sm_{arch}"),
            "heat.ptx".into(),
            "-o".into(),
            "heat.cubin".into(),
        ])
        .args(registers.map(|most| format!("-maxrregcount={most}")))
        .confined(toolkit.folders())
        .run()?;
    judge(&finished, "", folder.path(), || {
        let cubin = fs::read(folder.path().join("heat.cubin")).context("ptxas left no cubin")?;
        Ok(Assembled { cubin, kernels: kernel_uses(&finished.stderr) })
    })
}

/// The text as nvcc's host compiler preprocessed it for the GPU, which `-keep` leaves.
const PREPROCESSED: &str = "heat.cpp1.ii";

/// Small headers of the toolkit that an nvcc from the package index comes without; the toolkit's own win.
const HEADERS: [(&str, &str); 3] = [
    ("cuda_profiler_api.h", include_str!("toolkit_headers/cuda_profiler_api.h")),
    ("nvToolsExt.h", include_str!("toolkit_headers/nvToolsExt.h")),
    ("nvtx3/nvToolsExt.h", "#include <nvToolsExt.h>\n"),
];

/// Headers of libraries that only a whole toolkit has.
const LIBRARIES: [&str; 12] = [
    "curand", "cublas", "cufft", "cusparse", "cusolver", "cutensor", "cudnn", "nccl", "npp", "nvml", "nvtx3/", "cupti",
];

/// Where the stand-ins lie, beside heat.cu.
const STAND_INS: &str = "stand_ins";

fn write_headers(folder: &Path) -> std::io::Result<()> {
    let folder = folder.join(STAND_INS);
    fs::create_dir_all(folder.join("nvtx3"))?;
    HEADERS.into_iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
}

/// The line of heat.cu and the header of a CUDA library that it includes and this nvcc came without: the machine's
/// fault, not the text's.
pub fn missing_library(said: &Diagnostics) -> Option<(u32, String)> {
    said.shown.iter().find_map(|diagnostic| {
        let (header, _) = diagnostic.message.split_once(": No such file")?;
        let header = header.rsplit(' ').next()?;
        let known = LIBRARIES.iter().any(|library| header.starts_with(library));
        known.then(|| Some((diagnostic.line?, header.to_owned())))?
    })
}

fn run_nvcc(limits: &Limits, toolkit: &Toolkit, gxx: &HostCompiler, folder: &Path, arch: u32) -> Result<Finished> {
    nvcc(limits, toolkit, gxx, folder, arch).args(["-ptx", "-keep", "-lineinfo", SOURCE_NAME, "-o", "heat.ptx"]).run()
}

/// nvcc, with what decides how it reads a text.
fn nvcc(limits: &Limits, toolkit: &Toolkit, gxx: &HostCompiler, folder: &Path, arch: u32) -> Tool {
    Tool::new(&toolkit.nvcc, folder)
        .args(["-std=c++17", "-O3", "-allow-unsupported-compiler"])
        .arg(format!("-arch=sm_{arch}"))
        // g++ takes time quadratic in the number of messages to quote lines, which are not used here.
        .args(["-Xcompiler", "-fno-diagnostics-show-caret"])
        // nvcc's own front end gives up after a hundred errors.
        .args(["-Xcompiler", "-fmax-errors=100"])
        // The libraries that nvcc brings use the whole of NVTX where they find its header.
        .args(["-Xcompiler", &format!("-idirafter,{STAND_INS}"), "-DCCCL_DISABLE_NVTX"])
        .arg("-ccbin")
        .arg(&gxx.gxx)
        .limits(limits.clone())
        .confined([toolkit.folders(), gxx.folders()].concat())
}

/// The two times that nvcc reads a text: for the GPU, where `__CUDA_ARCH__` is defined, and for the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    Device,
    Host,
}

/// The lines of a text that nvcc's conditions leave in; `None` where it does not say.
pub fn left_in(toolkit: &Toolkit, gxx: &HostCompiler, source: &str, arch: u32, pass: Pass) -> Result<Option<LeftIn>> {
    const LEFT_IN: &str = "heat.left";
    let folder = scratch()?;
    write_headers(folder.path()).context("cannot write to the temporary folder")?;
    fs::write(folder.path().join(SOURCE_NAME), source).context("cannot write to the temporary folder")?;
    let finished = nvcc(&Limits::default(), toolkit, gxx, folder.path(), arch)
        .args(["-E", "-Xcompiler", "-fdirectives-only", SOURCE_NAME, "-o", LEFT_IN])
        .args(if pass == Pass::Host { &["-Xcompiler", "-U__CUDA_ARCH__"][..] } else { &[] })
        .run()?;
    let text = fs::read(folder.path().join(LEFT_IN)).ok().filter(|_| finished.success());
    Ok(text.map(|text| LeftIn::of(&String::from_utf8_lossy(&text))))
}

/// The architectures that this nvcc compiles for, rising: 75 is sm_75. `folder` is one to work in.
pub fn known_archs(toolkit: &Toolkit, folder: &Path) -> Result<Vec<u32>> {
    let listed = Tool::new(&toolkit.nvcc, folder).arg("--list-gpu-arch").run()?;
    let known = listed.stdout.lines().filter_map(|line| line.trim().strip_prefix("compute_")?.parse().ok());
    let mut known: Vec<u32> = known.collect();
    known.sort_unstable();
    Ok(known)
}

/// The architecture that this nvcc knows next to `arch`: the lowest above it, else the highest.
fn nearest_arch(toolkit: &Toolkit, folder: &Path, arch: u32) -> Result<u32> {
    let known = known_archs(toolkit, folder)?;
    let nearest = known.iter().find(|known| **known >= arch).or(known.last());
    nearest.copied().with_context(|| format!("nvcc {} knows no GPU architecture near sm_{arch}", toolkit.version))
}

/// Tells the text's faults from the machine's.
pub(super) fn judge<T>(
    finished: &Finished,
    source: &str,
    folder: &Path,
    product: impl FnOnce() -> Result<T>,
) -> Result<Build<T>> {
    let output = format!("{}\n{}", finished.stdout, finished.stderr);
    let (mut errors, warnings) = diagnostics::parse(&output, source, folder);
    let outcome = if finished.success() {
        Outcome::Compiled(product()?)
    } else if let Some(limit) = finished.timed_out.or_else(|| limit_in_words(&output)) {
        Outcome::LimitHit { limit, sentence: sentence(limit).into() }
    } else if let Some(fault) = machine_fault(finished, &output) {
        bail!("{fault}")
    } else {
        if !errors.has_error() {
            errors.push(without_place(&output));
        }
        Outcome::Rejected(errors)
    };
    Ok(Build { outcome, warnings, wall: finished.wall })
}

/// Lines in which the tools speak for themselves, not about heat.cu, whose text a learner can choose.
fn own_words(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter(|line| !line.starts_with(SOURCE_NAME) && !line.starts_with(' '))
}

/// A compiler driver tells in words what ended its children.
fn limit_in_words(output: &str) -> Option<Limit> {
    static MEMORY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            "catastrophic error: out of memory|out of memory allocating|virtual memory exhausted|std::bad_alloc|Memory allocation failure",
        )
    });
    static CPU: LazyLock<Regex> = LazyLock::new(|| pattern("(?i)CPU time limit exceeded"));
    static FILE: LazyLock<Regex> = LazyLock::new(|| pattern("(?i)file size limit exceeded|File too large"));
    static STACK: LazyLock<Regex> =
        LazyLock::new(|| pattern("died due to signal 11|internal compiler error: Segmentation fault"));
    let limits = [(&*STACK, Limit::Stack), (&*CPU, Limit::Cpu), (&*MEMORY, Limit::Memory), (&*FILE, Limit::FileSize)];
    limits.into_iter().find(|(words, _)| words.is_match(output)).map(|(_, limit)| limit)
}

fn sentence(limit: Limit) -> &'static str {
    match limit {
        Limit::Cpu => {
            "compiling this file takes more than 20 seconds of CPU time: look for templates or constants that multiply, and for code nested thousands deep"
        }
        Limit::Memory => "compiling this file takes more than 4 GiB of memory: look for templates that multiply",
        Limit::Stack => {
            "the compiler crashes on this file, most likely because its stack overflows: look for code nested thousands deep"
        }
        Limit::FileSize => "compiling this file makes a file larger than 64 MiB",
        Limit::Wall => "compiling this file took more than 60 seconds",
    }
}

fn machine_fault(finished: &Finished, output: &str) -> Option<String> {
    const WORDS: [&str; 4] =
        ["No space left on device", "Disk quota exceeded", "Input/output error", "died due to signal 9"];
    let line = own_words(output).find(|line| WORDS.iter().any(|word| line.contains(word)));
    match (line, finished.signal) {
        (Some(line), _) => Some(format!("a compiler failed: {}", plain(line, 200))),
        (None, Some(signal)) => Some(format!("a compiler was ended by signal {signal}")),
        (None, None) => None,
    }
}

/// For a tool that failed without naming an error: its own last words, if it has any.
fn without_place(output: &str) -> Diagnostic {
    const NAMES: [&str; 8] = ["nvcc", "g++", "cc1plus", "cicc", "ptxas", "cudafe++", "collect2", "as"];
    let speaks =
        |line: &&str| NAMES.iter().any(|name| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([':', ' '])));
    let words = own_words(output).filter(speaks).last().unwrap_or("the compiler gave up without saying why");
    let message = plain(&diagnostics::without_folders(words), 200);
    Diagnostic { severity: Severity::Error, line: None, column: None, message, source_line: None, tool: Speaker::Nvcc }
}

#[cfg(test)]
#[path = "../tests/compile_nvcc.rs"]
mod tests;
