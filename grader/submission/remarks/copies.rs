//! Copies of the grid to the host in the loop that launches: as a statement of its own, or in a function that is called there.

use std::cell::Cell;
use std::ops::Range;

use super::super::program::{Function, Program};
use super::super::sites::callee_name;
use super::super::tree::{Expression, ExpressionKind, Initial, Operator, Statement, StatementKind};
use super::super::walk::{self, Visitor};
use super::ways::{self, Way};
use super::{HostFault, Launch, Remark, grids, name, sites, spelt};

/// Functions within one another that are looked into for a copy, and expressions in all.
const CALLS: usize = 4;
const EXPRESSIONS: u32 = 20_000;

/// A grid of the launch, as a function names it.
#[derive(Clone)]
enum Grid {
    /// By these tokens, in one function.
    Spelt(String),
    /// A member of a struct.
    Member { owner: String, name: String },
    /// A variable outside functions.
    File(String),
}

/// Where the search for copies stands.
#[derive(Clone, Copy)]
struct Search<'s, 'p> {
    program: &'p Program,
    /// The function that is searched.
    within: &'p Function,
    /// What the grids are there.
    grids: &'s [Grid],
    /// The object whose function launches, where it is one name.
    object: Option<&'s str>,
    /// Calls that are looked through from here.
    calls: usize,
    /// What is left of [`EXPRESSIONS`].
    left: &'s Cell<u32>,
}

/// What the search around a call came to; each with the copy that was found, by its token.
enum Round {
    /// The innermost loop around the call is in the function.
    Looped(Option<usize>),
    /// The function calls once each time that it is called itself.
    Called(Option<usize>),
    /// Whether it calls depends on more than can be said.
    Unknown,
}

/// A copy to the host that every round of the innermost loop around the launch makes.
pub fn copied(program: &Program, launch: &Launch, way: &Way) -> Option<Remark> {
    let text = &program.text;
    let (sites, left) = (sites(launch, way), Cell::new(EXPRESSIONS));
    let mut found = None;
    let mut known: Vec<Grid> = Vec::new();
    let mut given: Vec<Range<usize>> = launch.arguments.iter().take(2).cloned().collect();
    for (index, site) in sites.iter().enumerate() {
        known.extend(given.iter().map(|argument| grid_of(program, site.within, argument)));
        let of_object = text.is(site.at - 1, ".") || text.is(site.at - 1, "->");
        let object = text.tokens.get(site.at - 2).filter(|_| of_object).map(|token| &*token.text);
        let search = Search { program, within: site.within, grids: &known, object, calls: CALLS, left: &left };
        match search.around(site.at, found) {
            Round::Looped(copy) => {
                return copy.map(|at| Remark { fault: HostFault::CopyEveryStep, line: text.line(at) });
            }
            Round::Called(copy) => found = copy,
            Round::Unknown => return None,
        }
        // Parameters go by other names where the function is called.
        let outer = sites.get(index + 1)?;
        let handed = |argument: &Range<usize>| {
            let (parameter, _) = ways::parameter(site.within, &name(program, argument)?.text)?;
            outer.arguments.get(parameter).cloned()
        };
        given = given.iter().filter_map(handed).collect();
        known.retain(|grid| !matches!(grid, Grid::Spelt(_)));
    }
    None
}

/// What an argument is in its function.
fn grid_of(program: &Program, within: &Function, argument: &Range<usize>) -> Grid {
    let one = name(program, argument).map(|token| token.text.to_string());
    let hidden = |one: &str| ways::parameter(within, one).is_some() || ways::declares(program, within, one);
    let Some(name) = one.filter(|one| !hidden(one)) else { return Grid::Spelt(spelt(program, argument)) };
    match within.owner.as_ref().filter(|owner| grids::is_member(program, owner, &name)) {
        Some(owner) => Grid::Member { owner: owner.to_string(), name },
        None if program.variables.contains_key(&*name) => Grid::File(name),
        None => Grid::Spelt(name),
    }
}

