//! A kernel as loops over a block's threads, one loop a barrier interval: nothing is switched and g++ sees straight code.
//! Pure, on the text that [`super::rewrite`] made.
//!
//! The way is loop fission (MCUDA, Stratton et al. 2008): a kernel whose barriers stand at the top level of its body is
//! cut there, and each piece becomes the body of a loop over the block's threads. A local that lives across a barrier is
//! computed again where that is sure to give the same, else kept in an array, a slot a thread. What cannot be cut, or is
//! in doubt, gives `None`: the kernel then runs as coroutines, which it always can. It has to be strict, because what a kernel
//! does may change with its data, and the engine compares with coroutines, bit by bit, only some launches: the first one
//! and those whose grid is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::declarations::{Declaration, Declarator, Reading, declaration, is_assigned, is_handed_on};
use super::functions::{Function, identifiers, kernel_name, matching, nesting, of_heat_cu, text_of};
use crate::submission::lexer::{Token, TokenKind};

/// What the names of these functions start with.
pub const PREFIX: &str = "hg_loops_";
/// The barrier, as cuda_runtime.h spells it.
const BARRIER: &str = "hg_sync_threads";

/// A kernel as loops.
#[derive(Debug)]
pub struct ThreadLoops {
    /// The text with one more function behind the kernel's definition; lines stay where they were.
    pub text: String,
    /// The function, as the end of the file would call it.
    pub call: String,
}

/// Cuts the kernel that `call` names (`ns::twoStep<32, 8>`) at its barriers; `None` when that is not sure to be right.
pub fn thread_loops(cpp: &str, call: &str) -> Option<ThreadLoops> {
    let tokens = of_heat_cu(cpp);
    let name = kernel_name(call)?;
    let kernel = Function::only(&tokens, &name)?;
    if mutable_parameter(kernel) {
        return None;
    }
    let index = index_wanted(&tokens, kernel)?;
    let body = Body::read(kernel.body, constants(&tokens, kernel))?;
    let cpp = if index == Index::Global { &cpp.replacen(CONSTANT_INDEX, VARIABLE_INDEX, 1) } else { cpp };
    let mut text = String::with_capacity(cpp.len() + 4096);
    let end = kernel.body.last().or(kernel.head.last())?.span.end;
    // Behind the closing brace, on its line.
    let end = end + cpp[end..].find('}')? + 1;
    text.push_str(&cpp[..end]);
    let renamed = kernel
        .head
        .iter()
        .map(|token| if token.is(&name) { format!("{PREFIX}{name}") } else { token.text.to_string() });
    let _ = write!(text, " {} {{ {} }}", renamed.collect::<Vec<_>>().join(" "), body.loops(index)?);
    text.push_str(&cpp[end..]);
    let at = call.find(name.as_str())?;
    Some(ThreadLoops { text, call: format!("{}{PREFIX}{}", &call[..at], &call[at..]) })
}

/// Whether the kernel may change a parameter: each thread has its own.
fn mutable_parameter(kernel: Function) -> bool {
    identifiers(kernel.parameters())
        .any(|name| is_assigned(name, kernel.body) || is_handed_on(name, kernel.body) && takes_references(kernel.body))
}

/// Whether a lambda in the kernel takes something by reference that it may change.
fn takes_references(body: &[Token]) -> bool {
    (1..body.len()).any(|open| {
        let parameters = (body[open].is("(") && body[open - 1].is("]")).then(|| matching(body, open)).flatten();
        parameters.is_some_and(|close| changes_arguments(&body[open..close]))
    })
}

/// Whether parameters are references to what is not const.
fn changes_arguments(parameters: &[Token]) -> bool {
    let parts = parameters.split(|token| token.is(","));
    parts.into_iter().any(|part| {
        part.iter().any(|token| token.is("&") || token.is("&&")) && !part.iter().any(|token| token.is("const"))
    })
}

