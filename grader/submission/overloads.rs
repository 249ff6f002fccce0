//! Which function a call means: by name, by struct and its bases, by the types of the arguments.

use std::sync::Arc;

use super::arithmetic::{character, literal};
use super::instances::type_of_object;
use super::interpreter::Interpreter;
use super::program::Function;
use super::tree::{Expression, ExpressionKind, Operator, TemplateArgument};
use super::types::{Base, SIZE, Type};
use super::value::{Data, Value};

/// The function that a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    One(usize),
    /// One of several, and there is no telling which.
    Torn,
    Nothing,
}

impl Meant {
    pub fn one(self) -> Option<usize> {
        match self {
            Self::One(index) => Some(index),
            _ => None,
        }
    }
}

/// Why a call has no value that one of several functions may answer.
pub const TORN: &str = "calls one of several functions of that name, which the grader cannot tell apart";

/// What is known about an argument.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Nothing when it is not known.
    kind: Option<Type>,
    /// Whether it is a thing rather than a value: `T&` takes those alone.
    place: bool,
    /// Whether it is `0` or `nullptr`.
    null: bool,
    /// How many items it has in braces.
    braces: Option<usize>,
    /// The scope that its name is written with: `Mode` of `Mode::kFast`.
    scope: Option<Arc<str>>,
}

impl Given {
    pub fn of_value(value: &Value) -> Self {
        Self { kind: type_of_value(value), place: value.place.is_some(), ..Self::default() }
    }
}

fn type_of_value(value: &Value) -> Option<Type> {
    let kind = match &value.data {
        Data::Integer { bits: 1, .. } => Type::of(Base::Bool),
        Data::Integer { bits, signed, .. } => Type::of(Base::Integer { bits: *bits, signed: *signed, spelling: "" }),
        Data::Float { single, .. } => Type::of(if *single { Base::Float } else { Base::Double }),
        _ => type_of_object(value)?,
    };
    Some(if value.address { Type { pointers: vec![false], ..kind } } else { kind })
}

/// How well a parameter takes an argument, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Exact,
    /// The same, but for a `const` that it adds.
    AddsConst,
    Promoted,
    Converted,
    /// By a constructor or conversion of a struct.
    Made,
    /// Not known.
    Unclear,
}

