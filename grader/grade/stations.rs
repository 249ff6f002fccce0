//! The stations as this machine has them.

use std::sync::{Arc, OnceLock};

use super::start::start_engine;
use super::{Cuda, Found, Order, Prepared, Refusal, Source, Stations};
use crate::compile::diagnostics::{self, Diagnostics};
use crate::compile::nvcc::{self, Build, Outcome};
use crate::compile::process::Limit;
use crate::compile::toolkit::{HostCompiler, Lookup, find_host_compiler, find_toolkit};
use crate::exercise::Exercise;
use crate::judge::grouped;
use crate::report;
use crate::submission::{self, KernelFault, LaunchFault, Program, ReadError};
use crate::verdict::{Check, CheckId, Status};

/// The real stations.
pub struct Machine<'a> {
    order: &'a Order,
    exercise: &'a Exercise,
    gxx: OnceLock<Lookup<HostCompiler>>,
    program: OnceLock<Arc<Program>>,
}

impl<'a> Machine<'a> {
    /// Stations for one submission. Looks at nothing yet.
    pub fn new(order: &'a Order, exercise: &'a Exercise) -> Self {
        Self {
            order,
            exercise,
            gxx: OnceLock::new(),
            program: OnceLock::new(),
        }
    }

    fn gxx(&self) -> &Lookup<HostCompiler> {
        self.gxx.get_or_init(find_host_compiler)
    }

    fn program(&self, source: &Source) -> &Arc<Program> {
        self.program
            .get_or_init(|| submission::parse(&source.submission))
    }
}

impl Stations for Machine<'_> {
    fn read(&self) -> anyhow::Result<Result<Source, Refusal>> {
        match submission::read(&self.order.path) {
            Ok(read) => Ok(Ok(Source {
                answer: None,
                submission: read,
            })),
            Err(ReadError::Usage(error)) => Ok(Err(Refusal::Usage(error.to_string()))),
            Err(ReadError::Source(fault)) => Ok(Err(Refusal::Fault(fault.to_string()))),
            Err(error @ ReadError::Machine { .. }) => Err(error.into()),
        }
    }

    fn compile(&self, source: &Source) -> anyhow::Result<Cuda> {
        let toolkit = match find_toolkit(self.order.offline) {
            Lookup::Found(toolkit) => toolkit,
            Lookup::Missing { reason, remedy } => {
                return Ok(without_nvcc(self.order.needs_nvcc, &reason, &remedy));
            }
        };
        let gxx = match self.gxx() {
            Lookup::Found(gxx) => gxx,
            Lookup::Missing { reason, remedy } => {
                return Ok(without_nvcc(self.order.needs_nvcc, reason, remedy));
            }
        };
        let build = nvcc::check_as_cuda(&toolkit, gxx, &source.submission.text, self.order.arch)?;
        Ok(compiled(build, &toolkit.version))
    }

    fn find(&self, source: &Source) -> Result<Found, Check> {
        let program = self.program(source);
        let kernel = submission::find_kernel(program).map_err(|fault| no_kernel(&fault))?;
        let n = self.exercise.exercise.n;
        let launch = submission::find_launch(program, &kernel)
            .and_then(|launch| Ok((launch.geometry(n)?, launch)));
        let launch = launch
            .map_err(|fault| no_launch(&fault))
            .map(|(geometry, launch)| report::Launch {
                block: geometry.block,
                grid: geometry.grid,
                shared: geometry.shared,
                source: launch.source,
                line: launch.line,
            });
        Ok(Found { kernel, launch })
    }

    fn engine(&self, source: &Source, found: &Found) -> anyhow::Result<Prepared> {
        match self.gxx() {
            Lookup::Found(gxx) => {
                start_engine(gxx, self.order, self.program(source), source, found)
            }
            Lookup::Missing { reason, remedy } => {
                Ok(Prepared::Cannot(format!("{reason}; {remedy}")))
            }
        }
    }

    fn host_compiler(&self) -> Option<String> {
        match self.gxx() {
            Lookup::Found(gxx) => Some(gxx.version.clone()),
            Lookup::Missing { .. } => None,
        }
    }
}

