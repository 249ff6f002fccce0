//! Variables that the kernel reads and that only the program's own host code fills, which the grader never runs.

use super::super::Kernel;
use super::super::lexer::Token;
use super::super::program::{Function, Program};
use super::{body_of, ways};

/// A variable in the GPU's memory that host code fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filled {
    pub name: String,
    /// Where it is filled: the line of `cudaMemcpyToSymbol`, from 1.
    pub line: u32,
}

/// The first call of cudaMemcpyToSymbol whose variable the kernel reads, or a function that it names.
pub fn filled_by_host(program: &Program, kernel: &Kernel) -> Option<Filled> {
    let text = &program.text;
    let called = |at: usize| ["cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync"].iter().any(|name| text.is(at, name));
    let of_call = |at: usize| {
        let first = at + 2 + usize::from(text.is(at + 2, "&"));
        let name = text.tokens.get(first).filter(|token| text.is(at + 1, "(") && token.is_identifier())?;
        let known = program.variables.contains_key(&name.text) && reads(program, kernel, &name.text);
        known.then(|| Filled { name: name.text.to_string(), line: text.line(at) })
    };
    (0..text.tokens.len()).filter(|&at| called(at)).find_map(of_call)
}

/// Whether the kernel's body names a variable, or the body of a function that it names.
fn reads(program: &Program, kernel: &Kernel, name: &str) -> bool {
    let text = &program.text;
    let Some(body) = body_of(program, kernel) else { return false };
    let of_file =
        |function: &Function| ways::parameter(function, name).is_none() && !ways::declares(program, function, name);
    let named = |token: &Token| ways::only(program, &token.text).filter(|function| of_file(function));
    let helpers = text.tokens.get(body.clone()).unwrap_or_default().iter().filter(|token| token.is_identifier());
    let mut bodies = std::iter::once(body).chain(helpers.filter_map(named).map(ways::body));
    bodies.any(|mut body| body.any(|at| text.is(at, name)))
}
