//! Following one way to a launch, and reading there which kernel is launched and how.

use std::collections::HashMap;
use std::sync::Arc;

use super::Geometry;
use super::calls::Entry;
use super::constructors::Missing;
use super::find::Found;
use super::interpreter::Interpreter;
use super::overloads::Meant;
use super::places::Place;
use super::program::Function;
use super::sites::{Enter, Sites, Step, call_details, callee_name};
use super::tree::{Expression, ExpressionKind};
use super::types::{Base, Type};
use super::value::{Data, Home, Identity, Unknown, Value};

/// What a launch is, where its way ends.
pub struct Reached {
    /// Whether the conditions on the way hold, as far as they are known.
    pub reachable: bool,
    /// Index of the function launched, and its template arguments.
    pub kernel: Option<(usize, Option<Vec<String>>)>,
    pub grid: Value,
    pub block: Value,
    pub shared: Value,
    /// The third argument.
    pub n: Option<Value>,
    /// How many turns each loop over a table of launches has on the way.
    pub choice_counts: Vec<usize>,
}

/// A geometry that no launch can have, or that the text does not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    Unknown(Unknown),
    /// In words, with the numbers.
    Impossible(String),
}

/// Follows a way, taking the turns in `choices` of loops over tables; n, less a number, stands for the names in
/// `replaced`.
pub fn follow(
    sites: &Sites<'_>,
    (way, choices): (&[Step<'_>], &[usize]),
    launch: &Expression,
    replaced: HashMap<Identity, i128>,
    n: Option<u32>,
) -> Reached {
    let mut interpreter = Interpreter::new(sites.program);
    (interpreter.replaced, interpreter.n) = (replaced, n);
    interpreter.choices = choices.to_vec();
    let fuel = interpreter.limit_fuel(sites.work.get());
    let mut reachable = true;
    for step in way {
        match interpreter.enter(&step.enter) {
            Some(body) => reachable &= interpreter.run_to(body, step.target),
            None => reachable = false,
        }
    }
    interpreter.refuel();
    let mut reached = interpreter.launched(launch);
    reached.reachable = reachable;
    reached.choice_counts = interpreter.choice_counts.clone();
    interpreter.refuel();
    sites.work.set(sites.work.get().saturating_sub(fuel - interpreter.total_fuel));
    reached
}

impl Interpreter<'_> {
    /// Opens the frame of a step; returns the body to follow.
    fn enter<'s>(&mut self, enter: &Enter<'s>) -> Option<&'s super::tree::Statement> {
        self.refuel();
        match enter {
            Enter::Root(function) => {
                let this = function.owner.as_ref().and_then(|owner| self.object_of(owner));
                self.enter_function(function, Entry { this, ..Entry::default() });
                function.body.as_ref()
            }
            Enter::Call { function, call } => {
                let (template, object, arguments) = call_details(call, &*function.name == "operator()");
                let known = object.map(|object| self.find(object)).and_then(|found| self.object_at(&found));
                let is_operator = function.name.starts_with("operator");
                let certain = known.is_some() || !is_operator;
                let this = function.owner.as_ref().and_then(|owner| {
                    let own = self.this().filter(|_| object.is_none());
                    known.or(own).or_else(|| self.object_of(owner))
                });
                let instance = match &call.kind {
                    ExpressionKind::Call(callee, _) => self.owner_of_callee(callee),
                    _ => None,
                };
                let called = certain && self.is_called(function, this.as_ref()) && !self.is_another(function, call);
                self.enter_function(function, Entry { template, this, instance, arguments: Some(arguments) });
                function.body.as_ref().filter(|_| called)
            }
            Enter::Named { function, name } => {
                let instance = self.owner_of(name);
                let template = name.arguments.as_deref();
                self.enter_function(function, Entry { template, instance, ..Entry::default() });
                function.body.as_ref()
            }
            Enter::Lambda { lambda, arguments, outside } => {
                let captured = self.captured(lambda);
                let home = if *outside { Home { frame: 0, scopes: 0 } } else { self.home() };
                self.enter_lambda(lambda, &captured, home, arguments);
                Some(&lambda.body)
            }
        }
    }

    /// The place of an object.
    fn object_at(&mut self, found: &Found) -> Option<Arc<Place>> {
        let place = match found {
            Found::Value(value) if value.place.is_none() => {
                matches!(value.data, Data::Object { .. }).then(|| self.placed(value.clone()))?
            }
            found => self.pointee(&found.place()?),
        };
        self.at(&place).is_some_and(|kept| matches!(kept.data, Data::Object { .. })).then_some(place)
    }

    /// Whether a call on the object means this function, rather than another struct's of the same name.
    fn is_called(&self, function: &Function, this: Option<&Arc<Place>>) -> bool {
        let object = this.and_then(|place| self.kept(place)).map(|kept| &kept.data);
        let (Some(owner), Some(Data::Object { name, .. })) = (&function.owner, object) else { return true };
        let count = function.parameters.as_ref().map_or(0, Vec::len);
        let meant = self.method(name, &function.name, count).and_then(|index| self.program.functions.get(index));
        self.descends(name, owner, 0) && meant.is_none_or(|meant| meant.owner == function.owner)
    }

    /// Whether a call by name means another function of that name for certain.
    fn is_another(&mut self, function: &Function, call: &Expression) -> bool {
        let ExpressionKind::Call(callee, arguments) = &call.kind else { return false };
        let ExpressionKind::Name(name) = &callee.kind else { return false };
        if function.owner.is_some() || self.owner_of(name).is_some() {
            return false;
        }
        match self.callee(&name.path, name.arguments.as_deref(), arguments) {
            Meant::One(index) => self.program.functions.get(index).is_some_and(|meant| !std::ptr::eq(meant, function)),
            _ => false,
        }
    }

    /// Some object of a struct, its constructor's parameters unknown where they have no default.
    fn object_of(&mut self, owner: &Arc<str>) -> Option<Arc<Place>> {
        let object = self.object_of_members(&Type::of(Base::Named(owner.clone())), Vec::new(), Missing::Unset)?;
        Some(self.placed(object))
    }

    fn launched(&mut self, launch: &Expression) -> Reached {
        match &launch.kind {
            ExpressionKind::Launch(found) => {
                let kernel = self.evaluate(&found.callee);
                let nothing = || Value::int(0);
                let mut configuration = found.configuration.iter().map(|value| self.evaluate(value));
                let grid = configuration.next().unwrap_or_else(nothing);
                let block = configuration.next().unwrap_or_else(nothing);
                let shared = configuration.next().unwrap_or_else(nothing);
                drop(configuration);
                let (grid, block) = (self.dim3_of(grid), self.dim3_of(block));
                let packed = |value: &Expression| matches!(value.kind, ExpressionKind::Spread(_));
                let n = match found.arguments.iter().any(packed) {
                    true => self.spread(&found.arguments).into_iter().nth(2),
                    false => found.arguments.get(2).map(|value| self.evaluate(value)),
                };
                reached(kernel, grid, block, shared, n)
            }
            ExpressionKind::Call(callee, arguments) => match callee_name(callee) {
                Some("cudaLaunchKernelEx" | "cudaLaunchKernelExC") => self.launched_by_config(callee, arguments),
                _ => self.launched_by_array(arguments),
            },
            _ => reached(Value::int(0), Value::int(0), Value::int(0), Value::int(0), None),
        }
    }

    fn dim3_of(&mut self, value: Value) -> Value {
        self.coerced(Value { place: None, address: false, ..value }, &Type::of(Base::Named("dim3".into())))
    }

    fn third(&mut self, list: &Value) -> Option<Value> {
        match &list.data {
            Data::List(_) => self.part(list, 2),
            _ => None,
        }
    }

    /// `cudaLaunchKernel(kernel, grid, block, arguments, shared, stream)`
    fn launched_by_array(&mut self, arguments: &[Expression]) -> Reached {
        let values: Vec<Value> = arguments.iter().map(|value| self.evaluate(value)).collect();
        let value = |place: usize| values.get(place).cloned().unwrap_or_else(|| Value::int(0));
        let n = self.third(&value(3));
        reached(value(0), self.dim3_of(value(1)), self.dim3_of(value(2)), value(4), n)
    }

    /// `cudaLaunchKernelEx(&config, kernel, a, b, n, r)`, or with an array of arguments for the C version.
    fn launched_by_config(&mut self, callee: &Expression, arguments: &[Expression]) -> Reached {
        let values: Vec<Value> = arguments.iter().map(|value| self.evaluate(value)).collect();
        let value = |place: usize| values.get(place).cloned().unwrap_or_else(|| Value::int(0));
        let config = value(0);
        let member = |name: &str| config.member(name).cloned().unwrap_or_else(|| config.clone());
        let in_array = callee_name(callee) == Some("cudaLaunchKernelExC");
        let n = if in_array { self.third(&value(2)) } else { values.get(4).cloned() };
        let (grid, block) = (self.dim3_of(member("gridDim")), self.dim3_of(member("blockDim")));
        reached(value(1), grid, block, member("dynamicSmemBytes"), n)
    }
}

