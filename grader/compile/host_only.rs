//! Leaving out host code that g++ cannot take: what uses headers that only nvcc has (thrust, cub, nvtx). Pure.
//!
//! Only what the device code names nothing of: a specialisation, an overload or an alias that is left out would leave the
//! kernel another meaning. By name, and never too few: a name that the device code leads to is one of its own.

use std::collections::BTreeSet;
use std::ops::Range;

use super::functions::{declarations, identifiers, led_to, nesting};
use crate::submission::lexer::{Token, lex};

/// Words that put a declaration on the device, or within its reach.
const DEVICE: [&str; 5] = ["__device__", "__constant__", "__shared__", "constexpr", "consteval"];

/// The text without the `#include`s and the host-only declarations that stand at these lines (from 1); nothing when
/// there are none. Line ends stay. `kernel` is the name of the kernel that is graded, without namespaces.
pub fn without(source: &str, lines: &[u32], kernel: &str) -> Option<String> {
    let tokens: Vec<Token> = lex(source).tokens;
    let mut dropped: Vec<Range<usize>> = Vec::new();
    for line in lines {
        let at_line = tokens.iter().filter(|token| token.line == *line);
        let include = at_line.clone().any(|token| token.directive && token.is("include"));
        if include {
            dropped.extend(at_line.map(|token| token.span.clone()));
        }
    }
    let (directives, code): (Vec<Token>, Vec<Token>) = tokens.into_iter().partition(|token| token.directive);
    let macros = macros(&directives);
    let parts: Vec<&[Token]> = declarations(&code).into_iter().map(|declaration| &code[declaration]).collect();
    let device = names_of_device_code(&parts, &macros, kernel);
    // With one of these a declaration may end elsewhere than it seems to.
    let plain = macros.iter().all(|(_, replacement)| is_balanced(replacement));
    for part in parts.into_iter().filter(|part| plain && !is_of_device(part, kernel)) {
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let hit = lines.iter().any(|line| (first.line..=last.line).contains(line));
        let hidden = outside_brackets(part).any(|token| macros.iter().any(|(name, _)| token.is(name)));
        let needed = declared(part).is_none_or(|names| names.iter().any(|name| device.contains(name)));
        if hit && !hidden && !needed {
            dropped.extend(part.iter().map(|token| token.span.clone()));
        }
    }
    (!dropped.is_empty()).then(|| blanked(source, dropped))
}

/// Whether a declaration is the graded kernel's, or puts something on the device.
fn is_of_device(part: &[Token], kernel: &str) -> bool {
    let has = |word: &str| part.iter().any(|token| token.is(word));
    has("__global__") && has(kernel) || DEVICE.iter().any(|word| has(word))
}

/// Names of macros, each with what it stands for (its parameters, where it has some, among it).
fn macros(directives: &[Token]) -> Vec<(&str, &[Token])> {
    let starts: Vec<usize> =
        (0..directives.len()).filter(|&at| directives[at].is("#") && directives[at].starts_line).collect();
    let ends = starts.iter().skip(1).copied().chain([directives.len()]);
    let lines = starts.iter().zip(ends).map(|(&start, end)| &directives[start + 1..end]);
    let defined = lines.filter(|line| line.first().is_some_and(|word| word.is("define")));
    defined.filter_map(|line| Some((&*line.get(1)?.text, &line[2..]))).collect()
}

fn is_balanced(replacement: &[Token]) -> bool {
    let count = |mark: &str| replacement.iter().filter(|token| token.is(mark)).count();
    [("(", ")"), ("[", "]"), ("{", "}")].iter().all(|(open, close)| count(open) == count(close))
}

/// All names that the device code uses, and that what they name uses in turn.
fn names_of_device_code<'t>(
    parts: &[&'t [Token]],
    macros: &[(&'t str, &'t [Token])],
    kernel: &str,
) -> BTreeSet<&'t str> {
    let of_device = parts.iter().filter(|part| is_of_device(part, kernel));
    let mut uses: Vec<(&str, BTreeSet<&str>)> =
        macros.iter().map(|(name, replacement)| (*name, identifiers(replacement).collect())).collect();
    for part in parts {
        let used: BTreeSet<&str> = identifiers(part).collect();
        uses.extend(declared(part).unwrap_or_default().into_iter().map(|name| (name, used.clone())));
    }
    led_to(of_device.flat_map(|part| identifiers(part)), &uses)
}

/// The tokens of a declaration that stand in no brackets, with those that open them.
fn outside_brackets(part: &[Token]) -> impl Iterator<Item = &Token> {
    let mut depth = 0;
    part.iter().filter(move |token| {
        let before = depth;
        depth += nesting(token);
        before == 0
    })
}

