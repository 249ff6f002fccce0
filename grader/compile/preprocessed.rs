//! Is heat.cu the same code for g++ with our CUDA headers as it is for nvcc with its own? Conditions and macros can tell the
//! two apart, and engine cpu would then judge a kernel that no GPU runs. Pure, on what both preprocessors left.
//!
//! The lines that conditions leave in are compared to the letter, and what macros made of them token by token. Bodies of host
//! functions that the kernel does not reach may differ in their macros: the two sets of headers define others.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::conditions::{LeftIn, own_lines};
use super::functions::{Function, identifiers, led_to};
use super::once::included;
use super::spelling::spelled_alike;
use crate::submission::lexer::{Token, lex};

/// What a preprocessor left of heat.cu, in a spelling that is the same for both compilers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preprocessed {
    words: Vec<Word>,
    functions: Vec<Definition>,
    /// Names that stand outside functions.
    outside: BTreeSet<String>,
    /// The lines that conditions left in; `None` where the text has no condition.
    left_in: Option<LeftIn>,
    /// The files that it took in, by their full paths.
    included: BTreeSet<PathBuf>,
}

/// A token, and the line that it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Word {
    text: String,
    line: u32,
}

/// A function: where its body is among the words, and the names that the body uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Definition {
    name: String,
    body: Range<usize>,
    uses: BTreeSet<String>,
}

impl Preprocessed {
    /// `text` has line markers (`# 12 "heat.cu"`).
    pub fn of(text: &str, left_in: Option<LeftIn>) -> Self {
        let (tokens, lines) = own_tokens(text);
        let spelled = spelled_alike(&tokens);
        // Where a token would stand among the words.
        let word_of = |token: usize| spelled.partition_point(|(at, _)| *at < token);
        let mut functions = Vec::new();
        let mut is_outside = vec![true; tokens.len()];
        for function in Function::all(&tokens) {
            let (head, body) = (place_of(&tokens, function.head), place_of(&tokens, function.body));
            is_outside[head.start..body.end].fill(false);
            functions.push(Definition {
                name: function.name.text.to_string(),
                body: word_of(body.start)..word_of(body.end),
                uses: identifiers(function.body).map(str::to_owned).collect(),
            });
        }
        let outside = tokens.iter().zip(&is_outside).filter(|(token, outside)| **outside && token.is_identifier());
        let outside = outside.map(|(token, _)| token.text.to_string()).collect();
        let words = spelled.into_iter().map(|(at, text)| Word { text, line: lines[at] }).collect();
        Self { words, functions, outside, left_in, included: included(text) }
    }

    /// The headers of the machine that the text took in.
    pub fn included(&self) -> &BTreeSet<PathBuf> {
        &self.included
    }

    /// The first line that is other code for `other`. Not looked at are lines in `omitted`, which one of the texts had lost
    /// before it was preprocessed, and what macros made of host code that `kernel` does not reach.
    pub fn first_difference(&self, other: &Self, kernel: &str, omitted: &BTreeSet<u32>) -> Option<u32> {
        let by_conditions = match (&self.left_in, &other.left_in) {
            (Some(here), Some(there)) => here.first_difference(there, omitted),
            (None, None) => None,
            // One of the compilers did not tell.
            _ => Some(1),
        };
        by_conditions.or_else(|| self.first_other_expansion(other, kernel, omitted))
    }

    fn first_other_expansion(&self, other: &Self, kernel: &str, omitted: &BTreeSet<u32>) -> Option<u32> {
        let reached: BTreeSet<&str> = self.reached_from(kernel).union(&other.reached_from(kernel)).copied().collect();
        let (mut here, mut there) = (self.compared(&reached, omitted), other.compared(&reached, omitted));
        loop {
            let (here, there) = (here.next(), there.next());
            if here.map(|word| &word.text) != there.map(|word| &word.text) {
                return [here, there].into_iter().flatten().map(|word| word.line).min();
            }
            here?;
        }
    }

    /// The words but for those in bodies of functions that are not reached and those of omitted lines.
    fn compared<'s>(&'s self, reached: &BTreeSet<&str>, omitted: &BTreeSet<u32>) -> impl Iterator<Item = &'s Word> {
        let mut is_compared = vec![true; self.words.len()];
        let (device, host): (Vec<_>, Vec<_>) =
            self.functions.iter().partition(|function| reached.contains(function.name.as_str()));
        host.iter().for_each(|function| is_compared[function.body.clone()].fill(false));
        device.iter().for_each(|function| is_compared[function.body.clone()].fill(true));
        for (word, is_compared) in self.words.iter().zip(&mut is_compared) {
            *is_compared &= !omitted.contains(&word.line);
        }
        self.words.iter().zip(is_compared).filter(|(_, is_compared)| *is_compared).map(|(word, _)| word)
    }

    /// What `kernel` and everything outside functions leads to.
    fn reached_from<'s>(&'s self, kernel: &'s str) -> BTreeSet<&'s str> {
        let used = |function: &'s Definition| function.uses.iter().map(String::as_str).collect();
        let uses: Vec<_> = self.functions.iter().map(|function| (function.name.as_str(), used(function))).collect();
        led_to(self.outside.iter().map(String::as_str).chain([kernel]), &uses)
    }
}

