//! The stations as this machine has them.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use anyhow::{Result, anyhow};

use super::engines::{Cpu, Engines, Gpu, Shipped};
use super::later::{Later, Waiting};
use super::start::Start;
use super::workshop::Workshop;
use super::{Cuda, EngineChoice, Found, Order, Prepared, Refusal, Source, Stations};
use crate::compile::conditions::{has_conditions, line_marker, renumbers};
use crate::compile::diagnostics::{self, Severity, Speaker};
use crate::compile::gpu::GpuBuilds;
use crate::compile::host::{self, HostBuilds, HostCode, Wanted};
use crate::compile::nvcc::{self, Outcome, Pass};
use crate::compile::once;
use crate::compile::preprocessed::Preprocessed;
use crate::compile::process::{Limit, Stop};
use crate::compile::toolkit::{HostCompiler, Lookup, Toolkit, find_sanitizer};
use crate::execute::cuda::GpuInfo;
use crate::execute::limits;
use crate::execute::sanitized::Sanitized;
use crate::exercise::Exercise;
use crate::judge::answer::{Given, GivenRow};
use crate::report::{Diagnostic, Launch};
use crate::submission::constructs::{Construct, constructs, constructs_but};
use crate::submission::{self, GeometryOf, Kernel, KernelFault, LaunchFault, ReadError, find_kernel, find_launch};
use crate::verdict::{Check, CheckId, Status};

/// Reads a submission.
pub type Read<'r> = dyn Fn() -> Result<submission::Submission, ReadError> + Sync + 'r;

/// Bytes of a text so long that g++ is first asked whether it takes it at all: a kernel is a tenth of that.
const LONG: usize = 64 << 10;

/// Why nothing is graded where engine cuda was asked for.
pub fn no_cuda(reason: &str) -> String {
    format!("engine cuda cannot run here: {reason}")
}

/// The real stations.
pub struct Machine<'a> {
    order: &'a Order,
    exercise: &'a Exercise,
    workshop: &'a Workshop,
    /// Reads the submission, where that is not to be done by the order's path.
    read: Option<&'a Read<'a>>,
    gpu: Start,
    /// Why engine cpu runs the kernel although there is a GPU.
    fallback: OnceLock<String>,
    /// What nvcc's preprocessor left of heat.cu, where engine cpu has to have the same.
    seen_by_nvcc: OnceLock<Preprocessed>,
    /// What the kernel allows its blocks.
    own: OnceLock<limits::Own>,
    /// Mangled names of the variables that the submission loads on a GPU.
    loads: OnceLock<Arc<BTreeSet<String>>>,
    /// Why no compiler makes a program of the file, where that is the file's own doing.
    too_much: OnceLock<String>,
    /// Ends the host compiler once nvcc has rejected the file.
    no_host: Stop,
}

impl<'a> Machine<'a> {
    /// Starts the GPU's workers at once: they make their contexts while compilers run. Where grades share the GPU, they
    /// start when this grade has a seat there.
    pub fn new(order: &'a Order, exercise: &'a Exercise, workshop: &'a Workshop) -> Self {
        let n = exercise.exercise.n;
        let gpu = match workshop.shared_gpu() {
            Some(info) => Start::deferred(order.engine, n, info.clone()),
            None => Start::of(order.engine, n),
        };
        let (fallback, seen_by_nvcc, own, loads) = (OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new());
        let (too_much, no_host) = (OnceLock::new(), Stop::default());
        Self { order, exercise, workshop, read: None, gpu, fallback, seen_by_nvcc, own, loads, too_much, no_host }
    }

    /// The same for a submission that `read` reads; the order's path is only told.
    pub fn reading(self, read: &'a Read<'a>) -> Self {
        Self { read: Some(read), ..self }
    }

    /// Engine cuda, or why it cannot run: no nvcc, no GPU, or a driver that does not take what nvcc built. None of that is
    /// the learner's doing.
    fn cuda(
        &self,
        toolkit: &Lookup<Toolkit>,
        gxx: &HostCompiler,
        found: &Found,
        builds: Option<GpuBuilds>,
        geometry: Arc<GeometryOf>,
    ) -> Result<Result<Gpu, String>> {
        let toolkit = match toolkit {
            Lookup::Found(toolkit) => toolkit,
            Lookup::Missing { reason, remedy } => return Ok(Err(format!("{reason}; {remedy}"))),
        };
        if let Some(Err(reason)) = self.gpu.info()? {
            return Ok(Err(reason));
        }
        let Some(builds) = builds else { return Ok(Err("nvcc left no build of the kernel for the GPU".to_owned())) };
        let (arch, version) = (builds.arch, &toolkit.version);
        let reference = self.workshop.gpu_reference(toolkit, gxx, arch)?;
        let shipped = Shipped { exercise: self.exercise };
        let turn = self.workshop.turn();
        let pair = match self.gpu.take() {
            Ok(pair) => pair,
            Err(reason) => return Ok(Err(reason)),
        };
        let gpu = Gpu::new(pair, turn, &reference, builds, &found.kernel.name, geometry, shipped);
        Ok(match gpu.loads() {
            Ok(()) => Ok(gpu),
            Err(error) => Err(format!("the GPU does not take what nvcc {version} built for sm_{arch}: {error:#}")),
        })
    }

