//! A kernel as loops over a block's threads, one loop a barrier interval: nothing is switched and g++ sees straight code.
//! Pure, on the text that [`super::rewrite`] made.
//!
//! The way is loop fission (MCUDA, Stratton et al. 2008): a kernel whose barriers stand at the top level of its body is
//! cut there, and each piece becomes the body of a loop over the block's threads. A local that lives across a barrier is
//! computed again where that is sure to give the same, else kept in an array, a slot a thread. What cannot be cut, or is
//! in doubt, gives `None`: the kernel then runs as coroutines, which it always can. It has to be strict, because what a kernel
//! does may change with its data, and the engine compares with coroutines, bit by bit, only some launches: the first one
//! and those whose grid is kept.

mod body;
mod cuts;
mod keeping;
mod warp;

use std::collections::BTreeSet;
use std::fmt::Write;

use super::declarations::{SPELLED, is_assigned, is_handed_on};
use super::functions::{Function, identifiers, kernel_name, led_to, matching, of_heat_cu, text_of};
use crate::submission::lexer::{Token, lex};
use body::{Body, statement_length};

/// What the names of these functions start with.
pub const PREFIX: &str = "hg_loops_";
/// How the names of all functions begin that it makes, or uses for what threads keep. No function of a learner's is called so.
pub const MADE: [&str; 3] = [PREFIX, "hg_kept", "hg_warp_"];

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
    let respelled = respelled(kernel.body)?;
    let body = Body::read(&respelled, constants(&tokens, kernel))?;
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

/// The body in plainer spellings of the same: warp operations taken apart, names behind their types.
fn respelled(body: &[Token]) -> Option<Vec<Token>> {
    let (mut text, mut slots) = (String::new(), 0);
    let mut rest = body;
    while !rest.is_empty() {
        let (statement, after) = rest.split_at(statement_length(rest)?);
        rest = after;
        let plainer = warp::laid_down(statement, &mut slots).or_else(|| pointer_to_array(statement));
        text.push_str(&plainer.unwrap_or_else(|| text_of(statement)));
        text.push(' ');
    }
    Some(lex(&text).tokens)
}

/// `float (*rows)[34] = tile;` with the name behind its type.
fn pointer_to_array(statement: &[Token]) -> Option<String> {
    let open = statement.iter().position(|token| token.is("("))?;
    let (of, rest) = statement.split_at(open);
    let [_, star, name, close, bound, ..] = rest else { return None };
    let shape = star.is("*") && name.is_identifier() && close.is(")") && bound.is("[");
    let equals = rest.iter().position(|token| token.is("="))?;
    let bounds = rest.get(4..equals)?;
    let whole = matching(bounds, 0) == Some(bounds.len() - 1);
    let is_type = of.iter().all(|token| token.is_identifier() || token.is("::"));
    (shape && whole && is_type && !of.is_empty()).then(|| {
        format!("{SPELLED}<{} (*){}> {} {}", text_of(of), text_of(bounds), name.text, text_of(&rest[equals..]))
    })
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
    let others = functions.iter().filter(is_other);
    let uses: Vec<_> =
        others.clone().map(|function| (&*function.name.text, identifiers(function.body).collect())).collect();
    let reached = led_to(identifiers(kernel.body), &uses);
    for function in others.filter(|function| reached.contains(&*function.name.text)) {
        let waits =
            identifiers(function.body).any(|word| word == "static" || word.starts_with("hg_") && !is_view(word));
        // Such a function may change what only the kernel's text is looked at for.
        if waits || changes_arguments(function.parameters()) {
            return None;
        }
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
    Some(if known || asks_headers(tokens) { Index::Global } else { Index::Local })
}

/// Whether functions of our CUDA headers that know their thread may be called: those of groups.
fn asks_headers(tokens: &[Token]) -> bool {
    const WORDS: [&str; 2] = ["cooperative_groups", "cuda"];
    identifiers(tokens).any(|word| WORDS.contains(&word))
}

/// Names that rewrite.rs gives to views of the dynamic shared array.
fn is_view(name: &str) -> bool {
    name.starts_with("hg_type_of_") || name == "hg_dynamic_shared"
}

#[cfg(test)]
#[path = "../../tests/compile_thread_loops.rs"]
mod tests;
