//! How the kernel is launched for any n: by a directive, by the learner's own launch statement, or by default.

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use super::arrivals::{Arrival, arrivals, spelt};
use super::directive::{self, DEFAULT_BLOCK, DEFAULT_TILE, Directive};
use super::kernel::call_text;
use super::program::Program;
use super::reach::{Reached, Unfit, follow};
use super::sites::{Sites, Step};
use super::tree::Expression;
use super::value::Identity;
use super::{Geometry, Kernel, LaunchSource};

/// The sizes of the exercise: launches that agree for all of these are one launch.
const SIZES: [u32; 9] = [2048, 512, 260, 100, 3, 5, 35, 131, 1025];

/// The launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    pub source: LaunchSource,
    /// Line of the directive or launch statement, from 1.
    pub line: Option<u32>,
    /// The directive, or grid and block of the launch statement, as written.
    pub expression: Option<String>,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    /// Blocks of so many threads, one a tile of so many cells.
    Tiles { block: [u32; 3], tile: [u32; 2], shared: u32 },
    /// The launch statements of the kernel in the text.
    Statements { program: Arc<Program>, stated: Vec<Stated> },
}

/// One way to a launch statement, as [`Sites`] orders them, and the names that stand for n there.
#[derive(Clone, Debug)]
struct Stated {
    place: (usize, usize),
    choices: Vec<usize>,
    n: HashMap<Identity, i128>,
}

/// A way to a launch, ready to be followed.
struct Ready<'p> {
    launch: &'p Expression,
    way: Vec<Step<'p>>,
    choices: Vec<usize>,
    n: HashMap<Identity, i128>,
}

/// A launch of the text with its geometry for the fault's n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Line of the launch statement, from 1.
    pub line: u32,
    /// Grid and block as written.
    pub expression: String,
    pub geometry: Geometry,
}

/// Why there is no telling how to launch the kernel.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LaunchFault {
    #[error("line {line}: the directive cannot be followed: {what}; the form is {}", directive::FORM)]
    BadDirective { line: u32, what: String },
    #[error(
        "line {line}: the launch <<<{expression}>>> cannot be worked out: `{what}` (line {what_line}) {why}; settle it with a comment such as {settles}"
    )]
    CannotEvaluate { line: u32, expression: String, what: String, what_line: u32, why: String, settles: String },
    #[error("the kernel is launched in {} ways; keep one, or settle it with a comment such as {settles}", candidates.len())]
    Ambiguous {
        /// The n for which they differ, cells along one side.
        n: u32,
        candidates: Vec<Candidate>,
        settles: String,
    },
    #[error("line {line}: no launch can have the geometry <<<{expression}>>> for n = {n}: {what}")]
    Impossible { line: u32, expression: String, n: u32, what: String },
}

impl LaunchFault {
    /// Lines of detail: each launch, with its geometry for an n for which they differ.
    pub fn details(&self) -> Vec<String> {
        let Self::Ambiguous { n, candidates, .. } = self else { return Vec::new() };
        let line = |found: &Candidate| {
            format!("line {}: <<<{}>>> is {} for n = {n}", found.line, found.expression, shown(&found.geometry))
        };
        candidates.iter().map(line).collect()
    }

    /// The line of heat.cu that it is about, from 1.
    pub fn line(&self) -> Option<u32> {
        match self {
            Self::BadDirective { line, .. } | Self::CannotEvaluate { line, .. } | Self::Impossible { line, .. } => {
                Some(*line)
            }
            Self::Ambiguous { candidates, .. } => candidates.first().map(|found| found.line),
        }
    }
}

/// `64 x 256 blocks of 32 x 8 threads, 0 bytes of dynamic shared memory`
fn shown(geometry: &Geometry) -> String {
    let lengths = |of: [u32; 3]| match of {
        [x, y, 1] => format!("{x} x {y}"),
        [x, y, z] => format!("{x} x {y} x {z}"),
    };
    let (grid, block) = (lengths(geometry.grid), lengths(geometry.block));
    format!("{grid} blocks of {block} threads with {} bytes of dynamic shared memory", geometry.shared)
}

/// Finds the kernel's launch by the contract's three sources.
pub fn find_launch(program: &Arc<Program>, kernel: &Kernel) -> Result<Launch, LaunchFault> {
    let directive = directive::read(&program.comments)
        .map_err(|bad| LaunchFault::BadDirective { line: bad.line, what: bad.what })?;
    if directive.gives_launch() {
        return Ok(directed(directive));
    }
    let sites = Sites::of(program);
    let stated = of_kernel(program, &sites, &kernel.call);
    let ready = ready(&sites, &stated);
    let Some(first) = ready.first() else { return unfollowed(program, kernel).map_or_else(|| Ok(by_default()), Err) };
    agree(&sites, &ready)?;
    Ok(Launch {
        source: LaunchSource::LaunchStatement,
        line: Some(program.text.line(first.launch.at.start)),
        expression: Some(spelt(program, first.launch)),
        rule: Rule::Statements { program: program.clone(), stated },
    })
}

