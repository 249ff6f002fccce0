//! Calls: functions of the text, the few of the library that launch arithmetic uses, and all others.

use std::sync::Arc;

use super::instances::type_of_object;
use super::interpreter::{Frame, Interpreter, NESTING};
use super::objects::Items;
use super::program::{Function, TemplateParameter};
use super::tree::{Capture, Expression, ExpressionKind, Lambda, Name, TemplateArgument};
use super::types::{Base, Type};
use super::value::{Captured, Data, Value};

/// How a function is entered.
#[derive(Default)]
pub struct Entry<'a> {
    /// Template arguments as written.
    pub template: Option<&'a [TemplateArgument]>,
    /// The object that a member function is called on.
    pub this: Option<Value>,
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
            ExpressionKind::Name(name) => self.call_name(name, arguments, whole),
            ExpressionKind::Member(object, member) => self.call_member(object, member, arguments, whole),
            ExpressionKind::Lambda(lambda) => {
                let captured = self.captured(lambda);
                self.call_lambda(lambda, &captured, arguments, whole)
            }
            _ => self.call_unknown("", arguments, whole),
        }
    }

    fn call_name(&mut self, name: &Name, arguments: &[Expression], whole: &Expression) -> Value {
        if let Some(slot) = self.slot(&name.path) {
            return match slot.value.data.clone() {
                Data::Lambda(lambda, captured) => self.call_lambda(&lambda, &captured, arguments, whole),
                Data::Function { index, .. } => self.call_function(index, Entry::with(arguments), None, whole),
                _ => self.call_unknown(&name.path, arguments, whole),
            };
        }
        let instance = self.owner_of(name);
        let path = instance.as_ref().map(|owner| self.path_in(owner, name.last()));
        match self.callee(path.as_deref().unwrap_or(&name.path), arguments.len()) {
            Some(index) => {
                let this = self.own_object(index);
                let entry = Entry { template: name.arguments.as_deref(), this, instance, arguments: Some(arguments) };
                self.call_function(index, entry, None, whole)
            }
            None => self.call_of_template(name, arguments, whole),
        }
    }

    /// The object of the frame, if the function is a member of its struct.
    fn own_object(&self, index: usize) -> Option<Value> {
        let owner = self.program.functions.get(index)?.owner.as_ref()?;
        let this = self.frames.last()?.this.as_ref()?;
        matches!(&this.data, Data::Object { name, .. } if name == owner).then(|| this.clone())
    }

    /// `std::get<0>(pair)`, or a function of the library without template arguments.
    fn call_of_template(&mut self, name: &Name, arguments: &[Expression], whole: &Expression) -> Value {
        if let ("get", Some([index]), [object]) = (name.last(), name.arguments.as_deref(), arguments) {
            let index = index.value.as_ref().and_then(|index| self.evaluate(index).as_integer());
            let object = self.evaluate(object);
            let part = index.and_then(|index| self.part(&object, usize::try_from(index).ok()?));
            return part.unwrap_or_else(|| self.unknown(whole, "is not known from the text"));
        }
        if let ("make_unique" | "make_shared" | "make_optional", Some([argument])) =
            (name.last(), name.arguments.as_deref())
            && let Some(kind) = argument.kind.as_ref().map(|kind| self.resolved(kind))
        {
            let items = arguments.iter().map(|argument| (None, self.evaluate(argument))).collect();
            return self.coerced(Data::List(items).into(), &kind);
        }
        self.call_library(name.last(), arguments, whole)
    }

    /// The function with a body that a call with so many arguments means.
    fn callee(&self, path: &str, count: usize) -> Option<usize> {
        let program = self.program;
        let takes = |function: &Function| {
            function.parameters.as_ref().is_some_and(|parameters| {
                let least = parameters.iter().filter(|parameter| parameter.default.is_none()).count();
                (least..=parameters.len()).contains(&count)
            })
        };
        let mut fitting = program.functions_named(path).filter(|(_, f)| f.body.is_some() && !f.global && takes(f));
        fitting.next().map(|found| found.0)
    }

    fn call_member(
        &mut self,
        object: &Expression,
        member: &Name,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Value {
        let this = self.evaluate(object);
        if let (Data::List(items), "size") = (&this.data, &*member.path) {
            return Value::int(items.len() as i128);
        }
        if let Data::Object { name, .. } = &this.data
            && let Some(index) = self.callee(&format!("{name}::{}", member.path), arguments.len())
        {
            let entry = Entry {
                template: member.arguments.as_deref(),
                this: Some(this),
                instance: None,
                arguments: Some(arguments),
            };
            return self.call_function(index, entry, Some(object), whole);
        }
        if let Some(Data::Lambda(lambda, captured)) = this.member(&member.path).map(|value| value.data.clone()) {
            return self.call_lambda(&lambda, &captured, arguments, whole);
        }
        // std::optional.
        match (&this.data, &*member.path) {
            (Data::Object { .. } | Data::Integer { .. }, "value" | "value_or") => return this,
            (Data::Object { .. } | Data::Integer { .. }, "has_value") => return Value::boolean(true),
            _ => {}
        }
        if let Some(unknown) = this.as_unknown().filter(|unknown| unknown.why.starts_with("depends")) {
            return Data::Unknown(unknown.clone()).into();
        }
        self.call_unknown(&member.path, arguments, whole)
    }

    fn call_function(
        &mut self,
        index: usize,
        entry: Entry<'_>,
        object: Option<&Expression>,
        whole: &Expression,
    ) -> Value {
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
        let returned = self.run_body(body).map(|value| self.returned(function, value));
        let frame = self.frames.pop();
        self.write_back(function, frame, arguments, object);
        returned.unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }

    /// Opens a frame with the function's parameters; without arguments they have their defaults or are unknown.
    pub fn enter_function(&mut self, function: &Function, entry: Entry<'_>) {
        let arguments = entry.arguments.unwrap_or_default();
        let values: Vec<Value> = arguments.iter().map(|argument| self.evaluate(argument)).collect();
        let template: Vec<_> = entry.template.unwrap_or_default().iter().map(|a| self.closed_argument(a)).collect();
        match self.instance_around(function, &entry) {
            Some(instance) => self.enter_instance(&instance),
            None => self.frames.push(Frame { scopes: vec![Vec::new()], ..Frame::default() }),
        }
        if let Some(frame) = self.frame() {
            (frame.this, frame.path) = (entry.this, function.path.clone());
        }
        let parameters = function.template.as_deref().unwrap_or_default();
        self.bind_template(parameters, &template, |parameter| deduced(function, parameter, &values));
        self.bind_parameters(function, values, entry.arguments.is_some());
    }

    /// The instance of a template that a member function belongs to.
    fn instance_around(&self, function: &Function, entry: &Entry<'_>) -> Option<Type> {
        let owner = function.owner.as_ref()?;
        self.program.structs.get(owner)?.template.as_ref()?;
        let own = || self.frames.last().and_then(|frame| frame.instance.clone());
        let fits = |kind: &Type| self.struct_of(kind).as_ref() == Some(owner);
        let this = entry.this.as_ref().and_then(type_of_object);
        entry.instance.clone().filter(fits).or_else(|| this.filter(fits)).or_else(|| own().filter(fits))
    }

    /// A call's result as the function's type holds it.
    fn returned(&mut self, function: &Function, value: Value) -> Value {
        match &function.returns {
            Some(kind) => {
                let kind = self.resolved(kind);
                self.coerced(value, &kind)
            }
            None => value,
        }
    }

    fn bind_parameters(&mut self, function: &Function, values: Vec<Value>, called: bool) {
        let mut values = values.into_iter();
        for (place, parameter) in function.parameters.iter().flatten().enumerate() {
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

    /// Gives arguments passed by reference or address, and the object, the values that the call left.
    fn write_back(
        &mut self,
        function: &Function,
        frame: Option<Frame>,
        arguments: &[Expression],
        object: Option<&Expression>,
    ) {
        let Some(mut frame) = frame else { return };
        let parameters = function.parameters.iter().flatten();
        for (parameter, argument) in parameters.zip(arguments).filter(|(p, _)| p.kind.is_out_parameter()) {
            let slots = frame.scopes.iter().flatten();
            let left = slots.into_iter().find(|slot| slot.name_at == parameter.name_at).map(|slot| slot.value.clone());
            let by_address = !parameter.kind.pointers.is_empty();
            let is_address = matches!(argument.kind, ExpressionKind::Unary('&', _));
            if let Some(left) = left.filter(|_| !by_address || is_address)
                && let Some(place) = self.place(argument)
            {
                *place = left;
            }
        }
        let Some(this) = frame.this.take() else { return };
        let place = match object {
            Some(object) => self.place(object),
            // A member function called by another one of the same object.
            None => self.frame().and_then(|frame| frame.this.as_mut()),
        };
        if let Some(place) = place {
            *place = this;
        }
    }

    /// Runs the constructor that takes as many values; false when the struct has none such.
    pub fn construct(&mut self, kind: &Type, name: &Arc<str>, object: &mut Value, items: &Items) -> bool {
        let program = self.program;
        let constructor = program.functions.iter().find(|function| {
            let takes = function.parameters.as_ref().is_some_and(|parameters| {
                let least = parameters.iter().filter(|parameter| parameter.default.is_none()).count();
                (least..=parameters.len()).contains(&items.len())
            });
            name.starts_with(&*function.name)
                && function.owner.as_ref() == Some(name)
                && function.body.is_some()
                && takes
        });
        let Some((constructor, body)) = constructor.and_then(|f| f.body.as_ref().map(|body| (f, body))) else {
            return false;
        };
        let this = Some(object.clone());
        self.enter_instance(kind);
        if let Some(frame) = self.frame() {
            (frame.this, frame.path) = (this, constructor.path.clone());
        }
        self.bind_parameters(constructor, items.iter().map(|item| item.1.clone()).collect(), true);
        self.member_initials(constructor, name);
        self.run_body(body);
        if let Some(this) = self.frames.pop().and_then(|frame| frame.this) {
            *object = this;
        }
        true
    }

    /// A constructor's `: member(value)` list, into the object of the frame.
    fn member_initials(&mut self, constructor: &Function, owner: &Arc<str>) {
        let program = self.program;
        for (member, values) in &constructor.member_initials {
            let declared = program.structs.get(owner).and_then(|s| s.members.iter().find(|m| m.name == *member));
            let Some(declared) = declared else { continue };
            let kind = self.resolved(&declared.kind);
            let items: Vec<_> = values.iter().cloned().map(|value| (None, value)).collect();
            let value = self.constructed(&kind, &items);
            let this = self.frame().and_then(|frame| frame.this.as_mut());
            if let Some(place) = this.and_then(|this| this.member_mut(member)) {
                *place = value;
            }
        }
    }

    fn call_lambda(
        &mut self,
        lambda: &Lambda,
        captured: &[Captured],
        arguments: &[Expression],
        whole: &Expression,
    ) -> Value {
        if self.nesting > NESTING / 2 {
            return self.unknown(whole, "takes too long to work out");
        }
        self.enter_lambda(lambda, captured, arguments);
        let returned = self.run_body(&lambda.body);
        self.close_scope();
        returned.unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }

    /// The values of a lambda's captures that have one; lambdas among them lose their own.
    pub fn captured(&mut self, lambda: &Lambda) -> Vec<Captured> {
        let value = |capture: &Capture| {
            let value = match self.evaluate(&capture.value) {
                Value { data: Data::Lambda(lambda, _), origin } => {
                    Value { data: Data::Lambda(lambda, Vec::new().into()), origin }
                }
                Value { data: Data::Object { .. } | Data::List(_), .. } => {
                    self.unknown(&capture.value, "is captured by a lambda")
                }
                value => value,
            };
            (capture.name.clone(), capture.name_at, value)
        };
        lambda.captures.iter().take(64).map(value).collect()
    }

    /// Opens a scope with the lambda's parameters; those without an argument have their default or are unknown.
    pub fn enter_lambda(&mut self, lambda: &Lambda, captured: &[Captured], arguments: &[Expression]) {
        let mut values: Vec<Value> = arguments.iter().map(|argument| self.evaluate(argument)).collect();
        values.reverse();
        self.open_scope();
        for (name, name_at, value) in captured {
            self.declare(name.clone(), *name_at, Type::of(Base::Auto), value.clone());
        }
        for parameter in &lambda.parameters {
            let line = self.program.text.line(parameter.name_at);
            let value = match (values.pop(), &parameter.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.evaluate(default),
                (None, None) => {
                    let name = parameter.name.as_deref().unwrap_or_default().to_owned();
                    Value::unknown(name, line, "is a parameter that no call in the text sets")
                }
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
