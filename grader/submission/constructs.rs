//! What a kernel uses that the cpu engine cannot judge: found in the text, so that it can be named with its line.
//!
//! Only code counts: a comment, a string or an `#include` is nothing, nor is what a condition leaves out, nor a function that
//! the kernel is known not to reach.

use std::collections::BTreeSet;

use super::lexer::{Token, TokenKind};
use super::program::Program;
use super::tree::ExpressionKind;
use super::tree::{Expression, Tokens};
use super::walk::{self, Visitor};

/// Something that needs a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Construct {
    /// `inline PTX (asm)`
    pub what: String,
    /// Line of its first use, from 1.
    pub line: u32,
}

/// The constructs in the order of their lines, each kind once.
pub fn constructs(program: &Program) -> Vec<Construct> {
    constructs_but(program, &BTreeSet::new())
}

/// The same but for those in functions of these names, which the kernel does not reach.
pub fn constructs_but(program: &Program, unreached: &BTreeSet<String>) -> Vec<Construct> {
    let host_only = host_bodies(program);
    let left_out = left_out(program, unreached);
    let mut found: Vec<Construct> = Vec::new();
    for (at, token) in program.text.tokens.iter().enumerate() {
        let Some(what) = construct(program, at, token) else { continue };
        if left_out.iter().any(|definition| definition.contains(&at)) {
            continue;
        }
        let in_host_code = host_only.iter().any(|body| body.contains(&at));
        // Names of a library outside functions are types that host code may use; a kernel that does is found out later.
        let in_device_code = if is_library(what) { in_any_body(program, at) && !in_host_code } else { !in_host_code };
        if in_device_code && !found.iter().any(|other| other.what == what) {
            found.push(Construct { what: what.to_owned(), line: token.line });
        }
    }
    found.extend(launches_from_kernels(program, &left_out));
    found.sort_by_key(|construct| construct.line);
    found
}

fn construct(program: &Program, at: usize, token: &Token) -> Option<&'static str> {
    if token.kind != TokenKind::Identifier {
        return None;
    }
    let called = || program.text.is(at + 1, "(") || program.text.is(at + 1, "<");
    // The ranks and sizes of the group are any launch's; a barrier by its name shows when it is come to.
    let synced =
        || [(1, "("), (2, ")"), (3, "."), (4, "sync")].iter().all(|&(by, word)| program.text.is(at + by, word));
    let qualifies = || program.text.is(at + 1, "::");
    let word = &*token.text;
    Some(match word {
        _ if starts_assembly(&program.text.tokens, at) => "inline PTX (asm)",
        "cudaTextureObject_t" | "texture" if word != "texture" || program.text.is(at + 1, "<") => "textures",
        "cudaSurfaceObject_t" | "surface" if word != "surface" || program.text.is(at + 1, "<") => "surfaces",
        "wmma" if qualifies() => "tensor cores (wmma)",
        "thrust" if qualifies() => "thrust",
        "cub" if qualifies() => "cub",
        "this_grid" if synced() => "a grid-wide barrier (cooperative groups)",
        "this_cluster" | "cluster_group" if called() || word == "cluster_group" => "thread block clusters",
        "__nanosleep" if called() => "__nanosleep",
        _ if called() && is_texture_fetch(word) => "textures",
        _ if called() && is_surface_access(word) => "surfaces",
        _ if called() && word.starts_with("__mma_") => "tensor cores (mma)",
        _ => return None,
    })
}

/// Whether assembly begins at a token. `asm volatile("" ::: "memory")` is none: it holds back a compiler and does nothing.
pub fn starts_assembly(tokens: &[Token], at: usize) -> bool {
    if !tokens.get(at).is_some_and(|word| word.is("asm") || word.is("__asm__") || word.is("__asm")) {
        return false;
    }
    let is_qualifier = |word: &&Token| matches!(&*word.text, "volatile" | "__volatile__" | "inline" | "__inline__");
    let mut rest = tokens.iter().skip(at + 1).skip_while(is_qualifier).peekable();
    let opens = rest.next().is_some_and(|open| open.is("("));
    let is_empty = rest.next().is_some_and(|text| text.kind == TokenKind::String && &*text.text == "\"\"");
    // Strings side by side are one.
    let is_all = rest.peek().is_some_and(|next| next.kind != TokenKind::String);
    let names_clobbers =
        rest.find(|token| token.kind != TokenKind::String && !matches!(&*token.text, ":" | "::" | ","));
    !(opens && is_empty && is_all && names_clobbers.is_some_and(|close| close.is(")")))
}

