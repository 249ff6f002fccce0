//! Walks a text's declarations, outside functions, and fills a [`Program`] with them.

use std::sync::Arc;

use super::defaults::take_missing;
use super::lexer::{Token, TokenKind};
use super::parser::{Parser, Text};
use super::program::{Program, Struct, TemplateParameter, Variable, path_means};
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Name};
use super::types::{Base, INT, Type};

/// Fills `program` with the declarations of `text`.
pub fn scan(text: &Text, program: &mut Program) {
    let names = program.names.clone();
    let mut scanner = Scanner {
        parser: Parser::new(text, &names, 0, text.tokens.len()),
        program,
        scopes: Vec::new(),
        template: None,
    };
    while scanner.parser.at < scanner.parser.end {
        let before = scanner.parser.at;
        scanner.declaration();
        if scanner.parser.at <= before {
            scanner.parser.at = before + 1;
        }
    }
}

pub struct Scope {
    /// Its name; empty for `extern "C"` and unnamed namespaces.
    pub name: Arc<str>,
    /// Whether it is a struct rather than a namespace.
    pub is_struct: bool,
    /// Whether it stands inside a function.
    pub local: bool,
    /// Its closing brace.
    pub end: usize,
}

pub struct Scanner<'a, 'p> {
    pub parser: Parser<'a>,
    pub program: &'p mut Program,
    pub scopes: Vec<Scope>,
    /// The template list before the declaration that comes next.
    pub template: Option<Vec<TemplateParameter>>,
}

impl Scanner<'_, '_> {
    pub fn declaration(&mut self) {
        if self.scopes.last().is_some_and(|scope| scope.end <= self.parser.at) {
            self.leave_scope();
            return;
        }
        let Some(token) = self.parser.token() else { return };
        match &*token.text {
            "namespace" => self.namespace(),
            "inline" if self.parser.next_is("namespace") => self.parser.at += 1,
            "extern" if self.parser.ahead(1).is_some_and(|next| next.kind == TokenKind::String) => self.linkage(),
            "template" => self.template_list(),
            "using" => self.using(),
            "typedef" => self.typedef(),
            "enum" => self.enumeration(),
            "struct" | "class" | "union" if self.defines_struct() => self.structure(),
            "struct" | "class" if self.template.is_some() && self.declares_struct() => self.declared_structure(),
            "public" | "private" | "protected" if self.parser.next_is(":") => self.parser.at += 2,
            "static" | "const" | "constexpr" | "inline" if self.next_defines_struct() => self.parser.at += 1,
            "static_assert" | "asm" | "friend" => self.skip_declaration(),
            ";" | "}" => self.parser.at += 1,
            _ => self.function_or_variable(),
        }
    }

    pub fn enter(&mut self, name: Arc<str>, is_struct: bool) {
        let end = self.parser.text.partner(self.parser.at);
        self.scopes.push(Scope { name, is_struct, local: false, end });
        self.parser.at += 1;
    }

    fn leave_scope(&mut self) {
        let Some(scope) = self.scopes.pop() else { return };
        self.parser.at = self.parser.at.max(scope.end.saturating_add(1));
        if !scope.is_struct || scope.local {
            return;
        }
        // `struct Config { ... } config;`
        let kind = Type::of(Base::Named(scope.name));
        if self.parser.token().is_some_and(Token::is_identifier)
            && let Some(declarators) = self.parser.declarators(kind)
        {
            self.variables(declarators, false);
        }
        self.parser.take(";");
    }

    fn namespace(&mut self) {
        self.parser.at += 1;
        self.parser.skip_attributes();
        let name = self.parser.name(|_, _| false).map(|name| name.path).unwrap_or_default();
        if self.parser.is("{") { self.enter(name, false) } else { self.skip_declaration() }
    }

    fn linkage(&mut self) {
        self.parser.at += 2;
        if self.parser.is("{") {
            self.enter("".into(), false);
        }
    }

