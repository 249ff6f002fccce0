//! Values of launch expressions: numbers, objects, lists, functions, and what is unknown.

use std::sync::Arc;

use super::places::Place;
use super::tree::Lambda;
use super::types::{Base, INT, Type, UNSIGNED};

/// What a value was read from: a variable (its name's token), or a macro.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Identity {
    Token(usize),
    Macro(Arc<str>),
}

/// A value, and the names that it was passed along by: `const int n = kN + 2;` makes n's value come from n and, with a
/// distance of 2, from kN.
#[derive(Clone, Debug)]
pub struct Value {
    pub data: Data,
    pub origin: Vec<(Identity, i128)>,
    /// Where it is kept, when it was read from a place that can be written to.
    pub place: Option<Arc<Place>>,
    /// Whether it stands for its place's address rather than for what is kept there: `&block`.
    pub address: bool,
}

#[derive(Clone, Debug)]
pub enum Data {
    Integer {
        value: i128,
        bits: u8,
        signed: bool,
    },
    Float {
        value: f64,
        single: bool,
    },
    /// A struct's members by name; dim3 is one.
    Object {
        name: Arc<str>,
        /// Its type, where the struct is a template's.
        instance: Option<Arc<Type>>,
        members: Vec<(Arc<str>, Value)>,
    },
    /// An array, or a list in braces whose items may name members.
    List(Vec<(Option<Arc<str>>, Value)>),
    /// A kernel or function: its index, and its template arguments as the call needs them.
    Function {
        index: usize,
        arguments: Option<Vec<String>>,
    },
    /// A lambda, the values of its captures that have one, and where it was made.
    Lambda(Arc<Lambda>, Arc<[Captured]>, Home),
    /// Only inside variables: a pointer, or where `true` a reference, to another place.
    Pointer(Arc<Place>, bool),
    Unknown(Arc<Unknown>),
}

/// Where a lambda was made: a frame, and how many scopes were open in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub frame: u64,
    pub scopes: usize,
}

/// A lambda's capture: its name, the name's token, its value.
pub type Captured = (Arc<str>, usize, Value);

/// Why a value cannot be told from the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The expression as written.
    pub what: String,
    /// Its line, from 1.
    pub line: u32,
    /// A clause: `depends on the device`.
    pub why: &'static str,
}

impl From<Data> for Value {
    fn from(data: Data) -> Self {
        Self { data, origin: Vec::new(), place: None, address: false }
    }
}

/// The longest way from name to name that is followed.
const ORIGINS: usize = 32;

impl Value {
    pub fn integer(value: i128, base: &Base) -> Self {
        match base {
            Base::Bool => Data::Integer { value: i128::from(value != 0), bits: 1, signed: false }.into(),
            Base::Integer { bits, signed, .. } => wrapped(value, *bits, *signed).into(),
            _ => wrapped(value, 64, true).into(),
        }
    }

    pub fn int(value: i128) -> Self {
        Self::integer(value, &INT)
    }

    pub fn boolean(value: bool) -> Self {
        Self::integer(i128::from(value), &Base::Bool)
    }

    pub fn unknown(what: String, line: u32, why: &'static str) -> Self {
        Data::Unknown(Arc::new(Unknown { what, line, why })).into()
    }

    /// dim3 with the lengths given; those left out are 1.
    pub fn dim3(lengths: Vec<Value>) -> Self {
        let mut lengths = lengths.into_iter();
        let mut member = |name: &str| {
            let length = lengths.next().unwrap_or_else(|| Self::int(1));
            (Arc::from(name), length.converted(&Type::of(UNSIGNED)))
        };
        let members = vec![member("x"), member("y"), member("z")];
        Data::Object { name: "dim3".into(), instance: None, members }.into()
    }

    /// The same value, also said to come from `identity`.
    pub fn from_name(mut self, identity: Identity) -> Self {
        if self.origin.len() < ORIGINS {
            self.origin.insert(0, (identity, 0));
        }
        self
    }

    /// The same value without its place: a copy. An address stays a pointer.
    pub fn copied(mut self) -> Self {
        match self.place.take() {
            Some(place) if self.address => {
                Self { data: Data::Pointer(place, false), origin: self.origin, place: None, address: false }
            }
            _ => Self { address: false, ..self },
        }
    }

