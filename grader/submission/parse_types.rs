//! Reading types and parameters.

use std::sync::Arc;

use super::lexer::Token;
use super::parser::{Parser, is_reserved};
use super::tree::Parameter;
use super::types::{Base, Type, Words};

/// Words that may stand before or inside a type and do not change it.
const SPECIFIERS: [&str; 27] = [
    "static",
    "inline",
    "constexpr",
    "consteval",
    "constinit",
    "extern",
    "thread_local",
    "register",
    "mutable",
    "typename",
    "struct",
    "class",
    "enum",
    "union",
    "volatile",
    "explicit",
    "virtual",
    "friend",
    "__device__",
    "__host__",
    "__shared__",
    "__constant__",
    "__managed__",
    "__forceinline__",
    "__noinline__",
    "__inline__",
    "__global__",
];
/// Words between a pointer and a name.
const POINTER_WORDS: [&str; 6] = ["__restrict__", "__restrict", "restrict", "volatile", "__grid_constant__", "__const"];

impl Parser<'_> {
    /// A type without a name, such as a cast or template argument has.
    pub fn type_name(&mut self) -> Option<Type> {
        let mut kind = self.type_specifiers()?;
        self.pointers(&mut kind);
        Some(kind)
    }

    /// `const float`, `unsigned long`, `ns::Config<3>`: everything before pointers.
    pub fn type_specifiers(&mut self) -> Option<Type> {
        let mut words = Words::default();
        let mut base: Option<Base> = None;
        let mut named: Option<Type> = None;
        let mut constant = false;
        let begin = self.at;
        loop {
            self.skip_attributes();
            let Some(token) = self.token().filter(|token| token.is_identifier() || token.is("::")) else { break };
            let word = &*token.text;
            if matches!(word, "const" | "constexpr" | "__const") {
                constant |= word != "constexpr";
                self.at += 1;
            } else if SPECIFIERS.contains(&word) || (base.is_none() && words.take(word)) {
                self.at += 1;
            } else if base.is_none() && word == "decltype" && self.next_is("(") {
                self.at += 1;
                self.skip_group();
                base = Some(Base::Auto);
            } else if base.is_none() && words.base().is_none() && !is_reserved(word) {
                let found = self.named_type()?;
                base = Some(found.base.clone());
                named = Some(found);
            } else {
                break;
            }
            if self.at > begin + 64 {
                return None;
            }
        }
        let base = base.or(words.base())?;
        Some(Type { constant, ..named.unwrap_or_else(|| Type::of(base)) })
    }

    fn named_type(&mut self) -> Option<Type> {
        let name = self.deeper(|parser| parser.name(|_, _| true))?;
        Some(Type::named(name))
    }

    /// The `*`, `&` and their qualifiers after a base.
    pub fn pointers(&mut self, kind: &mut Type) {
        while let Some(token) = self.token() {
            match &*token.text {
                "*" if kind.pointers.len() < 8 => kind.pointers.push(false),
                "&" | "&&" => kind.reference = true,
                "const" => match kind.pointers.last_mut() {
                    Some(last) => *last = true,
                    None => kind.constant = true,
                },
                word if POINTER_WORDS.contains(&word) => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Parameters between the brackets that were entered.
    pub fn parameters(&mut self) -> Option<Vec<Parameter>> {
        if self.is("void") && self.at + 1 == self.end {
            self.at += 1;
        }
        self.list(Self::parameter)
    }

    fn parameter(&mut self) -> Option<Parameter> {
        let begin = self.at;
        if self.take("...") {
            let kind = Type::of(Base::Named("...".into()));
            return Some(Parameter {
                kind,
                name: None,
                name_at: begin,
                default: None,
                pack: false,
                at: begin..self.at,
            });
        }
        let mut kind = self.type_specifiers()?;
        self.pointers(&mut kind);
        let pack = self.take("...");
        let mut name_at = self.at;
        let mut name = None;
        if self.is("(") {
            name = self.function_or_array_name(&mut kind)?;
        } else {
            self.skip_attributes();
            if self.token().is_some_and(Token::is_identifier) {
                name_at = self.at;
                name = self.identifier();
            }
        }
        let mut dimensions = 0;
        while self.is("[") {
            self.skip_group();
            dimensions += 1;
        }
        // `float in[]` is `float* in`; further dimensions make another type.
        kind.pointers.extend(std::iter::repeat_n(false, usize::min(dimensions, 3)));
        self.skip_attributes();
        let default = if self.take("=") { Some(self.deeper(Self::assignment)?) } else { None };
        Some(Parameter { kind, name, name_at, default, pack, at: begin..self.at })
    }

    /// `(*kernel)(const float*, int)` or `(&in)[34]`: a type that no rule here needs to know closely.
    pub fn function_or_array_name(&mut self, kind: &mut Type) -> Option<Option<Arc<str>>> {
        let close = self.text.partner(self.at).min(self.end);
        let inside = self.text.tokens.get(self.at + 1..close).unwrap_or_default();
        let name = inside.iter().rfind(|token| token.is_identifier()).map(|token| token.text.clone());
        *kind = Type::of(Base::Named("function or array".into()));
        self.skip_group();
        while self.is("(") || self.is("[") {
            self.skip_group();
        }
        Some(name)
    }
}
