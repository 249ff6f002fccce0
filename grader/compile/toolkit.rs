//! Finds the compilers: nvcc with its ptxas, and g++. That there is none is data ([`Lookup::Missing`]), because the
//! learner's verdict depends on it, not an error.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use super::diagnostics::pattern;
use super::fetch::{self, Cache};
use super::process::{Finished, Tool, find_program, is_executable};
use crate::confine::system_folders;

/// What looking for a tool came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<T> {
    Found(T),
    /// Why there is none, and what the reader can do: two sentences without a full stop.
    Missing {
        reason: String,
        remedy: String,
    },
}

impl<T> Lookup<T> {
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(tool) => Some(tool),
            Self::Missing { .. } => None,
        }
    }

    pub fn as_ref(&self) -> Option<&T> {
        match self {
            Self::Found(tool) => Some(tool),
            Self::Missing { .. } => None,
        }
    }
}

/// Where an nvcc was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    CudaHome,
    Path,
    UsrLocal,
    /// The grader's own folder, where it keeps the one that it fetched.
    Cache,
}

/// A CUDA compiler that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolkit {
    pub nvcc: PathBuf,
    pub ptxas: PathBuf,
    /// The folder with bin/ and include/.
    pub root: PathBuf,
    /// `13.0.88`
    pub version: String,
    pub origin: Origin,
}

/// A g++ that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCompiler {
    pub gxx: PathBuf,
    /// `12.2.0`
    pub version: String,
}

/// A compute-sanitizer that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sanitizer {
    pub path: PathBuf,
    /// `2025.3.1.0`
    pub version: String,
}

/// Oldest releases that do: nvcc 11 brought `-std=c++17`, g++ 9 complete C++17.
const OLDEST_NVCC: u32 = 11;
const OLDEST_GXX: u32 = 9;

/// Where to look, taken apart so that tests need no environment.
#[derive(Clone, Debug)]
pub struct Places {
    /// (folder with bin/nvcc, or nvcc itself; origin), best first.
    pub nvccs: Vec<(PathBuf, Origin)>,
    pub cache: Option<Cache>,
}

impl Places {
    /// CUDA_HOME (or CUDA_PATH), PATH, /usr/local/cuda, then the cache.
    pub fn usual() -> Self {
        let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
        let homes = homes.filter(|home| home.is_absolute()).map(|home| (home.join("bin/nvcc"), Origin::CudaHome));
        let path = find_program("nvcc").map(|nvcc| (nvcc, Origin::Path));
        let usual = ("/usr/local/cuda/bin/nvcc".into(), Origin::UsrLocal);
        Self { nvccs: homes.chain(path).chain([usual]).collect(), cache: Cache::usual() }
    }
}

/// The CUDA compiler of this machine; fetched once into the user's cache when there is none, unless `offline`.
pub fn find_toolkit(offline: bool) -> Lookup<Toolkit> {
    find_toolkit_in(&Places::usual(), offline)
}

/// As [`find_toolkit`], in these places.
pub fn find_toolkit_in(places: &Places, offline: bool) -> Lookup<Toolkit> {
    let mut refused = Vec::new();
    for (nvcc, origin) in places.nvccs.iter().filter(|(nvcc, _)| nvcc.exists()) {
        match Toolkit::at(nvcc, *origin) {
            Ok(toolkit) => return Lookup::Found(toolkit),
            Err(reason) => refused.push(reason),
        }
    }
    let Some(cache) = &places.cache else {
        refused.push("there is no home folder to keep a fetched one in".into());
        return Lookup::Missing {
            reason: no_nvcc(&refused),
            remedy: "set HEAT_GRADER_CACHE to a folder, or install the CUDA toolkit".into(),
        };
    };
    if let Some(toolkit) = cache.toolkit() {
        return Lookup::Found(toolkit);
    }
    if offline {
        return Lookup::Missing {
            reason: no_nvcc(&refused),
            remedy: "run once without --offline to fetch one, or install the CUDA toolkit".into(),
        };
    }
    match fetch::fetch(cache, find_program("python3").as_deref()) {
        Ok(toolkit) => Lookup::Found(toolkit),
        Err(failure) => {
            refused.push(format!("one could not be fetched: {}", failure.reason));
            Lookup::Missing { reason: no_nvcc(&refused), remedy: failure.remedy }
        }
    }
}

fn no_nvcc(refused: &[String]) -> String {
    let mut reason = "no CUDA compiler (nvcc) was found".to_owned();
    refused.iter().for_each(|why| reason.push_str(&format!("; {why}")));
    reason
}

impl Toolkit {
    /// The toolkit around one nvcc, or why it will not do.
    pub fn at(nvcc: &Path, origin: Origin) -> Result<Self, String> {
        let named = nvcc.display();
        let real = nvcc.canonicalize().map_err(|error| format!("{named}: {error}"))?;
        // A compiler cache or a wrapper script poses as nvcc under another name: keep the name that works then.
        let nvcc = if real.file_name() == nvcc.file_name() { real } else { nvcc.to_owned() };
        let version = nvcc_version(&nvcc)?;
        let major = version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        if major < OLDEST_NVCC {
            return Err(format!("{named} is release {version}, and {OLDEST_NVCC} or later is needed"));
        }
        let bin = nvcc.parent().unwrap_or(Path::new("/"));
        let beside = Some(bin.join("ptxas")).filter(|ptxas| is_executable(ptxas));
        let ptxas =
            beside.or_else(|| find_program("ptxas")).ok_or_else(|| format!("{named} has no ptxas beside it"))?;
        let root = bin.parent().unwrap_or(bin).to_owned();
        Ok(Self { nvcc, ptxas, root, version, origin })
    }

