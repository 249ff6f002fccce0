//! Every launch in a program, and every way that the host code gets there.
//!
//! A way begins in a function that nobody calls (main, mostly) and goes down, call by call, to the function with the
//! launch: `main -> run(grid, block, n) -> twoStep<<<...>>>`. Lambdas are steps of their own.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::program::{Function, Program, path_means};
use super::tree::{Declarator, Expression, ExpressionKind, Initial, Lambda, Name, TemplateArgument};
use super::walk::{self, Visitor};

/// Ways to one launch, and calls on a way, that are looked at.
const WAYS: usize = 24;
const CALLS: usize = 10;
/// Functions and lambdas entered in search of the ways to one launch.
const SEARCHED: u32 = 4000;
/// Nodes evaluated for all ways together.
const WORK: u32 = 6_000_000;

/// Stands for the index of a function where there is none.
const OUTSIDE: usize = usize::MAX;

/// A launch or call, and where it stands.
#[derive(Clone)]
pub struct Node<'p> {
    pub expression: &'p Expression,
    /// Index of the function around it; [`OUTSIDE`] in the initial value of a variable outside functions.
    pub function: usize,
    /// The lambdas around it, outermost first.
    lambdas: Vec<&'p Expression>,
}

/// What a way enters, and the token that it heads for in there.
#[derive(Clone)]
pub struct Step<'p> {
    pub enter: Enter<'p>,
    pub target: usize,
}

#[derive(Clone)]
pub enum Enter<'p> {
    /// A function that no call in the text reaches.
    Root(&'p Function),
    /// A function through a call.
    Call { function: &'p Function, call: &'p Expression },
    /// An instance of a function's template that is named as a value: `launch<32, 8>` where nothing calls it.
    Named { function: &'p Function, name: &'p Name },
    /// A lambda, through a call where one was found; `outside` when it stands outside functions.
    Lambda { lambda: &'p Arc<Lambda>, arguments: &'p [Expression], outside: bool },
}

/// The launches of a program and the calls that lead there.
pub struct Sites<'p> {
    pub program: &'p Program,
    /// `<<<...>>>`, cudaLaunchKernel and cudaLaunchKernelEx, in the order of the text.
    pub launches: Vec<Node<'p>>,
    /// Calls by the last part of the callee's name.
    calls: HashMap<&'p str, Vec<Node<'p>>>,
    /// Instances of functions named as values, by the last part of the name.
    named: HashMap<&'p str, Vec<Node<'p>>>,
    /// Names of the variables that hold lambdas, by the lambda's first token.
    lambda_names: HashMap<usize, Arc<str>>,
    /// Names of variables and parameters, which may be objects that are called.
    variables: HashSet<&'p str>,
    /// What is left of [`SEARCHED`].
    search: Cell<u32>,
    /// What is left of [`WORK`].
    pub work: Cell<u32>,
}

impl<'p> Sites<'p> {
    pub fn of(program: &'p Program) -> Self {
        let mut sites = Self {
            program,
            launches: Vec::new(),
            calls: HashMap::new(),
            named: HashMap::new(),
            lambda_names: HashMap::new(),
            variables: HashSet::new(),
            search: Cell::new(0),
            work: Cell::new(WORK),
        };
        for (index, function) in program.functions.iter().enumerate() {
            sites.variables.extend(function.parameters.iter().flatten().filter_map(|p| p.name.as_deref()));
            if let Some(body) = &function.body {
                let mut finder = Finder { sites: &mut sites, function: index, lambdas: Vec::new(), callee: None };
                walk::statement(body, &mut finder);
            }
        }
        let mut variables: Vec<_> = program.variables.values().flatten().collect();
        variables.sort_by_key(|variable| variable.declarator.name_at);
        for variable in variables {
            let mut finder = Finder { sites: &mut sites, function: OUTSIDE, lambdas: Vec::new(), callee: None };
            walk::declarator(&variable.declarator, &mut finder);
        }
        let members = program.structs.values().flat_map(|found| &found.members);
        sites.variables.extend(members.map(|member| &*member.name));
        sites.launches.sort_by_key(|node| node.expression.at.start);
        sites
    }

