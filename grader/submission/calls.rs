//! Calls: functions of the text, the few of the library that launch arithmetic uses, and all others.

use std::sync::Arc;

use super::interpreter::{Frame, Interpreter, NESTING};
use super::program::{Function, TemplateParameter};
use super::tree::{Expression, ExpressionKind, Lambda, Name, TemplateArgument};
use super::types::{Base, Type};
use super::value::{Data, Value, real};
use super::walk;

impl Interpreter<'_> {
    pub fn call(&mut self, callee: &Expression, arguments: &[Expression], whole: &Expression) -> Value {
        match &callee.kind {
            ExpressionKind::Name(name) => self.call_name(name, arguments, whole),
            ExpressionKind::Member(object, member) => self.call_member(object, member, arguments, whole),
            ExpressionKind::Lambda(lambda) => self.call_lambda(lambda, arguments, whole),
            _ => self.call_unknown("", arguments, whole),
        }
    }

    fn call_name(&mut self, name: &Name, arguments: &[Expression], whole: &Expression) -> Value {
        if let Some(slot) = self.slot(&name.path) {
            return match slot.value.data.clone() {
                Data::Lambda(lambda) => self.call_lambda(&lambda, arguments, whole),
                Data::Function { index, .. } => self.call_function(index, None, None, arguments, whole),
                _ => self.call_unknown(&name.path, arguments, whole),
            };
        }
        match self.callee(&name.path, arguments.len()) {
            Some(index) => self.call_function(index, name.arguments.as_deref(), None, arguments, whole),
            None => self.call_library(name.last(), arguments, whole),
        }
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
        member: &Arc<str>,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Value {
        let this = self.evaluate(object);
        if let (Data::List(items), "size") = (&this.data, &**member) {
            return Value::int(items.len() as i128);
        }
        if let (Data::Object { name, .. }, Some(index)) = (&this.data, self.callee(member, arguments.len()))
            && self.program.functions.get(index).is_some_and(|function| function.owner.as_ref() == Some(name))
        {
            return self.call_function(index, None, Some((object, this)), arguments, whole);
        }
        if let Some(unknown) = this.as_unknown().filter(|unknown| unknown.why.starts_with("depends")) {
            return Data::Unknown(unknown.clone()).into();
        }
        self.call_unknown(member, arguments, whole)
    }

    fn call_function(
        &mut self,
        index: usize,
        template: Option<&[TemplateArgument]>,
        this: Option<(&Expression, Value)>,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Value {
        let program = self.program;
        let function = program.functions.get(index);
        let Some((function, body)) = function.and_then(|f| f.body.as_ref().map(|body| (f, body))) else {
            return self.call_unknown("", arguments, whole);
        };
        if self.frames.len() > 48 || self.nesting > NESTING {
            return self.unknown(whole, "takes too long to work out");
        }
        self.enter_function(function, template, this.as_ref().map(|this| this.1.clone()), Some(arguments));
        let returned = self.run_body(body);
        let frame = self.frames.pop();
        self.write_back(function, frame, arguments, this.map(|this| this.0));
        returned.unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }

    /// Opens a frame with the function's parameters; without arguments they have their defaults or are unknown.
    pub fn enter_function(
        &mut self,
        function: &Function,
        template: Option<&[TemplateArgument]>,
        this: Option<Value>,
        arguments: Option<&[Expression]>,
    ) {
        let values: Vec<Value> = arguments.unwrap_or_default().iter().map(|argument| self.evaluate(argument)).collect();
        let mut frame = Frame { scopes: vec![Vec::new()], this, path: function.path.clone(), types: Vec::new() };
        let bound = self.template_values(function, template, &values, &mut frame);
        self.frames.push(frame);
        for (parameter, value) in bound {
            if let Some(name) = &parameter.name {
                let kind = Type::of(Base::Auto);
                self.declare(name.clone(), parameter.name_at, kind, value);
            }
        }
        self.bind_parameters(function, values, arguments.is_some());
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

    /// What a template's parameters stand for in a call: written out, by default, or as the arguments' types say.
    fn template_values<'f>(
        &mut self,
        function: &'f Function,
        written: Option<&[TemplateArgument]>,
        values: &[Value],
        frame: &mut Frame,
    ) -> Vec<(&'f TemplateParameter, Value)> {
        let mut bound = Vec::new();
        for (place, parameter) in function.template.iter().flatten().enumerate() {
            let argument = written.and_then(|written| written.get(place));
            if parameter.is_type {
                let kind = argument.and_then(|argument| argument.kind.clone()).map(|kind| self.resolved(&kind));
                let kind = kind.or_else(|| deduced(function, parameter, values));
                frame.types.extend(parameter.name.clone().zip(kind));
                continue;
            }
            let value = argument.and_then(|argument| argument.value.as_ref()).or(parameter.default.as_ref());
            let value = match value {
                Some(value) => self.evaluate(value),
                None => {
                    let name = parameter.name.as_deref().unwrap_or_default().to_owned();
                    let line = self.program.text.line(parameter.name_at);
                    Value::unknown(name, line, "is a template parameter that no call in the text sets")
                }
            };
            bound.push((parameter, value));
        }
        bound
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
        if let (Some(this), Some(object)) = (frame.this.take(), object)
            && let Some(place) = self.place(object)
        {
            *place = this;
        }
    }

    /// Runs the constructor that takes as many values; false when the struct has none such.
    pub fn construct(&mut self, name: &Arc<str>, object: &mut Value, items: &[(Option<Arc<str>>, Value)]) -> bool {
        let program = self.program;
        let constructor = program.functions.iter().find(|function| {
            let takes = function.parameters.as_ref().is_some_and(|parameters| {
                let least = parameters.iter().filter(|parameter| parameter.default.is_none()).count();
                (least..=parameters.len()).contains(&items.len())
            });
            function.name == *name && function.owner.as_ref() == Some(name) && function.body.is_some() && takes
        });
        let Some((constructor, body)) = constructor.and_then(|f| f.body.as_ref().map(|body| (f, body))) else {
            return false;
        };
        let this = Some(object.clone());
        self.frames.push(Frame { scopes: vec![Vec::new()], this, path: constructor.path.clone(), types: Vec::new() });
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

    fn call_lambda(&mut self, lambda: &Arc<Lambda>, arguments: &[Expression], whole: &Expression) -> Value {
        if self.nesting > NESTING / 2 {
            return self.unknown(whole, "takes too long to work out");
        }
        self.enter_lambda(lambda, arguments);
        let returned = self.run_body(&lambda.body);
        self.close_scope();
        returned.unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }

    /// Opens a scope with the lambda's parameters; those without an argument have their default or are unknown.
    pub fn enter_lambda(&mut self, lambda: &Lambda, arguments: &[Expression]) {
        let mut values: Vec<Value> = arguments.iter().map(|argument| self.evaluate(argument)).collect();
        values.reverse();
        self.open_scope();
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

    fn call_library(&mut self, name: &str, arguments: &[Expression], whole: &Expression) -> Value {
        if name == "swap" {
            return self.swap(arguments);
        }
        let values: Vec<Value> = match name {
            "make_pair" | "move" | "forward" | "size" | "make_uint3" | "make_int2" | "make_uint2" | "make_int3" => {
                arguments.iter().map(|argument| self.evaluate(argument)).collect()
            }
            _ if MATHEMATICS.contains(&name) => arguments.iter().map(|argument| self.evaluate(argument)).collect(),
            _ => return self.call_unknown(name, arguments, whole),
        };
        if let Some(unknown) = values.iter().find_map(Value::as_unknown).filter(|_| MATHEMATICS.contains(&name)) {
            return Data::Unknown(unknown.clone()).into();
        }
        let list = || values.iter().map(|value| (None, value.clone())).collect();
        let result = match name {
            "make_pair" => self.object(&"pair".into(), list()),
            "make_uint3" | "make_int3" => self.object(&"uint3".into(), list()),
            "make_int2" | "make_uint2" => self.object(&"int2".into(), list()),
            "move" | "forward" => values.into_iter().next(),
            "size" => match values.first().map(|value| &value.data) {
                Some(Data::List(items)) => Some(Value::int(items.len() as i128)),
                _ => None,
            },
            _ => mathematics(name, &values),
        };
        result.unwrap_or_else(|| self.call_unknown(name, arguments, whole))
    }

    fn swap(&mut self, arguments: &[Expression]) -> Value {
        if let [left, right] = arguments {
            let (left_value, right_value) = (self.evaluate(left), self.evaluate(right));
            self.store(left, right_value);
            self.store(right, left_value);
        }
        Value::int(0)
    }

    /// A function that the text does not define: its result is unknown, and what it takes by address.
    fn call_unknown(&mut self, name: &str, arguments: &[Expression], whole: &Expression) -> Value {
        let why = reason(name);
        for argument in arguments {
            if matches!(argument.kind, ExpressionKind::Unary('&', _)) || why.starts_with("depends on the device") {
                let is_place = walk::root(argument).is_some() && !matches!(argument.kind, ExpressionKind::Cast(..));
                if is_place {
                    self.forget_place(argument, why);
                }
            } else {
                self.evaluate(argument);
            }
        }
        self.unknown(whole, why)
    }
}

fn reason(name: &str) -> &'static str {
    if name.starts_with("cudaOccupancy") || name.starts_with("cudaGetDevice") || name.starts_with("cudaDevice") {
        "depends on the device"
    } else if name.starts_with("cudaFunc") {
        "depends on the compiled kernel"
    } else if matches!(name, "atoi" | "atol" | "strtol" | "strtoul" | "stoi" | "stoul" | "getenv" | "sscanf" | "scanf")
    {
        "depends on the command line or environment"
    } else {
        "is not known from the text"
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
        _ => None,
    }
}

const MATHEMATICS: [&str; 32] = [
    "min", "max", "umin", "umax", "fmin", "fmax", "fminf", "fmaxf", "clamp", "abs", "fabs", "fabsf", "ceil", "ceilf",
    "floor", "floorf", "round", "roundf", "lround", "lroundf", "trunc", "truncf", "sqrt", "sqrtf", "pow", "powf",
    "log2", "log2f", "ceil_div", "div_up", "exp2", "exp2f",
];

fn mathematics(name: &str, values: &[Value]) -> Option<Value> {
    let (first, second) = (values.first()?, values.get(1));
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_float).collect();
    let numbers = numbers?;
    let pick = |order: std::cmp::Ordering| {
        let second = second?;
        let less = first.as_float()?.partial_cmp(&second.as_float()?) == Some(order);
        Some(if less { first.clone() } else { second.clone() })
    };
    let all_single = values.iter().all(|value| matches!(value.data, Data::Float { single: true, .. }));
    let single = name.ends_with('f') || all_single;
    let number = *numbers.first()?;
    Some(real(
        match name {
            "min" | "umin" | "fmin" | "fminf" => return pick(std::cmp::Ordering::Less),
            "max" | "umax" | "fmax" | "fmaxf" => return pick(std::cmp::Ordering::Greater),
            "clamp" => return clamp(values),
            "ceil_div" | "div_up" => return ceil_div(first.as_integer()?, second?.as_integer()?),
            "abs" if first.as_integer().is_some() => return Some(Value::int(first.as_integer()?.abs())),
            "lround" | "lroundf" => {
                return Some(Value::integer(number.round() as i128, &super::types::known_base("int64_t")?));
            }
            "abs" | "fabs" | "fabsf" => number.abs(),
            "ceil" | "ceilf" => number.ceil(),
            "floor" | "floorf" => number.floor(),
            "round" | "roundf" => number.round(),
            "trunc" | "truncf" => number.trunc(),
            "sqrt" | "sqrtf" => number.sqrt(),
            "log2" | "log2f" => number.log2(),
            "exp2" | "exp2f" => number.exp2(),
            _ => number.powf(*numbers.get(1)?),
        },
        single,
    ))
}

fn clamp(values: &[Value]) -> Option<Value> {
    let [value, low, high] = values else { return None };
    let number = value.as_float()?;
    let picked = if number < low.as_float()? {
        low
    } else if high.as_float()? < number {
        high
    } else {
        value
    };
    Some(picked.clone())
}

fn ceil_div(left: i128, right: i128) -> Option<Value> {
    let sum = left.checked_add(right)?.checked_sub(1)?;
    Some(Value::int(sum.checked_div(right)?))
}
