//! Lambdas: what they capture, and their calls.

use std::sync::Arc;

use super::interpreter::{Frame, Interpreter, NESTING};
use super::places::Root;
use super::tree::{Capture, Expression, Lambda};
use super::types::{Base, Type};
use super::value::{Captured, Data, Home, Value};

/// Variables that one lambda copies.
const MOST_CAPTURED: usize = 64;

impl Interpreter<'_> {
    pub fn lambda_value(&mut self, lambda: &Arc<Lambda>) -> Value {
        let captured = self.captured(lambda).into();
        Data::Lambda(lambda.clone(), captured, self.home()).into()
    }

    /// Where a lambda that stands here sees its variables.
    pub fn home(&self) -> Home {
        let frame = self.frames.last();
        Home { frame: frame.map_or(0, |frame| frame.id), scopes: frame.map_or(0, |frame| frame.scopes.len()) }
    }

    pub fn call_lambda(
        &mut self,
        lambda: &Lambda,
        captured: &[Captured],
        home: Home,
        arguments: &[Expression],
        whole: &Expression,
    ) -> Value {
        if self.nesting > NESTING / 2 || self.frames.len() > 48 {
            return self.unknown(whole, "takes too long to work out");
        }
        self.enter_lambda(lambda, captured, home, arguments);
        let returned = self.run_body(&lambda.body);
        self.frames.pop();
        let returned = returned.map(|value| if value.address { value } else { Value { place: None, ..value } });
        returned.unwrap_or_else(|| self.unknown(whole, "has no value that the text gives"))
    }

    /// The values of a lambda's captures that have one; lambdas among them lose their own.
    pub fn captured(&mut self, lambda: &Lambda) -> Vec<Captured> {
        let value = |capture: &Capture| {
            let value = match self.evaluate(&capture.value) {
                Value { data: Data::Lambda(lambda, _, home), origin, .. } => {
                    Value { origin, ..Data::Lambda(lambda, Vec::new().into(), home).into() }
                }
                value if value.address => value.copied(),
                value if has_lambda(&value) || value.weight() > 64 => {
                    self.unknown(&capture.value, "is captured by a lambda")
                }
                value => value.copied(),
            };
            (capture.name.clone(), capture.name_at, value)
        };
        let mut captured: Vec<Captured> = lambda.captures.iter().take(MOST_CAPTURED).map(value).collect();
        self.copy_named(lambda, &mut captured);
        if lambda.mutable {
            self.forget_changed(lambda, &mut captured);
        }
        captured
    }

    /// What `[=]` copies: the variables that the body names.
    fn copy_named(&mut self, lambda: &Lambda, captured: &mut Vec<Captured>) {
        let Some(not_copied) = &lambda.copies_but else { return };
        let text = &self.program.text;
        let own = |at: usize| at > 0 && [".", "->", "::"].iter().any(|before| text.is(at - 1, before));
        for at in lambda.body.at.clone().filter(|at| !own(*at)) {
            let Some(token) = text.tokens.get(at).filter(|token| token.is_identifier()) else { continue };
            let known = not_copied.contains(&token.text) || captured.iter().any(|known| known.0 == token.text);
            if known || captured.len() >= MOST_CAPTURED {
                continue;
            }
            let Some(place) = self.slot_place(&token.text) else { continue };
            let Root::Slot { name_at, .. } = place.root else { continue };
            let value = self.loaded(&place, 0).filter(|value| !has_lambda(value) && value.weight() <= 64);
            captured.extend(value.map(|value| (token.text.clone(), name_at, value.copied())));
        }
    }

    /// A mutable lambda keeps what it changes of its copies from one call to the next.
    fn forget_changed(&mut self, lambda: &Lambda, captured: &mut [Captured]) {
        let effects = self.effects(&[&lambda.body]);
        for (name, name_at, value) in captured {
            if effects.more || effects.touched.iter().any(|touched| touched.root == *name) {
                let line = self.program.text.line(*name_at);
                *value = Value::unknown(name.to_string(), line, "is a copy that a mutable lambda changes");
            }
        }
    }

    /// Opens a frame with the lambda's parameters, those without an argument with their default or unknown. It sees
    /// the variables of the place where the lambda was made.
    pub fn enter_lambda(&mut self, lambda: &Lambda, captured: &[Captured], home: Home, arguments: &[Expression]) {
        let mut values: Vec<Value> = arguments.iter().map(|argument| self.evaluate(argument)).collect();
        values.reverse();
        let frame = match self.frames.iter().find(|frame| frame.id == home.frame) {
            Some(around) => Frame {
                this: around.this.clone(),
                path: around.path.clone(),
                types: around.types.clone(),
                instance: around.instance.clone(),
                home: Some(home),
                ..Frame::default()
            },
            None => Frame::default(),
        };
        self.open_frame(frame);
        for (name, name_at, value) in captured {
            self.declare(name.clone(), *name_at, Type::of(Base::Auto), value.clone());
        }
        for parameter in &lambda.parameters {
            let line = self.program.text.line(parameter.name_at);
            let value = match (values.pop(), &parameter.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.evaluate(default),
                (None, None) => {
                    let name = parameter.name.as_deref().unwrap_or_default().to_owned();
                    Value::unknown(name, line, "is a parameter that no call in the text sets")
                }
            };
            self.bind(parameter, value);
        }
    }
}

/// Whether an object or list has a lambda in it.
fn has_lambda(value: &Value) -> bool {
    match &value.data {
        Data::Object { members, .. } => members.iter().any(|member| has_lambda(&member.1)),
        Data::List(items) => items.iter().any(|item| has_lambda(&item.1)),
        Data::Lambda(..) => true,
        _ => false,
    }
}