    fn template_list(&mut self) {
        self.parser.at += 1;
        match self.parser.after_angles(self.parser.at).filter(|_| self.parser.is("<")) {
            Some(after) => self.template = Some(self.template_parameters(after)),
            None => self.skip_declaration(),
        }
    }

    fn template_parameters(&mut self, after: usize) -> Vec<TemplateParameter> {
        let outer = std::mem::replace(&mut self.parser.end, after - 1);
        self.parser.at += 1;
        let mut parameters = Vec::new();
        while self.parser.at < self.parser.end && parameters.len() < 64 {
            let Some(parameter) = self.template_parameter() else { break };
            parameters.push(parameter);
            if !self.parser.take(",") {
                break;
            }
        }
        self.parser.at = after;
        self.parser.end = outer;
        parameters
    }

    fn template_parameter(&mut self) -> Option<TemplateParameter> {
        let parser = &mut self.parser;
        let is_type = parser.is("typename") || parser.is("class");
        if is_type {
            parser.at += 1;
        } else {
            let mut kind = parser.type_specifiers()?;
            parser.pointers(&mut kind);
        }
        let pack = parser.take("...");
        let name_at = parser.at;
        let name = if !is_type && parser.is("(") {
            // `void (*kernel)(const float*, float*, int, float)`
            parser.function_or_array_name(&mut Type::of(Base::Auto))?
        } else if parser.is("=") {
            None
        } else {
            parser.identifier()
        };
        let (mut default_at, mut default, mut default_kind) = (None, None, None);
        if parser.take("=") {
            let begin = parser.at;
            if is_type {
                default_kind = Some(parser.type_name()?);
            } else {
                default = Some(parser.assignment()?);
            }
            default_at = Some(begin..parser.at);
        }
        Some(TemplateParameter { name, name_at, is_type, pack, default_at, default, default_kind })
    }

    fn using(&mut self) {
        self.parser.at += 1;
        if self.parser.next_is("=")
            && let Some(name) = self.parser.identifier()
        {
            self.parser.at += 1;
            if let Some(kind) = self.parser.type_name() {
                self.program.aliases.insert(name, kind);
            }
        }
        self.skip_declaration();
    }

    fn typedef(&mut self) {
        self.parser.at += 1;
        if self.defines_struct() {
            // `typedef struct { ... } Config;`: the name comes last.
            let brace = (self.parser.at..self.parser.end).take(8).find(|&at| self.parser.text.is(at, "{"));
            let close = brace.map_or(0, |brace| self.parser.text.partner(brace));
            let name = self.parser.text.tokens.get(close + 1).filter(|name| name.is_identifier());
            if let (Some(brace), Some(name)) = (brace, name) {
                let union = self.parser.is("union");
                self.parser.at = brace;
                self.program.structs.entry(name.text.clone()).or_default().union = union;
                self.enter(name.text.clone(), true);
                return;
            }
        }
        if let Some(mut kind) = self.parser.type_specifiers() {
            self.parser.pointers(&mut kind);
            if let Some(name) = self.parser.identifier() {
                self.program.aliases.insert(name, kind);
            }
        }
        self.skip_declaration();
    }

    pub fn enumeration(&mut self) {
        self.parser.at += 1;
        let scoped = self.parser.take("class") || self.parser.take("struct");
        let name = if self.parser.is("{") || self.parser.is(":") { None } else { self.parser.identifier() };
        if self.parser.take(":") {
            let _ = self.parser.type_specifiers();
        }
        if !self.parser.is("{") {
            self.skip_declaration();
            return;
        }
        let entries = self.parser.between(|parser| {
            parser.list(|parser| {
                let at = parser.at;
                let name = parser.identifier()?;
                Some((name, at, if parser.take("=") { Some(parser.assignment()?) } else { None }))
            })
        });
        let zero = |at: usize| Expression { kind: ExpressionKind::Number("0".into()), at: at..at + 1, height: 1 };
        let (mut last, mut offset) = (None, 0);
        for (enumerator, name_at, value) in entries.unwrap_or_default() {
            if value.is_some() || last.is_none() {
                (last, offset) = (Some(value.unwrap_or_else(|| zero(name_at))), 0);
            }
            let initial = last.clone().map(Initial::Value);
            let declarator =
                Declarator { name: enumerator, name_at, kind: Type::of(INT), dimensions: Vec::new(), initial };
            let scope = name.as_deref().filter(|_| scoped);
            self.variable(declarator, scope, offset);
            offset += 1;
        }
        self.skip_declaration();
    }

