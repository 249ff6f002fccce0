//! Following statements: whole ones, and those that lead to a launch.

use std::sync::Arc;

use super::interpreter::{Interpreter, NESTING};
use super::tree::{Declarator, Expression, ExpressionKind, Statement, StatementKind};
use super::types::{Base, Type};
use super::value::{Data, Value};
use super::walk::{self, Visitor};

/// Turns of one loop that are followed.
const TURNS: u32 = 20_000;

/// How a statement ended.
pub enum Flow {
    On,
    Break,
    Continue,
    Return(Value),
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
                self.evaluate(value);
            }
            StatementKind::Declare(declarators) => {
                declarators.iter().for_each(|declared| self.declare_variable(declared))
            }
            StatementKind::Bind(names, value) => self.bind_names(names, value),
            StatementKind::Alias(name, kind) => {
                let kind = self.resolved(kind);
                if let Some(frame) = self.frame() {
                    frame.types.push((name.clone(), kind));
                }
            }
            StatementKind::Block(statements) => {
                self.open_scope();
                let flow = self.execute_all(statements);
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
            StatementKind::ForEach { name, name_at, range, body } => {
                self.open_scope();
                let flow = self.each(name, *name_at, range, body);
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
            StatementKind::Empty | StatementKind::Case(_) | StatementKind::Unread => {}
        }
        Flow::On
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
        let value = self.initial_value(declared);
        let kind = self.resolved(&declared.kind);
        self.declare(declared.name.clone(), declared.name_at, kind, value);
    }

    fn bind_names(&mut self, names: &[(Arc<str>, usize)], value: &Expression) {
        let value = self.evaluate(value);
        for (place, (name, at)) in names.iter().enumerate() {
            let part = self.part(&value, place);
            let part = part.unwrap_or_else(|| Value { data: value.data.clone(), origin: Vec::new() });
            self.declare(name.clone(), *at, Type::of(Base::Auto), part);
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
        match (self.evaluate(condition).truth(), otherwise) {
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
                match self.evaluate(condition).truth() {
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
        let mut assigned = Assigned { interpreter: self, places: Vec::new(), returns: false };
        walk::statement(statement, &mut assigned);
        let (places, returns) = (assigned.places, assigned.returns);
        self.spend(1 + places.len() as u32);
        let own = |interpreter: &mut Self, place: &Expression| {
            let Some(name) = walk::root(place) else { return false };
            match interpreter.slot(&name.path) {
                Some(slot) => !matches!(slot.value.data, Data::Unknown(_)),
                None => interpreter.place(place).is_some_and(|value| !matches!(value.data, Data::Unknown(_))),
            }
        };
        returns || places.into_iter().any(|place| own(self, place))
    }

    fn each(&mut self, name: &Arc<str>, name_at: usize, range: &Expression, body: &Statement) -> Flow {
        let range = self.evaluate(range);
        let Data::List(items) = range.data else {
            self.forget(&[body], LOOP);
            return Flow::On;
        };
        for (_, item) in items {
            self.open_scope();
            self.declare(name.clone(), name_at, Type::of(Base::Auto), item);
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

    fn switch(&mut self, condition: &Expression, body: &Statement) -> Flow {
        let condition = self.evaluate(condition).as_integer();
        let StatementKind::Block(statements) = &body.kind else { return Flow::On };
        let Some(condition) = condition else {
            self.forget(&[body], BRANCH);
            return Flow::On;
        };
        let begin = statements.iter().position(|statement| match &statement.kind {
            StatementKind::Case(Some(value)) => self.evaluate(value).as_integer() == Some(condition),
            _ => false,
        });
        let default = || statements.iter().position(|statement| matches!(statement.kind, StatementKind::Case(None)));
        let Some(begin) = begin.or_else(default) else { return Flow::On };
        self.open_scope();
        let flow = self.execute_all(statements.get(begin..).unwrap_or_default());
        self.close_scope();
        if matches!(flow, Flow::Break) { Flow::On } else { flow }
    }

    /// Makes unknown whatever the statements assign to.
    pub fn forget(&mut self, statements: &[&Statement], why: &'static str) {
        let mut assigned = Assigned { interpreter: self, places: Vec::new(), returns: false };
        for statement in statements {
            walk::statement(statement, &mut assigned);
        }
        for place in assigned.places {
            self.forget_place(place, why);
        }
    }

    /// Makes the variable at the bottom of a place unknown.
    pub fn forget_place(&mut self, place: &Expression, why: &'static str) {
        let Some(name) = walk::root(place) else { return };
        let unknown = Value::unknown(name.path.to_string(), self.program.text.line(place.at.start), why);
        if let Some(slot) = self.slot(&name.path) {
            slot.value = unknown;
        } else if let Some(value) = self.place(place) {
            *value = unknown;
        }
    }
}

/// Collects what a statement assigns to.
struct Assigned<'a, 'i, 'p> {
    interpreter: &'a Interpreter<'i>,
    places: Vec<&'p Expression>,
    /// Whether it may return from the function.
    returns: bool,
}

impl<'p> Visitor<'p> for Assigned<'_, '_, 'p> {
    fn statement(&mut self, statement: &'p Statement) {
        self.returns |= matches!(statement.kind, StatementKind::Return(_));
    }

    fn enter(&mut self, expression: &'p Expression) {
        match &expression.kind {
            ExpressionKind::Assign(_, place, _) | ExpressionKind::Step { place, .. } => self.places.push(place),
            ExpressionKind::Call(callee, arguments) => self.out_arguments(callee, arguments),
            _ => {}
        }
    }
}

impl<'p> Assigned<'_, '_, 'p> {
    fn out_arguments(&mut self, callee: &Expression, arguments: &'p [Expression]) {
        let name = walk::root(callee).map(|name| name.path.clone()).unwrap_or_default();
        let program = self.interpreter.program;
        let called = program.functions_named(&name).next().and_then(|(_, function)| function.parameters.as_ref());
        for (place, argument) in arguments.iter().enumerate() {
            let by_address = matches!(argument.kind, ExpressionKind::Unary('&', _));
            let parameter = called.and_then(|parameters| parameters.get(place));
            if by_address || parameter.is_some_and(|parameter| parameter.kind.reference && !parameter.kind.constant) {
                self.places.push(argument);
            }
        }
    }
}
