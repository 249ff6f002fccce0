//! What code changes that is not followed: its assignments, what it passes on by reference, and the same of every
//! function that it calls.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::interpreter::Interpreter;
use super::program::{Function, Program};
use super::sites::callee_name;
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Operator, Statement, StatementKind};
use super::types::Base;
use super::value::Data;
use super::walk::{self, Visitor};

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
}

/// What a function changes: of a parameter by its place, of its object, or of a variable outside functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    Parameter(usize),
    Own,
    Global(Arc<str>),
}

pub type FunctionEffects = Arc<[(Of, Vec<Arc<str>>)]>;

/// Calls within calls, and places that one piece of code changes.
const DEPTH: u32 = 6;
const MOST: usize = 400;

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
        let effects = Effects { touched: collector.touched, returns: collector.returns };
        self.known_effects = known;
        effects
    }

    /// What a function of the text changes.
    pub fn effects_of_function(&mut self, index: usize) -> FunctionEffects {
        of_function(self.program, index, &mut self.known_effects, 0)
    }
}

/// What a function changes, worked out once.
fn of_function(
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

struct Collector<'a, 'i, 'p> {
    program: &'i Program,
    /// The variables in scope, when the code stands in the frame being followed.
    variables: Option<&'a Interpreter<'i>>,
    known: &'a mut HashMap<usize, FunctionEffects>,
    depth: u32,
    touched: Vec<Touched>,
    returns: bool,
    /// References and pointers among the locals, and what they lead to.
    aliases: HashMap<Arc<str>, &'p Expression>,
    locals: Vec<Arc<str>>,
    /// Arguments of launches, whose addresses nobody writes to.
    left_alone: Vec<Range<usize>>,
}

impl<'i, 'p> Collector<'_, 'i, 'p> {
    fn touch(&mut self, place: &'p Expression, more: &[Arc<str>], step: bool) {
        let mut roots = Vec::new();
        roots_of(place, &mut roots);
        for (root, mut path) in roots {
            path.extend(more.iter().cloned());
            self.touch_root(root, path, step, 0);
        }
    }

    fn touch_root(&mut self, root: Arc<str>, path: Vec<Arc<str>>, step: bool, depth: u32) {
        if let Some(target) = self.aliases.get(&root).copied().filter(|_| depth < 4) {
            let mut roots = Vec::new();
            roots_of(target, &mut roots);
            for (outer, mut whole) in roots.into_iter().filter(|(outer, _)| *outer != root) {
                whole.extend(path.iter().cloned());
                self.touch_root(outer, whole, step, depth + 1);
            }
        }
        let touched = Touched { root, path, step };
        if self.touched.len() < MOST && !self.touched.contains(&touched) {
            self.touched.push(touched);
        }
    }

    fn call(&mut self, callee: &'p Expression, arguments: &'p [Expression]) {
        let Some(name) = callee_name(callee) else { return };
        if name.starts_with("cudaLaunch") || name.starts_with("cudaOccupancy") && arguments.is_empty() {
            self.left_alone.extend(arguments.iter().map(|argument| argument.at.clone()));
            return;
        }
        let object = match &callee.kind {
            ExpressionKind::Member(object, _) => Some(&**object),
            _ => None,
        };
        let path = match &callee.kind {
            ExpressionKind::Name(name) => &*name.path,
            _ => name,
        };
        let functions: Vec<usize> =
            self.program.functions_named(path).filter(|(_, f)| f.body.is_some()).map(|found| found.0).take(8).collect();
        if !functions.is_empty() {
            // What is done with addresses shows in the functions.
            self.left_alone.extend(arguments.iter().filter(|argument| is_address(argument)).map(|a| a.at.clone()));
        }
        for index in &functions {
            self.called(*index, object, arguments);
        }
        let from_scope = self.variable(path);
        match from_scope {
            Some(Data::Lambda(lambda, ..)) => self.lambda(&lambda.body),
            Some(Data::Object { .. }) => {
                for (index, _) in self.program.functions_named("operator()").take(8).collect::<Vec<_>>() {
                    self.called(index, Some(callee), arguments);
                }
            }
            _ => {}
        }
        if functions.is_empty() {
            self.library_call(name, object, arguments);
        }
    }

    fn library_call(&mut self, name: &str, object: Option<&'p Expression>, arguments: &'p [Expression]) {
        if let Some(object) = object.filter(|_| !is_constant_member(name)) {
            self.touch(object, &[], false);
        }
        for argument in arguments {
            if is_by_reference(name) {
                self.touch(argument, &[], false);
            } else if let ExpressionKind::Name(passed) = &argument.kind
                && let Some(Data::Lambda(lambda, ..)) = self.variable(&passed.path)
            {
                self.lambda(&lambda.body);
            }
        }
    }

    fn called(&mut self, index: usize, object: Option<&'p Expression>, arguments: &'p [Expression]) {
        let effects = of_function(self.program, index, self.known, self.depth + 1);
        for (of, path) in effects.iter() {
            match of {
                Of::Parameter(place) => {
                    if let Some(argument) = arguments.get(*place) {
                        self.touch(argument, path, false);
                    }
                }
                Of::Own => match object {
                    Some(object) => self.touch(object, path, false),
                    None => self.touch_root("this".into(), path.clone(), false, 0),
                },
                Of::Global(name) => self.touch_root(name.clone(), path.clone(), false, 0),
            }
        }
    }

    /// What a variable in scope holds, if a lambda or an object.
    fn variable(&self, name: &str) -> Option<Data> {
        let interpreter = self.variables?;
        let place = interpreter.slot_place(name)?;
        let data = &interpreter.kept(&place)?.data;
        matches!(data, Data::Lambda(..) | Data::Object { .. }).then(|| data.clone())
    }

    /// A lambda that may be called.
    fn lambda(&mut self, body: &Statement) {
        if self.depth >= DEPTH {
            return;
        }
        let mut inner = Collector::new(self.program, self.known, self.depth + 1);
        inner.variables = self.variables;
        walk::statement(body, &mut inner);
        for touched in inner.touched {
            self.touch_root(touched.root, touched.path, touched.step, 0);
        }
    }
}