    /// How many values it is made of.
    pub fn weight(&self) -> u32 {
        let all =
            |parts: &mut dyn Iterator<Item = &Value>| parts.fold(1u32, |sum, part| sum.saturating_add(part.weight()));
        match &self.data {
            Data::Object { members, .. } => all(&mut members.iter().map(|member| &member.1)),
            Data::List(items) => all(&mut items.iter().map(|item| &item.1)),
            _ => 1,
        }
    }

    pub fn as_unknown(&self) -> Option<&Arc<Unknown>> {
        match &self.data {
            Data::Unknown(unknown) => Some(unknown),
            Data::Object { members, .. } => members.iter().find_map(|(_, member)| member.as_unknown()),
            _ => None,
        }
    }

    pub fn as_integer(&self) -> Option<i128> {
        match &self.data {
            Data::Integer { value, .. } => Some(*value),
            _ => None,
        }
    }

    pub fn as_float(&self) -> Option<f64> {
        match &self.data {
            Data::Integer { value, .. } => Some(*value as f64),
            Data::Float { value, .. } => Some(*value),
            _ => None,
        }
    }

    /// Whether a condition on it holds; nothing when it is unknown or no number.
    pub fn truth(&self) -> Option<bool> {
        match &self.data {
            Data::Integer { value, .. } => Some(*value != 0),
            Data::Float { value, .. } => Some(*value != 0.0),
            _ => None,
        }
    }

    /// As [`Value::truth`]; a pointer that leads somewhere holds.
    pub fn condition(&self) -> Option<bool> {
        if self.address { Some(true) } else { self.truth() }
    }

    pub fn member(&self, name: &str) -> Option<&Value> {
        match &self.data {
            Data::Object { members, .. } => members.iter().find(|member| &*member.0 == name).map(|member| &member.1),
            _ => None,
        }
    }

    pub fn member_mut(&mut self, name: &str) -> Option<&mut Value> {
        match &mut self.data {
            Data::Object { members, .. } => {
                members.iter_mut().find(|member| &*member.0 == name).map(|member| &mut member.1)
            }
            _ => None,
        }
    }

    pub fn item_mut(&mut self, index: usize) -> Option<&mut Value> {
        match &mut self.data {
            Data::List(items) => items.get_mut(index).map(|item| &mut item.1),
            _ => None,
        }
    }

    /// The value as a number type holds it; what is no number, and a type that is none, are left alone.
    pub fn converted(self, kind: &Type) -> Self {
        if !kind.is_value() {
            return self;
        }
        let data = match (&self.data, &kind.base) {
            (Data::Integer { value, .. }, Base::Integer { bits, signed, .. }) => wrapped(*value, *bits, *signed),
            (Data::Integer { value, .. }, Base::Float) => float(*value as f32 as f64, true),
            (Data::Integer { value, .. }, Base::Double) => float(*value as f64, false),
            (Data::Float { value, .. }, Base::Integer { bits, signed, .. }) => wrapped(*value as i128, *bits, *signed),
            (Data::Float { value, .. }, Base::Float) => float(*value, true),
            (Data::Float { value, .. }, Base::Double) => float(*value, false),
            (Data::Integer { .. } | Data::Float { .. }, Base::Bool) => {
                let holds = self.truth().unwrap_or_default();
                Data::Integer { value: i128::from(holds), bits: 1, signed: false }
            }
            _ => return self,
        };
        Self { data, origin: self.origin, place: None, address: false }
    }
}

/// A float or double as its type holds it.
pub fn float(value: f64, single: bool) -> Data {
    Data::Float { value: if single { f64::from(value as f32) } else { value }, single }
}

/// A float or double value.
pub fn real(value: f64, single: bool) -> Value {
    float(value, single).into()
}

/// An integer as a type of so many bits holds it.
pub fn wrapped(value: i128, bits: u8, signed: bool) -> Data {
    let width = u32::from(bits.clamp(1, 64));
    let low = value & ((1i128 << width) - 1);
    let negative = signed && low >> (width - 1) == 1;
    Data::Integer { value: if negative { low - (1i128 << width) } else { low }, bits, signed }
}