    /// Whether a struct's body comes before anything else could.
    fn defines_struct(&self) -> bool {
        if !matches!(self.parser.token().map(|token| &*token.text), Some("struct" | "class" | "union")) {
            return false;
        }
        let stops =
            |at: &usize| self.parser.text.tokens.get(*at).is_some_and(|t| matches!(&*t.text, "{" | ";" | "=" | ")"));
        let stop = (self.parser.at..self.parser.end).take(60).find(stops);
        let function = (self.parser.at..stop.unwrap_or(0)).any(|at| {
            self.parser.text.is(at, "(")
                && !at.checked_sub(1).is_some_and(|before| {
                    self.parser.text.is(before, "alignas") || self.parser.text.is(before, "__align__")
                })
        });
        stop.is_some_and(|at| self.parser.text.is(at, "{")) && !function
    }

    /// `static struct Config { ... } config;`, behind the words before `struct`.
    fn next_defines_struct(&mut self) -> bool {
        let at = self.parser.at;
        while ["static", "const", "constexpr", "inline"].iter().any(|word| self.parser.take(word)) {}
        let defines = self.defines_struct();
        self.parser.at = at;
        defines
    }

    /// `struct Tile;`
    fn declares_struct(&self) -> bool {
        self.parser.ahead(1).is_some_and(Token::is_identifier)
            && self.parser.ahead(2).is_some_and(|token| token.is(";"))
    }

    /// A template's declaration may have the only defaults of its list.
    fn declared_structure(&mut self) {
        self.parser.at += 1;
        let (name, list) = (self.parser.identifier(), self.template.take());
        if let (Some(name), Some(list)) = (name, list.filter(|list| !list.is_empty())) {
            let path = format!("{}{name}", self.scope_path()).into();
            let known = self.program.structs.entry(name).or_insert_with(|| Struct { path, ..Struct::default() });
            match &mut known.template {
                Some(own) => take_missing(own, &list, self.parser.text, &self.program.names),
                None => known.template = Some(list),
            }
        }
        self.skip_declaration();
    }

    fn structure(&mut self) {
        let union = self.parser.is("union");
        self.parser.at += 1;
        self.parser.skip_attributes();
        let written = self.parser.name(|_, _| true);
        let unnamed = || format!("(struct at token {})", self.parser.at).into();
        let name = written.map_or_else(unnamed, |name| self.struct_name(&name));
        let bases = self.bases();
        while self.parser.at < self.parser.end && !self.parser.is("{") {
            self.parser.at += 1;
        }
        let mut template = self.template.take().filter(|list| !list.is_empty());
        let path = format!("{}{name}", self.scope_path()).into();
        let known = self.program.structs.entry(name.clone()).or_default();
        if let (Some(own), Some(declared)) = (&mut template, &known.template) {
            take_missing(own, declared, self.parser.text, &self.program.names);
        }
        (known.path, known.template, known.bases, known.union) = (path, template, bases, union);
        self.enter(name, true);
    }

    /// A struct's name; `Tile<1, 2>` for what is written for those arguments alone.
    fn struct_name(&self, name: &Name) -> Arc<str> {
        let Some(arguments) = &name.arguments else { return name.path.clone() };
        let spelt: Vec<String> =
            arguments.iter().map(|argument| self.parser.text.spelling(argument.at.clone())).collect();
        format!("{}<{}>", name.path, spelt.join(", ")).into()
    }

