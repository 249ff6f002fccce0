//! What may be typed after `check`, `grade` and `selftest`, and how it reads as the types of the grader.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::confine;
use crate::delivery::Format;
use crate::grade::{self, EngineChoice};

#[derive(Debug, Args)]
pub struct Check {
    /// A folder with heat.cu, a .zip, .tar or .tar.gz of one, or a .cu file.
    #[arg(default_value = ".")]
    pub path: PathBuf,
    /// Run the thousand timesteps at n = 2048, as `grade` does.
    #[arg(long)]
    pub full: bool,
    /// Write the JSON report here as well; `-` for standard output and nothing but it.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Put pictures here: where the grid is wrong, how often each cell is read, what one block reads and writes.
    #[arg(long, value_name = "DIR")]
    pub picture: Option<PathBuf>,
    /// After the first failure say which way to go as well.
    #[arg(long)]
    pub hint: bool,
    /// Check again whenever the submission has changed, until Ctrl-C.
    #[arg(long)]
    pub watch: bool,
    /// Run everything again, even where nothing has changed since an earlier check.
    #[arg(long)]
    pub fresh: bool,
    /// Of a check that `--watch` makes: where it is interrupted, the report of the check before stays.
    #[arg(long, hide = true)]
    pub watched: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Grade {
    /// A folder with heat.cu, a .zip, .tar or .tar.gz of one, or a .cu file.
    pub path: PathBuf,
    /// Where the report goes; `-` for standard output and nothing but it.
    #[arg(long, value_name = "FILE")]
    pub report: PathBuf,
    /// What the report is.
    #[arg(long, value_enum, default_value = "json")]
    pub format: ReportFormat,
    /// Put pictures here: where the grid is wrong, how often each cell is read, what one block reads and writes.
    #[arg(long, value_name = "DIR")]
    pub picture: Option<PathBuf>,
    /// Print nothing that the exit code and the report say.
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Args)]
pub struct Common {
    /// Draw every initial grid from this number (a report names the one it used).
    #[arg(long, value_name = "N", value_parser = seed, allow_hyphen_values = true)]
    pub seed: Option<u64>,
    /// Never fetch a compiler.
    #[arg(long)]
    pub offline: bool,
    /// Let odd and tiny grid sizes decide as well.
    #[arg(long)]
    pub strict: bool,
    /// What runs the kernel.
    #[arg(long, value_enum, default_value = "auto")]
    pub engine: Engine,
    /// Let NVIDIA's compute-sanitizer watch the kernel as well; needs a GPU.
    #[arg(long)]
    pub sanitize: bool,
    /// The architecture that nvcc compiles for: the GPU's unless given, sm_75 where there is none. Engine cpu enforces the
    /// limits of sm_75, the lesson's.
    #[arg(long, value_name = "sm_NN", value_parser = arch)]
    pub arch: Option<u32>,
    #[command(flatten)]
    pub walls: Walls,
}

/// Which walls stand around compilers and kernels.
#[derive(Clone, Copy, Debug, Args)]
pub struct Walls {
    /// A container around the grader is the wall: go on where it forbids Landlock or seccomp. What works inside is used.
    #[arg(long)]
    pub outer_sandbox: bool,
    /// No Landlock and no seccomp: compilers and kernels get all of this user's rights. The report says so.
    #[arg(long, conflicts_with = "outer_sandbox")]
    pub no_sandbox: bool,
}

impl From<Walls> for confine::Choice {
    fn from(walls: Walls) -> Self {
        match walls {
            Walls { no_sandbox: true, .. } => Self::Nothing,
            Walls { outer_sandbox: true, .. } => Self::Outer,
            Walls { .. } => Self::All,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Engine {
    /// The best this machine has.
    Auto,
    /// A GPU runs, counts and times the kernel; the processor watches it as well.
    Cuda,
    /// No GPU: the kernel is compiled for the processor and every access is observed.
    Cpu,
}

impl From<Engine> for EngineChoice {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Auto => Self::Auto,
            Engine::Cuda => Self::Cuda,
            Engine::Cpu => Self::Cpu,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ReportFormat {
    /// The whole report; `heat-grader schema` prints its JSON Schema.
    Json,
    /// Gradescope's results.json; none at all when the submission could not be graded.
    Gradescope,
    /// JUnit XML: a test suite with a test case a check.
    Junit,
    /// Annotations for GitHub Actions on standard output, and the JSON as the report.
    Github,
}

impl From<ReportFormat> for Format {
    fn from(format: ReportFormat) -> Self {
        match format {
            ReportFormat::Json => Self::Json,
            ReportFormat::Gradescope => Self::Gradescope,
            ReportFormat::Junit => Self::Junit,
            ReportFormat::Github => Self::Github,
        }
    }
}

#[derive(Debug, Args)]
pub struct Selftest {
    /// Only fixtures whose name contains this (may be repeated).
    #[arg(long, value_name = "NAME")]
    pub filter: Vec<String>,
    /// Fixtures graded at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// The folder with right/, wrong/ and hostile/.
    #[arg(long, value_name = "DIR")]
    pub fixtures: Option<PathBuf>,
    /// What runs the kernels.
    #[arg(long, value_enum, default_value = "auto")]
    pub engine: Engine,
    /// Never fetch a compiler.
    #[arg(long)]
    pub offline: bool,
}

/// A whole number that JSON can hold.
pub fn seed(typed: &str) -> Result<u64, String> {
    let number = typed.parse().ok().filter(|seed| *seed <= grade::MAX_SEED);
    number.ok_or_else(|| format!("a seed is a whole number from 0 to {}", grade::MAX_SEED))
}

/// The oldest architecture that a CUDA toolkit of today can still be asked for.
const OLDEST_ARCH: u32 = 50;

/// `sm_75` or `75`.
pub fn arch(typed: &str) -> Result<u32, String> {
    let digits = typed.strip_prefix("sm_").unwrap_or(typed);
    match digits.parse() {
        Ok(arch) if (OLDEST_ARCH..1000).contains(&arch) => Ok(arch),
        Ok(0..OLDEST_ARCH) => Err(format!("sm_{OLDEST_ARCH} is the oldest that is known; the lesson's is sm_75")),
        _ => Err("an architecture is written sm_75".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_architecture_is_a_number_with_or_without_its_prefix() {
        assert_eq!((arch("sm_75"), arch("90")), (Ok(75), Ok(90)));
        assert!(arch("sm75").is_err() && arch("").is_err() && arch("-1").is_err());
        assert!(arch("sm_10").is_err_and(|said| said.contains("sm_50")));
    }
}
