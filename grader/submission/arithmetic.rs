//! C++'s arithmetic: division truncates, unsigned wraps, float rounds; and the values of literals.

use super::tree::Operator;
use super::types::{Base, INT, SIZE, UNSIGNED};
use super::value::{Data, Identity, Value, real, wrapped};

/// The names that a sum follows: those of the part that makes up most of it, farther by the other part.
pub fn sum_origin(operator: Operator, left: &Value, right: &Value, sum: &Value) -> Vec<(Identity, i128)> {
    let numbers = (left.as_integer(), right.as_integer(), sum.as_integer());
    let (Some(a), Some(b), Some(sum)) = numbers else { return Vec::new() };
    let leads = |part: i128| part > 0 && part > sum / 2;
    let (part, distance) = match operator {
        Operator::Add if leads(a) => (left, b),
        Operator::Add if leads(b) => (right, a),
        Operator::Subtract if leads(a) => (left, -b),
        Operator::Multiply | Operator::Divide if b == 1 => (left, 0),
        Operator::Multiply if a == 1 => (right, 0),
        _ => return Vec::new(),
    };
    let farther = |(name, before): &(Identity, i128)| Some((name.clone(), before.checked_add(distance)?));
    part.origin.iter().filter_map(farther).collect()
}

/// Two values under an operator; nothing for what has no value, such as a division by zero.
pub fn binary(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    match (&left.data, &right.data) {
        (
            Data::Integer { value: a, bits: a_bits, signed: a_signed },
            Data::Integer { value: b, bits: b_bits, signed: b_signed },
        ) => {
            let left = promoted(*a_bits, *a_signed);
            let right = promoted(*b_bits, *b_signed);
            let shift = matches!(operator, Operator::ShiftLeft | Operator::ShiftRight);
            let (bits, signed) = if shift { left } else { common(left, right) };
            integers(operator, cut(*a, bits, signed), cut(*b, bits, signed), bits, signed)
        }
        (Data::Integer { .. } | Data::Float { .. }, Data::Integer { .. } | Data::Float { .. }) => {
            let double = |value: &Value| matches!(value.data, Data::Float { single: false, .. });
            reals(operator, left.as_float()?, right.as_float()?, !double(left) && !double(right))
        }
        _ => None,
    }
}

fn promoted(bits: u8, signed: bool) -> (u8, bool) {
    if bits < 32 { (32, true) } else { (bits, signed) }
}

fn common(left: (u8, bool), right: (u8, bool)) -> (u8, bool) {
    match left.0.cmp(&right.0) {
        std::cmp::Ordering::Less => right,
        std::cmp::Ordering::Greater => left,
        std::cmp::Ordering::Equal => (left.0, left.1 && right.1),
    }
}

fn cut(value: i128, bits: u8, signed: bool) -> i128 {
    match wrapped(value, bits, signed) {
        Data::Integer { value, .. } => value,
        _ => value,
    }
}

fn integers(operator: Operator, a: i128, b: i128, bits: u8, signed: bool) -> Option<Value> {
    let shift = u32::try_from(b).ok().filter(|shift| *shift < u32::from(bits));
    let result = match operator {
        Operator::Add => a.checked_add(b)?,
        Operator::Subtract => a.checked_sub(b)?,
        Operator::Multiply => a.checked_mul(b)?,
        Operator::Divide => a.checked_div(b)?,
        Operator::Remainder => a.checked_rem(b)?,
        Operator::ShiftLeft => a.checked_shl(shift?)?,
        Operator::ShiftRight => a.checked_shr(shift?)?,
        Operator::BitAnd => a & b,
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
        _ => return Some(Value::boolean(compared(operator, a.partial_cmp(&b), a != 0, b != 0)?)),
    };
    Some(wrapped(result, bits, signed).into())
}

fn reals(operator: Operator, a: f64, b: f64, single: bool) -> Option<Value> {
    let result = match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => return Some(Value::boolean(compared(operator, a.partial_cmp(&b), a != 0.0, b != 0.0)?)),
    };
    Some(real(result, single))
}

fn compared(operator: Operator, order: Option<std::cmp::Ordering>, left: bool, right: bool) -> Option<bool> {
    Some(match operator {
        Operator::Equal => order.is_some_and(|order| order.is_eq()),
        Operator::Unequal => !order.is_some_and(|order| order.is_eq()),
        Operator::Less => order.is_some_and(|order| order.is_lt()),
        Operator::Greater => order.is_some_and(|order| order.is_gt()),
        Operator::LessEqual => order.is_some_and(|order| order.is_le()),
        Operator::GreaterEqual => order.is_some_and(|order| order.is_ge()),
        Operator::And => left && right,
        Operator::Or => left || right,
        _ => return None,
    })
}

