//! The ways to a launch: the plain calls that lead from main() to the function that holds it.
//!
//! A function is entered where its name is called, and where a name that stands for it is: a parameter that it is handed to,
//! a constant, a row of a table that a loop goes through. A use of the name that is none of these ends the way there, as
//! if nobody were known to call.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use super::super::lexer::Token;
use super::super::parser::{Parser, is_reserved};
use super::super::program::{Function, Program};
use super::super::tree::{Expression, ExpressionKind, Parameter, Statement, StatementKind};
use super::super::walk::{self, Visitor};

/// Calls on a way, and ways into one function.
const CALLS: usize = 8;
const WAYS: usize = 24;
/// Uses of names that are looked at in all.
const USES: u32 = 400;

/// One call on the way to a launch.
#[derive(Clone)]
pub struct Call<'p> {
    /// The function that the call stands in.
    pub within: &'p Function,
    /// The called name's token.
    pub at: usize,
    /// Tokens of each argument.
    pub arguments: Vec<Range<usize>>,
    /// Whether a function's own name is called and handed no function: every call of that name does the same.
    pub by_name: bool,
}

/// Calls that lead into a function, the innermost first.
pub type Way<'p> = Vec<Call<'p>>;

/// Finds the ways into functions.
pub struct Ways<'p> {
    program: &'p Program,
    /// The tokens of each name.
    places: HashMap<&'p str, Vec<usize>>,
    /// What is left of [`USES`].
    uses: Cell<u32>,
}

/// A name that stands for a function.
#[derive(Clone, Copy)]
struct Standing<'p> {
    name: &'p str,
    /// The function that is meant.
    means: &'p Function,
    /// Whether the name is the function's own.
    own: bool,
}

