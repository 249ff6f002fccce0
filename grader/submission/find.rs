//! What expressions name: places for names, members, items and `*`; addresses for `&`.

use std::sync::Arc;

use super::containers::{ITEM, identity_of_length, is_long};
use super::interpreter::{Interpreter, well_known};
use super::places::{Part, Place, Root};
use super::tree::{Expression, ExpressionKind, Name};
use super::value::{Data, Value};

/// What an expression was found to be.
#[derive(Clone)]
pub enum Found {
    At(Arc<Place>),
    /// Some part of what is kept there, but there is no telling which; and its value, which is unknown.
    Within(Arc<Place>, Value),
    Value(Value),
}

impl Found {
    pub fn place(&self) -> Option<Arc<Place>> {
        match self {
            Self::At(place) | Self::Within(place, _) => Some(place.clone()),
            Self::Value(value) => value.place.clone(),
        }
    }
}

impl Interpreter<'_> {
    /// What an expression names, each part of it evaluated once.
    pub fn find(&mut self, expression: &Expression) -> Found {
        match &expression.kind {
            ExpressionKind::Name(_)
            | ExpressionKind::Member(..)
            | ExpressionKind::Index(..)
            | ExpressionKind::Unary('*' | '&', _)
                if self.enter_node() =>
            {
                let found = self.find_part(expression);
                self.nesting -= 1;
                found
            }
            _ => Found::Value(self.evaluate(expression)),
        }
    }

    /// As [`Interpreter::find`], for names, members, items, `*` and `&`.
    pub fn find_part(&mut self, expression: &Expression) -> Found {
        match &expression.kind {
            ExpressionKind::Name(name) => self.find_name(name, expression),
            ExpressionKind::Member(object, member) => {
                let object = self.find(object);
                self.find_member(object, &member.path, expression)
            }
            ExpressionKind::Index(array, index) => {
                let array = self.find(array);
                if let Some(value) = self.call_operator("operator[]", &array, std::slice::from_ref(index), expression) {
                    return Found::Value(value);
                }
                let index = self.evaluate(index);
                self.find_item(array, &index, expression)
            }
            ExpressionKind::Unary('*', inner) => {
                let inner = self.find(inner);
                // A pointer to an object leads there; an object may say what it leads to.
                let is_pointer = matches!(&inner, Found::Value(value) if value.address) || self.is_pointer(&inner);
                if !is_pointer && let Some(value) = self.call_operator("operator*", &inner, &[], expression) {
                    return Found::Value(value);
                }
                self.find_pointee(inner)
            }
            ExpressionKind::Unary(_, inner) => {
                let inner_found = self.find(inner);
                Found::Value(self.address(inner_found, inner))
            }
            _ => Found::Value(self.unknown(expression, "has no value that the text gives")),
        }
    }

    fn find_member(&mut self, object: Found, member: &Arc<str>, whole: &Expression) -> Found {
        let Some(place) = object.place() else {
            let Found::Value(object) = object else { return object };
            return Found::Value(self.member_of(&object, member, whole));
        };
        if let Found::Within(..) = object {
            return object;
        }
        let place = self.pointee(&place);
        let (has_member, is_made_of_parts) = match self.at(&place) {
            Some(kept) => (kept.member(member).is_some(), matches!(kept.data, Data::List(_) | Data::Object { .. })),
            None => (false, false),
        };
        if has_member {
            return Found::At(place.member(member));
        }
        let object = self.load(&place, whole);
        let value = self.member_of(&object, member, whole);
        if is_made_of_parts { Found::Within(place, value) } else { Found::Value(value) }
    }

    fn find_item(&mut self, array: Found, index: &Value, whole: &Expression) -> Found {
        let unknown = |this: &mut Self| match index.as_unknown() {
            Some(unknown) => Data::Unknown(unknown.clone()).into(),
            None => this.unknown(whole, "has no value that the text gives"),
        };
        let index = index.as_integer().and_then(|index| usize::try_from(index).ok());
        let Some(place) = array.place() else {
            let Found::Value(array) = array else { return array };
            let unknown = unknown(self);
            return Found::Value(self.item_of(&array, index, unknown, whole));
        };
        if let Found::Within(..) = array {
            return array;
        }
        let place = self.pointee(&place);
        if let Some(item) = self.at(&place).filter(|kept| is_long(kept)).and_then(|kept| kept.member(ITEM).cloned()) {
            // A row goes by its grid's name.
            return Found::Value(match self.declared_at(&place) {
                Some((identity, _)) => Value { origin: Vec::new(), ..item }.from_name(identity_of_length(&identity)),
                None => item,
            });
        }
        match (self.at(&place).map(|kept| &kept.data), index) {
            (Some(Data::List(items)), Some(index)) if index < items.len() => Found::At(place.with(Part::Item(index))),
            (Some(Data::Unknown(why)), _) => Found::Value(Data::Unknown(why.clone()).into()),
            (Some(Data::List(_)), _) | (Some(_), None | Some(1..)) => {
                let value = unknown(self);
                Found::Within(place.reach(), value)
            }
            (Some(_), Some(0)) => Found::At(place),
            (None, _) => Found::Value(unknown(self)),
        }
    }

    fn item_of(&mut self, array: &Value, index: Option<usize>, unknown: Value, whole: &Expression) -> Value {
        match (&array.data, index) {
            (Data::Unknown(why), _) => Data::Unknown(why.clone()).into(),
            (Data::List(items), Some(index)) => match items.get(index) {
                Some(item) => self.followed(item.1.clone()).unwrap_or(unknown),
                None => self.unknown(whole, "has no value that the text gives"),
            },
            _ => unknown,
        }
    }

    fn is_pointer(&self, found: &Found) -> bool {
        let kept = found.place().and_then(|place| self.kept(&place).map(|kept| kept.data.clone()));
        matches!(kept, Some(Data::Pointer(_, false)))
    }

    /// `*inner`.
    fn find_pointee(&mut self, inner: Found) -> Found {
        let Some(place) = inner.place() else { return inner };
        if let Found::Within(..) = inner {
            return inner;
        }
        let place = self.pointee(&place);
        match self.at(&place).map(|kept| &kept.data) {
            Some(Data::List(items)) if !items.is_empty() => Found::At(place.with(Part::Item(0))),
            _ => Found::At(place),
        }
    }

    /// `&inner`.
    fn address(&mut self, inner: Found, expression: &Expression) -> Value {
        if let Found::Within(place, value) = inner {
            self.forget_at(&place, expression, "is not known from the text");
            return value;
        }
        let Some(mut place) = inner.place() else {
            let value = self.value_of(inner, expression);
            // Of what has no place, only `new` and its like are written so.
            return if matches!(value.data, Data::Object { .. }) { self.address_of(value) } else { value };
        };
        if let Some(Data::Pointer(target, true)) = self.at(&place).map(|kept| &kept.data) {
            place = target.clone();
        }
        let value = self.load(&place, expression);
        Value { place: Some(place), address: true, ..value }
    }

    pub fn find_name(&mut self, name: &Name, expression: &Expression) -> Found {
        if let Some(value) = self.read_macro(name, expression) {
            return Found::Value(value);
        }
        let plain = !name.path.contains("::");
        if plain && let Some(place) = self.slot_place(&name.path) {
            return Found::At(place);
        }
        if let Some(this) = self.this().filter(|_| plain) {
            if &*name.path == "this" {
                let value = self.load(&this, expression);
                return Found::Value(Value { place: Some(this), address: true, ..value });
            }
            if self.at(&this).is_some_and(|object| object.member(&name.path).is_some()) {
                return Found::At(this.member(&name.path));
            }
        }
        match self.read_of_struct(name, expression) {
            Some(value) => Found::Value(value),
            None if self.is_unclear_instance(name) => {
                Found::Value(self.unknown(expression, "is of a template that is written for some arguments alone"))
            }
            None => self.find_global(name, expression),
        }
    }

    /// Whether a name is that of a member of a template of which there is no telling what is meant.
    fn is_unclear_instance(&mut self, name: &Name) -> bool {
        let Some((before, _)) = name.path.rsplit_once("::").filter(|_| name.scope.is_some()) else { return false };
        let last = before.rsplit("::").next().unwrap_or_default();
        self.program.structs.contains_key(last) && self.owner_of(name).is_none()
    }

    fn find_global(&mut self, name: &Name, expression: &Expression) -> Found {
        if let Some(variable) = self.global_variable(&name.path) {
            if name.arguments.is_some() {
                return Found::Value(
                    self.unknown(expression, "is a template of variables, which the grader does not follow"),
                );
            }
            let value = self.read_global(variable, expression);
            let at = variable.declarator.name_at;
            return match self.globals.contains_key(&at) {
                true => Found::At(Place::of(Root::Global(at))),
                false => Found::Value(value),
            };
        }
        if let Some(value) = self.function_value(name) {
            return Found::Value(value);
        }
        let known = well_known(name.last());
        Found::Value(known.unwrap_or_else(|| self.unknown(expression, "is not declared in heat.cu")))
    }
}
