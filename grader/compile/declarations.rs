//! Declarations of locals in a kernel's text, and whether computing one again gives the same value. Pure.
//!
//! A reading by shape, not a C++ parser: what does not look like a plain declaration is none.

use crate::submission::lexer::{Token, TokenKind};

/// `const float a = 1.0f, *b = &x[0], c[4];`
pub struct Declaration<'t> {
    /// `const float`
    base: &'t [Token],
    pub declarators: Vec<Declarator<'t>>,
}

/// `*b = &x[0]`
pub struct Declarator<'t> {
    /// Stars, ampersands and const in front of the name.
    prefix: &'t [Token],
    pub name: &'t Token,
    /// Its array bounds, brackets included.
    bounds: &'t [Token],
    /// Its initialiser, without `=`; empty when there is none.
    initialiser: &'t [Token],
    /// Whether it stands in brackets behind the name, as a constructor's arguments do.
    constructed: bool,
}

/// What reading a name in an initialiser gives when it is read again after a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The same.
    Same,
    /// Perhaps something else, though its address is the same.
    Place,
    Differs,
}

/// The alias of cuda_runtime.h that lets a type which is spelled around its name stand in front of it.
pub const SPELLED: &str = "hg_spelled";

/// Words that start a statement which is no declaration.
const NOT_TYPES: [&str; 14] = [
    "if", "for", "while", "do", "switch", "return", "break", "continue", "goto", "case", "default", "delete", "else",
    "new",
];

/// The declaration that a statement is, if it looks like one.
pub fn declaration(statement: &[Token]) -> Option<Declaration<'_>> {
    if NOT_TYPES.iter().any(|word| statement.first().is_some_and(|first| first.is(word))) {
        return None;
    }
    let head = &statement[..head_length(statement)?];
    let (name, before) = head.split_last()?;
    let adjacent = before.last()?;
    let follows_type = adjacent.is_identifier() || [">", "*", "&", "&&"].iter().any(|end| adjacent.is(end));
    if !name.is_identifier() || !follows_type {
        return None;
    }
    let prefix = before.iter().rev().take_while(|token| is_pointer_part(token)).count();
    // In `const int x` the const belongs to the base; behind a star it is the declarator's.
    let starts = before[before.len() - prefix..].iter().position(|token| !token.is("const")).unwrap_or(prefix);
    let base_length = before.len() - prefix + starts;
    if base_length == 0 {
        return None;
    }
    let (base, rest) = statement.split_at(base_length);
    let rest = rest.strip_suffix_semicolon()?;
    let declarators = split_at_commas(rest).into_iter().map(declarator).collect::<Option<Vec<_>>>()?;
    Some(Declaration { base, declarators })
}

trait Statement {
    fn strip_suffix_semicolon(&self) -> Option<&Self>;
}

impl Statement for [Token] {
    fn strip_suffix_semicolon(&self) -> Option<&Self> {
        self.split_last().filter(|(last, _)| last.is(";")).map(|(_, rest)| rest)
    }
}

fn is_pointer_part(token: &Token) -> bool {
    ["*", "&", "&&", "const", "__restrict__", "__restrict"].iter().any(|part| token.is(part))
}

/// Tokens up to the end of the first declarator's name: a type's tokens, and one identifier.
fn head_length(statement: &[Token]) -> Option<usize> {
    let mut angles = 0;
    for (at, token) in statement.iter().enumerate() {
        match &*token.text {
            "<" => angles += 1,
            ">" => angles -= 1,
            ">>" => angles -= 2,
            "=" | "(" | "{" | "[" | ";" | "," if angles == 0 => return Some(at),
            "*" | "&" | "&&" | "::" => {}
            _ if token.is_identifier() || (angles > 0 && is_in_template_argument(token)) => {}
            _ => return None,
        }
    }
    None
}

fn is_in_template_argument(token: &Token) -> bool {
    token.kind == TokenKind::Number || [",", "(", ")", "[", "]"].iter().any(|part| token.is(part))
}

fn split_at_commas(tokens: &[Token]) -> Vec<&[Token]> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match &*token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts
}

