//! Reading casts and `sizeof`.

use super::lexer::TokenKind;
use super::packs::SIZE_OF_PACK;
use super::parser::Parser;
use super::sites::callee_name;
use super::tree::{Expression, ExpressionKind, Name};
use super::types::{Base, Type, Words, known_base};

impl Parser<'_> {
    /// `(type) value`, if that is what stands here.
    pub fn c_cast(&mut self) -> Option<Expression> {
        let begin = self.at;
        if !self.is("(") {
            return None;
        }
        let close = self.text.partner(self.at);
        if close >= self.end || close > self.at + 40 {
            return None;
        }
        let kind = self.type_up_to(self.at + 1, close)?;
        self.at = close + 1;
        let starts_value = self.token().is_some_and(|next| match next.kind {
            TokenKind::Punctuation => matches!(&*next.text, "(" | "!" | "~" | "-" | "+" | "&" | "*" | "{" | "::" | "["),
            _ => true,
        });
        let certain = !kind.pointers.is_empty() || self.is_certainly_type(begin + 1);
        let sign = self.token().is_some_and(|next| matches!(&*next.text, "-" | "+" | "&" | "*" | "(" | "["));
        let read = if starts_value && (certain || !sign) { self.deeper(Self::unary) } else { None };
        match read {
            Some(inner) => Some(self.cast(begin, kind, inner)),
            None => {
                self.at = begin;
                None
            }
        }
    }

    /// The type that fills the tokens from `begin` to `end` exactly.
    fn type_up_to(&mut self, begin: usize, end: usize) -> Option<Type> {
        let (at, outer) = (self.at, self.end);
        (self.at, self.end) = (begin, end);
        let kind = self.deeper(Self::type_name).filter(|_| self.at == end);
        (self.at, self.end) = (at, outer);
        kind
    }

    /// Whether the token begins a type for sure, rather than perhaps being a variable's name.
    fn is_certainly_type(&self, at: usize) -> bool {
        let Some(token) = self.text.tokens.get(at) else { return false };
        let mut words = Words::default();
        words.take(&token.text)
            || known_base(&token.text).is_some()
            || matches!(&*token.text, "const" | "typename" | "dim3" | "std" | "struct" | "decltype")
            || self.names.types.contains(&token.text)
    }

    pub fn size_of(&mut self) -> Option<Expression> {
        let begin = self.at;
        self.at += 1;
        if self.is("...") && self.next_is("(") {
            self.at += 1;
            let path = SIZE_OF_PACK.into();
            let name = ExpressionKind::Name(Name { path, arguments: None, scope: None });
            let callee = Expression { kind: name, at: begin..self.at, height: 1 };
            let pack = self.between(Self::expression)?;
            return Some(self.node(begin, ExpressionKind::Call(Box::new(callee), vec![pack])));
        }
        if self.is("(") {
            let close = self.text.partner(self.at);
            if close < self.end && self.is_certainly_type(self.at + 1) {
                let kind = self.type_up_to(self.at + 1, close)?;
                self.at = close + 1;
                return Some(self.node(begin, ExpressionKind::SizeOfType(kind)));
            }
        }
        let inner = self.deeper(Self::unary)?;
        Some(self.node(begin, ExpressionKind::SizeOf(Box::new(inner))))
    }

    pub fn named_cast(&mut self) -> Option<Expression> {
        let begin = self.at;
        self.at += 1;
        let after = self.after_angles(self.at).filter(|_| self.is("<"))?;
        let kind = self.type_up_to(self.at + 1, after - 1)?;
        self.at = after;
        let inner = self.is("(").then(|| self.between(Self::expression))??;
        Some(self.cast(begin, kind, inner))
    }

    /// A cast; of memory for one struct, the address of a new one.
    fn cast(&mut self, begin: usize, kind: Type, inner: Expression) -> Expression {
        let named = matches!(kind.base, Base::Named(_)) && kind.pointers.len() == 1 && !kind.reference;
        if !named || !is_memory_for_one(&inner) {
            return self.node(begin, ExpressionKind::Cast(kind, Box::new(inner)));
        }
        let kind = Type { pointers: Vec::new(), ..kind };
        let made = self.node(begin, ExpressionKind::Construct(kind, Vec::new()));
        self.node(begin, ExpressionKind::Unary('&', Box::new(made)))
    }
}

/// `malloc(sizeof(T))` and `calloc(1, sizeof(T))`.
fn is_memory_for_one(value: &Expression) -> bool {
    let ExpressionKind::Call(callee, arguments) = &value.kind else { return false };
    let is_size = |size: &Expression| matches!(size.kind, ExpressionKind::SizeOf(_) | ExpressionKind::SizeOfType(_));
    let is_one = |count: &Expression| matches!(&count.kind, ExpressionKind::Number(text) if &**text == "1");
    match (callee_name(callee), arguments.as_slice()) {
        (Some("malloc"), [size]) => is_size(size),
        (Some("calloc"), [count, size]) => is_one(count) && is_size(size),
        _ => false,
    }
}