/// The names that a declaration declares, perhaps with some that it only uses; `None` for what is used unnamed, as an operator
/// is.
fn declared(part: &[Token]) -> Option<Vec<&str>> {
    const CLASSES: [&str; 4] = ["class", "struct", "union", "enum"];
    let part = without_template_head(part);
    let outside: Vec<&Token> = outside_brackets(part).collect();
    if outside.iter().any(|token| token.is("operator")) {
        return None;
    }
    let mut names: Vec<&str> = Vec::new();
    if part.first()?.is("using") {
        let alias = outside.iter().any(|token| token.is("="));
        let named = if alias { outside.get(1) } else { outside.iter().rfind(|token| token.is_identifier()) };
        return Some(named.map(|name| &*name.text).into_iter().collect());
    }
    // `(*f)(int)`
    let pointers = part.windows(3).filter(|three| three[0].is("(") && three[1].is("*") && three[2].is_identifier());
    names.extend(pointers.map(|three| &*three[2].text));
    // What follows a constructor's colon is a function's own.
    let end =
        outside.windows(2).position(|two| two[0].is("(") && two[1].is(":")).map_or(outside.len(), |colon| colon + 1);
    for (at, token) in outside[..end].iter().enumerate().filter(|(_, token)| token.is_identifier()) {
        // `struct S`, `enum class E`; and whatever is followed as only a declared name, or one with arguments, is.
        let class = at.checked_sub(1).is_some_and(|before| CLASSES.iter().any(|word| outside[before].is(word)));
        let ends = outside
            .get(at + 1)
            .is_none_or(|next| ["(", "=", "[", "{", ";", ",", ":", "<"].iter().any(|mark| next.is(mark)));
        if class || ends {
            names.push(&token.text);
        }
    }
    // Enumerators belong to what stands around them, and so may members of a union.
    if outside.iter().any(|token| token.is("enum") || token.is("union")) {
        names.extend(identifiers(part));
    }
    names.retain(|name| !CLASSES.contains(name) && !is_type_word(name));
    Some(names)
}

fn is_type_word(word: &str) -> bool {
    const WORDS: [&str; 13] = [
        "void", "bool", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "const", "size_t",
        "auto",
    ];
    WORDS.contains(&word)
}

/// What follows `template <...>`.
fn without_template_head(part: &[Token]) -> &[Token] {
    let mut rest = part;
    while rest.first().is_some_and(|word| word.is("template")) {
        let mut depth = 0;
        let close = rest.iter().position(|token| {
            depth += match &*token.text {
                "<" => 1,
                ">" => -1,
                ">>" => -2,
                _ => 0,
            };
            depth <= 0 && token.text.starts_with('>')
        });
        let Some(close) = close else { break };
        rest = &rest[close + 1..];
    }
    rest
}

fn blanked(source: &str, spans: Vec<Range<usize>>) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for span in spans {
        for byte in bytes.get_mut(span).into_iter().flatten().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "#include <thrust/sort.h>\n\
                        using Buffer = thrust::device_vector<float>;\n\
                        struct Solver {\n  Buffer a;\n} solver;\n\
                        namespace a { void helper() {\n  thrust::sort(1); }\n\
                        __global__ void k(int n) {\n  bad(); } }\n\
                        __global__ void other() {\n  curand_init(); }\n\
                        __device__ int f() {\n  return bad; }\n";

    fn left(lines: &[u32]) -> Option<String> {
        without(TEXT, lines, "k")
    }

    #[test]
    fn host_declarations_and_includes_are_left_out_where_they_are_named() {
        let text = left(&[1, 2, 4, 7]).expect("something to leave out");
        assert_eq!(text.lines().count(), TEXT.lines().count());
        assert!(!text.contains("thrust") && !text.contains("Solver"), "{text}");
        assert!(text.contains("void k(int n)") && text.contains("int f()"), "{text}");
    }

    #[test]
    fn what_the_kernel_leads_to_stays_whatever_it_is_spelled_like() {
        let kernel = "__global__ void k(int n) { pick(Scale<float>::value + south + CELL); }";
        for needed in [
            "template <> struct Scale<float> { bad x; };",
            "bad pick(double);",
            "enum { south = sizeof(bad) };",
            "using Scale = bad;",
            "typedef bad (*pick)(int);",
            "struct S { bad x; } pick;",
            "bad operator+(A, B);",
            "template <class T> Scale(T) -> Scale<bad>;",
            "struct Inner { bad x; }; // by the macro",
            "MORE(bad)",
        ] {
            let text =
                format!("#define CELL sizeof(Inner)\n#define MORE(x) struct Scale {{ x y; }};\n{needed}\n{kernel}\n");
            assert_eq!(without(&text, &[3], "k"), None, "{needed}");
        }
        let host = "void Solver::run(int n, Scale s) { bad pick; }\nSolver::Solver() : n(1) { bad(); }\nstatic bad<float, 3> cache;\n";
        let left = without(&format!("{host}{kernel}\n"), &[1, 2, 3], "k").expect("host code");
        assert!(!left.contains("bad"), "{left}");
        assert_eq!(
            without(&format!("#define OPEN {{\n{host}{kernel}\n"), &[2, 3, 4], "k"),
            None,
            "braces that do not show"
        );
    }

    #[test]
    fn another_kernel_is_left_out_but_never_the_graded_one_or_device_code() {
        assert!(!left(&[11]).expect("the other kernel").contains("curand_init"));
        assert_eq!((left(&[9]), left(&[13]), left(&[])), (None, None, None));
    }

    #[test]
    fn unfinished_text_is_left_as_it_is() {
        for text in ["namespace", "extern \"C\" {", "void f() {", "}}}", "int x", "namespace a {"] {
            without(text, &[1], "k");
        }
    }
}
