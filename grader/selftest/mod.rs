//! Is this machine's grader right? Grades every fixture, compares with its verdict.json, and holds its report against the
//! schema that others read reports by.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, ensure};
use comfy_table::{ContentArrangement, Table, presets};
use jsonschema::Validator;
use serde_json::Value;

use crate::exercise::Exercise;
use crate::exit_code::ExitCode;
use crate::grade::{self, EngineChoice, Order, Workshop};
use crate::judge::plan::Scope;
use crate::outbox;
use crate::progress::Progress;
use crate::report::{Report, json};

mod confusion;
mod expected;

pub use expected::{Expected, ExpectedHazard, ExpectedKind};

/// Grids of every grade: where a fixture's first mismatch lies must not be chance.
const SEED: u64 = 1;
/// Cells a side of the long run: the thousand timesteps stay, on a grid that leaves the same remainder of every usual tile
/// as the lesson's 2048.
const LONG_N: u32 = 128;
/// The same for what else needs no large grid: the sharp launches, and the largest odd size, 1025. Words are counted, and
/// values compared once more, on the lesson's grid.
const SHARP_N: u32 = 512;
const LARGEST_ODD_N: u32 = 257;
/// Fixtures graded at once where nothing else is said: each holds some 200 MiB of grids.
const MOST_JOBS: usize = 8;

/// What `selftest` was asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The folder with right/, wrong/ and hostile/.
    pub fixtures: Option<PathBuf>,
    /// Only names that contain one of these; all when empty.
    pub filters: Vec<String>,
    pub jobs: Option<usize>,
    pub engine: EngineChoice,
    pub offline: bool,
}

/// One fixture, graded and compared.
struct Compared {
    /// `wrong/early_return`
    name: String,
    /// What it came to: the verdict, and the check that failed.
    came_to: String,
    /// Where it differs from its verdict.json, or its report from the schema; empty when it agrees.
    differences: Vec<String>,
    /// The cause that was planted and the one that was named; `None` where the fixture does not say.
    causes: Option<(String, String)>,
    seconds: f64,
}

/// What all grades share.
struct Bench<'a> {
    root: &'a Path,
    exercise: Exercise,
    workshop: Workshop,
    engine: EngineChoice,
    /// Of a report.
    schema: Validator,
}

/// Makes a grade short without leaving anything of it out.
fn shrink(exercise: &mut Exercise) {
    exercise.exercise.quick_n = LONG_N;
    let trials = &mut exercise.trials;
    trials.sharp.sizes.iter_mut().for_each(|n| *n = (*n).min(SHARP_N));
    trials.portable.sizes.iter_mut().for_each(|n| *n = (*n).min(LARGEST_ODD_N));
}

/// Grades the fixtures; passes only if every one agrees with its verdict.json.
pub fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let root = root(options.fixtures.as_deref())?;
    let fixtures = fixtures(&root, &options.filters)?;
    ensure!(!fixtures.is_empty(), "no fixture in {} has such a name", root.display());
    let mut exercise = Exercise::shipped()?;
    shrink(&mut exercise);
    let schema = jsonschema::validator_for(&serde_json::from_str(&json::schema()?)?)?;
    let workshop = Workshop::new(options.offline).compiling_anew();
    let bench = Bench { root: &root, exercise, workshop, engine: options.engine, schema };
    let compared = compare_all(&fixtures, &bench, options);
    let disagree = compared.iter().filter(|compared| !compared.differences.is_empty()).count();
    outbox::print(&table(&compared));
    outbox::print(&confusion::table(compared.iter().filter_map(|compared| compared.causes.as_ref())));
    outbox::print(&format!("{} of {} fixtures agree\n", compared.len() - disagree, compared.len()));
    Ok(if disagree == 0 { ExitCode::Passed } else { ExitCode::Ungraded })
}

