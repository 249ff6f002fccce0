//! Warp operations of a kernel that runs as loops: every thread lays its value down, the kernel is cut, and behind the cut
//! each reads its neighbour's. The functions are cuda_runtime.h's, which give the block up where this is not all there is to
//! it: lanes of a mask that is not the whole warp, or that the block does not have.

use std::fmt::Write;

use super::super::declarations::SPELLED;
use super::super::functions::{identifiers, matching, nesting, text_of};
use super::body::in_lambda;
use crate::submission::lexer::{Token, TokenKind};

/// The shuffles, each with the function that says whose value the running thread gets.
const SHUFFLES: [(&str, &str); 4] = [
    ("__shfl_sync", "hg_lane_of"),
    ("__shfl_up_sync", "hg_lane_up"),
    ("__shfl_down_sync", "hg_lane_down"),
    ("__shfl_xor_sync", "hg_lane_xor"),
];

const SYNC: &str = "__syncwarp";

/// Names of this runtime that respelled text may use.
pub fn is_ours(name: &str) -> bool {
    const MADE: [&str; 5] = ["hg_thread", "hg_warp_whole", "hg_warp_gives", "hg_warp_takes", SPELLED];
    MADE.contains(&name) || SHUFFLES.iter().any(|(_, lane)| *lane == name)
}

/// A statement that is a warp operation, or holds some that are sure to be made once: values laid down, a barrier, and the
/// statement reading them. `slots` counts the values of a kernel.
pub fn laid_down(statement: &[Token], slots: &mut usize) -> Option<String> {
    if let Some(mask) = sync(statement) {
        return Some(format!("hg_warp_whole({}); hg_sync_threads(0); ", text_of(mask)));
    }
    if names_shuffle(statement) && is_simple(statement) { apart(statement, slots) } else { None }
}

/// The mask of a statement that is `__syncwarp(mask);` and nothing else.
fn sync(statement: &[Token]) -> Option<&[Token]> {
    let [name, open, mask @ .., close, end] = statement else { return None };
    let whole = name.is(SYNC) && open.is("(") && close.is(")") && end.is(";");
    (whole && matching(statement, 1) == Some(statement.len() - 2)).then_some(mask)
}

fn shuffle(token: &Token) -> Option<&'static str> {
    SHUFFLES.iter().find(|(name, _)| token.is(name)).map(|(_, lane)| *lane)
}

fn names_shuffle(statement: &[Token]) -> bool {
    statement.iter().any(|token| shuffle(token).is_some())
}

/// Whether everything in a statement is evaluated, once, and in no order that matters to its shuffles.
fn is_simple(statement: &[Token]) -> bool {
    const COMPOUND: [&str; 9] = ["if", "for", "while", "switch", "do", "else", "{", "return", "case"];
    const CONDITIONAL: [&str; 7] = ["?", "&&", "||", "and", "or", "++", "--"];
    let mut depth = 0;
    let in_a_row = statement.iter().any(|token| {
        depth += nesting(token);
        depth == 0 && token.is(",")
    });
    let assignments = statement.iter().filter(|token| token.kind == TokenKind::Punctuation && token.is("=")).count();
    !COMPOUND.iter().any(|word| statement[0].is(word))
        && !statement.iter().any(|token| CONDITIONAL.iter().any(|word| token.is(word)))
        && !in_lambda(statement).contains(&true)
        && !identifiers(statement).any(|name| name.starts_with("hg_"))
        && !in_a_row
        && assignments <= 1
}

/// The statement in two: its shuffles' values laid down, and behind a barrier itself, reading them.
fn apart(statement: &[Token], slots: &mut usize) -> Option<String> {
    let (mut gives, mut reads) = (String::new(), String::new());
    let mut at = 0;
    while at < statement.len() {
        let Some(lane) = shuffle(&statement[at]) else {
            let _ = write!(reads, "{} ", statement[at].text);
            at += 1;
            continue;
        };
        let close = matching(statement, at + 1).filter(|_| statement[at + 1].is("("))?;
        let inside = &statement[at + 2..close];
        let arguments = arguments(inside);
        let (mask, value, whose) = match arguments.as_slice() {
            [mask, value, whose @ ..] if matches!(whose.len(), 1 | 2) => (text_of(mask), text_of(value), whose),
            _ => return None,
        };
        if names_shuffle(inside) || inside.iter().any(|token| token.is("=")) {
            return None;
        }
        let whose = whose.iter().map(|argument| text_of(argument)).collect::<Vec<_>>().join(", ");
        let slot = *slots;
        *slots += 1;
        let _ = write!(gives, "hg_warp_gives<{slot}>(hg_thread, {mask}, {value}); ");
        // The value stands here a second time for its type, unevaluated.
        let _ = write!(
            reads,
            "hg_warp_takes<{slot}>(hg_thread, {lane}(hg_thread & 31u, {whose}), (std::decay_t<decltype({value})>*)0) "
        );
        at = close + 1;
    }
    Some(format!("{gives}hg_sync_threads(0); {reads}"))
}

/// What stands between the commas that stand in no brackets.
fn arguments(inside: &[Token]) -> Vec<&[Token]> {
    let mut depth = 0;
    let split = inside.split(|token| {
        depth += nesting(token);
        depth == 0 && token.is(",")
    });
    split.collect()
}