/// A literal's value: suffixes, bases and digit separators as in C++.
pub fn literal(text: &str) -> Option<Value> {
    let text: String = text.chars().filter(|c| *c != '\'').collect::<String>().to_ascii_lowercase();
    let hexadecimal = text.starts_with("0x");
    let is_real = if hexadecimal { text.contains('p') } else { text.contains(['.', 'e']) };
    if is_real {
        let single = text.ends_with('f');
        let digits = text.trim_end_matches(['f', 'l']);
        return digits.parse().ok().map(|value| real(value, single));
    }
    let suffix_at = text.rfind(|c| !matches!(c, 'u' | 'l' | 'z')).map_or(0, |last| last + 1);
    let (digits, suffix) = (text.get(..suffix_at)?, text.get(suffix_at..)?);
    let (digits, radix) = match digits.get(..2) {
        Some("0x") => (digits.get(2..)?, 16),
        Some("0b") => (digits.get(2..)?, 2),
        _ if digits.starts_with('0') && digits.len() > 1 => (digits.get(1..)?, 8),
        _ => (digits, 10),
    };
    let value = i128::from_str_radix(digits, radix).ok()?;
    Some(Value::integer(value, &literal_type(value, suffix, radix)))
}

/// A character's value: `'a'`, `'\n'`, `'\377'`, `L'x'`; nothing for one of several characters.
pub fn character(text: &str) -> Option<Value> {
    let (prefix, rest) = text.split_once('\'')?;
    let mut rest = rest.strip_suffix('\'')?.chars();
    let code = match rest.next()? {
        '\\' => escaped(&mut rest)?,
        plain if !prefix.is_empty() || plain.is_ascii() => i128::from(u32::from(plain)),
        _ => return None,
    };
    let (bits, signed) = match prefix {
        "" | "u8" => (8, true),
        "u" => (16, false),
        "U" => (32, false),
        _ => (32, true),
    };
    rest.next().is_none().then(|| wrapped(code, bits, signed).into())
}

/// What stands behind a backslash.
fn escaped(rest: &mut std::str::Chars<'_>) -> Option<i128> {
    let digits = rest.as_str();
    let number = |digits: &str, radix| i128::from_str_radix(digits, radix).ok();
    let octal = digits.len() - digits.trim_start_matches(|c: char| c.is_digit(8)).len();
    if let 1..=3 = octal {
        *rest = digits.get(octal..)?.chars();
        return number(digits.get(..octal)?, 8);
    }
    Some(match rest.next()? {
        'x' | 'u' | 'U' => {
            let digits = std::mem::replace(rest, "".chars()).as_str();
            return number(digits, 16).filter(|_| digits.len() <= 8);
        }
        'n' => 10,
        't' => 9,
        'r' => 13,
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'v' => 11,
        other @ ('\\' | '\'' | '"' | '?') => i128::from(u32::from(other)),
        _ => return None,
    })
}

fn literal_type(value: i128, suffix: &str, radix: u32) -> Base {
    let long = Base::Integer { bits: 64, signed: true, spelling: "long" };
    let wide = suffix.contains(['l', 'z']);
    let unsigned = suffix.contains('u');
    match (wide, unsigned) {
        (false, false) if value <= i128::from(i32::MAX) => INT,
        (false, false) if radix != 10 && value <= i128::from(u32::MAX) => UNSIGNED,
        (false, true) if value <= i128::from(u32::MAX) => UNSIGNED,
        (_, false) if value <= i128::from(i64::MAX) => long,
        _ => SIZE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> i128 {
        literal(text).and_then(|value| value.as_integer()).unwrap_or(-1)
    }

    #[test]
    fn literals_have_cpps_values_and_types() {
        assert_eq!(
            (number("1'024u"), number("0x20"), number("0b101"), number("017"), number("0")),
            (1024, 32, 5, 15, 0)
        );
        assert!(matches!(literal("2u").map(|v| v.data), Some(Data::Integer { bits: 32, signed: false, .. })));
        assert!(matches!(literal("2ull").map(|v| v.data), Some(Data::Integer { bits: 64, signed: false, .. })));
        assert!(matches!(literal("1e3f").map(|v| v.data), Some(Data::Float { single: true, .. })));
        assert!(literal("0x").is_none() && literal("12abc").is_none() && literal("").is_none());
    }

    #[test]
    fn characters_are_signed_and_their_escapes_are_read() {
        let code = |text: &str| character(text).and_then(|value| value.as_integer());
        let known =
            [("'a'", 97), (r"'\377'", -1), (r"'\n'", 10), (r"'\0'", 0), (r"'\x41'", 65), (r"'\''", 39), ("L'a'", 97)];
        for (text, value) in known {
            assert_eq!(code(text), Some(value), "{text}");
        }
        for text in ["'ab'", "''", r"'\'", "'", "é", r"'\x'", r"'\q'"] {
            assert_eq!(code(text), None, "{text}");
        }
        assert!(matches!(character("'a'").map(|v| v.data), Some(Data::Integer { bits: 8, signed: true, .. })));
    }

    #[test]
    fn unsigned_arithmetic_wraps_and_signed_division_truncates() {
        let less = binary(Operator::Subtract, &Value::integer(1, &UNSIGNED), &Value::int(2));
        assert_eq!(less.and_then(|value| value.as_integer()), Some(4_294_967_295));
        let half = binary(Operator::Divide, &Value::int(-3), &Value::int(2));
        assert_eq!(half.and_then(|value| value.as_integer()), Some(-1));
        assert!(binary(Operator::Divide, &Value::int(1), &Value::int(0)).is_none());
    }
}
