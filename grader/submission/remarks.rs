//! What the text alone makes certain: faults of main(), which the grader never runs, and numbers in place of n.
//!
//! A remark that is wrong is worse than none, so each rule knows plain ways to write its fault and passes over anything else.
//! What the function that holds the launch is handed is looked up where it is called, and so on up to main().

use std::ops::Range;
use std::sync::Arc;

use super::Kernel;
use super::lexer::{Token, TokenKind};
use super::program::{Function, Program};
pub use symbols::{Filled, filled_by_host};
use ways::{Way, Ways, arguments};

mod copies;
mod grids;
mod handing;
mod symbols;
mod ways;

/// A fault of the host's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// Only one of the launch's two grids is filled.
    OneBufferUnfilled,
    /// The launch is given an r above 1/4.
    UnstableR,
    /// The grid is copied to the host after every launch.
    CopyEveryStep,
    /// The program's setting for the learner's launch is still empty, so that it never makes it.
    LaunchNotSet,
    /// Its setting for the words read is still 0.
    WordsNotSet,
    /// The program launches the kernel otherwise than the grader does.
    LaunchUnlike(Unlike),
}

/// What a program's launch makes of the kernel's call that the grader does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlike {
    /// The two grids have changed places.
    SwappedGrids,
    /// A grid is handed over from another cell than its first.
    MovedGrid,
    /// A multiple of r is handed over.
    OtherR,
    /// The same launch is made twice in a row.
    Twice,
    /// The grid or the block depends on how often the function was called.
    ByCalls,
    /// The launch is not made at the exercise's n.
    Skipped,
}

/// A fault of the host's code, and its line (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark {
    pub fault: HostFault,
    pub line: u32,
}

/// The largest stable r.
const STABLE: f64 = 0.25;
/// The launches of the kernel that are looked at.
const LAUNCHES: usize = 24;

/// The line where the kernel's body uses the number `n`, or n - 1 or n - 2 as a bound, by itself or by the name of a constant,
/// though it is given n.
/// A constant that the launch hands over as n does not count: the grader puts its own n in its place.
pub fn written_n(program: &Program, kernel: &Kernel, n: u32) -> Option<u32> {
    let mut body = body_of(program, kernel)?;
    let handed_over: Vec<Arc<str>> = launches(program)
        .into_iter()
        .filter_map(|launch| launch.arguments.get(2).cloned())
        .flat_map(|tokens| {
            tokens.filter_map(|at| program.text.tokens.get(at)).map(|token| token.text.clone()).collect::<Vec<_>>()
        })
        .collect();
    let value = |token: &Token| match token.kind {
        TokenKind::Number => number(token),
        TokenKind::Identifier if !handed_over.contains(&token.text) => constant(program, &token.text),
        _ => None,
    };
    let text = &program.text;
    let beside = |at: usize, signs: &[&str]| {
        let is = |by: usize| signs.iter().any(|sign| text.is(by, sign));
        (is(at.wrapping_sub(1)), is(at + 1))
    };
    let stands_for_n = |at: usize| {
        let Some(value) = text.tokens.get(at).and_then(value) else { return false };
        if value == f64::from(n) {
            // `n == 2048` asks for the exercise's size and takes nothing for granted.
            return beside(at, &["==", "!="]) == (false, false);
        }
        // `col < 2047`; `f<2047>` is an argument of a template.
        let bound = [1, 2].iter().any(|less| value == f64::from(n.saturating_sub(*less)));
        bound && matches!(beside(at, &["<", "<=", ">", ">="]), (true, false) | (false, true))
    };
    body.find(|&at| stands_for_n(at)).map(|at| text.line(at))
}

/// Faults of the functions that launch the kernel and of those that call them, each kind once.
fn host_faults(program: &Program, kernel: &Kernel) -> Vec<Remark> {
    let own = kernel.name.rsplit("::").next().unwrap_or_default();
    let ways = Ways::of(program);
    let launches = launches(program).into_iter().filter(|launch| &*launch.kernel == own);
    let launches: Vec<(Launch, Vec<Way>)> =
        launches.take(LAUNCHES).map(|launch| (launch.clone(), ways.to(launch.within))).collect();
    let each = || launches.iter().flat_map(|(launch, ways)| ways.iter().map(move |way| (launch, way)));
    // Beside a stable one an unstable r is there to be shown.
    let unstable: Option<Vec<Remark>> = each().map(|(launch, way)| unstable(program, launch, way)).collect();
    let unfilled = each().find_map(|(launch, way)| grids::unfilled(program, &ways, launch, way));
    let copied = each().find_map(|(launch, way)| copies::copied(program, launch, way));
    let unstable = unstable.filter(|_| launches.len() < LAUNCHES).and_then(|all| all.into_iter().next());
    let all: Vec<&Launch> = launches.iter().map(|(launch, _)| launch).collect();
    let unlike = handing::unlike(program, &all);
    let found = [unstable, unfilled, copied, left_over(program)].into_iter().flatten();
    let mut remarks: Vec<Remark> = found.chain(unlike).collect();
    remarks.sort_by_key(|remark| remark.line);
    remarks
}

