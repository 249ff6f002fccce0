//! The builds of a text for a GPU: the plain one, which is timed and compared, and the one that counts its reads.
//!
//! Both hold one kernel and what it calls, so that no other kernel of the file shares the learner's process.

use std::collections::BTreeSet;

use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::diagnostics::{Diagnostic, Diagnostics, Severity, Speaker, plain};
use super::naming::random_name;
use super::nvcc::{self, Assembled, Build, Cuda, KernelUse, Outcome, Ptx, assemble};
use super::ptx::{Module, NotCountable, SLOTS};
use super::toolkit::{HostCompiler, Toolkit};

/// The reference, and its kernels.
const REFERENCE: &str = include_str!("../../reference/heat.cu");
const REFERENCE_STEPS: [&str; 2] = ["heatStepGlobal", "heatStepTiled"];
const REFERENCE_COPY: &str = "copyGrid";

/// The builds of one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GpuBuilds {
    /// A cubin.
    pub plain: Vec<u8>,
    pub counted: Result<Counted, NotCountable>,
    /// The kernel's name in both cubins.
    pub entry: String,
    /// What the plain kernel takes.
    pub uses: KernelUse,
    /// 75 is sm_75.
    pub arch: u32,
}

/// A build that counts the bytes it reads from global memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub cubin: Vec<u8>,
    /// The variable whose elements add up to the bytes read. Drawn at random.
    pub counter: String,
    /// Its elements, 64 bits each.
    pub slots: usize,
    /// Registers and the like of the counted kernels.
    pub kernels: Vec<KernelUse>,
}

/// The reference's builds. A learner's process may load `copy`, and never `steps`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceBuilds {
    /// heatStepGlobal and heatStepTiled, a cubin.
    pub steps: Vec<u8>,
    pub counted: Counted,
    pub heat_step_global: String,
    pub heat_step_tiled: String,
    /// copyGrid alone, a cubin.
    pub copy: Vec<u8>,
    pub copy_grid: String,
    pub arch: u32,
}

/// Compiles a text and makes the builds of its kernel, named as C++ calls it at the end of the text.
pub fn build(toolkit: &Toolkit, gxx: &HostCompiler, source: &str, kernel: &str, arch: u32) -> Result<Build<GpuBuilds>> {
    let Build { outcome, warnings, wall } = check_and_build(toolkit, gxx, source, Some(kernel), arch)?;
    let outcome = outcome.and_then(|(_, builds)| match builds {
        Some(builds) => Ok(Outcome::Compiled(builds)),
        None => Ok(Outcome::Rejected(no_kernel(kernel))),
    })?;
    Ok(Build { outcome, warnings, wall })
}

/// Compiles a text as [`nvcc::check_as_cuda`] does, and makes the builds of `kernel` of the same PTX. No builds: nvcc left no
/// kernel of that name, or none was named.
pub fn check_and_build(
    toolkit: &Toolkit,
    gxx: &HostCompiler,
    source: &str,
    kernel: Option<&str>,
    arch: u32,
) -> Result<Build<(Cuda, Option<GpuBuilds>)>> {
    let pair = |ptx: &Ptx, arch| ptx.entry.as_deref().map(|entry| pair_of(toolkit, ptx, entry, arch)).transpose();
    let Build { outcome, warnings, wall } = nvcc::check_with(toolkit, gxx, source, kernel, arch, pair)?;
    let outcome = outcome.and_then(|(cuda, pair)| {
        let builds = cuda.entry.clone().zip(pair).map(|(entry, pair)| {
            // What cannot be taken apart runs as nvcc left it.
            let Pair { plain, counted } =
                pair.unwrap_or_else(|reason| Pair { plain: cuda.assembled.clone(), counted: Err(reason) });
            let uses = plain.kernels.into_iter().find(|kernel| kernel.name == entry).unwrap_or_default();
            GpuBuilds { plain: plain.cubin, counted, entry, uses, arch: cuda.arch }
        });
        Ok(Outcome::Compiled((cuda, builds)))
    })?;
    Ok(Build { outcome, warnings, wall })
}

/// Both builds of one kernel of a text's PTX.
fn pair_of(toolkit: &Toolkit, ptx: &Ptx, entry: &str, arch: u32) -> Result<Result<Pair, NotCountable>> {
    match Module::parse(&ptx.text).map(|module| module.keep(&BTreeSet::from([entry]))) {
        Ok(module) => pair(toolkit, &module, arch),
        Err(reason) => Ok(Err(reason)),
    }
}

fn no_kernel(kernel: &str) -> Diagnostics {
    let message = format!("nvcc leaves no kernel of the name {kernel}");
    let mut said = Diagnostics::default();
    said.push(Diagnostic {
        severity: Severity::Error,
        line: None,
        column: None,
        message: plain(&message, 200),
        source_line: None,
        tool: Speaker::Nvcc,
    });
    said
}

/// Both builds of a module.
struct Pair {
    plain: Assembled,
    counted: Result<Counted, NotCountable>,
}