/// Names outside the kernel's body that never change: constants, enumerators, the kernel's parameters and its template's.
fn constants<'t>(tokens: &'t [Token], kernel: Function<'t>) -> BTreeSet<&'t str> {
    let mut names: BTreeSet<&str> = identifiers(kernel.head).collect();
    for (at, token) in tokens.iter().enumerate() {
        let end = |stop: &[&str]| tokens[at..].iter().position(|token| stop.iter().any(|end| token.is(end)));
        if token.is("constexpr") || token.is("const") {
            let length = end(&[";", ")"]).unwrap_or(0);
            let pairs = tokens[at..at + length].windows(2);
            names.extend(pairs.filter(|pair| pair[0].is_identifier() && pair[1].is("=")).map(|pair| &*pair[0].text));
        } else if token.is("enum") {
            names.extend(identifiers(&tokens[at..at + end(&["}"]).unwrap_or(0)]));
        }
    }
    names
}

/// Where the loops put threadIdx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    /// In a local: g++ sees that nothing else changes it.
    Local,
    /// In the variable of cuda_runtime.h, because functions that the kernel calls read it.
    Global,
}

/// The variable as cuda_runtime.h declares it, and as it must be declared where it changes.
const CONSTANT_INDEX: &str = "extern __thread const uint3 threadIdx";
const VARIABLE_INDEX: &str = "extern __thread uint3 threadIdx      ";

/// Where threadIdx is wanted; `None` when something that the kernel can call waits for other threads or keeps a state.
fn index_wanted(tokens: &[Token], kernel: Function) -> Option<Index> {
    let functions = Function::all(tokens);
    let is_other = |function: &&Function| !function.name.is(&kernel.name.text);
    let mut reached: BTreeSet<&str> = identifiers(kernel.body).collect();
    loop {
        let called = functions.iter().filter(is_other).filter(|function| reached.contains(&*function.name.text));
        let words: BTreeSet<&str> = called.flat_map(|function| identifiers(function.body)).collect();
        if words.iter().any(|word| *word == "static" || (word.starts_with("hg_") && !is_view(word))) {
            return None;
        }
        // Such a function may change what only the kernel's text is looked at for.
        let mut called = functions.iter().filter(is_other).filter(|function| reached.contains(&*function.name.text));
        if called.any(|function| changes_arguments(function.parameters())) {
            return None;
        }
        if words.is_subset(&reached) {
            break;
        }
        reached.extend(words);
    }
    // In the kernel, in a function that it does not call, or else in what it may call: a lambda, a call operator.
    let inside = |token: &Token| {
        functions.iter().any(|function| {
            let apart = function.name.is(&kernel.name.text) || !reached.contains(&*function.name.text);
            let ends = function.body.first().zip(function.body.last());
            apart && ends.is_some_and(|(first, last)| (first.span.start..last.span.end).contains(&token.span.start))
        })
    };
    let known = tokens.iter().any(|token| token.is("threadIdx") && !inside(token));
    Some(if known { Index::Global } else { Index::Local })
}

/// Names that rewrite.rs gives to views of the dynamic shared array.
fn is_view(name: &str) -> bool {
    name.starts_with("hg_type_of_") || name == "hg_dynamic_shared"
}

/// One statement at the top level of the kernel's body.
struct Statement<'t> {
    tokens: &'t [Token],
    /// When it declares locals of a thread.
    declaration: Option<Declaration<'t>>,
}

/// A kernel's body, cut at its barriers.
struct Body<'t> {
    all: &'t [Token],
    constants: BTreeSet<&'t str>,
    /// Shared arrays, types and constants: the same for all threads.
    hoisted: Vec<&'t [Token]>,
    intervals: Vec<Vec<Statement<'t>>>,
}

