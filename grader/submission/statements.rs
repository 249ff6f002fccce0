//! Reading statements and declarations of variables.

use std::sync::Arc;

use super::arithmetic::literal;
use super::lexer::{Token, TokenKind};
use super::parser::Parser;
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Name, Statement, StatementKind};
use super::types::{BIT_FIELD, Base, Type};

impl Parser<'_> {
    /// The statements up to the end of what is being read; those that cannot be read are marked and skipped.
    pub fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        while self.at < self.end {
            let begin = self.at;
            if let Some(declared) = self.deeper(Self::local_struct) {
                statements.extend(declared);
                continue;
            }
            let kind = self.deeper(Self::statement_kind).unwrap_or_else(|| {
                self.at = begin;
                self.skip_statement();
                StatementKind::Unread
            });
            if self.at <= begin {
                self.at = begin + 1;
            }
            statements.push(Statement { kind, at: begin..self.at });
        }
        statements
    }

    fn skip_statement(&mut self) {
        while let Some(token) = self.token() {
            match &*token.text {
                ";" => {
                    self.at += 1;
                    return;
                }
                "{" => {
                    self.skip_group();
                    if !self.is(";") && !self.is(",") && !self.is(")") && !self.is("else") {
                        return;
                    }
                }
                "(" | "[" => self.skip_group(),
                _ => self.at += 1,
            }
        }
    }

    fn statement(&mut self) -> Option<Statement> {
        let begin = self.at;
        let kind = self.deeper(Self::statement_kind)?;
        Some(Statement { kind, at: begin..self.at })
    }

    fn statement_kind(&mut self) -> Option<StatementKind> {
        let token = self.token()?;
        if token.kind == TokenKind::Punctuation {
            if self.take(";") {
                return Some(StatementKind::Empty);
            }
            if self.is("{") {
                return self.between(|parser| Some(StatementKind::Block(parser.statements())));
            }
            if self.is("[") && self.next_is("[") {
                self.skip_group();
                return self.statement_kind();
            }
        }
        match &*token.text {
            "if" => self.if_statement(),
            "for" => self.for_statement(),
            "while" => self.while_statement(),
            "do" => self.do_statement(),
            "switch" => {
                self.at += 1;
                let condition = self.is("(").then(|| self.between(Self::expression))??;
                let body = Box::new(self.statement()?);
                Some(StatementKind::Switch { condition, body })
            }
            "case" => {
                self.at += 1;
                let value = self.assignment()?;
                self.expect(":")?;
                Some(StatementKind::Case(Some(value)))
            }
            "default" if self.next_is(":") => {
                self.at += 2;
                Some(StatementKind::Case(None))
            }
            "return" => {
                self.at += 1;
                let value = if self.is(";") { None } else { Some(self.expression()?) };
                self.expect(";")?;
                Some(StatementKind::Return(value))
            }
            "break" | "continue" | "goto" => self.jump(),
            "try" => {
                self.at += 1;
                self.statement_kind()
            }
            "using" | "typedef" => Some(self.alias()),
            "static_assert" | "template" | "asm" | "__asm__" => {
                self.skip_statement();
                Some(StatementKind::Empty)
            }
            "catch" | "struct" | "class" | "union" | "enum" if self.defines_type() => {
                self.skip_statement();
                Some(StatementKind::Empty)
            }
            _ if token.is_identifier() && self.next_is(":") => {
                // A label.
                self.at += 2;
                if self.at < self.end { self.deeper(Self::statement_kind) } else { Some(StatementKind::Empty) }
            }
            _ => self.declaration_or_expression(),
        }
    }

    /// `using Name = Type;` or `typedef Type Name;`, or something else after these words that means nothing here.
    fn alias(&mut self) -> StatementKind {
        let begin = self.at;
        let found = self.deeper(|parser| {
            parser.at += 1;
            if parser.text.is(begin, "typedef") {
                let kind = parser.type_name()?;
                return Some((parser.identifier()?, kind));
            }
            let name = parser.identifier()?;
            parser.expect("=")?;
            Some((name, parser.type_name()?))
        });
        let ends = self.is(";");
        self.at = begin;
        self.skip_statement();
        found.filter(|_| ends).map_or(StatementKind::Empty, |(name, kind)| StatementKind::Alias(name, kind))
    }

    /// Whether a brace comes before anything that a variable's declaration would have.
    fn defines_type(&self) -> bool {
        let rest = self.text.tokens.get(self.at..self.end).unwrap_or_default();
        let stop = rest.iter().take(30).find(|token| matches!(&*token.text, "{" | ";" | "="));
        let scoped = self.is("enum") && (self.next_is("class") || self.next_is("struct"));
        stop.is_some_and(|token| token.is("{"))
            && !self.ahead(if scoped { 3 } else { 2 }).is_some_and(|token| token.is_identifier() && !token.is("final"))
    }

    fn jump(&mut self) -> Option<StatementKind> {
        let token = self.token()?;
        self.skip_statement();
        Some(match &*token.text {
            "break" => StatementKind::Break,
            "continue" => StatementKind::Continue,
            _ => StatementKind::Unread,
        })
    }

    fn if_statement(&mut self) -> Option<StatementKind> {
        self.at += 1;
        self.take("constexpr");
        if !self.is("(") {
            return None;
        }
        let (before, condition) = self.between(|parser| {
            let mut before = Vec::new();
            if parser.has_semicolon() {
                before.push(parser.statement()?);
            }
            if let Some(kind) = parser.declared_type() {
                // `if (int x = f())`
                let begin = parser.at;
                let declarators = parser.declarators(kind)?;
                let path = declarators.last()?.name.clone();
                before.push(Statement { kind: StatementKind::Declare(declarators), at: begin..parser.at });
                let name = ExpressionKind::Name(Name { path, arguments: None, scope: None });
                return Some((before, parser.node(begin, name)));
            }
            Some((before, parser.expression()?))
        })?;
        let then = Box::new(self.statement()?);
        let otherwise = if self.take("else") { Some(Box::new(self.statement()?)) } else { None };
        Some(StatementKind::If { before, condition, then, otherwise })
    }

    fn has_semicolon(&self) -> bool {
        let mut at = self.at;
        while at < self.end {
            match self.text.tokens.get(at).map(|token| &*token.text) {
                Some(";") => return true,
                Some("(" | "[" | "{") => at = self.text.partner(at),
                _ => {}
            }
            at += 1;
        }
        false
    }

    fn for_statement(&mut self) -> Option<StatementKind> {
        self.at += 1;
        if !self.is("(") {
            return None;
        }
        let close = self.text.partner(self.at).min(self.end);
        let inner = Parser::new(self.text, self.names, self.at + 1, close);
        if !inner.has_semicolon() {
            return self.for_each();
        }
        let (before, condition, step) = self.between(|parser| {
            let before = parser.statement()?;
            let condition = if parser.is(";") { None } else { Some(parser.expression()?) };
            parser.expect(";")?;
            let step = if parser.at < parser.end { Some(parser.expression()?) } else { None };
            Some((before, condition, step))
        })?;
        let body = Box::new(self.statement()?);
        Some(StatementKind::Loop { before: Some(Box::new(before)), condition, step, body, test_first: true })
    }

    fn for_each(&mut self) -> Option<StatementKind> {
        let (item, reference, range) = self.between(|parser| {
            let mut kind = parser.type_specifiers()?;
            parser.pointers(&mut kind);
            let item = if parser.is("[") { parser.bound_names()? } else { vec![(parser.identifier()?, parser.at - 1)] };
            parser.expect(":")?;
            Some((item, kind.reference, parser.assignment()?))
        })?;
        let mut body = Box::new(self.statement()?);
        let (name, name_at) = match item.as_slice() {
            [(name, at)] => (name.clone(), *at),
            // The names stand for the parts of an item without a name.
            names => {
                let begin = body.at.start;
                let path: Arc<str> = "(item)".into();
                let value = Name { path: path.clone(), arguments: None, scope: None };
                let value = Expression { kind: ExpressionKind::Name(value), at: range.at.clone(), height: 1 };
                let kind = StatementKind::Bind { names: names.to_vec(), value, reference };
                let at = body.at.clone();
                let bind = Statement { kind, at: begin..begin };
                body = Box::new(Statement { kind: StatementKind::Block(vec![bind, *body]), at });
                (path, begin)
            }
        };
        Some(StatementKind::ForEach { name, name_at, reference, range, body })
    }

    fn while_statement(&mut self) -> Option<StatementKind> {
        self.at += 1;
        let condition = self.is("(").then(|| self.between(Self::expression))??;
        let body = Box::new(self.statement()?);
        Some(StatementKind::Loop { before: None, condition: Some(condition), step: None, body, test_first: true })
    }

    fn do_statement(&mut self) -> Option<StatementKind> {
        self.at += 1;
        let body = Box::new(self.statement()?);
        self.expect("while")?;
        let condition = self.is("(").then(|| self.between(Self::expression))??;
        self.take(";");
        Some(StatementKind::Loop { before: None, condition: Some(condition), step: None, body, test_first: false })
    }

    fn declaration_or_expression(&mut self) -> Option<StatementKind> {
        if let Some(kind) = self.declared_type() {
            let is_binding = self.is("[") || self.is("&") && self.next_is("[") || self.is("&&") && self.next_is("[");
            if is_binding {
                return self.binding(&kind);
            }
            let declarators = self.declarators(kind)?;
            self.expect(";")?;
            return Some(StatementKind::Declare(declarators));
        }
        let value = self.expression()?;
        self.expect(";")?;
        Some(StatementKind::Expression(value))
    }

    /// The type of the declaration that stands here, if one does; the cursor is then at its first pointer or name.
    pub fn declared_type(&mut self) -> Option<Type> {
        let begin = self.at;
        let found = self.deeper(Self::type_specifiers).filter(|kind| {
            let mut probe = Parser::new(self.text, self.names, self.at, self.end);
            probe.pointers(&mut kind.clone());
            if kind.base == Base::Auto && probe.is("[") {
                return true;
            }
            probe.skip_attributes();
            let named = probe.token().is_some_and(Token::is_identifier);
            let after = probe.ahead(1).map(|token| &*token.text);
            named && (after.is_none() || matches!(after, Some("=" | ";" | "," | "(" | "{" | "[" | ":")))
                || probe.is("(") && probe.next_is("*")
        });
        if found.is_none() {
            self.at = begin;
        }
        found
    }

    /// `[a, b] = value;` after `auto`.
    fn binding(&mut self, kind: &Type) -> Option<StatementKind> {
        let mut kind = kind.clone();
        self.pointers(&mut kind);
        let names = self.bound_names()?;
        self.take("=");
        let value = self.assignment()?;
        self.expect(";")?;
        Some(StatementKind::Bind { names, value, reference: kind.reference })
    }

    /// `[a, b]`, each name with its token.
    fn bound_names(&mut self) -> Option<Vec<(Arc<str>, usize)>> {
        self.between(|parser| {
            parser.list(|parser| {
                let at = parser.at;
                Some((parser.identifier()?, at))
            })
        })
    }

    /// The variables after a type, up to a semicolon or the end of what is being read.
    pub fn declarators(&mut self, base: Type) -> Option<Vec<Declarator>> {
        let mut declarators = vec![self.declarator(base.clone())?];
        while self.take(",") {
            declarators.push(self.declarator(base.clone())?);
        }
        Some(declarators)
    }

    fn declarator(&mut self, mut kind: Type) -> Option<Declarator> {
        self.pointers(&mut kind);
        self.skip_attributes();
        let mut name_at = self.at;
        let name = if self.is("(") {
            name_at = self.text.partner(self.at).saturating_sub(1);
            let name = self.text.tokens.get(name_at).filter(|token| token.is_identifier())?.text.clone();
            self.skip_group();
            self.skip_group();
            kind = Type::of(Base::Auto);
            name
        } else {
            self.identifier()?
        };
        let mut dimensions = Vec::new();
        while self.is("[") {
            let open = self.at;
            let empty = self.next_is("]");
            let length = self.between(Self::expression);
            dimensions.push(length.or_else(|| (!empty).then(|| self.node(open, ExpressionKind::Opaque))));
            // A bracket that nothing closes.
            if self.at <= open {
                return None;
            }
        }
        self.skip_attributes();
        if self.is(":") {
            kind = self.bit_field(kind)?;
        }
        let initial = if self.take("=") {
            Some(Initial::Value(self.deeper(Self::assignment)?))
        } else if self.is("{") {
            Some(Initial::Arguments(self.brace_items()?))
        } else if self.is("(") {
            Some(self.initial_in_brackets())
        } else {
            None
        };
        Some(Declarator { name, name_at, kind, dimensions, initial })
    }

    /// The type of a member of so many bits: `unsigned rows : 10`.
    fn bit_field(&mut self, kind: Type) -> Option<Type> {
        self.expect(":")?;
        let width = self.deeper(Self::unary)?;
        let bits = match &width.kind {
            ExpressionKind::Number(text) => literal(text).and_then(|width| u8::try_from(width.as_integer()?).ok()),
            _ => None,
        };
        let base = match (&kind.base, bits) {
            (Base::Integer { signed, .. }, Some(bits @ 1..=64)) => {
                Base::Integer { bits, signed: *signed, spelling: BIT_FIELD }
            }
            (Base::Bool, _) => Base::Bool,
            // What it holds cannot be told.
            _ => Base::Named(BIT_FIELD.into()),
        };
        Some(Type { base, ..kind })
    }

    /// What a variable is made of in brackets: what cannot be read is no known value, and not a default one.
    fn initial_in_brackets(&mut self) -> Initial {
        let begin = self.at;
        let read = self.between(|parser| parser.list(|parser| Some((None, parser.deeper(Self::assignment)?))));
        read.map_or_else(|| Initial::Value(self.node(begin, ExpressionKind::Opaque)), Initial::Arguments)
    }
}