    /// The ways to a launch, at most [`WAYS`].
    pub fn ways(&self, node: &Node<'p>) -> Vec<Vec<Step<'p>>> {
        self.search.set(SEARCHED);
        let mut ways = self.ways_to(node, node.expression.at.start, &mut Vec::new());
        ways.truncate(WAYS);
        ways
    }

    /// The ways to a token inside the innermost function or lambda around `node`.
    fn ways_to(&self, node: &Node<'p>, target: usize, visited: &mut Vec<usize>) -> Vec<Vec<Step<'p>>> {
        let left = self.search.get();
        if visited.len() >= CALLS || left == 0 {
            return Vec::new();
        }
        self.search.set(left - 1);
        match node.lambdas.split_last() {
            Some((lambda, around)) => self.ways_into_lambda(node, lambda, around, target, visited),
            None => self.ways_into_function(node.function, target, visited),
        }
    }

    fn ways_into_lambda(
        &self,
        node: &Node<'p>,
        lambda_at: &'p Expression,
        around: &[&'p Expression],
        target: usize,
        visited: &mut Vec<usize>,
    ) -> Vec<Vec<Step<'p>>> {
        let ExpressionKind::Lambda(lambda) = &lambda_at.kind else { return Vec::new() };
        let name = self.lambda_names.get(&lambda_at.at.start);
        let outside = node.function == OUTSIDE;
        let named = name.and_then(|name| self.calls.get(&**name)).into_iter().flatten();
        let inside = |call: &&Node<'p>| lambda_at.at.contains(&call.expression.at.start);
        let mut callers: Vec<Node<'p>> =
            named.filter(|call| (call.function == node.function || outside) && !inside(call)).cloned().collect();
        if callers.is_empty() && (!outside || !around.is_empty()) {
            // Called where it stands, or handed to somebody.
            callers.push(Node { expression: lambda_at, function: node.function, lambdas: around.to_vec() });
        }
        visited.push(usize::MAX);
        let mut ways = Vec::new();
        for caller in callers.iter().take(WAYS) {
            let arguments = match &caller.expression.kind {
                ExpressionKind::Call(_, arguments) => arguments.as_slice(),
                _ => &[],
            };
            for mut way in self.ways_to(caller, caller.expression.at.start, visited) {
                way.push(Step {
                    enter: Enter::Lambda { lambda, arguments, outside: outside && around.is_empty() },
                    target,
                });
                ways.push(way);
            }
            if ways.len() >= WAYS {
                break;
            }
        }
        visited.pop();
        if ways.is_empty() && outside && around.is_empty() {
            // In a constant, and called through a pointer.
            ways.push(vec![Step { enter: Enter::Lambda { lambda, arguments: &[], outside }, target }]);
        }
        ways
    }

    fn ways_into_function(&self, index: usize, target: usize, visited: &mut Vec<usize>) -> Vec<Vec<Step<'p>>> {
        let program = self.program;
        let Some(function) = program.functions.get(index) else { return Vec::new() };
        let root = || vec![vec![Step { enter: Enter::Root(function), target }]];
        if &*function.name == "main" {
            return root();
        }
        visited.push(index);
        let mut ways = Vec::new();
        let callers: Vec<&Node<'p>> =
            self.callers(function).filter(|caller| !visited.contains(&caller.function)).collect();
        for caller in callers {
            for mut way in self.ways_to(caller, caller.expression.at.start, visited) {
                way.push(Step { enter: Enter::Call { function, call: caller.expression }, target });
                ways.push(way);
            }
            if ways.len() >= WAYS {
                break;
            }
        }
        if ways.is_empty() && function.template.is_some() {
            ways = self.ways_by_name(function, target, visited);
        }
        visited.pop();
        if ways.is_empty() { root() } else { ways }
    }

    /// The ways to where an instance of a function is named as a value, and into that instance.
    fn ways_by_name(&self, function: &'p Function, target: usize, visited: &mut Vec<usize>) -> Vec<Vec<Step<'p>>> {
        let mut ways = Vec::new();
        for node in self.named.get(&*function.name).into_iter().flatten() {
            let ExpressionKind::Name(name) = &node.expression.kind else { continue };
            if visited.contains(&node.function) && node.function != OUTSIDE || !self.means(node, &name.path, function) {
                continue;
            }
            let there = match node.function == OUTSIDE && node.lambdas.is_empty() {
                true => vec![Vec::new()],
                false => self.ways_to(node, node.expression.at.start, visited),
            };
            for mut way in there {
                way.push(Step { enter: Enter::Named { function, name }, target });
                ways.push(way);
            }
            if ways.len() >= WAYS {
                break;
            }
        }
        ways
    }

    fn callers<'s>(&'s self, function: &'p Function) -> impl Iterator<Item = &'s Node<'p>> {
        let calls = self.calls.get(&*function.name).into_iter().flatten();
        let of_objects = self.calls.iter().filter(|(name, _)| {
            &*function.name == "operator()" && (name.is_empty() || self.variables.contains(**name))
        });
        let mut of_objects: Vec<&Node<'p>> = of_objects.flat_map(|(_, calls)| calls).collect();
        of_objects.sort_by_key(|node| node.expression.at.start);
        calls.chain(of_objects).filter(|call| {
            let ExpressionKind::Call(callee, arguments) = &call.expression.kind else { return true };
            let fits = function.parameters.as_ref().is_none_or(|parameters| {
                let least =
                    parameters.iter().filter(|parameter| parameter.default.is_none() && !parameter.pack).count();
                let variadic =
                    parameters.iter().any(|parameter| parameter.pack || parameter.kind.to_string().starts_with("..."));
                let spread = arguments.iter().any(|argument| matches!(argument.kind, ExpressionKind::Spread(_)));
                spread
                    || arguments.len() >= least.min(arguments.len() + usize::from(variadic))
                        && (arguments.len() <= parameters.len() || variadic)
            });
            let means = match &callee.kind {
                ExpressionKind::Name(name) => self.means(call, &name.path, function) || function.owner.is_some(),
                _ => function.owner.is_some(),
            };
            fits && means
        })
    }

    /// Whether a name in a call means the function.
    fn means(&self, call: &Node<'p>, written: &str, function: &Function) -> bool {
        // Most names are no function's, which is told sooner.
        path_means(written, &function.path) && {
            let from = self.program.functions.get(call.function).map_or("", |around| &*around.path);
            let meant = self.program.functions_meant(written, from);
            meant.iter().any(|(_, meant)| std::ptr::eq(*meant, function))
        }
    }
}

/// The template arguments and the object of a call.
pub fn call_details(
    call: &Expression,
    called_object: bool,
) -> (Option<&[TemplateArgument]>, Option<&Expression>, &[Expression]) {
    let (callee, arguments) = match &call.kind {
        ExpressionKind::Call(callee, arguments) => (callee, arguments),
        ExpressionKind::Step { place, .. } => return (None, Some(place), &[]),
        _ => return (None, None, &[]),
    };
    match &callee.kind {
        // An object that is called.
        _ if called_object => (None, Some(callee), arguments),
        ExpressionKind::Name(name) => (name.arguments.as_deref(), None, arguments),
        ExpressionKind::Member(object, name) => (name.arguments.as_deref(), Some(object), arguments),
        _ => (None, None, arguments),
    }
}

/// The last part of a callee's name.
pub fn callee_name(callee: &Expression) -> Option<&str> {
    match &callee.kind {
        ExpressionKind::Name(name) | ExpressionKind::Member(_, name) => Some(name.last()),
        _ => None,
    }
}

struct Finder<'s, 'p> {
    sites: &'s mut Sites<'p>,
    function: usize,
    lambdas: Vec<&'p Expression>,
    /// Where the name begins that is called or launched next.
    callee: Option<usize>,
}

impl<'p> Visitor<'p> for Finder<'_, 'p> {
    fn enter(&mut self, expression: &'p Expression) {
        let node = || Node { expression, function: self.function, lambdas: self.lambdas.clone() };
        let callee = match &expression.kind {
            ExpressionKind::Call(callee, _) => Some(callee.at.start),
            ExpressionKind::Launch(launch) => Some(launch.callee.at.start),
            _ => None,
        };
        match &expression.kind {
            ExpressionKind::Name(name) if name.arguments.is_some() && self.callee != Some(expression.at.start) => {
                let node = node();
                self.sites.named.entry(name.last()).or_default().push(node);
            }
            ExpressionKind::Launch(_) => self.sites.launches.push(node()),
            ExpressionKind::Lambda(lambda) => {
                self.sites.variables.extend(lambda.parameters.iter().filter_map(|p| p.name.as_deref()));
                self.lambdas.push(expression);
            }
            ExpressionKind::Step { by, .. } => {
                let name = if *by > 0 { "operator++" } else { "operator--" };
                let node = node();
                self.sites.calls.entry(name).or_default().push(node);
            }
            ExpressionKind::Call(callee, _) => match callee_name(callee) {
                Some(
                    "cudaLaunchKernel" | "cudaLaunchCooperativeKernel" | "cudaLaunchKernelEx" | "cudaLaunchKernelExC",
                ) => {
                    self.sites.launches.push(node());
                }
                name => {
                    let node = node();
                    self.sites.calls.entry(name.unwrap_or_default()).or_default().push(node);
                }
            },
            _ => {}
        }
        self.callee = callee.or(self.callee);
    }

    fn leave(&mut self, expression: &'p Expression) {
        if matches!(expression.kind, ExpressionKind::Lambda(_)) {
            self.lambdas.pop();
        }
    }

    fn declare(&mut self, declarator: &'p Declarator) {
        self.sites.variables.insert(&declarator.name);
        let lambda = match &declarator.initial {
            Some(Initial::Value(value)) => Some(value),
            Some(Initial::Arguments(items)) => items.first().map(|item| &item.1),
            None => None,
        };
        let lambda = lambda.map(|value| match &value.kind {
            // `+[](int n) { ... }`
            ExpressionKind::Unary('+', inner) => inner,
            _ => value,
        });
        if let Some(lambda) = lambda.filter(|value| matches!(value.kind, ExpressionKind::Lambda(_))) {
            self.sites.lambda_names.insert(lambda.at.start, declarator.name.clone());
        }
    }
}