impl<'t> Body<'t> {
    fn read(tokens: &'t [Token], constants: BTreeSet<&'t str>) -> Option<Self> {
        let mut body = Self { all: tokens, constants, hoisted: Vec::new(), intervals: vec![Vec::new()] };
        let mut rest = tokens;
        while !rest.is_empty() {
            let (statement, after) = rest.split_at(statement_length(rest)?);
            rest = after;
            if is_barrier(statement) {
                body.intervals.push(Vec::new());
            } else if is_hoisted(statement) {
                body.hoisted.push(statement);
            } else if is_forbidden(statement) {
                return None;
            } else {
                let declaration = declaration(statement);
                body.intervals.last_mut()?.push(Statement { tokens: statement, declaration });
            }
        }
        let (_, before) = body.intervals.split_last()?;
        let returns = before.iter().flatten().any(|statement| has_return(statement.tokens));
        (!returns && !body.hoists_a_local() && !body.points_to_a_local()).then_some(body)
    }

    /// Whether the name is one of the block's.
    fn is_shared(&self, name: &str) -> bool {
        let shared = self.hoisted.iter().filter(|statement| statement.iter().any(|token| token.is("__thread")));
        shared.into_iter().flat_map(|statement| identifiers(statement)).any(|other| other == name)
    }

    fn declarators(&self) -> impl Iterator<Item = &Declarator<'t>> {
        self.intervals
            .iter()
            .flatten()
            .filter_map(|statement| statement.declaration.as_ref())
            .flat_map(|d| &d.declarators)
    }

    /// Whether a declaration that is moved to the front depends on one that is not.
    fn hoists_a_local(&self) -> bool {
        let locals: BTreeSet<&str> = self.declarators().map(|declarator| &*declarator.name.text).collect();
        self.hoisted.iter().flat_map(|statement| identifiers(statement)).any(|name| locals.contains(name))
    }

    /// Whether a pointer may lead to a thread's own local, which is elsewhere in the next interval.
    fn points_to_a_local(&self) -> bool {
        let arrays: BTreeSet<&str> =
            self.declarators().filter(|local| local.is_array()).map(|local| &*local.name.text).collect();
        let locals: BTreeSet<&str> = self.declarators().map(|local| &*local.name.text).collect();
        let decays =
            |local: &Declarator| local.is_pointer() && identifiers(local.initialiser()).any(|n| arrays.contains(n));
        let taken = (1..self.all.len()).any(|at| {
            let unary = self.all[at - 1].is("&")
                && !at.checked_sub(2).is_some_and(|before| {
                    let token = &self.all[before];
                    token.is_identifier()
                        || [")", "]", ">"].iter().any(|end| token.is(end))
                        || token.kind == TokenKind::Number
                });
            unary && locals.contains(&*self.all[at].text)
        });
        taken || self.declarators().any(decays)
    }

    /// The function's body.
    fn loops(&self, index: Index) -> Option<String> {
        let keeping = Keeping::of(self);
        let index = match index {
            Index::Local => "const uint3 threadIdx = {hg_x, hg_y, hg_z};",
            Index::Global => "threadIdx = {hg_x, hg_y, hg_z};",
        };
        let mut text = String::new();
        for hoisted in &self.hoisted {
            let _ = write!(text, "{} ", text_of(hoisted));
        }
        for (at, interval) in self.intervals.iter().enumerate() {
            let last = at + 1 == self.intervals.len();
            let inner = [
                keeping.before(at)?,
                interval.iter().map(|statement| without_returns(statement.tokens)).collect::<Vec<_>>().join(" "),
                keeping.after(at),
            ]
            .join(" ");
            let next = if last && interval.iter().any(|s| has_return(s.tokens)) { "hg_next: ;" } else { "" };
            let _ = write!(
                text,
                "{{ unsigned hg_thread = 0; const unsigned hg_dx = blockDim.x, hg_dy = blockDim.y, hg_dz = blockDim.z; \
                 for (unsigned hg_z = 0; hg_z < hg_dz; ++hg_z) for (unsigned hg_y = 0; hg_y < hg_dy; ++hg_y) \
                 for (unsigned hg_x = 0; hg_x < hg_dx; ++hg_x, ++hg_thread) {{ \
                 {index} {{ {inner} }} {next} }} }} "
            );
        }
        Some(text)
    }
}

