//! heat.cu for the host: preprocessed with our own CUDA headers, rewritten, and built twice by g++.
//!
//! *fast* has no hooks. *checked* calls a hook before every access (`-fsanitize=thread`, bounds, alignment and others, with our own
//! answers instead of the sanitizers' libraries). Both are optimised: at -O0 a source's repeated reads would be counted as
//! often as they are written, which no GPU compiler does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use regex::{Captures, Regex};

use super::conditions::{LeftIn, grown_too_large, has_conditions};
use super::diagnostics::{Diagnostics, SOURCE_NAME, Severity, pattern};
use super::externals;
use super::host_headers::write_headers;
use super::host_only;
use super::kept::{Key, Shelf};
use super::never_built;
use super::nvcc::{Build, Outcome, judge};
use super::once::{self, key_of_gxx};
use super::preprocessed::Preprocessed;
use super::process::{Finished, Limit, Limits, Stop, Tool};
pub use super::rewrite::HostCode;
use super::rewrite::to_cpp;
use super::scratch::{Scratch, scratch};
use super::tables;
use super::thread_loops::thread_loops;
use super::toolkit::HostCompiler;
use super::unreached;
use super::unseen::{Unseen, inlined};

const NO_CONSTRUCTORS: &str = include_str!("cuda_on_host/no_constructors.ld");
const HOOKS: &str = include_str!("cuda_on_host/hooks.inc");
const HOOKS_CHECKED: &str = include_str!("cuda_on_host/hooks_checked.inc");

/// As many errors as nvcc reports; thousands take time and tell no more.
const MOST_ERRORS: &str = "-fmax-errors=100";
const ERRORS: usize = 100;

/// Flags of both builds. The thread-local model makes an access to shared memory one instruction; strict aliasing is off
/// because CUDA code reads float arrays as float4; contraction is off so that both builds and the reference round alike.
const COMMON: [&str; 15] = [
    MOST_ERRORS,
    // A frame larger than a page touches each of its pages, so that it cannot jump over a guard page.
    "-fstack-clash-protection",
    "-fno-diagnostics-show-caret",
    "-std=c++17",
    "-x",
    "c++",
    "-fpreprocessed",
    "-fPIC",
    "-g1",
    "-w",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fno-gnu-unique",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
];
const FAST: [&str; 2] = ["-O2", "-fno-semantic-interposition"];
/// Inlining must be as thorough as nvcc's (a helper's repeated reads merge only once it is inlined); merging reads across
/// loop iterations, or vectorising across gaps, would count what nvcc does not.
const CHECKED: [&str; 16] = [
    "-O3",
    "-fno-semantic-interposition",
    "-fno-tree-vectorize",
    "-fno-predictive-commoning",
    // It makes a variable that nobody writes a constant, whose reads have no hooks.
    "-fno-ipa-reference-addressable",
    // It makes one load of the bytes of a word and leaves the narrow ones, so that both would be counted.
    "-fdisable-tree-bswap",
    "-ftrivial-auto-var-init=pattern",
    // Made of moves only after the hooks are in, they would have none; calls do.
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
    // A call that ends a function keeps its line.
    "-fno-optimize-sibling-calls",
    "-fsanitize=thread",
    "--param=tsan-instrument-func-entry-exit=0",
    "-fsanitize=bounds,alignment,shift-exponent,float-cast-overflow,object-size",
    "-S",
    "-fdump-tree-tsan-lineno-uid=checked.tsan",
];
/// Flags with which g++ inlines whatever can be.
const INLINING: [&str; 8] = [
    "--param",
    "max-inline-insns-single=100000",
    "--param",
    "max-inline-insns-auto=100000",
    "--param",
    "inline-unit-growth=100000",
    "--param",
    "large-function-growth=100000",
];

/// The symbol whose value is the line of a structure that a call takes or gives and no hook sees.
pub const UNSEEN_CALL: &str = "hg_unseen_call_at_line";
/// What names begin with whose ends are constant tables, and whose values are lines of their reads: of those that have hooks
/// here, and of those that have none.
pub const TABLE: &str = "hg_table.";
pub const UNSEEN_TABLE: &str = "hg_unseen_table.";

/// How often host code is left out before g++'s rejection counts: one missing header shows at a time.
const LEFT_OUT: usize = 24;
/// How often that goes on though g++ stops at its largest number of errors.
const HOPELESS: usize = 3;
/// For how long host code is left out.
const LEAVING_OUT: Duration = Duration::from_secs(60);