/// The same faults, with a launch that the program does not make on the exercise's grid.
pub fn all(program: &Program, kernel: &Kernel, launch: Option<&super::Launch>, n: u32) -> Vec<Remark> {
    let skipped = launch.and_then(|launch| launch.skipped_at(n));
    let skipped = skipped.map(|line| Remark { fault: HostFault::LaunchUnlike(Unlike::Skipped), line });
    let mut remarks: Vec<Remark> = host_faults(program, kernel).into_iter().chain(skipped).collect();
    remarks.sort_by_key(|remark| remark.line);
    remarks
}

/// A setting of the shipped program that still has the value with which it was shipped, though there is a kernel now: the
/// launch, which it runs and times nothing without, else the words read, which it prints.
fn left_over(program: &Program) -> Option<Remark> {
    let text = &program.text;
    let set_to = |name: &str, value: &str| {
        let [only] = program.variables.get(name)?.as_slice() else { return None };
        let at = only.declarator.name_at;
        let given = text.tokens.get(at + 2).is_some_and(|token| &*token.text == value);
        let same = given && text.is(at + 1, "=") && text.is(at + 3, ";");
        same.then(|| text.line(at))
    };
    let launch = set_to("kTwoStepLaunch", "nullptr").map(|line| Remark { fault: HostFault::LaunchNotSet, line });
    launch.or_else(|| set_to("kTwoStepWordsRead", "0").map(|line| Remark { fault: HostFault::WordsNotSet, line }))
}

/// `kernel<<<...>>>(a, b, n, r)` in a function's body.
#[derive(Clone)]
struct Launch<'p> {
    kernel: Arc<str>,
    /// Of the kernel's name.
    at: usize,
    /// Tokens of each argument.
    arguments: Vec<Range<usize>>,
    /// The function around it.
    within: &'p Function,
}

/// A place where the grids and r are handed on: the launch itself, or a call on the way to it.
#[derive(Clone, Copy)]
struct Site<'w, 'p> {
    within: &'p Function,
    /// Of the called name.
    at: usize,
    arguments: &'w [Range<usize>],
    /// Whether everything else that is called by this name in the function does the same.
    by_name: bool,
}

/// The launch, then the calls that lead to it.
fn sites<'w, 'p>(launch: &'w Launch<'p>, way: &'w Way<'p>) -> Vec<Site<'w, 'p>> {
    let launched = Site { within: launch.within, at: launch.at, arguments: &launch.arguments, by_name: false };
    let mut by_name = true;
    let calls = way.iter().map(|call| {
        by_name &= call.by_name;
        Site { within: call.within, at: call.at, arguments: &call.arguments, by_name }
    });
    std::iter::once(launched).chain(calls).collect()
}

/// Every launch in a host function.
fn launches(program: &Program) -> Vec<Launch<'_>> {
    let text = &program.text;
    let of_function = |within| {
        let body = ways::body(within);
        body.clone().filter(|&at| text.is(at, "<<<")).filter_map(move |open| {
            let close = (open..body.end).find(|&at| text.is(at, ">>>"))?;
            let at = launched(program, open)?;
            let kernel = text.tokens.get(at)?.text.clone();
            Some(Launch { kernel, at, arguments: arguments(program, close + 1)?, within })
        })
    };
    let host = program.functions.iter().filter(|function| !function.global);
    host.flat_map(|function| of_function(function).collect::<Vec<_>>()).collect()
}

/// The kernel's name before `<<<`, template arguments between left out.
fn launched(program: &Program, open: usize) -> Option<usize> {
    let text = &program.text;
    let named = |&at: &usize| text.tokens.get(at).is_some_and(Token::is_identifier);
    let last = open.checked_sub(1)?;
    if !text.is(last, ">") {
        return Some(last).filter(named);
    }
    let listed = (last.saturating_sub(100)..last).rev().filter(named);
    listed.filter(|&at| text.is(at + 1, "<")).find(|&at| ways::after_template_list(program, at) == open)
}

/// The tokens of the kernel's body.
fn body_of(program: &Program, kernel: &Kernel) -> Option<Range<usize>> {
    let mut own = program.functions.iter().filter(|function| function.global && *function.path == *kernel.name);
    own.find(|function| function.body.is_some())?.body.as_ref().map(|body| body.at.clone())
}

/// A number's value without its suffix; `None` for anything but plain decimals.
fn number(token: &Token) -> Option<f64> {
    let digits = token.text.replace('\'', "");
    let plain = digits.trim_end_matches(['f', 'F', 'u', 'U', 'l', 'L']);
    let decimal = plain.chars().all(|c| c.is_ascii_digit() || c == '.');
    plain.parse().ok().filter(|_| decimal && token.kind == TokenKind::Number)
}

