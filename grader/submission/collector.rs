//! Walking code for what it changes: assignments, addresses, calls.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::containers::ITEM;
use super::destructors::destructors;
use super::effects::{
    DEPTH, FunctionEffects, MOST, Of, Touched, is_by_reference, is_constant_member, of_function, roots_of,
};
use super::execute::is_static;
use super::interpreter::Interpreter;
use super::overloads::base_name;
use super::program::Program;
use super::sites::callee_name;
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Operator, Statement, StatementKind};
use super::types::Base;
use super::value::Data;
use super::walk::{self, Visitor};

/// Collects what is changed, on a walk.
pub struct Collector<'a, 'i, 'p> {
    pub program: &'i Program,
    /// The variables in scope, when the code stands in the frame being followed.
    pub variables: Option<&'a Interpreter<'i>>,
    known: &'a mut HashMap<usize, FunctionEffects>,
    depth: u32,
    pub touched: Vec<Touched>,
    pub returns: bool,
    /// Whether more is changed than was kept.
    pub more: bool,
    /// References and pointers among the locals, and what they lead to.
    aliases: HashMap<Arc<str>, &'p Expression>,
    /// Those of them that lead to an item of what is walked through.
    items: HashSet<Arc<str>>,
    pub locals: Vec<Arc<str>>,
    /// Static variables among them, and the names that they are known by outside.
    statics: HashMap<Arc<str>, Arc<str>>,
    /// Arguments of launches, whose addresses nobody writes to.
    left_alone: Vec<Range<usize>>,
}

impl<'i, 'p> Collector<'_, 'i, 'p> {
    fn touch(&mut self, place: &'p Expression, more: &[Arc<str>], step: bool) {
        let mut roots = Vec::new();
        roots_of(place, &mut roots);
        self.more |= roots.len() >= MOST;
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
                whole.extend(self.items.contains(&root).then(|| ITEM.into()));
                whole.extend(path.iter().cloned());
                self.touch_root(outer, whole, step, depth + 1);
            }
        }
        let root = self.statics.get(&root).cloned().unwrap_or(root);
        let touched = Touched { root, path, step };
        if self.touched.contains(&touched) {
            return;
        }
        if self.touched.len() < MOST {
            self.touched.push(touched);
        } else {
            self.more = true;
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
                Of::More => self.more = true,
                Of::Global(name) => self.touch_root(name.clone(), path.clone(), false, 0),
            }
        }
    }

    /// What the destructor of a variable changes: through its references, what the variable is made of.
    fn destroyed(&mut self, declared: &'p Declarator) {
        let Some(name) = base_name(&declared.kind).filter(|_| declared.kind.is_value()) else { return };
        let made_of: Vec<&Expression> = match &declared.initial {
            Some(Initial::Value(value)) => vec![value],
            Some(Initial::Arguments(items)) => items.iter().map(|item| &item.1).collect(),
            None => Vec::new(),
        };
        for index in destructors(self.program, name) {
            let effects = of_function(self.program, index, self.known, self.depth + 1);
            for (of, path) in effects.iter() {
                match of {
                    Of::Own => made_of.iter().for_each(|value| self.touch(value, &[], false)),
                    Of::More => self.more = true,
                    Of::Global(name) => self.touch_root(name.clone(), path.clone(), false, 0),
                    Of::Parameter(_) => {}
                }
            }
        }
    }

    /// Touches what code without a tree may change.
    fn touch_unread(&mut self, at: &Range<usize>) {
        let places = unread_places(self.program, at);
        self.more |= places.len() > MOST;
        for root in places {
            self.touch_root(root, Vec::new(), false, 0);
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
        let (touched, more) = (inner.touched, inner.more);
        self.more |= more;
        for touched in touched {
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
                    self.items.insert(name.clone());
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
            StatementKind::Declare(declarators) if is_static(&self.program.text, statement) => {
                for declared in declarators {
                    self.statics.insert(declared.name.clone(), static_name(declared.name_at));
                }
            }
            StatementKind::Unread => self.touch_unread(&statement.at),
            _ => {}
        }
    }

    fn declare(&mut self, declared: &'p Declarator) {
        self.locals.push(declared.name.clone());
        self.destroyed(declared);
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
            ExpressionKind::TooTall => self.touch_unread(&expression.at),
            _ => {}
        }
    }
}

impl<'a, 'i> Collector<'a, 'i, '_> {
    pub fn new(program: &'i Program, known: &'a mut HashMap<usize, FunctionEffects>, depth: u32) -> Self {
        Self {
            program,
            variables: None,
            known,
            depth,
            touched: Vec::new(),
            returns: false,
            more: false,
            aliases: HashMap::new(),
            items: HashSet::new(),
            locals: Vec::new(),
            statics: HashMap::new(),
            left_alone: Vec::new(),
        }
    }
}

/// What a static variable of a function is known by outside of it: its name's token.
fn static_name(name_at: usize) -> Arc<str> {
    format!("{STATIC}{name_at}").into()
}

/// What the names of such variables begin with.
pub const STATIC: &str = "static ";

/// Whether something is read out of it: `std::cin`, or a variable that is no number for sure.
fn reads_stream(left: &Expression) -> bool {
    match &left.kind {
        ExpressionKind::Name(_) => true,
        ExpressionKind::Binary(Operator::ShiftRight, left, _) => reads_stream(left),
        _ => false,
    }
}

fn is_address(argument: &Expression) -> bool {
    matches!(argument.kind, ExpressionKind::Unary('&', _))
}

/// The names that code without a tree may change: those before an assignment, after `&`, with a call on them. At most one
/// more than [`MOST`].
fn unread_places(program: &Program, at: &Range<usize>) -> Vec<Arc<str>> {
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
    let names = at.clone().filter(|at| text.tokens.get(*at).is_some_and(|t| t.is_identifier()) && changes(*at));
    names.take(MOST + 1).filter_map(|at| Some(text.tokens.get(at)?.text.clone())).collect()
}
