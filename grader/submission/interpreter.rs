//! What is known while a program's host code is followed: variables in scopes, the grader's n in the place of names.

use std::collections::HashMap;
use std::sync::Arc;

use super::program::{Program, Variable, path_means};
use super::tree::{Expression, ExpressionKind, Name};
use super::types::{Base, INT, Type};
use super::value::{Data, Identity, Value};

/// Nodes evaluated for one statement, and for one whole evaluation.
const STATEMENT_FUEL: u32 = 40_000;
const TOTAL_FUEL: u32 = 400_000;
/// Nodes within nodes, calls within calls.
pub const NESTING: u32 = 420;

pub struct Interpreter<'p> {
    pub program: &'p Program,
    /// The names that stand for n less a number, and the n that they stand for.
    pub replaced: HashMap<Identity, i128>,
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
    pub building: Vec<Arc<str>>,
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
    /// The struct that it belongs to, where that is a template's.
    pub instance: Option<Type>,
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
            replaced: HashMap::new(),
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

    pub fn stands_for_n(&mut self, identity: &Identity, kind: &Type) -> Option<Value> {
        let n = i128::from(self.n?) - self.replaced.get(identity)?;
        let base = match self.resolved(kind).base {
            Base::Auto | Base::Named(_) => INT,
            base => base,
        };
        let value = Value::integer(n, &Base::Void).converted(&Type::of(base));
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
        if let Some(value) = self.read_of_struct(name, expression) {
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

    pub fn read_global(&mut self, variable: &'p Variable, expression: &Expression) -> Value {
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
            let value = self.value_of_variable(variable);
            self.frames.pop();
            self.pending.pop();
            self.globals.insert(at, value);
        }
        let value = self.globals.get(&at).cloned();
        value.unwrap_or_else(|| self.unknown(expression, "is not known from the text")).from_name(identity)
    }

    /// What a variable outside functions begins with.
    pub fn value_of_variable(&mut self, variable: &Variable) -> Value {
        let value = self.initial_value(&variable.declarator);
        if variable.offset != 0 {
            let first = value.as_integer().unwrap_or(0);
            return Value::int(first.saturating_add(i128::from(variable.offset)));
        }
        let unset = variable.declarator.initial.is_none() && value.as_unknown().is_some();
        if unset { Value::int(0) } else { value }
    }

    /// The place that an expression names, to be assigned to.
    pub fn place(&mut self, expression: &Expression) -> Option<&mut Value> {
        match &expression.kind {
            ExpressionKind::Name(name) => self.named_place(name, expression),
            ExpressionKind::Member(object, member) => self.place(object)?.member_mut(&member.path),
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
