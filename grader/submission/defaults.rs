//! Template arguments that only one declaration gives: C++ lets every later use of a template have the defaults of all
//! its declarations, so `template <int TX = 32> ...;` before main serves the definition after it.

use std::collections::HashMap;
use std::sync::Arc;

use super::parser::{Names, Parser, Text};
use super::program::{Function, Program, TemplateParameter};

/// Declarations of one name that are compared.
const DECLARATIONS: usize = 32;

/// Gives every declaration of a function template the defaults of all others.
pub fn share(text: &Text, program: &mut Program) {
    let mut declared: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for (index, function) in program.functions.iter().enumerate() {
        if function.template.as_ref().is_some_and(|list| !list.is_empty()) {
            declared.entry(function.path.clone()).or_default().push(index);
        }
    }
    for indices in declared.values().filter(|indices| indices.len() > 1) {
        let indices = indices.get(..DECLARATIONS).unwrap_or(indices);
        for &to in indices {
            let missing = |list: &Vec<TemplateParameter>| list.iter().any(|own| own.default_at.is_none());
            let Some(function) = program.functions.get(to).filter(|f| f.template.as_ref().is_some_and(missing)) else {
                continue;
            };
            let others = indices.iter().filter_map(|from| program.functions.get(*from));
            let others = others.filter(|other| same_template(function, other));
            let lists: Vec<_> = others.filter_map(|other| other.template.clone()).collect();
            if let Some(own) = program.functions.get_mut(to).and_then(|function| function.template.as_mut()) {
                lists.iter().for_each(|list| take_missing(own, list, text, &program.names));
            }
        }
    }
}

/// Fills defaults that `own` lacks from another declaration of the same template. Names of that declaration's
/// parameters become `own`'s.
pub fn take_missing(own: &mut [TemplateParameter], other: &[TemplateParameter], text: &Text, names: &Names) {
    if !same_parameters(own, other) {
        return;
    }
    let renamed: HashMap<Arc<str>, Arc<str>> = own
        .iter()
        .zip(other)
        .filter_map(|(own, other)| Some((other.name.clone()?, own.name.clone()?)))
        .filter(|(other, own)| other != own)
        .collect();
    for (own, other) in own.iter_mut().zip(other) {
        let Some(at) = other.default_at.clone().filter(|_| own.default_at.is_none()) else { continue };
        let mut tokens = text.tokens.get(at.clone()).unwrap_or_default().to_vec();
        let qualified = |index: usize| {
            let before = (at.start + index).checked_sub(1);
            before.is_some_and(|before| [".", "->", "::"].iter().any(|word| text.is(before, word)))
        };
        let mut changed = false;
        for (_, token) in tokens.iter_mut().enumerate().filter(|(index, _)| !qualified(*index)) {
            if let Some(name) = renamed.get(&token.text).filter(|_| token.is_identifier()) {
                (token.text, changed) = (name.clone(), true);
            }
        }
        own.default_at = other.default_at.clone();
        (own.default, own.default_kind) = (other.default.clone(), other.default_kind.clone());
        if changed {
            let text = Text::new(tokens);
            let mut parser = Parser::new(&text, names, 0, text.tokens.len());
            if own.is_type {
                own.default_kind = parser.type_name();
            } else {
                own.default = parser.assignment();
            }
        }
    }
}

fn same_parameters(one: &[TemplateParameter], other: &[TemplateParameter]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_type == other.is_type)
}

/// Whether two templates of one name are one template, as far as their lists and parameters show.
fn same_template(one: &Function, other: &Function) -> bool {
    let lists = one.template.as_deref().zip(other.template.as_deref());
    let shapes = |function: &Function| {
        let parameters = function.parameters.iter().flatten();
        parameters.map(|parameter| (parameter.kind.pointers.len(), parameter.kind.reference)).collect::<Vec<_>>()
    };
    lists.is_some_and(|(one, other)| same_parameters(one, other)) && shapes(one) == shapes(other)
}
