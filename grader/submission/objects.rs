//! Values that declarations give: arrays, dim3, structs with default members and constructors.

use std::sync::Arc;

use super::interpreter::{Interpreter, NESTING};
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Parameter};
use super::types::{Base, Type};
use super::value::{Data, Value};

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
                self.coerced(value, &kind)
            }
            Some(Initial::Arguments(items)) => self.constructed(&kind, items),
            None => self.default_value(&kind, declarator),
        }
    }

    fn default_value(&mut self, kind: &Type, declarator: &Declarator) -> Value {
        let text = &self.program.text;
        let unset = || Value::unknown(declarator.name.to_string(), text.line(declarator.name_at), "has no value yet");
        match &kind.base {
            Base::Named(_) if kind.is_value() => self.default_object(kind).unwrap_or_else(unset),
            _ => unset(),
        }
    }

    fn initial_array(&mut self, declarator: &Declarator, kind: &Type) -> Value {
        let items = match &declarator.initial {
            Some(
                Initial::Value(Expression { kind: ExpressionKind::Braces(items), .. }) | Initial::Arguments(items),
            ) => items.as_slice(),
            Some(Initial::Value(value)) => return self.evaluate(value),
            None => &[],
        };
        let mut list: Vec<_> = items
            .iter()
            .take(4096)
            .map(|(_, item)| {
                let value = self.evaluate(item);
                (None, self.coerced(value, kind))
            })
            .collect();
        let length = declarator.dimensions.first().and_then(|length| length.as_ref());
        let length = length.and_then(|length| self.evaluate(length).as_integer()).unwrap_or(0).clamp(0, 64);
        while (list.len() as i128) < length {
            list.push((None, self.default_value(kind, declarator)));
        }
        Data::List(list).into()
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
            ("dim3" | "uint3", _) => to_dim3(value),
            // A smart pointer or std::optional stands for what it holds.
            ("std::unique_ptr" | "std::shared_ptr" | "std::optional", Data::List(items))
                if matches!(items.as_slice(), [(None, Value { data: Data::Object { .. }, .. })]) =>
            {
                items.first().map(|item| item.1.clone()).unwrap_or(value)
            }
            (_, Data::List(items)) => {
                let items = self.typed_items(kind, items.clone());
                let list = Value { data: Data::List(items.clone()), origin: Vec::new() };
                self.object(kind, items).unwrap_or(list)
            }
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
            Some(kind) => (name, self.coerced(value, &kind)),
            None => (name, value),
        };
        items.into_iter().enumerate().map(typed).collect()
    }

    fn default_object(&mut self, kind: &Type) -> Option<Value> {
        match &kind.base {
            Base::Named(name) if matches!(&**name, "dim3" | "uint3") => Some(Value::dim3(Vec::new())),
            _ => self.object(kind, Vec::new()),
        }
    }

    /// A struct's object from a list in braces or brackets, through its constructor where it has one.
    pub fn object(&mut self, kind: &Type, items: Items) -> Option<Value> {
        let Base::Named(name) = &kind.base else { return None };
        if let Some(built_in) = built_in_object(name.rsplit("::").next().unwrap_or_default(), &items) {
            return Some(built_in);
        }
        let path = self.struct_of(kind)?;
        if let [(None, Value { data: Data::Object { name, .. }, .. })] = items.as_slice()
            && *name == path
        {
            return items.into_iter().next().map(|item| item.1);
        }
        let program = self.program;
        let found = program.structs.get(&path)?;
        let members = &found.members;
        if self.nesting > NESTING || self.fuel == 0 || self.building.contains(&path) {
            return None;
        }
        self.spend(1);
        self.nesting += 1;
        self.building.push(path.clone());
        let mut object = Vec::new();
        self.enter_instance(kind);
        for member in members.iter().take(256) {
            let value = self.initial_value(member);
            object.push((member.name.clone(), value));
        }
        let instance = found.template.as_ref().map(|_| Arc::new(kind.clone()));
        let mut object: Value = Data::Object { name: path.clone(), instance, members: object }.into();
        let built = self.construct(kind, &path, &mut object, &items);
        if !built {
            self.fill(members, &mut object, items);
        }
        self.frames.pop();
        self.building.pop();
        self.nesting -= 1;
        Some(object)
    }

    /// Aggregate initialisation: by name, or in the order of the members.
    fn fill(&mut self, members: &[Declarator], object: &mut Value, items: Items) {
        for (place, (name, value)) in items.into_iter().enumerate() {
            let declared = match &name {
                Some(name) => members.iter().find(|member| member.name == *name),
                None => members.get(place),
            };
            let Some(declared) = declared else { continue };
            let kind = self.resolved(&declared.kind);
            let value = self.coerced(value, &kind);
            if let Some(member) = object.member_mut(&declared.name) {
                *member = value;
            }
        }
    }

    /// A parameter's type, as a call binds it.
    pub fn bind(&mut self, parameter: &Parameter, value: Value) {
        let Some(name) = parameter.name.clone() else { return };
        let kind = self.resolved(&parameter.kind);
        let value = if kind.reference { value } else { self.coerced(value, &kind) };
        self.declare(name, parameter.name_at, kind, value);
    }
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