/// Assembles both forms of a module side by side; `Err` when ptxas does not take the text written anew.
fn pair(toolkit: &Toolkit, module: &Module, arch: u32) -> Result<Result<Pair, NotCountable>> {
    let counter = random_name()?;
    let counted = module.counted(&counter);
    let (plain, counting) = std::thread::scope(|scope| {
        let counting = scope.spawn(|| match &counted {
            Ok(text) => assemble(toolkit, text, arch, None).map(taken),
            Err(reason) => Ok(Err(reason.clone())),
        });
        let plain = assemble(toolkit, &module.text(), arch, None).map(taken);
        (plain, counting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (plain, counting) = match (plain?, counting?) {
        (Ok(plain), counting) => (plain, counting),
        (Err(reason), _) => return Ok(Err(reason)),
    };
    let counting = match (counted, counting) {
        (Ok(text), Ok(built)) => fitting(toolkit, &text, arch, &plain, built)?,
        (_, counting) => counting,
    };
    let counted = counting.map(|built| Counted { cubin: built.cubin, counter, slots: SLOTS, kernels: built.kernels });
    Ok(Ok(Pair { plain, counted }))
}

/// The counted build again with no more registers than a block of any size that the plain one allows can have. Counting
/// takes some, and a launch that needs more than a multiprocessor has does not start.
fn fitting(
    toolkit: &Toolkit,
    text: &str,
    arch: u32,
    plain: &Assembled,
    counted: Assembled,
) -> Result<Result<Assembled, NotCountable>> {
    // A multiprocessor has 65,536 registers, given out by eights: 64 a thread are enough for the largest block.
    const ALWAYS_ENOUGH: u32 = 64;
    let most = |kernels: &[KernelUse]| kernels.iter().map(|kernel| kernel.registers).max().unwrap_or(0);
    let limit = most(&plain.kernels).next_multiple_of(8).max(ALWAYS_ENOUGH);
    if most(&counted.kernels) <= limit {
        return Ok(Ok(counted));
    }
    Ok(taken(assemble(toolkit, text, arch, Some(limit))?))
}

/// A text of the grader's own that ptxas does not take is one that was not understood.
fn taken(built: Build<Assembled>) -> Result<Assembled, NotCountable> {
    let reason = match built.outcome {
        Outcome::Compiled(assembled) => return Ok(assembled),
        Outcome::Rejected(said) => said.shown.first().map_or(String::new(), |first| first.message.clone()),
        Outcome::LimitHit { sentence, .. } => sentence,
    };
    let construct = format!("PTX that ptxas does not take once its reads are counted ({reason})");
    Err(NotCountable { construct, line: None, hides: false })
}

/// Builds the reference for a GPU. That it cannot be built is the machine's fault.
pub fn build_reference(toolkit: &Toolkit, gxx: &HostCompiler, arch: u32) -> Result<ReferenceBuilds> {
    let built = nvcc::check_as_cuda(toolkit, gxx, REFERENCE, None, arch)?;
    let cuda = match built.outcome {
        Outcome::Compiled(cuda) => cuda,
        Outcome::Rejected(said) => {
            bail!("nvcc {} does not take the reference: {}", toolkit.version, said.shown[0].message)
        }
        Outcome::LimitHit { sentence, .. } => bail!("nvcc {} and the reference: {sentence}", toolkit.version),
    };
    let named = |name: &str| {
        let entries = nvcc::entries(&cuda.ptx);
        let entry = entries.into_iter().find(|entry| entry.demangled.split('(').next() == Some(name));
        entry.map(|entry| entry.mangled).ok_or_else(|| anyhow!("the reference has no kernel {name}"))
    };
    let [heat_step_global, heat_step_tiled] = REFERENCE_STEPS.map(named);
    let (heat_step_global, heat_step_tiled, copy_grid) = (heat_step_global?, heat_step_tiled?, named(REFERENCE_COPY)?);
    let refused = |reason: NotCountable| anyhow!("the reference cannot be counted: {}", reason.construct);
    let module = Module::parse(&cuda.ptx).map_err(refused)?;
    let steps = module.keep(&BTreeSet::from([heat_step_global.as_str(), heat_step_tiled.as_str()]));
    let copy = module.keep(&BTreeSet::from([copy_grid.as_str()])).text();
    let (steps, copy) = std::thread::scope(|scope| {
        let copy = scope.spawn(|| assemble(toolkit, &copy, cuda.arch, None));
        let steps = pair(toolkit, &steps, cuda.arch);
        (steps, copy.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let Pair { plain: steps, counted } = steps?.map_err(refused)?;
    Ok(ReferenceBuilds {
        steps: steps.cubin,
        counted: counted.map_err(refused)?,
        heat_step_global,
        heat_step_tiled,
        copy: taken(copy?).map_err(refused)?.cubin,
        copy_grid,
        arch: cuda.arch,
    })
}

#[cfg(test)]
#[path = "../tests/compile_gpu.rs"]
mod tests;
