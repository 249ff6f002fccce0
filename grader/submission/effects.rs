//! What code changes that is not followed: its assignments, what it passes on by reference, and the same of every
//! function that it calls.

use std::collections::HashMap;
use std::sync::Arc;

use super::collector::Collector;
use super::containers::ITEM;
use super::interpreter::Interpreter;
use super::program::{Function, Program};
use super::tree::{Expression, ExpressionKind, Operator, Statement};
use super::types::Base;
use super::walk;

/// Part of a variable: `config.block` is `block` of `config`. What an index picks is not told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub root: Arc<str>,
    pub path: Vec<Arc<str>>,
    /// Whether by `++` or `--`, which a struct may define.
    pub step: bool,
}

/// What some statements change.
#[derive(Default)]
pub struct Effects {
    pub touched: Vec<Touched>,
    /// Whether they may return from the function.
    pub returns: bool,
    /// Whether they change more than was kept.
    pub more: bool,
}

/// What a function changes: of a parameter by its place, of its object, or of a variable outside functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    Parameter(usize),
    Own,
    Global(Arc<str>),
    /// More than was kept.
    More,
}

pub type FunctionEffects = Arc<[(Of, Vec<Arc<str>>)]>;

/// Calls within calls, and places that one piece of code changes.
pub const DEPTH: u32 = 6;
pub const MOST: usize = 400;

/// Functions of the library that change what they are given by reference.
const BY_REFERENCE: [&str; 12] = [
    "swap",
    "exchange",
    "from_chars",
    "getline",
    "tie",
    "iter_swap",
    "getopt",
    "sort",
    "fill",
    "iota",
    "copy",
    "advance",
];
/// Members of the library's types that change nothing.
const CONSTANT: [&str; 24] = [
    "size",
    "empty",
    "at",
    "front",
    "back",
    "begin",
    "end",
    "cbegin",
    "cend",
    "c_str",
    "get",
    "value",
    "value_or",
    "has_value",
    "data",
    "count",
    "find",
    "length",
    "str",
    "substr",
    "compare",
    "contains",
    "first",
    "second",
];

pub fn is_by_reference(function: &str) -> bool {
    BY_REFERENCE.contains(&function)
}

pub fn is_constant_member(function: &str) -> bool {
    CONSTANT.contains(&function)
}

impl Interpreter<'_> {
    pub fn effects(&mut self, statements: &[&Statement]) -> Effects {
        self.collected(|collector| statements.iter().for_each(|statement| walk::statement(statement, collector)))
    }

    /// What an expression changes.
    pub fn effects_of_expression(&mut self, expression: &Expression) -> Effects {
        self.collected(|collector| walk::expression(expression, collector))
    }

    fn collected<'p>(&mut self, visit: impl FnOnce(&mut Collector<'_, '_, 'p>)) -> Effects {
        let mut known = std::mem::take(&mut self.known_effects);
        let mut collector = Collector::new(self.program, &mut known, 0);
        collector.variables = Some(self);
        visit(&mut collector);
        let effects = Effects { touched: collector.touched, returns: collector.returns, more: collector.more };
        self.known_effects = known;
        effects
    }

    /// What a function of the text changes.
    pub fn effects_of_function(&mut self, index: usize) -> FunctionEffects {
        of_function(self.program, index, &mut self.known_effects, 0)
    }
}

/// What a function changes, worked out once.
pub fn of_function(
    program: &Program,
    index: usize,
    known: &mut HashMap<usize, FunctionEffects>,
    depth: u32,
) -> FunctionEffects {
    if let Some(found) = known.get(&index) {
        return found.clone();
    }
    let nothing = || FunctionEffects::from(Vec::new());
    let Some((function, body)) = program.functions.get(index).and_then(|f| f.body.as_ref().map(|body| (f, body)))
    else {
        return nothing();
    };
    if depth >= DEPTH || function.global {
        return nothing();
    }
    // A function that calls itself changes what its other statements do.
    known.insert(index, nothing());
    let mut collector = Collector::new(program, known, depth);
    walk::statement(body, &mut collector);
    let (touched, locals) = (collector.touched, collector.locals);
    let mut effects: Vec<(Of, Vec<Arc<str>>)> = Vec::new();
    effects.extend(collector.more.then(|| (Of::More, Vec::new())));
    for Touched { root, path, .. } in touched {
        let effect = classified(program, function, &locals, root, path);
        effects.extend(effect.filter(|effect| !effects.contains(effect)));
    }
    let effects = FunctionEffects::from(effects);
    known.insert(index, effects.clone());
    effects
}