fn declarator(tokens: &[Token]) -> Option<Declarator<'_>> {
    let prefix = tokens.iter().take_while(|token| is_pointer_part(token)).count();
    let name = tokens.get(prefix).filter(|token| token.is_identifier())?;
    let rest = &tokens[prefix + 1..];
    let mut depth = 0;
    let bounds = rest
        .iter()
        .take_while(|token| {
            let inside = depth > 0 || token.is("[");
            depth += i32::from(token.is("[")) - i32::from(token.is("]"));
            inside
        })
        .count();
    let (bounds, initialiser) = rest.split_at(bounds);
    let (initialiser, constructed) = match initialiser.first() {
        None => (initialiser, false),
        Some(first) if first.is("=") => (&initialiser[1..], false),
        Some(first) if first.is("(") || first.is("{") => (initialiser, true),
        Some(_) => return None,
    };
    Some(Declarator { prefix: &tokens[..prefix], name, bounds, initialiser, constructed })
}

impl Declaration<'_> {
    /// Whether the same text gives the same values after a barrier: they are computed from what cannot have changed, and
    /// are not changed themselves anywhere in `body`. `reading` says what a name gives.
    pub fn gives_the_same_again(&self, body: &[Token], reading: impl Fn(&str) -> Reading) -> bool {
        let is_const = self.base.iter().any(|token| token.is("const"));
        self.declarators.iter().all(|declarator| {
            let name = &*declarator.name.text;
            // A reference stays bound to what it was bound to, whatever is assigned through it; a lambda is its text.
            let fixed =
                declarator.is_reference() || declarator.is_lambda() || (is_const && declarator.prefix.is_empty());
            let never_assigned = declarator.is_reference() || !is_assigned(name, body);
            fixed && never_assigned && declarator.bounds.is_empty() && declarator.is_pure(&reading)
        })
    }

    /// The type of one of its names that a constructor with arguments makes: without them there may be no such object.
    pub fn class_of(&self, declarator: &Declarator) -> Option<String> {
        let plain = declarator.prefix.is_empty() && declarator.bounds.is_empty();
        let words = self.base.iter().filter(|token| !token.is("const")).map(|token| &*token.text);
        let class = words.collect::<Vec<_>>().join(" ");
        (plain && declarator.constructed && class != "auto").then_some(class)
    }

    /// Whether its names point to arrays: `float (*rows)[34]`, as [`super::thread_loops`] spells it.
    pub fn is_spelled_out(&self) -> bool {
        self.base.iter().any(|token| token.is(SPELLED))
    }

    /// The declaration of one of its names without an initialiser; `None` when there is no such thing.
    pub fn uninitialised(&self, declarator: &Declarator) -> Option<String> {
        let words = |tokens: &[Token], keep_const: bool| {
            let kept = tokens.iter().filter(|token| keep_const || !token.is("const"));
            kept.map(|token| &*token.text).collect::<Vec<_>>().join(" ")
        };
        if declarator.is_reference() {
            return None;
        }
        let name = &declarator.name.text;
        if self.base.iter().any(|token| token.is("auto")) {
            let plain = declarator.prefix.is_empty() && declarator.bounds.is_empty();
            let value = words(declarator.initialiser, true);
            return (plain && !value.is_empty())
                .then(|| format!("std::remove_cv_t<std::remove_reference_t<decltype({value})>> {name}"));
        }
        let pointer = declarator.prefix.iter().any(|token| token.is("*"));
        let (base, prefix) = (words(self.base, pointer), words(declarator.prefix, false));
        Some(format!("{base} {prefix} {name} {}", words(declarator.bounds, true)))
    }
}

impl<'t> Declarator<'t> {
    /// Whether it names a place in memory that its initialiser says: a pointer made from a local would outlive it.
    pub fn is_pointer(&self) -> bool {
        self.prefix.iter().any(|token| token.is("*"))
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        !self.bounds.is_empty()
    }

