//! Functions that the text does not define: the few of the library that launch arithmetic uses, and all others.

use super::arithmetic::binary;
use super::containers::is_long;
use super::effects::is_by_reference;
use super::interpreter::Interpreter;
use super::objects::{Items, built_in_object};
use super::tree::{Expression, Operator};
use super::value::{Data, Value, real};

impl Interpreter<'_> {
    pub fn call_library(&mut self, name: &str, arguments: &[Expression], whole: &Expression) -> Value {
        if name == "swap" {
            return self.swap(arguments);
        }
        let values: Vec<Value> = match name {
            "make_pair" | "div" | "ldiv" | "ref" | "cref" | "addressof" | "begin" | "end" | "make_tuple" | "tie"
            | "move" | "forward" | "size" | "make_uint3" | "make_int2" | "make_uint2" | "make_int3" => {
                arguments.iter().map(|argument| self.evaluate(argument)).collect()
            }
            _ if MATHEMATICS.contains(&name) => arguments.iter().map(|argument| self.evaluate(argument)).collect(),
            _ => return self.call_unknown(name, arguments, whole),
        };
        if let Some(unknown) = values.iter().find_map(Value::as_unknown).filter(|_| MATHEMATICS.contains(&name)) {
            return Data::Unknown(unknown.clone()).into();
        }
        let list = || -> Items { values.iter().map(|value| (None, value.clone().copied())).collect() };
        let result = match name {
            "make_pair" => built_in_object("pair", &list()),
            "make_tuple" | "tie" => Some(Data::List(list()).into()),
            "make_uint3" | "make_int3" => built_in_object("uint3", &list()),
            "make_int2" | "make_uint2" => built_in_object("int2", &list()),
            "div" | "ldiv" => match values.as_slice() {
                [left, right] => quotient(left, right),
                _ => None,
            },
            "ref" | "cref" | "addressof" => match values.into_iter().next() {
                Some(value) if value.place.is_some() => Some(Value { address: true, ..value }),
                _ => None,
            },
            "begin" | "end" => {
                // A walk through them is not followed.
                arguments.iter().for_each(|argument| self.forget_lvalue(argument, "is walked through"));
                None
            }
            "move" | "forward" => {
                let moved = values.into_iter().next();
                // A vector that is moved from is empty.
                let is_vector =
                    moved.as_ref().is_some_and(|value| matches!(value.data, Data::List(_)) || is_long(value));
                for argument in arguments.iter().filter(|_| is_vector && name == "move") {
                    self.forget_lvalue(argument, "is moved from");
                }
                moved
            }
            "size" => match values.first().map(|value| &value.data) {
                Some(Data::List(items)) => Some(Value::int(items.len() as i128)),
                _ => None,
            },
            _ => mathematics(name, &values),
        };
        result.unwrap_or_else(|| self.call_unknown(name, arguments, whole))
    }

    fn swap(&mut self, arguments: &[Expression]) -> Value {
        if let [left, right] = arguments {
            let (left_place, right_place) = (self.find(left), self.find(right));
            let left_value = self.value_of(left_place.clone(), left);
            let right_value = self.value_of(right_place.clone(), right);
            self.store(&left_place, right_value, left);
            self.store(&right_place, left_value, right);
        }
        Value::int(0)
    }

    /// A function that the text does not define: its result is unknown, and what it takes by address or reference.
    pub fn call_unknown(&mut self, name: &str, arguments: &[Expression], whole: &Expression) -> Value {
        let why = reason(name);
        let changes = is_by_reference(name) || why.starts_with("depends on the device");
        for (place, argument) in arguments.iter().enumerate() {
            let value = self.evaluate(argument);
            let launches = name.starts_with("cudaLaunch");
            match (&value.data, &value.place) {
                (Data::Lambda(lambda, ..), _) => self.forget(&[&lambda.body.clone()], why),
                // An array is passed by its address.
                (Data::List(_), Some(_)) if place == 0 && name.starts_with("cudaMemcpy") || is_memory(name) => {
                    self.forget_lvalue(argument, why);
                }
                (_, Some(_)) if changes || value.address && !launches => self.forget_lvalue(argument, why),
                _ => {}
            }
        }
        self.unknown(whole, why)
    }
}