impl<'p> Search<'_, 'p> {
    /// Goes outward from a call to the innermost loop around it, or to the end of the function.
    fn around(&self, site: usize, carried: Option<usize>) -> Round {
        let path = path_to(self.within, site);
        let (mut found, mut leaves) = (carried, false);
        for (index, statement) in path.iter().enumerate().rev() {
            let child = path.get(index + 1);
            match &statement.kind {
                StatementKind::Block(all) => {
                    let others = all.iter().filter(|one| child.is_none_or(|child| !std::ptr::eq(*one, *child)));
                    let copy = found.or_else(|| others.into_iter().find_map(|one| self.always(one)));
                    let between = copy.filter(|_| found.is_none()).map(|copy| site.min(copy)..site.max(copy));
                    let word = |word: &str| between.clone().is_some_and(|mut at| at.any(|at| self.is(at, word)));
                    leaves |= word("return") || word("goto");
                    found = copy.filter(|_| !word("continue"));
                }
                StatementKind::Loop { test_first: false, condition, .. } if is_zero(condition.as_ref()) => {}
                StatementKind::Loop { .. } => {
                    return Round::Looped(found.filter(|&copy| !self.refills(&statement.at, copy)));
                }
                // A lambda, which runs where it is called.
                StatementKind::Expression(_) | StatementKind::Declare(_) | StatementKind::Return(_)
                    if child.is_none() => {}
                StatementKind::Unread if child.is_none() => {}
                _ => return Round::Unknown,
            }
        }
        Round::Called(found.filter(|_| !leaves))
    }

    /// Whether a loop's rounds begin anew, each from a host grid that is not the copy's: checks, not timesteps.
    fn refills(&self, tokens: &Range<usize>, copy: usize) -> bool {
        let text = &self.program.text;
        let fills = |mut tokens: Range<usize>| tokens.any(|at| self.is(at, "cudaMemcpyHostToDevice"));
        // The first name of an argument of a call.
        let host = |called: usize, index: usize| {
            let argument = ways::arguments(self.program, called + 1)?.get(index)?.clone();
            argument.filter_map(|at| text.tokens.get(at)).find(|token| token.is_identifier()).map(|token| &token.text)
        };
        tokens.clone().filter(|&at| self.is(at + 1, "(")).any(|at| {
            if self.is(at, "cudaMemcpy") {
                return fills(at..text.partner(at + 1)) && host(at, 1) != host(copy, 0);
            }
            let Some(called) = text.tokens.get(at).filter(|token| token.is_identifier()) else { return false };
            ways::only(self.program, &called.text).is_some_and(|function| fills(ways::body(function)))
        })
    }

    /// Whether a token is this word.
    fn is(&self, at: usize, word: &str) -> bool {
        self.program.text.is(at, word)
    }

    /// The copy that a statement makes whenever it runs.
    fn always(&self, statement: &Statement) -> Option<usize> {
        match &statement.kind {
            StatementKind::Expression(value) | StatementKind::Return(Some(value)) => self.copy_in(value),
            StatementKind::If { condition, .. } => self.copy_in(condition),
            StatementKind::Declare(all) => all.iter().find_map(|declared| match &declared.initial {
                Some(Initial::Value(value)) => self.copy_in(value),
                Some(Initial::Arguments(items)) => items.iter().find_map(|(_, item)| self.copy_in(item)),
                None => None,
            }),
            StatementKind::Block(all) => {
                let (at, copy) = all.iter().enumerate().find_map(|(at, one)| Some((at, self.always(one)?)))?;
                let before = all.iter().take(at).flat_map(|one| one.at.clone());
                let leaves = |at: usize| ["return", "continue", "break", "goto"].iter().any(|word| self.is(at, word));
                (!before.into_iter().any(leaves)).then_some(copy)
            }
            StatementKind::Loop { body, condition, test_first: false, .. } if is_zero(condition.as_ref()) => {
                self.always(body)
            }
            _ => None,
        }
    }

    /// The copy that an expression makes whenever it is worked out.
    fn copy_in(&self, expression: &Expression) -> Option<usize> {
        self.left.set(self.left.get().checked_sub(1)?);
        match &expression.kind {
            ExpressionKind::Call(callee, arguments) => {
                let called = callee_name(callee)?;
                let copies = match called {
                    "cudaMemcpy" => self.is_copy(arguments),
                    _ => self.copies_within(callee, called, arguments),
                };
                let inside = || arguments.iter().find_map(|argument| self.copy_in(argument));
                if copies { Some(expression.at.start) } else { inside() }
            }
            ExpressionKind::Unary(_, part) | ExpressionKind::Cast(_, part) => self.copy_in(part),
            ExpressionKind::Assign(_, _, value) => self.copy_in(value),
            ExpressionKind::Binary(Operator::And | Operator::Or, left, _) => self.copy_in(left),
            ExpressionKind::Binary(_, left, right) => self.copy_in(left).or_else(|| self.copy_in(right)),
            _ => None,
        }
    }

    /// Whether cudaMemcpy with these arguments copies a grid to the host.
    fn is_copy(&self, arguments: &[Expression]) -> bool {
        let [_, from, _, kind] = arguments else { return false };
        let to_host = self.is(kind.at.end.saturating_sub(1), "cudaMemcpyDeviceToHost");
        to_host && self.grids.iter().any(|grid| self.means(&from.at, grid))
    }

    /// Whether tokens of the function mean a grid.
    fn means(&self, tokens: &Range<usize>, grid: &Grid) -> bool {
        let hidden = |name: &str| {
            ways::parameter(self.within, name).is_some() || ways::declares(self.program, self.within, name)
        };
        let last = tokens.end.saturating_sub(1);
        let one = tokens.len() == 1;
        match grid {
            Grid::Spelt(grid) => spelt(self.program, tokens) == *grid,
            Grid::File(name) => one && self.is(last, name) && !hidden(name),
            Grid::Member { owner, name } => {
                let own = self.within.owner.as_deref() == Some(owner)
                    && (one && !hidden(name) || self.is(tokens.start, "this"));
                let of_object = tokens.len() == 3 && (self.is(last - 1, ".") || self.is(last - 1, "->"));
                self.is(last, name) && (own || of_object)
            }
        }
    }

    /// Whether a function of the text that is called always copies a grid.
    fn copies_within(&self, callee: &Expression, called: &str, arguments: &[Expression]) -> bool {
        let Some(function) = ways::only(self.program, called).filter(|function| !function.global) else { return false };
        let other = match &callee.kind {
            ExpressionKind::Member(object, _) => {
                self.object.is_some_and(|known| known != spelt(self.program, &object.at))
            }
            _ => false,
        };
        let handed = |grid: &Grid| match grid {
            Grid::Spelt(_) => {
                let index = arguments.iter().position(|argument| self.means(&argument.at, grid))?;
                Some(Grid::Spelt(function.parameters.as_ref()?.get(index)?.name.as_ref()?.to_string()))
            }
            _ => Some(grid.clone()),
        };
        let grids: Vec<Grid> = self.grids.iter().filter_map(handed).collect();
        let inner =
            Search { within: function, grids: &grids, object: None, calls: self.calls.saturating_sub(1), ..*self };
        let body = function.body.as_ref().filter(|_| self.calls > 0 && !other);
        body.is_some_and(|body| inner.always(body).is_some())
    }
}

/// `while (0)`: what stands before runs once.
fn is_zero(condition: Option<&Expression>) -> bool {
    match condition.map(|condition| &condition.kind) {
        Some(ExpressionKind::Number(number)) => &**number == "0",
        Some(ExpressionKind::Name(name)) => &*name.path == "false",
        _ => false,
    }
}

/// The statements around a token, the outermost first.
fn path_to(function: &Function, at: usize) -> Vec<&Statement> {
    struct Path<'p> {
        at: usize,
        around: Vec<&'p Statement>,
    }
    impl<'p> Visitor<'p> for Path<'p> {
        fn statement(&mut self, statement: &'p Statement) {
            if statement.at.contains(&self.at) {
                self.around.push(statement);
            }
        }
    }
    let mut path = Path { at, around: Vec::new() };
    function.body.iter().for_each(|body| walk::statement(body, &mut path));
    path.around
}
