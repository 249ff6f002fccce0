//! Which `__global__` function is the learner's, and how the end of heat.cu would call it.

use std::fmt;

use thiserror::Error;

use super::Kernel;
use super::arrivals::{Arrival, arrivals, completed};
use super::directive;
use super::program::{Function, Program, path_means};
use super::signature::{self, CONTRACT};
use super::sites::Sites;

/// The kernels that the lesson ships.
pub const SHIPPED: [&str; 3] = ["copyGrid", "heatStepGlobal", "heatStepTiled"];

/// A `__global__` function of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name, namespaces included.
    pub name: String,
    /// `(const float*, float*, int, float)`
    pub signature: String,
    /// Line of its definition, from 1.
    pub line: u32,
    /// Why it is not the learner's kernel; nothing when it may be.
    pub why_not: Option<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}{}", self.line, self.name, self.signature)?;
        match &self.why_not {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

/// Why there is no telling which kernel to grade.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum KernelFault {
    #[error("there is no __global__ function in heat.cu; add a kernel with the parameters {CONTRACT}")]
    NoKernel,
    #[error("no two-step kernel yet: heat.cu has only the kernels of the lesson; add yours with the parameters {CONTRACT}")]
    OnlyShipped { found: Vec<Found> },
    #[error("no __global__ function of heat.cu has the parameters {CONTRACT}")]
    NoneFits { found: Vec<Found> },
    #[error("{} kernels have the parameters {CONTRACT}; say which one is yours: // grader: kernel={}", found.len(), first_name(found))]
    Several { found: Vec<Found> },
    #[error("the template {name} is launched as {}; say which one is yours: // grader: kernel={}", instances.join(" and "), instances.first().map(String::as_str).unwrap_or_default())]
    SeveralInstances { name: String, line: u32, instances: Vec<String> },
    #[error("{name} is a template and nothing gives its arguments; launch it, or say them: // grader: kernel={name}<32, 8>")]
    NoInstance { name: String, line: u32 },
    #[error("line {line}: the directive names {name}, a kernel of the lesson; name your own")]
    DirectiveNamesShipped { name: String, line: u32 },
    #[error("line {line}: the directive names {name}, but heat.cu has no such kernel")]
    DirectiveNamesUnknown { name: String, line: u32, found: Vec<Found> },
    #[error("line {line}: the directive names {}, but {}", found.name, found.why_not.as_deref().unwrap_or_default())]
    DirectiveNamesUnfit { line: u32, found: Found },
    #[error("line {line}: the directive cannot be followed: {what}; the form is {}", directive::FORM)]
    BadDirective { line: u32, what: String },
}

impl KernelFault {
    /// Lines of detail: every kernel that was found, and why it does not count.
    pub fn details(&self) -> Vec<String> {
        match self {
            Self::OnlyShipped { found }
            | Self::NoneFits { found }
            | Self::Several { found }
            | Self::DirectiveNamesUnknown { found, .. } => found.iter().map(ToString::to_string).collect(),
            Self::DirectiveNamesUnfit { found, .. } => vec![found.to_string()],
            _ => Vec::new(),
        }
    }

    /// The line of heat.cu that it is about, from 1.
    pub fn line(&self) -> Option<u32> {
        match self {
            Self::NoKernel | Self::OnlyShipped { .. } => None,
            Self::NoneFits { found } | Self::Several { found } => found.first().map(|found| found.line),
            Self::SeveralInstances { line, .. }
            | Self::NoInstance { line, .. }
            | Self::DirectiveNamesShipped { line, .. }
            | Self::DirectiveNamesUnknown { line, .. }
            | Self::DirectiveNamesUnfit { line, .. }
            | Self::BadDirective { line, .. } => Some(*line),
        }
    }
}

fn first_name(found: &[Found]) -> &str {
    found.first().map(|found| found.name.as_str()).unwrap_or("NAME")
}

/// Finds the learner's kernel by the contract: parameters, name, and where several fit a directive or a launch.
pub fn find_kernel(program: &Program) -> Result<Kernel, KernelFault> {
    let read = directive::read(&program.comments);
    let directive = read.clone().unwrap_or_default();
    if let Some(named) = &directive.kernel {
        return directed(program, named, directive.line);
    }
    let kernels = kernels(program);
    let fitting: Vec<usize> = kernels.iter().filter(|(_, found)| found.why_not.is_none()).map(|(index, _)| *index).collect();
    let found = || kernels.iter().map(|(_, found)| found.clone()).collect::<Vec<_>>();
    match fitting.as_slice() {
        [] if kernels.is_empty() => Err(KernelFault::NoKernel),
        [] if kernels.iter().all(|(_, found)| is_shipped(&found.name)) => Err(KernelFault::OnlyShipped { found: found() }),
        [] => Err(KernelFault::NoneFits { found: found() }),
        [only] => instance(program, *only),
        several => match (launched(program, several).as_slice(), read) {
            ([only], _) => instance(program, *only),
            (_, Err(bad)) => Err(KernelFault::BadDirective { line: bad.line, what: bad.what }),
            _ => Err(KernelFault::Several { found: found().into_iter().filter(|found| found.why_not.is_none()).collect() }),
        },
    }
}

