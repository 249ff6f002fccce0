//! Functions of heat.cu that the kernel cannot reach. They never run here, may use what only a GPU has, and without them g++
//! is done in half the time. Pure.
//!
//! By name, and never too few: whatever stands outside functions reaches what it names (an initial value, a class with its
//! constructors), and so do the headers (`begin`, `swap`). A function that the scan does not understand is such a thing too.

use std::collections::BTreeSet;
use std::ops::Range;

use super::functions::{Function, by_origin, declarations, identifiers, led_to};
use crate::submission::lexer::{Token, lex};

/// Words of a head whose function may be needed unnamed, or cannot do without its body.
const KEPT: [&str; 10] =
    ["constexpr", "consteval", "auto", "decltype", "operator", "extern", "__attribute__", "alignas", "[", ":"];

/// These functions, as ranges of bytes of preprocessed text. `call` is how the kernel would be called.
pub fn spans(cpp: &str, call: &str) -> Vec<Range<usize>> {
    let span = |tokens: &[Token]| Some(tokens.first()?.span.start..tokens.last()?.span.end);
    of(cpp, call, |function, whole| if declares_type(function.head) { span(function.body) } else { span(whole) })
}

/// Their names: of each, no function is reached.
pub fn names(cpp: &str, call: &str) -> BTreeSet<String> {
    of(cpp, call, |function, _| Some(function.name.text.to_string())).into_iter().collect()
}

/// What is wanted of each of these functions, given with the tokens of its whole definition.
fn of<T>(cpp: &str, call: &str, wanted: impl Fn(&Function, &[Token]) -> Option<T>) -> Vec<T> {
    let (own, headers) = by_origin(cpp);
    let own = without_forced_inlining(own);
    let (mut functions, mut names) = (Vec::new(), identifiers(&headers).collect::<BTreeSet<_>>());
    for declaration in declarations(&own) {
        let tokens = &own[declaration];
        match whole_function(tokens) {
            Some(function) => functions.push((function, tokens)),
            None => names.extend(identifiers(tokens)),
        }
    }
    let call = lex(call).tokens;
    names.extend(identifiers(&call));
    let uses: Vec<_> = functions
        .iter()
        .map(|(function, _)| {
            (&*function.name.text, identifiers(function.head).chain(identifiers(function.body)).collect())
        })
        .collect();
    let reached = led_to(names, &uses);
    let unreached = functions.iter().filter(|(function, _)| !reached.contains(&*function.name.text));
    unreached.filter_map(|(function, tokens)| wanted(function, tokens)).collect()
}

/// `__forceinline__` is `inline` with an attribute, which changes nothing about who calls a function.
fn without_forced_inlining(tokens: Vec<Token>) -> Vec<Token> {
    const FORCED: [&str; 6] = ["__attribute__", "(", "(", "always_inline", ")", ")"];
    let forced = |at: usize| {
        let words = tokens.get(at..at + FORCED.len()).unwrap_or_default();
        at > 0
            && tokens[at - 1].is("inline")
            && !words.is_empty()
            && words.iter().zip(FORCED).all(|(t, word)| t.is(word))
    };
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if forced(at) {
            at += FORCED.len();
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Whether a head may name a type for the first time, as `void f(struct Cell* cell)` does.
fn declares_type(head: &[Token]) -> bool {
    let has = |word: &str| head.iter().any(|token| token.is(word));
    has("struct") || has("union") || has("enum") || has("class") && !has("template")
}

/// The function that a declaration defines, when its shape is plain.
fn whole_function(declaration: &[Token]) -> Option<Function<'_>> {
    let function = Function::all(declaration).into_iter().next()?;
    // Its parameters are the first bracket; `f() throw() {` and `typedef struct alignas(16) {` only look like functions.
    let first = declaration.iter().position(|token| token.is("("))?.checked_sub(1)?;
    if !std::ptr::eq(&declaration[first], function.name) {
        return None;
    }
    let whole = std::ptr::eq(declaration.first()?, function.head.first()?)
        && declaration.last()?.is("}")
        && function
            .body
            .last()
            .is_none_or(|last| declaration.iter().rev().nth(1).is_some_and(|end| std::ptr::eq(last, end)));
    let plain = !function.head.iter().any(|token| KEPT.iter().any(|word| token.is(word)));
    (whole && plain).then_some(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text without those bodies.
    fn left(text: &str) -> String {
        let cpp = format!("# 1 \"heat.h\" 1\nvoid sort() {{ swap(); }}\n# 1 \"heat.cu\"\n{text}\n");
        let mut left = cpp.clone();
        for function in spans(&cpp, "ns::k<Tile>").into_iter().rev() {
            left.replace_range(function, "");
        }
        left.lines().skip(3).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_the_kernel_reaches_stays_and_host_code_goes() {
        let text = "float mix(float a) { return a; }\nnamespace ns { template <class T> void k(int n) { mix(n); } }\n\
                    void go(int n) { k(n); }\nint main() { go(3); return 0; }";
        let expected = "float mix(float a) { return a; }\nnamespace ns { template <class T> void k(int n) { mix(n); } }\n\
                        \n";
        assert_eq!(left(text), expected);
    }

    #[test]
    fn a_function_goes_with_its_head_unless_that_names_a_type() {
        let text = "template <class T> void f(Texture t) { g(t); }\ninline __attribute__((always_inline)) void g(Texture t) { h(t); }\n\
                    void h(struct Cell* cell) { cell->go(); }";
        assert_eq!(left(text), "\n\nvoid h(struct Cell* cell) {  }");
        let names = names(&format!("# 1 \"heat.cu\"\n{text}\nvoid k() {{ }}\n"), "k");
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["f", "g", "h"]);
    }

    #[test]
    fn what_may_be_reached_unnamed_stays() {
        for text in [
            "int first() { return 1; }\nint second = first();",
            "int first() { return 1; }\nint second() { return first(); }\nstruct Evil { Evil() { second(); } } evil;",
            "void swap(A& a, A& b) { a.go(b); }",
            "A operator+(A a, A b) { return a.plus(b); }",
            "__attribute__((constructor)) void early() { boo(); }",
            "void early() __attribute__((constructor));\nvoid early() { boo(); }",
            "namespace step { float main(float a) { return a; } }\nstruct Go { float go() { return step::main(1); } };",
            "auto twice(int a) { return 2 * a; }",
            "float f(float a) noexcept(true) { return a; }",
            "float f(float a) throw() { return a; }",
            "typedef struct alignas(16) { float a; } Cell;",
            "constexpr int twice(int a) { return 2 * a; }",
            "Solver::Solver() : n(1) { start(); }",
            "auto twice = [](int a) { return 2 * a; };",
            "struct Tile { static int width() { return 32; } };",
            "int f(int a) try { return a; } catch (...) { return 0; }",
        ] {
            assert_eq!(left(text), text);
        }
    }

    #[test]
    fn unfinished_text_is_left_as_it_is() {
        for text in ["void f() {", "} void f() { ) }", "void f(", "}}}", "f() { } }", "template <"] {
            left(text);
        }
    }
}
