//! Objects of structs: their members, those of their bases included, and their constructors.

use std::sync::Arc;

use super::interpreter::{Interpreter, NESTING};
use super::objects::{Items, built_in_object};
use super::overloads::{base_name, takes};
use super::places::{Place, Root};
use super::program::Function;
use super::tree::Declarator;
use super::types::{Base, Type};
use super::value::{Data, Value};

/// Bases of bases that are followed.
const BASES: u32 = 8;

impl Interpreter<'_> {
    /// A struct's object from a list in braces or brackets, through its constructor where it has one.
    pub fn object(&mut self, kind: &Type, items: Items) -> Option<Value> {
        let Base::Named(name) = &kind.base else { return None };
        if let Some(built_in) = built_in_object(name.rsplit("::").next().unwrap_or_default(), &items) {
            return Some(built_in);
        }
        let path = self.struct_of(kind)?;
        if let [(None, Value { data: Data::Object { name, .. }, .. })] = items.as_slice()
            && *name == path
        {
            return items.into_iter().next().map(|item| item.1.copied());
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
        self.initialise(kind, &path, &object, items);
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
            match members.iter_mut().find(|known| known.0 == member.name) {
                Some(known) => known.1 = value,
                None => members.push((member.name.clone(), value)),
            }
        }
        self.frames.pop();
    }

    /// Runs a struct's constructor on an object, or fills its members in their order.
    fn initialise(&mut self, kind: &Type, path: &Arc<str>, object: &Arc<Place>, items: Items) {
        let program = self.program;
        let constructors = || program.functions.iter().filter(|function| is_constructor(function, path));
        if let Some(constructor) = constructors().find(|f| f.body.is_some() && takes(f, items.len())) {
            self.construct(kind, constructor, object, items.into_iter().map(|item| item.1).collect());
            return;
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
                    self.initialise(base, &path, object, items);
                }
            }
            _ if !items.is_empty() && any_constructor => self.forget_object(object),
            _ => {
                for base in &bases {
                    self.initialise_base(base, object, Vec::new());
                }
                self.fill(&found.members, object, items);
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
            self.initialise(base, &path, object, values.into_iter().map(|value| (None, value)).collect());
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
        for (member, values) in &constructor.member_initials {
            if named(member, &constructor.name) {
                // Another constructor of the same struct.
                let values = values.iter().map(|value| (None, self.evaluate(value))).collect();
                self.initialise(kind, &path, object, values);
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

    /// Aggregate initialisation: by name, or in the order of the members.
    fn fill(&mut self, members: &[Declarator], object: &Arc<Place>, items: Items) {
        for (place, (name, value)) in items.into_iter().enumerate() {
            let declared = match &name {
                Some(name) => members.iter().find(|member| member.name == *name),
                None => members.get(place),
            };
            let Some(declared) = declared else { continue };
            let kind = self.resolved(&declared.kind);
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