impl Interpreter<'_> {
    /// The function with a body that a call with these arguments means.
    pub fn callee(&mut self, path: &str, template: Option<&[TemplateArgument]>, arguments: &[Expression]) -> Meant {
        let program = self.program;
        let meant = program.functions_meant(path, &self.path_here());
        let spread = arguments.iter().any(|argument| matches!(argument.kind, ExpressionKind::Spread(_)));
        let given = if spread { Some(self.all_given(arguments)) } else { None };
        let count = given.as_ref().map_or(arguments.len(), Vec::len);
        let takes = |f: &Function| takes(f, count);
        let fitting = |(_, f): &&(usize, &Function)| {
            f.body.is_some()
                && !f.global
                && !f.specialisation
                && takes(f)
                && (template.is_none() || f.template.is_some())
        };
        let fitting: Vec<usize> = meant.iter().filter(fitting).map(|found| found.0).collect();
        let meant_one = match &given {
            Some(given) => self.best(&fitting, given),
            None => self.overload(&fitting, arguments),
        };
        match meant_one {
            Meant::One(index) => self.specialised(index, &meant, template),
            other => other,
        }
    }

    /// What is written for those template arguments alone, or the template itself.
    fn specialised(
        &mut self,
        index: usize,
        named: &[(usize, &Function)],
        template: Option<&[TemplateArgument]>,
    ) -> Meant {
        let program = self.program;
        let Some(of) = program.functions.get(index).filter(|of| of.template.is_some()) else {
            return Meant::One(index);
        };
        let same = |f: &Function| f.specialisation && f.body.is_some() && f.path == of.path;
        let special: Vec<usize> = named.iter().filter(|(_, f)| same(f)).map(|found| found.0).take(64).collect();
        if special.is_empty() {
            return Meant::One(index);
        }
        let Some(template) = template else { return Meant::Torn };
        let called = self.spelt_list(template);
        for special in special {
            let written = program.functions.get(special).and_then(|function| self.written_arguments(function));
            match written {
                Some(written) if written.len() == template.len() => {
                    if self.spelt_list(&written) == called {
                        return Meant::One(special);
                    }
                }
                _ => return Meant::Torn,
            }
        }
        Meant::One(index)
    }

    /// Of functions that take as many arguments, the one that takes such ones best.
    pub fn overload(&mut self, fitting: &[usize], arguments: &[Expression]) -> Meant {
        if let [] | [_] = fitting {
            return fitting.first().map_or(Meant::Nothing, |only| Meant::One(*only));
        }
        let given = self.all_given(arguments);
        self.best(fitting, &given)
    }

    /// What is known about arguments, packs as the values that they stand for.
    fn all_given(&mut self, arguments: &[Expression]) -> Vec<Given> {
        let mut given = Vec::new();
        for argument in arguments.iter().take(64) {
            match &argument.kind {
                ExpressionKind::Spread(_) => {
                    let values = self.spread(std::slice::from_ref(argument));
                    given.extend(values.iter().take(64).map(Given::of_value));
                }
                _ => given.push(self.given(argument)),
            }
        }
        given
    }

    /// The same for arguments of which that much is known.
    pub fn best(&mut self, fitting: &[usize], given: &[Given]) -> Meant {
        if let [] | [_] = fitting {
            return fitting.first().map_or(Meant::Nothing, |only| Meant::One(*only));
        }
        self.spend(u32::try_from(fitting.len()).unwrap_or(u32::MAX));
        let mut fits: Vec<(usize, Vec<Fit>)> = Vec::new();
        for &index in fitting.iter().take(64) {
            if let Some(fit) = self.fits(index, given) {
                fits.push((index, fit));
            }
        }
        let best = fits.iter().position(|one| fits.iter().all(|other| one.0 == other.0 || self.is_better(one, other)));
        match best.and_then(|best| fits.get(best)) {
            Some((index, _)) => Meant::One(*index),
            None => Meant::Torn,
        }
    }

    fn fits(&mut self, index: usize, given: &[Given]) -> Option<Vec<Fit>> {
        let function = self.program.functions.get(index)?;
        let parameters = function.parameters.as_deref().unwrap_or_default();
        let parameter = |place: usize| parameters.get(place).or_else(|| parameters.last().filter(|last| last.pack));
        (0..given.len()).map(|place| self.fit(function, &parameter(place)?.kind, given.get(place)?)).collect()
    }

    /// Nothing where the parameter cannot take the argument.
    fn fit(&mut self, function: &Function, parameter: &Type, given: &Given) -> Option<Fit> {
        let of_template = |name: &str| {
            function
                .template
                .iter()
                .flatten()
                .any(|parameter| parameter.is_type && parameter.name.as_deref() == Some(name))
        };
        let named = match &parameter.base {
            Base::Named(path) => path.rsplit("::").next().map(Arc::<str>::from),
            _ => None,
        };
        let deduced = parameter.base == Base::Auto || named.as_deref().is_some_and(of_template);
        if parameter.reference && !parameter.constant && !deduced && !given.place && given.kind.is_some() {
            return None;
        }
        let constant = if parameter.reference && parameter.constant { Fit::AddsConst } else { Fit::Exact };
        if deduced && (parameter.pointers.is_empty() || given.kind.is_none()) {
            return if given.braces.is_some() { None } else { Some(constant) };
        }
        let wanted = if deduced { parameter.clone() } else { self.resolved(parameter) };
        if let Some(scope) = given.scope.as_deref().filter(|scope| self.is_enumeration(scope)) {
            return match &wanted.base {
                Base::Named(name) if name.rsplit("::").next() == Some(scope) => Some(constant),
                Base::Named(_) => None,
                _ => Some(Fit::Converted),
            };
        }
        let is_number = |kind: &Type| kind.is_value() && !matches!(kind.base, Base::Named(_) | Base::Auto | Base::Void);
        let is_made = |kind: &Type| {
            matches!(&kind.base, Base::Named(name) if &**name == "dim3") || self.struct_of(kind).is_some()
        };
        let Some(kind) = &given.kind else {
            return match given.null && !wanted.pointers.is_empty() {
                true => Some(Fit::Converted),
                false if given.null && is_number(&wanted) => None,
                false if given.braces.is_some_and(|items| items > 1) && is_number(&wanted) => None,
                false if given.braces.is_some() && !wanted.is_value() => None,
                false if given.braces.is_some() && is_made(&wanted) => Some(Fit::Made),
                false => Some(Fit::Unclear),
            };
        };
        match (wanted.pointers.is_empty(), kind.pointers.is_empty()) {
            (false, false) if deduced || same_base(&wanted.base, &kind.base) => {
                Some(if wanted.constant { Fit::AddsConst } else { Fit::Exact })
            }
            (false, false) if wanted.base == Base::Void => Some(Fit::Converted),
            (false, false) => Some(Fit::Unclear),
            (false, true) => given.null.then_some(Fit::Converted),
            (true, false) if wanted.base == Base::Bool => Some(Fit::Converted),
            (true, false) => matches!(wanted.base, Base::Named(_)).then_some(Fit::Unclear),
            (true, true) => match (is_number(&wanted), is_number(kind)) {
                (true, true) => Some(number_fit(&wanted.base, &kind.base).max(constant)),
                // A scoped enumerator is no number, and what is no struct may be an enumeration.
                (false, true) if !is_made(&wanted) => Some(Fit::Unclear),
                (false, true) => Some(Fit::Made),
                (true, false) => Some(if is_made(kind) { Fit::Made } else { Fit::Unclear }),
                (false, false) => self.object_fit(&wanted, kind, constant),
            },
        }
    }

    fn is_enumeration(&self, name: &str) -> bool {
        self.program.names.types.contains(name) && !self.program.structs.contains_key(name)
    }

    fn object_fit(&mut self, wanted: &Type, kind: &Type, constant: Fit) -> Option<Fit> {
        let names = |kind: &Type| match (self.struct_of(kind), &kind.base) {
            (Some(path), _) => Some(path),
            (None, Base::Named(name)) => name.rsplit("::").next().map(Arc::from),
            _ => None,
        };
        let (wanted_name, name) = (names(wanted)?, names(kind)?);
        if wanted_name == name {
            let all_known = wanted.arguments.is_none() || kind.arguments.is_none();
            return Some(if all_known { constant } else { Fit::Unclear });
        }
        let known = |name: &str| self.program.structs.contains_key(name) || name == "dim3";
        match (known(&wanted_name), known(&name)) {
            (true, true) if self.descends(&name, &wanted_name, 0) => Some(Fit::Converted),
            (true, true) if self.may_convert(&name, &wanted_name) => Some(Fit::Made),
            (true, true) => None,
            _ => Some(Fit::Unclear),
        }
    }

    /// Whether some constructor or conversion may make one struct of another.
    fn may_convert(&self, from: &str, to: &str) -> bool {
        self.program.functions.iter().any(|function| match function.owner.as_deref() {
            Some(owner) if owner == from => function.name.starts_with("operator "),
            Some(owner) => owner == to && to.starts_with(&*function.name) && takes(function, 1),
            None => false,
        })
    }

    fn is_better(&self, (one, fits): &(usize, Vec<Fit>), (other, other_fits): &(usize, Vec<Fit>)) -> bool {
        let functions = (self.program.functions.get(*one), self.program.functions.get(*other));
        let (Some(one), Some(other)) = functions else { return false };
        let kind = |function: &Function, place: usize| {
            function.parameters.as_deref().and_then(|list| list.get(place)).map(|parameter| parameter.kind.to_string())
        };
        let (mut better, mut worse) = (false, false);
        for (place, (fit, than)) in fits.iter().zip(other_fits).enumerate() {
            if kind(one, place) == kind(other, place) && fit == than {
                continue;
            }
            worse |= fit > than || *fit == Fit::Unclear || *than == Fit::Unclear;
            better |= fit < than;
        }
        if better || worse {
            return better && !worse;
        }
        let template = |function: &Function| u8::from(function.template.is_some()) + u8::from(is_variadic(function));
        template(one) < template(other) || self.says_the_same(one, other)
    }

    /// Whether it does not matter which of two functions is meant.
    fn says_the_same(&self, one: &Function, other: &Function) -> bool {
        let body = |function: &Function| {
            let at = function.body.as_ref()?.at.clone();
            Some(self.program.text.tokens.get(at)?.iter().map(|token| token.text.clone()).collect::<Vec<_>>())
        };
        let names = |function: &Function| {
            function.parameters.iter().flatten().map(|parameter| parameter.name.clone()).collect::<Vec<_>>()
        };
        one.owner == other.owner && names(one) == names(other) && body(one) == body(other)
    }

    /// What is known about an argument before it is evaluated.
    fn given(&mut self, argument: &Expression) -> Given {
        let kind = |kind: Option<Type>| Given { kind, ..Given::default() };
        match &argument.kind {
            ExpressionKind::Number(text) => {
                Given { null: &**text == "0", ..kind(literal(text).as_ref().and_then(type_of_value)) }
            }
            ExpressionKind::Character(text) => kind(character(text).as_ref().and_then(type_of_value)),
            ExpressionKind::Braces(items) => Given { braces: Some(items.len()), ..Given::default() },
            ExpressionKind::Text => {
                let base = Base::Integer { bits: 8, signed: true, spelling: "char" };
                kind(Some(Type { constant: true, pointers: vec![true], ..Type::of(base) }))
            }
            ExpressionKind::SizeOf(_) | ExpressionKind::SizeOfType(_) => kind(Some(Type::of(SIZE))),
            ExpressionKind::Cast(made, _) | ExpressionKind::Construct(made, _) => {
                let made = self.resolved(made);
                Given { place: made.reference, ..kind((made.base != Base::Auto).then_some(made)) }
            }
            ExpressionKind::Unary('&', inner) => {
                let of = self.given(inner);
                kind(of.kind.map(|of| Type { pointers: of.pointers.iter().copied().chain([false]).collect(), ..of }))
            }
            ExpressionKind::Name(name) if &*name.path == "nullptr" => Given { null: true, ..Given::default() },
            ExpressionKind::Name(name) => self.given_name(&name.path, argument),
            ExpressionKind::Binary(operator, _, _) if is_comparison(*operator) => kind(Some(Type::of(Base::Bool))),
            _ => self.given_by_value(argument),
        }
    }

    fn given_name(&mut self, path: &str, argument: &Expression) -> Given {
        let declared = self.slot_place(path).and_then(|place| self.declared_at(&place)).map(|(_, kind)| kind);
        let kind = declared.map(|kind| self.resolved(&kind)).filter(|kind| kind.base != Base::Auto);
        let given = match kind {
            // What a macro stands for is a value.
            Some(kind) if !self.program.constants.contains_key(path) => {
                Given { kind: Some(Type { reference: false, ..kind }), place: true, ..Given::default() }
            }
            _ => self.given_by_value(argument),
        };
        let scope = path.rsplit("::").nth(1).map(Arc::from);
        Given { scope, ..given }
    }

    /// What the value shows, where working it out changes nothing.
    fn given_by_value(&mut self, argument: &Expression) -> Given {
        let effects = self.effects_of_expression(argument);
        if effects.more || !effects.touched.is_empty() {
            return Given::default();
        }
        let value = self.evaluate(argument);
        Given::of_value(&value)
    }

    /// The method of a struct, or of the bases it names, that takes so many arguments.
    pub fn method(&self, owner: &Arc<str>, method: &str, count: usize) -> Option<usize> {
        self.methods(owner, method, count, 0).first().copied()
    }

    /// The same for these arguments.
    pub fn method_for(&mut self, owner: &Arc<str>, method: &str, arguments: &[Expression]) -> Meant {
        let methods = self.methods(owner, method, arguments.len(), 0);
        self.overload(&methods, arguments)
    }

    /// The struct whose method a call means: a method that is not virtual is that of the struct that is written.
    pub fn struct_called(&self, object: &Arc<str>, written: Option<&Arc<str>>, method: &str) -> Arc<str> {
        match written.filter(|written| *written != object && self.descends(object, written, 0)) {
            Some(written) if self.has_method(written, method, 0) && !self.is_virtual(written, method, 0) => {
                written.clone()
            }
            _ => object.clone(),
        }
    }

    fn has_method(&self, owner: &str, method: &str, depth: u32) -> bool {
        self.any_method(owner, depth, &|function| &*function.name == method)
    }

    fn is_virtual(&self, owner: &str, method: &str, depth: u32) -> bool {
        self.any_method(owner, depth, &|function| &*function.name == method && self.is_written_virtual(function))
    }

    /// Whether a struct or a base of it has such a method.
    fn any_method(&self, owner: &str, depth: u32, is: &dyn Fn(&Function) -> bool) -> bool {
        let own = |function: &Function| function.owner.as_deref() == Some(owner) && is(function);
        let bases = self.program.structs.get(owner).map(|found| found.bases.as_slice()).unwrap_or_default();
        self.program.functions.iter().any(own)
            || depth < 8 && bases.iter().take(8).filter_map(base_name).any(|base| self.any_method(base, depth + 1, is))
    }

    fn is_written_virtual(&self, function: &Function) -> bool {
        let text = &self.program.text;
        let ends = |at: &usize| [";", "{", "}", ":"].iter().any(|end| text.is(*at, end));
        let before = (function.at.saturating_sub(16)..function.at).rev().take_while(|at| !ends(at));
        let close = text.partner(function.at + 1);
        let after = (close..close.saturating_add(8)).take_while(|at| !ends(at));
        before.chain(after).any(|at| ["virtual", "override", "final"].iter().any(|word| text.is(at, word)))
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
        let least = parameters.iter().filter(|parameter| parameter.default.is_none() && !parameter.pack).count();
        count >= least && (count <= parameters.len() || is_variadic(function))
    })
}

fn is_variadic(function: &Function) -> bool {
    function.parameters.iter().flatten().any(|parameter| parameter.pack)
}

fn same_base(one: &Base, other: &Base) -> bool {
    match (one, other) {
        (Base::Integer { bits, signed, .. }, Base::Integer { bits: b, signed: s, .. }) => bits == b && signed == s,
        _ => one == other,
    }
}

fn number_fit(wanted: &Base, given: &Base) -> Fit {
    let promotes = match given {
        Base::Bool => true,
        Base::Integer { bits, .. } => *bits < 32,
        _ => false,
    };
    match wanted {
        _ if same_base(wanted, given) => Fit::Exact,
        Base::Integer { bits: 32, signed: true, .. } if promotes => Fit::Promoted,
        Base::Double if *given == Base::Float => Fit::Promoted,
        _ => Fit::Converted,
    }
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{And, Equal, Greater, GreaterEqual, Less, LessEqual, Or, Unequal};
    matches!(operator, And | Or | Equal | Unequal | Less | Greater | LessEqual | GreaterEqual)
}
