//! Which lines `#if` and its relatives leave in.

use std::ops::Range;

use super::lexer::{Token, TokenKind};

/// The open conditions, and the lines that closed ones left out.
#[derive(Debug, Default)]
pub struct Conditions {
    open: Vec<Condition>,
    inactive: Vec<Range<u32>>,
    last_line: u32,
}

#[derive(Debug)]
struct Condition {
    /// Whether the text around the condition is left in.
    around: bool,
    /// Whether one of its branches held already.
    taken: bool,
    /// Whether the branch being read is left in.
    active: bool,
    /// Line of the directive that began the branch.
    since: u32,
}

impl Conditions {
    /// Whether the text being read is left in.
    pub fn active(&self) -> bool {
        self.open.last().is_none_or(|condition| condition.active)
    }

    pub fn start(&mut self, holds: bool, line: u32) {
        let around = self.active();
        self.open.push(Condition { around, taken: holds, active: around && holds, since: line });
    }

    pub fn alternative(&mut self, holds: bool, line: u32) {
        self.close_branch(line);
        if let Some(condition) = self.open.last_mut() {
            condition.active = condition.around && !condition.taken && holds;
            condition.taken |= holds;
            condition.since = line;
        }
    }

    pub fn otherwise(&mut self, line: u32) {
        self.alternative(true, line);
    }

    pub fn end(&mut self, line: u32) {
        self.close_branch(line);
        self.open.pop();
    }

    /// The lines left out, once the text has ended.
    pub fn finish(mut self) -> Vec<Range<u32>> {
        while !self.open.is_empty() {
            self.end(u32::MAX);
        }
        self.inactive
    }

    fn close_branch(&mut self, line: u32) {
        self.last_line = self.last_line.max(line);
        if let Some(condition) = self.open.last().filter(|condition| !condition.active) {
            self.inactive.push(condition.since..line);
        }
    }
}

/// Whether the expression of an `#if` holds. As in C, a name that no macro has is 0; so is what cannot be read.
pub fn holds(tokens: Vec<Token>) -> bool {
    let tokens: Vec<Token> = tokens
        .into_iter()
        .map(|token| match &*token.text {
            "true" => number(token, "1"),
            _ if token.is_identifier() => number(token, "0"),
            _ => token,
        })
        .collect();
    super::evaluate::constant(&tokens).is_some_and(|value| value != 0)
}

fn number(token: Token, text: &str) -> Token {
    Token { kind: TokenKind::Number, text: text.into(), ..token }
}
