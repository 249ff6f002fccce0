//! Reading structs that are declared inside a function.

use std::sync::Arc;

use super::lexer::Token;
use super::parser::{Parser, Text};
use super::tree::{Statement, StatementKind};
use super::types::{Base, Type};

/// A plain struct declared inside a function.
pub struct LocalStruct {
    pub name: Option<Arc<str>>,
    /// What the program knows it by: no other struct has this name.
    pub known_as: Arc<str>,
    pub open: usize,
    pub close: usize,
}

impl LocalStruct {
    /// The one whose `struct` stands at a token. One with bases, constructors or types of its own is left alone.
    pub fn at(text: &Text, at: usize) -> Option<Self> {
        let is_word = ["struct", "class", "union"].iter().any(|word| text.is(at, word));
        let named = text.tokens.get(at + 1).filter(|name| name.is_identifier());
        let open = if named.is_some() { at + 2 } else { at + 1 };
        if !is_word || !text.is(open, "{") {
            return None;
        }
        let close = text.partner(open);
        let inside = text.tokens.get(open + 1..close).unwrap_or_default();
        let own = |token: &Token| {
            matches!(
                &*token.text,
                "struct" | "class" | "union" | "enum" | "template" | "using" | "typedef" | "operator"
            ) || named.is_some_and(|name| name.text == token.text)
        };
        if inside.iter().any(own) {
            return None;
        }
        let known_as = format!("(struct at token {open})").into();
        Some(Self { name: named.map(|name| name.text.clone()), known_as, open, close })
    }
}

impl Parser<'_> {
    /// `struct Row { ... };`, `struct { ... } rows[] = { ... };` and `typedef struct { ... } Row;`: what they mean is
    /// the struct's name, and the variables behind it.
    pub fn local_struct(&mut self) -> Option<Vec<Statement>> {
        let begin = self.at;
        let read = self.local_struct_here();
        if read.is_none() {
            self.at = begin;
        }
        read
    }

    fn local_struct_here(&mut self) -> Option<Vec<Statement>> {
        let begin = self.at;
        let is_typedef = self.take("typedef");
        while ["static", "const", "constexpr"].iter().any(|word| self.take(word)) {}
        let found = LocalStruct::at(self.text, self.at).filter(|found| found.close < self.end)?;
        self.at = found.close + 1;
        let kind = Type::of(Base::Named(found.known_as));
        let named = |name, end| Statement { kind: StatementKind::Alias(name, kind.clone()), at: begin..end };
        let mut statements: Vec<Statement> = found.name.map(|name| named(name, self.at)).into_iter().collect();
        if is_typedef {
            let name = self.identifier()?;
            statements.push(named(name, self.at));
        } else if !self.is(";") {
            let begin = self.at;
            let declarators = self.declarators(kind.clone())?;
            statements.push(Statement { kind: StatementKind::Declare(declarators), at: begin..self.at });
        }
        self.expect(";")?;
        Some(statements)
    }
}