    /// Folders that a confined nvcc reads.
    pub fn folders(&self) -> Vec<PathBuf> {
        let bins = [&self.nvcc, &self.ptxas].into_iter().filter_map(|tool| tool.parent().map(Path::to_owned));
        [install_folder(&self.nvcc)].into_iter().chain(bins).chain(system_folders()).collect()
    }
}

impl HostCompiler {
    /// Folders that a confined g++ reads.
    pub fn folders(&self) -> Vec<PathBuf> {
        [install_folder(&self.gxx)].into_iter().chain(system_folders()).collect()
    }
}

/// The g++ on PATH.
pub fn find_host_compiler() -> Lookup<HostCompiler> {
    let remedy = || "install g++ (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)".to_owned();
    let Some(gxx) = find_program("g++") else {
        return Lookup::Missing { reason: "no g++ was found on PATH".into(), remedy: remedy() };
    };
    match host_compiler_at(&gxx) {
        Ok(compiler) => Lookup::Found(compiler),
        Err(reason) => Lookup::Missing { reason, remedy: remedy() },
    }
}

fn host_compiler_at(gxx: &Path) -> Result<HostCompiler, String> {
    let named = gxx.display();
    let answer = ask(gxx, &["-dumpfullversion", "-dumpversion"])?;
    let version = answer.stdout.trim().to_owned();
    let major: u32 =
        version.split('.').next().and_then(|number| number.parse().ok()).ok_or(format!("{named} tells no version"))?;
    // Clang answers to the name g++ on some systems, and calls itself 4.2.1 here.
    if major < OLDEST_GXX {
        return Err(format!("{named} is version {version}, and g++ {OLDEST_GXX} or later is needed"));
    }
    Ok(HostCompiler { gxx: gxx.to_owned(), version })
}

/// NVIDIA's compute-sanitizer, which comes with the CUDA toolkit: in CUDA_HOME (or CUDA_PATH), on PATH, in /usr/local/cuda.
pub fn find_sanitizer() -> Lookup<Sanitizer> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let homes = homes.filter(|home| home.is_absolute()).flat_map(|home| sanitizers_of(&home));
    let path = find_program("compute-sanitizer");
    find_sanitizer_in(homes.chain(path).chain(sanitizers_of(Path::new("/usr/local/cuda"))))
}

/// The first of these that answers.
fn find_sanitizer_in(places: impl Iterator<Item = PathBuf>) -> Lookup<Sanitizer> {
    let mut reason = "no compute-sanitizer was found".to_owned();
    for path in places.filter(|path| is_executable(path)) {
        match ask(&path, &["--version"]) {
            Ok(answer) => {
                let version =
                    answer.stdout.lines().find_map(|line| line.trim().strip_prefix("Version ")?.split(' ').next());
                return Lookup::Found(Sanitizer { path, version: version.unwrap_or("of unknown version").to_owned() });
            }
            Err(why) => reason.push_str(&format!("; {why}")),
        }
    }
    Lookup::Missing { reason, remedy: "it comes with the CUDA toolkit".to_owned() }
}

/// Where a toolkit has it: the program itself, and a script that starts it.
fn sanitizers_of(root: &Path) -> [PathBuf; 2] {
    ["compute-sanitizer/compute-sanitizer", "bin/compute-sanitizer"].map(|place| root.join(place))
}

fn nvcc_version(nvcc: &Path) -> Result<String, String> {
    static FULL: LazyLock<Regex> = LazyLock::new(|| pattern(r"release (\d+\.\d+)(?:, V(\d+(?:\.\d+)+))?"));
    let answer = ask(nvcc, &["--version"])?;
    let found = FULL.captures(&answer.stdout).ok_or_else(|| format!("{} tells no version", nvcc.display()))?;
    Ok(found.get(2).or(found.get(1)).map_or(String::new(), |version| version.as_str().to_owned()))
}

/// Runs a tool that answers at once.
fn ask(program: &Path, arguments: &[&str]) -> Result<Finished, String> {
    let answer = super::scratch::scratch().and_then(|folder| Tool::new(program, folder.path()).args(arguments).run());
    match answer {
        Ok(finished) if finished.success() => Ok(finished),
        Ok(_) => Err(format!("{} does not run", program.display())),
        Err(error) => Err(format!("{error:#}")),
    }
}

/// The folder that a program is installed under: the one above its bin/, but never a whole home or root folder.
fn install_folder(program: &Path) -> PathBuf {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let bin = real.parent().unwrap_or(Path::new("/usr/bin")).to_owned();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match bin.parent() {
        Some(root) if root.parent().is_some() && Some(root) != home.as_deref() => root.to_owned(),
        _ => bin,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_compute_sanitizer_that_answers_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, script: &str| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let broken = write("broken", "exit 1");
        let works = write("works", "echo 'NVIDIA (R) Compute Sanitizer'; echo 'Version 2025.3.1.0 (build 36400806)'");
        let absent = folder.path().join("absent");
        let found = find_sanitizer_in([absent.clone(), broken.clone(), works.clone()].into_iter());
        assert_eq!(found, Lookup::Found(Sanitizer { path: works, version: "2025.3.1.0".to_owned() }));
        let Lookup::Missing { reason, .. } = find_sanitizer_in([absent, broken].into_iter()) else { panic!() };
        assert!(
            reason.starts_with("no compute-sanitizer was found; ") && reason.ends_with("broken does not run"),
            "{reason}"
        );
    }
}
