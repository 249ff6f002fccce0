//! The standard library's containers, as far as launches keep their sizes in them.

use super::find::Found;
use super::interpreter::Interpreter;
use super::objects::is_vector;
use super::places::Part;
use super::tree::Expression;
use super::types::Type;
use super::value::{Data, Value};

/// Items of a vector that is made with a length.
const LONGEST: i128 = 64;

impl Interpreter<'_> {
    /// `std::vector<T>(length)` and `std::vector<T>(length, value)`.
    pub fn vector(&mut self, kind: &Type, values: Vec<Value>) -> Value {
        let unknown = || Value::unknown("std::vector".to_owned(), 1, "has a length that is not known from the text");
        let length = match values.first().map(Value::as_integer) {
            None => 0,
            Some(Some(length @ 0..=LONGEST)) => length as usize,
            // A copy of another vector.
            Some(None) if values.len() == 1 && values.iter().all(|value| matches!(value.data, Data::List(_))) => {
                return values.into_iter().next().unwrap_or_else(unknown);
            }
            Some(_) => return unknown(),
        };
        let item = match values.into_iter().nth(1) {
            Some(item) => item,
            None => Value::int(0),
        };
        let item = match item_kind(kind) {
            Some(kind) => self.held(item, &kind),
            None => item,
        };
        Data::List(vec![(None, item); length]).into()
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
