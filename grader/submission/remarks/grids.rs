//! Which of a launch's two grids the text fills: in the function that allocates them, or in the functions of the struct
//! that they are members of.

use std::ops::Range;

use super::super::lexer::TokenKind;
use super::super::program::{Function, Program};
use super::ways::{self, Way, Ways};
use super::{HostFault, Launch, Remark, Site, arguments, name, number, sites};

/// Calls that a host grid is looked up through.
const CALLS: usize = 3;

/// What is done with a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Allocated,
    /// `cudaMemcpy(grid, ...)`
    Filled,
    /// `cudaMemset(grid, 0, ...)`
    Zeroed,
    Other,
}

/// What is done with a grid, where, and in which function.
#[derive(Clone, Copy)]
struct Used<'p> {
    what: Use,
    at: usize,
    within: &'p Function,
}

/// The variable that a grid of the launch is.
struct Grid {
    name: String,
    /// Which of the sites hands the variable itself on.
    site: usize,
    home: Home,
}

/// Where a grid's name means that grid.
#[derive(Clone, PartialEq, Eq)]
enum Home {
    /// In one function.
    Function,
    /// In the functions of a struct.
    Struct(String),
    /// In the whole file.
    File,
}

/// One grid of the launch is filled and the other is nowhere but where it is allocated, zeroed, launched, swapped, read and
/// freed. Zeros are a fault where the grid that they should equal is not 0 on its ring.
pub fn unfilled(program: &Program, all: &Ways, launch: &Launch, way: &Way) -> Option<Remark> {
    let sites = sites(launch, way);
    let (one, other) = (grid(program, &sites, 0)?, grid(program, &sites, 1)?);
    if one.name == other.name || one.site != other.site || one.home != other.home {
        return None;
    }
    let (ones, others) = (uses(program, &sites, &one, 0)?, uses(program, &sites, &other, 1)?);
    let count = |uses: &[Used], what: Use| uses.iter().filter(|used| used.what == what).count();
    let ones_filled = count(&ones, Use::Filled) > 0;
    let certain = count(&ones, Use::Allocated) == 1 && count(&others, Use::Allocated) == 1;
    if !certain || ones_filled == (count(&others, Use::Filled) > 0) {
        return None;
    }
    let (filled, empty, index) = if ones_filled { (&ones, &others, 1) } else { (&others, &ones, 0) };
    let filling = filled.iter().find(|used| used.what == Use::Filled)?;
    let zeroing = empty.iter().find(|used| used.what == Use::Zeroed);
    if zeroing.is_some() && !warm_walls(program, all, filling) {
        return None;
    }
    let handed = sites.get(one.site)?.arguments.get(place(program, &sites, one.site, index)?)?;
    let at = match (zeroing, &one.home) {
        (Some(zeroing), _) => zeroing.at,
        (None, Home::Function) => handed.start,
        // What stands alone there should stand twice.
        (None, _) => filling.at,
    };
    Some(Remark { fault: HostFault::OneBufferUnfilled, line: program.text.line(at) })
}

/// Which argument of a site ends as a grid of the launch.
fn place(program: &Program, sites: &[Site], site: usize, index: usize) -> Option<usize> {
    sites.get(..site)?.iter().try_fold(index, |index, inner| {
        let given = name(program, inner.arguments.get(index)?)?;
        Some(ways::parameter(inner.within, &given.text)?.0)
    })
}

/// The variable that the launch gets as its first or second argument.
fn grid(program: &Program, sites: &[Site], index: usize) -> Option<Grid> {
    let mut index = index;
    for (at, site) in sites.iter().enumerate() {
        let given = name(program, site.arguments.get(index)?)?.text.to_string();
        let found = |home| Some(Grid { name: given.clone(), site: at, home });
        if ways::declares(program, site.within, &given) {
            return found(Home::Function);
        }
        match ways::parameter(site.within, &given) {
            Some((parameter, _)) if at + 1 < sites.len() => index = parameter,
            Some(_) => return found(Home::Function),
            None => {
                let owner = site.within.owner.as_ref().filter(|owner| is_member(program, owner, &given));
                return match owner {
                    Some(owner) => found(Home::Struct(owner.to_string())),
                    None if program.variables.contains_key(&*given) => found(Home::File),
                    None => found(Home::Function),
                };
            }
        }
    }
    None
}