/// Check `compile` where there is no nvcc: the cpu engine still says whether the kernel is right, not whether it is CUDA.
fn without_nvcc(needs_nvcc: bool, reason: &str, remedy: &str) -> Cuda {
    let check = if needs_nvcc {
        Check::new(
            CheckId::Compile,
            Status::Skip,
            format!("could not be judged: {reason}"),
        )
    } else {
        Check::new(
            CheckId::Compile,
            Status::Warn,
            format!("not compiled as CUDA: {reason}"),
        )
    };
    Cuda {
        check: check.with(format!("{remedy}.")),
        diagnostics: Vec::new(),
        nvcc: None,
    }
}

fn compiled(build: Build<nvcc::Cuda>, version: &str) -> Cuda {
    let mut diagnostics = Vec::new();
    let check = match &build.outcome {
        Outcome::Compiled(cuda) => Check::new(
            CheckId::Compile,
            Status::Pass,
            format!("nvcc {version} takes it for sm_{}", cuda.arch),
        ),
        Outcome::Rejected(said) => {
            diagnostics.extend(said.shown.iter().map(diagnostic));
            rejected(said)
        }
        Outcome::LimitHit {
            limit: Limit::Wall,
            sentence,
        } => Check::new(
            CheckId::Compile,
            Status::Skip,
            format!("could not be judged: {sentence}"),
        ),
        Outcome::LimitHit { sentence, .. } => {
            Check::new(CheckId::Compile, Status::Fail, sentence.clone())
        }
    };
    diagnostics.extend(build.warnings.shown.iter().map(diagnostic));
    Cuda {
        check,
        diagnostics,
        nvcc: Some(version.to_owned()),
    }
}

fn rejected(said: &Diagnostics) -> Check {
    let errors = said
        .shown
        .iter()
        .filter(|diagnostic| diagnostic.severity == diagnostics::Severity::Error);
    let count = errors.clone().count() as u64 + u64::from(said.more);
    let Some(first) = errors
        .clone()
        .find(|error| error.line.is_some())
        .or_else(|| errors.clone().next())
    else {
        return Check::new(CheckId::Compile, Status::Fail, "nvcc does not take it");
    };
    let others = if count > 1 {
        format!(" (and {} more)", grouped(count - 1))
    } else {
        String::new()
    };
    let place = first.line.map(|line| crate::execute::Place {
        line,
        column: first.column.unwrap_or(0),
    });
    let at = first
        .line
        .map_or_else(String::new, |line| format!("heat.cu:{line}: "));
    Check::new(
        CheckId::Compile,
        Status::Fail,
        format!("{at}{}{others}", first.message),
    )
    .at(place)
}

fn diagnostic(said: &diagnostics::Diagnostic) -> report::Diagnostic {
    let word = |value: serde_json::Result<serde_json::Value>| {
        value
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    };
    report::Diagnostic {
        severity: word(serde_json::to_value(said.severity)),
        line: said.line,
        column: said.column,
        message: report::escape::line(&said.message),
        tool: word(serde_json::to_value(said.tool)),
    }
}

fn no_kernel(fault: &KernelFault) -> Check {
    let mut check =
        Check::new(CheckId::Kernel, Status::Fail, fault.to_string()).at(line(fault.line()));
    check.details = fault.details();
    check
}

fn no_launch(fault: &LaunchFault) -> Check {
    let mut check =
        Check::new(CheckId::Launch, Status::Fail, fault.to_string()).at(line(fault.line()));
    check.details = fault.details();
    check
}

fn line(line: Option<u32>) -> Option<crate::execute::Place> {
    line.map(|line| crate::execute::Place { line, column: 0 })
}
