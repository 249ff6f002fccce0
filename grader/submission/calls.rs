//! Calls: functions of the text, the few of the library that launch arithmetic uses, and all others.

use std::sync::Arc;

use super::effects::is_constant_member;
use super::find::Found;
use super::instances::type_of_object;
use super::interpreter::{Frame, Interpreter, NESTING};
use super::objects::is_vector;
use super::overloads::{Meant, TORN};
use super::packs::{FOLD, SIZE_OF_PACK};
use super::places::Place;
use super::program::{Function, TemplateParameter};
use super::sites::callee_name;
use super::tree::{Expression, ExpressionKind, Name, Parameter, TemplateArgument};
use super::types::{Base, Type};
use super::value::{Data, Value};

/// Values that a pack of arguments is made of.
const MOST_IN_PACK: u32 = 4096;

/// How a function is entered.
#[derive(Default)]
pub struct Entry<'a> {
    /// Template arguments as written.
    pub template: Option<&'a [TemplateArgument]>,
    /// The object that a member function is called on.
    pub this: Option<Arc<Place>>,
    /// The struct that was named before it.
    pub instance: Option<Type>,
    /// Nothing when no call in the text enters it.
    pub arguments: Option<&'a [Expression]>,
}

impl<'a> Entry<'a> {
    fn with(arguments: &'a [Expression]) -> Self {
        Self { arguments: Some(arguments), ..Self::default() }
    }
}