/// Whether a struct has a member of a name.
pub fn is_member(program: &Program, owner: &str, name: &str) -> bool {
    program.structs.get(owner).is_some_and(|found| found.members.iter().any(|member| &*member.name == name))
}

/// All that is done with a grid; nothing where that is not plain.
fn uses<'p>(program: &'p Program, sites: &[Site<'_, 'p>], grid: &Grid, index: usize) -> Option<Vec<Used<'p>>> {
    let text = &program.text;
    let mut all = Vec::new();
    let mut within = |function: &'p Function, name: &str| -> Option<()> {
        for at in ways::body(function).filter(|&at| text.is(at, name)) {
            all.push(Used { what: use_of(program, sites, function, at)?, at, within: function });
        }
        Some(())
    };
    // What the functions on the way do with their parameters.
    let mut index = index;
    for site in sites.get(..grid.site)? {
        let given = name(program, site.arguments.get(index)?)?;
        within(site.within, &given.text)?;
        index = ways::parameter(site.within, &given.text)?.0;
    }
    if grid.home == Home::Function {
        within(sites.get(grid.site)?.within, &grid.name)?;
        return Some(all);
    }
    for function in program.functions.iter().filter(|function| !function.global && function.body.is_some()) {
        let inside = match &grid.home {
            Home::Struct(owner) => function.owner.as_deref() == Some(owner),
            _ => true,
        };
        let other = ways::parameter(function, &grid.name).is_some() || ways::declares(program, function, &grid.name);
        let mut places = ways::body(function).filter(|&at| text.is(at, &grid.name));
        let of_object = |at: usize| text.is(at - 1, ".") || text.is(at - 1, "->");
        match (inside, other) {
            (true, false) => within(function, &grid.name)?,
            // The member is hidden there, and reached in another way if at all.
            (true, true) if grid.home == Home::File => {}
            (true, true) => return None,
            // A member of an object, or of a struct that this one is the base of.
            (false, true) if !places.any(of_object) => {}
            (false, true) => return None,
            (false, false) => within(function, &grid.name)?,
        }
    }
    Some(all)
}

/// What is done with a grid at a token; nothing where that is not plain.
fn use_of(program: &Program, sites: &[Site], within: &Function, at: usize) -> Option<Use> {
    let text = &program.text;
    let handed = |site: &Site| site.arguments.iter().any(|argument| argument.contains(&at));
    if sites.iter().any(handed) {
        return Some(Use::Other);
    }
    // The innermost call that the token stands in.
    let function = ways::body(within);
    let open = (function.start..at).rev().find(|&open| text.is(open, "(") && text.partner(open) > at);
    let Some(open) = open.filter(|&open| text.partner(open) < function.end) else {
        // A declaration: `float *a, *b;` or `float* a = nullptr;`
        let before = text.tokens.get(at.wrapping_sub(1))?;
        return (before.is("*") || before.is("float")).then_some(Use::Other);
    };
    let called = text.tokens.get(open.wrapping_sub(1)).filter(|token| token.is_identifier())?;
    let all = arguments(program, open)?;
    let position = all.iter().position(|argument| argument.contains(&at))?;
    match (&*called.text, position) {
        ("cudaMalloc", 0) => Some(Use::Allocated),
        ("cudaMemcpy", 0) => Some(Use::Filled),
        ("cudaMemset", 0) => {
            let value = all.get(1).filter(|value| value.len() == 1).and_then(|value| text.tokens.get(value.start))?;
            (number(value) == Some(0.0)).then_some(Use::Zeroed)
        }
        ("cudaMemcpy", 1) | ("cudaFree" | "swap", _) => Some(Use::Other),
        (called, _) => sites.iter().any(|site| site.by_name && text.is(site.at, called)).then_some(Use::Other),
    }
}