/// CPU time for a build with the kernel as loops, which it can do without.
const FOR_LOOPS: Duration = Duration::from_secs(10);

/// Bytes of the gap behind each static shared array in the checked build, so that one word too far is seen.
const RED_ZONE: u32 = 128;

/// Which objects are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Fast,
    FastAndChecked,
}

/// The objects, in a folder that lives as long as this.
#[derive(Debug)]
pub struct HostBuilds {
    pub fast: PathBuf,
    /// `None` unless it was wanted.
    pub checked: Option<PathBuf>,
    /// What the preprocessor left of the text; `None` for a build made earlier.
    pub preprocessed: Option<Preprocessed>,
    /// The lines (from 1) of which something was left out before that, for g++ to take the rest.
    pub omitted: BTreeSet<u32>,
    _folder: Scratch,
}

/// The lines (from 1) in which two texts of as many lines differ.
fn other_lines(one: &str, other: &str) -> BTreeSet<u32> {
    let pairs = (1..).zip(one.lines().zip(other.lines()));
    pairs.filter(|(_, (one, other))| one != other).map(|(line, _)| line).collect()
}

impl HostBuilds {
    /// A fast build made earlier, from the bytes of its object.
    pub fn of_object(object: &[u8]) -> Result<Self> {
        let folder = scratch()?;
        let fast = folder.path().join("fast.so");
        fs::write(&fast, object).context("cannot write to the temporary folder")?;
        Ok(Self { fast, checked: None, preprocessed: None, omitted: BTreeSet::new(), _folder: folder })
    }
}

/// As [`build_once`], with nothing kept.
pub fn build(
    gxx: &HostCompiler,
    source: &str,
    call: &str,
    wanted: Wanted,
    host: HostCode,
) -> Result<Build<HostBuilds>> {
    build_once(&Shelf::nowhere(), gxx, source, call, wanted, host, &Stop::default())
}

/// Builds heat.cu for the host; `call` names the kernel as the end of the file would call it (`ns::twoStep<32, 8>`).
/// `Rejected` says what g++ does not take: nvcc may take it, so it is no fault of the learner's. Host code that g++ does
/// not take is left out bit by bit, which costs a rejection each time. What g++ made of the same text before is taken from
/// the shelf. Once it is told to stop, it ends with an error.
pub fn build_once(
    shelf: &Shelf,
    gxx: &HostCompiler,
    source: &str,
    call: &str,
    wanted: Wanted,
    host: HostCode,
    stop: &Stop,
) -> Result<Build<HostBuilds>> {
    let started = Instant::now();
    let first = build_with(shelf, gxx, source, call, wanted, host, stop)?;
    let Outcome::Rejected(said) = first.outcome else { return Ok(first) };
    let name = last_name(call);
    let mut text = source.to_owned();
    if let Some(less) = includes_only_nvcc_has(&said).and_then(|lines| host_only::without(&text, &lines, name)) {
        text = less;
    }
    let least = if host == HostCode::Kept { HostCode::Dropped } else { HostCode::Least(call) };
    let mut hopeless = 0;
    for _ in 0..LEFT_OUT {
        if started.elapsed() > LEAVING_OUT || hopeless == HOPELESS {
            break;
        }
        let build = build_with(shelf, gxx, &text, call, wanted, least, stop)?;
        let now = match build.outcome {
            Outcome::Rejected(now) => now,
            Outcome::Compiled(builds) => {
                let outcome = Outcome::Compiled(HostBuilds { omitted: other_lines(source, &text), ..builds });
                return Ok(Build { outcome, ..build });
            }
            outcome => return Ok(Build { outcome, ..build }),
        };
        hopeless += usize::from(now.shown.len() + now.more as usize >= ERRORS);
        match host_only::without(&text, &lines_of(&now), name) {
            Some(less) => text = less,
            None => return Ok(Build { outcome: Outcome::Rejected(now), ..build }),
        }
    }
    Ok(Build { outcome: Outcome::Rejected(said), warnings: first.warnings, wall: first.wall })
}

