//! Values that declarations give: arrays, dim3, structs with default members and constructors.

use std::sync::Arc;

use super::calls::Entry;
use super::constructors::Missing;
use super::interpreter::{Interpreter, NESTING};
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Parameter};
use super::types::{Base, Type};
use super::value::{Data, Value};

/// Why an array has no value whose items are too many.
pub const TOO_MANY: &str = "has more items than the grader follows";

/// Items of one array that are followed.
const LONGEST: usize = 4096;

/// Values between braces or brackets; those in braces may name members.
pub type Items = Vec<(Option<Arc<str>>, Value)>;

impl Interpreter<'_> {
    /// The value that a declaration gives its variable.
    pub fn initial_value(&mut self, declarator: &Declarator) -> Value {
        let kind = self.resolved(&declarator.kind);
        if !declarator.dimensions.is_empty() {
            return self.initial_array(declarator, &kind);
        }
        match &declarator.initial {
            Some(Initial::Value(value)) => {
                let value = self.evaluate(value);
                self.held(value, &kind)
            }
            Some(Initial::Arguments(items)) => {
                let in_brackets = self.program.text.is(declarator.name_at + 1, "(");
                let value = self.made(&kind, items, in_brackets);
                self.held(value, &kind)
            }
            None => self.default_value(&kind, declarator),
        }
    }

    /// As [`Interpreter::constructed`]; a vector in brackets has a length and a value.
    pub fn made(&mut self, kind: &Type, items: &[(Option<Arc<str>>, Expression)], in_brackets: bool) -> Value {
        match items {
            [(None, of)] if kind.reference || !kind.pointers.is_empty() || kind.base == Base::Auto => self.evaluate(of),
            _ if in_brackets && is_vector(kind) => {
                let values: Vec<Value> = items.iter().map(|(_, item)| self.evaluate(item).copied()).collect();
                self.vector(kind, values)
            }
            _ => self.constructed(kind, items),
        }
    }

    fn default_value(&mut self, kind: &Type, declarator: &Declarator) -> Value {
        let text = &self.program.text;
        let unset = || Value::unknown(declarator.name.to_string(), text.line(declarator.name_at), "has no value yet");
        match &kind.base {
            Base::Named(_) if is_vector(kind) => Data::List(Vec::new()).into(),
            Base::Named(_) if kind.is_value() => self.default_object(kind).unwrap_or_else(unset),
            _ => unset(),
        }
    }

    fn initial_array(&mut self, declarator: &Declarator, kind: &Type) -> Value {
        let items = match &declarator.initial {
            Some(
                Initial::Value(Expression { kind: ExpressionKind::Braces(items), .. }) | Initial::Arguments(items),
            ) => items.as_slice(),
            Some(Initial::Value(value)) => return self.evaluate(value).copied(),
            None => &[],
        };
        let lengths: Vec<Option<usize>> = declarator.dimensions.iter().map(|length| self.length_of(length)).collect();
        let all = lengths.iter().map(|length| length.unwrap_or(1)).fold(1, usize::saturating_mul);
        if all > LONGEST || items.len() > LONGEST {
            let line = self.program.text.line(declarator.name_at);
            return Value::unknown(declarator.name.to_string(), line, TOO_MANY);
        }
        self.spend(u32::try_from(all / 4).unwrap_or(u32::MAX));
        let missing = match &declarator.initial {
            Some(_) => self.zero(kind, declarator),
            None => self.default_value(kind, declarator),
        };
        self.array(&mut items.iter(), &lengths, kind, &missing)
    }

    /// A length in an array's brackets; nothing where none is written.
    fn length_of(&mut self, length: &Option<Expression>) -> Option<usize> {
        let length = self.evaluate(length.as_ref()?).as_integer().unwrap_or(0);
        Some(usize::try_from(length).unwrap_or(0))
    }

    /// An array of arrays out of items that lie in braces of their own or one after the other.
    fn array(
        &mut self,
        items: &mut std::slice::Iter<'_, (Option<Arc<str>>, Expression)>,
        lengths: &[Option<usize>],
        kind: &Type,
        missing: &Value,
    ) -> Value {
        let Some((length, inner)) = lengths.split_first() else { return missing.clone() };
        let mut list = Vec::new();
        while length.is_none_or(|length| list.len() < length)
            && let Some((_, item)) = items.as_slice().first()
        {
            let value = match &item.kind {
                ExpressionKind::Spread(_) => {
                    items.next();
                    let values = self.spread(std::slice::from_ref(item));
                    list.extend(values.into_iter().map(|value| (None, self.held(value, kind))));
                    continue;
                }
                _ if inner.is_empty() => {
                    items.next();
                    let value = self.evaluate(item);
                    self.held(value, kind)
                }
                ExpressionKind::Braces(own) => {
                    items.next();
                    self.array(&mut own.iter(), inner, kind, missing)
                }
                _ if inner.iter().any(|length| !matches!(length, Some(1..))) => break,
                _ => self.array(items, inner, kind, missing),
            };
            list.push((None, value));
        }
        while length.is_some_and(|length| list.len() < length) {
            let value = self.array(&mut [].iter(), inner, kind, missing);
            list.push((None, value));
        }
        Data::List(list).into()
    }

    /// What a list in braces leaves out: 0, or an object of what its type says.
    pub fn zero(&mut self, kind: &Type, declarator: &Declarator) -> Value {
        match &kind.base {
            _ if !kind.is_value() => Value::int(0),
            Base::Named(_) => {
                let made = self.coerced(Data::List(Vec::new()).into(), kind);
                if matches!(made.data, Data::Object { .. }) { made } else { self.default_value(kind, declarator) }
            }
            _ => Value::int(0).converted(kind),
        }
    }

    /// `T(...)` and `T{...}`.
    pub fn constructed(&mut self, kind: &Type, items: &[(Option<Arc<str>>, Expression)]) -> Value {
        if let [(None, Expression { kind: ExpressionKind::Braces(inner), .. })] = items {
            return self.constructed(kind, inner);
        }
        let values: Vec<_> = items.iter().take(4096).map(|(name, item)| (name.clone(), self.evaluate(item))).collect();
        match (&kind.base, values.as_slice()) {
            (Base::Named(_), _) => self.coerced(Data::List(values).into(), kind),
            (Base::Auto, [(None, value)]) => value.clone(),
            (_, []) => Value::int(0).converted(kind),
            (_, [(None, value)]) => value.clone().converted(kind),
            _ => Data::List(values).into(),
        }
    }

    /// The value as a variable of that type holds it.
    pub fn coerced(&mut self, value: Value, kind: &Type) -> Value {
        let Base::Named(name) = &kind.base else { return value.converted(kind) };
        if !kind.is_value() {
            return value;
        }
        match (&**name, &value.data) {
            ("dim3" | "uint3", Data::Object { name, .. }) if !BUILT_IN.contains(&&**name) => self.as_dim3(value),
            ("dim3" | "uint3", _) => to_dim3(value),
            // An address, be it in a smart pointer, is left alone.
            _ if value.address => value,
            // A smart pointer or std::optional stands for what it holds.
            ("std::unique_ptr" | "std::shared_ptr" | "std::optional", Data::List(items))
                if matches!(items.as_slice(), [(None, Value { data: Data::Object { .. }, .. })]) =>
            {
                items.first().map(|item| item.1.clone()).unwrap_or(value)
            }
            (_, Data::List(items)) => {
                let items = self.typed_items(kind, items.clone());
                let list = Data::List(items.clone()).into();
                self.object(kind, items).unwrap_or(list)
            }
            (_, Data::Object { .. }) => self.object_as(value, kind),
            _ => value,
        }
    }

    /// The items of `std::pair<dim3, dim3>`, `std::tuple` and `std::array` as these hold them.
    fn typed_items(&mut self, kind: &Type, items: Items) -> Items {
        let Base::Named(name) = &kind.base else { return items };
        let last = name.rsplit("::").next().unwrap_or_default();
        let Some(arguments) = kind.arguments.clone().filter(|_| matches!(last, "pair" | "tuple" | "array")) else {
            return items;
        };
        let items = match items.as_slice() {
            // `std::array<dim3, 2>{{...}}` and a pair that is passed on.
            [(None, Value { data: Data::List(inner), .. })] if arguments.len() > 1 => inner.clone(),
            _ => items,
        };
        let of = |place: usize| arguments.get(if last == "array" { 0 } else { place }).and_then(|a| a.kind.clone());
        let typed = |(place, (name, value)): (usize, (Option<Arc<str>>, Value))| match of(place) {
            Some(kind) => (name, self.held(value, &kind)),
            None => (name, value.copied()),
        };
        items.into_iter().enumerate().map(typed).collect()
    }

    fn default_object(&mut self, kind: &Type) -> Option<Value> {
        match &kind.base {
            Base::Named(name) if matches!(&**name, "dim3" | "uint3") => Some(Value::dim3(Vec::new())),
            _ => self.object_of_members(kind, Vec::new(), Missing::Unset),
        }
    }

    /// dim3 of another struct's object, by the conversion that it declares.
    fn as_dim3(&mut self, value: Value) -> Value {
        let line = 1;
        let unknown = Value::unknown("dim3".to_owned(), line, "is made of an object that the grader does not follow");
        let Data::Object { name, .. } = &value.data else { return unknown };
        let Some(index) = self.method(name, "operator dim3", 0) else { return unknown };
        let function = self.program.functions.get(index);
        let Some((function, body)) = function.and_then(|f| Some((f, f.body.as_ref()?))) else { return unknown };
        if self.frames.len() > 48 || self.nesting > NESTING / 2 {
            return unknown;
        }
        let this = Some(self.placed(value));
        self.nesting += 1;
        self.enter_function(function, Entry { this, ..Entry::default() });
        let made = self.run_body(body);
        self.frames.pop();
        self.nesting -= 1;
        made.map_or(unknown, |made| to_dim3(made).copied())
    }

    /// A parameter's type, as a call binds it.
    pub fn bind(&mut self, parameter: &Parameter, value: Value) {
        let Some(name) = parameter.name.clone() else { return };
        let mut kind = self.resolved(&parameter.kind);
        let text = &self.program.text;
        // `int (*rows)[2]`
        if kind.is_value() && !kind.reference && parameter.at.clone().any(|at| text.is(at, "*") && text.is(at + 2, ")"))
        {
            kind.pointers.push(false);
        }
        let value = self.held(value, &kind);
        self.declare(name, parameter.name_at, kind, value);
    }
}

