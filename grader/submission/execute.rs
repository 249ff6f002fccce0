//! Following statements: whole ones, and those that lead to a launch.

use std::sync::Arc;

use super::interpreter::{Interpreter, NESTING};
use super::places::{Place, Root};
use super::program::Function;
use super::text::Text;
use super::tree::{Declarator, Expression, Initial, Statement, StatementKind};
use super::types::{Base, Type};
use super::value::{Data, Value};

/// Turns of one loop that are followed.
const TURNS: u32 = 20_000;

/// How a statement ended.
pub enum Flow {
    On,
    Break,
    Continue,
    Return(Value),
}

/// Whether a declaration in a function is of variables that outlive its calls.
pub fn is_static(text: &Text, statement: &Statement) -> bool {
    let StatementKind::Declare(declarators) = &statement.kind else { return false };
    let first = declarators.first().map_or(statement.at.start, |declared| declared.name_at);
    let has = |word: &str| (statement.at.start..first).take(4).any(|at| text.is(at, word));
    has("static") && !has("constexpr")
}

/// Why a variable is unknown after what could not be followed.
pub const LOOP: &str = "changes from one turn of a loop to the next";
const BRANCH: &str = "depends on a condition that is not known from the text";

impl Interpreter<'_> {
    /// Runs a function's body to its return.
    pub fn run_body(&mut self, body: &Statement) -> Option<Value> {
        match self.execute(body) {
            Flow::Return(value) => Some(value),
            _ => None,
        }
    }

    pub fn execute(&mut self, statement: &Statement) -> Flow {
        if self.fuel == 0 || self.nesting >= NESTING {
            self.forget(&[statement], "takes too long to work out");
            return Flow::On;
        }
        self.fuel -= 1;
        self.nesting += 1;
        let flow = self.execute_kind(statement);
        self.nesting -= 1;
        flow
    }

    fn execute_kind(&mut self, statement: &Statement) -> Flow {
        match &statement.kind {
            StatementKind::Expression(value) => {
                let value = self.evaluate(value);
                self.destroy_unkept(value);
            }
            StatementKind::Declare(declarators) => {
                let is_static = is_static(&self.program.text, statement);
                for declared in declarators {
                    if is_static { self.declare_static(declared) } else { self.declare_variable(declared) }
                }
            }
            StatementKind::Bind { names, value, reference } => self.bind_names(names, value, *reference),
            StatementKind::Alias(name, kind) => {
                let kind = self.resolved(kind);
                if let Some(frame) = self.frame() {
                    frame.types.push((name.clone(), kind));
                }
            }
            StatementKind::Block(statements) => {
                self.open_scope();
                let flow = self.execute_all(statements);
                self.destroy_scope(match &flow {
                    Flow::Return(value) => value.place.as_ref(),
                    _ => None,
                });
                self.close_scope();
                return flow;
            }
            StatementKind::If { before, condition, then, otherwise } => {
                self.open_scope();
                let flow = self.branch(before, condition, then, otherwise.as_deref());
                self.close_scope();
                return flow;
            }
            StatementKind::Loop { .. } => {
                self.open_scope();
                let flow = self.turns(statement);
                self.close_scope();
                return flow;
            }
            StatementKind::ForEach { name, name_at, reference, range, body } => {
                self.open_scope();
                let flow = self.each((name, *name_at, *reference), range, body);
                self.close_scope();
                return flow;
            }
            StatementKind::Switch { condition, body } => return self.switch(condition, body),
            StatementKind::Return(value) => {
                let value = value.as_ref().map_or_else(|| Value::int(0), |value| self.evaluate(value));
                return Flow::Return(value);
            }
            StatementKind::Break => return Flow::Break,
            StatementKind::Continue => return Flow::Continue,
            StatementKind::Unread => {
                self.forget(&[statement], "is set in a statement that the grader cannot read");
                if self.program.text.is(statement.at.start, "return") {
                    return Flow::Return(self.unread(statement));
                }
            }
            StatementKind::Empty | StatementKind::Case(_) => {}
        }
        Flow::On
    }

    /// The value of a `return` that cannot be read.
    fn unread(&self, statement: &Statement) -> Value {
        let text = &self.program.text;
        let why = "is a statement that the grader cannot read";
        Value::unknown(text.spelling(statement.at.clone()), text.line(statement.at.start), why)
    }

    fn execute_all(&mut self, statements: &[Statement]) -> Flow {
        for statement in statements {
            match self.execute(statement) {
                Flow::On => {}
                flow => return flow,
            }
        }
        Flow::On
    }

    pub fn declare_variable(&mut self, declared: &Declarator) {
        let kind = self.resolved(&declared.kind);
        let value = self.initial_value(declared);
        if let Some(Initial::Value(initial)) = &declared.initial
            && !matches!(value.data, Data::Pointer(..))
            && (kind.reference || !kind.pointers.is_empty())
            && !kind.constant
        {
            self.forget_escaping(initial);
        }
        self.declare(declared.name.clone(), declared.name_at, kind, value);
    }

    /// A variable that keeps its value from one call of its function to the next.
    fn declare_static(&mut self, declared: &Declarator) {
        let (at, kind) = (declared.name_at, self.resolved(&declared.kind));
        if !kind.constant && self.is_in_template() {
            // Each instance has its own.
            let line = self.program.text.line(at);
            let value = Value::unknown(declared.name.to_string(), line, "is a static variable in a template");
            return self.declare(declared.name.clone(), at, kind, value);
        }
        if !self.globals.contains_key(&at) {
            let value = match (&declared.initial, declared.dimensions.is_empty()) {
                (None, true) => self.zero(&kind, declared),
                _ => self.zeroed_array(declared).unwrap_or_else(|| self.initial_value(declared)),
            };
            self.globals.insert(at, (kind.clone(), value.copied()));
        }
        let value = Data::Pointer(Place::of(Root::Global(at)), true).into();
        self.declare(declared.name.clone(), at, kind, value);
    }

    fn is_in_template(&self) -> bool {
        let Some(frame) = self.frames.last() else { return false };
        let is_template = |function: &Function| function.template.as_ref().is_some_and(|list| !list.is_empty());
        let here = |function: &Function| function.path == frame.path && is_template(function);
        frame.instance.is_some() || !frame.types.is_empty() || self.program.functions.iter().any(here)
    }

    fn bind_names(&mut self, names: &[(Arc<str>, usize)], value: &Expression, reference: bool) {
        let value = self.evaluate(value);
        let kind = Type { reference, ..Type::of(Base::Auto) };
        for (place, (name, at)) in names.iter().enumerate() {
            let part = self.part(&value, place);
            let part = part.unwrap_or_else(|| match value.as_unknown() {
                Some(unknown) => Data::Unknown(unknown.clone()).into(),
                None => value.data.clone().into(),
            });
            let part = self.held(part, &kind);
            self.declare(name.clone(), *at, kind.clone(), part);
        }
    }

    fn branch(
        &mut self,
        before: &[Statement],
        condition: &Expression,
        then: &Statement,
        otherwise: Option<&Statement>,
    ) -> Flow {
        self.execute_all(before);
        match (self.evaluate(condition).condition(), otherwise) {
            (Some(true), _) => self.execute(then),
            (Some(false), Some(otherwise)) => self.execute(otherwise),
            (Some(false), None) => Flow::On,
            (None, _) => {
                let branches: Vec<&Statement> = std::iter::once(then).chain(otherwise).collect();
                self.forget(&branches, BRANCH);
                Flow::On
            }
        }
    }

    fn turns(&mut self, statement: &Statement) -> Flow {
        let StatementKind::Loop { before, condition, step, body, test_first } = &statement.kind else {
            return Flow::On;
        };
        if !self.matters(statement) {
            self.forget(&[statement], LOOP);
            return Flow::On;
        }
        if let Some(before) = before {
            self.execute(before);
        }
        let mut test = *test_first;
        for _ in 0..TURNS {
            if test && let Some(condition) = condition {
                match self.evaluate(condition).condition() {
                    Some(true) => {}
                    Some(false) => return Flow::On,
                    None => break,
                }
            }
            test = true;
            match self.execute(body) {
                Flow::Break => return Flow::On,
                Flow::Return(value) => return Flow::Return(value),
                Flow::On | Flow::Continue => {}
            }
            if let Some(step) = step {
                self.evaluate(step);
            }
            if self.fuel == 0 {
                break;
            }
        }
        self.forget(&[statement], LOOP);
        Flow::On
    }

    /// Whether a loop can change a value that is known, or return; filling an array that nobody knows does not.
    fn matters(&mut self, statement: &Statement) -> bool {
        let effects = self.effects(&[statement]);
        self.spend(1 + effects.touched.len() as u32);
        effects.returns || effects.more || effects.touched.iter().any(|touched| self.is_known(touched))
    }

    fn each(
        &mut self,
        (name, name_at, reference): (&Arc<str>, usize, bool),
        range: &Expression,
        body: &Statement,
    ) -> Flow {
        let range = self.evaluate(range);
        let Data::List(items) = &range.data else {
            self.forget(&[body], LOOP);
            return Flow::On;
        };
        let kind = Type { reference, ..Type::of(Base::Auto) };
        for index in 0..items.len() {
            self.open_scope();
            let item = self.part(&range, index).unwrap_or_else(|| self.unset(name, name_at));
            let item = self.held(item, &kind);
            self.declare(name.clone(), name_at, kind.clone(), item);
            let flow = self.execute(body);
            self.close_scope();
            match flow {
                Flow::Break => return Flow::On,
                Flow::Return(value) => return Flow::Return(value),
                Flow::On | Flow::Continue => {}
            }
        }
        Flow::On
    }

    fn unset(&self, name: &str, name_at: usize) -> Value {
        Value::unknown(name.to_owned(), self.program.text.line(name_at), "has no value yet")
    }

    /// The label at which a switch begins for this value.
    pub fn case_of(&mut self, statements: &[Statement], condition: i128) -> Option<usize> {
        let begin = statements.iter().position(|statement| match &statement.kind {
            StatementKind::Case(Some(value)) => self.evaluate(value).as_integer() == Some(condition),
            _ => false,
        });
        let default = || statements.iter().position(|statement| matches!(statement.kind, StatementKind::Case(None)));
        begin.or_else(default)
    }

    fn switch(&mut self, condition: &Expression, body: &Statement) -> Flow {
        let condition = self.evaluate(condition).as_integer();
        let StatementKind::Block(statements) = &body.kind else { return Flow::On };
        let Some(condition) = condition else {
            self.forget(&[body], BRANCH);
            return Flow::On;
        };
        let Some(begin) = self.case_of(statements, condition) else { return Flow::On };
        self.open_scope();
        let flow = self.execute_all(statements.get(begin..).unwrap_or_default());
        self.close_scope();
        if matches!(flow, Flow::Break) { Flow::On } else { flow }
    }
}