/// The names of the functions of heat.cu that this call of the kernel cannot reach: builds with [`HostCode::Reached`] leave
/// them out. None where that cannot be known.
pub fn unreached(gxx: &HostCompiler, source: &str, call: &str, stop: &Stop) -> Result<BTreeSet<String>> {
    let folder = scratch()?;
    let mut text = source.to_owned();
    for _ in 0..LEFT_OUT {
        let said = match preprocessed(gxx, folder.path(), &text, stop)?.outcome {
            Outcome::Compiled(cpp) => return Ok(unreached::names(&cpp, call)),
            Outcome::Rejected(said) => said,
            Outcome::LimitHit { .. } => break,
        };
        let less = includes_only_nvcc_has(&said).and_then(|lines| host_only::without(&text, &lines, last_name(call)));
        let Some(less) = less else { break };
        text = less;
    }
    Ok(BTreeSet::new())
}

/// `twoStep` of `ns::twoStep<32, 8>`.
fn last_name(call: &str) -> &str {
    call.split('<').next().unwrap_or_default().rsplit("::").next().unwrap_or_default()
}

/// The lines that errors are about.
fn lines_of(said: &Diagnostics) -> Vec<u32> {
    let errors = said.shown.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.filter_map(|diagnostic| diagnostic.line).collect()
}

/// The lines of an `#include` that found no file.
fn includes_only_nvcc_has(said: &Diagnostics) -> Option<Vec<u32>> {
    let missing = said.shown.iter().any(|diagnostic| diagnostic.message.contains("No such file"));
    missing.then(|| lines_of(said))
}

fn build_with(
    shelf: &Shelf,
    gxx: &HostCompiler,
    source: &str,
    call: &str,
    wanted: Wanted,
    host: HostCode<'_>,
    stop: &Stop,
) -> Result<Build<HostBuilds>> {
    let folder = scratch()?;
    let at = folder.path();
    fs::write(at.join("no_constructors.ld"), NO_CONSTRUCTORS).context("cannot write to the temporary folder")?;
    let preprocessed = preprocessed(gxx, at, source, stop)?;
    let Outcome::Compiled(text) = preprocessed.outcome else {
        return Ok(without_product(preprocessed));
    };
    if let Some(sentence) = grown_too_large(&text) {
        let outcome = Outcome::LimitHit { limit: Limit::Memory, sentence };
        return Ok(Build { outcome, warnings: Diagnostics::default(), wall: preprocessed.wall });
    }
    let left_in = has_conditions(source).then(|| left_in(gxx, at, stop)).transpose()?.flatten();
    let cpp = to_cpp(&text, host);
    if let Some(said) = never_built::first(&cpp) {
        let outcome = Outcome::Rejected(said);
        return Ok(Build { outcome, warnings: Diagnostics::default(), wall: preprocessed.wall });
    }
    let bench = Bench { shelf, gxx, folder: at, source, stop };
    let (fast, checked) = std::thread::scope(|scope| {
        let fast = scope.spawn(|| bench.build_fast(&cpp, call));
        let checked = (wanted == Wanted::FastAndChecked).then(|| bench.build_checked(&cpp, call));
        (fast.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), checked)
    });
    let (fast, checked) = (fast?, checked.transpose()?);
    let fast_object = match fast.outcome {
        Outcome::Compiled(object) => object,
        Outcome::Rejected(said) => {
            let outcome = Outcome::Rejected(externals::named(said));
            return Ok(without_product::<PathBuf, _>(Build { outcome, ..fast }));
        }
        outcome => return Ok(without_product(Build { outcome, ..fast })),
    };
    let checked = match checked {
        Some(Build { outcome: Outcome::Compiled(object), .. }) => Some(object),
        Some(build) => return Ok(without_product(build)),
        None => None,
    };
    let preprocessed = Some(Preprocessed::of(&text, left_in));
    let builds = HostBuilds { fast: fast_object, checked, preprocessed, omitted: BTreeSet::new(), _folder: folder };
    Ok(Build { outcome: Outcome::Compiled(builds), warnings: fast.warnings, wall: fast.wall })
}

/// heat.cu as the preprocessor leaves it.
fn preprocessed(gxx: &HostCompiler, folder: &Path, source: &str, stop: &Stop) -> Result<Build<String>> {
    let unwritable = "cannot write to the temporary folder";
    fs::write(folder.join(SOURCE_NAME), source).context(unwritable)?;
    write_headers(&folder.join("include")).context(unwritable)?;
    let finished = preprocess(gxx, folder, &[], stop)?;
    judge(&finished, source, folder, || left_by(folder))
}

