//! What is known while a program's host code is followed: variables in scopes, the grader's n in the place of names.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::effects::FunctionEffects;
use super::places::{Place, Root};
use super::program::{Program, Variable, path_means};
use super::scan_local::INSIDE;
use super::tree::{Declarator, Expression, Initial, Name};
use super::types::{Base, INT, Type};
use super::value::{Data, Home, Identity, Value};

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
    /// Variables outside functions by their names' tokens: declared types, and values once they were read.
    pub globals: HashMap<usize, (Type, Value)>,
    /// Which turn to take of each loop over a table of launches, and how many turns each has.
    pub choices: Vec<usize>,
    pub choice_counts: Vec<usize>,
    /// What `new` made, and objects without a name.
    pub heap: Vec<Value>,
    /// What functions change that were looked at, by their index.
    pub known_effects: HashMap<usize, FunctionEffects>,
    /// The number of the next frame.
    next_frame: u64,
    /// Globals whose initial value is being worked out.
    pending: Vec<usize>,
    /// Structs whose members are being worked out.
    pub building: Vec<Arc<str>>,
    /// Packs of arguments that were bound, by their names' tokens.
    pub packs: HashSet<usize>,
}

/// One call: its scopes, and what it belongs to.
#[derive(Default)]
pub struct Frame {
    /// Tells it from the frames before it.
    pub id: u64,
    pub scopes: Vec<Vec<Slot>>,
    /// For a lambda's: where the lambda stands, whose variables it sees.
    pub home: Option<Home>,
    /// The object that a member function was called on.
    pub this: Option<Arc<Place>>,
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
            choices: Vec::new(),
            choice_counts: Vec::new(),
            heap: Vec::new(),
            known_effects: HashMap::new(),
            next_frame: 1,
            pending: Vec::new(),
            building: Vec::new(),
            packs: HashSet::new(),
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

    /// Takes one node's worth of work; false when there is none left. What takes it leaves `nesting` as it was.
    pub fn enter_node(&mut self) -> bool {
        if self.fuel == 0 || self.nesting >= NESTING {
            return false;
        }
        self.fuel -= 1;
        self.nesting += 1;
        true
    }

    /// Opens a frame.
    pub fn open_frame(&mut self, frame: Frame) {
        self.frames.push(Frame { id: self.next_frame, scopes: vec![Vec::new()], ..frame });
        self.next_frame += 1;
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
            scope.push(Slot { name, name_at, kind, value: value.copied() });
        }
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

    pub fn read_macro(&mut self, name: &Name, expression: &Expression) -> Option<Value> {
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

    /// The declaration of a struct's member, in the struct or the bases that it names.
    pub fn declared_member(&self, owner: &str, member: &str) -> Option<&'p Declarator> {
        self.declared_member_of(owner, member, 0)
    }

