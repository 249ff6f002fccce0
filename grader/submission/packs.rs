//! Packs of arguments: `sizeof...(pack)`, `(pack + ...)`, and patterns such as `(2 * pack)...`.

use std::sync::Arc;

use super::arithmetic::binary;
use super::interpreter::Interpreter;
use super::operators::{assignment_operator, binary_operator};
use super::parser::Parser;
use super::places::Root;
use super::tree::{Expression, ExpressionKind, Name, Operator};
use super::types::{Base, SIZE, Type};
use super::value::{Data, Value};
use super::walk::{self, Visitor};

/// What the callee of `sizeof...(pack)` is called.
pub const SIZE_OF_PACK: &str = "sizeof...";
/// What the callee of `(pack + ...)` is called, before the operator.
pub const FOLD: &str = "fold ";

/// Values of one pack that are followed.
const MOST: usize = 256;

impl Parser<'_> {
    /// `(pack + ...)`, `(... + pack)`, `(first + ... + pack)` and the last two turned around, as a call of its operator.
    pub fn fold(&mut self) -> Option<Expression> {
        let (begin, close) = (self.at, self.text.partner(self.at));
        let dots = (begin + 1..close.min(begin + 120)).find(|at| self.text.is(*at, "..."))?;
        let operator_at = if dots == begin + 1 { dots + 1 } else { dots.checked_sub(1)? };
        let operator = self.text.tokens.get(operator_at)?;
        let is_operator = operator.is(",")
            || binary_operator(operator).or(assignment_operator(operator).map(|_| (Operator::Add, 0))).is_some();
        if !is_operator || close >= self.end {
            return None;
        }
        let word = operator.text.clone();
        let read = self.deeper(|parser| parser.fold_parts(begin, dots, close));
        self.at = begin;
        let parts = read?;
        self.at = close + 1;
        let name = Name { path: format!("{FOLD}{word}").into(), arguments: None, scope: None };
        let callee = Expression { kind: ExpressionKind::Name(name), at: operator_at..operator_at + 1, height: 1 };
        Some(self.node(begin, ExpressionKind::Call(Box::new(callee), parts)))
    }

    fn fold_parts(&mut self, begin: usize, dots: usize, close: usize) -> Option<Vec<Expression>> {
        let mut parts = Vec::new();
        if dots > begin + 2 {
            parts.push(self.fold_part(begin + 1, dots - 1)?);
        }
        if dots + 2 < close {
            parts.push(self.fold_part(dots + 2, close)?);
        }
        // Which of two is the pack shows when they are evaluated.
        Some(parts.into_iter().map(spread).collect()).filter(|parts: &Vec<_>| !parts.is_empty())
    }

    /// One part of a fold, between two tokens.
    fn fold_part(&mut self, begin: usize, end: usize) -> Option<Expression> {
        let outer = std::mem::replace(&mut self.end, end);
        self.at = begin;
        let part = self.unary().filter(|_| self.at == end);
        self.end = outer;
        part
    }
}

fn spread(part: Expression) -> Expression {
    let (at, height) = (part.at.clone(), part.height.saturating_add(1));
    Expression { kind: ExpressionKind::Spread(Box::new(part)), at, height }
}

/// The names in an expression.
struct Names<'p>(Vec<&'p Arc<str>>);

impl<'p> Visitor<'p> for Names<'p> {
    fn enter(&mut self, expression: &'p Expression) {
        if let ExpressionKind::Name(name) = &expression.kind {
            self.0.push(&name.path);
        }
    }
}