/// Structs that a dim3 is made of as they are.
const BUILT_IN: [&str; 4] = ["dim3", "uint3", "int3", "float3"];

/// Whether a type is std::vector or its like.
pub fn is_vector(kind: &Type) -> bool {
    let is_name = |path: &str| matches!(path.rsplit("::").next(), Some("vector" | "deque" | "list"));
    kind.is_value() && matches!(&kind.base, Base::Named(path) if is_name(path))
}

/// dim3 out of a number, a list or another dim3.
pub fn to_dim3(value: Value) -> Value {
    match value.data {
        Data::Integer { .. } | Data::Float { .. } => Value::dim3(vec![value]),
        Data::List(items) => match items.as_slice() {
            [(None, Value { data: Data::Object { .. }, .. })] => {
                items.into_iter().next().map_or_else(|| Value::dim3(Vec::new()), |item| item.1)
            }
            _ => Value::dim3(items.into_iter().map(|item| item.1).collect()),
        },
        _ => value,
    }
}

/// Structs that CUDA declares.
pub fn built_in_object(name: &str, items: &[(Option<Arc<str>>, Value)]) -> Option<Value> {
    let members: &[&str] = match name {
        "dim3" | "uint3" => return Some(to_dim3(Data::List(items.to_vec()).into())),
        "cudaLaunchConfig_t" | "cudaLaunchConfig_st" => {
            &["gridDim", "blockDim", "dynamicSmemBytes", "stream", "attrs", "numAttrs"]
        }
        "int2" | "uint2" | "float2" => &["x", "y"],
        "int3" | "float3" => &["x", "y", "z"],
        "int4" | "uint4" | "float4" => &["x", "y", "z", "w"],
        "pair" => &["first", "second"],
        "div_t" => &["quot", "rem"],
        _ => return None,
    };
    let member = |(place, member): (usize, &&str)| {
        let named = items.iter().find(|item| item.0.as_deref() == Some(member));
        let value = named.or_else(|| items.get(place).filter(|item| item.0.is_none())).map(|item| item.1.clone());
        let value = match *member {
            "gridDim" | "blockDim" => to_dim3(value.unwrap_or_else(|| Value::dim3(Vec::new()))),
            _ => value.unwrap_or_else(|| Value::int(0)),
        };
        (Arc::from(*member), value)
    };
    Some(
        Data::Object { name: name.into(), instance: None, members: members.iter().enumerate().map(member).collect() }
            .into(),
    )
}
