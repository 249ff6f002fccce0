//! Rows and columns that are one number: `#define NX 2048` beside `#define NY 2048`. The kernel has one n, so when one
//! of two such names stands for n, the other does too.

use std::collections::HashMap;
use std::sync::Arc;

use super::lexer::{Token, TokenKind};
use super::program::Program;
use super::value::Identity;

/// What ends one name of a pair, and what ends the other.
const PAIRS: [(&str, &str); 9] = [
    ("x", "y"),
    ("width", "height"),
    ("w", "h"),
    ("cols", "rows"),
    ("columns", "rows"),
    ("col", "row"),
    ("j", "i"),
    ("n", "m"),
    ("1", "2"),
];

/// Tokens of an initial value that are compared.
const LONGEST: usize = 24;

/// Adds the twins of the names that stand for n.
pub fn add(program: &Program, n: &mut HashMap<Identity, i128>) {
    let mut found = Vec::new();
    for (identity, distance) in n.iter() {
        let twins = match identity {
            Identity::Macro(name) => macros(program, name),
            Identity::Token(at) => variables(program, *at),
        };
        found.extend(twins.into_iter().map(|twin| (twin, *distance)));
    }
    for (twin, distance) in found {
        n.entry(twin).or_insert(distance);
    }
}

fn macros(program: &Program, name: &str) -> Vec<Identity> {
    let value = |name: &str| program.constants.get(name).and_then(|found| number(&found.value.kind));
    let Some(own) = value(name) else { return Vec::new() };
    let twins = names(name).into_iter().filter(|twin| value(twin).as_ref() == Some(&own));
    twins.map(|twin| Identity::Macro(twin.into())).collect()
}

fn number(kind: &super::tree::ExpressionKind) -> Option<Arc<str>> {
    match kind {
        super::tree::ExpressionKind::Number(text) => Some(text.clone()),
        _ => None,
    }
}

/// Variables that are declared with the same initial value, be it a literal or the same words with one.
fn variables(program: &Program, at: usize) -> Vec<Identity> {
    let tokens = &program.text.tokens;
    let Some(name) = tokens.get(at).filter(|token| token.is_identifier()) else { return Vec::new() };
    let Some(own) = initial(tokens, at) else { return Vec::new() };
    let twins = names(&name.text);
    let is_twin = |&other: &usize| {
        tokens.get(other).is_some_and(|token| token.is_identifier() && twins.iter().any(|twin| **twin == *token.text))
            && initial(tokens, other) == Some(own)
    };
    // Close to each other, as two declarations that belong together are.
    let near = at.saturating_sub(200)..(at + 200).min(tokens.len());
    near.filter(is_twin).map(Identity::Token).collect()
}

/// The number that a declaration's initial value ends with.
fn initial(tokens: &[Token], at: usize) -> Option<&str> {
    let opens = tokens.get(at + 1).filter(|token| matches!(&*token.text, "=" | "{" | "("))?;
    let mut depth = 0i32;
    let mut last = None;
    for token in tokens.get(at + 2..)?.iter().take(LONGEST) {
        match &*token.text {
            "(" | "{" | "[" => depth += 1,
            ")" | "}" | "]" if depth == 0 => return last.filter(|_| !opens.is("=")),
            ")" | "}" | "]" => depth -= 1,
            ";" | "," if depth == 0 && opens.is("=") => return last,
            _ => {}
        }
        last = (token.kind == TokenKind::Number).then_some(&*token.text);
    }
    None
}

/// The names that pair with one: NY with NX, height with width.
fn names(name: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut add = |from: &str, to: &str| {
        for (from, to) in
            [(from.to_owned(), to.to_owned()), (from.to_uppercase(), to.to_uppercase()), (title(from), title(to))]
        {
            for (at, _) in name.match_indices(&from) {
                names.push(format!("{}{to}{}", &name[..at], &name[at + from.len()..]));
            }
        }
    };
    for (one, other) in PAIRS {
        add(one, other);
        add(other, one);
    }
    names.retain(|twin| twin != name);
    names
}

fn title(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
