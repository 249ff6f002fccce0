//! Places: where values are kept, and where pointers and references lead.
//!
//! A pointer stands for what it points to wherever a value is read, so `p->x`, `(*p).x` and `p.x` are one thing. Only
//! an assignment to the pointer itself tells them apart.

use std::sync::Arc;

use super::find::Found;
use super::interpreter::Interpreter;
use super::objects::to_dim3;
use super::tree::Expression;
use super::types::{Base, Type};
use super::value::{Data, Identity, Value};

/// A variable, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub root: Root,
    pub path: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Root {
    /// A variable of a call that may have ended since.
    Slot { frame: u64, scope: usize, index: usize, name_at: usize },
    /// A variable outside functions, by its name's token.
    Global(usize),
    /// What `new` made, and objects without a name.
    Heap(usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Member(Arc<str>),
    Item(usize),
}

/// Pointers to pointers that are followed.
const POINTERS: u32 = 8;

impl Place {
    pub fn of(root: Root) -> Arc<Self> {
        Arc::new(Self { root, path: Vec::new() })
    }

    pub fn with(&self, part: Part) -> Arc<Self> {
        let path = self.path.iter().cloned().chain([part]).collect();
        Arc::new(Self { root: self.root.clone(), path })
    }

    pub fn member(&self, name: &Arc<str>) -> Arc<Self> {
        self.with(Part::Member(name.clone()))
    }

    /// The arrays around an item, which a pointer to the item reaches as well; otherwise the place itself.
    pub fn reach(self: &Arc<Self>) -> Arc<Self> {
        let items = self.path.iter().rev().take_while(|part| matches!(part, Part::Item(_))).count();
        let around = self.path.get(..self.path.len() - items).unwrap_or_default();
        Arc::new(Self { root: self.root.clone(), path: around.to_vec() })
    }
}

impl Interpreter<'_> {
    /// What is kept at a place: pointers are not followed.
    pub fn at(&mut self, place: &Place) -> Option<&mut Value> {
        let mut value = match &place.root {
            Root::Slot { frame, scope, index, name_at } => {
                let frame = self.frames.iter_mut().rev().find(|open| open.id == *frame)?;
                let slot = frame.scopes.get_mut(*scope)?.get_mut(*index)?;
                Some(&mut slot.value).filter(|_| slot.name_at == *name_at)?
            }
            Root::Global(name_at) => &mut self.globals.get_mut(name_at)?.1,
            Root::Heap(index) => self.heap.get_mut(*index)?,
        };
        for part in &place.path {
            value = match part {
                Part::Member(name) => value.member_mut(name)?,
                Part::Item(index) => value.item_mut(*index)?,
            };
        }
        Some(value)
    }

    /// As [`Interpreter::at`], to look at.
    pub fn kept(&self, place: &Place) -> Option<&Value> {
        let mut value = match &place.root {
            Root::Slot { frame, scope, index, name_at } => {
                let frame = self.frames.iter().rev().find(|open| open.id == *frame)?;
                let slot = frame.scopes.get(*scope)?.get(*index)?;
                Some(&slot.value).filter(|_| slot.name_at == *name_at)?
            }
            Root::Global(name_at) => &self.globals.get(name_at)?.1,
            Root::Heap(index) => self.heap.get(*index)?,
        };
        for part in &place.path {
            value = match (part, &value.data) {
                (Part::Member(name), Data::Object { .. }) => value.member(name)?,
                (Part::Item(index), Data::List(items)) => &items.get(*index)?.1,
                _ => return None,
            };
        }
        Some(value)
    }

    /// Where a pointer or reference leads at last; any other place is itself.
    pub fn pointee(&mut self, place: &Arc<Place>) -> Arc<Place> {
        let mut place = place.clone();
        for _ in 0..POINTERS {
            match self.at(&place).map(|value| &value.data) {
                Some(Data::Pointer(target, _)) => place = target.clone(),
                _ => break,
            }
        }
        place
    }

    /// What the name of a place is known by, and its declared type.
    pub fn declared_at(&mut self, place: &Place) -> Option<(Identity, Type)> {
        match (place.path.split_last(), &place.root) {
            (None, Root::Slot { frame, scope, index, name_at }) => {
                let frame = self.frames.iter().rev().find(|open| open.id == *frame)?;
                let slot = frame.scopes.get(*scope)?.get(*index)?;
                Some((Identity::Token(*name_at), slot.kind.clone()))
            }
            (None, Root::Global(name_at)) => {
                let kind = self.globals.get(name_at)?.0.clone();
                Some((Identity::Token(*name_at), kind))
            }
            (Some((Part::Member(member), around)), root) => {
                let object = Place { root: root.clone(), path: around.to_vec() };
                let Data::Object { name, .. } = &self.at(&object)?.data else { return None };
                let name = name.clone();
                let declared = self.declared_member(&name, member)?;
                Some((Identity::Token(declared.name_at), declared.kind.clone()))
            }
            _ => None,
        }
    }

    /// The value at a place, n where its name stands for n, pointers followed.
    pub fn load(&mut self, place: &Arc<Place>, expression: &Expression) -> Value {
        self.loaded(place, 0).unwrap_or_else(|| self.unknown(expression, "is not known from the text"))
    }

    pub fn loaded(&mut self, place: &Arc<Place>, depth: u32) -> Option<Value> {
        let declared = self.declared_at(place);
        if let Some((identity, kind)) = &declared
            && let Some(n) = self.stands_for_n(identity, kind)
        {
            return Some(Value { place: Some(place.clone()), ..n.from_name(identity.clone()) });
        }
        let value = self.at(place)?.clone();
        let value = match &value.data {
            Data::Pointer(..) if depth >= POINTERS => return None,
            Data::Pointer(target, reference) => {
                Value { address: !reference, ..self.loaded(&target.clone(), depth + 1)? }
            }
            _ => Value { place: Some(place.clone()), address: false, ..value },
        };
        Some(match declared {
            Some((identity, _)) => value.from_name(identity),
            None => value,
        })
    }

    /// What a value that is kept inside another one stands for: what a pointer leads to, or itself.
    pub fn followed(&mut self, value: Value) -> Option<Value> {
        match &value.data {
            Data::Pointer(target, reference) => Some(Value { address: !reference, ..self.loaded(&target.clone(), 1)? }),
            _ => Some(value),
        }
    }

    pub fn value_of(&mut self, found: Found, expression: &Expression) -> Value {
        let value = match found {
            Found::At(place) => self.load(&place, expression),
            Found::Within(_, value) | Found::Value(value) => value,
        };
        self.spend(value.weight() / 4);
        value
    }

    /// A place for an object: its own, or a new one.
    pub fn placed(&mut self, value: Value) -> Arc<Place> {
        match value.place.clone() {
            Some(place) => self.pointee(&place),
            None => {
                self.spend(1 + value.weight() / 4);
                self.heap.push(value.copied());
                Place::of(Root::Heap(self.heap.len() - 1))
            }
        }
    }

    /// The same value as the address of the place it is kept in.
    pub fn address_of(&mut self, value: Value) -> Value {
        let place = self.placed(value.clone());
        Value { place: Some(place), address: true, ..value }
    }

    /// The value as a variable of that type keeps it: pointers and references keep the place.
    pub fn held(&mut self, value: Value, kind: &Type) -> Value {
        let is_pointer = !kind.pointers.is_empty();
        let leads = value.address || matches!(value.data, Data::Object { .. } | Data::List(_));
        match value.place.clone() {
            Some(place) if kind.reference && !is_pointer || is_pointer && leads => {
                Value { data: Data::Pointer(place, !is_pointer), place: None, address: false, ..value }
            }
            Some(_) if value.address => value.copied(),
            _ => self.coerced(value, kind).copied(),
        }
    }

    /// Assigns to what was found, converting to the type of the place.
    pub fn store(&mut self, found: &Found, value: Value, expression: &Expression) {
        match found {
            Found::At(place) => self.write(place, value, 0),
            Found::Within(place, _) => self.forget_at(&place.clone(), expression, "is not known from the text"),
            Found::Value(Value { place: Some(place), .. }) => self.write(&place.clone(), value, 0),
            Found::Value(_) => {}
        }
    }

    fn write(&mut self, place: &Arc<Place>, value: Value, depth: u32) {
        let kind = self.declared_at(place).map(|(_, kind)| self.resolved(&kind));
        let pointer = match self.at(place).map(|kept| &kept.data) {
            Some(Data::Pointer(target, reference)) => Some((target.clone(), *reference)),
            _ => None,
        };
        if let Some((target, reference)) = pointer {
            let is_pointer = kind.as_ref().is_some_and(|kind| !kind.pointers.is_empty());
            if (reference || !value.address && !is_pointer) && depth < POINTERS {
                return self.write(&target, value, depth + 1);
            }
        }
        let value = match &kind {
            Some(kind) => self.held(value, kind),
            None => value.copied(),
        };
        self.overlay(place);
        let Some(kept) = self.at(place) else { return };
        *kept = match &kept.data {
            Data::Integer { bits, signed, .. } => {
                value.converted(&Type::of(Base::Integer { bits: *bits, signed: *signed, spelling: "" }))
            }
            Data::Object { name, .. } if &**name == "dim3" => to_dim3(value),
            _ => value,
        };
    }

    /// What shares its bytes with a place that is written to, in a union, is not known any more.
    fn overlay(&mut self, place: &Place) {
        for (depth, part) in place.path.iter().enumerate() {
            let Part::Member(written) = part else { continue };
            let around = Place { root: place.root.clone(), path: place.path.iter().take(depth).cloned().collect() };
            let program = self.program;
            let Some(Value { data: Data::Object { name, members, .. }, .. }) = self.at(&around) else { continue };
            let Some(found) = program.structs.get(name).filter(|found| found.union) else { continue };
            let declared = |name: &str| found.members.iter().find(|member| &*member.name == name);
            for (name, value) in members.iter_mut().filter(|(name, _)| name != written) {
                let line = declared(name).map_or(1, |member| program.text.line(member.name_at));
                *value = Value::unknown(name.to_string(), line, "shares its bytes with what was set in its union");
            }
        }
    }

    /// The place of a variable that is in scope here.
    pub fn slot_place(&self, name: &str) -> Option<Arc<Place>> {
        let mut frame = self.frames.last()?;
        let mut open = frame.scopes.len();
        for _ in 0..self.frames.len() {
            for (scope, slots) in frame.scopes.iter().enumerate().take(open).rev() {
                if let Some(index) = slots.iter().rposition(|slot| &*slot.name == name) {
                    let name_at = slots.get(index)?.name_at;
                    return Some(Place::of(Root::Slot { frame: frame.id, scope, index, name_at }));
                }
            }
            let home = frame.home?;
            frame = self.frames.iter().find(|other| other.id == home.frame)?;
            open = home.scopes;
        }
        None
    }

    /// The object that the frame's function was called on.
    pub fn this(&self) -> Option<Arc<Place>> {
        self.frames.last()?.this.clone()
    }
}
