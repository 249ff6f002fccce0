//! Making unknown what code that is not followed may change. A struct's members become unknown one by one, so that
//! the one that stands for n still does.

use std::sync::Arc;

use super::collector::STATIC;
use super::effects::{Effects, Of, Touched, roots_of};
use super::execute::LOOP;
use super::interpreter::Interpreter;
use super::places::{Place, Root};
use super::tree::{Declarator, Expression, ExpressionKind, Statement};
use super::types::{Base, Type};
use super::value::{Data, Value};

/// What a place is called in messages, and since which line it is unknown.
struct Blame {
    what: String,
    line: u32,
    why: &'static str,
}

/// Members within members that become unknown one by one.
const DEPTH: u32 = 8;

impl Interpreter<'_> {
    /// Makes unknown whatever the statements assign to.
    pub fn forget(&mut self, statements: &[&Statement], why: &'static str) {
        let Some(first) = statements.first() else { return };
        let line = self.program.text.line(first.at.start);
        let effects = self.effects(statements);
        self.forget_all(effects, line, why);
    }

    /// Where more is changed than was kept, nothing is worked out from there on.
    fn forget_all(&mut self, effects: Effects, line: u32, why: &'static str) {
        if effects.more {
            self.limit_fuel(0);
        }
        for touched in effects.touched {
            self.forget_touched(&touched, line, why);
        }
    }

    /// Makes unknown whatever an expression, or a lambda in it, assigns to.
    pub fn forget_effects(&mut self, expression: &Expression, why: &'static str) {
        let line = self.program.text.line(expression.at.start);
        let effects = self.effects_of_expression(expression);
        self.forget_all(effects, line, why);
    }

    /// Makes the variables at the bottom of a place unknown, or the members of them that it names.
    pub fn forget_lvalue(&mut self, place: &Expression, why: &'static str) {
        let mut roots = Vec::new();
        roots_of(place, &mut roots);
        let line = self.program.text.line(place.at.start);
        for (root, path) in roots {
            self.forget_touched(&Touched { root, path, step: false }, line, why);
        }
    }

    /// What a reference or pointer may lead to that could not be followed there.
    pub fn forget_escaping(&mut self, initial: &Expression) {
        if !matches!(initial.kind, ExpressionKind::Call(..) | ExpressionKind::Construct(..)) {
            self.forget_lvalue(initial, "is reached through a pointer that cannot be followed");
        }
    }

    /// Makes a place unknown that an expression shows.
    pub fn forget_at(&mut self, place: &Arc<Place>, expression: &Expression, why: &'static str) {
        let text = &self.program.text;
        let blame = Blame { what: text.spelling(expression.at.clone()), line: text.line(expression.at.start), why };
        self.forget_part(place, blame, 0);
    }

    /// Whether a place has a value that a change would lose.
    pub fn is_known(&mut self, touched: &Touched) -> bool {
        let at = touched.root.strip_prefix(STATIC).and_then(|at| at.parse().ok());
        if at.is_some_and(|at: usize| !self.globals.contains_key(&at)) {
            // It has its first value to lose.
            return true;
        }
        let Some(mut place) = self.root_place(&touched.root) else { return false };
        for member in &touched.path {
            place = self.pointee(&place);
            if self.at(&place).is_some_and(|object| object.member(member).is_some()) {
                place = place.member(member);
            }
        }
        let place = self.pointee(&place);
        self.at(&place).is_some_and(|kept| !matches!(kept.data, Data::Unknown(_)))
    }

    /// An object whose constructor cannot be followed.
    pub fn forget_object(&mut self, object: &Arc<Place>) {
        let name = match self.at(object).map(|object| &object.data) {
            Some(Data::Object { name, .. }) => name.to_string(),
            _ => "object".to_owned(),
        };
        let line = self.program.functions.iter().find(|function| *function.name == *name).map_or(1, |f| f.line);
        let why = "has a constructor that the grader does not follow";
        self.forget_part(object, Blame { what: name, line, why }, 0);
    }

    /// An object whose list leaves out the braces around the parts of a member.
    pub fn forget_unbraced(&mut self, object: &Arc<Place>, member: &Declarator) {
        let (what, line) = (member.name.to_string(), self.program.text.line(member.name_at));
        let why = "has parts that are listed without braces of their own";
        self.forget_part(object, Blame { what, line, why }, 0);
    }

    pub fn forget_touched(&mut self, touched: &Touched, line: u32, why: &'static str) {
        let Some(mut place) = self.root_place(&touched.root) else { return };
        let mut what = touched.root.to_string();
        if touched.step && self.forget_stepped(&place, line, why) {
            return;
        }
        for member in &touched.path {
            let owner = self.pointee(&place);
            if self.at(&owner).is_none_or(|object| object.member(member).is_none()) {
                place = owner;
                break;
            }
            place = owner.member(member);
            what = format!("{what}.{member}");
        }
        self.forget_part(&place, Blame { what, line, why }, 0);
    }

    /// `++object` of a struct that says what it does; false for any other thing.
    fn forget_stepped(&mut self, place: &Arc<Place>, line: u32, why: &'static str) -> bool {
        let place = self.pointee(place);
        let Some(Data::Object { name, .. }) = self.at(&place).map(|kept| kept.data.clone()) else { return false };
        let methods = ["operator++", "operator--"].map(|method| self.method(&name, method, 0));
        let mut effects = Vec::new();
        for index in methods.into_iter().flatten() {
            effects.extend(self.effects_of_function(index).iter().filter(|(of, _)| *of == Of::Own).cloned());
        }
        if methods.iter().all(Option::is_none) {
            return false;
        }
        for (_, path) in effects {
            let place = path.iter().fold(place.clone(), |place, member| place.member(member));
            let what = path.last().map(|member| member.to_string()).unwrap_or_default();
            self.forget_part(&place, Blame { what, line, why }, 0);
        }
        true
    }

    /// The variable or member that a name means here.
    fn root_place(&mut self, name: &Arc<str>) -> Option<Arc<Place>> {
        if let Some(at) = name.strip_prefix(STATIC) {
            let at = at.parse().ok()?;
            if !self.globals.contains_key(&at) {
                let name = self.program.text.tokens.get(at)?.text.to_string();
                let unknown = Value::unknown(name, self.program.text.line(at), LOOP);
                self.globals.insert(at, (Type::of(Base::Auto), unknown));
            }
            return Some(Place::of(Root::Global(at)));
        }
        if let Some(place) = self.slot_place(name) {
            return Some(place);
        }
        if let Some(this) = self.this() {
            if &**name == "this" {
                return Some(this);
            }
            if self.at(&this).is_some_and(|object| object.member(name).is_some()) {
                return Some(this.member(name));
            }
        }
        let variable = self.global_variable(name)?;
        self.know_global(variable);
        Some(Place::of(Root::Global(variable.declarator.name_at)))
    }

    fn forget_part(&mut self, place: &Arc<Place>, blame: Blame, depth: u32) {
        let Some(kept) = self.at(place) else { return };
        let unknown = Value::unknown(blame.what.clone(), blame.line, blame.why);
        match &mut kept.data {
            Data::Object { members, .. } if depth < DEPTH => {
                let names: Vec<Arc<str>> = members.iter().map(|member| member.0.clone()).collect();
                for name in names {
                    let what = format!("{}.{name}", blame.what);
                    self.forget_part(&place.member(&name), Blame { what, ..blame }, depth + 1);
                }
            }
            Data::Pointer(target, reference) => {
                let (target, reference) = (target.clone(), *reference);
                if !reference {
                    *kept = unknown;
                }
                if depth < DEPTH {
                    self.forget_part(&target, blame, depth + 1);
                }
            }
            _ => *kept = unknown,
        }
    }
}