/// The limit that g++ hits at a text even without hooks and without optimising, in a sentence: it is the text's doing then,
/// and a program could not be made of it on any machine. `None` where it takes the text, or rejects it.
pub fn too_much(gxx: &HostCompiler, source: &str, call: &str, host: HostCode, stop: &Stop) -> Result<Option<String>> {
    too_much_within(&Limits::default(), gxx, source, call, host, stop)
}

fn too_much_within(
    limits: &Limits,
    gxx: &HostCompiler,
    source: &str,
    call: &str,
    host: HostCode,
    stop: &Stop,
) -> Result<Option<String>> {
    let folder = scratch()?;
    let at = folder.path();
    let outcome = match preprocessed(gxx, at, source, stop)?.outcome {
        Outcome::Compiled(text) => {
            if let Some(sentence) = grown_too_large(&text) {
                return Ok(Some(sentence));
            }
            let text = to_cpp(&text, host) + &entry_point("hg_kernel", call);
            fs::write(at.join("plain.ii"), text).context("cannot write to the temporary folder")?;
            let plain = tool(gxx, at, stop).limits(limits.clone()).args(COMMON);
            let finished = plain.args(["-O0", "-S", "plain.ii", "-o", "plain.s"]).run()?;
            judge(&finished, source, at, || Ok(()))?.outcome
        }
        outcome => outcome.and_then(|_| Ok(Outcome::Compiled(())))?,
    };
    Ok(match outcome {
        Outcome::LimitHit { limit, sentence } if limit != Limit::Wall => Some(sentence),
        _ => None,
    })
}

/// The same outcome for a caller that wanted another product; only for outcomes without one.
fn without_product<T, U>(build: Build<T>) -> Build<U> {
    let outcome = match build.outcome {
        Outcome::Rejected(said) => Outcome::Rejected(said),
        Outcome::LimitHit { limit, sentence } => Outcome::LimitHit { limit, sentence },
        Outcome::Compiled(_) => Outcome::Rejected(Diagnostics::default()),
    };
    Build { outcome, warnings: build.warnings, wall: build.wall }
}

fn tool(gxx: &HostCompiler, folder: &Path, stop: &Stop) -> Tool {
    Tool::new(&gxx.gxx, folder).limits(Limits::default()).confined(gxx.folders()).unless(stop)
}

fn preprocess(gxx: &HostCompiler, folder: &Path, more: &[&str], stop: &Stop) -> Result<Finished> {
    tool(gxx, folder, stop)
        .args([
            "-E",
            MOST_ERRORS,
            "-x",
            "c++",
            "-std=c++17",
            // What it defines for a text to see is what nvcc's host compiler defines.
            "-O3",
            // Where a distribution turns it on, memcpy is a function of its headers'.
            "-U_FORTIFY_SOURCE",
            "-w",
            "-fno-diagnostics-show-caret",
            "-Iinclude",
            "-include",
            "cuda_runtime.h",
        ])
        .args(more.iter().copied())
        .args([SOURCE_NAME, "-o", "heat.ii"])
        .run()
}

/// What the preprocessor left in a folder.
fn left_by(folder: &Path) -> Result<String> {
    let bytes = fs::read(folder.join("heat.ii")).context("g++ left no preprocessed text")?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The lines of heat.cu that its conditions leave in for g++; `None` where it does not say.
fn left_in(gxx: &HostCompiler, folder: &Path, stop: &Stop) -> Result<Option<LeftIn>> {
    let finished = preprocess(gxx, folder, &["-fdirectives-only"], stop)?;
    finished.success().then(|| Ok(LeftIn::of(&left_by(folder)?))).transpose()
}

/// A function of a fixed name that calls the kernel.
fn entry_point(name: &str, call: &str) -> String {
    format!(
        "\n# 1 \"entry_point\"\nextern \"C\" __attribute__((visibility(\"default\"))) \
         void {name}(const float* in, float* out, int n, float r) {{ {call}(in, out, n, r); }}\n"
    )
}

/// Where a text is built.
struct Bench<'a> {
    shelf: &'a Shelf,
    gxx: &'a HostCompiler,
    folder: &'a Path,
    /// heat.cu, as submitted.
    source: &'a str,
    stop: &'a Stop,
}

