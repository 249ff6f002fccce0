//! Values that declarations give: arrays, dim3, structs with default members and constructors.

use std::sync::Arc;

use super::interpreter::{Interpreter, NESTING};
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Parameter};
use super::types::{Base, Type};
use super::value::{Data, Value};

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
            Base::Named(name) if kind.is_value() => self.default_object(&name.clone()).unwrap_or_else(unset),
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
            (_, Data::List(items)) => {
                let items = items.clone();
                self.object(&name.clone(), items).unwrap_or(value)
            }
            _ => value,
        }
    }

    fn default_object(&mut self, name: &Arc<str>) -> Option<Value> {
        if matches!(&**name, "dim3" | "uint3") { Some(Value::dim3(Vec::new())) } else { self.object(name, Vec::new()) }
    }

    /// A struct's object from a list in braces or brackets, through its constructor where it has one.
    pub fn object(&mut self, path: &Arc<str>, items: Vec<(Option<Arc<str>>, Value)>) -> Option<Value> {
        let path: Arc<str> = path.rsplit("::").next().unwrap_or_default().into();
        if let Some(built_in) = built_in_object(&path, &items) {
            return Some(built_in);
        }
        if let [(None, Value { data: Data::Object { name, .. }, .. })] = items.as_slice()
            && *name == path
        {
            return items.into_iter().next().map(|item| item.1);
        }
        let program = self.program;
        let members = &program.structs.get(&path)?.members;
        if self.nesting > NESTING || self.fuel == 0 || self.building.contains(&path) {
            return None;
        }
        self.spend(1);
        self.nesting += 1;
        self.building.push(path.clone());
        let mut object = Vec::new();
        for member in members.iter().take(256) {
            let value = self.initial_value(member);
            object.push((member.name.clone(), value));
        }
        let mut object: Value = Data::Object { name: path.clone(), members: object }.into();
        let built = self.construct(&path, &mut object, &items);
        if !built {
            self.fill(members, &mut object, items);
        }
        self.building.pop();
        self.nesting -= 1;
        Some(object)
    }

    /// Aggregate initialisation: by name, or in the order of the members.
    fn fill(&mut self, members: &[Declarator], object: &mut Value, items: Vec<(Option<Arc<str>>, Value)>) {
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
fn built_in_object(name: &str, items: &[(Option<Arc<str>>, Value)]) -> Option<Value> {
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
    Some(Data::Object { name: name.into(), members: members.iter().enumerate().map(member).collect() }.into())
}