    /// Why what g++ made of heat.cu is not what nvcc makes of it, where that shows.
    fn other_code(&self, builds: &HostBuilds, kernel: &str, text: &str) -> Option<String> {
        let (ours, theirs) = (builds.preprocessed.as_ref()?, self.seen_by_nvcc.get()?);
        let kernel = kernel.rsplit("::").next().unwrap_or(kernel);
        // Lines that were left out are known by their numbers.
        let confused = (!builds.omitted.is_empty() && renumbers(text)).then_some(1);
        let line = line_marker(text).or(confused).or_else(|| ours.first_difference(theirs, kernel, &builds.omitted))?;
        Some(format!("heat.cu:{line} is other code for the host compiler than for nvcc, so only a GPU can tell"))
    }

    /// heat.cu without what nvcc's conditions leave out of it for the host; `None` where it has none, or nvcc does not say.
    fn left_in_for_host(&self, text: &str) -> Option<String> {
        let (Lookup::Found(toolkit), Lookup::Found(gxx)) = (self.workshop.toolkit(), self.workshop.host_compiler())
        else {
            return None;
        };
        let arch = self.order.arch.unwrap_or(nvcc::LESSON_ARCH);
        let left_in = has_conditions(text).then(|| nvcc::left_in(toolkit, gxx, text, arch, Pass::Host));
        // Where it cannot be asked its conditions are decided here.
        Some(left_in?.ok().flatten()?.text())
    }

    /// What compute-sanitizer says of the submission, or why it did not run.
    fn sanitized(&self, gpu: Option<&Gpu>) -> Result<Result<Vec<Sanitized>, String>> {
        let Some(gpu) = gpu else {
            return Ok(Err("it needs a GPU, and engine cpu runs this kernel".to_owned()));
        };
        let sanitizer = match find_sanitizer() {
            Lookup::Found(sanitizer) => sanitizer,
            Lookup::Missing { reason, remedy } => return Ok(Err(format!("{reason}; {remedy}"))),
        };
        // A seed of its own, so that the trials draw the same grids with and without it.
        gpu.sanitize(&sanitizer.path, self.exercise, self.order.seed.unwrap_or_default()).map(Ok)
    }

    /// The reason why a gate cannot be judged without nvcc, or the warning that takes its place at a learner's desk.
    fn without_nvcc(&self, reason: &str, remedy: &str) -> Cuda {
        let status = if self.order.needs_nvcc { Status::Skip } else { Status::Warn };
        let check =
            Check::new(CheckId::Compile, status, format!("not compiled as CUDA: {reason}")).with(format!("{remedy}."));
        Cuda { check, diagnostics: Vec::new(), nvcc: None, gpu: None }
    }

    /// The builds for the host, or why there are none.
    fn host_builds(
        &self,
        gxx: &HostCompiler,
        text: &str,
        call: &str,
        host: HostCode,
    ) -> Result<Result<HostBuilds, String>> {
        if text.len() > LONG
            && let Some(sentence) = self.too_much(gxx, text, call, host)?
        {
            return Ok(Err(sentence));
        }
        let (shelf, wanted) = (self.workshop.shelf(), Wanted::FastAndChecked);
        Ok(match host::build_once(shelf, gxx, text, call, wanted, host, &self.no_host)?.outcome {
            Outcome::Compiled(builds) => Ok(builds),
            Outcome::Rejected(said) => Err(host_refusal(&said)),
            Outcome::LimitHit { limit: Limit::Wall, sentence } => Err(sentence),
            Outcome::LimitHit { sentence, .. } => Err(self.too_much(gxx, text, call, host)?.unwrap_or(sentence)),
        })
    }

