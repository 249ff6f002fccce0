//! Following statements up to the one that holds a launch.

use std::sync::Arc;

use super::execute::LOOP;
use super::interpreter::Interpreter;
use super::tree::{Expression, ExpressionKind, Statement, StatementKind};
use super::types::{Base, Type};
use super::value::{Data, Value};

impl Interpreter<'_> {
    /// Follows a body to the token `target`; false when what is known says that it never gets there.
    pub fn run_to(&mut self, statement: &Statement, target: usize) -> bool {
        self.refuel();
        match &statement.kind {
            StatementKind::Block(statements) => {
                self.open_scope();
                self.run_to_one_of(statements, target)
            }
            StatementKind::If { before, condition, then, otherwise } => {
                self.open_scope();
                let reached = self.run_to_one_of(before, target);
                if condition.at.contains(&target) || before.iter().any(|inner| inner.at.contains(&target)) {
                    return reached;
                }
                let holds = self.evaluate(condition).truth();
                match otherwise.as_deref().filter(|otherwise| otherwise.at.contains(&target)) {
                    Some(otherwise) => self.run_to(otherwise, target) && holds != Some(true),
                    None => self.run_to(then, target) && holds != Some(false),
                }
            }
            StatementKind::Loop { .. } => self.run_into_loop(statement, target),
            StatementKind::ForEach { name, name_at, range, body } => {
                self.run_into_each(name, *name_at, range, body, target)
            }
            StatementKind::Switch { condition, body } => self.run_into_switch(condition, body, target),
            StatementKind::Declare(declarators) => {
                // `auto a = 1, b = run(a);`
                let before = declarators.iter().take_while(|declared| declared.name_at < target);
                let before: Vec<_> = before.collect();
                let all_but_last = before.len().saturating_sub(1);
                before.into_iter().take(all_but_last).for_each(|declared| self.declare_variable(declared));
                true
            }
            _ => true,
        }
    }

    fn run_to_one_of(&mut self, statements: &[Statement], target: usize) -> bool {
        for statement in statements {
            if statement.at.contains(&target) {
                return self.run_to(statement, target);
            }
            self.refuel();
            self.execute(statement);
        }
        true
    }

    fn run_into_loop(&mut self, statement: &Statement, target: usize) -> bool {
        let StatementKind::Loop { before, condition, body, test_first, .. } = &statement.kind else { return true };
        self.open_scope();
        if let Some(before) = before {
            if before.at.contains(&target) {
                return self.run_to(before, target);
            }
            self.execute(before);
        }
        let enters = match condition {
            Some(condition) if *test_first => self.evaluate(condition).truth() != Some(false),
            _ => true,
        };
        self.forget(&[statement], LOOP);
        if body.at.contains(&target) { self.run_to(body, target) && enters } else { true }
    }

    fn run_into_each(
        &mut self,
        name: &Arc<str>,
        name_at: usize,
        range: &Expression,
        body: &Statement,
        target: usize,
    ) -> bool {
        if range.at.contains(&target) {
            return true;
        }
        self.open_scope();
        let items = match self.evaluate(range).data {
            Data::List(items) => items,
            _ => Vec::new(),
        };
        let only =
            items.into_iter().next().filter(|_| matches!(&range.kind, ExpressionKind::Braces(list) if list.len() == 1));
        let value = match only {
            Some((_, value)) => value,
            None => Value::unknown(name.to_string(), self.program.text.line(name_at), LOOP),
        };
        self.forget(&[body], LOOP);
        self.declare(name.clone(), name_at, Type::of(Base::Auto), value);
        self.run_to(body, target)
    }

    fn run_into_switch(&mut self, condition: &Expression, body: &Statement, target: usize) -> bool {
        let StatementKind::Block(statements) = &body.kind else { return self.run_to(body, target) };
        let value = self.evaluate(condition).as_integer();
        self.open_scope();
        let place = statements.iter().position(|statement| statement.at.contains(&target)).unwrap_or(0);
        let label =
            statements.iter().take(place + 1).rposition(|s| matches!(s.kind, StatementKind::Case(_))).unwrap_or(0);
        let case = match statements.get(label).map(|statement| &statement.kind) {
            Some(StatementKind::Case(Some(case))) => self.evaluate(case).as_integer(),
            _ => None,
        };
        let reached = value.is_none() || case.is_none() || value == case;
        self.run_to_one_of(statements.get(label..).unwrap_or_default(), target) && reached
    }
}
