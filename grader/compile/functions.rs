//! Functions of preprocessed heat.cu, by the shape of their text. Pure.

use std::collections::BTreeSet;
use std::ops::Range;

use super::diagnostics::SOURCE_NAME;
use crate::submission::lexer::{Token, TokenKind, lex};

/// The tokens of preprocessed text that come from heat.cu itself.
pub fn of_heat_cu(cpp: &str) -> Vec<Token> {
    by_origin(cpp).0
}

/// The tokens of preprocessed text: those of heat.cu itself, and those of the headers.
pub fn by_origin(cpp: &str) -> (Vec<Token>, Vec<Token>) {
    let mut own = false;
    let (mut of_heat_cu, mut of_headers) = (Vec::new(), Vec::new());
    let mut numbered = false;
    for token in lex(cpp).tokens {
        // A line marker: `# 12 "heat.cu"`.
        if numbered && token.directive && token.kind == TokenKind::String {
            own = token.text.trim_matches('"') == SOURCE_NAME;
        }
        numbered = token.directive && token.kind == TokenKind::Number;
        if !token.directive {
            if own { &mut of_heat_cu } else { &mut of_headers }.push(token);
        }
    }
    (of_heat_cu, of_headers)
}

/// The declarations outside functions and structs, as ranges of tokens.
pub fn declarations(tokens: &[Token]) -> Vec<Range<usize>> {
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

/// These names and all that they lead to: a function of a name leads to what its body uses.
pub fn led_to<'t>(
    names: impl IntoIterator<Item = &'t str>,
    uses: &[(&'t str, BTreeSet<&'t str>)],
) -> BTreeSet<&'t str> {
    let mut reached: BTreeSet<&str> = names.into_iter().collect();
    loop {
        let known = reached.len();
        for (function, used) in uses {
            if reached.contains(function) {
                reached.extend(used);
            }
        }
        if reached.len() == known {
            return reached;
        }
    }
}

/// `twoStep` of `ns::twoStep<32, 8>`; `None` when that spelling stands in it twice.
pub fn kernel_name(call: &str) -> Option<String> {
    let path = call.split('<').next()?;
    let name = path.rsplit("::").next()?.trim().to_owned();
    (!name.is_empty() && call.matches(name.as_str()).count() == 1).then_some(name)
}

/// A function's definition.
#[derive(Clone, Copy)]
pub struct Function<'t> {
    pub name: &'t Token,
    /// From `template` or the return type to the closing bracket of the parameters.
    pub head: &'t [Token],
    /// Without its braces.
    pub body: &'t [Token],
}

impl<'t> Function<'t> {
    /// All definitions in a text.
    pub fn all(tokens: &'t [Token]) -> Vec<Self> {
        (1..tokens.len()).filter_map(|at| Self::at(tokens, at)).collect()
    }

    /// The only definition of this name.
    pub fn only(tokens: &'t [Token], name: &str) -> Option<Self> {
        let mut named = Self::all(tokens).into_iter().filter(|function| function.name.is(name));
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }

    /// The definition whose parameters open at `open`.
    fn at(tokens: &'t [Token], open: usize) -> Option<Self> {
        const NOT_NAMES: [&str; 6] = ["if", "for", "while", "switch", "catch", "decltype"];
        let name = tokens.get(open.checked_sub(1)?)?;
        if !tokens[open].is("(") || !name.is_identifier() || NOT_NAMES.contains(&&*name.text) {
            return None;
        }
        let close = matching(tokens, open)?;
        let brace = close + 1 + tokens[close + 1..].iter().position(|token| token.is("{") || !token.is_identifier())?;
        if !tokens[brace].is("{") {
            return None;
        }
        let start = tokens[..open - 1].iter().rposition(ends_declaration).map_or(0, |end| end + 1);
        Some(Self { name, head: &tokens[start..=close], body: &tokens[brace + 1..matching(tokens, brace)?] })
    }

    pub fn parameters(&self) -> &'t [Token] {
        let open = self.head.iter().position(|token| std::ptr::eq(token, self.name)).map_or(0, |at| at + 1);
        &self.head[open..]
    }
}

fn ends_declaration(token: &Token) -> bool {
    [";", "{", "}"].iter().any(|end| token.is(end))
}

/// The bracket that closes the one at `open`.
pub fn matching(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0;
    tokens[open..]
        .iter()
        .position(|token| {
            depth += nesting(token);
            depth == 0
        })
        .map(|length| open + length)
}

pub fn nesting(token: &Token) -> i32 {
    match &*token.text {
        "(" | "[" | "{" => 1,
        ")" | "]" | "}" => -1,
        _ => 0,
    }
}

pub fn text_of(tokens: &[Token]) -> String {
    tokens.iter().map(|token| &*token.text).collect::<Vec<_>>().join(" ")
}

pub fn identifiers(tokens: &[Token]) -> impl Iterator<Item = &str> {
    tokens.iter().filter(|token| token.is_identifier()).map(|token| &*token.text)
}