impl Interpreter<'_> {
    pub fn call(&mut self, callee: &Expression, arguments: &[Expression], whole: &Expression) -> Value {
        match &callee.kind {
            ExpressionKind::Name(name) => self.call_name(name, callee, arguments, whole),
            ExpressionKind::Member(object, member) => self.call_member(object, member, arguments, whole),
            _ => {
                let called = self.find(callee);
                self.call_value(called, callee, arguments, whole)
            }
        }
    }

    fn call_name(&mut self, name: &Name, callee: &Expression, arguments: &[Expression], whole: &Expression) -> Value {
        match &*name.path {
            SIZE_OF_PACK => return self.size_of_pack(arguments, whole),
            path if path.starts_with(FOLD) => return self.folded(path, arguments, whole),
            _ => {}
        }
        if let Some(place) = self.slot_place(&name.path) {
            return self.call_value(Found::At(place), callee, arguments, whole);
        }
        match self.own_method(name, arguments) {
            Meant::One(index) => {
                let entry = Entry { template: name.arguments.as_deref(), this: self.this(), ..Entry::with(arguments) };
                return self.call_function(index, entry, whole);
            }
            Meant::Torn => return self.torn(whole),
            Meant::Nothing => {}
        }
        let instance = self.owner_of(name);
        let path = instance.as_ref().map(|owner| self.path_in(owner, name.last()));
        match self.callee(path.as_deref().unwrap_or(&name.path), name.arguments.as_deref(), arguments) {
            Meant::One(index) => {
                let this = self.own_object(index);
                let entry = Entry { template: name.arguments.as_deref(), this, instance, arguments: Some(arguments) };
                self.call_function(index, entry, whole)
            }
            Meant::Torn => self.torn(whole),
            Meant::Nothing => match self.find_name(name, callee) {
                found @ Found::At(_) => self.call_value(found, callee, arguments, whole),
                _ => self.call_of_template(name, arguments, whole),
            },
        }
    }

    /// A call of a lambda, of a function by its pointer, or of an object that can be called.
    fn call_value(
        &mut self,
        called: Found,
        callee: &Expression,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Value {
        let value = self.value_of(called, callee);
        match &value.data {
            Data::Lambda(lambda, captured, home) => self.call_lambda(lambda, captured, *home, arguments, whole),
            Data::Function { index, .. } => self.call_function(*index, Entry::with(arguments), whole),
            Data::Object { .. } => {
                let place = self.placed(value);
                let called = self.call_operator("operator()", &Found::At(place), arguments, whole);
                called.unwrap_or_else(|| self.call_unknown("", arguments, whole))
            }
            _ => self.call_unknown(callee_name(callee).unwrap_or_default(), arguments, whole),
        }
    }

    /// What a struct's own operator gives; nothing when what was found is no object with such an operator.
    pub fn call_operator(
        &mut self,
        operator: &str,
        found: &Found,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Option<Value> {
        let place = self.pointee(&found.place()?);
        let Data::Object { name, .. } = &self.at(&place)?.data else { return None };
        let name = name.clone();
        let index = match self.method_for(&name, operator, arguments) {
            Meant::One(index) => index,
            Meant::Torn => return Some(self.torn(whole)),
            Meant::Nothing => return None,
        };
        let entry = Entry { this: Some(place), ..Entry::with(arguments) };
        Some(self.call_function(index, entry, whole))
    }

    /// The method of the frame's object that a plain name means.
    fn own_method(&mut self, name: &Name, arguments: &[Expression]) -> Meant {
        let this = self.this().filter(|_| !name.path.contains("::"));
        let Some(Data::Object { name: object, .. }) = this.and_then(|place| Some(&self.kept(&place)?.data)) else {
            return Meant::Nothing;
        };
        let owner = self.struct_called(object, self.struct_here().as_ref(), &name.path);
        self.method_for(&owner, &name.path, arguments)
    }

    /// The struct that the function being followed belongs to.
    fn struct_here(&self) -> Option<Arc<str>> {
        let path = self.path_here();
        let owner = path.rsplit("::").nth(1)?;
        self.program.structs.get_key_value(owner).map(|(name, _)| name.clone())
    }

    /// The struct that an object is written as: of a reference to a base, the base.
    fn written_struct(&mut self, object: &Expression, found: &Found) -> Option<Arc<str>> {
        if matches!(&object.kind, ExpressionKind::Name(name) if &*name.path == "this") {
            return self.struct_here();
        }
        let (_, kind) = self.declared_at(&*found.place()?)?;
        let kind = self.resolved(&kind);
        self.struct_of(&kind)
    }

    /// A call that one of several functions may answer.
    fn torn(&mut self, whole: &Expression) -> Value {
        self.forget_effects(whole, TORN);
        self.unknown(whole, TORN)
    }

    /// The object of the frame, if the function is a member of its struct or of a base.
    fn own_object(&mut self, index: usize) -> Option<Arc<Place>> {
        let owner = self.program.functions.get(index)?.owner.clone()?;
        let place = self.this()?;
        let Data::Object { name, .. } = &self.at(&place)?.data else { return None };
        let name = name.clone();
        self.descends(&name, &owner, 0).then_some(place)
    }

    /// `std::get<0>(pair)`, or a function of the library without template arguments.
    fn call_of_template(&mut self, name: &Name, arguments: &[Expression], whole: &Expression) -> Value {
        if let ("get", Some([index]), [object]) = (name.last(), name.arguments.as_deref(), arguments) {
            let index = index.value.as_ref().and_then(|index| self.evaluate(index).as_integer());
            let object = self.evaluate(object);
            let part = index.and_then(|index| self.part(&object, usize::try_from(index).ok()?));
            return part.unwrap_or_else(|| self.unknown(whole, "is not known from the text"));
        }
        if let (made @ ("make_unique" | "make_shared" | "make_optional"), Some([argument])) =
            (name.last(), name.arguments.as_deref())
            && let Some(kind) = argument.kind.as_ref().map(|kind| self.resolved(kind))
        {
            let items = arguments.iter().map(|argument| (None, self.evaluate(argument))).collect();
            self.forget_held(Some(&kind));
            let value = self.coerced(Data::List(items).into(), &kind);
            return if made == "make_optional" { value } else { self.address_of(value) };
        }
        let made = Type::named(name.clone());
        if name.arguments.is_some() && is_vector(&made) {
            let values = self.spread(arguments).into_iter().map(Value::copied).collect();
            let kind = self.resolved(&made);
            return self.vector(&kind, values);
        }
        self.call_library(name.last(), arguments, whole)
    }

    fn call_member(
        &mut self,
        object: &Expression,
        member: &Name,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Value {
        let found = self.find(object);
        let this = self.value_of(found.clone(), object);
        if let Data::Object { name, .. } = &this.data {
            let written = self.written_struct(object, &found);
            let owner = self.struct_called(name, written.as_ref(), member.last());
            match self.method_for(&owner, member.last(), arguments) {
                Meant::One(index) => {
                    let is_kept = this.place.is_some();
                    let place = self.placed(this);
                    let this = Some(place.clone());
                    let entry = Entry { template: member.arguments.as_deref(), this, ..Entry::with(arguments) };
                    let value = self.call_function(index, entry, whole);
                    if !is_kept {
                        self.destroy(&place, 0);
                    }
                    return value;
                }
                Meant::Torn => return self.torn(whole),
                Meant::Nothing => {}
            }
        }
        if let Some(held) = this.member(&member.path).cloned().and_then(|held| self.followed(held))
            && matches!(held.data, Data::Lambda(..) | Data::Function { .. } | Data::Object { .. })
        {
            return self.call_value(Found::Value(held), object, arguments, whole);
        }
        if let Some(value) = self.call_of_container(&found, &this, &member.path, arguments, whole) {
            return value;
        }
        if let Some(unknown) = this.as_unknown().filter(|unknown| unknown.why.starts_with("depends")) {
            return Data::Unknown(unknown.clone()).into();
        }
        if !is_constant_member(&member.path) {
            self.forget_lvalue(object, "is changed by a function that the grader does not follow");
        }
        self.call_unknown(&member.path, arguments, whole)
    }

    /// A call of a function that is no method.
    pub fn call_free(&mut self, index: usize, arguments: &[Expression], whole: &Expression) -> Value {
        self.call_function(index, Entry::with(arguments), whole)
    }

    fn call_function(&mut self, index: usize, entry: Entry<'_>, whole: &Expression) -> Value {
        let arguments = entry.arguments.unwrap_or_default();
        let program = self.program;
        let function = program.functions.get(index);
        let Some((function, body)) = function.and_then(|f| f.body.as_ref().map(|body| (f, body))) else {
            return self.call_unknown("", arguments, whole);
        };
        if self.frames.len() > 48 || self.nesting > NESTING {
            return self.unknown(whole, "takes too long to work out");
        }
        self.enter_function(function, entry);
        let returned = self.run_body(body);
        self.destroy_scope(returned.as_ref().and_then(|value| value.place.as_ref()));
        let returned = returned.map(|value| self.returned(function, value));
        self.frames.pop();
        returned.unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }

    /// Opens a frame with the function's parameters; without arguments they have their defaults or are unknown.
    pub fn enter_function(&mut self, function: &Function, entry: Entry<'_>) {
        let arguments = entry.arguments.unwrap_or_default();
        let values = self.spread(arguments);
        self.forget_unplaced(function.parameters.as_deref().unwrap_or_default(), &values, arguments);
        let template: Vec<_> = entry.template.unwrap_or_default().iter().map(|a| self.closed_argument(a)).collect();
        match self.instance_around(function, &entry) {
            Some(instance) => self.enter_instance(&instance),
            None => self.open_frame(Frame::default()),
        }
        if let Some(frame) = self.frame() {
            (frame.this, frame.path) = (entry.this, function.path.clone());
        }
        let parameters = function.template.as_deref().unwrap_or_default();
        self.bind_template(parameters, &template, |parameter| deduced(function, parameter, &values));
        self.bind_parameters(function, values, entry.arguments.is_some());
    }

    /// What a function can reach through a reference or pointer that cannot be followed itself.
    fn forget_unplaced(&mut self, parameters: &[Parameter], values: &[Value], arguments: &[Expression]) {
        for ((parameter, value), argument) in parameters.iter().zip(values).zip(arguments) {
            if value.place.is_none() && parameter.kind.is_out_parameter() {
                self.forget_escaping(argument);
            }
        }
    }

    /// The instance of a template that a member function belongs to.
    fn instance_around(&mut self, function: &Function, entry: &Entry<'_>) -> Option<Type> {
        let owner = function.owner.as_ref()?;
        self.program.structs.get(owner)?.template.as_ref()?;
        let this = entry.this.as_ref().and_then(|place| self.kept(place)).and_then(type_of_object);
        let own = self.frames.last().and_then(|frame| frame.instance.clone());
        let known = [entry.instance.clone(), this.clone(), own];
        let fits = |kind: &Type| self.struct_of(kind).as_ref() == Some(owner);
        let found = known.into_iter().flatten().find(fits);
        found.or_else(|| self.base_instance(&this?, owner, 0))
    }

    /// The instance of a template among the bases of a struct.
    fn base_instance(&mut self, kind: &Type, owner: &Arc<str>, depth: u32) -> Option<Type> {
        let program = self.program;
        let found = program.structs.get(&self.struct_of(kind)?)?;
        for base in found.bases.iter().take(8).filter(|_| depth < 8) {
            self.enter_instance(kind);
            let base = self.resolved(base);
            self.frames.pop();
            if self.struct_of(&base).as_ref() == Some(owner) {
                return Some(base);
            }
            if let Some(found) = self.base_instance(&base, owner, depth + 1) {
                return Some(found);
            }
        }
        None
    }

    /// A call's result as the function's type holds it: a reference keeps its place.
    fn returned(&mut self, function: &Function, value: Value) -> Value {
        match &function.returns {
            Some(kind) => {
                let kind = self.resolved(kind);
                if value.address || kind.reference && value.place.is_some() {
                    return value;
                }
                let value = self.coerced(value, &kind);
                Value { place: None, ..value }
            }
            None if value.address => value,
            None => Value { place: None, ..value },
        }
    }

    pub fn bind_parameters(&mut self, function: &Function, values: Vec<Value>, called: bool) {
        let mut values = values.into_iter();
        for (place, parameter) in function.parameters.iter().flatten().enumerate() {
            if let (true, Some(name)) = (parameter.pack && called, &parameter.name) {
                let items = values.by_ref().map(|value| (None, value.copied())).collect();
                let mut pack: Value = Data::List(items).into();
                if pack.weight() > MOST_IN_PACK {
                    let line = self.program.text.line(parameter.name_at);
                    pack = Value::unknown(name.to_string(), line, "takes too long to work out");
                }
                self.packs.insert(parameter.name_at);
                self.declare(name.clone(), parameter.name_at, Type::of(Base::Auto), pack);
                continue;
            }
            let text = &self.program.text;
            let name = parameter.name.as_deref().unwrap_or_default();
            let line = text.line(parameter.name_at);
            let value = match (values.next(), &parameter.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.evaluate(default),
                // The program as it runs without arguments.
                (None, None) if &*function.name == "main" && place == 0 => Value::int(1),
                (None, None) if &*function.name == "main" => {
                    Value::unknown(name.to_owned(), line, "depends on the command line")
                }
                (None, None) if called => Value::unknown(name.to_owned(), line, "is not known from the text"),
                (None, None) => Value::unknown(name.to_owned(), line, "is a parameter that no call in the text sets"),
            };
            self.bind(parameter, value);
        }
    }
}

/// The type that a template's parameter must have for the arguments to fit.
fn deduced(function: &Function, parameter: &TemplateParameter, values: &[Value]) -> Option<Type> {
    let name = parameter.name.as_ref()?;
    let parameters = function.parameters.iter().flatten();
    let (_, value) = parameters.zip(values).find(|(p, _)| matches!(&p.kind.base, Base::Named(base) if base == name))?;
    match value.data {
        Data::Integer { bits: 1, .. } => Some(Type::of(Base::Bool)),
        Data::Integer { bits, signed, .. } => Some(Type::of(Base::Integer { bits, signed, spelling: "int" })),
        Data::Float { single: true, .. } => Some(Type::of(Base::Float)),
        Data::Float { .. } => Some(Type::of(Base::Double)),
        _ => type_of_object(value),
    }
}
