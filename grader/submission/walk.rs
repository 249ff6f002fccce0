//! Visiting every expression of a statement, in the order of the text.

use super::tree::{Declarator, Expression, ExpressionKind, Initial, Statement, StatementKind};

/// What a walk shows its visitor. A lambda is entered, its body walked, and left.
pub trait Visitor<'p> {
    fn enter(&mut self, _expression: &'p Expression) {}
    fn leave(&mut self, _expression: &'p Expression) {}
    fn declare(&mut self, _declarator: &'p Declarator) {}
    fn statement(&mut self, _statement: &'p Statement) {}
}

pub fn statement<'p>(at: &'p Statement, visitor: &mut dyn Visitor<'p>) {
    visitor.statement(at);
    match &at.kind {
        StatementKind::Expression(value)
        | StatementKind::Bind { value, .. }
        | StatementKind::Case(Some(value))
        | StatementKind::Return(Some(value)) => expression(value, visitor),
        StatementKind::Declare(declarators) => declarators.iter().for_each(|declared| declarator(declared, visitor)),
        StatementKind::Block(statements) => statements.iter().for_each(|inner| statement(inner, visitor)),
        StatementKind::If { before, condition, then, otherwise } => {
            before.iter().for_each(|inner| statement(inner, visitor));
            expression(condition, visitor);
            statement(then, visitor);
            otherwise.iter().for_each(|inner| statement(inner, visitor));
        }
        StatementKind::Loop { before, condition, step, body, .. } => {
            before.iter().for_each(|inner| statement(inner, visitor));
            condition.iter().for_each(|inner| expression(inner, visitor));
            statement(body, visitor);
            step.iter().for_each(|inner| expression(inner, visitor));
        }
        StatementKind::ForEach { range, body, .. } => {
            expression(range, visitor);
            statement(body, visitor);
        }
        StatementKind::Switch { condition, body } => {
            expression(condition, visitor);
            statement(body, visitor);
        }
        _ => {}
    }
}

pub fn declarator<'p>(declared: &'p Declarator, visitor: &mut dyn Visitor<'p>) {
    visitor.declare(declared);
    match &declared.initial {
        Some(Initial::Value(value)) => expression(value, visitor),
        Some(Initial::Arguments(items)) => items.iter().for_each(|(_, item)| expression(item, visitor)),
        None => {}
    }
}

pub fn expression<'p>(at: &'p Expression, visitor: &mut dyn Visitor<'p>) {
    visitor.enter(at);
    parts(at, visitor);
    visitor.leave(at);
}

fn parts<'p>(at: &'p Expression, visitor: &mut dyn Visitor<'p>) {
    let mut all = |items: &'p [Expression]| items.iter().for_each(|item| expression(item, visitor));
    match &at.kind {
        ExpressionKind::Unary(_, part)
        | ExpressionKind::Cast(_, part)
        | ExpressionKind::SizeOf(part)
        | ExpressionKind::Spread(part)
        | ExpressionKind::Member(part, _)
        | ExpressionKind::Step { place: part, .. } => expression(part, visitor),
        ExpressionKind::Binary(_, left, right)
        | ExpressionKind::Assign(_, left, right)
        | ExpressionKind::Index(left, right) => {
            expression(left, visitor);
            expression(right, visitor);
        }
        ExpressionKind::Conditional(condition, left, right) => {
            expression(condition, visitor);
            expression(left, visitor);
            expression(right, visitor);
        }
        ExpressionKind::Comma(items) | ExpressionKind::Construct(_, items) => all(items),
        ExpressionKind::Braces(items) => items.iter().for_each(|(_, item)| expression(item, visitor)),
        ExpressionKind::Call(callee, arguments) => {
            expression(callee, visitor);
            arguments.iter().for_each(|argument| expression(argument, visitor));
        }
        ExpressionKind::Launch(launch) => {
            expression(&launch.callee, visitor);
            launch.configuration.iter().for_each(|part| expression(part, visitor));
            launch.arguments.iter().for_each(|part| expression(part, visitor));
        }
        ExpressionKind::Lambda(lambda) => {
            lambda.captures.iter().for_each(|capture| expression(&capture.value, visitor));
            statement(&lambda.body, visitor);
        }
        _ => {}
    }
}