impl<'p> Ways<'p> {
    /// Notes where each name of a program stands.
    pub fn of(program: &'p Program) -> Self {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, token) in program.text.tokens.iter().enumerate().filter(|(_, token)| token.is_identifier()) {
            places.entry(&token.text).or_default().push(at);
        }
        Self { program, places, uses: Cell::new(USES) }
    }

    /// The ways into a function; an empty one when nobody is known to call it.
    pub fn to(&self, function: &'p Function) -> Vec<Way<'p>> {
        self.entered(function, &mut Vec::new())
    }

    /// The same, inside some functions whose own ways are being looked for.
    fn entered(&self, function: &'p Function, inside: &mut Vec<usize>) -> Vec<Way<'p>> {
        let named = only(self.program, &function.name).is_some_and(|one| one.at == function.at);
        let plain = named && function.returns.is_some() && !function.name.starts_with("operator");
        if !plain || &*function.name == "main" || inside.len() >= CALLS || inside.contains(&function.at) {
            return vec![Way::new()];
        }
        inside.push(function.at);
        let mut ways = Vec::new();
        self.anywhere(Standing { name: &function.name, means: function, own: true }, inside, &mut ways);
        inside.pop();
        if ways.is_empty() || ways.len() > WAYS {
            ways.truncate(WAYS);
            ways.push(Way::new());
        }
        ways
    }

    /// The ways through all uses of a name that is known in the whole file.
    fn anywhere(&self, name: Standing<'p>, inside: &mut Vec<usize>, ways: &mut Vec<Way<'p>>) {
        let text = &self.program.text;
        for &at in self.places.get(name.name).into_iter().flatten() {
            if self.program.functions.iter().any(|function| function.at == at) || self.spent(ways) {
                continue;
            }
            let Some(within) = function_around(self.program, at) else {
                // `constexpr Launch kLaunch = launchTwoStep;` and the place where that is declared.
                let alias = at.checked_sub(2).filter(|_| text.is(at - 1, "=") && text.is(at + 1, ";"));
                match alias.and_then(|alias| text.tokens.get(alias)) {
                    Some(alias) if name.own && self.is_variable(alias) => {
                        self.anywhere(Standing { name: &alias.text, own: false, ..name }, inside, ways);
                    }
                    _ if text.is(at + 1, "=") => {}
                    _ => ways.push(Way::new()),
                }
                continue;
            };
            match self.meant(name, within, at) {
                Some(true) => {
                    let outer = self.entered(within, inside);
                    self.used(name, within, at, &outer, inside.len(), ways);
                }
                Some(false) => {}
                None => ways.push(Way::new()),
            }
        }
    }

    /// Whether a token is the name of one variable outside functions.
    fn is_variable(&self, token: &Token) -> bool {
        self.program.variables.get(&token.text).is_some_and(|all| all.len() == 1)
    }

    /// Whether a name at a token is the file's; nothing where that is not plain.
    fn meant(&self, name: Standing<'p>, within: &'p Function, at: usize) -> Option<bool> {
        let text = &self.program.text;
        let called = text.is(at + 1, "(");
        let owner = name.means.owner.as_ref().filter(|_| name.own);
        let before = |back: usize| at.checked_sub(back).and_then(|at| text.tokens.get(at));
        match before(1).map(|token| &*token.text) {
            Some("." | "->") => return Some(owner.is_some()),
            Some("::") => {
                let scope = before(2).filter(|token| token.is_identifier() && !is_reserved(&token.text));
                let known = |scope: &Token| name.means.path.split("::").any(|part| part == &*scope.text);
                return Some(scope.is_none_or(known));
            }
            _ => {}
        }
        if parameter(within, name.name).is_some() {
            return Some(false);
        }
        let other = declares(self.program, within, name.name) || owner.is_some() && owner != within.owner.as_ref();
        if other { (!called).then_some(false) } else { Some(true) }
    }

    /// The ways through a name's use in a function that is entered on `outer` ways.
    fn used(
        &self,
        name: Standing<'p>,
        within: &'p Function,
        at: usize,
        outer: &[Way<'p>],
        depth: usize,
        ways: &mut Vec<Way<'p>>,
    ) {
        let text = &self.program.text;
        let extended = |call: &Call<'p>| -> Vec<Way<'p>> {
            outer.iter().map(|way| std::iter::once(call).chain(way).cloned().collect()).collect()
        };
        let part = [".", "->", "::"].into_iter().any(|of| !name.own && text.is(at - 1, of));
        if part || self.spent(ways) {
            return;
        }
        let open = after_template_list(self.program, at);
        if text.is(open, "(") {
            let arguments = arguments(self.program, open);
            match arguments.filter(|arguments| takes(name.means, arguments.len())) {
                Some(arguments) => ways.extend(extended(&Call { within, at, arguments, by_name: name.own })),
                None => ways.push(Way::new()),
            }
            return;
        }
        let compared = |at: usize| text.is(at, "==") || text.is(at, "!=");
        let asked = text.is(at - 1, "!") || text.is(at - 1, "(") && text.is(at - 2, "if") && text.is(at + 1, ")");
        if compared(at - 1) || compared(at + 1) || asked {
            return;
        }
        let first = if text.is(at - 1, "&") { at - 1 } else { at };
        let held = match self.handed(first..at + 1) {
            Some((called, arguments, index)) if depth < CALLS => {
                let callee = text.tokens.get(called).and_then(|called| only(self.program, &called.text));
                let callee = callee.filter(|callee| !callee.global && takes(callee, arguments.len()));
                let taken = callee.and_then(|callee| callee.parameters.as_ref()?.get(index)?.name.as_deref());
                let plain = callee.zip(taken).filter(|(callee, taken)| !declares(self.program, callee, taken));
                plain.map(|(callee, taken)| {
                    let through = extended(&Call { within, at: called, arguments, by_name: false });
                    (callee, taken, body(callee), through)
                })
            }
            None if depth < CALLS => {
                self.stored(within, first..at + 1).map(|(name, range)| (within, name, range, outer.to_vec()))
            }
            _ => None,
        };
        let Some((holder, held, range, outer)) =
            held.filter(|(_, held, range, _)| !changes(self.program, range.clone(), held))
        else {
            return ways.push(Way::new());
        };
        let held = Standing { name: held, own: false, ..name };
        for &at in self.places.get(held.name).into_iter().flatten().filter(|at| range.contains(at)) {
            self.used(held, holder, at, &outer, depth + 1, ways);
        }
    }

    /// The call that tokens are one whole argument of: the called name's token, the arguments, and which one it is.
    fn handed(&self, tokens: Range<usize>) -> Option<(usize, Vec<Range<usize>>, usize)> {
        let text = &self.program.text;
        let open = enclosing(self.program, tokens.start, "(")?;
        let called = open.checked_sub(1).filter(|&at| text.tokens.get(at).is_some_and(Token::is_identifier))?;
        let arguments = arguments(self.program, open)?;
        let index = arguments.iter().position(|argument| *argument == tokens)?;
        Some((called, arguments, index))
    }

    /// The local name that tokens give its value, and the tokens where it has it: `Launch launch = launchTwoStep;`, or a
    /// row of `kernels` with `for (const auto& [name, launch] : kernels)`.
    fn stored(&self, within: &'p Function, tokens: Range<usize>) -> Option<(&'p str, Range<usize>)> {
        let text = &self.program.text;
        let function = body(within);
        let name = |at: usize| text.tokens.get(at).filter(|token| token.is_identifier()).map(|token| &*token.text);
        let before = tokens.start.checked_sub(1)?;
        if text.is(before, "=") && text.is(tokens.end, ";") {
            return Some((name(before.checked_sub(1)?)?, tokens.end..function.end));
        }
        let row = enclosing(self.program, tokens.start, "{")?;
        let rows = items(self.program, row)?;
        let index = rows.iter().position(|item| *item == tokens)?;
        let around = row.checked_sub(1).filter(|&at| text.is(at, "{") || text.is(at, ","));
        let (table, index) = match around {
            Some(_) => (enclosing(self.program, row, "{")?, Some(index)),
            None => (row, None),
        };
        let close =
            table.checked_sub(2).filter(|&at| text.is(at + 1, "=") && text.is(at, "]") && text.is(at - 1, "["))?;
        let table = name(close.checked_sub(2)?)?;
        let mut used = self.places.get(table)?.iter().filter(|&&at| function.contains(&at) && at > tokens.end);
        let (Some(&at), None) = (used.next(), used.next()) else { return None };
        let header = enclosing(self.program, at, "(")?;
        let looped = text.is(header.checked_sub(1)?, "for") && text.is(at - 1, ":") && text.is(at + 1, ")");
        let inner = match index {
            None => at - 2,
            Some(index) => {
                let bound = (header..at).find(|&bound| text.is(bound, "[") && text.partner(bound) == at - 2)?;
                items(self.program, bound)?.get(index).filter(|item| item.len() == 1)?.start
            }
        };
        let end = if text.is(at + 2, "{") {
            text.partner(at + 2)
        } else {
            (at + 2..function.end).find(|&at| text.is(at, ";"))?
        };
        Some((name(inner).filter(|_| looped)?, at + 2..end.min(function.end)))
    }

    /// Counts a use; whether there have been too many, of which the ways then tell.
    fn spent(&self, ways: &mut Vec<Way<'p>>) -> bool {
        let left = self.uses.get();
        self.uses.set(left.saturating_sub(1));
        let spent = left == 0 || ways.len() > WAYS;
        if spent && ways.last().is_none_or(|way| !way.is_empty()) {
            ways.push(Way::new());
        }
        spent
    }
}

/// The one function of a name that has a body.
pub fn only<'p>(program: &'p Program, name: &str) -> Option<&'p Function> {
    let mut all = program.functions.iter().filter(|function| *function.name == *name && function.body.is_some());
    all.next().filter(|_| all.next().is_none())
}

