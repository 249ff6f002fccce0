//! Submissions that are alike: the same bytes, or the same kernel once names, comments and white space are set aside. For an
//! instructor to look at; nothing is decided by it.
//!
//! Compared are the learner's own kernel and the functions of the file that it calls; constants outside of them (a tile's
//! size) are names like others. The lesson's text, which everybody
//! hands in, is left out: what is equal to one of its functions is nobody's work.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::out::digest;
use crate::compile::functions::matching;
use crate::grade::REFERENCE;
use crate::submission::lexer::{Token, TokenKind};
use crate::submission::{Program, find_kernel};

/// Fewest tokens of a kernel with its functions that are compared: shorter ones are alike by chance.
const LEAST: usize = 60;

/// Words that are not names of the learner's choosing: C++'s keywords that may stand in a kernel, and CUDA's variables.
/// What begins with two underscores is CUDA's as well.
const KEPT: [&str; 54] = [
    "alignas",
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "class",
    "const",
    "const_cast",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "false",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "namespace",
    "nullptr",
    "operator",
    "reinterpret_cast",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "true",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "void",
    "volatile",
    "while",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
];

/// The normal forms of the lesson's own kernels.
static SHIPPED: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let program = Program::new(REFERENCE);
    let forms = (0..program.functions.len()).filter_map(|index| normal_form(&program, index));
    forms.map(|form| form.join(" ")).collect()
});

/// Why submissions are in one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// heat.cu is the same, byte for byte.
    SameBytes,
    /// The kernel is the same but for names, comments and white space.
    SameKernel,
}

/// Submissions that are alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// From 1, in the order of the list.
    pub number: usize,
    pub kind: Likeness,
    /// Two or more.
    pub learners: Vec<String>,
}

/// What of a submission is compared.
#[derive(Clone, Debug, Default)]
pub struct Prints {
    /// SHA-256 of heat.cu; none when it could not be read.
    pub bytes: Option<String>,
    /// That of the kernel's normal form; none when there is no telling, or nothing to compare.
    pub kernel: Option<String>,
}

/// The digest of the learner's kernel in its normal form; none when it was not found, is too short to tell, or is the
/// lesson's.
pub fn kernel_print(text: &str) -> Option<String> {
    let program = Program::new(text);
    let kernel = find_kernel(&program).ok()?;
    let is_it = |at: &usize| {
        let function = &program.functions[*at];
        function.global && function.line == kernel.line && function.body.is_some()
    };
    let index = (0..program.functions.len()).find(is_it)?;
    let form = normal_form(&program, index).filter(|form| form.len() >= LEAST)?;
    let form = form.join(" ");
    (!SHIPPED.contains(&form)).then(|| digest(form.as_bytes()))
}

/// Tokens of a function and of those that it calls, each name replaced by the order of its first use.
fn normal_form(program: &Program, index: usize) -> Option<Vec<String>> {
    let mut wanted = vec![index];
    let mut names: HashMap<&str, usize> = HashMap::new();
    let mut form = Vec::new();
    let mut next = 0;
    while let Some(index) = wanted.get(next).copied() {
        next += 1;
        let Some(range) = definition(program, index) else { continue };
        let tokens = &program.text.tokens[range.clone()];
        for (at, token) in tokens.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &tokens[before]);
            let called = (at > 0).then(|| callee(program, token, tokens.get(at + 1))).flatten();
            if let Some(called) = called.filter(|called| !wanted.contains(called)) {
                wanted.push(called);
            }
            let is_own = at == 0 || called.is_some();
            if token.kind == TokenKind::Identifier && (is_own || is_name(token, before, tokens.get(at + 1))) {
                let count = names.len();
                form.push(format!("#{}", names.entry(&token.text).or_insert(count)));
            } else {
                form.push(token.text.to_string());
            }
        }
    }
    (!form.is_empty()).then_some(form)
}

/// The tokens from a function's name to the end of its body.
fn definition(program: &Program, index: usize) -> Option<Range<usize>> {
    let (function, tokens) = (&program.functions[index], &program.text.tokens);
    function.body.as_ref()?;
    let open = function.at + tokens.get(function.at..)?.iter().position(|token| token.is("{"))?;
    Some(function.at..matching(tokens, open)? + 1)
}

/// The function of the file that a token calls.
fn callee(program: &Program, token: &Token, after: Option<&Token>) -> Option<usize> {
    let calls = token.is_identifier() && after.is_some_and(|after| after.is("(") || after.is("<"));
    let mut named = program.functions_named(&token.text).filter(|(_, function)| function.body.is_some());
    named.next().filter(|_| calls).map(|(index, _)| index)
}

/// Whether an identifier is a name of the learner's choosing: no word of the language, no member, nothing of a library.
fn is_name(token: &Token, before: Option<&Token>, after: Option<&Token>) -> bool {
    let of_something = before.is_some_and(|before| [".", "->", "::"].iter().any(|sign| before.is(sign)));
    let of_a_library = after.is_some_and(|after| after.is("(") || after.is("::"));
    !(of_something || of_a_library || token.text.starts_with("__") || KEPT.contains(&&*token.text))
}

/// The groups among submissions, by learner. Of one group with two reasons the stronger is told.
pub fn groups(prints: &[(&str, &Prints)]) -> Vec<Group> {
    let alike = |print: &dyn Fn(&Prints) -> Option<String>| {
        let mut by_print: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (learner, prints) in prints {
            if let Some(print) = print(prints) {
                by_print.entry(print).or_default().push((*learner).to_owned());
            }
        }
        let mut groups: Vec<Vec<String>> = by_print.into_values().filter(|learners| learners.len() > 1).collect();
        groups.iter_mut().for_each(|learners| learners.sort());
        groups.sort();
        groups
    };
    let bytes = alike(&|prints| prints.bytes.clone());
    let mut kernels = alike(&|prints| prints.kernel.clone());
    kernels.retain(|learners| !bytes.contains(learners));
    let named = bytes.into_iter().map(|learners| (Likeness::SameBytes, learners));
    let named = named.chain(kernels.into_iter().map(|learners| (Likeness::SameKernel, learners)));
    named.enumerate().map(|(at, (kind, learners))| Group { number: at + 1, kind, learners }).collect()
}

#[cfg(test)]
#[path = "duplicates_tests.rs"]
mod tests;
