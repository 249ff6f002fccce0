//! From judged things to the report's plain fields.

use super::escape;
use super::{
    Advice, Answer, Cause, Environment, FirstMismatch, Hazard, Launch, Neighbourhood, Other, Reads, Real, Remark,
    Report, SCHEMA, Sanitizer,
};
use crate::execute::Place;
use crate::execute::sanitized::Sanitized;
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::judge::advice;
use crate::judge::answer::Given;
use crate::judge::diagnosis::{self, Code};
use crate::judge::hazards::SeenHazard;
use crate::judge::neighbourhood;
use crate::judge::outcome::{self, Writer};
use crate::judge::reads;
use crate::judge::sanitizer;
use crate::submission::LaunchSource;
use crate::submission::remarks::{self, HostFault, Unlike};
use crate::verdict::{Check, CheckId, Status, Verdict, failing_check};

impl Report {
    /// A report on nothing: no check was made, because of `error`.
    pub fn of_error(error: impl Into<String>, exit_code: ExitCode) -> Self {
        Self { error: Some(escape::line(&error.into())), exit_code: exit_code as u8, ..Self::blank() }
    }

    /// A report with every field empty and the verdict `ungraded`.
    pub fn blank() -> Self {
        Self {
            schema: SCHEMA,
            verdict: Verdict::Ungraded,
            exit_code: ExitCode::Ungraded as u8,
            failing_check: None,
            error: None,
            engine: None,
            scope: None,
            strict: false,
            seed: None,
            submission: None,
            checks: Vec::new(),
            causes: Vec::new(),
            remarks: Vec::new(),
            advice: Vec::new(),
            first_mismatch: None,
            error_map: None,
            reads: None,
            reads_map: None,
            apron: None,
            hazards: Vec::new(),
            sanitizer: None,
            timing: None,
            gpu_build: None,
            answer: None,
            diagnostics: Vec::new(),
            output: String::new(),
            environment: Environment::of_this_grader(),
            durations: super::Durations::default(),
        }
    }

    /// The same report with its checks, and the verdict that they add up to. Learner's text in them is made harmless.
    pub fn with_checks(mut self, checks: Vec<Check>) -> Self {
        self.verdict = Verdict::of(&checks, self.strict);
        self.exit_code = ExitCode::of(self.verdict) as u8;
        self.failing_check = failing_check(&checks, self.strict);
        self.checks = checks.into_iter().map(harmless).collect();
        self
    }

    /// The first check that decides and could not be made, when there is no verdict for want of it.
    pub fn unjudged(&self) -> Option<&Check> {
        let mut gates = self.checks.iter().filter(|check| check.id.gates(self.strict));
        gates.find(|check| check.status == Status::Skip).filter(|_| self.verdict == Verdict::Ungraded)
    }

    /// The likeliest cause as a line for the check that decided; nothing for any other.
    pub fn cause_line(&self, id: CheckId) -> Option<String> {
        let cause = self.causes.first().filter(|_| self.failing_check == Some(id))?;
        Some(format!("Cause: {}", cause.sentence))
    }

    /// The same with the line that names its page, for whoever may have the tool at hand.
    pub fn cause_lines(&self, id: CheckId) -> Vec<String> {
        let page = self.causes.first().map(|cause| format!("`{}` tells more.", cause.explain));
        self.cause_line(id).into_iter().zip(page).flat_map(<[String; 2]>::from).collect()
    }

    /// What compilers found wrong, a line each, for the check `compile` where it failed; nothing for any other.
    pub fn compiler_lines(&self, check: &Check) -> Vec<String> {
        let wrong = (check.id, check.status) == (CheckId::Compile, Status::Fail);
        let errors = self.diagnostics.iter().filter(|said| wrong && said.severity == "error");
        let line = |said: &super::Diagnostic| match (said.line, said.column) {
            (Some(line), Some(column)) => format!("heat.cu:{line}:{column}: {}", said.message),
            (Some(line), None) => format!("heat.cu:{line}: {}", said.message),
            _ => said.message.clone(),
        };
        errors.map(line).collect()
    }