    /// Why g++ makes no program of the file at all, where that is the file's own doing.
    fn too_much(&self, gxx: &HostCompiler, text: &str, call: &str, host: HostCode) -> Result<Option<String>> {
        let sentence = host::too_much(gxx, text, call, host, &self.no_host)?;
        let sentence = sentence.map(|sentence| format!("g++ {}: {sentence}", gxx.version));
        if let Some(sentence) = &sentence {
            self.too_much.get_or_init(|| sentence.clone());
        }
        Ok(sentence)
    }

    /// What nvcc says of the file, and the builds for the GPU.
    fn compile_with_nvcc(&self, source: &Source, kernel: Option<&Kernel>) -> Result<Cuda> {
        let gxx = match self.workshop.host_compiler() {
            Lookup::Found(gxx) => gxx,
            Lookup::Missing { reason, remedy } => return Ok(self.without_nvcc(reason, remedy)),
        };
        let toolkit = match self.workshop.toolkit() {
            Lookup::Found(toolkit) => toolkit,
            Lookup::Missing { reason, remedy } => return Ok(self.without_nvcc(reason, remedy)),
        };
        let found_arch = self.gpu.arch()?;
        let arch = self.order.arch.or(found_arch).unwrap_or(nvcc::LESSON_ARCH);
        let call = kernel.filter(|_| found_arch.is_some()).map(|kernel| kernel.call.as_str());
        let build = std::thread::scope(|scope| {
            // Kept by the workshop; what goes wrong with it is told when it is asked for.
            call.map(|_| scope.spawn(|| self.workshop.gpu_reference(toolkit, gxx, arch)));
            once::check_and_build(self.workshop.shelf(), toolkit, gxx, &source.text, call, arch)
        })?;
        if let Outcome::Rejected(said) = &build.outcome
            && let Some((line, header)) = nvcc::missing_library(said)
        {
            let reason = format!("heat.cu:{line} includes {header}, which nvcc {} came without", toolkit.version);
            return Ok(self.without_nvcc(&reason, "install the whole CUDA toolkit"));
        }
        let warnings = build.warnings.shown.iter().map(diagnostic);
        // Engine cpu stands for the lesson's architecture, and a text may ask for which it is.
        let same_arch = || arch == nvcc::LESSON_ARCH || !source.text.contains("__CUDA_ARCH");
        if let Outcome::Compiled((cuda, _)) = &build.outcome
            && same_arch()
            && let Some(preprocessed) = &cuda.preprocessed
        {
            self.seen_by_nvcc.get_or_init(|| preprocessed.clone());
        }
        if let Outcome::Compiled((cuda, _)) = &build.outcome
            && same_arch()
        {
            self.loads.get_or_init(|| Arc::new(nvcc::variables_used(&cuda.ptx)));
        }
        if let (Outcome::Compiled((cuda, _)), Some(kernel)) = (&build.outcome, kernel) {
            self.own.get_or_init(|| limits::Own {
                bound: nvcc::most_threads(&cuda.ptx, &kernel.name),
                registers: nvcc::registers(&cuda.assembled.kernels, &kernel.name),
            });
        }
        let named = format!("nvcc {}", toolkit.version);
        let (check, errors, builds) = match build.outcome {
            Outcome::Compiled((cuda, builds)) => {
                (Check::new(CheckId::Compile, Status::Pass, taken(&named, cuda.arch, arch)), Vec::new(), builds)
            }
            Outcome::Rejected(said) => (rejected(&named, &said), said.shown.iter().map(diagnostic).collect(), None),
            Outcome::LimitHit { limit, sentence } => {
                // Only the wall limit can be a busy machine's doing.
                let status = if limit == Limit::Wall { Status::Skip } else { Status::Fail };
                (Check::new(CheckId::Compile, status, format!("{named}: {sentence}")), Vec::new(), None)
            }
        };
        Ok(Cuda {
            check,
            diagnostics: errors.into_iter().chain(warnings).collect(),
            nvcc: Some(toolkit.version.clone()),
            gpu: builds,
        })
    }
}

