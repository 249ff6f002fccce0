//! Operators and how strongly they bind.

use super::lexer::{Token, TokenKind};
use super::tree::Operator;

/// The operator of an assignment, none for `=`; nothing for any other token.
pub fn assignment_operator(token: &Token) -> Option<Option<Operator>> {
    if token.kind != TokenKind::Punctuation {
        return None;
    }
    Some(match &*token.text {
        "=" => None,
        "+=" => Some(Operator::Add),
        "-=" => Some(Operator::Subtract),
        "*=" => Some(Operator::Multiply),
        "/=" => Some(Operator::Divide),
        "%=" => Some(Operator::Remainder),
        "<<=" => Some(Operator::ShiftLeft),
        ">>=" => Some(Operator::ShiftRight),
        "&=" => Some(Operator::BitAnd),
        "|=" => Some(Operator::BitOr),
        "^=" => Some(Operator::BitXor),
        _ => return None,
    })
}

/// An operator between two values, and how strongly it binds.
pub fn binary_operator(token: &Token) -> Option<(Operator, u8)> {
    Some(match &*token.text {
        "||" => (Operator::Or, 0),
        "&&" => (Operator::And, 1),
        "|" => (Operator::BitOr, 2),
        "^" => (Operator::BitXor, 3),
        "&" => (Operator::BitAnd, 4),
        "==" => (Operator::Equal, 5),
        "!=" => (Operator::Unequal, 5),
        "<" => (Operator::Less, 6),
        ">" => (Operator::Greater, 6),
        "<=" => (Operator::LessEqual, 6),
        ">=" => (Operator::GreaterEqual, 6),
        "<<" => (Operator::ShiftLeft, 7),
        ">>" => (Operator::ShiftRight, 7),
        "+" => (Operator::Add, 8),
        "-" => (Operator::Subtract, 8),
        "*" => (Operator::Multiply, 9),
        "/" => (Operator::Divide, 9),
        "%" => (Operator::Remainder, 9),
        _ => return None,
    })
}