/// How often names are taken back.
const ROUNDS: usize = 8;

/// The definitions of functions of these names, heads included, but for those that other code names as nvcc reads the text:
/// conditions may leave in for it what g++ does not see.
fn left_out(program: &Program, unreached: &BTreeSet<String>) -> Vec<Tokens> {
    let mut names = unreached.clone();
    for _ in 0..ROUNDS {
        let mut definitions = definitions(program, &names);
        definitions.sort_by_key(|definition| definition.start);
        let named = named_outside(program, &definitions, &names);
        if named.is_empty() {
            return definitions;
        }
        names.retain(|name| !named.contains(&**name));
    }
    Vec::new()
}

/// Those of the names that stand outside of these definitions, which are in order.
fn named_outside<'p>(program: &'p Program, definitions: &[Tokens], names: &BTreeSet<String>) -> BTreeSet<&'p str> {
    let (mut named, mut inside) = (BTreeSet::new(), 0);
    let mut rest = definitions.iter().peekable();
    for (at, token) in program.text.tokens.iter().enumerate() {
        while let Some(definition) = rest.next_if(|definition| definition.start <= at) {
            inside = inside.max(definition.end);
        }
        if at >= inside && token.is_identifier() && names.contains(&*token.text) {
            named.insert(&*token.text);
        }
    }
    named
}

/// The definitions of functions of these names, heads included.
fn definitions(program: &Program, names: &BTreeSet<String>) -> Vec<Tokens> {
    let named = program.functions.iter().filter(|function| function.owner.is_none() && names.contains(&*function.name));
    named
        .filter_map(|function| {
            let before = &program.text.tokens[..function.at];
            let ends = |token: &Token| token.is(";") || token.is("}") || token.is("{");
            Some(before.iter().rposition(ends).map_or(0, |end| end + 1)..function.body.as_ref()?.at.end)
        })
        .collect()
}

fn is_library(what: &str) -> bool {
    matches!(what, "thrust" | "cub")
}

fn in_any_body(program: &Program, at: usize) -> bool {
    let mut bodies = program.functions.iter().filter_map(|function| function.body.as_ref());
    bodies.any(|body| body.at.contains(&at))
}

fn is_texture_fetch(word: &str) -> bool {
    let dimensions = |rest: &str| rest.starts_with(['1', '2', '3', 'C']);
    word.strip_prefix("tex").is_some_and(dimensions) && word.len() <= 24 && word.contains('D')
        || word.starts_with("texCubemap")
}

fn is_surface_access(word: &str) -> bool {
    word.strip_prefix("surf")
        .is_some_and(|rest| rest.starts_with(['1', '2', '3']) && (rest.contains("read") || rest.contains("write")))
}

/// Bodies of functions that only the host runs: no kernel, and none of the words that put a function on the device.
fn host_bodies(program: &Program) -> Vec<Tokens> {
    let bodies = program.functions.iter().filter(|function| !function.global);
    bodies
        .filter(|function| !has_device_word(program, function.at))
        .filter_map(|function| function.body.as_ref().map(|body| body.at.clone()))
        .collect()
}

/// Whether `__device__` or `constexpr` stands in the declaration before a function's name.
fn has_device_word(program: &Program, name_at: usize) -> bool {
    let before = program.text.tokens.get(name_at.saturating_sub(24)..name_at).unwrap_or_default();
    let declaration = before.iter().rev().take_while(|token| !token.is(";") && !token.is("}") && !token.is("{"));
    declaration.into_iter().any(|token| token.is("__device__") || token.is("constexpr"))
}

/// Dynamic parallelism: the first launch inside each kernel or device function.
fn launches_from_kernels(program: &Program, left_out: &[Tokens]) -> Option<Construct> {
    let on_device = program.functions.iter().filter(|function| {
        !left_out.iter().any(|definition| definition.contains(&function.at))
            && (function.global || has_device_word(program, function.at) && !is_also_host(program, function.at))
    });
    let mut finder = LaunchFinder { first: None };
    for body in on_device.filter_map(|function| function.body.as_ref()) {
        walk::statement(body, &mut finder);
    }
    let line = program.text.line(finder.first?);
    Some(Construct { what: "a launch from device code (dynamic parallelism)".to_owned(), line })
}

fn is_also_host(program: &Program, name_at: usize) -> bool {
    let before = program.text.tokens.get(name_at.saturating_sub(24)..name_at).unwrap_or_default();
    let declaration = before.iter().rev().take_while(|token| !token.is(";") && !token.is("}") && !token.is("{"));
    declaration.into_iter().any(|token| token.is("__host__") || token.is("constexpr"))
}