fn directed(directive: Directive) -> Launch {
    let block = directive.block.unwrap_or(DEFAULT_BLOCK);
    let tile = directive.tile.unwrap_or(DEFAULT_TILE);
    Launch {
        source: LaunchSource::Directive,
        line: Some(directive.line),
        expression: Some(directive.text),
        rule: Rule::Tiles { block, tile, shared: directive.shared.unwrap_or(0) },
    }
}

fn by_default() -> Launch {
    let rule = Rule::Tiles { block: DEFAULT_BLOCK, tile: DEFAULT_TILE, shared: 0 };
    Launch { source: LaunchSource::Default, line: None, expression: None, rule }
}

/// A launch statement of the text that no way of the program leads to, and that may be the kernel's: its callee is no
/// other kernel of the file. The default launch must not stand in for it silently.
fn unfollowed(program: &Program, kernel: &Kernel) -> Option<LaunchFault> {
    let tokens = &program.text.tokens;
    let own = kernel.name.rsplit("::").next().unwrap_or_default();
    let other =
        |name: &str| name != own && program.functions.iter().any(|function| function.global && &*function.name == name);
    let at =
        (0..tokens.len()).find(|&at| tokens[at].is("<<<") && callee(program, at).is_none_or(|name| !other(name)))?;
    let line = tokens[at].line;
    let spelt = tokens[at + 1..].iter().take_while(|token| !token.is(">>>")).take(MOST_SPELT);
    Some(LaunchFault::CannotEvaluate {
        line,
        expression: spelt.map(|token| &*token.text).collect::<Vec<_>>().join(" "),
        what: "<<<".to_owned(),
        what_line: line,
        why: "stands where the grader cannot follow the program to it".to_owned(),
        settles: settling(None),
    })
}

/// Tokens shown of a launch that is not followed.
const MOST_SPELT: usize = 40;

/// The name in front of a launch's `<<<`, template arguments left out.
fn callee(program: &Program, launch: usize) -> Option<&str> {
    let tokens = &program.text.tokens;
    let mut at = launch.checked_sub(1)?;
    if tokens[at].is(">") {
        at = (0..at).rev().take(MOST_SPELT).find(|&open| tokens[open].is("<"))?.checked_sub(1)?;
    }
    tokens[at].is_identifier().then_some(&*tokens[at].text)
}

/// The ways to launches of the kernel.
fn of_kernel(program: &Program, sites: &Sites<'_>, call: &str) -> Vec<Stated> {
    let is_of_kernel = |arrival: &Arrival| {
        let function = program.functions.get(arrival.kernel);
        let text = function.zip(arrival.arguments.as_ref()).map(|(function, arguments)| call_text(function, arguments));
        text.is_some_and(|text| without_spaces(&text) == without_spaces(call))
    };
    let of_kernel = arrivals(program, sites).into_iter().filter(is_of_kernel);
    of_kernel.map(|arrival| Stated { place: arrival.place, choices: arrival.choices, n: arrival.n }).collect()
}

fn ready<'p>(sites: &Sites<'p>, stated: &[Stated]) -> Vec<Ready<'p>> {
    let find = |stated: &Stated| {
        let node = sites.launches.get(stated.place.0)?;
        let way = sites.ways(node).into_iter().nth(stated.place.1)?;
        Some(Ready { launch: node.expression, way, choices: stated.choices.clone(), n: stated.n.clone() })
    };
    stated.iter().filter_map(find).collect()
}

fn without_spaces(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Fails when two launches differ for a size of the exercise, or when one cannot be worked out for n = 2048.
fn agree(sites: &Sites<'_>, found: &[Ready<'_>]) -> Result<(), LaunchFault> {
    // A single launch agrees with itself.
    let sizes = if found.len() == 1 { 1 } else { SIZES.len() };
    for (place, n) in SIZES.into_iter().take(sizes).enumerate() {
        let mut reached = reached(sites, found, n);
        if place == 0
            && let Some((arrival, Err(unfit))) = reached.iter().find(|(_, geometry)| geometry.is_err())
        {
            return Err(fault(sites.program, arrival, n, unfit));
        }
        reached.retain(|(_, geometry)| !matches!(geometry, Err(Unfit::Unknown(_))));
        let first = reached.first().map(|(_, geometry)| geometry);
        if reached.iter().any(|(_, geometry)| Some(geometry) != first) {
            return Err(ambiguous(sites, found, n));
        }
    }
    Ok(())
}

type Outcome<'a, 'p> = (&'a Ready<'p>, Result<Geometry, Unfit>);

