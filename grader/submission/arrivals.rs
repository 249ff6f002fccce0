//! Launches as the text itself has them: which kernel each reaches, and which names its third argument came from.

use std::collections::HashMap;

use super::arithmetic::literal;
use super::interpreter::Interpreter;
use super::lexer::lex;
use super::parser::{Parser, Text};
use super::program::{Function, Program};
use super::reach::{Reached, follow};
use super::signature;
use super::sites::{Sites, callee_name};
use super::tree::{Expression, ExpressionKind};
use super::twins;
use super::types::{Base, Type};
use super::value::Identity;

/// Ways to launches of kernels that are looked at.
const ARRIVALS: usize = 40;
/// Turns of loops over tables that are taken on one way.
const CHOICES: usize = 24;

/// One way to one launch.
pub struct Arrival {
    /// Which launch and which of its ways, as [`Sites`] orders them.
    pub place: (usize, usize),
    /// Which turn of each loop over a table of launches.
    pub choices: Vec<usize>,
    /// Whether the conditions on the way hold when the program runs without arguments.
    pub reachable: bool,
    /// Index of the kernel.
    pub kernel: usize,
    /// Its template arguments, completed with defaults and deduced types; nothing when some are missing.
    pub arguments: Option<Vec<String>>,
    /// The names that stand for n, or for n less a number.
    pub n: HashMap<Identity, i128>,
}

/// Every way to every launch of a kernel of the text.
pub fn arrivals(program: &Program, sites: &Sites<'_>) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for (index, node) in sites.launches.iter().enumerate() {
        for (way_index, way) in sites.ways(node).into_iter().enumerate() {
            let at = |choices: &[usize]| follow(sites, (&way, choices), node.expression, HashMap::new(), None);
            let first = at(&[]);
            let others: Vec<Vec<usize>> = choices(&first.choice_counts).into_iter().skip(1).collect();
            arrivals.extend(arrival(program, (index, way_index), Vec::new(), first));
            for choices in others {
                let reached = at(&choices);
                arrivals.extend(arrival(program, (index, way_index), choices, reached));
            }
        }
        if arrivals.len() >= ARRIVALS {
            break;
        }
    }
    arrivals
}

/// Every way to pick one turn of each loop.
fn choices(counts: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &count in counts {
        let longer = all.iter().flat_map(|chosen| (0..count).map(move |turn| [chosen.as_slice(), &[turn]].concat()));
        all = longer.take(CHOICES).collect();
    }
    all
}

fn arrival(program: &Program, place: (usize, usize), choices: Vec<usize>, reached: Reached) -> Option<Arrival> {
    let (kernel, written) = reached.kernel?;
    let function = program.functions.get(kernel).filter(|function| function.global)?;
    let arguments = completed(program, function, written.unwrap_or_default());
    let mut n = HashMap::new();
    for (name, distance) in reached.n.into_iter().flat_map(|n| n.origin) {
        n.entry(name).or_insert(distance);
    }
    twins::add(program, &mut n);
    Some(Arrival { place, choices, reachable: reached.reachable, kernel, arguments, n })
}

/// Template arguments with what was not written: defaults, and float or int for types.
pub fn completed(program: &Program, function: &Function, mut written: Vec<String>) -> Option<Vec<String>> {
    let Some(parameters) = &function.template else { return Some(Vec::new()) };
    let mut interpreter = Interpreter::new(program);
    for (place, parameter) in parameters.iter().enumerate() {
        if written.len() <= place {
            let kind = parameter.default_kind.as_ref().map(|kind| interpreter.resolved(kind));
            let kind = kind.map(|kind| interpreter.spelt_type(&kind));
            let default = kind.or_else(|| parameter.default_at.clone().map(|at| program.text.spelling(at)));
            let value = parameter.default.as_ref().and_then(|value| interpreter.evaluate(value).as_integer());
            let deduced = || parameter.name.as_deref().and_then(|name| signature::deduced_type(function, name));
            let given = value.map(|value| value.to_string());
            // What can be deduced is, whatever the default.
            written.push(deduced().filter(|_| parameter.is_type).or(given).or(default)?);
        }
        if let (true, Some(name), Some(frame)) = (parameter.is_type, &parameter.name, interpreter.frame()) {
            frame
                .types
                .extend(written.get(place).and_then(|text| type_of(program, text)).map(|kind| (name.clone(), kind)));
        }
        let value = written.get(place).and_then(|text| literal(text));
        if let (Some(name), Some(value)) = (&parameter.name, value) {
            interpreter.declare(name.clone(), parameter.name_at, Type::of(Base::Auto), value);
        }
    }
    Some(written)
}

/// A type as a template argument spells it.
fn type_of(program: &Program, spelt: &str) -> Option<Type> {
    let text = Text::with_split_angles(lex(spelt).tokens);
    Parser::new(&text, &program.names, 0, text.tokens.len()).type_name()
}

/// Grid and block of a launch as written.
pub fn spelt(program: &Program, launch: &Expression) -> String {
    let spelling = |parts: &[&Expression]| {
        let texts: Vec<String> = parts.iter().map(|part| program.text.spelling(part.at.clone())).collect();
        texts.join(", ")
    };
    match &launch.kind {
        ExpressionKind::Launch(found) => spelling(&found.configuration.iter().take(3).collect::<Vec<_>>()),
        ExpressionKind::Call(callee, arguments) => {
            let by_config = callee_name(callee).is_some_and(|name| name.starts_with("cudaLaunchKernelEx"));
            match arguments.as_slice() {
                [config, ..] if by_config => spelling(&[config]),
                [_, grid, block, ..] => spelling(&[grid, block]),
                _ => String::new(),
            }
        }
        _ => program.text.spelling(launch.at.clone()),
    }
}