struct LaunchFinder {
    first: Option<usize>,
}

impl<'p> Visitor<'p> for LaunchFinder {
    fn enter(&mut self, expression: &'p Expression) {
        if matches!(expression.kind, ExpressionKind::Launch(_)) {
            self.first = self.first.or(Some(expression.at.start));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assembly_without_a_text_is_none() {
        let starts = |text: &str| starts_assembly(&crate::submission::lexer::lex(text).tokens, 0);
        for text in ["asm volatile(\"\" ::: \"memory\");", "__asm__(\"\");", "asm(\"\" : : : \"memory\", \"cc\");"] {
            assert!(!starts(text), "{text}");
        }
        for text in
            ["asm(\"nop\");", "asm(\"\" : \"+r\"(x));", "asm(\"\" \"nop\");", "asm", "asm volatile(R\"(nop)\");"]
        {
            assert!(starts(text), "{text}");
        }
        assert!(!starts("plasma"));
    }

    fn found(text: &str) -> Vec<(String, u32)> {
        constructs(&Program::new(text)).into_iter().map(|construct| (construct.what, construct.line)).collect()
    }

    #[test]
    fn what_only_a_gpu_can_judge_is_named_with_its_line() {
        let text = "__device__ float f(const float* p) {\n  float v; asm volatile(\"ld.global.f32 %0, [%1];\" : \"=f\"(v) : \"l\"(p)); return v; }\n\
            __global__ void k(cudaTextureObject_t t, float* o) {\n  o[0] = tex2D<float>(t, 0, 0);\n  cg::this_grid().sync();\n  k<<<1, 1>>>(t, o); }\n";
        let found = found(text);
        let lines: Vec<u32> = found.iter().map(|(_, line)| *line).collect();
        assert_eq!(lines, [2, 3, 5, 6], "{found:?}");
    }

    #[test]
    fn comments_includes_strings_and_host_code_are_no_use() {
        let text = "#include <thrust/sort.h>\n// asm tex2D<float>(t)\n#if 0\nasm(\"\");\n#endif\nusing namespace nvcuda;\n\
            using Host = thrust::host_vector<float>; static thrust::host_vector<float> make(const cub::Thing& thing);\n\
            int main() { const char* s = \"asm\"; thrust::sort(a, b); cub::DeviceReduce::Sum(x); k<<<1, 1>>>(a, b, n, r); }\n\
            __global__ void k(const float* texture, float* o, int n, float r) { float surface = texture[0]; o[0] = surface; }\n";
        assert_eq!(found(text), []);
    }

    #[test]
    fn functions_that_are_not_reached_do_not_count() {
        let text = "__global__ void other(cudaTextureObject_t t, float* o) {\n o[0] = tex2D<float>(t, 0, 0); other<<<1, 1>>>(t, o); }\n\
            struct Box { __device__ void smid() { asm(\"nop;\"); } };\n\
            __device__ unsigned smid() {\n unsigned s; asm(\"mov.u32 %0, %%smid;\" : \"=r\"(s)); return s; }\n";
        let program = Program::new(text);
        let lines = |names: &[&str]| {
            let names = names.iter().map(ToString::to_string).collect();
            constructs_but(&program, &names).iter().map(|construct| construct.line).collect::<Vec<_>>()
        };
        assert_eq!(lines(&[]), [1, 2, 3]);
        assert_eq!(lines(&["smid"]), [1, 2, 3], "a method has that name");
    }

    #[test]
    fn a_function_that_other_code_names_counts() {
        let text = "__global__ void other(cudaTextureObject_t t, float* o) {\n o[0] = tex2D<float>(t, 0, 0); other<<<1, 1>>>(t, o); }\n\
            __device__ unsigned smid() {\n unsigned s; asm(\"mov.u32 %0, %%smid;\" : \"=r\"(s)); return s; }\n\
            __global__ void k(const float* a, float* b, int n, float r) { b[0] = USED; }\n";
        let lines = |used: &str, names: &[&str]| {
            let program = Program::new(&text.replace("USED", used));
            let names = names.iter().map(ToString::to_string).collect();
            constructs_but(&program, &names).iter().map(|construct| construct.line).collect::<Vec<_>>()
        };
        assert!(lines("0", &["other", "smid"]).is_empty());
        assert_eq!(lines("0", &["smid"]), [1, 2]);
        assert_eq!(lines("smid()", &["other", "smid"]), [4]);
        assert_eq!(lines("0, (void)&smid", &["other", "smid"]), [4]);
    }
}