/// Whether a function of C writes to the memory that it is given.
fn is_memory(name: &str) -> bool {
    ["mem", "str", "fread", "fgets", "fscanf", "read"].iter().any(|begin| name.starts_with(begin))
        || matches!(name, "fill_n" | "copy_n" | "generate" | "generate_n" | "transform")
}

fn reason(name: &str) -> &'static str {
    if name.starts_with("cudaOccupancy") || name.starts_with("cudaGetDevice") || name.starts_with("cudaDevice") {
        "depends on the device"
    } else if name.starts_with("cudaFunc") {
        "depends on the compiled kernel"
    } else if matches!(name, "atoi" | "atol" | "strtol" | "strtoul" | "stoi" | "stoul" | "getenv" | "sscanf" | "scanf")
    {
        "depends on the command line or environment"
    } else {
        "is not known from the text"
    }
}

const MATHEMATICS: [&str; 32] = [
    "min", "max", "umin", "umax", "fmin", "fmax", "fminf", "fmaxf", "clamp", "abs", "fabs", "fabsf", "ceil", "ceilf",
    "floor", "floorf", "round", "roundf", "lround", "lroundf", "trunc", "truncf", "sqrt", "sqrtf", "pow", "powf",
    "log2", "log2f", "ceil_div", "div_up", "exp2", "exp2f",
];

fn mathematics(name: &str, values: &[Value]) -> Option<Value> {
    if let ("min" | "max", [Value { data: Data::List(items), .. }]) = (name, values) {
        let mut items = items.iter().map(|item| item.1.clone());
        let first = items.next()?;
        return items.try_fold(first, |best, item| mathematics(name, &[best, item]));
    }
    let (first, second) = (values.first()?, values.get(1));
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_float).collect();
    let numbers = numbers?;
    let pick = |order: std::cmp::Ordering| {
        let second = second?;
        let less = first.as_float()?.partial_cmp(&second.as_float()?) == Some(order);
        Some(if less { first.clone() } else { second.clone() })
    };
    let all_single = values.iter().all(|value| matches!(value.data, Data::Float { single: true, .. }));
    let single = name.ends_with('f') || all_single;
    let number = *numbers.first()?;
    Some(real(
        match name {
            "min" | "umin" | "fmin" | "fminf" => return pick(std::cmp::Ordering::Less),
            "max" | "umax" | "fmax" | "fmaxf" => return pick(std::cmp::Ordering::Greater),
            "clamp" => return clamp(values),
            "ceil_div" | "div_up" => return ceil_div(first.as_integer()?, second?.as_integer()?),
            "abs" if first.as_integer().is_some() => return Some(Value::int(first.as_integer()?.abs())),
            "lround" | "lroundf" => {
                return Some(Value::integer(number.round() as i128, &super::types::known_base("int64_t")?));
            }
            "abs" | "fabs" | "fabsf" => number.abs(),
            "ceil" | "ceilf" => number.ceil(),
            "floor" | "floorf" => number.floor(),
            "round" | "roundf" => number.round(),
            "trunc" | "truncf" => number.trunc(),
            "sqrt" | "sqrtf" => number.sqrt(),
            "log2" | "log2f" => number.log2(),
            "exp2" | "exp2f" => number.exp2(),
            _ => number.powf(*numbers.get(1)?),
        },
        single,
    ))
}

fn clamp(values: &[Value]) -> Option<Value> {
    let [value, low, high] = values else { return None };
    let number = value.as_float()?;
    let picked = if number < low.as_float()? {
        low
    } else if high.as_float()? < number {
        high
    } else {
        value
    };
    Some(picked.clone())
}

fn ceil_div(left: i128, right: i128) -> Option<Value> {
    let sum = left.checked_add(right)?.checked_sub(1)?;
    Some(Value::int(sum.checked_div(right)?))
}

/// `std::div`
fn quotient(left: &Value, right: &Value) -> Option<Value> {
    let part = |operator| binary(operator, left, right).map(|value| (None, value));
    built_in_object("div_t", &[part(Operator::Divide)?, part(Operator::Remainder)?])
}
