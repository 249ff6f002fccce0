//! What becomes of a thread's locals that live across barriers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::super::declarations::{Declarator, Reading};
use super::super::functions::{identifiers, text_of};
use super::body::Body;

/// What becomes of locals that live across barriers.
pub struct Keeping<'b, 't> {
    body: &'b Body<'t>,
    /// By name: the interval that declares it, the statement there, and whether it can be computed again.
    locals: BTreeMap<&'t str, Local>,
}

#[derive(Clone, Copy)]
struct Local {
    interval: usize,
    statement: usize,
    again: bool,
    reference: bool,
    /// Which array keeps it.
    slot: usize,
}

impl<'b, 't> Keeping<'b, 't> {
    pub fn of(body: &'b Body<'t>) -> Self {
        let mut locals: BTreeMap<&'t str, Local> = BTreeMap::new();
        for (interval, statements) in body.intervals.iter().enumerate() {
            for (statement, declared) in statements.iter().enumerate() {
                let Some(declaration) = &declared.declaration else { continue };
                let reading = |name: &str| match locals.get(name) {
                    // What is read through a reference may change between two readings.
                    Some(local) if local.reference || !local.again => Reading::Differs,
                    Some(_) => Reading::Same,
                    None if body.constants.contains(name) && !body.is_shared(name) => Reading::Same,
                    None => Reading::Place,
                };
                let again = declaration.gives_the_same_again(body.all, reading);
                for declarator in &declaration.declarators {
                    let (slot, reference) = (locals.len(), declarator.is_reference());
                    locals.insert(&*declarator.name.text, Local { interval, statement, again, reference, slot });
                }
            }
        }
        Self { body, locals }
    }

    /// Locals of earlier intervals that interval `at` uses, those that they are computed from included.
    fn needed(&self, at: usize) -> BTreeSet<&'t str> {
        let used = self.body.intervals[at].iter().flat_map(|statement| identifiers(statement.tokens));
        let mut needed = BTreeSet::new();
        let mut open: Vec<&'t str> = used.collect();
        while let Some(name) = open.pop() {
            let Some((&name, local)) = self.locals.get_key_value(name).filter(|(_, local)| local.interval < at) else {
                continue;
            };
            if needed.insert(name) {
                open.extend(identifiers(self.body.intervals[local.interval][local.statement].tokens));
            }
        }
        needed
    }

    /// Declares what interval `at` needs from earlier ones, in the order of the text.
    pub fn before(&self, at: usize) -> Option<String> {
        let needed = self.needed(at);
        let mut text = String::new();
        for (interval, statements) in self.body.intervals[..at].iter().enumerate() {
            for (index, statement) in statements.iter().enumerate() {
                let Some(declaration) = &statement.declaration else { continue };
                let wanted =
                    declaration.declarators.iter().filter(|declarator| needed.contains(&*declarator.name.text));
                let wanted: Vec<&Declarator> = wanted.collect();
                let Some(first) = wanted.first() else { continue };
                let local = self.locals.get(&*first.name.text)?;
                if (local.interval, local.statement) != (interval, index) {
                    return None;
                }
                if local.again {
                    let _ = write!(text, "{} ", text_of(statement.tokens));
                    continue;
                }
                for declarator in wanted {
                    let name = &*declarator.name.text;
                    let slot = self.locals.get(name)?.slot;
                    if let Some(class) = declaration.class_of(declarator) {
                        let _ = write!(text, "{class}& {name} = hg_kept<{slot}, {class}>()[hg_thread]; ");
                        continue;
                    }
                    let _ = write!(
                        text,
                        "{}; __builtin_memcpy(&{name}, &hg_kept<{slot}, decltype({name})>()[hg_thread], sizeof {name}); ",
                        declaration.uninitialised(declarator)?
                    );
                }
            }
        }
        Some(text)
    }

    /// Keeps what later intervals need of the locals that interval `at` has.
    pub fn after(&self, at: usize) -> String {
        let later: BTreeSet<&str> = (at + 1..self.body.intervals.len()).flat_map(|later| self.needed(later)).collect();
        let here = self.needed(at);
        let mut text = String::new();
        for (&name, local) in &self.locals {
            let present = local.interval == at || here.contains(name);
            if !local.again && present && later.contains(name) {
                let slot = local.slot;
                let _ = write!(
                    text,
                    "__builtin_memcpy(&hg_kept<{slot}, hg_plain<decltype({name})>>()[hg_thread], &{name}, sizeof {name}); "
                );
            }
        }
        text
    }
}
