//! Functions of preprocessed heat.cu, by the shape of their text. Pure.

use super::diagnostics::SOURCE_NAME;
use crate::submission::lexer::{Token, TokenKind, lex};

/// The tokens of preprocessed text that come from heat.cu itself.
pub fn of_heat_cu(cpp: &str) -> Vec<Token> {
    let mut own = false;
    let mut tokens = Vec::new();
    let mut numbered = false;
    for token in lex(cpp).tokens {
        // A line marker: `# 12 "heat.cu"`.
        if numbered && token.directive && token.kind == TokenKind::String {
            own = token.text.trim_matches('"') == SOURCE_NAME;
        }
        numbered = token.directive && token.kind == TokenKind::Number;
        if own && !token.directive {
            tokens.push(token);
        }
    }
    tokens
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
