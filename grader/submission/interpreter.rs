//! What is known while a program's host code is followed: variables in scopes, the grader's n in the place of names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::program::{Program, Variable, path_means};
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Name, Parameter};
use super::types::{Base, INT, Type};
use super::value::{Data, Identity, Value};

/// Nodes evaluated for one statement, and for one whole evaluation.
const STATEMENT_FUEL: u32 = 40_000;
const TOTAL_FUEL: u32 = 400_000;
/// Nodes within nodes, calls within calls.
pub const NESTING: u32 = 420;

pub struct Interpreter<'p> {
    pub program: &'p Program,
    /// The names that stand for n, and the n that they stand for.
    pub replaced: HashSet<Identity>,
    pub n: Option<u32>,
    pub frames: Vec<Frame>,
    pub nesting: u32,
    /// Nodes that the statement being followed may still evaluate, and had to begin with.
    pub fuel: u32,
    share: u32,
    /// Nodes that all statements from this one on may evaluate.
    pub total_fuel: u32,
    globals: HashMap<usize, Value>,
    /// Globals whose initial value is being worked out.
    pending: Vec<usize>,
    /// Structs whose members are being worked out.
    building: Vec<Arc<str>>,
}

/// One call: its scopes, and what it belongs to.
#[derive(Default)]
pub struct Frame {
    pub scopes: Vec<Vec<Slot>>,
    /// The object that a member function was called on.
    pub this: Option<Value>,
    /// The function's path, for lookup in the namespaces and structs around it.
    pub path: Arc<str>,
    /// What its template's type parameters stand for.
    pub types: Vec<(Arc<str>, Type)>,
}

/// A variable.
pub struct Slot {
    pub name: Arc<str>,
    pub name_at: usize,
    pub kind: Type,
    pub value: Value,
}

impl<'p> Interpreter<'p> {
    pub fn new(program: &'p Program) -> Self {
        Self {
            program,
            replaced: HashSet::new(),
            n: None,
            frames: vec![Frame { scopes: vec![Vec::new()], ..Frame::default() }],
            nesting: 0,
            fuel: STATEMENT_FUEL,
            share: STATEMENT_FUEL,
            total_fuel: TOTAL_FUEL,
            globals: HashMap::new(),
            pending: Vec::new(),
            building: Vec::new(),
        }
    }

    /// Leaves at most so much work for the whole evaluation; returns what is left.
    pub fn limit_fuel(&mut self, most: u32) -> u32 {
        self.total_fuel = self.total_fuel.min(most);
        self.fuel = self.fuel.min(self.total_fuel);
        self.share = self.fuel;
        self.total_fuel
    }

    /// Gives the next statement its share of work.
    pub fn refuel(&mut self) {
        self.total_fuel = self.total_fuel.saturating_sub(self.share.saturating_sub(self.fuel));
        self.fuel = STATEMENT_FUEL.min(self.total_fuel);
        self.share = self.fuel;
    }

    pub fn spend(&mut self, fuel: u32) {
        self.fuel = self.fuel.saturating_sub(fuel);
    }

    /// An unknown value that shows `tokens` as they were written.
    pub fn unknown(&self, expression: &Expression, why: &'static str) -> Value {
        let text = &self.program.text;
        Value::unknown(text.spelling(expression.at.clone()), text.line(expression.at.start), why)
    }

    pub fn frame(&mut self) -> Option<&mut Frame> {
        self.frames.last_mut()
    }

    pub fn open_scope(&mut self) {
        if let Some(frame) = self.frame() {
            frame.scopes.push(Vec::new());
        }
    }

    pub fn close_scope(&mut self) {
        if let Some(frame) = self.frame().filter(|frame| frame.scopes.len() > 1) {
            frame.scopes.pop();
        }
    }

