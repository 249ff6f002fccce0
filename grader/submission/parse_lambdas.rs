//! Reading lambdas.

use std::sync::Arc;

use super::parser::Parser;
use super::tree::{Capture, Expression, ExpressionKind, Lambda, Name, Statement, StatementKind, TALLEST};

impl Parser<'_> {
    /// Those captures between a lambda's brackets that have a value of their own.
    fn captures(&mut self) -> (Vec<Capture>, Option<Vec<Arc<str>>>) {
        let mut captures = Vec::new();
        let copies = self.is("=");
        let mut not_copied = Vec::new();
        while self.at < self.end {
            let begin = self.at;
            let reference = self.take("&");
            not_copied.extend(self.token().filter(|_| reference).map(|name| name.text.clone()));
            if self.next_is("=")
                && let (name_at, Some(name)) = (self.at, self.identifier())
            {
                self.at += 1;
                let Some(value) = self.deeper(Self::assignment) else { break };
                let value = match reference {
                    true => self.node(begin, ExpressionKind::Unary('&', Box::new(value))),
                    false => value,
                };
                captures.push(Capture { name, name_at, value });
            } else if !reference
                && self.token().is_some_and(|token| token.is_identifier() && !token.is("this"))
                && (self.next_is(",") || self.at + 1 == self.end)
                && let (name_at, Some(name)) = (self.at, self.identifier())
            {
                // A copy under the same name.
                let copied = Name { path: name.clone(), arguments: None, scope: None };
                let value = self.node(name_at, ExpressionKind::Name(copied));
                captures.push(Capture { name, name_at, value });
            }
            while self.at < self.end && !self.take(",") {
                self.at += 1;
            }
        }
        (captures, copies.then_some(not_copied))
    }

    pub fn lambda(&mut self) -> Option<Expression> {
        let begin = self.at;
        if self.text.partner(begin) >= self.end {
            return None;
        }
        let around = std::mem::take(&mut self.tallest);
        let (captures, copies_but) = self.between(|parser| Some(parser.captures())).unwrap_or_default();
        let parameters = if self.is("(") { self.between(Self::parameters)? } else { Vec::new() };
        let mut mutable = false;
        while self.token().is_some_and(|token| !token.is("{") && !token.is(";") && !token.is(")")) {
            mutable |= self.is("mutable");
            self.at += 1;
        }
        if !self.is("{") {
            return None;
        }
        let body_at = self.at;
        let statements = self.between(|parser| Some(parser.statements()))?;
        let body_height = self.tallest.saturating_add(8);
        let body = Statement { kind: StatementKind::Block(statements), at: body_at..self.at };
        let kind = ExpressionKind::Lambda(Arc::new(Lambda { captures, copies_but, mutable, parameters, body }));
        self.tallest = around.max(body_height);
        let kind = if body_height > TALLEST { ExpressionKind::TooTall } else { kind };
        Some(Expression { kind, at: begin..self.at, height: body_height.min(TALLEST) })
    }
}
