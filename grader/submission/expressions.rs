//! Reading expressions, launches among them.

use std::sync::Arc;

use super::lexer::TokenKind;
use super::operators::{assignment_operator, binary_operator};
use super::parser::{Parser, is_reserved};
use super::tree::{Expression, ExpressionKind, LaunchExpression, Name, TALLEST};
use super::types::{Base, Type, Words, known_base};

/// Operators in a row, or members, indices and calls after one value.
const CHAIN: usize = 150;

impl Parser<'_> {
    /// An expression with commas in it.
    pub fn expression(&mut self) -> Option<Expression> {
        let begin = self.at;
        let first = self.deeper(Self::assignment)?;
        if !self.is(",") {
            return Some(first);
        }
        let mut items = vec![first];
        while self.take(",") {
            items.push(self.deeper(Self::assignment)?);
        }
        Some(self.node(begin, ExpressionKind::Comma(items)))
    }

    /// A node over the tokens since `begin`; what would be too tall for a walk is marked.
    pub fn node(&mut self, begin: usize, kind: ExpressionKind) -> Expression {
        let height = kind.height_of_parts().saturating_add(1);
        let (kind, height) = if height > TALLEST { (ExpressionKind::TooTall, 1) } else { (kind, height) };
        self.tallest = self.tallest.max(height);
        Expression { kind, at: begin..self.at, height }
    }

    /// An expression that a comma ends.
    pub fn assignment(&mut self) -> Option<Expression> {
        let begin = self.at;
        if self.is("{") {
            return self.braces();
        }
        if self.take("throw") {
            let _ = self.deeper(Self::assignment);
            return Some(self.node(begin, ExpressionKind::Opaque));
        }
        let left = self.binary(0)?;
        if self.take("?") {
            let then = self.deeper(Self::expression)?;
            self.expect(":")?;
            let otherwise = self.deeper(Self::assignment)?;
            let kind = ExpressionKind::Conditional(Box::new(left), Box::new(then), Box::new(otherwise));
            return Some(self.node(begin, kind));
        }
        let Some(operator) = self.token().and_then(assignment_operator) else { return Some(left) };
        self.at += 1;
        let right = self.deeper(Self::assignment)?;
        Some(self.node(begin, ExpressionKind::Assign(operator, Box::new(left), Box::new(right))))
    }

    /// As [`Parser::assignment`], where a `>` outside brackets cannot be an operator because it was cut off.
    pub fn without_angles(&mut self) -> Option<Expression> {
        self.assignment()
    }

    fn binary(&mut self, least: u8) -> Option<Expression> {
        let begin = self.at;
        let mut left = self.deeper(Self::unary)?;
        for _ in 0..CHAIN {
            let Some((operator, strength)) = self.token().and_then(binary_operator).filter(|found| found.1 >= least)
            else {
                return Some(left);
            };
            self.at += 1;
            let right = self.deeper(|parser| parser.binary(strength + 1))?;
            left = self.node(begin, ExpressionKind::Binary(operator, Box::new(left), Box::new(right)));
        }
        None
    }

    pub fn unary(&mut self) -> Option<Expression> {
        let begin = self.at;
        let token = self.token()?;
        let word = &*token.text;
        if token.kind == TokenKind::Punctuation {
            if let Some(sign) = ["-", "+", "!", "~", "*", "&"].iter().find(|sign| **sign == word) {
                self.at += 1;
                let inner = self.deeper(Self::unary)?;
                let sign = sign.chars().next().unwrap_or('+');
                return Some(self.node(begin, ExpressionKind::Unary(sign, Box::new(inner))));
            }
            if word == "++" || word == "--" {
                let by = if word == "++" { 1 } else { -1 };
                self.at += 1;
                let place = Box::new(self.deeper(Self::unary)?);
                return Some(self.node(begin, ExpressionKind::Step { by, before: true, place }));
            }
            if let Some(cast) = self.c_cast() {
                return Some(cast);
            }
        }
        if word == "new"
            && let Some(made) = self.new_object()
        {
            return Some(made);
        }
        match word {
            "sizeof" | "alignof" => self.size_of(),
            "new" | "delete" | "co_await" => {
                self.at += 1;
                self.take("[");
                self.take("]");
                let _ = self.deeper(Self::unary);
                Some(self.node(begin, ExpressionKind::Opaque))
            }
            _ => self.postfix(),
        }
    }

    /// `new Type(arguments)` of a struct, whose value stands for its address too.
    fn new_object(&mut self) -> Option<Expression> {
        let begin = self.at;
        self.at += 1;
        let kind = self.deeper(Self::type_specifiers).filter(|kind| matches!(kind.base, Base::Named(_)));
        let items = match kind.is_some() {
            true if self.is("(") => self.arguments(),
            true if self.is("{") => self.braces().map(|braces| vec![braces]),
            true if !self.is("[") => Some(Vec::new()),
            _ => None,
        };
        match kind.zip(items) {
            Some((kind, items)) => {
                let made = self.node(begin, ExpressionKind::Construct(kind, items));
                Some(self.node(begin, ExpressionKind::Unary('&', Box::new(made))))
            }
            None => {
                self.at = begin;
                None
            }
        }
    }

    fn postfix(&mut self) -> Option<Expression> {
        let begin = self.at;
        let mut value = self.primary()?;
        for _ in 0..CHAIN {
            let Some(token) = self.token().filter(|token| token.kind == TokenKind::Punctuation) else {
                return Some(value);
            };
            let kind = match &*token.text {
                "(" => ExpressionKind::Call(Box::new(value), self.arguments()?),
                "[" => ExpressionKind::Index(Box::new(value), Box::new(self.between(Self::expression)?)),
                "." | "->" => {
                    self.at += 1;
                    self.take("template");
                    ExpressionKind::Member(Box::new(value), self.member_name()?)
                }
                "++" | "--" => {
                    let by = if token.is("++") { 1 } else { -1 };
                    self.at += 1;
                    ExpressionKind::Step { by, before: false, place: Box::new(value) }
                }
                "<<<" => self.launch(value)?,
                _ => return Some(value),
            };
            value = self.node(begin, kind);
        }
        None
    }

    /// `step` or `step<32>` after a dot.
    fn member_name(&mut self) -> Option<Name> {
        let path = self.identifier()?;
        let mut name = Name { path, arguments: None, scope: None };
        if self.is("<")
            && let Some(after) = self.after_angles(self.at).filter(|&after| self.closes_template_list(after))
        {
            name.arguments = Some(self.template_arguments(after));
        }
        Some(name)
    }

    fn arguments(&mut self) -> Option<Vec<Expression>> {
        self.between(|parser| parser.list(Self::argument))
    }

    /// An argument, or `args...`.
    fn argument(&mut self) -> Option<Expression> {
        let begin = self.at;
        let value = self.deeper(Self::assignment)?;
        if !self.take("...") {
            return Some(value);
        }
        Some(self.node(begin, ExpressionKind::Spread(Box::new(value))))
    }

    fn launch(&mut self, callee: Expression) -> Option<ExpressionKind> {
        self.at += 1;
        let mut configuration = Vec::new();
        loop {
            configuration.push(self.deeper(Self::assignment)?);
            if !self.take(",") {
                break;
            }
        }
        self.expect(">>>")?;
        let arguments = if self.is("(") { self.arguments()? } else { Vec::new() };
        Some(ExpressionKind::Launch(Box::new(LaunchExpression { callee, configuration, arguments })))
    }

    fn primary(&mut self) -> Option<Expression> {
        let begin = self.at;
        let token = self.token()?;
        let kind = match token.kind {
            TokenKind::Number => ExpressionKind::Number(token.text.clone()),
            TokenKind::Char => ExpressionKind::Character(token.text.clone()),
            TokenKind::String => {
                while self.ahead(1).is_some_and(|next| next.kind == TokenKind::String) {
                    self.at += 1;
                }
                ExpressionKind::Text
            }
            TokenKind::Punctuation => return self.bracketed(),
            TokenKind::Identifier => return self.named(),
        };
        self.at += 1;
        Some(self.node(begin, kind))
    }

    fn bracketed(&mut self) -> Option<Expression> {
        let token = self.token()?;
        match &*token.text {
            "(" => match self.fold() {
                Some(fold) => Some(fold),
                None => self.between(|parser| parser.expression().filter(|_| parser.at >= parser.end)),
            },
            "{" => self.braces(),
            "[" => self.lambda(),
            "::" => self.named(),
            _ => None,
        }
    }

    /// `{a, b}` and `{.x = a}`.
    pub fn braces(&mut self) -> Option<Expression> {
        let begin = self.at;
        let items = self.brace_items()?;
        Some(self.node(begin, ExpressionKind::Braces(items)))
    }

    pub fn brace_items(&mut self) -> Option<Vec<(Option<Arc<str>>, Expression)>> {
        self.between(|parser| {
            parser.list(|parser| {
                let member = if parser.take(".") {
                    let member = parser.identifier()?;
                    parser.take("=");
                    Some(member)
                } else {
                    None
                };
                Some((member, parser.argument()?))
            })
        })
    }

    fn named(&mut self) -> Option<Expression> {
        let begin = self.at;
        let word = self.token().map(|token| &*token.text).unwrap_or_default();
        if matches!(word, "static_cast" | "reinterpret_cast" | "const_cast" | "dynamic_cast") {
            return self.named_cast();
        }
        if let Some(constructed) = self.built_in_construct() {
            return Some(constructed);
        }
        if is_reserved(word) && !matches!(word, "true" | "false" | "nullptr" | "this") {
            return None;
        }
        let name = self.name(Self::closes_template_list)?;
        let is_type =
            &*name.path == "dim3" || self.names.types.contains(name.last()) || known_base(&name.path).is_some();
        if self.is("{") && is_type {
            let kind = Type::named(name);
            let items = self.brace_items()?;
            let braces = self.node(begin, ExpressionKind::Braces(items));
            return Some(self.node(begin, ExpressionKind::Construct(kind, vec![braces])));
        }
        if self.is("(") && is_type && !self.names.templates.contains(name.last()) {
            let kind = Type::named(name);
            let arguments = self.arguments()?;
            return Some(self.node(begin, ExpressionKind::Construct(kind, arguments)));
        }
        Some(self.node(begin, ExpressionKind::Name(name)))
    }

    /// Whether a `<` that would close before `after` opens a template list rather than comparing.
    fn closes_template_list(&self, after: usize) -> bool {
        let known = self.at.checked_sub(1).and_then(|at| self.text.tokens.get(at));
        let known = known
            .is_some_and(|name| self.names.templates.contains(&name.text) || self.names.types.contains(&name.text));
        match self.text.tokens.get(after).filter(|_| after < self.end).map(|token| &*token.text) {
            Some("<<<" | "::") => true,
            Some("(" | "{") => {
                known || self.at >= 3 && self.text.is(self.at - 2, "::") && self.text.is(self.at - 3, "std")
            }
            _ => known,
        }
    }

    /// `int(x)`, `float{x}`, `unsigned(x)`.
    fn built_in_construct(&mut self) -> Option<Expression> {
        let begin = self.at;
        let mut words = Words::default();
        if !self.token().is_some_and(|token| words.take(&token.text)) {
            return None;
        }
        self.at += 1;
        let kind = Type::of(words.base()?);
        let arguments = if self.is("(") {
            self.arguments()?
        } else if self.is("{") {
            self.brace_items()?.into_iter().map(|item| item.1).collect()
        } else {
            self.at = begin;
            return None;
        };
        Some(self.node(begin, ExpressionKind::Construct(kind, arguments)))
    }
}
