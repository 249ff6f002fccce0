//! Reading functions: heads, parameters, constructors' lists and bodies.

use std::sync::Arc;

use super::lexer::Token;
use super::parser::Parser;
use super::program::{Function, TemplateParameter};
use super::scan::Scanner;
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Parameter, Statement, StatementKind};
use super::types::{Base, Type};

/// A constructor's `: member(value)` list.
type Initials = Vec<(Arc<str>, Vec<Expression>)>;

/// What stands before a function's body.
pub struct Head {
    name_at: usize,
    /// An operator's name: `operator()`, `operator++`, `operator dim3`.
    operator: Option<Arc<str>>,
    /// The bracket that opens its parameters.
    open: usize,
    global: bool,
    parameters: Option<Vec<Parameter>>,
    /// The struct or namespace written before its name.
    owner: Option<Arc<str>>,
    /// Whether that has template arguments.
    owner_is_template: bool,
    returns: Option<Type>,
    specialised: bool,
}

impl Scanner<'_, '_> {
    /// What stands before a function's body, if a function stands here.
    pub fn function_head(&mut self) -> Option<Head> {
        let begin = self.parser.at;
        let mut global = false;
        let mut at = begin;
        let open = loop {
            let token = self.parser.text.tokens.get(at).filter(|_| at < self.parser.end && at < begin + 200)?;
            match &*token.text {
                "__global__" => global = true,
                "operator" => return self.operator_head(begin, at),
                ";" | "=" | "{" | "}" | "<<<" => return None,
                "[" => at = self.parser.text.partner(at),
                "<" => at = self.parser.after_angles(at)?.checked_sub(1)?,
                "(" if self.is_attribute_group(at) => at = self.parser.text.partner(at),
                // A pointer to a function.
                "(" if self.parser.text.is(at + 1, "*") => return None,
                "(" => break at,
                _ => {}
            }
            at += 1;
        };
        let (name_at, specialised) = self.name_before(open)?;
        self.head(begin, (name_at, None), open, (global, specialised))
    }

    /// The same for an operator, whose name begins at `name_at`.
    fn operator_head(&mut self, begin: usize, name_at: usize) -> Option<Head> {
        let text = self.parser.text;
        let called = text.is(name_at + 1, "(") && text.is(name_at + 2, ")");
        let first = if called { name_at + 3 } else { name_at + 1 };
        let open = (first..name_at + 12).find(|at| text.is(*at, "("))?;
        let mut name = "operator".to_owned();
        for token in text.tokens.get(name_at + 1..open)? {
            if token.is_identifier() {
                name.push(' ');
            }
            name.push_str(&token.text);
        }
        self.head(begin, (name_at, Some(name.into())), open, (false, false))
    }

    /// Reads the parameters that open at `open`, and what goes with them.
    fn head(
        &mut self,
        begin: usize,
        (name_at, operator): (usize, Option<Arc<str>>),
        open: usize,
        (global, specialised): (bool, bool),
    ) -> Option<Head> {
        let close = self.parser.text.partner(open);
        if close >= self.parser.end || name_at < begin {
            return None;
        }
        self.parser.at = open;
        let parameters = self.parser.between(Parser::parameters);
        self.parser.at = close + 1;
        let destructs = self.parser.text.is(name_at.saturating_sub(1), "~");
        let (owner, owner_is_template) = self.written_owner(name_at - usize::from(destructs)).unzip();
        let returns = self.return_type(begin, name_at);
        let owner_is_template = owner_is_template.unwrap_or_default();
        Some(Head { name_at, operator, open, global, parameters, owner, owner_is_template, returns, specialised })
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

    /// `Solver` of `void Solver::step()` or `void Solver<P>::step()`, and whether there were template arguments.
    fn written_owner(&self, name_at: usize) -> Option<(Arc<str>, bool)> {
        let before = name_at.checked_sub(1).filter(|&at| self.parser.text.is(at, "::"))?;
        let (owner_at, specialised) = self.name_before(before)?;
        Some((self.parser.text.tokens.get(owner_at)?.text.clone(), specialised))
    }

    /// The type before a function's name.
    fn return_type(&mut self, begin: usize, name_at: usize) -> Option<Type> {
        let (at, end) = (self.parser.at, self.parser.end);
        (self.parser.at, self.parser.end) = (begin, name_at);
        let returns = self.parser.type_name().filter(|_| self.parser.at == name_at);
        (self.parser.at, self.parser.end) = (at, end);
        returns
    }

    pub fn function(&mut self, head: Head, template: Option<Vec<TemplateParameter>>) {
        let begin = head.open;
        let (member_initials, trailing) = self.after_parameters();
        let head = Head { returns: trailing.or(head.returns), ..head };
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
        member_initials: Initials,
        body: Option<Statement>,
    ) {
        let Some(token) = self.parser.text.tokens.get(head.name_at) else { return };
        let scope = self.scopes.last().filter(|scope| scope.is_struct).map(|scope| scope.name.clone());
        let mut path = self.scope_path();
        if let Some(owner) = &head.owner {
            path.push_str(owner);
            path.push_str("::");
        }
        let destructs = head.name_at.checked_sub(1).is_some_and(|at| self.parser.text.is(at, "~"));
        let plain = if destructs { format!("~{}", token.text).into() } else { token.text.clone() };
        let name = head.operator.unwrap_or(plain);
        path.push_str(&name);
        // The list before `void Solver<P>::step()` is the struct's own.
        let template = template.filter(|_| !head.owner_is_template);
        let specialisation = head.specialised || template.as_ref().is_some_and(Vec::is_empty);
        if let Some(body) = &body {
            self.local_types(&path, body.at.clone());
        }
        let owner = scope.or(head.owner).filter(|owner| self.program.structs.contains_key(owner));
        self.program.functions.push(Function {
            name,
            path: path.into(),
            owner,
            template,
            parameters: head.parameters,
            returns: head.returns,
            member_initials,
            body,
            global: head.global,
            specialisation,
            at: head.name_at,
            line: token.line,
        });
    }

    /// Goes past `const noexcept -> int` and a constructor's list; returns that list and the type.
    fn after_parameters(&mut self) -> (Initials, Option<Type>) {
        let mut initials = Vec::new();
        let mut returns = None;
        while let Some(token) = self.parser.token() {
            match &*token.text {
                "{" | ";" | "=" | "," | "}" => break,
                ":" => {
                    self.parser.at += 1;
                    self.member_initials(&mut initials);
                }
                "->" => {
                    self.parser.at += 1;
                    returns = self.parser.type_name();
                }
                "(" | "[" => self.parser.skip_group(),
                _ => self.parser.at += 1,
            }
        }
        (initials, returns)
    }

    fn member_initials(&mut self, initials: &mut Initials) {
        while let Some(name) = self.parser.name(|_, _| true) {
            if !self.parser.is("(") && !self.parser.is("{") {
                return;
            }
            let begin = self.parser.at;
            let values = self.parser.between(|parser| parser.list(Parser::assignment));
            let unread = || vec![self.parser.node(begin, ExpressionKind::Opaque)];
            initials.push((name.path, values.unwrap_or_else(unread)));
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
