//! Walks a text's declarations, outside functions, and fills a [`Program`] with them.

use std::sync::Arc;

use super::lexer::{Token, TokenKind};
use super::parser::{Names, Parser, Text};
use super::program::{Function, Program, TemplateParameter, Variable};
use super::tree::{Declarator, Expression, Initial, Parameter, Statement, StatementKind};
use super::types::{Base, INT, Type};

/// Names that the text declares as types or templates, guessed from the words before them.
pub fn names(text: &Text) -> Names {
    let mut names = Names::default();
    for (at, token) in text.tokens.iter().enumerate().filter(|(_, token)| token.is_identifier()) {
        match &*token.text {
            "struct" | "class" | "union" | "enum" | "typename" | "using" => {
                let next = text.tokens.get(at + 1).filter(|next| next.is_identifier());
                let class = next.is_some_and(|next| next.is("class") || next.is("struct"));
                let name = if class { text.tokens.get(at + 2) } else { next };
                let alias = !token.is("using") || text.is(at + 2, "=");
                if let Some(name) = name.filter(|name| alias && name.is_identifier()) {
                    names.types.insert(name.text.clone());
                }
            }
            "typedef" => {
                let rest = text.tokens.get(at..).unwrap_or_default();
                let end = rest.iter().take(400).position(|token| token.is(";")).unwrap_or(0);
                if let Some(name) =
                    end.checked_sub(1).and_then(|last| rest.get(last)).filter(|name| name.is_identifier())
                {
                    names.types.insert(name.text.clone());
                }
            }
            "template" => names.templates.extend(template_name(text, &names, at)),
            _ => {}
        }
    }
    names
}

/// The name that a `template <...>` declares.
fn template_name(text: &Text, names: &Names, at: usize) -> Option<Arc<str>> {
    let parser = Parser::new(text, names, at + 1, text.tokens.len());
    let after = parser.after_angles(at + 1).filter(|_| text.is(at + 1, "<"))?;
    let mut at = after;
    while at < after + 60 {
        let token = text.tokens.get(at)?;
        let opens = text.is(at + 1, "(");
        match &*token.text {
            "struct" | "class" => return text.tokens.get(at + 1).map(|name| name.text.clone()),
            "{" | ";" => return None,
            "=" => return text.tokens.get(at.checked_sub(1)?).map(|name| name.text.clone()),
            word if opens && (word.starts_with("__") || matches!(word, "alignas" | "decltype")) => {
                at = text.partner(at + 1)
            }
            _ if opens && token.is_identifier() => return Some(token.text.clone()),
            _ => {}
        }
        at += 1;
    }
    None
}

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

struct Scope {
    /// Its name; empty for `extern "C"` and unnamed namespaces.
    name: Arc<str>,
    /// Whether it is a struct rather than a namespace.
    is_struct: bool,
    /// Its closing brace.
    end: usize,
}

struct Scanner<'a, 'p> {
    parser: Parser<'a>,
    program: &'p mut Program,
    scopes: Vec<Scope>,
    /// The template list before the declaration that comes next.
    template: Option<Vec<TemplateParameter>>,
}