    /// Adds a variable to the innermost scope.
    pub fn declare(&mut self, name: Arc<str>, name_at: usize, kind: Type, value: Value) {
        if let Some(scope) = self.frame().and_then(|frame| frame.scopes.last_mut()) {
            scope.push(Slot { name, name_at, kind, value });
        }
    }

    pub fn slot(&mut self, name: &str) -> Option<&mut Slot> {
        let scopes = &mut self.frames.last_mut()?.scopes;
        scopes.iter_mut().rev().flat_map(|scope| scope.iter_mut().rev()).find(|slot| &*slot.name == name)
    }

    /// A type with aliases and template parameters resolved.
    pub fn resolved(&self, kind: &Type) -> Type {
        if let (Base::Named(name), Some(frame)) = (&kind.base, self.frames.last())
            && let Some((_, actual)) = frame.types.iter().find(|bound| bound.0 == *name)
        {
            return Type { base: actual.base.clone(), ..kind.clone() };
        }
        self.program.resolved(kind)
    }

    fn stands_for_n(&self, identity: &Identity, kind: &Type) -> Option<Value> {
        let n = self.n.filter(|_| self.replaced.contains(identity))?;
        let base = match self.resolved(kind).base {
            Base::Auto | Base::Named(_) => INT,
            base => base,
        };
        let value = Value::int(i128::from(n)).converted(&Type::of(base));
        Some(value)
    }

    /// The value of a name; copying a large one costs more.
    pub fn read(&mut self, name: &Name, expression: &Expression) -> Value {
        let value = self.read_name(name, expression);
        self.spend(value.weight() / 4);
        value
    }

    fn read_name(&mut self, name: &Name, expression: &Expression) -> Value {
        if let Some(value) = self.read_macro(name, expression) {
            return value;
        }
        let plain = !name.path.contains("::");
        if plain && let Some(slot) = self.slot(&name.path) {
            let (identity, kind) = (Identity::Token(slot.name_at), slot.kind.clone());
            let value = slot.value.clone();
            return self.stands_for_n(&identity, &kind).unwrap_or(value).from_name(identity);
        }
        if plain && let Some(value) = self.read_member_of_this(&name.path) {
            return value;
        }
        if let Some(variable) = self.global_variable(&name.path) {
            return self.read_global(variable, expression);
        }
        if let Some(value) = self.function_value(name) {
            return value;
        }
        well_known(name.last()).unwrap_or_else(|| self.unknown(expression, "is not declared in heat.cu"))
    }

    fn read_macro(&mut self, name: &Name, expression: &Expression) -> Option<Value> {
        let program = self.program;
        let (key, constant) = program.constants.get_key_value(&name.path)?;
        let identity = Identity::Macro(key.clone());
        if let Some(value) = self.stands_for_n(&identity, &Type::of(INT)) {
            return Some(value.from_name(identity));
        }
        let value = self.evaluate(&constant.value);
        let value = match value.as_unknown() {
            Some(unknown) => self.unknown(expression, unknown.why),
            None => value,
        };
        Some(value.from_name(identity))
    }

    fn read_member_of_this(&mut self, name: &str) -> Option<Value> {
        let this = self.frames.last()?.this.as_ref()?;
        this.member(name)?;
        let this = this.clone();
        self.member_value(&this, name)
    }

    /// A struct's member, n in its place where it stands for n.
    pub fn member_value(&mut self, object: &Value, member: &str) -> Option<Value> {
        let value = object.member(member)?.clone();
        let Data::Object { name, .. } = &object.data else { return Some(value) };
        let members = self.program.structs.get(name).map(|found| &found.members);
        let declared = members.and_then(|members| members.iter().find(|declared| &*declared.name == member));
        let Some(declared) = declared else { return Some(value) };
        let identity = Identity::Token(declared.name_at);
        Some(self.stands_for_n(&identity, &declared.kind).unwrap_or(value).from_name(identity))
    }