impl Interpreter<'_> {
    /// The values of a pattern for each value of the packs in it; nothing where it is a pack alone, or has none.
    pub fn spread_pattern(&mut self, pattern: &Expression) -> Option<Vec<Value>> {
        if matches!(pattern.kind, ExpressionKind::Name(_)) {
            return None;
        }
        let mut names = Names(Vec::new());
        walk::expression(pattern, &mut names);
        let mut packs: Vec<(Arc<str>, usize, Value)> = Vec::new();
        for name in names.0.into_iter().take(MOST) {
            let Some(place) = self.slot_place(name) else { continue };
            let Root::Slot { name_at, .. } = place.root else { continue };
            if self.packs.contains(&name_at) && packs.iter().all(|known| known.0 != *name) {
                packs.push((name.clone(), name_at, self.kept(&place)?.clone()));
            }
        }
        let count = match packs.first().map(|pack| &pack.2.data) {
            Some(Data::List(items)) => items.len().min(MOST),
            _ => return None,
        };
        let mut values = Vec::new();
        for index in 0..count {
            self.open_scope();
            for (name, name_at, pack) in &packs {
                let item =
                    self.part(pack, index).unwrap_or_else(|| self.unknown(pattern, "is not known from the text"));
                // One value of a pack may stand for n where the others do not.
                let alone = self.program.text.tokens.len() + name_at + index;
                self.declare(name.clone(), alone, Type::of(Base::Auto), item);
            }
            let value = self.evaluate(pattern);
            self.close_scope();
            values.push(value.copied());
        }
        Some(values)
    }

    /// `sizeof...(pack)`
    pub fn size_of_pack(&mut self, arguments: &[Expression], whole: &Expression) -> Value {
        let [Expression { kind: ExpressionKind::Name(name), .. }] = arguments else {
            return self.unknown(whole, "is the size of an unknown type");
        };
        let own = self.slot_place(&name.path);
        let place = own.or_else(|| self.pack_of_type(&name.path).and_then(|pack| self.slot_place(&pack)));
        match place.and_then(|place| self.kept(&place)).map(|kept| &kept.data) {
            Some(Data::List(items)) => Value::integer(items.len() as i128, &SIZE),
            _ => self.unknown(whole, "is the size of an unknown type"),
        }
    }

    /// `args` of `T... args`, in the function being followed.
    fn pack_of_type(&self, kind: &str) -> Option<Arc<str>> {
        let path = self.path_here();
        let here = self.program.functions.iter().filter(|function| function.path == path);
        let mut packs = here
            .flat_map(|function| function.parameters.iter().flatten())
            .filter(|parameter| parameter.pack && matches!(&parameter.kind.base, Base::Named(name) if &**name == kind));
        packs.next().and_then(|parameter| parameter.name.clone())
    }

    /// `(pack + ...)`
    pub fn folded(&mut self, path: &str, arguments: &[Expression], whole: &Expression) -> Value {
        let word = path.strip_prefix(FOLD).unwrap_or_default();
        let values = self.spread(arguments);
        if word == "," {
            return values.into_iter().next_back().unwrap_or_else(|| Value::int(0));
        }
        let token = super::lexer::lex(word).tokens.into_iter().next();
        let Some((operator, _)) = token.as_ref().and_then(binary_operator) else {
            self.forget_effects(whole, "is changed in a fold that the grader does not follow");
            return self.unknown(whole, "has no value that the text gives");
        };
        use Operator::{Add, And, BitAnd, BitOr, BitXor, Multiply, Or};
        // Other folds than `(... - pack)` may be worked out from their end.
        let in_order = self.program.text.is(whole.at.start + 1, "...")
            || matches!(operator, Add | Multiply | And | Or | BitAnd | BitOr | BitXor);
        let mut values = values.into_iter();
        let Some(first) = values.next() else {
            return match operator {
                Operator::And => Value::boolean(true),
                Operator::Or => Value::boolean(false),
                _ => self.unknown(whole, "has no value that the text gives"),
            };
        };
        let first = match operator {
            Operator::And | Operator::Or => first.truth().map(Value::boolean),
            _ => Some(first),
        };
        let result = values.try_fold(first, |sum, value| Some(binary(operator, &sum?, &value)));
        let result = result.flatten().filter(|_| in_order);
        result.unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }
}
