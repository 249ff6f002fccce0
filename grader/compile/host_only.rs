//! Leaving out host code that g++ cannot take: what uses headers that only nvcc has (thrust, cub, nvtx). Pure.
//!
//! A kernel cannot depend on such a declaration without failing to compile itself, so leaving it out changes nothing
//! about the kernel.

use std::ops::Range;

use super::functions::declarations;
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