impl Scanner<'_, '_> {
    fn declaration(&mut self) {
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
            "public" | "private" | "protected" if self.parser.next_is(":") => self.parser.at += 2,
            "static_assert" | "asm" | "friend" => self.skip_declaration(),
            ";" | "}" => self.parser.at += 1,
            _ => self.function_or_variable(),
        }
    }

    fn enter(&mut self, name: Arc<str>, is_struct: bool) {
        let end = self.parser.text.partner(self.parser.at);
        self.scopes.push(Scope { name, is_struct, end });
        self.parser.at += 1;
    }

    fn leave_scope(&mut self) {
        let Some(scope) = self.scopes.pop() else { return };
        self.parser.at = self.parser.at.max(scope.end.saturating_add(1));
        if !scope.is_struct {
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
        parser.take("...");
        let name_at = parser.at;
        let name = if parser.is("=") { None } else { parser.identifier() };
        let (mut default_at, mut default) = (None, None);
        if parser.take("=") {
            let begin = parser.at;
            if is_type {
                parser.type_name()?;
            } else {
                default = Some(parser.assignment()?);
            }
            default_at = Some(begin..parser.at);
        }
        Some(TemplateParameter { name, name_at, is_type, default_at, default })
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
                self.parser.at = brace;
                self.program.structs.entry(name.text.clone()).or_default();
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

    fn enumeration(&mut self) {
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
        let (mut last, mut offset) = (None, 0);
        for (enumerator, name_at, value) in entries.unwrap_or_default() {
            if value.is_some() {
                (last, offset) = (value, 0);
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

    fn structure(&mut self) {
        self.parser.at += 1;
        self.parser.skip_attributes();
        let name = self.parser.name(|_, _| true).map(|name| name.path);
        let unnamed = || format!("(struct at token {})", self.parser.at).into();
        let name = name.unwrap_or_else(unnamed);
        while self.parser.at < self.parser.end && !self.parser.is("{") {
            self.parser.at += 1;
        }
        self.template = None;
        self.program.structs.entry(name.clone()).or_default();
        self.enter(name, true);
    }

    fn skip_declaration(&mut self) {
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
        let is_static = (begin..begin + 8).any(|at| self.parser.text.is(at, "static"));
        let is_constexpr = (begin..begin + 8).any(|at| self.parser.text.is(at, "constexpr"));
        let declarators = self.parser.declared_type().and_then(|kind| self.parser.declarators(kind));
        match declarators {
            Some(declarators) if self.parser.take(";") => self.variables(declarators, is_static || is_constexpr),
            _ => {
                self.parser.at = begin;
                self.skip_declaration();
            }
        }
    }

    fn variables(&mut self, declarators: Vec<Declarator>, is_static: bool) {
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
    fn scope_path(&self) -> String {
        let named = self.scopes.iter().filter(|scope| !scope.name.is_empty());
        named.take(16).map(|scope| format!("{}::", scope.name)).collect()
    }

    /// What stands before a function's body, if a function stands here.
    fn function_head(&mut self) -> Option<Head> {
        let begin = self.parser.at;
        let mut global = false;
        let mut at = begin;
        let open = loop {
            let token = self.parser.text.tokens.get(at).filter(|_| at < self.parser.end && at < begin + 200)?;
            match &*token.text {
                "__global__" => global = true,
                ";" | "=" | "{" | "}" | "operator" | "<<<" => return None,
                "[" => at = self.parser.text.partner(at),
                "<" => at = self.parser.after_angles(at)?.checked_sub(1)?,
                "(" if self.is_attribute_group(at) => at = self.parser.text.partner(at),
                "(" => break at,
                _ => {}
            }
            at += 1;
        };
        let (name_at, specialised) = self.name_before(open)?;
        let close = self.parser.text.partner(open);
        if close >= self.parser.end || name_at < begin {
            return None;
        }
        self.parser.at = open;
        let parameters = self.parser.between(Parser::parameters);
        self.parser.at = close + 1;
        let owner = self.written_owner(name_at);
        Some(Head { name_at, open, global, parameters, owner, specialised })
    }

    fn is_attribute_group(&self, open: usize) -> bool {
        let before = open.checked_sub(1).and_then(|at| self.parser.text.tokens.get(at));
        before.is_some_and(|word| {
            matches!(&*word.text, "alignas" | "decltype" | "explicit" | "requires")
                || word.text.starts_with("__") && !self.parser.text.is(self.parser.text.partner(open) + 1, "{")
        })
    }

    /// The identifier before a parameter list, template arguments of a specialisation skipped.
    fn name_before(&self, open: usize) -> Option<(usize, bool)> {
        let last = open.checked_sub(1)?;
        let is_name = |at: usize| self.parser.text.tokens.get(at).is_some_and(Token::is_identifier);
        if is_name(last) {
            return Some((last, false));
        }
        if !self.parser.text.is(last, ">") {
            return None;
        }
        let from = last.saturating_sub(40);
        let angle = (from..last)
            .rev()
            .find(|&at| self.parser.after_angles(at) == Some(open) && self.parser.text.is(at, "<"))?;
        angle.checked_sub(1).filter(|&at| is_name(at)).map(|at| (at, true))
    }

    /// `Solver` of `void Solver::step()`.
    fn written_owner(&self, name_at: usize) -> Option<Arc<str>> {
        let qualified = name_at.checked_sub(1).is_some_and(|at| self.parser.text.is(at, "::"));
        let owner = name_at.checked_sub(2).and_then(|at| self.parser.text.tokens.get(at))?;
        (qualified && owner.is_identifier()).then(|| owner.text.clone())
    }

    fn function(&mut self, head: Head, template: Option<Vec<TemplateParameter>>) {
        let begin = head.open;
        let member_initials = self.after_parameters();
        let body_at = self.parser.at;
        let body = if self.parser.is("{") {
            let statements = self.parser.between(|parser| Some(parser.statements())).unwrap_or_default();
            if self.parser.at <= body_at {
                self.skip_declaration();
            }
            Some(Statement { kind: StatementKind::Block(statements), at: body_at..self.parser.at })
        } else {
            None
        };
        if body.is_none() && !head.global && self.is_rather_a_variable(&head) {
            self.declared_with_arguments(&head, begin);
            return;
        }
        if body.is_none() {
            self.skip_declaration();
        }
        self.add_function(head, template, member_initials, body);
    }

    fn add_function(
        &mut self,
        head: Head,
        template: Option<Vec<TemplateParameter>>,
        member_initials: Vec<(Arc<str>, Vec<Expression>)>,
        body: Option<Statement>,
    ) {
        let Some(token) = self.parser.text.tokens.get(head.name_at) else { return };
        let scope = self.scopes.last().filter(|scope| scope.is_struct).map(|scope| scope.name.clone());
        let mut path = self.scope_path();
        if let Some(owner) = &head.owner {
            path.push_str(owner);
            path.push_str("::");
        }
        path.push_str(&token.text);
        let specialisation = head.specialised || template.as_ref().is_some_and(Vec::is_empty);
        let owner = scope.or(head.owner).filter(|owner| self.program.structs.contains_key(owner));
        self.program.functions.push(Function {
            name: token.text.clone(),
            path: path.into(),
            owner,
            template,
            parameters: head.parameters,
            member_initials,
            body,
            global: head.global,
            specialisation,
            at: head.name_at,
            line: token.line,
        });
    }

    /// Goes past `const noexcept -> int` and a constructor's list, which it returns.
    fn after_parameters(&mut self) -> Vec<(Arc<str>, Vec<Expression>)> {
        let mut initials = Vec::new();
        while let Some(token) = self.parser.token() {
            match &*token.text {
                "{" | ";" | "=" | "," | "}" => break,
                ":" => {
                    self.parser.at += 1;
                    self.member_initials(&mut initials);
                }
                "(" | "[" => self.parser.skip_group(),
                _ => self.parser.at += 1,
            }
        }
        initials
    }

    fn member_initials(&mut self, initials: &mut Vec<(Arc<str>, Vec<Expression>)>) {
        while let Some(name) = self.parser.name(|_, _| true) {
            if !self.parser.is("(") && !self.parser.is("{") {
                return;
            }
            let values = self.parser.between(|parser| parser.list(Parser::assignment));
            initials.push((name.path, values.unwrap_or_default()));
            if !self.parser.take(",") {
                return;
            }
        }
    }

    /// `dim3 block(BX, BY);` reads like a function's declaration, but for BX being no type.
    fn is_rather_a_variable(&self, head: &Head) -> bool {
        let Some(parameters) = &head.parameters else { return true };
        parameters.iter().any(|parameter| {
            let value = matches!(&parameter.kind.base, Base::Named(name)
                if &**name != "dim3" && &**name != "..." && !name.contains("::") && !self.program.names.types.contains(name));
            parameter.name.is_none() && value && parameter.kind.pointers.is_empty() && !parameter.kind.reference
        })
    }

    fn declared_with_arguments(&mut self, head: &Head, open: usize) {
        let dim3 = head.name_at.checked_sub(1).is_some_and(|at| self.parser.text.is(at, "dim3"));
        let token = self.parser.text.tokens.get(head.name_at);
        self.parser.at = open;
        let values = self.parser.between(|parser| parser.list(Parser::assignment));
        if let (Some(token), Some(values)) = (token, values) {
            let base = if dim3 { Base::Named("dim3".into()) } else { Base::Auto };
            let initial = Some(Initial::Arguments(values.into_iter().map(|value| (None, value)).collect()));
            let (name, name_at) = (token.text.clone(), head.name_at);
            let declarator = Declarator { name, name_at, kind: Type::of(base), dimensions: Vec::new(), initial };
            self.variables(vec![declarator], false);
        }
        self.skip_declaration();
    }
}

/// What stands before a function's body.
struct Head {
    name_at: usize,
    /// The bracket that opens its parameters.
    open: usize,
    global: bool,
    parameters: Option<Vec<Parameter>>,
    /// The struct or namespace written before its name.
    owner: Option<Arc<str>>,
    specialised: bool,
}