/// The tokens of a function's body.
pub fn body(function: &Function) -> Range<usize> {
    function.body.as_ref().map_or(0..0, |body| body.at.clone())
}

/// The function whose body a token stands in, the innermost.
fn function_around(program: &Program, at: usize) -> Option<&Function> {
    program.functions.iter().filter(|function| body(function).contains(&at)).min_by_key(|function| body(function).len())
}

/// A function's parameter of a name, and which one it is.
pub fn parameter<'p>(function: &'p Function, name: &str) -> Option<(usize, &'p Parameter)> {
    let mut all = function.parameters.iter().flatten().enumerate();
    all.find(|(_, parameter)| parameter.name.as_deref() == Some(name))
}

/// Whether a function can be called with so many arguments.
fn takes(function: &Function, given: usize) -> bool {
    let Some(parameters) = &function.parameters else { return false };
    let least = parameters.iter().filter(|parameter| parameter.default.is_none()).count();
    (least..=parameters.len()).contains(&given)
}

/// Whether a name is declared in a function's body, its lambdas included.
pub fn declares(program: &Program, function: &Function, name: &str) -> bool {
    struct Finder<'n> {
        name: &'n str,
        found: bool,
    }
    impl<'p> Visitor<'p> for Finder<'_> {
        fn enter(&mut self, expression: &'p Expression) {
            if let ExpressionKind::Lambda(lambda) = &expression.kind {
                let captured = lambda.captures.iter().any(|capture| &*capture.name == self.name);
                let given = lambda.parameters.iter().any(|given| given.name.as_deref() == Some(self.name));
                self.found |= captured || given;
            }
        }
        fn statement(&mut self, statement: &'p Statement) {
            self.found |= match &statement.kind {
                StatementKind::Declare(all) => all.iter().any(|declared| &*declared.name == self.name),
                StatementKind::Bind { names, .. } => names.iter().any(|(bound, _)| &**bound == self.name),
                StatementKind::ForEach { name, .. } => &**name == self.name,
                _ => false,
            };
        }
    }
    let text = &program.text;
    let typed = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| text.tokens.get(at));
        before.is_some_and(|token| token.is_identifier() && !is_reserved(&token.text))
    };
    let mut finder = Finder { name, found: body(function).any(|at| text.is(at, name) && typed(at)) };
    function.body.iter().for_each(|body| walk::statement(body, &mut finder));
    finder.found
}