    fn declared_member_of(&self, owner: &str, member: &str, depth: u32) -> Option<&'p Declarator> {
        let found = self.program.structs.get(owner)?;
        let own = found.members.iter().find(|declared| &*declared.name == member);
        let of_base = |base: &Type| match &base.base {
            Base::Named(path) if depth < 8 => {
                self.declared_member_of(path.rsplit("::").next().unwrap_or_default(), member, depth + 1)
            }
            _ => None,
        };
        own.or_else(|| found.bases.iter().take(8).find_map(of_base))
    }

    /// A struct's member, n in its place where it stands for n.
    pub fn member_value(&mut self, object: &Value, member: &str) -> Option<Value> {
        let value = self.followed(object.member(member)?.clone())?;
        let Data::Object { name, .. } = &object.data else { return Some(value) };
        let Some(declared) = self.declared_member(name, member) else { return Some(value) };
        let identity = Identity::Token(declared.name_at);
        Some(self.stands_for_n(&identity, &declared.kind).unwrap_or(value).from_name(identity))
    }

    /// The path of the function that is followed.
    pub fn path_here(&self) -> Arc<str> {
        self.frames.last().map(|frame| frame.path.clone()).unwrap_or_default()
    }

    /// The variable outside functions that a name means here: the one that shares most namespaces with the function.
    pub fn global_variable(&self, written: &str) -> Option<&'p Variable> {
        let last = written.rsplit("::").next().unwrap_or_default();
        let path = self.path_here();
        let candidates = self.program.variables.get(last)?;
        let shared = |variable: &Variable| path.bytes().zip(variable.path.bytes()).take_while(|(a, b)| a == b).count();
        // An enumerator of a function's body is known there alone.
        let known = |variable: &&Variable| match variable.path.split_once(INSIDE) {
            Some((function, _)) => {
                path.strip_prefix(function).is_some_and(|rest| rest.is_empty() || rest.starts_with(INSIDE))
            }
            None => true,
        };
        let meant = candidates.iter().filter(|variable| path_means(written, &variable.path));
        meant.filter(known).max_by_key(|variable| shared(variable))
    }

    pub fn read_global(&mut self, variable: &'p Variable, expression: &Expression) -> Value {
        let at = variable.declarator.name_at;
        let identity = Identity::Token(at);
        if let Some(value) = self.stands_for_n(&identity, &variable.declarator.kind) {
            return value.from_name(identity);
        }
        if !self.know_global(variable) {
            return self.unknown(expression, "is defined by itself");
        }
        self.load(&Place::of(Root::Global(at)), expression)
    }

    /// Works out what a variable outside functions begins with; false when that takes its own value.
    pub fn know_global(&mut self, variable: &Variable) -> bool {
        let at = variable.declarator.name_at;
        if self.globals.contains_key(&at) {
            return true;
        }
        if self.pending.contains(&at) || self.pending.len() > 40 {
            return false;
        }
        self.pending.push(at);
        self.open_frame(Frame { path: variable.path.clone(), ..Frame::default() });
        let kind = self.resolved(&variable.declarator.kind);
        let value = self.value_of_variable(variable);
        self.frames.pop();
        self.pending.pop();
        self.globals.insert(at, (kind, value));
        true
    }

    fn is_extern(&self, name_at: usize) -> bool {
        let before = (0..name_at).rev().take(8).map_while(|at| self.program.text.tokens.get(at));
        before.take_while(|token| !matches!(&*token.text, ";" | "}" | "{")).any(|token| token.is("extern"))
    }

    /// What a variable outside functions begins with.
    pub fn value_of_variable(&mut self, variable: &Variable) -> Value {
        let declared_only = self.is_extern(variable.declarator.name_at);
        if !declared_only && let Some(value) = self.zeroed_array(&variable.declarator) {
            return value;
        }
        let value = self.initial_value(&variable.declarator);
        if variable.offset != 0 && value.as_unknown().is_none() {
            let first = value.as_integer().unwrap_or(0);
            return Value::int(first.saturating_add(i128::from(variable.offset)));
        }
        let is_number = !matches!(variable.declarator.kind.base, Base::Named(_) | Base::Auto);
        let unset = variable.declarator.initial.is_none() && matches!(value.data, Data::Unknown(_));
        if unset && is_number && !declared_only { Value::int(0) } else { value }
    }
}

impl Interpreter<'_> {
    /// An array of numbers that nothing initialises, where it is made of zeros: outside functions, or static.
    pub fn zeroed_array(&mut self, declarator: &Declarator) -> Option<Value> {
        let is_number = !matches!(declarator.kind.base, Base::Named(_) | Base::Auto);
        let unset = declarator.initial.is_none() && !declarator.dimensions.is_empty();
        let zeroed = Declarator { initial: Some(Initial::Arguments(Vec::new())), ..declarator.clone() };
        (unset && is_number).then(|| self.initial_value(&zeroed))
    }
}

pub fn well_known(name: &str) -> Option<Value> {
    Some(match name {
        "true" => Value::boolean(true),
        "false" => Value::boolean(false),
        "nullptr" | "NULL" | "cudaSuccess" | "EXIT_SUCCESS" => Value::int(0),
        "warpSize" => Value::int(32),
        "INT_MAX" => Value::int(i128::from(i32::MAX)),
        _ => return None,
    })
}
