//! Template instances: what a struct's template parameters stand for, and the members that are found through a type.

use std::sync::Arc;

use super::interpreter::{Frame, Interpreter, NESTING};
use super::parser::Parser;
use super::program::{Function, TemplateParameter, Variable, path_means};
use super::tree::{Expression, ExpressionKind, Name, TemplateArgument};
use super::types::{Base, Type};
use super::value::{Data, Identity, Value};

/// Frames within one another in which members of instances are worked out.
const FRAMES: usize = 48;

impl Interpreter<'_> {
    /// A type with aliases, template parameters and template arguments replaced by what they stand for here.
    pub fn resolved(&mut self, kind: &Type) -> Type {
        let Base::Named(path) = &kind.base else { return kind.clone() };
        if self.nesting > NESTING || self.fuel == 0 {
            return kind.clone();
        }
        self.spend(1);
        self.nesting += 1;
        let path = path.clone();
        let resolved = match path.rsplit_once("::") {
            Some((before, last)) => self.resolved_within(kind, before, last),
            None => self.resolved_here(kind, &path),
        };
        self.nesting -= 1;
        resolved
    }

    /// `P::Tile`, `ns::Tile`.
    fn resolved_within(&mut self, kind: &Type, before: &str, last: &str) -> Type {
        let scope = kind.scope.as_ref().filter(|(length, _)| *length == before.len());
        let owner = Type {
            arguments: scope.map(|(_, list)| list.clone()),
            scope: kind.scope.clone().filter(|(length, _)| *length < before.len()),
            ..Type::of(Base::Named(before.into()))
        };
        let owner = self.resolved(&owner);
        let Some(known) = self.struct_of(&owner).filter(|_| self.frames.len() < FRAMES) else {
            return self.resolved_here(kind, last);
        };
        let path = self.program.structs.get(&known).map(|found| found.path.clone()).unwrap_or_default();
        let arguments = self.closed(kind.arguments.as_deref());
        let inner =
            Type { base: Base::Named(format!("{path}::{last}").into()), arguments, scope: None, ..kind.clone() };
        self.enter_instance(&owner);
        let resolved = self.resolved_here(&inner, last);
        self.frames.pop();
        resolved
    }

    /// A type whose last name is looked up in this frame.
    fn resolved_here(&mut self, kind: &Type, last: &str) -> Type {
        let bound = self.frames.last().and_then(|frame| frame.types.iter().rev().find(|bound| &*bound.0 == last));
        if let Some((_, actual)) = bound {
            return kind.meaning(actual);
        }
        if let Some(alias) = self.program.aliases.get(last).filter(|alias| alias.base != kind.base) {
            return self.resolved(&kind.meaning(alias));
        }
        let arguments = self.closed(kind.arguments.as_deref());
        Type { arguments, scope: None, ..kind.clone() }
    }

    /// Template arguments with their values and types as they are here.
    fn closed(&mut self, arguments: Option<&[TemplateArgument]>) -> Option<Arc<[TemplateArgument]>> {
        arguments.map(|list| list.iter().map(|argument| self.closed_argument(argument)).collect())
    }

    pub fn closed_argument(&mut self, argument: &TemplateArgument) -> TemplateArgument {
        let kind = argument.kind.as_ref().map(|kind| self.resolved(kind));
        let value = argument.value.as_ref().map(|written| {
            let value = self.evaluate(written);
            Expression { kind: ExpressionKind::Known(Box::new(value)), at: written.at.clone(), height: 1 }
        });
        TemplateArgument { at: argument.at.clone(), value, kind }
    }

    /// The name under which the program knows the struct that a resolved type is.
    pub fn struct_of(&self, kind: &Type) -> Option<Arc<str>> {
        let Base::Named(path) = &kind.base else { return None };
        let last = path.rsplit("::").next().unwrap_or_default();
        if kind.arguments.is_some() {
            if self.may_be_partial(last, kind) {
                return None;
            }
            let special = format!("{last}<{}>", self.spelt_arguments(kind));
            if let Some((name, _)) = self.program.structs.get_key_value(&*special) {
                return Some(name.clone());
            }
        }
        self.program.structs.get_key_value(last).map(|(name, _)| name.clone())
    }

    /// Whether what is written for some of a template's arguments alone may be meant.
    fn may_be_partial(&self, last: &str, kind: &Type) -> bool {
        let begin = format!("{last}<");
        let given: Vec<String> =
            kind.arguments.iter().flat_map(|list| list.iter()).map(|one| self.spelt(one)).collect();
        self.program.structs.iter().any(|(name, found)| {
            let partial = found.template.as_deref().filter(|_| name.starts_with(&begin));
            let Some(parameters) = partial else { return false };
            let pattern = name[begin.len()..].trim_end_matches('>').split(", ");
            let is_plain = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_');
            let is_parameter = |part: &str| parameters.iter().any(|parameter| parameter.name.as_deref() == Some(part));
            let differs = |(part, given): (&str, &String)| is_plain(part) && !is_parameter(part) && part != given;
            !pattern.zip(&given).any(differs)
        })
    }

    /// A resolved type as the end of the file can spell it: `ns::Tile<32, 8>`.
    pub fn spelt_type(&self, kind: &Type) -> String {
        let Base::Named(path) = &kind.base else { return kind.to_string() };
        let last = path.rsplit("::").next().unwrap_or_default();
        let known = self.program.structs.get(last).map(|found| &found.path).filter(|known| path_means(path, known));
        let mut name = known.unwrap_or(path).to_string();
        if kind.arguments.is_some() && name.len() < 400 {
            name = format!("{name}<{}>", self.spelt_arguments(kind));
        }
        Type { base: Base::Named(name.into()), ..kind.clone() }.to_string()
    }

    fn spelt_arguments(&self, kind: &Type) -> String {
        let spelt = |argument: &TemplateArgument| self.spelt(argument);
        kind.arguments.iter().flat_map(|list| list.iter()).map(spelt).collect::<Vec<_>>().join(", ")
    }

    fn spelt(&self, argument: &TemplateArgument) -> String {
        let known = argument.value.as_ref().map(|value| &value.kind);
        match (known, &argument.kind) {
            (Some(ExpressionKind::Known(value)), _) if value.as_integer().is_some() => spelt_integer(value),
            (_, Some(kind)) => self.spelt_type(kind),
            _ => self.program.text.spelling(argument.at.clone()),
        }
    }

    /// Template arguments as they are here, spelt.
    pub fn spelt_list(&mut self, list: &[TemplateArgument]) -> String {
        let arguments = self.closed(Some(list));
        self.spelt_arguments(&Type { arguments, ..Type::of(Base::Auto) })
    }

    /// The template arguments behind the name of what is written for those alone.
    pub fn written_arguments(&self, function: &Function) -> Option<Vec<TemplateArgument>> {
        let text = &self.program.text;
        let mut parser = Parser::new(text, &self.program.names, function.at + 1, text.tokens.len());
        let after = parser.after_angles(parser.at).filter(|_| parser.is("<"))?;
        Some(parser.template_arguments(after))
    }

    /// Opens a frame in which a struct's template parameters stand for what the type's arguments say.
    pub fn enter_instance(&mut self, owner: &Type) {
        let program = self.program;
        let found = self.struct_of(owner).and_then(|name| program.structs.get(&name));
        let path = found.map(|found| found.path.clone()).unwrap_or_default();
        let template = found.and_then(|found| found.template.as_deref());
        let instance = template.map(|_| owner.clone());
        self.open_frame(Frame { path, instance, ..Frame::default() });
        let arguments = owner.arguments.clone();
        self.bind_template(template.unwrap_or_default(), arguments.as_deref().unwrap_or_default(), |_| None);
    }

    /// Gives template parameters what they stand for: as written, as deduced for types, or by default.
    pub fn bind_template(
        &mut self,
        parameters: &[TemplateParameter],
        closed: &[TemplateArgument],
        deduced: impl Fn(&TemplateParameter) -> Option<Type>,
    ) {
        for (place, parameter) in parameters.iter().enumerate() {
            let argument = closed.get(place);
            let Some(name) = parameter.name.clone() else { continue };
            if parameter.pack {
                self.bind_pack(parameter, closed.get(place..).unwrap_or_default());
                continue;
            }
            if parameter.is_type {
                let kind = argument.and_then(|argument| argument.kind.clone()).or_else(|| deduced(parameter));
                let kind = kind.or_else(|| parameter.default_kind.as_ref().map(|kind| self.resolved(kind)));
                if let (Some(kind), Some(frame)) = (kind, self.frame()) {
                    frame.types.push((name, kind));
                }
                continue;
            }
            let value = argument.and_then(|argument| argument.value.as_ref()).or(parameter.default.as_ref());
            let value = match value {
                Some(value) => self.evaluate(value),
                None => {
                    let line = self.program.text.line(parameter.name_at);
                    Value::unknown(name.to_string(), line, "is a template parameter that no call in the text sets")
                }
            };
            self.declare(name, parameter.name_at, Type::of(Base::Auto), value);
        }
    }

    /// What is left of template arguments, as a list: of types only how many there are.
    fn bind_pack(&mut self, parameter: &TemplateParameter, closed: &[TemplateArgument]) {
        // Types that are deduced are as many as the arguments, see `sizeof...`.
        let Some(name) = parameter.name.clone().filter(|_| !parameter.is_type || !closed.is_empty()) else { return };
        let unset =
            || Value::unknown(name.to_string(), self.program.text.line(parameter.name_at), "is a pack of types");
        let unset = unset();
        let values: Vec<Value> = closed
            .iter()
            .map(|argument| match argument.value.as_ref().filter(|_| !parameter.is_type) {
                Some(value) => self.evaluate(value).copied(),
                None => unset.clone(),
            })
            .collect();
        self.packs.insert(parameter.name_at);
        let list = Data::List(values.into_iter().map(|value| (None, value)).collect()).into();
        self.declare(name, parameter.name_at, Type::of(Base::Auto), list);
    }

    /// The struct before the last part of a name: `Tile<32>` of `Tile<32>::x`, and of `P::x` what P stands for.
    pub fn owner_of(&mut self, name: &Name) -> Option<Type> {
        let (before, _) = name.path.rsplit_once("::")?;
        let (inner, outer) = match &name.scope {
            Some((length, list)) if *length == before.len() => (Some(list.as_slice().into()), None),
            Some((length, list)) => (None, Some((*length, list.as_slice().into()))),
            None => (None, None),
        };
        let owner = Type { arguments: inner, scope: outer, ..Type::of(Base::Named(before.into())) };
        let owner = self.resolved(&owner);
        self.struct_of(&owner).map(|_| owner)
    }

    pub fn owner_of_callee(&mut self, callee: &Expression) -> Option<Type> {
        match &callee.kind {
            ExpressionKind::Name(name) => self.owner_of(name),
            _ => None,
        }
    }

    /// The full name of a struct's member.
    pub fn path_in(&self, owner: &Type, member: &str) -> String {
        let known = self.struct_of(owner).and_then(|name| self.program.structs.get(&name));
        let path = known.map(|found| &*found.path).unwrap_or_default();
        format!("{path}::{member}")
    }

    /// A static member or enumerator by `Type::member`, or by its own name inside an instance of its struct.
    pub fn read_of_struct(&mut self, name: &Name, expression: &Expression) -> Option<Value> {
        let owner = match self.owner_of(name) {
            Some(owner) => owner,
            None if name.path.contains("::") => return None,
            None => self.frames.last()?.instance.clone()?,
        };
        self.read_member_of(&owner, name.last(), expression)
    }

    pub fn read_member_of(&mut self, owner: &Type, member: &str, expression: &Expression) -> Option<Value> {
        if self.frames.len() > FRAMES || self.nesting > NESTING || self.fuel == 0 {
            return Some(self.unknown(expression, "takes too long to work out"));
        }
        let program = self.program;
        let found = program.structs.get(&self.struct_of(owner)?)?;
        let path = format!("{}::{member}", found.path);
        let variables = program.variables.get(member).map(Vec::as_slice).unwrap_or_default();
        if let Some(variable) = variables.iter().find(|variable| *variable.path == *path) {
            return Some(match found.template {
                Some(_) => self.read_of_instance(owner, variable),
                None => self.read_global(variable, expression),
            });
        }
        for base in found.bases.iter().take(8) {
            self.enter_instance(owner);
            let base = self.resolved(base);
            self.frames.pop();
            self.nesting += 1;
            let value = self.read_member_of(&base, member, expression);
            self.nesting -= 1;
            if value.is_some() {
                return value;
            }
        }
        None
    }

    fn read_of_instance(&mut self, owner: &Type, variable: &Variable) -> Value {
        let identity = Identity::Token(variable.declarator.name_at);
        self.spend(1);
        self.enter_instance(owner);
        let value = match self.stands_for_n(&identity, &variable.declarator.kind) {
            Some(value) => value,
            None => self.value_of_variable(variable),
        };
        self.frames.pop();
        value.from_name(identity)
    }
}

/// The type of an object of a struct.
pub fn type_of_object(value: &Value) -> Option<Type> {
    match &value.data {
        Data::Object { instance: Some(instance), .. } => Some((**instance).clone()),
        Data::Object { name, .. } => Some(Type::of(Base::Named(name.clone()))),
        _ => None,
    }
}

fn spelt_integer(value: &Value) -> String {
    match &value.data {
        Data::Integer { value, bits: 1, .. } => (*value != 0).to_string(),
        Data::Integer { value, .. } => value.to_string(),
        _ => String::new(),
    }
}
