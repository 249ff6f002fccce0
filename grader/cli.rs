//! The face: what is typed, which command runs, where its result goes.
//!
//! The command line is read into the types of this file and turned into an [`Order`] and a [`Delivery`] at once. Two
//! promises are kept here: every run of `check` and `grade` leaves a report, internal errors and panics included; and
//! with `--report -` standard output holds that report and nothing else.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use crate::album::Album;
use crate::autograder;
use crate::batch::summary;
use crate::compile::diagnostics::without_folders;
use crate::compile::kept::{REPORTS, Shelf};
use crate::compile::scratch::scratch;
use crate::confine;
use crate::delivery::Delivery;
use crate::doctor;
use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::explain;
use crate::grade::{self, Graded, Order, Workshop};
use crate::interrupt::{self, set_last_words};
use crate::judge::diagnosis::Code;
use crate::judge::plan::Scope;
use crate::outbox::{self, Target};
use crate::progress;
use crate::report::{Report, json};
use crate::selftest;
use crate::watch;

mod batch;
mod options;
mod refusal;

use batch::{Batch, Merge};
use options::{Check, Common, Grade, Selftest, Walls};
use refusal::refuse;

/// Grades a CUDA kernel that takes two timesteps of the heat equation per launch.
#[derive(Debug, Parser)]
#[command(name = "heat-grader", version, arg_required_else_help = true, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 passed, 1 the submission failed, 2 usage error, 3 could not grade, 130 interrupted. Of batch and merge: 0 every submission passed or failed, 3 some are ungraded."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check your own heat.cu: the verdict, the first mismatch and what to look at next.
    Check(Check),
    /// Grade one submission, always in full, into a report.
    Grade(Grade),
    /// Grade a class: a report for each submission, and a summary.
    #[command(after_help = batch::EXIT_CODES, mut_arg("seed", |seed| seed.help(batch::SEED)))]
    Batch(Batch),
    /// Put folders of results together: those of a class's shards.
    #[command(after_help = batch::EXIT_CODES)]
    Merge(Merge),
    /// Grade the bundled fixtures and say whether this machine grades right.
    Selftest(Selftest),
    /// Say which tools this machine has, and what is missing for which command.
    Doctor {
        /// Do not count on the network.
        #[arg(long)]
        offline: bool,
    },
    /// Print the JSON Schema of the report.
    Schema {
        /// Of a batch's summary.json instead.
        #[arg(long)]
        summary: bool,
    },
    /// Explain a fault that a report names: what happens, how to see it, where the lesson tells more.
    Explain {
        /// A cause of a report; without one, the list of all.
        code: Option<String>,
        /// Say which way to go as well.
        #[arg(long, requires = "code")]
        hint: bool,
        /// All pages as one Markdown page.
        #[arg(long, conflicts_with = "code")]
        all: bool,
    },
    /// Grade on Gradescope.
    #[command(subcommand)]
    Gradescope(Gradescope),
    /// Run kernels for another heat-grader process.
    #[command(hide = true)]
    Worker(Walls),
    /// Run kernels on the GPU for another heat-grader process.
    #[command(hide = true)]
    CudaWorker(Walls),
    /// Start a compiler for another heat-grader process, and end what it leaves.
    #[command(hide = true)]
    Warden {
        #[arg(long)]
        leashed: bool,
    },
}

#[derive(Debug, Subcommand)]
enum Gradescope {
    /// Write an autograder, ready to upload, that builds this grader from source and needs no GPU.
    Init {
        /// A new or empty folder; autograder.zip lies in it afterwards.
        dir: PathBuf,
    },
}