impl Bench<'_> {
    fn write(&self, name: &str, text: &str) -> Result<()> {
        fs::write(self.folder.join(name), text).context("cannot write to the temporary folder")
    }

    fn tool(&self) -> Tool {
        tool(self.gxx, self.folder, self.stop)
    }

    fn key(&self, what: &str, flags: &[&str]) -> Key {
        flags.iter().fold(key_of_gxx(what, self.gxx).with(NO_CONSTRUCTORS), |key, flag| key.with(flag))
    }

    /// With the kernel as loops over its threads besides, where it can be cut at its barriers and g++ takes that.
    fn build_fast(&self, cpp: &str, call: &str) -> Result<Build<PathBuf>> {
        let object = self.folder.join("fast.so");
        let flags = [&COMMON[..], &FAST, &LINK].concat();
        let build = |text: &str, cpu: Duration| {
            once::object(self.shelf, &self.key("fast", &flags).with(text), object.clone(), || {
                self.write("fast.ii", text)?;
                let limits = Limits { cpu, ..Limits::default() };
                let finished =
                    self.tool().limits(limits).args(flags.clone()).args(["fast.ii", "-o", "fast.so"]).run()?;
                judge(&finished, self.source, self.folder, || Ok(object.clone()))
            })
        };
        let entry = entry_point("hg_kernel", call);
        if let Some(loops) = thread_loops(cpp, call) {
            let built =
                build(&[&loops.text, HOOKS, &entry, &entry_point("hg_block", &loops.call)].concat(), FOR_LOOPS)?;
            if matches!(built.outcome, Outcome::Compiled(_)) {
                return Ok(built);
            }
        }
        build(&[cpp, HOOKS, &entry].concat(), Limits::default().cpu)
    }

    fn build_checked(&self, cpp: &str, call: &str) -> Result<Build<PathBuf>> {
        let object = self.folder.join("checked.so");
        let flags = [&COMMON[..], &CHECKED].concat();
        let text = [cpp, HOOKS, HOOKS_CHECKED, &entry_point("hg_kernel", call)].concat();
        let key = self.key("checked", &[&flags[..], &LINK].concat()).with(&text);
        once::object(self.shelf, &key, object.clone(), || {
            let compiled = self.assembly(&text, &flags)?;
            let Outcome::Compiled((assembly, unseen)) = compiled.outcome else {
                return Ok(without_product(compiled));
            };
            let (assembly, notes) = self.with_all_hooks(text, &flags, assembly, unseen)?;
            self.write("checked.s", &(with_red_zones(&assembly) + &notes))?;
            let finished = self.tool().args(LINK).args(["checked.s", "-o", "checked.so"]).run()?;
            judge(&finished, self.source, self.folder, || Ok(object))
        })
    }

    /// The assembly of a text in which as few accesses as can be are unseen, and symbols for those that still are.
    fn with_all_hooks(
        &self,
        mut text: String,
        flags: &[&str],
        mut assembly: String,
        mut unseen: Unseen,
    ) -> Result<(String, String)> {
        let (with_variables, tables) = tables::writable(&text, &unseen.tables);
        if !tables.is_empty()
            && let Outcome::Compiled(better) = self.assembly(&with_variables, flags)?.outcome
        {
            (assembly, unseen) = better;
            text = with_variables;
        }
        if unseen.call.is_some() {
            let thorough = [flags, &INLINING].concat();
            let again = self.assembly(&inlined(&text).unwrap_or(text), &thorough)?;
            if let Outcome::Compiled(better) = again.outcome {
                (assembly, unseen) = better;
            }
        }
        let note = |symbol: &str, line: u32| format!("\t.globl\t{symbol}\n\t.set\t{symbol}, {line}\n");
        let mut notes = unseen.call.map_or_else(String::new, |line| note(UNSEEN_CALL, line));
        for (name, line) in tables {
            let still = unseen.tables.get(&name);
            notes += &note(&format!("{}{name}", if still.is_some() { UNSEEN_TABLE } else { TABLE }), line);
        }
        Ok((assembly, notes))
    }

    /// What g++ makes of a text with hooks, and what has none.
    fn assembly(&self, text: &str, flags: &[&str]) -> Result<Build<(String, Unseen)>> {
        self.write("checked.ii", text)?;
        let compiled = self.tool().args(flags.iter().copied()).args(["checked.ii", "-o", "checked.s"]).run()?;
        judge(&compiled, self.source, self.folder, || {
            let left = |name: &str| fs::read(self.folder.join(name)).with_context(|| format!("g++ left no {name}"));
            let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
            Ok((text(left("checked.s")?), Unseen::of(&text(left("checked.tsan")?))))
        })
    }
}