impl Stations for Machine<'_> {
    type Host = Result<HostBuilds, String>;

    fn read(&self) -> Result<Result<Source, Refusal>> {
        let read = self.read.map_or_else(|| submission::read(&self.order.path), |read| read());
        Ok(match read {
            Ok(read) => Ok(Source {
                answer: answer_of(&read),
                path: self.order.path.to_string_lossy().into_owned(),
                name: read.name,
                inside: read.inside,
                text: read.text,
                sha256: read.sha256,
            }),
            Err(ReadError::Usage(fault)) => Err(Refusal::Usage(fault.to_string())),
            Err(ReadError::Source(fault)) => Err(Refusal::Fault(fault.to_string())),
            Err(fault @ ReadError::Machine { .. }) => return Err(fault.into()),
        })
    }

    fn compile(&self, source: &Source, kernel: Option<&Kernel>) -> Result<Cuda> {
        let compiled = self.compile_with_nvcc(source, kernel);
        if compiled.as_ref().map_or(true, |cuda| cuda.check.status == Status::Fail) {
            self.no_host.stop();
        }
        compiled
    }

    fn find(&self, source: &Source) -> Result<Found, Check> {
        let left_in = self.left_in_for_host(&source.text);
        let program = Arc::new(submission::Program::new(left_in.as_deref().unwrap_or(&source.text)));
        let kernel = find_kernel(&program).map_err(|fault| kernel_check(&fault))?;
        let n = self.exercise.exercise.n;
        let launch = find_launch(&program, &kernel);
        let remarks = submission::remarks::all(&program, &kernel, launch.as_ref().ok(), n);
        let launch = launch
            .and_then(|launch| launch.geometry(n).map(|geometry| (launch, geometry)))
            .map_err(|fault| launch_check(&fault));
        let (launch, geometry) = match launch {
            Ok((launch, geometry)) => {
                let shown = Launch {
                    block: geometry.block,
                    grid: geometry.grid,
                    shared: geometry.shared,
                    source: launch.source,
                    line: launch.line,
                };
                let of = move |n: u32| launch.geometry(n).map_err(|fault| fault.to_string());
                (Ok(shown), Some(Arc::new(of) as Arc<GeometryOf>))
            }
            Err(check) => (Err(check), None),
        };
        let written_n = submission::remarks::written_n(&program, &kernel, n);
        let filled = submission::remarks::filled_by_host(&program, &kernel);
        Ok(Found { kernel, launch, geometry, written_n, filled, remarks })
    }

    fn host(&self, source: &Source, found: &Found) -> Result<Self::Host> {
        let gxx = match self.workshop.host_compiler() {
            Lookup::Found(gxx) => gxx,
            Lookup::Missing { reason, remedy } => return Ok(Err(format!("{reason}; {remedy}"))),
        };
        let call = &found.kernel.call;
        // Without nvcc g++ alone says whether the whole text compiles.
        let host = match self.workshop.toolkit() {
            Lookup::Found(_) => HostCode::Reached(call),
            Lookup::Missing { .. } => HostCode::Kept,
        };
        let program = submission::Program::new(&source.text);
        let mut needing_gpu = constructs(&program);
        // Without nvcc g++ gets what the kernel does not reach as well.
        if !needing_gpu.is_empty() && host == HostCode::Reached(call) {
            needing_gpu = constructs_but(&program, &host::unreached(gxx, &source.text, call, &self.no_host)?);
        }
        if let Some(Construct { what, line }) = needing_gpu.first() {
            return Ok(Err(format!("heat.cu:{line} uses {what}, which engine cpu cannot run; it needs a GPU")));
        }
        let (reference, built) = std::thread::scope(|scope| {
            let reference = scope.spawn(|| self.workshop.reference(gxx));
            let built = self.host_builds(gxx, &source.text, call, host);
            (reference.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), built)
        });
        reference?;
        built
    }

    fn engine<'e>(
        &'e self,
        source: &Source,
        found: &Found,
        host: Waiting<'e, Self::Host>,
        gpu: Option<GpuBuilds>,
    ) -> Result<Prepared<'e>> {
        let (Lookup::Found(gxx), toolkit) = (self.workshop.host_compiler(), self.workshop.toolkit()) else {
            return Ok(Prepared::Cannot(host()?.err().unwrap_or_default()));
        };
        let geometry = found.geometry.clone().ok_or_else(|| anyhow!("a kernel without a launch was to be run"))?;
        let shipped = Shipped { exercise: self.exercise };
        let threads = self.order.threads;
        let (kernel, text) = (found.kernel.name.clone(), source.text.clone());
        let of_cpu = limits::bounded(geometry.clone(), self.own.get().copied().unwrap_or_default());
        let cpu = Later::new(Box::new(move || match host()? {
            Ok(builds) => {
                if let Some(reason) = self.other_code(&builds, &kernel, &text) {
                    return Ok(Err(reason));
                }
                let reference = self.workshop.reference(gxx)?;
                let cpu = Cpu::new(reference, builds, &kernel, &text, of_cpu, shipped, threads)?;
                Ok(Ok(cpu.loading(self.loads.get().cloned())))
            }
            Err(reason) => Ok(Err(reason)),
        }));
        let gpu = match self.order.engine {
            EngineChoice::Cpu => None,
            choice => match (choice, self.cuda(toolkit, gxx, found, gpu, geometry)?) {
                (_, Ok(gpu)) => Some(gpu),
                (EngineChoice::Cuda, Err(reason)) => {
                    return Ok(Prepared::Cannot(no_cuda(&reason)));
                }
                (_, Err(reason)) => {
                    self.fallback.get_or_init(|| reason);
                    None
                }
            },
        };
        if gpu.is_none()
            && let Err(reason) = cpu.get()?
        {
            return Ok(match self.too_much.get() {
                Some(sentence) => Prepared::TooMuch(sentence.clone()),
                None => Prepared::Cannot(reason.clone()),
            });
        }
        let sanitized = self.order.sanitize.then(|| self.sanitized(gpu.as_ref())).transpose()?;
        Ok(Prepared::Engine(Box::new(Engines { cpu, gpu, sanitized })))
    }

    fn gpu(&self) -> Option<Result<GpuInfo, String>> {
        let fallback = self.fallback.get().map(|reason| Err(reason.clone()));
        fallback.or_else(|| self.gpu.info().ok().flatten())
    }

    fn host_compiler(&self) -> Option<String> {
        match self.workshop.host_compiler() {
            Lookup::Found(gxx) => Some(format!("g++ {}", gxx.version)),
            Lookup::Missing { .. } => None,
        }
    }
}