    /// Why there is no verdict, in one sentence; `None` when there is one.
    pub fn ungraded_because(&self) -> Option<String> {
        if self.verdict != Verdict::Ungraded {
            return None;
        }
        let unjudged = || self.unjudged().map(|check| format!("{}: {}", check.id.name(), check.summary));
        self.error.clone().or_else(unjudged).or_else(|| Some("no check was made".to_owned()))
    }
}

fn harmless(mut check: Check) -> Check {
    check.summary = escape::line(&check.summary);
    for detail in &mut check.details {
        *detail = escape::line(detail);
    }
    check
}

/// The report's view of the first mismatch.
pub fn first_mismatch(first: &outcome::FirstMismatch, exercise: &Exercise) -> FirstMismatch {
    let write = match first.writer {
        Writer::By(write) => Some(write),
        Writer::Nobody | Writer::Unknown => None,
    };
    FirstMismatch {
        n: first.n,
        r: Real::of_f32(first.r),
        steps: exercise.timesteps(first.launch),
        launch: first.launch,
        last_right: first.last_right,
        row: first.cell.row as u32,
        column: first.cell.column as u32,
        expected: Real::of_f32(first.cell.expected),
        got: Real::of_f32(first.cell.got),
        difference: Real(first.cell.difference()),
        block: write.map(|write| write.actor.block),
        thread: write.map(|write| write.actor.thread),
        line: write.and_then(|write| write.place).map(|place| place.line),
        around: Some(around(&first.around)),
    }
}

fn around(around: &neighbourhood::Neighbourhood) -> Neighbourhood {
    let side = around.window.columns.len().max(1);
    let rows = |values: &[f32]| {
        values.chunks(side).map(|row| row.iter().map(|&value| Real::of_f32(value)).collect()).collect::<Vec<_>>()
    };
    let marks = |row: &[bool]| row.iter().map(|&wrong| if wrong { '#' } else { '.' }).collect();
    let lines = |at: Vec<usize>| at.into_iter().map(|at| at as u32).collect();
    Neighbourhood {
        row: around.window.rows.start as u32,
        column: around.window.columns.start as u32,
        expected: rows(&around.expected),
        got: rows(&around.got),
        wrong: around.wrong.chunks(side).map(marks).collect(),
        block_rows: lines(around.block_rows()),
        block_columns: lines(around.block_columns()),
    }
}

/// The report's view of a cause. Names of the learner's in its sentences are made harmless.
pub fn cause(cause: &diagnosis::Cause) -> Cause {
    Cause {
        code: cause.code,
        sentence: escape::line(&cause.sentence),
        evidence: cause.evidence.iter().map(|evidence| escape::line(evidence)).collect(),
        explain: page_command(cause.code),
    }
}

fn page_command(code: Code) -> String {
    format!("heat-grader explain {}", code.name())
}

/// The report's view of a word of advice. Names of the learner's in it are made harmless.
pub fn advice(advice: &advice::Advice) -> Advice {
    let (code, line, explain) = (advice.code, advice.line, page_command(advice.code));
    Advice { code, line, sentence: escape::line(&advice.sentence), explain }
}

/// The report's view of a fault of main().
pub fn remark(remark: &remarks::Remark) -> Remark {
    let (code, sentence) = match remark.fault {
        HostFault::OneBufferUnfilled => (
            Code::OneBufferUnfilled,
            "only one of the two grids is filled: the ring of the other does not hold its temperature",
        ),
        HostFault::UnstableR => {
            (Code::UnstableR, "the launch is given an r above 1/4, beyond which the scheme amplifies")
        }
        HostFault::CopyEveryStep => {
            (Code::CopyEveryStep, "the grid is copied to the host after every launch: the loop spends its time on that")
        }
        HostFault::LaunchNotSet => (
            Code::SettingsLeftOver,
            "kTwoStepLaunch is still nullptr: the program runs and times no kernel of yours, and prints no result rows",
        ),
        HostFault::WordsNotSet => {
            (Code::SettingsLeftOver, "kTwoStepWordsRead is still 0: the program prints 0 words read a cell-step")
        }
        HostFault::LaunchUnlike(unlike) => (Code::LaunchUnlike, unlike_words(unlike)),
    };
    Remark { code, line: remark.line, sentence: sentence.to_owned(), explain: page_command(code) }
}