fn reached(kernel: Value, grid: Value, block: Value, shared: Value, n: Option<Value>) -> Reached {
    let kernel = match kernel.data {
        Data::Function { index, arguments } => Some((index, arguments)),
        _ => None,
    };
    Reached { reachable: true, kernel, grid, block, shared, n, choice_counts: Vec::new() }
}

impl Reached {
    /// The geometry in numbers.
    pub fn geometry(&self) -> Result<Geometry, Unfit> {
        Ok(Geometry {
            grid: lengths(&self.grid, "grid")?,
            block: lengths(&self.block, "block")?,
            shared: number(&self.shared, "dynamic shared memory")?,
        })
    }
}

fn lengths(value: &Value, what: &str) -> Result<[u32; 3], Unfit> {
    if let Some(unknown) = value.as_unknown() {
        return Err(Unfit::Unknown((**unknown).clone()));
    }
    let mut lengths = [1; 3];
    for (length, member) in lengths.iter_mut().zip(["x", "y", "z"]) {
        let value = value.member(member).ok_or_else(|| Unfit::Impossible(format!("the {what} is no dim3")))?;
        *length = number(value, &format!("{what}.{member}"))?;
    }
    Ok(lengths)
}

fn number(value: &Value, what: &str) -> Result<u32, Unfit> {
    if let Some(unknown) = value.as_unknown() {
        return Err(Unfit::Unknown((**unknown).clone()));
    }
    let number = value.as_float().ok_or_else(|| Unfit::Impossible(format!("the {what} is no number")))?;
    let integer = value.as_integer().unwrap_or(number as i128);
    u32::try_from(integer).map_err(|_| Unfit::Impossible(format!("the {what} comes to {integer}")))
}