/// The tokens of heat.cu itself, and the line of each.
fn own_tokens(text: &str) -> (Vec<Token>, Vec<u32>) {
    let (mut tokens, mut lines) = (Vec::new(), Vec::new());
    for ((_, line), text) in own_lines(text) {
        let own = lex(text).tokens;
        lines.extend(std::iter::repeat_n(line, own.len()));
        tokens.extend(own);
    }
    (tokens, lines)
}

/// Where a part of a slice is in it.
fn place_of(whole: &[Token], part: &[Token]) -> Range<usize> {
    let start = (part.as_ptr().addr() - whole.as_ptr().addr()) / size_of::<Token>();
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with this body, from line 2 on, as a preprocessor leaves it.
    fn kernel(body: &str) -> Preprocessed {
        Preprocessed::of(&format!("# 1 \"heat.cu\"\nvoid k(float r) {{\n{body}\n}}\n"), None)
    }

    fn difference(ours: &str, theirs: &str) -> Option<u32> {
        kernel(ours).first_difference(&kernel(theirs), "k", &BTreeSet::new())
    }

    #[test]
    fn a_line_that_only_one_sees_and_a_line_that_each_sees_otherwise_are_found() {
        assert_eq!(difference("int a;\n\n", "int a;\nr *= 0.5f;\n"), Some(3));
        assert_eq!(difference("int a;\nint b;\n", "int a;\n\n"), Some(3));
        assert_eq!(difference("\n", "r *= 0.5f;\n"), Some(2));
        assert_eq!(
            difference("hg_sync_threads((static_cast<unsigned>(3))); r *= 1.0f;", "__syncthreads(); r *= 0.5f;"),
            Some(2)
        );
        assert_eq!(difference("hg_shared_qualifier float t[8];", "float t[8];"), Some(2));
        assert_eq!(
            difference("hg_sync_threads((static_cast<unsigned>(3)));\nint a;\n", "__syncthreads();\nint b;\n"),
            Some(3)
        );
    }

    #[test]
    fn the_arguments_of_a_macro_may_stand_on_one_line_or_on_several() {
        assert_eq!(difference("hg_assumed(bool(r > 2 && r < 3));\n\n", "__builtin_assume(r > 2 &&\nr < 3);\n"), None);
        let (ours, theirs) = ("hg_sync_reduce((3), 2, (a || b))\n + 1;\n", "__syncthreads_or(a ||\nb) + 1;\n");
        assert_eq!(difference(ours, theirs), None);
    }

    fn of_file(text: &str) -> Preprocessed {
        Preprocessed::of(&format!("# 1 \"heat.cu\"\n{text}"), None)
    }

    #[test]
    fn host_code_that_the_kernel_does_not_reach_may_differ_and_nothing_else() {
        let text = |scale: &str, host: &str, constant: &str| {
            of_file(&format!(
                "float help(float r) {{\n  return r * {scale};\n}}\nvoid k(float r) {{ help(r); }}\nint main() {{\n  {host};\n}}\n\
                 constexpr int c = {constant};\nstruct S {{ float operator()(float r) {{\n return r; }} }};\n"
            ))
        };
        let ours = text("1.0f", "use(1)", "1");
        let difference = |other: &Preprocessed| ours.first_difference(other, "k", &BTreeSet::new());
        assert_eq!(difference(&text("1.0f", "use(2)", "1")), None);
        assert_eq!(difference(&text("0.5f", "use(1)", "1")), Some(2));
        assert_eq!(difference(&text("1.0f", "use(1)", "2")), Some(8));
        assert_eq!(ours.first_difference(&text("1.0f", "use(1)", "2"), "k", &BTreeSet::from([8])), None);
    }

    #[test]
    fn what_only_code_without_a_plain_name_leads_to_counts() {
        let text = |scale: &str| {
            of_file(&format!(
                "float help(float r) {{\n  return r * {scale};\n}}\nstruct S {{ float operator*(float r) {{ return help(r); }} }};\n"
            ))
        };
        assert_eq!(text("1.0f").first_difference(&text("0.5f"), "k", &BTreeSet::new()), Some(2));
    }

    #[test]
    fn an_account_of_conditions_that_one_of_them_lacks_is_a_difference() {
        let with = |left_in: Option<LeftIn>| Preprocessed::of("# 1 \"heat.cu\"\nint a;\n", left_in);
        let left_in = || Some(LeftIn::of("# 1 \"heat.cu\"\nint a;\n"));
        let difference = |here, there| with(here).first_difference(&with(there), "k", &BTreeSet::new());
        assert_eq!(difference(left_in(), left_in()), None);
        assert_eq!(difference(left_in(), None), Some(1));
    }
}