/// The value of a constant outside functions, or of a variable there that nothing changes, when it is one number.
fn constant(program: &Program, name: &str) -> Option<f64> {
    let text = &program.text;
    let single = |at: &Range<usize>| (at.len() == 1).then(|| text.tokens.get(at.start)).flatten().and_then(number);
    if let Some(defined) = program.constants.get(name) {
        return single(&defined.value.at);
    }
    match program.variables.get(name)?.as_slice() {
        [one] => {
            let at = one.declarator.name_at;
            let plain = fixed(program, at) || !ways::changes(program, 0..text.tokens.len(), name);
            initial(program, at).filter(|_| plain)
        }
        _ => None,
    }
}

/// `const` or `constexpr` before the type of a declared name.
fn fixed(program: &Program, name_at: usize) -> bool {
    let word = name_at.checked_sub(2).and_then(|at| program.text.tokens.get(at));
    word.is_some_and(|token| token.is("const") || token.is("constexpr"))
}

/// The one number after `name =`.
fn initial(program: &Program, name_at: usize) -> Option<f64> {
    let text = &program.text;
    let ends = text.is(name_at + 3, ";") || text.is(name_at + 3, ",");
    (text.is(name_at + 1, "=") && ends).then(|| text.tokens.get(name_at + 2)).flatten().and_then(number)
}

/// Tokens as one text that is the same however they are spaced.
fn spelt(program: &Program, tokens: &Range<usize>) -> String {
    let tokens = program.text.tokens.get(tokens.clone()).unwrap_or_default();
    tokens.iter().map(|token| &*token.text).collect::<Vec<_>>().join(" ")
}

/// An argument of one name.
fn name<'p>(program: &'p Program, argument: &Range<usize>) -> Option<&'p Token> {
    (argument.len() == 1)
        .then(|| program.text.tokens.get(argument.start))
        .flatten()
        .filter(|token| token.is_identifier())
}

/// An r above 1/4 that the launch gets on one way. Behind a call the line is that of the constant, where it is one of the
/// file's.
fn unstable(program: &Program, launch: &Launch, way: &Way) -> Option<Remark> {
    let text = &program.text;
    let mut argument = launch.arguments.get(3)?.clone();
    let mut sites = sites(launch, way).into_iter().peekable();
    let mut direct = true;
    while let Some(site) = sites.next() {
        let given = text.tokens.get(argument.start).filter(|_| argument.len() == 1)?;
        let told = |value: f64, line: u32| (value > STABLE).then_some(Remark { fault: HostFault::UnstableR, line });
        if given.kind == TokenKind::Number {
            return told(number(given)?, given.line);
        }
        name(program, &argument)?;
        if ways::declares(program, site.within, &given.text) {
            return told(local_constant(program, &site, &given.text)?, given.line);
        }
        let Some((index, parameter)) = ways::parameter(site.within, &given.text) else {
            let (value, line) = (constant(program, &given.text)?, constant_line(program, &given.text));
            return told(value, if direct { given.line } else { line.unwrap_or(given.line) });
        };
        if ways::changes(program, ways::body(site.within), &given.text) {
            return None;
        }
        let handed = sites.peek()?.arguments.get(index).cloned();
        argument = handed.or_else(|| parameter.default.as_ref().map(|default| default.at.clone()))?;
        direct = false;
    }
    None
}

/// Where a constant outside functions is given its value.
fn constant_line(program: &Program, name: &str) -> Option<u32> {
    if let Some(defined) = program.constants.get(name) {
        return Some(defined.line);
    }
    program.variables.get(name)?.first().map(|one| program.text.line(one.declarator.name_at))
}

/// A number of the function that stays what it is: `const` or `constexpr`, or used for nothing but this site and printing.
fn local_constant(program: &Program, site: &Site, name: &str) -> Option<f64> {
    let text = &program.text;
    let typed = |at: usize| {
        let before = text.tokens.get(at.wrapping_sub(1));
        before.is_some_and(|token| ["float", "double", "auto"].into_iter().any(|kind| token.is(kind)))
    };
    let body = ways::body(site.within);
    let mut declared = body.clone().filter(|&at| text.is(at, name) && typed(at));
    let at = declared.next().filter(|_| declared.next().is_none())?;
    let harmless = |used: usize| {
        let handed = || site.arguments.iter().any(|argument| argument.contains(&used));
        let open = || (body.start..used).rev().find(|&open| text.is(open, "(") && text.partner(open) > used);
        let printed = || open().is_some_and(|open| text.is(open - 1, "printf"));
        used == at || handed() || printed()
    };
    let kept = fixed(program, at)
        || !ways::changes(program, body.clone(), name) && body.clone().filter(|&at| text.is(at, name)).all(harmless);
    initial(program, at).filter(|_| kept)
}

#[cfg(test)]
#[path = "remarks_tests.rs"]
mod tests;