/// What a submission answers, as the judge takes it.
pub fn answer_of(read: &submission::Submission) -> Option<Given> {
    submission::find_answer(read).map(given)
}

fn given(answer: submission::Answer) -> Given {
    let row = |row: submission::AnswerRow| GivenRow {
        text: row.text,
        numbers: row.numbers,
        reads: row.reads_per_cell_step,
        ms: row.ms_per_timestep,
        ratio: row.ratio,
    };
    Given { rows: answer.rows.into_iter().map(row).collect(), ship: answer.ship.unwrap_or_default() }
}

/// nvcc takes the next architecture that it knows where it does not know the one that was wanted.
fn taken(named: &str, arch: u32, wanted: u32) -> String {
    let instead = if arch == wanted { String::new() } else { format!(", as it does not know sm_{wanted}") };
    format!("{named} takes it for sm_{arch}{instead}")
}

fn rejected(named: &str, said: &diagnostics::Diagnostics) -> Check {
    let errors: Vec<_> = said.shown.iter().filter(|said| said.severity == Severity::Error).collect();
    let count = errors.len();
    let plural = if count == 1 { "" } else { "s" };
    let first = errors.first().map_or_else(String::new, |first| match first.line {
        Some(line) => format!(", first at heat.cu:{line}: {}", first.message),
        None => format!(": {}", first.message),
    });
    let at = errors.first().and_then(|first| Some((first.line?, first.column.unwrap_or(0))));
    let place = at.map(|(line, column)| crate::execute::Place { line, column });
    Check::new(CheckId::Compile, Status::Fail, format!("{named}: {count} error{plural}{first}")).at(place)
}

/// What g++ does not take, in a sentence.
fn host_refusal(said: &diagnostics::Diagnostics) -> String {
    let first = said.shown.iter().find(|said| said.severity == Severity::Error).or(said.shown.first());
    match first {
        Some(first) => match first.line {
            Some(line) => format!("engine cpu cannot compile heat.cu:{line} for the host: {}", first.message),
            None => format!("engine cpu cannot compile heat.cu for the host: {}", first.message),
        },
        None => "engine cpu cannot compile heat.cu for the host".to_owned(),
    }
}

fn diagnostic(said: &diagnostics::Diagnostic) -> Diagnostic {
    let severity = match said.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        _ => "note",
    };
    let tool = match said.tool {
        Speaker::Nvcc => "nvcc",
        Speaker::Ptxas => "ptxas",
        _ => "host_compiler",
    };
    Diagnostic {
        severity: severity.to_owned(),
        line: said.line,
        column: said.column,
        message: said.message.clone(),
        tool: tool.to_owned(),
    }
}

fn kernel_check(fault: &KernelFault) -> Check {
    let place = fault.line().map(|line| crate::execute::Place { line, column: 0 });
    let mut check = Check::new(CheckId::Kernel, Status::Fail, fault.to_string()).at(place);
    check.details = fault.details();
    check
}

fn launch_check(fault: &LaunchFault) -> Check {
    let place = fault.line().map(|line| crate::execute::Place { line, column: 0 });
    let mut check = Check::new(CheckId::Launch, Status::Fail, fault.to_string()).at(place);
    check.details = fault.details();
    check
}
