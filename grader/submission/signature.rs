//! Kernels' signatures against the contract: `(const float*, float*, int, float)`.

use super::program::{Function, Program};
use super::tree::Parameter;
use super::types::{Base, INT, Type};

/// The contract's parameters, in the words of every message.
pub const CONTRACT: &str = "(const float*, float*, int, float)";

/// A kernel's parameters as they are, aliases resolved: `(const float*, float*, unsigned int, float)`.
pub fn spelt(program: &Program, function: &Function) -> String {
    let Some(parameters) = &function.parameters else { return "(parameters that cannot be read)".to_owned() };
    let kinds: Vec<String> =
        parameters.iter().take(12).map(|parameter| resolved(program, function, parameter).to_string()).collect();
    format!("({})", kinds.join(", "))
}

/// Why the parameters are not the contract's; nothing when they are.
pub fn fault(program: &Program, function: &Function) -> Option<String> {
    let Some(parameters) = &function.parameters else { return Some("its parameters cannot be read".to_owned()) };
    if parameters.len() != 4 {
        return Some(format!("it has {} parameters; the contract is {CONTRACT}", parameters.len()));
    }
    let wanted = [
        ("in", wanted_pointer(true)),
        ("out", wanted_pointer(false)),
        ("n", Type::of(INT)),
        ("r", Type::of(Base::Float)),
    ];
    for (parameter, (role, wanted)) in parameters.iter().zip(wanted) {
        let kind = resolved(program, function, parameter);
        if !same(&kind, &wanted) {
            return Some(format!("its {role} is {kind}; the contract is {CONTRACT}"));
        }
    }
    None
}

fn wanted_pointer(constant: bool) -> Type {
    Type { constant, pointers: vec![false], ..Type::of(Base::Float) }
}

/// Whether two types are the same parameter: a const at the very top does not count.
fn same(kind: &Type, wanted: &Type) -> bool {
    kind.base == wanted.base
        && !kind.reference
        && kind.pointers.len() == wanted.pointers.len()
        && (kind.pointers.is_empty() || kind.constant == wanted.constant)
}

/// A parameter's type; a template's type parameter that can only be float is float.
fn resolved(program: &Program, function: &Function, parameter: &Parameter) -> Type {
    let is_type_parameter = |name: &str| {
        let parameters = function.template.iter().flatten();
        parameters.into_iter().any(|parameter| parameter.is_type && parameter.name.as_deref() == Some(name))
    };
    let stands_for_itself = |kind: &Type| match &kind.base {
        // `typename Traits::value_type` of a parameter: which type it is shows where the kernel is launched.
        Base::Named(name) => is_type_parameter(name.split("::").next().unwrap_or_default()),
        _ => false,
    };
    let written = parameter.kind.clone();
    let kind = if stands_for_itself(&written) { written } else { program.resolved(&written) };
    match stands_for_itself(&kind) {
        true => Type { base: stands_for(function, parameter), ..kind },
        false => kind,
    }
}

/// What a type parameter stands for by the place it is used in.
fn stands_for(function: &Function, parameter: &Parameter) -> Base {
    let place = function.parameters.iter().flatten().position(|other| other.name_at == parameter.name_at);
    if place == Some(2) { INT } else { Base::Float }
}

/// What a template's type parameter stands for, as the contract's arguments deduce it.
pub fn deduced_type(function: &Function, name: &str) -> Option<String> {
    let parameters = function.parameters.iter().flatten();
    let mut using =
        parameters.into_iter().filter(|parameter| matches!(&parameter.kind.base, Base::Named(base) if &**base == name));
    using.next().map(|parameter| stands_for(function, parameter).to_string())
}