/// Whether a name may get another value among some tokens: it is assigned to, its address is taken, or it is read into.
pub fn changes(program: &Program, mut tokens: Range<usize>, name: &str) -> bool {
    let text = &program.text;
    let operator = |at: usize, all: &[&str]| all.iter().any(|one| text.is(at, one));
    let step = ["++", "--"];
    let assigns = ["=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^="];
    tokens.any(|at| {
        let before = at.wrapping_sub(1);
        let typed = |token: &Token| token.is_identifier() || token.is("*") || token.is("&");
        let declared = text.tokens.get(before).is_some_and(typed) && !operator(before, &["return", "else", "do"]);
        let addressed = operator(before, &["&"]) && operator(at.wrapping_sub(2), &["(", ",", "=", "{", "return"]);
        text.is(at, name)
            && (operator(at + 1, &assigns) && !declared
                || operator(at + 1, &step)
                || operator(before, &step)
                || operator(before, &[">>"])
                || addressed)
    })
}

/// The innermost bracket of a kind that is open at a token, when no brace, bracket or statement's end comes between.
pub fn enclosing(program: &Program, at: usize, kind: &str) -> Option<usize> {
    let text = &program.text;
    let opens = |open: usize| ["(", "[", "{"].into_iter().any(|bracket| text.is(open, bracket));
    let open = (0..at).rev().take(4000).find(|&open| opens(open) && text.partner(open) > at)?;
    text.is(open, kind).then_some(open)
}

/// The token after a name and its template arguments.
pub fn after_template_list(program: &Program, at: usize) -> usize {
    let text = &program.text;
    let list =
        text.is(at + 1, "<").then(|| Parser::new(text, &program.names, 0, text.tokens.len()).after_angles(at + 1));
    list.flatten().unwrap_or(at + 1)
}

/// The arguments in the round brackets that open at a token.
pub fn arguments(program: &Program, open: usize) -> Option<Vec<Range<usize>>> {
    items(program, open).filter(|_| program.text.is(open, "(")).map(|mut all| {
        all.retain(|argument| !argument.is_empty());
        all
    })
}

/// What stands between the commas of the brackets that open at a token.
fn items(program: &Program, open: usize) -> Option<Vec<Range<usize>>> {
    let text = &program.text;
    let close = Some(text.partner(open)).filter(|&close| close < text.tokens.len())?;
    let (mut all, mut from, mut at) = (Vec::new(), open + 1, open + 1);
    while at < close {
        if text.is(at, ",") {
            all.push(from..at);
            from = at + 1;
        }
        // Over brackets within.
        let partner = text.partner(at);
        at = if partner < close { partner + 1 } else { at + 1 };
    }
    all.push(from..close);
    Some(all)
}