/// Tokens of the first statement.
fn statement_length(tokens: &[Token]) -> Option<usize> {
    const COMPOUND: [&str; 7] = ["if", "for", "while", "switch", "do", "else", "{"];
    let compound = COMPOUND.iter().any(|word| tokens[0].is(word));
    let is_do = tokens[0].is("do");
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        depth += nesting(token);
        if depth < 0 {
            return None;
        }
        let ends = depth == 0 && (token.is(";") || (token.is("}") && compound && !is_do));
        if ends {
            return Some(at + 1);
        }
    }
    None
}

/// A barrier and nothing else.
fn is_barrier(statement: &[Token]) -> bool {
    statement[0].is(BARRIER) && statement.len() > 3 && matching(statement, 1) == Some(statement.len() - 2)
}

/// Declarations that belong to the block or to the text, not to a thread.
fn is_hoisted(statement: &[Token]) -> bool {
    const WORDS: [&str; 4] = ["typedef", "using", "static_assert", "constexpr"];
    const TYPES: [&str; 4] = ["struct", "class", "enum", "union"];
    let names_nothing = statement.len() > 2 && statement[statement.len() - 2].is("}");
    let defines =
        TYPES.iter().any(|word| statement[0].is(word)) && names_nothing && !statement.iter().any(|t| t.is("="));
    let is_one = WORDS.iter().any(|word| statement[0].is(word)) || defines;
    let shared = statement.iter().take_while(|token| !token.is("=")).any(|token| token.is("__thread"));
    is_one || shared || (statement[0].is("static") && statement.iter().any(|token| token.is("constexpr")))
}

/// What is not looked into: jumps, assembly, state that outlives a thread, this runtime's own functions.
fn is_forbidden(statement: &[Token]) -> bool {
    const WORDS: [&str; 13] = [
        "struct",
        "class",
        "enum",
        "union",
        "goto",
        "asm",
        "__asm__",
        "__asm",
        "try",
        "throw",
        "static",
        "extern",
        "this_thread_block",
    ];
    identifiers(statement).any(|word| WORDS.contains(&word) || (word.starts_with("hg_") && !is_view(word)))
}

/// The tokens of a statement that stand in a lambda's body.
fn in_lambda(tokens: &[Token]) -> Vec<bool> {
    let mut inside = vec![false; tokens.len()];
    for open in 0..tokens.len() {
        let introduces = tokens[open].is("[")
            && !open.checked_sub(1).is_some_and(|before| {
                let before = &tokens[before];
                before.is_identifier() || before.is(")") || before.is("]")
            });
        let Some(close) = introduces.then(|| matching(tokens, open)).flatten() else { continue };
        let brace = tokens[close..].iter().position(|token| token.is("{")).map(|length| close + length);
        if let Some(brace) = brace
            && let Some(end) = matching(tokens, brace)
        {
            inside[brace..=end].fill(true);
        }
    }
    inside
}

fn has_return(tokens: &[Token]) -> bool {
    tokens.iter().zip(in_lambda(tokens)).any(|(token, lambda)| token.is("return") && !lambda)
}

