//! Following one way to a launch, and reading there which kernel is launched and how.

use std::collections::HashMap;

use super::Geometry;
use super::calls::Entry;
use super::interpreter::Interpreter;
use super::objects::to_dim3;
use super::sites::{Enter, Sites, Step, call_details, callee_name};
use super::tree::{Expression, ExpressionKind};
use super::types::{Base, Type};
use super::value::{Data, Identity, Unknown, Value};

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
}

/// A geometry that no launch can have, or that the text does not give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    Unknown(Unknown),
    /// In words, with the numbers.
    Impossible(String),
}

/// Follows a way; n, less a number, stands for the names in `replaced`.
pub fn follow(
    sites: &Sites<'_>,
    way: &[Step<'_>],
    launch: &Expression,
    replaced: HashMap<Identity, i128>,
    n: Option<u32>,
) -> Reached {
    let mut interpreter = Interpreter::new(sites.program);
    (interpreter.replaced, interpreter.n) = (replaced, n);
    let fuel = interpreter.limit_fuel(sites.work.get());
    let mut reachable = true;
    for step in way {
        let body = interpreter.enter(&step.enter);
        if let Some(body) = body {
            reachable &= interpreter.run_to(body, step.target);
        }
    }
    interpreter.refuel();
    let mut reached = interpreter.launched(launch);
    reached.reachable = reachable;
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
                let (template, object, arguments) = call_details(call);
                let known =
                    object.map(|object| self.evaluate(object)).filter(|this| matches!(this.data, Data::Object { .. }));
                let own = || self.frames.last().and_then(|frame| frame.this.clone());
                let this = known.or_else(own);
                let instance = match &call.kind {
                    ExpressionKind::Call(callee, _) => self.owner_of_callee(callee),
                    _ => None,
                };
                let this = function.owner.as_ref().and_then(|owner| this.or_else(|| self.object_of(owner)));
                self.enter_function(function, Entry { template, this, instance, arguments: Some(arguments) });
                function.body.as_ref()
            }
            Enter::Lambda { lambda, arguments } => {
                let captured = self.captured(lambda);
                self.enter_lambda(lambda, &captured, arguments);
                Some(&lambda.body)
            }
        }
    }

    /// Some object of a struct, its constructor's parameters unknown where they have no default.
    fn object_of(&mut self, owner: &std::sync::Arc<str>) -> Option<Value> {
        self.object(&Type::of(Base::Named(owner.clone())), Vec::new())
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
                let n = found.arguments.get(2).map(|value| self.evaluate(value));
                reached(kernel, grid, block, shared, n)
            }
            ExpressionKind::Call(callee, arguments) => match callee_name(callee) {
                Some("cudaLaunchKernelEx" | "cudaLaunchKernelExC") => self.launched_by_config(callee, arguments),
                _ => self.launched_by_array(arguments),
            },
            _ => reached(Value::int(0), Value::int(0), Value::int(0), Value::int(0), None),
        }
    }

    /// `cudaLaunchKernel(kernel, grid, block, arguments, shared, stream)`
    fn launched_by_array(&mut self, arguments: &[Expression]) -> Reached {
        let values: Vec<Value> = arguments.iter().map(|value| self.evaluate(value)).collect();
        let value = |place: usize| values.get(place).cloned().unwrap_or_else(|| Value::int(0));
        let n = third(&value(3));
        reached(value(0), value(1), value(2), value(4), n)
    }

    /// `cudaLaunchKernelEx(&config, kernel, a, b, n, r)`, or with an array of arguments for the C version.
    fn launched_by_config(&mut self, callee: &Expression, arguments: &[Expression]) -> Reached {
        let values: Vec<Value> = arguments.iter().map(|value| self.evaluate(value)).collect();
        let value = |place: usize| values.get(place).cloned().unwrap_or_else(|| Value::int(0));
        let config = value(0);
        let member = |name: &str| config.member(name).cloned().unwrap_or_else(|| config.clone());
        let in_array = callee_name(callee) == Some("cudaLaunchKernelExC");
        let n = if in_array { third(&value(2)) } else { values.get(4).cloned() };
        reached(value(1), member("gridDim"), member("blockDim"), member("dynamicSmemBytes"), n)
    }
}

fn third(list: &Value) -> Option<Value> {
    match &list.data {
        Data::List(items) => items.get(2).map(|item| item.1.clone()),
        _ => None,
    }
}

fn reached(kernel: Value, grid: Value, block: Value, shared: Value, n: Option<Value>) -> Reached {
    let kernel = match kernel.data {
        Data::Function { index, arguments } => Some((index, arguments)),
        _ => None,
    };
    Reached { reachable: true, kernel, grid: to_dim3(grid), block: to_dim3(block), shared, n }
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