/// An object whose symbols are all there, so that a missing one shows now and not when it is loaded; and of which nothing
/// runs when it is loaded: constructors are out of the loader's sight, and the name of an initial function is nobody's. Calls
/// for memory go through hooks.inc.
const LINK: [&str; 15] = [
    "-shared",
    "-Wl,-z,defs",
    "-Wl,-z,now",
    "-Wl,-T,no_constructors.ld",
    "-Wl,-init=hg no initial function",
    "-Wl,--wrap=malloc",
    "-Wl,--wrap=calloc",
    "-Wl,--wrap=realloc",
    "-Wl,--wrap=free",
    "-Wl,--wrap=_Znwm",
    "-Wl,--wrap=_Znam",
    "-Wl,--wrap=_ZdlPv",
    "-Wl,--wrap=_ZdaPv",
    "-Wl,--wrap=_ZdlPvm",
    "-Wl,--wrap=_ZdaPvm",
];

/// Leaves a gap behind each object of the thread-local sections.
fn with_red_zones(assembly: &str) -> String {
    static OBJECT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?m)^\t\.zero\t\d+\n"));
    let mut out = String::with_capacity(assembly.len());
    for section in assembly.split_inclusive("\t.section\t") {
        if section.starts_with(".tbss") {
            let widen = |zeros: &Captures| format!("{}\t.zero\t{RED_ZONE}\n", &zeros[0]);
            out.push_str(&OBJECT.replace_all(section, widen));
        } else {
            out.push_str(section);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::toolkit::find_host_compiler;

    #[test]
    fn a_text_of_errors_is_rejected_by_its_first_ones_and_soon() {
        let text = "__global__ void k(const float*, float*, int, float) {}\n".to_owned() + &"bad bad;\n".repeat(20_000);
        let Some(gxx) = find_host_compiler().found() else { return };
        let started = Instant::now();
        let outcome = build(&gxx, &text, "k", Wanted::FastAndChecked, HostCode::Reached("k")).unwrap().outcome;
        let Outcome::Rejected(said) = outcome else { panic!("{outcome:?}") };
        assert_eq!((said.shown[0].line, said.shown.len()), (Some(2), 20));
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    }

    #[test]
    fn a_text_that_no_compiler_takes_is_told_from_one_that_is_only_hard_to_optimise() {
        let Some(gxx) = find_host_compiler().found() else { return };
        let told = |declaration: &str| {
            let text = format!("__global__ void k(const float*, float*, int, float) {{}}\n{declaration}\n");
            let limits = Limits { cpu: Duration::from_secs(2), ..Limits::default() };
            too_much_within(&limits, &gxx, &text, "k", HostCode::Reached("k"), &Stop::default()).unwrap()
        };
        let nested = |depth: usize| format!("int x = {}1{};", "- (".repeat(depth), ")".repeat(depth));
        assert_eq!(told(&nested(100)), None);
        assert_eq!(told("int x = y;"), None);
        assert!(told(&nested(200_000)).is_some_and(|said| said.contains("nested thousands deep")));
    }

    #[test]
    fn nothing_is_built_that_nobody_wants_any_more() {
        let Some(gxx) = find_host_compiler().found() else { return };
        let stop = Stop::default();
        stop.stop();
        let (shelf, text) = (Shelf::nowhere(), "__global__ void k(const float*, float*, int, float) {}\n");
        assert!(build_once(&shelf, &gxx, text, "k", Wanted::Fast, HostCode::Reached("k"), &stop).is_err());
    }

    #[test]
    fn red_zones_stand_behind_thread_local_objects_only() {
        let assembly =
            "\t.section\t.tbss,\"awT\"\na:\n\t.zero\t320\nb:\n\t.zero\t16\n\t.section\t.bss\nc:\n\t.zero\t8\n";
        let widened = with_red_zones(assembly);
        assert_eq!(widened.matches("\t.zero\t128\n").count(), 2);
        assert!(widened.ends_with("c:\n\t.zero\t8\n"));
    }
}