/// Whether the host's grid that a cudaMemcpy fills from is known not to be 0 on its ring.
fn warm_walls(program: &Program, all: &Ways, filling: &Used) -> bool {
    let text = &program.text;
    let open = ways::enclosing(program, filling.at, "(");
    let from = open.and_then(|open| arguments(program, open)).and_then(|all| all.get(1).cloned());
    let host = from.into_iter().flatten().find(|&at| text.tokens.get(at).is_some_and(|token| token.is_identifier()));
    let Some(host) = host.and_then(|at| text.tokens.get(at)) else { return false };
    all.to(filling.within).iter().all(|way| {
        let (mut within, mut name) = (filling.within, host.text.clone());
        let mut calls = way.iter().take(CALLS);
        loop {
            if warmed(program, within, &name) || made_warm(program, within, &name) {
                return true;
            }
            let parameter = ways::parameter(within, &name).filter(|_| !ways::declares(program, within, &name));
            let (Some((index, _)), Some(call)) = (parameter, calls.next()) else { return false };
            let Some(given) = call.arguments.get(index).and_then(|given| super::name(program, given)) else {
                return false;
            };
            (within, name) = (call.within, given.text.clone());
        }
    })
}

/// `name = make(...)`, where `make` warms the grid that it returns.
fn made_warm(program: &Program, within: &Function, name: &str) -> bool {
    let text = &program.text;
    let mut made = ways::body(within).filter(|&at| text.is(at, name) && text.is(at + 1, "="));
    let (Some(at), None) = (made.next(), made.next()) else { return false };
    let Some(make) = text.tokens.get(at + 2).filter(|_| text.is(at + 3, "(")) else { return false };
    let Some(make) = ways::only(program, &make.text) else { return false };
    let mut returned = ways::body(make).filter(|&at| text.is(at, "return"));
    let (Some(at), None) = (returned.next(), returned.next()) else { return false };
    let returned = text.tokens.get(at + 1).filter(|token| token.is_identifier() && text.is(at + 2, ";"));
    returned.is_some_and(|returned| warmed(program, make, &returned.text))
}

/// Whether a loop from 0 stores a number other than 0 in a grid's first cells, and nothing stores a 0 in it.
fn warmed(program: &Program, within: &Function, name: &str) -> bool {
    let text = &program.text;
    let body = ways::body(within);
    let stores: Vec<(usize, usize)> = (body.clone())
        .filter(|&at| text.is(at, name) && text.is(at + 1, "["))
        .map(|at| (at, text.partner(at + 1)))
        .filter(|&(_, close)| text.is(close + 1, "="))
        .collect();
    let warm = |close: usize| {
        let value = text.tokens.get(close + 2).filter(|token| token.kind == TokenKind::Number);
        text.is(close + 3, ";") && value.and_then(number).is_some_and(|value| value != 0.0)
    };
    stores.iter().all(|&(_, close)| warm(close))
        && stores.iter().any(|&(at, close)| close == at + 3 && from_zero(program, &body, at, at + 2))
}

/// Whether a statement stands in `for (int i = 0; ...)`, directly or in its block, with `i` at a token.
fn from_zero(program: &Program, body: &Range<usize>, statement: usize, index: usize) -> bool {
    let text = &program.text;
    let block = (body.start..statement).rev().find(|&open| text.is(open, "{") && text.partner(open) > statement);
    let before = if text.is(statement - 1, ")") { Some(statement) } else { block };
    let Some(close) = before.and_then(|before| before.checked_sub(1)) else { return false };
    let Some(open) = (body.start..close).rev().find(|&open| text.partner(open) == close) else { return false };
    let Some(index) = text.tokens.get(index) else { return false };
    let starts = |at: usize| {
        text.is(at, &index.text) && text.is(at + 1, "=") && text.is(at + 3, ";") && {
            text.tokens.get(at + 2).and_then(number) == Some(0.0)
        }
    };
    text.is(open - 1, "for") && (starts(open + 2) || starts(open + 1))
}
