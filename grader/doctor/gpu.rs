//! The GPU, and whether its driver takes what this machine's nvcc builds.

use super::driver::{self, Device, Devices};
use super::{Finding, State, Subject};
use crate::compile::nvcc::known_archs;
use crate::compile::scratch::scratch;
use crate::compile::toolkit::{Lookup, find_sanitizer, find_toolkit};

const WITHOUT: &str = "the cpu engine grades; the time check is skipped";

/// What nvcc builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compiler {
    /// `13.0.88`
    pub version: String,
    /// 75 is sm_75; empty when it did not say.
    pub archs: Vec<u32>,
}

pub(super) fn gpu() -> Finding {
    let compiler = find_toolkit(true).found().map(|toolkit| {
        let archs = scratch().and_then(|folder| known_archs(&toolkit, folder.path())).unwrap_or_default();
        Compiler { version: toolkit.version, archs }
    });
    finding(driver::devices(), compiler.as_ref())
}

/// The finding on what the driver and nvcc say.
pub(super) fn finding(devices: Result<Devices, String>, compiler: Option<&Compiler>) -> Finding {
    let devices = match devices {
        Ok(devices) if devices.gpus.is_empty() => {
            return Finding::new(Subject::Gpu, State::Missing, "the driver sees no GPU", WITHOUT);
        }
        Ok(devices) => devices,
        Err(reason) => return Finding::new(Subject::Gpu, State::Missing, reason, WITHOUT),
    };
    let (major, minor) = devices.release;
    let names: Vec<String> = devices.gpus.iter().map(named).collect();
    let detail = format!("{} (driver for CUDA {major}.{minor})", names.join(", "));
    match compiler.and_then(|compiler| misfit(&devices, compiler)) {
        Some(effect) => Finding::new(Subject::Gpu, State::Degraded, detail, effect),
        None => Finding::found(Subject::Gpu, detail),
    }
}

fn named(device: &Device) -> String {
    device.arch.map_or_else(|| device.name.clone(), |arch| format!("{}, sm_{arch}", device.name))
}

/// Why nvcc's cubins may not run here. A driver takes the cubins of its own major release, newer minor ones included, and
/// of all before it (CUDA Compatibility, "minor version compatibility"). Engine cuda uses the first GPU.
fn misfit(devices: &Devices, compiler: &Compiler) -> Option<String> {
    let Compiler { version, archs } = compiler;
    let (major, minor) = devices.release;
    let newer = version.split('.').next()?.parse::<u32>().ok()? > major;
    if newer {
        return Some(format!(
            "nvcc {version} is of a newer major release than the driver speaks: its cubins may not load, and then the cpu \
             engine grades; install a newer driver, or a toolkit up to CUDA {major}.{minor}"
        ));
    }
    let arch = devices.gpus.first()?.arch?;
    let (lowest, highest) = (archs.first()?, archs.last()?);
    (!archs.contains(&arch)).then(|| {
        format!(
            "nvcc {version} knows sm_{lowest} to sm_{highest} and not sm_{arch}: its cubins may not load, and then the cpu engine \
             grades; install a toolkit that knows this GPU"
        )
    })
}

pub(super) fn sanitizer() -> Finding {
    match find_sanitizer() {
        Lookup::Found(sanitizer) => {
            let detail = format!("compute-sanitizer {}: {}", sanitizer.version, sanitizer.path.display());
            Finding::found(Subject::Sanitizer, detail)
        }
        Lookup::Missing { reason, remedy } => {
            Finding::new(Subject::Sanitizer, State::Degraded, reason, format!("--sanitize does nothing; {remedy}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(release: (u32, u32), arch: u32, version: &str) -> Finding {
        let gpus = vec![Device { name: "Tesla T4".to_owned(), arch: Some(arch) }];
        let compiler = Compiler { version: version.to_owned(), archs: vec![75, 80, 90, 121] };
        finding(Ok(Devices { release, gpus }), Some(&compiler))
    }

    #[test]
    fn a_gpu_is_named_with_what_its_driver_speaks() {
        let finding = found((13, 0), 75, "13.0.88");
        assert_eq!((finding.state, &*finding.detail), (State::Found, "Tesla T4, sm_75 (driver for CUDA 13.0)"));
        // A newer minor release is no hindrance, nor is an older major one.
        assert_eq!(found((12, 4), 75, "12.9.86").state, State::Found);
        assert_eq!(found((13, 0), 90, "11.8.89").state, State::Found);
    }

    #[test]
    fn a_toolkit_that_the_driver_or_the_gpu_does_not_go_with_is_named() {
        let newer = found((12, 4), 75, "13.0.88");
        assert_eq!(newer.state, State::Degraded);
        assert!(
            newer.effect.starts_with("nvcc 13.0.88 is of a newer major release than the driver speaks"),
            "{newer:?}"
        );
        assert!(newer.effect.ends_with("a toolkit up to CUDA 12.4"));
        let old_gpu = found((13, 0), 61, "13.0.88");
        assert_eq!(old_gpu.state, State::Degraded);
        assert!(old_gpu.effect.starts_with("nvcc 13.0.88 knows sm_75 to sm_121 and not sm_61"), "{old_gpu:?}");
    }

    #[test]
    fn without_a_gpu_or_without_nvcc_there_is_nothing_to_compare() {
        let none = finding(Ok(Devices { release: (13, 0), gpus: Vec::new() }), None);
        assert_eq!((none.state, &*none.detail), (State::Missing, "the driver sees no GPU"));
        assert_eq!(finding(Err("no driver".to_owned()), None).state, State::Missing);
        let gpus = vec![Device { name: "GPU 0, which does not answer".to_owned(), arch: None }];
        let silent = Compiler { version: "13.0.88".to_owned(), archs: Vec::new() };
        assert_eq!(finding(Ok(Devices { release: (13, 0), gpus }), Some(&silent)).state, State::Found);
    }
}