impl<'p> Visitor<'p> for Collector<'_, '_, 'p> {
    fn statement(&mut self, statement: &'p Statement) {
        match &statement.kind {
            StatementKind::Return(_) => self.returns = true,
            StatementKind::ForEach { name, range, reference, .. } => {
                self.locals.push(name.clone());
                if *reference {
                    self.aliases.insert(name.clone(), range);
                }
            }
            StatementKind::Bind { names, value, reference } => {
                for (name, _) in names {
                    self.locals.push(name.clone());
                    if *reference {
                        self.aliases.insert(name.clone(), value);
                    }
                }
            }
            StatementKind::Unread => {
                for root in unread_places(self.program, statement) {
                    self.touch_root(root, Vec::new(), false, 0);
                }
            }
            _ => {}
        }
    }

    fn declare(&mut self, declared: &'p Declarator) {
        self.locals.push(declared.name.clone());
        let leads = declared.kind.reference || !declared.kind.pointers.is_empty() || declared.kind.base == Base::Auto;
        let value = match &declared.initial {
            Some(Initial::Value(value)) => Some(value),
            Some(Initial::Arguments(items)) => items.first().map(|item| &item.1),
            None => None,
        };
        if let Some(value) = value.filter(|_| leads && !declared.kind.constant) {
            self.aliases.insert(declared.name.clone(), value);
        }
    }

    fn enter(&mut self, expression: &'p Expression) {
        match &expression.kind {
            ExpressionKind::Assign(_, place, _) => match &place.kind {
                ExpressionKind::Call(callee, places) if callee_name(callee) == Some("tie") => {
                    places.iter().for_each(|place| self.touch(place, &[], false));
                }
                _ => self.touch(place, &[], false),
            },
            ExpressionKind::Step { place, .. } => self.touch(place, &[], true),
            ExpressionKind::Unary('&', place) => {
                let left_alone =
                    self.left_alone.iter().rev().take(64).any(|range| range.contains(&expression.at.start));
                if !left_alone {
                    self.touch(place, &[], false);
                }
            }
            ExpressionKind::Binary(Operator::ShiftRight, left, right) if reads_stream(left) => {
                self.touch(right, &[], false);
            }
            ExpressionKind::Call(callee, arguments) => self.call(callee, arguments),
            _ => {}
        }
    }
}

impl<'a, 'i> Collector<'a, 'i, '_> {
    fn new(program: &'i Program, known: &'a mut HashMap<usize, FunctionEffects>, depth: u32) -> Self {
        Self {
            program,
            variables: None,
            known,
            depth,
            touched: Vec::new(),
            returns: false,
            aliases: HashMap::new(),
            locals: Vec::new(),
            left_alone: Vec::new(),
        }
    }
}

/// Whether something is read out of it: `std::cin`, or a variable that is no number for sure.
fn reads_stream(left: &Expression) -> bool {
    match &left.kind {
        ExpressionKind::Name(_) => true,
        ExpressionKind::Binary(Operator::ShiftRight, left, _) => reads_stream(left),
        _ => false,
    }
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
        ExpressionKind::Unary('*' | '&', part)
        | ExpressionKind::Cast(_, part)
        | ExpressionKind::Index(part, _)
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

fn is_address(argument: &Expression) -> bool {
    matches!(argument.kind, ExpressionKind::Unary('&', _))
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

/// The names that a statement without a tree may change: those before an assignment, after `&`, with a call on them.
fn unread_places(program: &Program, statement: &Statement) -> Vec<Arc<str>> {
    let text = &program.text;
    let changes = |at: usize| {
        let mut after = at + 1;
        if at.checked_sub(1).is_some_and(|before| text.is(before, ".") || text.is(before, "->")) {
            return false;
        }
        while text.is(after, ".") || text.is(after, "->") || text.is(after, "[") {
            after = if text.is(after, "[") { text.partner(after) + 1 } else { after + 2 };
        }
        let called = after > at + 1 && text.is(after, "(");
        let next = text.tokens.get(after).map(|token| &*token.text).unwrap_or_default();
        let assigned =
            matches!(next, "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "<<=" | ">>=" | "&=" | "|=" | "^=" | "++" | "--");
        let before = at.checked_sub(1).and_then(|at| text.tokens.get(at)).map(|token| &*token.text);
        assigned || called || matches!(before, Some("&" | "++" | "--" | ">>"))
    };
    let names =
        statement.at.clone().filter(|at| text.tokens.get(*at).is_some_and(|t| t.is_identifier()) && changes(*at));
    names.take(MOST).filter_map(|at| Some(text.tokens.get(at)?.text.clone())).collect()
}
