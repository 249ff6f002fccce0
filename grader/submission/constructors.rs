//! Objects of structs: their members, those of their bases included, and their constructors.

use std::collections::HashSet;
use std::sync::Arc;

use super::interpreter::{Interpreter, NESTING};
use super::objects::{Items, built_in_object};
use super::overloads::{Given, Meant, base_name, takes};
use super::places::{Place, Root};
use super::program::Function;
use super::tree::Declarator;
use super::types::{Base, Type};
use super::value::{Data, Value};

/// Bases of bases that are followed.
const BASES: u32 = 8;

/// Why a member has no value whose initial value is worked out once the others are known.
const LATER: &str = "is worked out from other members";

/// What an object's members have that nothing sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Zero,
    /// Nothing that could be relied on.
    Unset,
}

impl Interpreter<'_> {
    /// A struct's object from a list in braces or brackets, through its constructor where it has one.
    pub fn object(&mut self, kind: &Type, items: Items) -> Option<Value> {
        self.object_of_members(kind, items, Missing::Zero)
    }

    /// The same, `missing` being what the members have that nothing sets.
    pub fn object_of_members(&mut self, kind: &Type, items: Items, missing: Missing) -> Option<Value> {
        let Base::Named(name) = &kind.base else { return None };
        if let Some(built_in) = built_in_object(name.rsplit("::").next().unwrap_or_default(), &items) {
            return Some(built_in);
        }
        let path = self.struct_of(kind)?;
        if let [(None, Value { data: Data::Object { name, .. }, .. })] = items.as_slice()
            && *name == path
            && !self.copies_by_itself(&path)
        {
            return items.into_iter().next().map(|item| item.1.copied());
        }
        if self.hides_a_member(&path) {
            return None;
        }
        let program = self.program;
        let found = program.structs.get(&path)?;
        if self.nesting > NESTING || self.fuel == 0 || self.building.contains(&path) {
            return None;
        }
        self.spend(1);
        self.nesting += 1;
        self.building.push(path.clone());
        let mut members = Vec::new();
        self.members(kind, &mut members, 0);
        let instance = found.template.as_ref().map(|_| Arc::new(kind.clone()));
        self.heap.push(Data::Object { name: path.clone(), instance, members }.into());
        let at = self.heap.len() - 1;
        let object = Place::of(Root::Heap(at));
        self.initialise(kind, &path, &object, (items, missing));
        self.building.pop();
        self.nesting -= 1;
        let built = self.at(&object).map(|object| std::mem::replace(object, Value::int(0)));
        if self.heap.len() == at + 1 {
            self.heap.pop();
        }
        built
    }

    /// The members of a struct and its bases, with their default values.
    fn members(&mut self, kind: &Type, members: &mut Vec<(Arc<str>, Value)>, depth: u32) {
        let program = self.program;
        let Some(found) = self.struct_of(kind).and_then(|path| program.structs.get(&path)) else { return };
        self.enter_instance(kind);
        for base in found.bases.iter().take(8).filter(|_| depth < BASES) {
            let base = self.resolved(base);
            self.members(&base, members, depth + 1);
        }
        for member in found.members.iter().take(256) {
            let value = self.initial_value(member);
            let value = match (value.as_unknown(), &member.initial) {
                // It may be made of other members.
                (Some(unknown), Some(_)) => Value::unknown(unknown.what.clone(), unknown.line, LATER),
                _ => value,
            };
            match members.iter_mut().find(|known| known.0 == member.name) {
                Some(known) => known.1 = value,
                None => members.push((member.name.clone(), value)),
            }
        }
        self.frames.pop();
    }

    /// Runs a struct's constructor on an object, or fills its members in their order.
    fn initialise(&mut self, kind: &Type, path: &Arc<str>, object: &Arc<Place>, (items, missing): (Items, Missing)) {
        let program = self.program;
        let constructors = || program.functions.iter().filter(|function| is_constructor(function, path));
        let given: Vec<Given> = items.iter().map(|item| Given::of_value(&item.1)).collect();
        let fitting =
            |(_, f): &(usize, &Function)| is_constructor(f, path) && f.body.is_some() && takes(f, given.len());
        let fitting: Vec<usize> = program.functions.iter().enumerate().filter(fitting).map(|found| found.0).collect();
        match self.best(&fitting, &given) {
            Meant::One(index) => {
                let Some(constructor) = program.functions.get(index) else { return };
                return self.construct(kind, constructor, object, items.into_iter().map(|item| item.1).collect());
            }
            Meant::Torn => return self.forget_object(object),
            Meant::Nothing => {}
        }
        // What `= default` leaves to the members, and what is declared only.
        if constructors().any(|function| takes(function, items.len()) && !is_defaulted(program, function)) {
            self.forget_object(object);
            return;
        }
        let Some(found) = program.structs.get(path) else { return };
        let bases: Vec<Type> = found.bases.iter().take(8).map(|base| self.base_of(kind, base)).collect();
        let any_constructor = constructors().any(|function| !is_defaulted(program, function));
        match bases.first() {
            // Constructors that `using Base::Base;` hands on.
            Some(base) if !items.is_empty() && found.members.is_empty() => {
                if let Some(path) = self.struct_of(base) {
                    self.initialise(base, &path, object, (items, missing));
                }
            }
            _ if !items.is_empty() && any_constructor => self.forget_object(object),
            _ => {
                for base in &bases {
                    self.initialise_base(base, object, Vec::new());
                }
                self.fill(&found.members, object, items);
                self.settle(kind, object, missing);
            }
        }
    }

    fn base_of(&mut self, kind: &Type, base: &Type) -> Type {
        self.enter_instance(kind);
        let base = self.resolved(base);
        self.frames.pop();
        base
    }

    /// The constructor of a base, if it has one that takes so many values.
    fn initialise_base(&mut self, base: &Type, object: &Arc<Place>, values: Vec<Value>) {
        let Some(path) = self.struct_of(base).filter(|_| self.frames.len() < 48) else { return };
        let has_constructor = self.program.functions.iter().any(|function| is_constructor(function, &path));
        if has_constructor || !values.is_empty() {
            let items = values.into_iter().map(|value| (None, value)).collect();
            self.initialise(base, &path, object, (items, Missing::Unset));
        }
    }

    fn construct(&mut self, kind: &Type, constructor: &Function, object: &Arc<Place>, values: Vec<Value>) {
        let Some(body) = &constructor.body else { return };
        if self.frames.len() > 48 {
            return self.forget_object(object);
        }
        self.enter_instance(kind);
        if let Some(frame) = self.frame() {
            (frame.this, frame.path) = (Some(object.clone()), constructor.path.clone());
        }
        self.bind_parameters(constructor, values, true);
        self.bases_and_members(kind, constructor, object);
        self.settle(kind, object, Missing::Unset);
        self.run_body(body);
        self.frames.pop();
    }

    /// A constructor's `: Base(value), member(value)` list.
    fn bases_and_members(&mut self, kind: &Type, constructor: &Function, object: &Arc<Place>) {
        let program = self.program;
        let Some(path) = self.struct_of(kind) else { return };
        let bases = program.structs.get(&path).map(|found| found.bases.as_slice()).unwrap_or_default();
        let named = |written: &str, name: &str| written.rsplit("::").next() == Some(name);
        for base in bases.iter().take(8) {
            let initials = constructor.member_initials.iter();
            let listed = initials.into_iter().find(|(name, _)| base_name(base).is_some_and(|base| named(name, base)));
            let values = listed.map(|(_, values)| values.iter().map(|value| self.evaluate(value)).collect());
            let base = self.resolved(base);
            self.initialise_base(&base, object, values.unwrap_or_default());
        }
        let members = program.structs.get(&path).map(|found| found.members.as_slice()).unwrap_or_default();
        let place = |member: &str| members.iter().position(|declared| &*declared.name == member);
        let mut initials: Vec<_> = constructor.member_initials.iter().collect();
        // In the order of the members, whatever the order of the list.
        initials.sort_by_key(|(member, _)| place(member));
        for (member, values) in initials {
            if named(member, &constructor.name) {
                // Another constructor of the same struct.
                let values = values.iter().map(|value| (None, self.evaluate(value))).collect();
                self.initialise(kind, &path, object, (values, Missing::Unset));
                continue;
            }
            let Some(declared) = self.declared_member(&path, member) else { continue };
            let kind = self.resolved(&declared.kind);
            let items: Vec<_> = values.iter().cloned().map(|value| (None, value)).collect();
            let opens = values.first().and_then(|value| value.at.start.checked_sub(1));
            let in_brackets = opens.is_some_and(|at| program.text.is(at, "("));
            let value = self.made(&kind, &items, in_brackets);
            let value = self.held(value, &kind);
            if let Some(place) = self.at(&object.member(member)) {
                *place = value;
            }
        }
    }

    /// Works out what a struct's own members begin with that nothing has set yet, now that there are other members.
    fn settle(&mut self, kind: &Type, object: &Arc<Place>, missing: Missing) {
        let program = self.program;
        let Some(found) = self.struct_of(kind).and_then(|path| program.structs.get(&path)) else { return };
        for member in found.members.iter().take(256) {
            let place = object.member(&member.name);
            let why = match self.kept(&place).map(|kept| &kept.data) {
                Some(Data::Unknown(unknown)) => Some(unknown.why),
                _ => None,
            };
            let value = match (why, &member.initial) {
                (Some(LATER), Some(_)) => {
                    self.enter_instance(kind);
                    if let Some(frame) = self.frame() {
                        frame.this = Some(object.clone());
                    }
                    let value = self.initial_value(member);
                    self.frames.pop();
                    value
                }
                (Some("has no value yet"), None)
                    if missing == Missing::Zero && member.dimensions.is_empty() && !found.union =>
                {
                    let kind = self.resolved(&member.kind);
                    self.zero(&kind, member)
                }
                _ => continue,
            };
            if let Some(kept) = self.at(&place) {
                *kept = value.copied();
            }
        }
    }

    /// An object as a variable of that struct holds it.
    pub fn object_as(&mut self, value: Value, kind: &Type) -> Value {
        let (Data::Object { name, .. }, Some(path)) = (&value.data, self.struct_of(kind)) else { return value };
        if *name == path {
            let copied = value.place.is_some() && !kind.reference && self.copies_by_itself(&path);
            let made = copied.then(|| self.object(kind, vec![(None, value.clone())])).flatten();
            return made.unwrap_or(value);
        }
        let is_instance = name.starts_with(&*path) || path.starts_with(&**name);
        if kind.reference || is_instance {
            return value;
        }
        if !self.descends(name, &path, 0) {
            if !self.program.functions.iter().any(|function| is_constructor(function, &path)) {
                return value;
            }
            return self.object(kind, vec![(None, value.clone())]).unwrap_or(value);
        }
        let mut members = Vec::new();
        self.members(kind, &mut members, 0);
        let part = |(name, _): (Arc<str>, Value)| Some((name.clone(), value.member(&name)?.clone()));
        let members = members.into_iter().filter_map(part).collect();
        let instance = self.program.structs.get(&path).and_then(|found| found.template.as_ref());
        let instance = instance.map(|_| Arc::new(kind.clone()));
        Data::Object { name: path, instance, members }.into()
    }

    /// Whether a struct has a constructor of its own that copies or moves.
    fn copies_by_itself(&self, path: &Arc<str>) -> bool {
        self.program.functions.iter().any(|function| {
            let first = function.parameters.as_deref().unwrap_or_default().first();
            let of_itself =
                first.is_some_and(|first| first.kind.reference && base_name(&first.kind) == Some(&*function.name));
            of_itself && function.body.is_some() && is_constructor(function, path)
        })
    }

    /// Whether a member has the name of another one in the bases: which of them is meant cannot be told here.
    fn hides_a_member(&self, path: &str) -> bool {
        let bases = |path: &str| self.program.structs.get(path).map(|found| found.bases.as_slice()).unwrap_or_default();
        if bases(path).is_empty() {
            return false;
        }
        let (mut seen, mut around) = (HashSet::new(), vec![path]);
        for _ in 0..32 {
            let Some(path) = around.pop() else { break };
            let members = self.program.structs.get(path).map(|found| found.members.as_slice()).unwrap_or_default();
            if members.iter().take(256).any(|member| !seen.insert(&*member.name)) {
                return true;
            }
            around.extend(bases(path).iter().take(8).filter_map(base_name));
        }
        false
    }

    /// Whether a struct has a constructor that takes one value.
    fn takes_one(&self, kind: &Type) -> bool {
        let Some(path) = self.struct_of(kind) else { return false };
        self.program.functions.iter().any(|function| is_constructor(function, &path) && takes(function, 1))
    }

    /// Aggregate initialisation: by name, or in the order of the members.
    fn fill(&mut self, members: &[Declarator], object: &Arc<Place>, items: Items) {
        for (place, (name, value)) in items.into_iter().enumerate() {
            let declared = match &name {
                Some(name) => members.iter().find(|member| member.name == *name),
                None => members.get(place),
            };
            let Some(declared) = declared else { continue };
            let kind = self.resolved(&declared.kind);
            let has_parts = !declared.dimensions.is_empty() || self.struct_of(&kind).is_some() && kind.is_value();
            if has_parts && value.as_float().is_some() && !self.takes_one(&kind) {
                return self.forget_unbraced(object, declared);
            }
            let value = if declared.dimensions.is_empty() { self.held(value, &kind) } else { value.copied() };
            if let Some(member) = self.at(&object.member(&declared.name)) {
                *member = value;
            }
        }
    }
}

fn is_constructor(function: &Function, owner: &Arc<str>) -> bool {
    function.owner.as_ref() == Some(owner) && owner.starts_with(&*function.name) && !function.name.is_empty()
}

/// Whether a constructor ends in `= default;`.
fn is_defaulted(program: &super::program::Program, function: &Function) -> bool {
    let text = &program.text;
    let after = text.partner(function.at + 1);
    (after..after + 4).any(|at| text.is(at, "=") && text.is(at + 1, "default"))
}
