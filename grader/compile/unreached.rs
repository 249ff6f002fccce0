//! Functions of heat.cu that the kernel cannot reach. They never run here, and without their bodies g++ is done in half the
//! time. Pure.
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

/// The bodies, braces excluded, as ranges of bytes of preprocessed text. `call` is how the kernel would be called.
pub fn bodies(cpp: &str, call: &str) -> Vec<Range<usize>> {
    let (own, headers) = by_origin(cpp);
    let (mut functions, mut names) = (Vec::new(), identifiers(&headers).collect::<BTreeSet<_>>());
    for declaration in declarations(&own) {
        let tokens = &own[declaration];
        match whole_function(tokens) {
            Some(function) => functions.push(function),
            None => names.extend(identifiers(tokens)),
        }
    }
    let call = lex(call).tokens;
    names.extend(identifiers(&call));
    let uses: Vec<_> = functions
        .iter()
        .map(|function| (&*function.name.text, identifiers(function.head).chain(identifiers(function.body)).collect()))
        .collect();
    let reached = led_to(names, &uses);
    let unreached = functions.iter().filter(|function| !reached.contains(&*function.name.text));
    unreached.filter_map(|function| Some(function.body.first()?.span.start..function.body.last()?.span.end)).collect()
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
        for body in bodies(&cpp, "ns::k<Tile>").into_iter().rev() {
            left.replace_range(body, "");
        }
        left.lines().skip(3).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_the_kernel_reaches_stays_and_host_code_goes() {
        let text = "float mix(float a) { return a; }\nnamespace ns { template <class T> void k(int n) { mix(n); } }\n\
                    void go(int n) { k(n); }\nint main() { go(3); return 0; }";
        let expected = "float mix(float a) { return a; }\nnamespace ns { template <class T> void k(int n) { mix(n); } }\n\
                        void go(int n) {  }\nint main() {  }";
        assert_eq!(left(text), expected);
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