/// The folder asked for, ./fixtures, or the one that this binary was built beside.
fn root(asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(folder) = asked {
        ensure!(folder.is_dir(), "{} is no folder", folder.display());
        return Ok(folder.to_owned());
    }
    let places = [Path::new("fixtures").to_owned(), Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")];
    let found = places.into_iter().find(|place| place.join("right").is_dir());
    found.context("no fixtures found; name their folder with --fixtures")
}

/// All folders with a verdict.json, by name.
fn fixtures(root: &Path, filters: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for kind in ["right", "wrong", "hostile"] {
        let folder = root.join(kind);
        if kind == "hostile" && !folder.is_dir() {
            continue;
        }
        for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = name_of(&path, root);
            let wanted = filters.is_empty() || filters.iter().any(|filter| name.contains(filter));
            if wanted && path.join("verdict.json").is_file() {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn compare_all(fixtures: &[PathBuf], bench: &Bench, options: &Options) -> Vec<Compared> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = options.jobs.unwrap_or(cores.min(MOST_JOBS)).clamp(1, fixtures.len());
    let progress = Progress::count(fixtures.len() as u64, "fixtures");
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(fixture) = fixtures.get(next.fetch_add(1, Ordering::Relaxed)) {
                    progress.message(&name_of(fixture, bench.root));
                    let compared = compare(fixture, bench);
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(compared);
                    progress.inc(1);
                }
            });
        }
    });
    progress.finish();
    let mut compared = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    compared.sort_by(|a, b| a.name.cmp(&b.name));
    compared
}

fn name_of(fixture: &Path, root: &Path) -> String {
    fixture.strip_prefix(root).unwrap_or(fixture).to_string_lossy().into_owned()
}

fn compare(fixture: &Path, bench: &Bench) -> Compared {
    let began = Instant::now();
    let order = Order {
        path: fixture.to_owned(),
        scope: Scope::Quick,
        needs_nvcc: false,
        strict: false,
        seed: Some(SEED),
        arch: None,
        engine: bench.engine,
        sanitize: false,
        threads: None,
        quiet: true,
    };
    let outcome = outbox::caught(|| {
        let report = grade::grade(&order, &bench.exercise, &bench.workshop)?.report;
        let file = fixture.join("verdict.json");
        let text = std::fs::read_to_string(&file)?;
        let expected = Expected::parse(&text, report.engine.as_deref().unwrap_or("cpu"))?;
        let planted = expected.planted().filter(|_| report.failing_check.is_some() || !report.causes.is_empty());
        let causes = planted.map(|planted| (planted.to_owned(), expected::named(&report).to_owned()));
        let mut differences = expected.differences(&report);
        differences.extend(invalid(&report, &bench.schema)?);
        Ok((came_to(&report), differences, causes))
    });
    let (came_to, differences, causes) =
        outcome.unwrap_or_else(|error| ("error".to_owned(), vec![format!("{error:#}")], None));
    let (name, seconds) = (name_of(fixture, bench.root), began.elapsed().as_secs_f64());
    Compared { name, came_to, differences, causes, seconds }
}

/// Where the JSON of a report is not what its schema promises to whoever reads it.
fn invalid(report: &Report, schema: &Validator) -> anyhow::Result<Option<String>> {
    let written: Value = serde_json::from_str(&json::render(report)?)?;
    let said = schema.iter_errors(&written).next();
    Ok(said.map(|why| format!("its report is not as `heat-grader schema` says: {}: {why}", why.instance_path())))
}

fn came_to(report: &Report) -> String {
    let verdict = format!("{:?}", report.verdict).to_lowercase();
    report.failing_check.map_or(verdict.clone(), |id| format!("{verdict} at {}", id.name()))
}

fn table(compared: &[Compared]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["fixture", "came to", "seconds", "agrees"]);
    for compared in compared {
        let agrees = if compared.differences.is_empty() {
            "yes".to_owned()
        } else {
            format!("NO: {}", compared.differences.join("; "))
        };
        table.add_row([compared.name.clone(), compared.came_to.clone(), format!("{:.1}", compared.seconds), agrees]);
    }
    format!("{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Check, CheckId, Status};

    #[test]
    fn a_report_that_its_schema_does_not_allow_is_a_difference() {
        let schema: Value = serde_json::from_str(&json::schema().unwrap()).unwrap();
        let checks = CheckId::ALL.into_iter().map(|id| Check::new(id, Status::Pass, "made up")).collect();
        let report = Report::blank().with_checks(checks);
        let told = |schema: &Value| invalid(&report, &jsonschema::validator_for(schema).unwrap()).unwrap();
        assert_eq!(told(&schema), None);
        let mut narrower = schema.clone();
        narrower["properties"]["seed"] = serde_json::json!({"type": "string"});
        let said = told(&narrower).unwrap();
        assert!(said.contains("/seed: ") && said.contains("type"), "{said}");
    }
}
