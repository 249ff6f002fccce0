//! What destructors do to what a launch is made of: they run where a scope ends.

use std::sync::Arc;

use super::effects::{Of, Touched};
use super::interpreter::Interpreter;
use super::overloads::base_name;
use super::places::{Part, Place, Root};
use super::program::Program;
use super::types::{Base, Type};
use super::value::{Data, Value};

/// Objects within objects that are followed.
const DEPTH: u32 = 6;

/// Why a variable is unknown that a destructor may change at some time.
const DESTROYED: &str = "is changed by a destructor that the grader does not follow";

/// The destructors that run when an object of a struct goes, its own first.
pub fn destructors(program: &Program, name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    if program.functions.iter().any(|function| function.name.starts_with('~')) {
        gather(program, name, 0, &mut found);
    }
    found
}

fn gather(program: &Program, name: &str, depth: u32, found: &mut Vec<usize>) {
    let Some((owner, known)) = program.structs.get_key_value(name).filter(|_| depth < DEPTH && found.len() < 64) else {
        return;
    };
    let own = program.functions.iter().enumerate();
    let own = own.filter(|(_, f)| f.owner.as_ref() == Some(owner) && f.name.starts_with('~') && f.body.is_some());
    found.extend(own.map(|(index, _)| index));
    let members = known.members.iter().map(|member| &member.kind).filter(|kind| kind.is_value() && !kind.reference);
    for part in members.chain(known.bases.iter().take(8)).filter_map(base_name).take(64) {
        gather(program, part, depth + 1, found);
    }
}

impl Interpreter<'_> {
    /// Runs the destructors of the variables of the innermost scope, but for one that is returned.
    pub fn destroy_scope(&mut self, returned: Option<&Arc<Place>>) {
        if !self.program.functions.iter().any(|function| function.name.starts_with('~')) {
            return;
        }
        let Some(frame) = self.frames.last() else { return };
        let Some((scope, slots)) = frame.scopes.iter().enumerate().next_back() else { return };
        let place = |(index, name_at): (usize, usize)| Place::of(Root::Slot { frame: frame.id, scope, index, name_at });
        let slots = slots.iter().enumerate().map(|(index, slot)| (index, slot.name_at));
        let places: Vec<Arc<Place>> = slots.map(place).collect();
        for place in places.iter().rev().filter(|place| returned != Some(*place)) {
            self.destroy(place, 0);
        }
    }

    /// Runs the destructor of what is kept at a place.
    pub fn destroy(&mut self, place: &Arc<Place>, depth: u32) {
        let parts: Vec<Part> = match self.kept(place).map(|kept| &kept.data) {
            Some(Data::Object { name, members, .. }) => {
                let (name, members) =
                    (name.clone(), members.iter().map(|member| Part::Member(member.0.clone())).collect());
                self.run_destructors(&name, place);
                members
            }
            Some(Data::List(items)) => (0..items.len()).map(Part::Item).collect(),
            _ => return,
        };
        for part in parts.into_iter().filter(|_| depth < DEPTH) {
            self.spend(1);
            self.destroy(&place.with(part), depth + 1);
        }
    }

    /// Those of the struct itself and of its bases.
    fn run_destructors(&mut self, name: &str, object: &Arc<Place>) {
        let program = self.program;
        for index in destructors(program, name) {
            let Some(function) = program.functions.get(index) else { continue };
            let of_part = !function.owner.as_ref().is_some_and(|owner| self.descends(name, owner, 0));
            let Some(body) = function.body.as_ref().filter(|_| !of_part) else { continue };
            if self.frames.len() > 48 || !self.enter_node() {
                self.forget_destroyed(name);
                return;
            }
            let entry = super::calls::Entry { this: Some(object.clone()), ..Default::default() };
            self.enter_function(function, entry);
            self.run_body(body);
            self.frames.pop();
            self.nesting -= 1;
        }
    }

    /// An object that goes at a time which is not known.
    pub fn forget_destroyed(&mut self, name: &str) {
        for index in destructors(self.program, name) {
            let line = self.program.functions.get(index).map_or(1, |function| function.line);
            for (of, path) in self.effects_of_function(index).iter() {
                match of {
                    Of::Global(root) => {
                        self.forget_touched(
                            &Touched { root: root.clone(), path: path.clone(), step: false },
                            line,
                            DESTROYED,
                        );
                    }
                    Of::More => drop(self.limit_fuel(0)),
                    _ => {}
                }
            }
        }
    }

    /// The same for objects that a smart pointer or container holds, and for `delete`, where `kind` may be anything.
    pub fn forget_held(&mut self, kind: Option<&Type>) {
        match kind.map(|kind| &kind.base) {
            Some(Base::Named(name)) => self.forget_destroyed(name.rsplit("::").next().unwrap_or_default()),
            Some(_) => {}
            None => {
                let owners = self.program.functions.iter().filter(|function| function.name.starts_with('~'));
                let owners: Vec<Arc<str>> = owners.filter_map(|function| function.owner.clone()).take(64).collect();
                owners.iter().for_each(|owner| self.forget_destroyed(owner));
            }
        }
    }

    /// A value that nothing keeps goes at the end of its statement.
    pub fn destroy_unkept(&mut self, value: Value) {
        let Data::Object { name, .. } = &value.data else { return };
        if value.place.is_none() && !destructors(self.program, name).is_empty() {
            let place = self.placed(value);
            self.destroy(&place, 0);
        }
    }
}
