//! Operators and how strongly they bind.

use super::find::Found;
use super::interpreter::Interpreter;
use super::lexer::{Token, TokenKind};
use super::overloads::{Given, Meant, TORN, takes};
use super::program::Function;
use super::tree::{Expression, ExpressionKind, Operator};
use super::value::{Data, Value};

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
/// What a struct's own operator is called.
fn operator_name(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "operator+",
        Operator::Subtract => "operator-",
        Operator::Multiply => "operator*",
        Operator::Divide => "operator/",
        Operator::Remainder => "operator%",
        Operator::ShiftLeft => "operator<<",
        Operator::ShiftRight => "operator>>",
        Operator::BitAnd => "operator&",
        Operator::BitOr => "operator|",
        Operator::BitXor => "operator^",
        Operator::And => "operator&&",
        Operator::Or => "operator||",
        Operator::Equal => "operator==",
        Operator::Unequal => "operator!=",
        Operator::Less => "operator<",
        Operator::Greater => "operator>",
        Operator::LessEqual => "operator<=",
        Operator::GreaterEqual => "operator>=",
    }
}

impl Interpreter<'_> {
    /// What an operator gives that the text defines for objects; nothing where there is none.
    pub fn own_operator(
        &mut self,
        operator: Operator,
        left: &Value,
        right: &Value,
        whole: &Expression,
    ) -> Option<Value> {
        let is_object = |value: &Value| matches!(value.data, Data::Object { .. }) && !value.address;
        if !is_object(left) && !is_object(right) {
            return None;
        }
        let name = operator_name(operator);
        if let Data::Object { .. } = &left.data {
            let place = left.place.clone().unwrap_or_else(|| self.placed(left.clone()));
            let called = self.call_operator(name, &Found::At(place), &[known(right, whole)], whole);
            if called.is_some() {
                return called;
            }
        }
        let free = |(_, function): &(usize, &Function)| {
            &*function.name == name && function.owner.is_none() && function.body.is_some() && takes(function, 2)
        };
        let free: Vec<usize> = self.program.functions.iter().enumerate().filter(free).map(|found| found.0).collect();
        match self.best(&free, &[Given::of_value(left), Given::of_value(right)]) {
            Meant::One(index) => Some(self.call_free(index, &[known(left, whole), known(right, whole)], whole)),
            Meant::Torn => Some(self.unknown(whole, TORN)),
            Meant::Nothing => None,
        }
    }
}

/// An operand that has been worked out.
fn known(value: &Value, whole: &Expression) -> Expression {
    Expression { kind: ExpressionKind::Known(Box::new(value.clone())), at: whole.at.clone(), height: 1 }
}

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