/// The launch at the end of a way, for this n.
fn arrive(sites: &Sites<'_>, arrival: &Ready<'_>, n: u32) -> Reached {
    follow(sites, (&arrival.way, &arrival.choices), arrival.launch, arrival.n.clone(), Some(n))
}

/// The geometry of every launch that the program reaches for this n; of all, if it reaches none.
fn reached<'a, 'p>(sites: &Sites<'_>, found: &'a [Ready<'p>], n: u32) -> Vec<Outcome<'a, 'p>> {
    let outcomes: Vec<(bool, Outcome)> = found
        .iter()
        .map(|arrival| {
            let reached = arrive(sites, arrival, n);
            (reached.reachable, (arrival, reached.geometry()))
        })
        .collect();
    let any = outcomes.iter().any(|(reachable, _)| *reachable);
    outcomes.into_iter().filter(|(reachable, _)| *reachable || !any).map(|(_, outcome)| outcome).collect()
}

fn ambiguous(sites: &Sites<'_>, found: &[Ready<'_>], n: u32) -> LaunchFault {
    let mut candidates: Vec<Candidate> = Vec::new();
    for (arrival, geometry) in reached(sites, found, n) {
        let Ok(geometry) = geometry else { continue };
        let line = sites.program.text.line(arrival.launch.at.start);
        let known = candidates.iter().any(|other| other.line == line && other.geometry == geometry);
        if candidates.len() < 12 && !known {
            candidates.push(Candidate { line, expression: spelt(sites.program, arrival.launch), geometry });
        }
    }
    let settles = settling(candidates.first().map(|found| found.geometry.block));
    LaunchFault::Ambiguous { n, candidates, settles }
}

/// A directive that would settle the launch.
fn settling(block: Option<[u32; 3]>) -> String {
    match block {
        Some([x, y, 1]) if x > 0 && y > 0 => format!("// grader: block={x}x{y} tile=32x8"),
        _ => "// grader: block=32x8 tile=32x8".to_owned(),
    }
}

fn fault(program: &Program, arrival: &Ready<'_>, n: u32, unfit: &Unfit) -> LaunchFault {
    let line = program.text.line(arrival.launch.at.start);
    let expression = spelt(program, arrival.launch);
    match unfit {
        Unfit::Impossible(what) => LaunchFault::Impossible { line, expression, n, what: what.clone() },
        Unfit::Unknown(unknown) => LaunchFault::CannotEvaluate {
            line,
            expression,
            what: unknown.what.clone(),
            what_line: unknown.line,
            why: unknown.why.to_owned(),
            settles: settling(None),
        },
    }
}

impl Launch {
    /// Grid, block and dynamic shared memory for an n x n grid.
    pub fn geometry(&self, n: u32) -> Result<Geometry, LaunchFault> {
        match &self.rule {
            Rule::Tiles { block, tile: [x, y], shared } => {
                let interior = n.saturating_sub(2);
                let grid = [interior.div_ceil((*x).max(1)), interior.div_ceil((*y).max(1)), 1];
                Ok(Geometry { grid, block: *block, shared: *shared })
            }
            Rule::Statements { program, stated } => from_statements(program, stated, n),
        }
    }

    /// The line of a launch that the program makes for another n, where it makes none for this one.
    pub fn skipped_at(&self, n: u32) -> Option<u32> {
        match &self.rule {
            Rule::Tiles { .. } => None,
            Rule::Statements { program, stated } => skipped(program, stated, n),
        }
    }
}

/// The line of a launch that is made for another size of the exercise, where none is for this one.
fn skipped(program: &Program, stated: &[Stated], n: u32) -> Option<u32> {
    let sites = Sites::of(program);
    let ready = ready(&sites, stated);
    let at = |arrival: &Ready<'_>, n: u32| arrive(&sites, arrival, n).reachable;
    let elsewhere = |arrival: &Ready<'_>| SIZES.into_iter().any(|other| other != n && at(arrival, other));
    if ready.iter().any(|arrival| at(arrival, n)) {
        return None;
    }
    ready.iter().find(|arrival| elsewhere(arrival)).map(|arrival| program.text.line(arrival.launch.at.start))
}

fn from_statements(program: &Program, stated: &[Stated], n: u32) -> Result<Geometry, LaunchFault> {
    let sites = Sites::of(program);
    let ready = ready(&sites, stated);
    let outcomes = reached(&sites, &ready, n);
    let Some((arrival, first)) = outcomes.first() else {
        return Err(LaunchFault::Impossible { line: 0, expression: String::new(), n, what: "it is gone".to_owned() });
    };
    if outcomes.iter().any(|(_, geometry)| geometry != first) {
        return Err(ambiguous(&sites, &ready, n));
    }
    first.clone().map_err(|unfit| fault(sites.program, arrival, n, &unfit))
}