fn unlike_words(unlike: Unlike) -> &'static str {
    match unlike {
        Unlike::SwappedGrids => {
            "the launch hands over the two grids the wrong way round; the grader launches the kernel with (in, out, n, r)"
        }
        Unlike::MovedGrid => {
            "the launch hands over a grid from another cell than its first; the grader launches the kernel with whole grids"
        }
        Unlike::OtherR => {
            "the launch hands over another r than its function is given; the grader launches the kernel with r as it is"
        }
        Unlike::Twice => {
            "the same launch is made twice in a row: the second repeats the same two timesteps, and the grader makes one"
        }
        Unlike::ByCalls => {
            "the launch's grid or block depends on how often its function was called; the grader always launches as for the \
             first call"
        }
        Unlike::Skipped => {
            "the program does not make this launch at the exercise's n; the grader launches the kernel all the same"
        }
    }
}

/// The report's view of the words read.
pub fn reads(reads: &reads::Reads) -> Reads {
    Reads {
        words: reads.words,
        cells: reads.cells,
        timesteps: reads.timesteps,
        per_cell_step: reads.per_cell_step(),
        budget: reads.budget,
    }
}

/// The report's view of one hazard.
pub fn hazard(seen: &SeenHazard) -> Hazard {
    let hazard = &seen.hazard;
    Hazard {
        kind: hazard.kind,
        line: hazard.place.map(|place| place.line),
        column: hazard.place.and_then(column),
        block: hazard.actor.map(|actor| actor.block),
        thread: hazard.actor.map(|actor| actor.thread),
        other: hazard.other.map(|(actor, place)| Other {
            block: actor.block,
            thread: actor.thread,
            line: place.map(|place| place.line),
        }),
        message: escape::line(&seen.message()),
        n: seen.n,
        launch: hazard.launch,
        count: hazard.count,
    }
}

/// The report's view of what a tool of compute-sanitizer said.
pub fn sanitizer(ran: &Sanitized) -> Sanitizer {
    let (errors, message, line) = sanitizer::answer(ran);
    Sanitizer { tool: ran.tool, errors, message: escape::line(&message), line }
}

fn column(place: Place) -> Option<u32> {
    (place.column > 0).then_some(place.column)
}

/// The report's view of the answer.
pub fn answer(given: &Given) -> Answer {
    Answer { rows: given.rows.iter().map(|row| escape::line(&row.text)).collect(), ship: escape::line(&given.ship) }
}

/// A launch in one line; `n` is the size that its grid is for.
pub fn launch_words(launch: &Launch, n: u32) -> String {
    let [x, y, z] = launch.block;
    let [columns, rows, layers] = launch.grid;
    let third = |number: u32| if number == 1 { String::new() } else { format!("x{number}") };
    let shared =
        if launch.shared == 0 { String::new() } else { format!(", {} bytes of dynamic shared memory", launch.shared) };
    let source = match (launch.source, launch.line) {
        (LaunchSource::Directive, Some(line)) => format!("directive at heat.cu:{line}"),
        (LaunchSource::Directive, None) => "directive".to_owned(),
        (LaunchSource::LaunchStatement, Some(line)) => format!("heat.cu:{line}"),
        (LaunchSource::LaunchStatement, None) => "launch statement".to_owned(),
        (LaunchSource::Default, _) => "default: the file has no launch".to_owned(),
    };
    format!("block {x}x{y}{}, grid {columns}x{rows}{}{shared} at n = {n} ({source})", third(z), third(layers))
}
