//! The standard library's containers, as far as launches keep their sizes in them.

use super::find::Found;
use super::interpreter::Interpreter;
use super::objects::is_vector;
use super::places::Part;
use super::tree::Expression;
use super::types::Type;
use super::value::{Data, Identity, Value};

/// Items of a vector that is made with a length; of a longer one only the length is followed.
const LONGEST: i128 = 64;
/// What such a vector is called, and its length and items.
const LONG: &str = "std::vector";
const LENGTH: &str = "size()";
pub const ITEM: &str = "[]";

/// What the length of a vector with this name is known by: the vector itself is no n.
pub fn identity_of_length(name: &Identity) -> Identity {
    Identity::Macro(format!("length of {name:?}").into())
}

/// Whether a value is a vector of which only the length is followed.
pub fn is_long(value: &Value) -> bool {
    matches!(&value.data, Data::Object { name, .. } if &**name == LONG)
}

impl Interpreter<'_> {
    /// `std::vector<T>(length)` and `std::vector<T>(length, value)`.
    pub fn vector(&mut self, kind: &Type, values: Vec<Value>) -> Value {
        let unknown = || Value::unknown("std::vector".to_owned(), 1, "has a length that is not known from the text");
        let length = match values.first().map(Value::as_integer) {
            None => 0,
            Some(Some(length @ 0..=LONGEST)) => length as usize,
            Some(Some(length)) if length > LONGEST => return self.long_vector(kind, values),
            // A copy of another vector.
            Some(None)
                if values.len() == 1
                    && values.iter().all(|value| matches!(value.data, Data::List(_)) || is_long(value)) =>
            {
                return values.into_iter().next().unwrap_or_else(unknown);
            }
            Some(_) => return unknown(),
        };
        let item = match values.into_iter().nth(1) {
            Some(item) => item,
            None => Value::int(0),
        };
        let item = match item_kind(kind) {
            Some(kind) => {
                self.forget_held(Some(&kind));
                self.held(item, &kind)
            }
            None => item,
        };
        Data::List(vec![(None, item); length]).into()
    }

    /// One of which only the length is followed, and what its items were to begin with.
    fn long_vector(&mut self, kind: &Type, values: Vec<Value>) -> Value {
        let mut values = values.into_iter();
        let length = values.next().unwrap_or_else(|| Value::int(0)).converted(&Type::of(super::types::SIZE));
        // Of rows, how long each is.
        let item = match (values.next().filter(is_long), item_kind(kind)) {
            (Some(item), Some(kind)) => self.held(item, &kind),
            _ => Value::unknown("std::vector".to_owned(), 1, "has items that the grader does not follow"),
        };
        let members = vec![(LENGTH.into(), length), (ITEM.into(), item.copied())];
        Data::Object { name: LONG.into(), instance: None, members }.into()
    }

    /// A call on such a vector; nothing when it may change in a way that is not followed.
    fn call_of_long(&mut self, found: &Found, this: &Value, method: &str, arguments: &[Expression]) -> Option<Value> {
        let length = this.member(LENGTH)?.clone();
        match (method, arguments) {
            ("size", []) => Some(self.length_of_long(found, this, length)),
            ("empty", []) => Some(Value::boolean(length.as_integer()? == 0)),
            ("front" | "back", []) | ("at", [_]) => Some(this.member(ITEM)?.clone()),
            ("data" | "begin" | "end" | "cbegin" | "cend", []) | ("reserve", [_]) | ("shrink_to_fit", []) => {
                arguments.iter().for_each(|argument| drop(self.evaluate(argument)));
                Some(Value::unknown("std::vector".to_owned(), 1, "has items that the grader does not follow"))
            }
            ("resize" | "assign", _) => self.resized(found, arguments),
            _ => None,
        }
    }

    /// A length, or n where the vector's name stands for it.
    fn length_of_long(&mut self, found: &Found, this: &Value, length: Value) -> Value {
        let place = found.place().map(|place| self.pointee(&place));
        let identity = match place.and_then(|place| self.declared_at(&place)) {
            Some((identity, _)) => Some(identity_of_length(&identity)),
            None => this.origin.first().map(|origin| origin.0.clone()),
        };
        let Some(identity) = identity else { return Value { place: None, ..length } };
        let n = self.stands_for_n(&identity, &Type::of(super::types::SIZE));
        Value { place: None, ..n.unwrap_or(length) }.from_name(identity)
    }

    /// `vector.resize(length)` and `vector.assign(length, value)`
    fn resized(&mut self, found: &Found, arguments: &[Expression]) -> Option<Value> {
        let place = self.pointee(&found.place()?);
        let Found::At(_) = found else { return None };
        let kind = self.declared_at(&place).map(|(_, kind)| self.resolved(&kind)).filter(is_vector)?;
        let values: Vec<Value> = arguments.iter().map(|argument| self.evaluate(argument).copied()).collect();
        values.first().filter(|length| length.as_integer().is_some_and(|length| length > LONGEST))?;
        let made = self.long_vector(&kind, values);
        *self.at(&place)? = made;
        Some(Value::int(0))
    }

    /// A call on a container, an optional or a smart pointer; nothing when it is none or the call is not known.
    pub fn call_of_container(
        &mut self,
        found: &Found,
        this: &Value,
        method: &str,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Option<Value> {
        match (&this.data, method) {
            (Data::List(items), _) => {
                let length = items.len();
                self.call_of_list(found, this, length, (method, arguments), whole)
            }
            _ if is_long(this) => self.call_of_long(found, this, method, arguments),
            (_, "get") if this.address => Some(this.clone()),
            (Data::Object { .. } | Data::Integer { .. }, "value" | "value_or") => Some(this.clone()),
            (Data::Object { .. } | Data::Integer { .. }, "has_value") => Some(Value::boolean(true)),
            _ => None,
        }
    }

    fn call_of_list(
        &mut self,
        found: &Found,
        this: &Value,
        length: usize,
        (method, arguments): (&str, &[Expression]),
        whole: &Expression,
    ) -> Option<Value> {
        let item = |index: usize| if index < length { Some(index) } else { None };
        let index = match (method, arguments) {
            ("size", []) => return Some(Value::integer(length as i128, &super::types::SIZE)),
            ("empty", []) => return Some(Value::boolean(length == 0)),
            ("data", []) => return Some(Value { address: this.place.is_some(), ..this.clone() }),
            ("resize" | "assign", _) => return self.resized(found, arguments),
            ("push_back" | "emplace_back", _) => return self.push_back(found, arguments, whole),
            ("front", []) | ("begin", []) => item(0)?,
            ("back", []) => item(length.checked_sub(1)?)?,
            ("at", [index]) => item(usize::try_from(self.evaluate(index).as_integer()?).ok()?)?,
            _ => return None,
        };
        let part = self.part(this, index)?;
        Some(Value { address: method == "begin" && part.place.is_some(), ..part })
    }

    fn push_back(&mut self, found: &Found, arguments: &[Expression], whole: &Expression) -> Option<Value> {
        let place = self.pointee(&found.place()?);
        let kind = self.declared_at(&place).map(|(_, kind)| self.resolved(&kind)).filter(is_vector);
        let kind = kind.as_ref().and_then(item_kind);
        let mut values: Vec<Value> = arguments.iter().map(|argument| self.evaluate(argument).copied()).collect();
        let value = match (&kind, values.len()) {
            (Some(kind), 1) => self.held(values.remove(0), kind),
            (Some(kind), _) => {
                let items = values.into_iter().map(|value| (None, value)).collect();
                self.coerced(Data::List(items).into(), kind).copied()
            }
            (None, 1) => values.remove(0),
            (None, _) => self.unknown(whole, "has no value that the text gives"),
        };
        let Data::List(items) = &mut self.at(&place)?.data else { return None };
        if items.len() >= 4096 {
            return None;
        }
        items.push((None, value));
        self.spend(1);
        Some(self.load(&place.with(Part::Item(self.length(&place)? - 1)), whole))
    }

    fn length(&self, place: &super::places::Place) -> Option<usize> {
        match &self.kept(place)?.data {
            Data::List(items) => Some(items.len()),
            _ => None,
        }
    }
}

/// The type of a container's items.
fn item_kind(kind: &Type) -> Option<Type> {
    kind.arguments.as_ref()?.first()?.kind.clone()
}