/// The statement as a piece of a loop's body: a thread that returns goes on to the next one.
fn without_returns(tokens: &[Token]) -> String {
    let lambda = in_lambda(tokens);
    let word = |(at, token): (usize, &Token)| {
        if token.is("return") && !lambda[at] { "goto hg_next".to_owned() } else { token.text.to_string() }
    };
    tokens.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// What becomes of locals that live across barriers.
struct Keeping<'b, 't> {
    body: &'b Body<'t>,
    /// By name: the interval that declares it, the statement there, and whether it can be computed again.
    locals: BTreeMap<&'t str, Local>,
}

#[derive(Clone, Copy)]
struct Local {
    interval: usize,
    statement: usize,
    again: bool,
    reference: bool,
    /// Which array keeps it.
    slot: usize,
}

impl<'b, 't> Keeping<'b, 't> {
    fn of(body: &'b Body<'t>) -> Self {
        let mut locals: BTreeMap<&'t str, Local> = BTreeMap::new();
        for (interval, statements) in body.intervals.iter().enumerate() {
            for (statement, declared) in statements.iter().enumerate() {
                let Some(declaration) = &declared.declaration else { continue };
                let reading = |name: &str| match locals.get(name) {
                    // What is read through a reference may change between two readings.
                    Some(local) if local.reference || !local.again => Reading::Differs,
                    Some(_) => Reading::Same,
                    None if body.constants.contains(name) && !body.is_shared(name) => Reading::Same,
                    None => Reading::Place,
                };
                let again = declaration.gives_the_same_again(body.all, reading);
                for declarator in &declaration.declarators {
                    let (slot, reference) = (locals.len(), declarator.is_reference());
                    locals.insert(&*declarator.name.text, Local { interval, statement, again, reference, slot });
                }
            }
        }
        Self { body, locals }
    }

    /// Locals of earlier intervals that interval `at` uses, those that they are computed from included.
    fn needed(&self, at: usize) -> BTreeSet<&'t str> {
        let used = self.body.intervals[at].iter().flat_map(|statement| identifiers(statement.tokens));
        let mut needed = BTreeSet::new();
        let mut open: Vec<&'t str> = used.collect();
        while let Some(name) = open.pop() {
            let Some((&name, local)) = self.locals.get_key_value(name).filter(|(_, local)| local.interval < at) else {
                continue;
            };
            if needed.insert(name) {
                open.extend(identifiers(self.body.intervals[local.interval][local.statement].tokens));
            }
        }
        needed
    }

    /// Declares what interval `at` needs from earlier ones, in the order of the text.
    fn before(&self, at: usize) -> Option<String> {
        let needed = self.needed(at);
        let mut text = String::new();
        for (interval, statements) in self.body.intervals[..at].iter().enumerate() {
            for (index, statement) in statements.iter().enumerate() {
                let Some(declaration) = &statement.declaration else { continue };
                let wanted =
                    declaration.declarators.iter().filter(|declarator| needed.contains(&*declarator.name.text));
                let wanted: Vec<&Declarator> = wanted.collect();
                let Some(first) = wanted.first() else { continue };
                let local = self.locals.get(&*first.name.text)?;
                if (local.interval, local.statement) != (interval, index) {
                    return None;
                }
                if local.again {
                    let _ = write!(text, "{} ", text_of(statement.tokens));
                    continue;
                }
                for declarator in wanted {
                    let name = &*declarator.name.text;
                    let slot = self.locals.get(name)?.slot;
                    let _ = write!(
                        text,
                        "{}; __builtin_memcpy(&{name}, &hg_kept<{slot}, decltype({name})>()[hg_thread], sizeof {name}); ",
                        declaration.uninitialised(declarator)?
                    );
                }
            }
        }
        Some(text)
    }

    /// Keeps what later intervals need of the locals that interval `at` has.
    fn after(&self, at: usize) -> String {
        let later: BTreeSet<&str> = (at + 1..self.body.intervals.len()).flat_map(|later| self.needed(later)).collect();
        let here = self.needed(at);
        let mut text = String::new();
        for (&name, local) in &self.locals {
            let present = local.interval == at || here.contains(name);
            if !local.again && present && later.contains(name) {
                let slot = local.slot;
                let _ = write!(
                    text,
                    "__builtin_memcpy(&hg_kept<{slot}, std::remove_cv_t<decltype({name})>>()[hg_thread], &{name}, sizeof {name}); "
                );
            }
        }
        text
    }
}

#[cfg(test)]
#[path = "../tests/compile_thread_loops.rs"]
mod tests;
