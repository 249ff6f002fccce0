//! C++ types as far as a kernel's signature and the arithmetic of a launch need them.

use std::fmt;
use std::sync::Arc;

use super::tree::{Name, TemplateArgument};

/// What a type is at bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    Void,
    Bool,
    /// `spelling` tells `long` from `long long`, which have the same width on the systems served.
    Integer {
        bits: u8,
        signed: bool,
        spelling: &'static str,
    },
    Float,
    Double,
    Auto,
    /// A struct, a template parameter, dim3.
    Named(Arc<str>),
}

/// A type: its base, then pointers and a reference from the inside out.
#[derive(Clone, Debug)]
pub struct Type {
    pub base: Base,
    /// Template arguments after the base's name.
    pub arguments: Option<Arc<[TemplateArgument]>>,
    /// Those after an earlier part of the name, and how long it is there.
    pub scope: Option<(usize, Arc<[TemplateArgument]>)>,
    /// Whether the base is const.
    pub constant: bool,
    /// Each pointer, innermost first: whether it is itself const.
    pub pointers: Vec<bool>,
    pub reference: bool,
}

impl Type {
    pub fn of(base: Base) -> Self {
        Self { base, arguments: None, scope: None, constant: false, pointers: Vec::new(), reference: false }
    }

    /// The type that a name spells.
    pub fn named(name: Name) -> Self {
        let base = known_base(&name.path).unwrap_or(Base::Named(name.path));
        let scope = name.scope.map(|(length, list)| (length, list.into()));
        Self { arguments: name.arguments.map(Into::into), scope, ..Self::of(base) }
    }

    /// The type that it is when its base's name means `actual`.
    pub fn meaning(&self, actual: &Self) -> Self {
        let mut resolved = actual.clone();
        match (self.constant, resolved.pointers.last_mut()) {
            (true, Some(pointer)) => *pointer = true,
            (true, None) => resolved.constant = true,
            (false, _) => {}
        }
        resolved.pointers.extend(self.pointers.iter().take(8));
        resolved.pointers.truncate(8);
        resolved.reference |= self.reference;
        resolved
    }

    /// Whether it is a plain value of its base: no pointer (a reference to one counts as the value).
    pub fn is_value(&self) -> bool {
        self.pointers.is_empty()
    }

    /// Whether a function can change its caller's variable through a parameter of this type.
    pub fn is_out_parameter(&self) -> bool {
        !self.constant && (self.reference || self.pointers.len() == 1)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.constant && (!self.pointers.is_empty() || self.reference) {
            write!(f, "const ")?;
        }
        write!(f, "{}", self.base)?;
        for _ in &self.pointers {
            write!(f, "*")?;
        }
        if self.reference { write!(f, "&") } else { Ok(()) }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Void => write!(f, "void"),
            Self::Bool => write!(f, "bool"),
            Self::Integer { spelling, .. } => write!(f, "{spelling}"),
            Self::Float => write!(f, "float"),
            Self::Double => write!(f, "double"),
            Self::Auto => write!(f, "auto"),
            Self::Named(name) => write!(f, "{name}"),
        }
    }
}

const fn integer(bits: u8, signed: bool, spelling: &'static str) -> Base {
    Base::Integer { bits, signed, spelling }
}

/// How the type of a bit-field is spelt.
pub const BIT_FIELD: &str = "bit-field";

/// `int`, the type of most literals.
pub const INT: Base = integer(32, true, "int");
/// `unsigned int`, the type of dim3's members.
pub const UNSIGNED: Base = integer(32, false, "unsigned int");
/// `size_t`, the type of sizes.
pub const SIZE: Base = integer(64, false, "unsigned long");

/// The base that a well-known name stands for, namespaces of std and cuda::std left off.
pub fn known_base(path: &str) -> Option<Base> {
    let name = path.strip_prefix("cuda::").unwrap_or(path);
    let name = name.strip_prefix("std::").unwrap_or(name);
    Some(match name {
        "int8_t" => integer(8, true, "signed char"),
        "uint8_t" | "uchar" => integer(8, false, "unsigned char"),
        "int16_t" => integer(16, true, "short"),
        "uint16_t" | "ushort" => integer(16, false, "unsigned short"),
        "int32_t" => INT,
        "uint32_t" | "uint" => UNSIGNED,
        "int64_t" | "ptrdiff_t" | "ssize_t" | "intptr_t" => integer(64, true, "long"),
        "uint64_t" | "size_t" | "uintptr_t" | "ulong" => SIZE,
        _ => return None,
    })
}

/// Counts of the words that spell a built-in type, in any order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words {
    unsigned: bool,
    signed: bool,
    long: u8,
    short: bool,
    int: bool,
    core: Option<Core>,
}

#[derive(Clone, Copy, Debug)]
enum Core {
    Char,
    Bool,
    Void,
    Float,
    Double,
    Auto,
}

impl Words {
    /// Takes one word; false when it is none of those that spell a built-in type.
    pub fn take(&mut self, word: &str) -> bool {
        match word {
            "unsigned" | "__uint32_t" => self.unsigned = true,
            "signed" | "__signed__" => self.signed = true,
            "long" => self.long = self.long.saturating_add(1),
            "short" => self.short = true,
            "int" => self.int = true,
            "char" => self.core = Some(Core::Char),
            "bool" => self.core = Some(Core::Bool),
            "void" => self.core = Some(Core::Void),
            "float" => self.core = Some(Core::Float),
            "double" => self.core = Some(Core::Double),
            "auto" => self.core = Some(Core::Auto),
            _ => return false,
        }
        true
    }

    /// The type spelt so far.
    pub fn base(self) -> Option<Base> {
        Some(match (self.core, self.long, self.unsigned) {
            (Some(Core::Bool), ..) => Base::Bool,
            (Some(Core::Void), ..) => Base::Void,
            (Some(Core::Float), ..) => Base::Float,
            (Some(Core::Double), ..) => Base::Double,
            (Some(Core::Auto), ..) => Base::Auto,
            (Some(Core::Char), _, true) => integer(8, false, "unsigned char"),
            (Some(Core::Char), ..) if self.signed => integer(8, true, "signed char"),
            (Some(Core::Char), ..) => integer(8, true, "char"),
            (None, 1, false) => integer(64, true, "long"),
            (None, 1, true) => SIZE,
            (None, 2.., false) => integer(64, true, "long long"),
            (None, 2.., true) => integer(64, false, "unsigned long long"),
            (None, 0, false) if self.short => integer(16, true, "short"),
            (None, 0, true) if self.short => integer(16, false, "unsigned short"),
            (None, 0, true) => UNSIGNED,
            (None, 0, false) if self.int || self.signed => INT,
            (None, 0, false) => return None,
        })
    }
}
