//! Tables in global memory that nobody writes (`__device__ const float weights[5]`): g++ puts no hook before their reads, as
//! data that cannot change has no races; a GPU loads them like any other global memory. Pure.
//!
//! Without their `const` they have hooks. That is for tables that are read at an index which is only known when the kernel
//! runs: what a constant index reads is folded by both compilers.

use std::collections::BTreeMap;

use super::rewrite::{Edits, OwnText, before, ends_before_declaration, in_function};
use crate::submission::lexer::{Token, TokenKind, lex};

/// A preprocessed text in which those of these names that heat.cu declares as constants of the whole program are variables,
/// and which they are; each has the line of a read. An automatic array is local memory, and a `__constant__` one constant
/// memory: they stay.
pub fn writable(text: &str, names: &BTreeMap<String, u32>) -> (String, BTreeMap<String, u32>) {
    let tokens: Vec<Token> = lex(text).tokens.into_iter().filter(|token| !token.directive).collect();
    let own = OwnText::of(text);
    let (mut edits, mut found) = (Edits::default(), BTreeMap::new());
    for at in 0..tokens.len() {
        let Some((name, line)) = names.get_key_value(&*tokens[at].text).filter(|_| own.holds(&tokens[at])) else {
            continue;
        };
        let Some(start) = declaration_of(&tokens, at) else { continue };
        let local = in_function(&tokens[..start]);
        let specifiers = &tokens[start..at];
        let has = |word: &str| specifiers.iter().any(|token| token.is(word));
        let constant =
            specifiers.iter().any(|token| token.kind == TokenKind::String && token.text.contains("hg_constant."));
        if constant || (local && !has("static")) || !(has("const") || has("constexpr")) {
            continue;
        }
        found.insert(name.clone(), *line);
        for token in specifiers.iter().filter(|token| token.is("const")) {
            edits.blank(token.span.clone());
        }
        for token in specifiers.iter().filter(|token| token.is("constexpr")) {
            // A member of a class is a definition only with it.
            edits.replace(token.span.clone(), if local || has("inline") { "" } else { "inline" });
        }
    }
    (edits.apply(text), found)
}

/// Where the declaration begins whose declarator is the name at a position; `None` where the name is used.
fn declaration_of(tokens: &[Token], at: usize) -> Option<usize> {
    let follows = tokens.get(at + 1).is_some_and(|next| ["[", "=", "{", ";", ","].iter().any(|mark| next.is(mark)));
    let type_ends = |token: &Token| token.is_identifier() || [">", "*", "&", ",", ")"].iter().any(|end| token.is(end));
    if !follows || !before(tokens, at).is_some_and(type_ends) {
        return None;
    }
    let (mut start, mut depth) = (at, 0);
    while let Some(token) = before(tokens, start) {
        let closes = [")", "]", "}"].iter().any(|mark| token.is(mark));
        let opens = ["(", "[", "{"].iter().any(|mark| token.is(mark));
        // Behind a bracket that closes, another declarator or attribute; else what came before this declaration.
        let ends = depth == 0
            && match &*token.text {
                "}" => !tokens[start].is(","),
                ")" | "]" => false,
                _ => opens || ends_before_declaration(token),
            };
        if ends {
            break;
        }
        depth += i32::from(closes) - i32::from(opens);
        start -= 1;
    }
    let is_declared = before(tokens, start).is_none_or(|end| !end.is("("));
    is_declared.then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(text: &str) -> String {
        let names = ["t", "u"].map(|name| (name.to_owned(), 7)).into_iter().collect();
        let (text, found) = writable(&format!("# 1 \"heat.cu\"\n{text}\n"), &names);
        let words = text.split_whitespace().skip(3).collect::<Vec<_>>().join(" ");
        format!("{words} | {}", found.into_keys().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn constants_of_the_whole_program_become_variables() {
        assert_eq!(made("static const float t[4] = {1};"), "static float t[4] = {1}; | t");
        assert_eq!(made("int a; float const t[2][2] = {{1}};"), "int a; float t[2][2] = {{1}}; | t");
        assert_eq!(
            made("void k() { static constexpr int t[2] = {1, 2}; }"),
            "void k() { static int t[2] = {1, 2}; } | t"
        );
        assert_eq!(
            made("struct S { static constexpr int t[2] = {1, 2}; };"),
            "struct S { static inline int t[2] = {1, 2}; }; | t"
        );
        assert_eq!(made("inline constexpr std::array<int, 2> t{1, 2};"), "inline std::array<int, 2> t{1, 2}; | t");
        assert_eq!(
            made("const alignas(8) int t[2] = {1}, u[2] = {2};"),
            "alignas(8) int t[2] = {1}, u[2] = {2}; | t u"
        );
        assert_eq!(made("template <class T> const T t[1] = {1};"), "template <class T> T t[1] = {1}; | t");
    }

    #[test]
    fn what_is_no_global_memory_stays() {
        for text in [
            "void k() { const int t[2] = {1, 2}; }",
            "void k(const float* t) { g(t[2]); }",
            "const __attribute__((section(\"hg_constant.\" \"3\"))) float t[2] = {1};",
            "static float t[2];",
            "const int a = t[2];",
            "const int a[2] = {1, t[2]};",
        ] {
            assert_eq!(made(text), format!("{text} | "));
        }
        let names = [("t".to_owned(), 7)].into_iter().collect();
        let header = "# 1 \"heat.cu\"\n# 1 \"x.h\" 1\nconst int t[2] = {1};\n# 2 \"heat.cu\" 2\n";
        assert_eq!(writable(header, &names), (header.to_owned(), BTreeMap::new()));
    }
}
