//! Stations that read, compile and find whatever a test says.

use std::sync::Arc;

use heat_grader::compile::gpu::GpuBuilds;
use heat_grader::execute::cuda::GpuInfo;
use heat_grader::execute::{Processor, RawTimes, Runner, Trial};
use heat_grader::exercise::Exercise;
use heat_grader::grade::trials::{Engine, TimedRun};
use heat_grader::grade::{
    Cuda, EngineChoice, Found, Graded, Order, Prepared, Refusal, Source, Stations, Waiting, grade_with,
};
use heat_grader::judge::answer::{Given, GivenRow};
use heat_grader::judge::case::Program;
use heat_grader::judge::plan::{Means, Scope};
use heat_grader::report::{Diagnostic, Launch};
use heat_grader::submission::{Kernel, LaunchSource};
use heat_grader::verdict::{Check, CheckId, Status};

use super::{FakeEngine, exercise};

/// A heat.cu of a hundred lines; line 57 says something.
pub fn text() -> String {
    (1..=100).map(|line| format!("\tint line_{line} = in[{line}];\n")).collect()
}

/// What the stations answer.
pub struct FakeStations {
    pub read: Result<Source, Refusal>,
    pub compile: Cuda,
    pub find: Result<Found, Check>,
    pub engine: Option<Arc<FakeEngine>>,
    /// Why no compiler makes a program of the file.
    pub too_much: Option<String>,
}

impl FakeStations {
    /// A file that reads, compiles and launches well, and the given engine.
    pub fn with(engine: FakeEngine) -> Self {
        let reads = GivenRow { text: "heatTwoStep 1.000".to_owned(), reads: Some(1.0), ..GivenRow::default() };
        let time = GivenRow { text: "heatTwoStep 0.141 ms 0.50x".to_owned(), ms: Some(0.141), ..GivenRow::default() };
        let answer = Given { rows: vec![reads, time], ship: "When the grid is \u{1b}[31mlarge.".to_owned() };
        let launch = Launch {
            block: [32, 8, 1],
            grid: [64, 256, 1],
            shared: 0,
            source: LaunchSource::LaunchStatement,
            line: Some(90),
        };
        Self {
            read: Ok(Source {
                path: "subs/ada".to_owned(),
                name: "ada".to_owned(),
                inside: None,
                text: text(),
                sha256: "0".repeat(64),
                answer: Some(answer),
            }),
            compile: Cuda {
                check: Check::new(CheckId::Compile, Status::Pass, "nvcc 13.0.88 takes it for sm_75"),
                diagnostics: Vec::new(),
                nvcc: Some("13.0.88".to_owned()),
                gpu: None,
            },
            find: Ok(Found {
                kernel: Kernel { name: "heatTwoStep".to_owned(), call: "heatTwoStep".to_owned(), line: 40 },
                launch: Ok(launch),
                geometry: None,
                written_n: None,
                filled: None,
                remarks: Vec::new(),
            }),
            engine: Some(Arc::new(engine)),
            too_much: None,
        }
    }

    /// The grade of this submission, durations taken out.
    pub fn grade(&self) -> Graded {
        let order = Order {
            path: "subs/ada".into(),
            scope: Scope::Quick,
            needs_nvcc: false,
            strict: false,
            seed: Some(11),
            arch: None,
            engine: EngineChoice::Cpu,
            sanitize: false,
            threads: None,
            quiet: true,
        };
        let exercise: Exercise = exercise();
        let mut graded = grade_with(self, &order, &exercise).expect("no machine's fault");
        graded.report.durations = Default::default();
        graded
    }

    /// The same with an error that nvcc reports at line 57.
    pub fn with_compile_error(mut self) -> Self {
        self.compile.check = Check::new(CheckId::Compile, Status::Fail, "nvcc: 1 error, first at heat.cu:57");
        self.compile.diagnostics = vec![Diagnostic {
            severity: "error".to_owned(),
            line: Some(57),
            column: Some(9),
            message: "identifier \"x\" is undefined".to_owned(),
            tool: "nvcc".to_owned(),
        }];
        self
    }
}

impl Stations for FakeStations {
    type Host = ();

    fn read(&self) -> anyhow::Result<Result<Source, Refusal>> {
        Ok(self.read.clone())
    }

    fn compile(&self, _: &Source, _: Option<&Kernel>) -> anyhow::Result<Cuda> {
        Ok(self.compile.clone())
    }

    fn find(&self, _: &Source) -> Result<Found, Check> {
        self.find.clone()
    }

    fn host(&self, _: &Source, _: &Found) -> anyhow::Result<()> {
        Ok(())
    }

    fn gpu(&self) -> Option<Result<GpuInfo, String>> {
        None
    }

    fn engine<'e>(
        &'e self,
        _: &Source,
        _: &Found,
        host: Waiting<'e, ()>,
        _: Option<GpuBuilds>,
    ) -> anyhow::Result<Prepared<'e>> {
        host()?;
        if let Some(sentence) = &self.too_much {
            return Ok(Prepared::TooMuch(sentence.clone()));
        }
        Ok(match &self.engine {
            Some(engine) => Prepared::Engine(Box::new(Shared(engine.clone()))),
            None => Prepared::Cannot("g++ does not take this file".to_owned()),
        })
    }

    fn host_compiler(&self) -> Option<String> {
        Some("12.2.0".to_owned())
    }
}

struct Shared(Arc<FakeEngine>);

impl Engine for Shared {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn means(&self) -> Means {
        self.0.means()
    }

    fn runner(&self, program: Program, on: Processor) -> anyhow::Result<Box<dyn Runner>> {
        self.0.runner(program, on)
    }

    fn time(&self, trial: &Trial, satisfied: &dyn Fn(&RawTimes) -> bool) -> anyhow::Result<TimedRun> {
        self.0.time(trial, satisfied)
    }
}