fn classified(
    program: &Program,
    function: &Function,
    locals: &[Arc<str>],
    root: Arc<str>,
    mut path: Vec<Arc<str>>,
) -> Option<(Of, Vec<Arc<str>>)> {
    let parameters = function.parameters.as_deref().unwrap_or_default();
    if let Some(place) = parameters.iter().position(|parameter| parameter.name.as_ref() == Some(&root)) {
        let kind = &parameters.get(place)?.kind;
        let reaches = kind.reference || !kind.pointers.is_empty();
        return reaches.then_some((Of::Parameter(place), path));
    }
    if locals.contains(&root) {
        return None;
    }
    if &*root == "this" {
        return Some((Of::Own, path));
    }
    if function.owner.as_ref().is_some_and(|owner| has_member(program, owner, &root, 0)) {
        path.insert(0, root);
        return Some((Of::Own, path));
    }
    Some((Of::Global(root), path))
}

fn has_member(program: &Program, owner: &str, member: &str, depth: u32) -> bool {
    let Some(found) = program.structs.get(owner) else { return false };
    found.members.iter().any(|declared| &*declared.name == member)
        || depth < 8
            && found.bases.iter().take(8).any(|base| match &base.base {
                Base::Named(path) => {
                    has_member(program, path.rsplit("::").next().unwrap_or_default(), member, depth + 1)
                }
                _ => false,
            })
}

/// The variables at the bottom of `a.b[i]`, `*a`, `&a`, `cond ? a : b`, with the members on the way.
pub fn roots_of(place: &Expression, roots: &mut Vec<(Arc<str>, Vec<Arc<str>>)>) {
    if roots.len() >= MOST {
        return;
    }
    match &place.kind {
        ExpressionKind::Name(name) => roots.push((name.path.clone(), Vec::new())),
        ExpressionKind::Member(object, member) => {
            let begin = roots.len();
            roots_of(object, roots);
            let through_index = !is_plain(object);
            for (_, path) in roots.iter_mut().skip(begin).filter(|_| !through_index) {
                path.push(member.path.clone());
            }
        }
        ExpressionKind::Index(part, _) => {
            let begin = roots.len();
            roots_of(part, roots);
            for (_, path) in roots.iter_mut().skip(begin).filter(|_| is_plain(part)) {
                path.push(ITEM.into());
            }
        }
        ExpressionKind::Unary('*' | '&', part)
        | ExpressionKind::Cast(_, part)
        | ExpressionKind::Step { place: part, .. } => roots_of(part, roots),
        ExpressionKind::Binary(Operator::Add | Operator::Subtract, left, _) => roots_of(left, roots),
        ExpressionKind::Conditional(_, then, otherwise) => {
            roots_of(then, roots);
            roots_of(otherwise, roots);
        }
        ExpressionKind::Assign(_, left, _) => roots_of(left, roots),
        ExpressionKind::Comma(items) => items.last().into_iter().for_each(|item| roots_of(item, roots)),
        ExpressionKind::Call(callee, arguments) => {
            if let ExpressionKind::Member(object, _) = &callee.kind {
                roots_of(object, roots);
            }
            arguments.iter().for_each(|argument| roots_of(argument, roots));
        }
        ExpressionKind::Construct(_, arguments) => arguments.iter().for_each(|argument| roots_of(argument, roots)),
        _ => {}
    }
}

/// Whether a place is made of names and members only.
fn is_plain(place: &Expression) -> bool {
    match &place.kind {
        ExpressionKind::Name(_) => true,
        ExpressionKind::Member(part, _) | ExpressionKind::Unary('*' | '&', part) | ExpressionKind::Cast(_, part) => {
            is_plain(part)
        }
        _ => false,
    }
}
