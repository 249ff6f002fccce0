//! Which function a call means: by name, by struct and its bases, by the arguments as far as they show.

use std::sync::Arc;

use super::interpreter::Interpreter;
use super::program::Function;
use super::tree::{Expression, ExpressionKind};
use super::types::{Base, Type};
use super::value::Data;

impl Interpreter<'_> {
    /// The function with a body that a call with these arguments means.
    pub fn callee(&mut self, path: &str, arguments: &[Expression]) -> Option<usize> {
        let program = self.program;
        let meant = program.functions_meant(path, &self.path_here()).into_iter();
        let fitting = meant.filter(|(_, f)| f.body.is_some() && !f.global);
        let fitting: Vec<usize> = fitting.filter(|(_, f)| takes(f, arguments.len())).map(|found| found.0).collect();
        self.overload(&fitting, arguments)
    }

    /// Of functions that take as many arguments, the first that takes such ones as far as can be seen.
    pub fn overload(&self, fitting: &[usize], arguments: &[Expression]) -> Option<usize> {
        let takes_them = |index: &&usize| {
            let parameters = self.program.functions.get(**index).and_then(|f| f.parameters.as_deref());
            let mut pairs = parameters.unwrap_or_default().iter().zip(arguments);
            pairs.all(|(parameter, argument)| self.may_take(&parameter.kind, argument))
        };
        fitting.iter().find(takes_them).or(fitting.first()).copied()
    }

    /// Whether a parameter's type can take an argument: numbers and objects are told apart.
    fn may_take(&self, kind: &Type, argument: &Expression) -> bool {
        let named = match &kind.base {
            Base::Named(name) => name.rsplit("::").next(),
            _ => None,
        };
        let is_struct =
            named.is_some_and(|name| matches!(name, "dim3" | "uint3") || self.program.structs.contains_key(name));
        let object = |name: &str| match named {
            Some(named) if is_struct => named == name || self.descends(name, named, 0),
            // A template parameter or another type that is not known.
            Some(_) => true,
            None => kind.base == Base::Auto,
        };
        match &argument.kind {
            ExpressionKind::Number(_) => !is_struct || named == Some("dim3"),
            ExpressionKind::Text => named.is_some() || !kind.pointers.is_empty(),
            ExpressionKind::Construct(made, _) => match &made.base {
                Base::Named(name) => object(name.rsplit("::").next().unwrap_or_default()),
                _ => !is_struct || named == Some("dim3"),
            },
            ExpressionKind::Name(name) => {
                let kept = self.slot_place(&name.path).and_then(|place| self.kept(&place));
                match kept.map(|kept| &kept.data) {
                    Some(Data::Object { name, .. }) => object(name),
                    Some(Data::Integer { .. } | Data::Float { .. }) => !is_struct || named == Some("dim3"),
                    _ => true,
                }
            }
            _ => true,
        }
    }

    /// The method of a struct, or of the bases it names, that takes so many arguments.
    pub fn method(&self, owner: &Arc<str>, method: &str, count: usize) -> Option<usize> {
        self.methods(owner, method, count, 0).first().copied()
    }

    /// The same for these arguments.
    pub fn method_for(&self, owner: &Arc<str>, method: &str, arguments: &[Expression]) -> Option<usize> {
        self.overload(&self.methods(owner, method, arguments.len(), 0), arguments)
    }

    fn methods(&self, owner: &str, method: &str, count: usize, depth: u32) -> Vec<usize> {
        let program = self.program;
        let of_owner = |function: &Function| {
            &*function.name == method && function.owner.as_deref() == Some(owner) && function.body.is_some()
        };
        let all = program.functions.iter().enumerate();
        let own: Vec<usize> = all.filter(|(_, f)| of_owner(f) && takes(f, count)).map(|found| found.0).collect();
        if !own.is_empty() || depth >= 8 {
            return own;
        }
        let bases = program.structs.get(owner).map(|found| found.bases.as_slice()).unwrap_or_default();
        let of_bases = bases.iter().take(8).filter_map(base_name);
        let of_bases = of_bases.map(|base| self.methods(base, method, count, depth + 1));
        of_bases.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Whether a struct is another one, or has it among its bases.
    pub fn descends(&self, name: &str, base: &str, depth: u32) -> bool {
        let bases = self.program.structs.get(name).map(|found| found.bases.as_slice()).unwrap_or_default();
        name == base
            || depth < 8 && bases.iter().take(8).filter_map(base_name).any(|name| self.descends(name, base, depth + 1))
    }
}

/// The last part of the name of a struct's base.
pub fn base_name(base: &Type) -> Option<&str> {
    match &base.base {
        Base::Named(path) => path.rsplit("::").next(),
        _ => None,
    }
}

/// Whether a function can be called with so many arguments.
pub fn takes(function: &Function, count: usize) -> bool {
    function.parameters.as_ref().is_some_and(|parameters| {
        let least = parameters.iter().filter(|parameter| parameter.default.is_none()).count();
        (least..=parameters.len()).contains(&count)
    })
}