    /// The variable outside functions that a name means here: the one that shares most namespaces with the function.
    fn global_variable(&self, written: &str) -> Option<&'p Variable> {
        let last = written.rsplit("::").next().unwrap_or_default();
        let path = self.frames.last().map(|frame| frame.path.clone()).unwrap_or_default();
        let candidates = self.program.variables.get(last)?;
        let shared = |variable: &Variable| path.bytes().zip(variable.path.bytes()).take_while(|(a, b)| a == b).count();
        candidates.iter().filter(|variable| path_means(written, &variable.path)).max_by_key(|variable| shared(variable))
    }

    fn read_global(&mut self, variable: &'p Variable, expression: &Expression) -> Value {
        let at = variable.declarator.name_at;
        let identity = Identity::Token(at);
        if let Some(value) = self.stands_for_n(&identity, &variable.declarator.kind) {
            return value.from_name(identity);
        }
        if !self.globals.contains_key(&at) {
            if self.pending.contains(&at) || self.pending.len() > 40 {
                return self.unknown(expression, "is defined by itself");
            }
            self.pending.push(at);
            self.frames.push(Frame { scopes: vec![Vec::new()], path: variable.path.clone(), ..Frame::default() });
            let mut value = self.initial_value(&variable.declarator);
            if variable.offset != 0 {
                let first = value.as_integer().unwrap_or(0);
                value = Value::int(first.saturating_add(i128::from(variable.offset)));
            } else if variable.declarator.initial.is_none() && value.as_unknown().is_some() {
                value = Value::int(0);
            }
            self.frames.pop();
            self.pending.pop();
            self.globals.insert(at, value);
        }
        let value = self.globals.get(&at).cloned();
        value.unwrap_or_else(|| self.unknown(expression, "is not known from the text")).from_name(identity)
    }

    /// The place that an expression names, to be assigned to.
    pub fn place(&mut self, expression: &Expression) -> Option<&mut Value> {
        match &expression.kind {
            ExpressionKind::Name(name) => self.named_place(name, expression),
            ExpressionKind::Member(object, member) => self.place(object)?.member_mut(member),
            ExpressionKind::Unary('*' | '&', inner) => self.place(inner),
            ExpressionKind::Index(array, index) => {
                let index = usize::try_from(self.evaluate(index).as_integer()?).ok()?;
                match &mut self.place(array)?.data {
                    Data::List(items) => items.get_mut(index).map(|item| &mut item.1),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn named_place(&mut self, name: &Name, expression: &Expression) -> Option<&mut Value> {
        if self.slot(&name.path).is_some() {
            return self.slot(&name.path).map(|slot| &mut slot.value);
        }
        if &*name.path == "this" {
            return self.frames.last_mut()?.this.as_mut();
        }
        let in_this =
            self.frames.last().is_some_and(|frame| frame.this.as_ref().is_some_and(|t| t.member(&name.path).is_some()));
        if in_this {
            return self.frames.last_mut()?.this.as_mut()?.member_mut(&name.path);
        }
        let variable = self.global_variable(&name.path)?;
        self.read_global(variable, expression);
        self.globals.get_mut(&variable.declarator.name_at)
    }

    /// The declared type of a plain variable.
    pub fn kind_of_place(&mut self, expression: &Expression) -> Option<Type> {
        let ExpressionKind::Name(name) = &expression.kind else { return None };
        if let Some(slot) = self.slot(&name.path) {
            let kind = slot.kind.clone();
            return Some(self.resolved(&kind));
        }
        let kind = self.global_variable(&name.path)?.declarator.kind.clone();
        Some(self.resolved(&kind))
    }

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

fn well_known(name: &str) -> Option<Value> {
    Some(match name {
        "true" => Value::boolean(true),
        "false" => Value::boolean(false),
        "nullptr" | "NULL" | "cudaSuccess" | "EXIT_SUCCESS" => Value::int(0),
        "warpSize" => Value::int(32),
        "INT_MAX" => Value::int(i128::from(i32::MAX)),
        _ => return None,
    })
}