/// Every kernel of the text once, definitions before mere declarations, in the order of their lines.
fn kernels(program: &Program) -> Vec<(usize, Found)> {
    let mut kernels: Vec<(usize, Found)> = Vec::new();
    let globals = program.functions.iter().enumerate().filter(|(_, function)| function.global && !function.specialisation);
    let (defined, declared): (Vec<_>, Vec<_>) = globals.partition(|(_, function)| function.body.is_some());
    for (index, function) in defined.into_iter().chain(declared) {
        let found = found(program, function);
        let known = |other: &(usize, Found)| other.1.name == found.name && other.1.signature == found.signature;
        if kernels.len() < 64 && !kernels.iter().any(known) {
            kernels.push((index, found));
        }
    }
    kernels.sort_by_key(|(_, found)| found.line);
    kernels
}

fn found(program: &Program, function: &Function) -> Found {
    let why_not = if is_shipped(&function.path) {
        Some("shipped with the lesson".to_owned())
    } else {
        let undefined = || function.body.is_none().then(|| "it is declared but never defined".to_owned());
        signature::fault(program, function).or_else(undefined)
    };
    Found { name: function.path.to_string(), signature: signature::spelt(program, function), line: function.line, why_not }
}

fn is_shipped(path: &str) -> bool {
    SHIPPED.contains(&path.rsplit("::").next().unwrap_or_default())
}

/// The kernel that a directive names.
fn directed(program: &Program, named: &str, line: u32) -> Result<Kernel, KernelFault> {
    let (name, list) = match named.split_once('<') {
        Some((name, list)) => (name.trim(), Some(list.trim_end().trim_end_matches('>'))),
        None => (named.trim(), None),
    };
    let name = name.trim_start_matches("::");
    let kernels = kernels(program);
    let mut matching: Vec<_> = kernels.iter().filter(|(_, found)| path_means(name, &found.name)).collect();
    matching.sort_by_key(|(_, found)| found.why_not.is_some());
    match matching.as_slice() {
        _ if is_shipped(name) => Err(KernelFault::DirectiveNamesShipped { name: name.to_owned(), line }),
        [] => {
            let found = kernels.into_iter().map(|(_, found)| found).collect();
            Err(KernelFault::DirectiveNamesUnknown { name: name.to_owned(), line, found })
        }
        [(_, found), ..] if found.why_not.is_some() => Err(KernelFault::DirectiveNamesUnfit { line, found: found.clone() }),
        [(index, _), ..] => match (list, program.functions.get(*index)) {
            (Some(list), Some(function)) => Ok(called(function, &arguments_of(list))),
            _ => instance(program, *index),
        },
    }
}

fn arguments_of(list: &str) -> Vec<String> {
    let mut depth = 0i32;
    let parts = list.split(|c: char| {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && c == ','
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Those of `candidates` that the text launches; of those that it cannot launch without arguments, none if others can.
fn launched(program: &Program, candidates: &[usize]) -> Vec<usize> {
    let sites = Sites::of(program);
    let arrivals = arrivals(program, &sites);
    let launched = |reachable: bool| -> Vec<usize> {
        let hits = |index: &&usize| {
            arrivals.iter().any(|arrival| arrival.reachable >= reachable && same_kernel(program, arrival.kernel, **index))
        };
        candidates.iter().filter(hits).copied().collect()
    };
    let reached = launched(true);
    if reached.is_empty() { launched(false) } else { reached }
}

fn same_kernel(program: &Program, one: usize, other: usize) -> bool {
    let path = |index: usize| program.functions.get(index).map(|function| &function.path);
    one == other || path(one) == path(other)
}

/// The kernel with its template arguments, from its launches or defaults.
fn instance(program: &Program, index: usize) -> Result<Kernel, KernelFault> {
    let Some(function) = program.functions.get(index) else { return Err(KernelFault::NoKernel) };
    if function.template.is_none() {
        return Ok(called(function, &[]));
    }
    let (name, line) = (function.path.to_string(), function.line);
    let sites = Sites::of(program);
    let arrivals: Vec<Arrival> =
        arrivals(program, &sites).into_iter().filter(|arrival| same_kernel(program, arrival.kernel, index)).collect();
    let any_reachable = arrivals.iter().any(|arrival| arrival.reachable);
    let mut instances: Vec<Vec<String>> = Vec::new();
    for arrival in arrivals.iter().filter(|arrival| arrival.reachable || !any_reachable) {
        if let Some(arguments) = arrival.arguments.clone().filter(|arguments| !instances.contains(arguments)) {
            instances.push(arguments);
        }
    }
    match instances.as_slice() {
        [] => match completed(program, function, Vec::new()) {
            Some(arguments) => Ok(called(function, &arguments)),
            None => Err(KernelFault::NoInstance { name, line }),
        },
        [only] => Ok(called(function, only)),
        several => {
            let instances = several.iter().take(8).map(|arguments| call_text(function, arguments)).collect();
            Err(KernelFault::SeveralInstances { name, line, instances })
        }
    }
}

fn called(function: &Function, arguments: &[String]) -> Kernel {
    Kernel { name: function.path.to_string(), call: call_text(function, arguments), line: function.line }
}

/// `ns::twoStep<32, 8>`
pub fn call_text(function: &Function, arguments: &[String]) -> String {
    if arguments.is_empty() { function.path.to_string() } else { format!("{}<{}>", function.path, arguments.join(", ")) }
}
