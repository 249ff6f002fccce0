//! Following statements up to the one that holds a launch.

use std::sync::Arc;

use super::execute::LOOP;
use super::interpreter::Interpreter;
use super::tree::{Expression, ExpressionKind, Operator, Statement, StatementKind};
use super::types::{Base, Type};
use super::value::{Data, Value};
use super::walk::{self, Visitor};

/// Turns of a loop over a table of launches that are followed, each on its own.
const TABLE: usize = 12;

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
                let holds = self.evaluate(condition).condition();
                match otherwise.as_deref().filter(|otherwise| otherwise.at.contains(&target)) {
                    Some(otherwise) => self.run_to(otherwise, target) && holds != Some(true),
                    None => self.run_to(then, target) && holds != Some(false),
                }
            }
            StatementKind::Loop { .. } => self.run_into_loop(statement, target),
            StatementKind::ForEach { name, name_at, reference, range, body } => {
                self.run_into_each((name, *name_at, *reference), range, body, target)
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
            StatementKind::Expression(Expression { kind: ExpressionKind::Comma(items), .. }) => {
                items.iter().take_while(|item| item.at.end <= target).for_each(|item| drop(self.evaluate(item)));
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
        let StatementKind::Loop { before, condition, step, body, test_first } = &statement.kind else { return true };
        self.open_scope();
        if let Some(before) = before {
            if before.at.contains(&target) {
                return self.run_to(before, target);
            }
            self.execute(before);
        }
        let enters = match condition {
            Some(condition) if *test_first => self.evaluate(condition).condition() != Some(false),
            _ => true,
        };
        let picked = condition.as_ref().zip(step.as_ref()).and_then(|parts| self.picking(parts, body));
        self.forget(&[statement], LOOP);
        if let Some((counter, first, turns)) = picked {
            let turn = first + self.choose(turns) as i128;
            let found = self.find(counter);
            self.store(&found, Value::int(turn), counter);
        }
        if body.at.contains(&target) { self.run_to(body, target) && enters } else { true }
    }

    /// The counter of a short loop that picks from a list that is known, its first value, and how many turns it makes.
    fn picking<'e>(
        &mut self,
        (condition, step): (&'e Expression, &Expression),
        body: &Statement,
    ) -> Option<(&'e Expression, i128, usize)> {
        let ExpressionKind::Binary(operator, counter, bound) = &condition.kind else { return None };
        let ExpressionKind::Name(name) = &counter.kind else { return None };
        if !matches!(step.kind, ExpressionKind::Step { by: 1, .. }) {
            return None;
        }
        let last = self.evaluate(bound).as_integer()?;
        let last = match operator {
            Operator::LessEqual => last.checked_add(1)?,
            Operator::Less | Operator::Unequal => last,
            _ => return None,
        };
        let first = self.evaluate(counter).as_integer()?;
        let turns = usize::try_from(last.checked_sub(first)?).ok().filter(|turns| (1..=TABLE).contains(turns))?;
        let mut picks = Picks { counter: &name.path, arrays: Vec::new() };
        walk::statement(body, &mut picks);
        let known = |array: &&Expression| matches!(self.evaluate(array).data, Data::List(_));
        picks.arrays.into_iter().take(8).find(known).map(|_| (&**counter, first, turns))
    }

    fn run_into_each(
        &mut self,
        (name, name_at, reference): (&Arc<str>, usize, bool),
        range: &Expression,
        body: &Statement,
        target: usize,
    ) -> bool {
        if range.at.contains(&target) {
            return true;
        }
        self.open_scope();
        let range = self.evaluate(range);
        self.forget(&[body], LOOP);
        let items = match &range.data {
            Data::List(items) => items.len(),
            _ => 0,
        };
        let item = match items {
            1..=TABLE => {
                let index = self.choose(items);
                self.part(&range, index)
            }
            _ => None,
        };
        let kind = Type { reference, ..Type::of(Base::Auto) };
        let line = self.program.text.line(name_at);
        let item = item.unwrap_or_else(|| Value::unknown(name.to_string(), line, LOOP));
        let item = self.held(item, &kind);
        self.declare(name.clone(), name_at, kind, item);
        self.run_to(body, target)
    }

    /// One of so many ways to go on from here.
    fn choose(&mut self, count: usize) -> usize {
        let place = self.choice_counts.len();
        self.choice_counts.push(count);
        self.choices.get(place).copied().unwrap_or(0)
    }

    fn run_into_switch(&mut self, condition: &Expression, body: &Statement, target: usize) -> bool {
        let StatementKind::Block(statements) = &body.kind else { return self.run_to(body, target) };
        let value = self.evaluate(condition).as_integer();
        self.open_scope();
        let place = statements.iter().position(|statement| statement.at.contains(&target)).unwrap_or(0);
        let is_label = |statement: &Statement| matches!(statement.kind, StatementKind::Case(_));
        let label = statements.iter().take(place + 1).rposition(is_label).unwrap_or(0);
        let begin = value.map(|value| self.case_of(statements, value));
        let reached = match begin {
            // It begins at the labels just before, or falls through from an earlier one.
            Some(Some(begin)) => begin <= place && !statements.get(begin..label).is_some_and(leaves),
            Some(None) => false,
            None => true,
        };
        let from = begin.flatten().filter(|_| reached).unwrap_or(label);
        self.run_to_one_of(statements.get(from..).unwrap_or_default(), target) && reached
    }
}

/// Whether statements of a switch end with leaving it.
fn leaves(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StatementKind::Break | StatementKind::Continue | StatementKind::Return(_) => true,
        StatementKind::Block(inner) => leaves(inner),
        _ => false,
    })
}

/// Finds the lists that a loop's counter picks from.
struct Picks<'a, 'p> {
    counter: &'a str,
    arrays: Vec<&'p Expression>,
}

impl<'p> Visitor<'p> for Picks<'_, 'p> {
    fn enter(&mut self, expression: &'p Expression) {
        if let ExpressionKind::Index(array, index) = &expression.kind
            && matches!(&index.kind, ExpressionKind::Name(name) if *name.path == *self.counter)
        {
            self.arrays.push(array);
        }
    }
}