    pub fn initialiser(&self) -> &'t [Token] {
        self.initialiser
    }

    fn is_lambda(&self) -> bool {
        self.initialiser.first().is_some_and(|token| token.is("["))
    }

    pub fn is_reference(&self) -> bool {
        self.prefix.iter().any(|token| token.is("&") || token.is("&&"))
    }

    /// Whether the initialiser reads no memory and calls nothing that might.
    fn is_pure(&self, reading: &impl Fn(&str) -> Reading) -> bool {
        let value = self.initialiser;
        let Some(first) = value.first() else { return false };
        // A lambda that captures by reference, or nothing: its body is not evaluated here.
        if first.is("[") {
            return value.get(1).is_some_and(|token| token.is("]"))
                || (value.get(1).is_some_and(|token| token.is("&"))
                    && value.get(2).is_some_and(|token| token.is("]")));
        }
        // The place of an element, not its value.
        let place = first.is("&") || self.is_reference();
        value.iter().enumerate().all(|(at, token)| {
            let before = at.checked_sub(1).map(|before| &value[before]);
            let operand_before = before.is_some_and(|token| {
                token.kind != TokenKind::Punctuation || [")", "]", "}", ">"].iter().any(|end| token.is(end))
            });
            let called = value.get(at + 1).is_some_and(|next| next.is("("));
            match token.kind {
                TokenKind::Number | TokenKind::Char => true,
                TokenKind::String => false,
                TokenKind::Identifier if PURE.contains(&&*token.text) || member(before) => true,
                TokenKind::Identifier => {
                    !called
                        && (reading(&token.text) == Reading::Same || place && reading(&token.text) == Reading::Place)
                }
                TokenKind::Punctuation => match &*token.text {
                    "*" => operand_before,
                    "[" | "]" => place,
                    "->" | "=" | "++" | "--" | ";" => false,
                    _ => true,
                },
            }
        })
    }
}

fn member(before: Option<&Token>) -> bool {
    before.is_some_and(|token| token.is(".") || token.is("::"))
}

/// What may be called in an initialiser: it depends on nothing but its arguments.
const PURE: [&str; 34] = [
    "static_cast",
    "reinterpret_cast",
    "const",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "int",
    "unsigned",
    "long",
    "short",
    "char",
    "bool",
    "float",
    "double",
    "size_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "ptrdiff_t",
    "sizeof",
    "alignof",
    "min",
    "max",
    "abs",
    "dim3",
    "make_int2",
    "make_uint2",
    "make_float2",
    "fminf",
    "fmaxf",
    "umin",
    "umax",
];

const ASSIGNMENTS: [&str; 13] = ["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"];

/// Where `name` stands as a name of its own: not as a member of something.
fn uses<'b>(name: &'b str, body: &'b [Token]) -> impl Iterator<Item = usize> + 'b {
    (0..body.len()).filter(move |&at| {
        let member = at.checked_sub(1).is_some_and(|before| body[before].is(".") || body[before].is("->"));
        body[at].is_identifier() && &*body[at].text == name && !member
    })
}

/// Whether `body` assigns to `name` beyond its declaration, or takes its address.
pub fn is_assigned(name: &str, body: &[Token]) -> bool {
    uses(name, body).any(|at| {
        let before = at.checked_sub(1).map(|before| &body[before]);
        let declares = before
            .is_some_and(|token| token.is_identifier() && !token.is("return") && !token.is("else") || token.is(">"));
        let unary = |token: &Token| token.is("++") || token.is("--");
        let element = body.get(at + 1).is_some_and(|next| next.is("["));
        let address = !element
            && before.is_some_and(|token| token.is("&"))
            && at.checked_sub(2).is_none_or(|before| {
                let token = &body[before];
                token.kind == TokenKind::Punctuation && ![")", "]", "}"].iter().any(|end| token.is(end))
            });
        if before.is_some_and(unary) || address || is_referred_to(body, at) {
            return true;
        }
        let assigned = body.get(at + 1).is_some_and(|next| ASSIGNMENTS.iter().any(|sign| next.is(sign)));
        assigned && !declares && !is_declarator(body, at)
    })
}

/// Whether the use at `at` is what a reference is bound to: `float& a = x;`
fn is_referred_to(body: &[Token], at: usize) -> bool {
    let whole = body.get(at + 1).is_some_and(|next| next.is(";") || next.is(","));
    whole && at >= 3 && body[at - 1].is("=") && body[at - 2].is_identifier() && body[at - 3].is("&")
}

/// Whether the use at `at` is the name that a pointer's or reference's declaration gives: `float* p = x`.
fn is_declarator(body: &[Token], at: usize) -> bool {
    let star = at.checked_sub(1).is_some_and(|before| ["*", "&"].iter().any(|part| body[before].is(part)));
    star && at.checked_sub(2).is_some_and(|before| body[before].is_identifier())
}

/// Whether `name` stands alone as an argument of a call, which may take it by reference.
pub fn is_handed_on(name: &str, body: &[Token]) -> bool {
    uses(name, body).any(|at| {
        let opens = at.checked_sub(1).is_some_and(|before| body[before].is("(") || body[before].is(","));
        let closes = body.get(at + 1).is_some_and(|next| next.is(")") || next.is(","));
        let cast = at.checked_sub(2).is_some_and(|before| PURE.contains(&&*body[before].text));
        opens && closes && !cast
    })
}