    /// The types after a struct's `:`.
    fn bases(&mut self) -> Vec<Type> {
        let mut bases = Vec::new();
        self.parser.take("final");
        if !self.parser.take(":") {
            return bases;
        }
        while bases.len() < 16 {
            while ["public", "protected", "private", "virtual"].iter().any(|word| self.parser.take(word)) {}
            let Some(base) = self.parser.type_name() else { break };
            bases.push(base);
            if !self.parser.take(",") {
                break;
            }
        }
        bases
    }

    pub fn skip_declaration(&mut self) {
        self.template = None;
        while let Some(token) = self.parser.token() {
            match &*token.text {
                ";" => {
                    self.parser.at += 1;
                    return;
                }
                "{" => {
                    self.parser.skip_group();
                    if !self.parser.is(";") && !self.parser.is(",") {
                        return;
                    }
                }
                "(" | "[" => self.parser.skip_group(),
                "}" => return,
                _ => self.parser.at += 1,
            }
        }
    }

    fn function_or_variable(&mut self) {
        let begin = self.parser.at;
        if let Some(head) = self.function_head() {
            let template = self.template.take();
            self.function(head, template);
            return;
        }
        self.parser.at = begin;
        self.template = None;
        let words = (begin..begin + 8).map_while(|at| self.parser.text.tokens.get(at).filter(|token| !token.is(";")));
        let is_static = words.into_iter().any(|word| word.is("static") || word.is("constexpr"));
        let declarators = self.parser.declared_type().and_then(|kind| self.parser.declarators(kind));
        match declarators {
            Some(declarators) if self.parser.take(";") => self.variables(declarators, is_static),
            _ if self.member_definition(begin) => {}
            _ => {
                self.parser.at = begin;
                self.skip_declaration();
            }
        }
    }

    /// `int Solver::count = 6;`: what a static member begins with.
    fn member_definition(&mut self, begin: usize) -> bool {
        self.parser.at = begin;
        while ["static", "inline", "constexpr"].iter().any(|word| self.parser.take(word)) {}
        let Some(kind) = self.parser.type_specifiers() else { return false };
        let mut path = String::new();
        while self.parser.next_is("::")
            && let Some(owner) = self.parser.identifier()
        {
            path = format!("{path}{owner}::");
            self.parser.at += 1;
        }
        let declarators = self.parser.declarators(kind).filter(|_| !path.is_empty() && self.parser.is(";"));
        let Some([declarator]) = declarators.as_deref() else { return false };
        let full = format!("{path}{}", declarator.name);
        let declared = self.program.variables.get_mut(&declarator.name).into_iter().flatten();
        for variable in declared.filter(|variable| path_means(&full, &variable.path)) {
            if variable.declarator.initial.is_none() {
                variable.declarator.initial = declarator.initial.clone();
            }
        }
        self.parser.at += 1;
        true
    }

    pub fn variables(&mut self, declarators: Vec<Declarator>, is_static: bool) {
        let owner = self.scopes.last().filter(|scope| scope.is_struct && !is_static).map(|scope| scope.name.clone());
        for declarator in declarators {
            match owner.as_ref().and_then(|owner| self.program.structs.get_mut(owner)) {
                Some(owner) => owner.members.push(declarator),
                None => self.variable(declarator, None, 0),
            }
        }
    }

    fn variable(&mut self, declarator: Declarator, scope: Option<&str>, offset: i64) {
        let mut path = self.scope_path();
        if let Some(scope) = scope {
            path.push_str(scope);
            path.push_str("::");
        }
        path.push_str(&declarator.name);
        let name = declarator.name.clone();
        self.program.variables.entry(name).or_default().push(Variable { path: path.into(), declarator, offset });
    }

    /// `a::b::`, or nothing at all.
    pub fn scope_path(&self) -> String {
        let named = self.scopes.iter().filter(|scope| !scope.name.is_empty());
        named.take(16).map(|scope| format!("{}::", scope.name)).collect()
    }
}
