//! Leaving out host code that g++ cannot take: what uses headers that only nvcc has (thrust, cub, nvtx). Pure.
//!
//! A kernel cannot depend on such a declaration without failing to compile itself, so leaving it out changes nothing
//! about the kernel.

use std::ops::Range;

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
    let code: Vec<Token> = tokens.into_iter().filter(|token| !token.directive).collect();
    for declaration in declarations(&code) {
        let part = &code[declaration];
        let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
        let hit = lines.iter().any(|line| (first.line..=last.line).contains(line));
        let of_kernel = part.iter().any(|token| token.is("__global__")) && part.iter().any(|token| token.is(kernel));
        let on_device = part.iter().any(|token| DEVICE.iter().any(|word| token.is(word)));
        if hit && !of_kernel && !on_device {
            dropped.extend(part.iter().map(|token| token.span.clone()));
        }
    }
    (!dropped.is_empty()).then(|| blanked(source, dropped))
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

/// The declarations outside functions and structs, as ranges of tokens.
fn declarations(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].is("}") || tokens[at].is(";") {
            at += 1;
        } else if let Some(inside) = scope(tokens, at) {
            at = inside;
        } else {
            let end = end_of_declaration(tokens, at);
            found.push(at..end);
            at = end;
        }
    }
    found
}

/// The first token inside the namespace or `extern "C"` block that begins here.
fn scope(tokens: &[Token], at: usize) -> Option<usize> {
    let is_namespace = tokens[at].is("namespace") || tokens[at].is("inline") && tokens.get(at + 1)?.is("namespace");
    let is_linkage = tokens[at].is("extern") && tokens.get(at + 2)?.is("{") && !tokens.get(at + 1)?.is_identifier();
    if !is_namespace && !is_linkage {
        return None;
    }
    let stop = (at..tokens.len()).find(|&at| tokens[at].is("{") || tokens[at].is(";"))?;
    tokens[stop].is("{").then_some(stop + 1)
}

/// The token after a declaration: past its semicolon, or past a function's body.
fn end_of_declaration(tokens: &[Token], begin: usize) -> usize {
    let mut depth = 0i32;
    let mut is_function = false;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match &*token.text {
            "(" if depth == 0 => {
                is_function |= !tokens[begin..at].iter().any(|token| token.is("="));
                depth += 1;
            }
            "(" | "[" | "{" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                let goes_on = tokens.get(at + 1).is_some_and(|next| next.is(";") || next.is("catch"));
                if depth <= 0 && is_function && !goes_on {
                    return at + 1;
                }
                if depth < 0 {
                    return at;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
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