impl Command {
    /// The walls that its command line asks for.
    fn walls(&self) -> Walls {
        match self {
            Self::Check(check) => check.common.walls,
            Self::Grade(grade) => grade.common.walls,
            Self::Batch(batch) => batch.common.walls,
            Self::Worker(walls) | Self::CudaWorker(walls) => *walls,
            Self::Merge(_)
            | Self::Selftest(_)
            | Self::Doctor { .. }
            | Self::Schema { .. }
            | Self::Explain { .. }
            | Self::Gradescope(_)
            | Self::Warden { .. } => Walls { outer_sandbox: false, no_sandbox: false },
        }
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    match Cli::try_parse_from(&typed) {
        Ok(cli) => run(cli.command, &typed),
        Err(error) => refuse(&error, &typed),
    }
}

/// `typed` is the command line that the command was read from.
fn run(command: Command, typed: &[OsString]) -> ExitCode {
    confine::choose(command.walls().into());
    if !matches!(command, Command::Worker(_) | Command::CudaWorker(_) | Command::Warden { .. }) {
        interrupt::heed();
    }
    match command {
        Command::Check(check) if check.watch => watched(&check, typed),
        Command::Check(check) => {
            let scope = if check.full { Scope::Full } else { Scope::Quick };
            // Who wants something to keep gets it of this very run.
            let fresh = check.fresh || check.report.is_some() || check.picture.is_some();
            let (target, album) = (check.report.map(Target::of), check.picture.map(Album));
            let delivery = Delivery { target, album, hint: check.hint, keeps: check.watched, ..Delivery::default() };
            let (workshop, shelf) = (Workshop::new(check.common.offline), Shelf::usual(REPORTS));
            let order = order(check.path, scope, false, check.common);
            graded(&order, &delivery, |exercise| grade::check(&order, exercise, &workshop, &shelf, fresh))
        }
        Command::Grade(grade) => {
            let workshop = Workshop::new(grade.common.offline);
            let (target, quiet) = (Some(Target::of(grade.report)), grade.quiet);
            if quiet {
                progress::silence();
            }
            let (format, album) = (grade.format.into(), grade.picture.map(Album));
            let delivery = Delivery { target, format, quiet, album, ..Delivery::default() };
            let order = Order { quiet, ..order(grade.path, Scope::Full, true, grade.common) };
            graded(&order, &delivery, |exercise| grade::grade(&order, exercise, &workshop))
        }
        Command::Batch(typed) => plain(|| match typed.array() {
            Some(array) => crate::batch::slurm::run(&typed.options(), &array),
            None => crate::batch::run(&typed.options()),
        }),
        Command::Merge(typed) => plain(|| crate::batch::merge::run(&typed.options())),
        Command::Selftest(args) => plain(|| {
            selftest::run(&selftest::Options {
                fixtures: args.fixtures,
                filters: args.filter,
                jobs: args.jobs.map(usize::from),
                engine: args.engine.into(),
                offline: args.offline,
            })
        }),
        Command::Doctor { offline } => plain(|| {
            let findings = doctor::examine(offline);
            outbox::print(&doctor::render(&findings, true));
            Ok(if doctor::can_check(&findings) { ExitCode::Passed } else { ExitCode::Ungraded })
        }),
        Command::Schema { summary } => plain(|| {
            outbox::print(&if summary { summary::schema()? } else { json::schema()? });
            Ok(ExitCode::Passed)
        }),
        Command::Explain { code, hint, all } => plain(|| Ok(explained(code.as_deref(), hint, all))),
        Command::Gradescope(Gradescope::Init { dir }) => plain(|| init(&dir)),
        Command::Worker(_) => worker(crate::execute::cpu::worker::main),
        Command::CudaWorker(_) => worker(crate::execute::cuda::worker::main),
        Command::Warden { .. } => worker(confine::warden::main),
    }
}

/// Checks until it is interrupted, with the same command line each time.
fn watched(check: &Check, typed: &[OsString]) -> ExitCode {
    let unusable = match &check.report {
        Some(report) if report == Path::new("-") => Err("with --watch, let --report name a file".to_owned()),
        _ => usable(&check.path),
    };
    if let Err(reason) = unusable {
        let delivery = Delivery { target: check.report.clone().map(Target::of), ..Delivery::default() };
        return delivery.deliver(&Graded::without_source(Report::of_error(reason, ExitCode::Usage)));
    }
    let mut again: Vec<OsString> = typed.iter().skip(1).cloned().collect();
    if let Some(at) = again.iter().position(|word| word == "--watch") {
        again[at] = "--watched".into();
    }
    plain(|| match watch::run(&check.path, &again)? {})
}

/// Prints a page, all of them, or their list. A code that is none is a usage error.
fn explained(code: Option<&str>, hint: bool, all: bool) -> ExitCode {
    let page = match code.map(|typed| (typed, typed.to_ascii_lowercase().replace('_', "-"))) {
        Some((typed, name)) => match Code::of_name(&name) {
            Some(code) => explain::page(code, hint),
            None => {
                let meant =
                    Code::like(&name).map_or_else(String::new, |code| format!(" (did you mean {}?)", code.name()));
                outbox::warn(&format!(
                    "heat-grader: there is no cause {typed:?}{meant}; `heat-grader explain` lists them\n"
                ));
                return ExitCode::Usage;
            }
        },
        None if all => explain::markdown(),
        None => explain::list(),
    };
    outbox::print(&page);
    ExitCode::Passed
}

/// Writes an autograder. A folder that is not vacant is a usage error.
fn init(dir: &Path) -> anyhow::Result<ExitCode> {
    match autograder::init(dir) {
        Ok(zip) => {
            outbox::print(&written(&zip, &Exercise::shipped()?));
            Ok(ExitCode::Passed)
        }
        Err(error) if error.is::<autograder::Occupied>() => {
            outbox::warn(&format!("heat-grader: {error}\n"));
            Ok(ExitCode::Usage)
        }
        Err(error) => Err(error),
    }
}

/// What `gradescope init` has made.
fn written(zip: &Path, exercise: &Exercise) -> String {
    let dir = zip.parent().unwrap_or(zip).display();
    let texts = [autograder::READ_ME].into_iter().chain(autograder::SCRIPTS);
    let texts: Vec<String> = texts.map(|(name, _)| format!("{dir}/{name}")).collect();
    let sources = format!("{dir}/{}/ (this grader's sources)", autograder::FOLDER);
    format!(
        "{} is ready to upload: *Configure Autograder*, Ubuntu 22.04 or newer, a container of two cores and 3 GB\nset the \
         assignment's *Autograder Points* to what a pass earns, {}\nbeside the zip lies what it holds: {} and {sources}\n",
        zip.display(),
        exercise.points.total(),
        texts.join(", ")
    )
}

/// A worker: its standard output belongs to the grader that started it.
fn worker(main: fn() -> anyhow::Result<()>) -> ExitCode {
    match main() {
        Ok(()) => ExitCode::Passed,
        Err(error) => {
            outbox::warn(&format!("worker: {error:#}"));
            ExitCode::Ungraded
        }
    }
}

fn order(path: PathBuf, scope: Scope, needs_nvcc: bool, common: Common) -> Order {
    let Common { seed, strict, arch, engine, sanitize, .. } = common;
    Order { path, scope, needs_nvcc, strict, seed, arch, engine: engine.into(), sanitize, threads: None, quiet: false }
}

/// Grades, and delivers a report whatever happens.
fn graded(order: &Order, delivery: &Delivery, grade: impl FnOnce(&Exercise) -> anyhow::Result<Graded>) -> ExitCode {
    if let Err(reason) = delivery.check() {
        // There is no place for a report, so this sentence is all.
        return delivery.to_nobody().deliver(&Graded::without_source(Report::of_error(reason, ExitCode::Usage)));
    }
    let album = delivery.album.as_ref().map_or(Ok(()), Album::open);
    if let Err(reason) = usable(&order.path).and(album) {
        return delivery.deliver(&Graded::without_source(Report::of_error(reason, ExitCode::Usage)));
    }
    let work = || {
        // Strangers' work is graded behind walls or not at all.
        if let Some(reason) = confine::refusal().filter(|_| order.needs_nvcc) {
            anyhow::bail!("{reason}");
        }
        // Without a place to work in, one sentence is better than a report of what that spoils.
        drop(scratch()?);
        grade(&Exercise::shipped()?)
    };
    let place = delivery.clone();
    set_last_words(Some(Box::new(move || place.interrupted())));
    let graded = outbox::guarded(work).unwrap_or_else(|error| {
        // Reports travel: no folder of this machine in them.
        let reason = without_folders(&format!("{error:#}"));
        Graded::without_source(Report::of_error(reason, ExitCode::Ungraded))
    });
    // From here on the grade is done, and its report the true one.
    set_last_words(None);
    delivery.deliver(&graded)
}

/// What can be told about the command line before anything is graded.
fn usable(path: &Path) -> Result<(), String> {
    if let Err(error) = std::fs::symlink_metadata(path)
        && error.kind() != std::io::ErrorKind::PermissionDenied
    {
        let long = path.as_os_str().len() > 200;
        let shown = if long { "that path".to_owned() } else { path.display().to_string() };
        return Err(if error.kind() == std::io::ErrorKind::NotFound {
            format!("{shown} does not exist")
        } else {
            format!("{shown} cannot be looked at: {error}")
        });
    }
    Ok(())
}

/// A command without a report: an error or panic is one sentence on stderr.
fn plain(command: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    outbox::guarded(command).unwrap_or_else(|error| {
        outbox::warn(&format!("heat-grader: {error:#}\n"));
        ExitCode::Ungraded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_seed_that_is_none_is_told_what_one_is() {
        let parsed = Cli::try_parse_from(["heat-grader", "check", "--seed", "-1"]).map(|_| ());
        let said = parsed.expect_err("no seed").to_string();
        assert!(said.contains("a whole number from 0 to") && !said.contains("tip:"), "{said}");
    }
}
