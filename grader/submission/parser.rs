//! The cursor that reads types, expressions and statements out of tokens, and what it may assume about names.
//!
//! C++ cannot be read without knowing which names are types and which are templates; [`Names`] guesses both from the
//! declarations in the text. What cannot be read is skipped, never an error. Depth of nesting, length of chains and
//! look-ahead are bounded.

use std::collections::HashSet;
use std::sync::Arc;

use super::lexer::Token;
pub use super::text::Text;
use super::tree::{Name, TemplateArgument};

/// Brackets, statements and operators within one another that are followed.
const DEPTH: u32 = 200;
/// Tokens between the angles of a template list, and lists within lists that are read.
const TEMPLATE_LIST: usize = 200;
const LISTS: u32 = 6;

/// Names that the text declares as types or as templates.
#[derive(Clone, Debug, Default)]
pub struct Names {
    pub types: HashSet<Arc<str>>,
    pub templates: HashSet<Arc<str>>,
}

/// Reads a [`Text`] from one token to another.
pub struct Parser<'a> {
    pub text: &'a Text,
    pub names: &'a Names,
    pub at: usize,
    pub end: usize,
    depth: u32,
    /// Template lists within one another.
    lists: u32,
    /// Height of the tallest expression read so far.
    pub tallest: u16,
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a Text, names: &'a Names, at: usize, end: usize) -> Self {
        Self { text, names, at, end: end.min(text.tokens.len()), depth: 0, lists: 0, tallest: 0 }
    }

    pub fn token(&self) -> Option<&'a Token> {
        self.ahead(0)
    }

    pub fn ahead(&self, by: usize) -> Option<&'a Token> {
        self.text.tokens.get(self.at + by).filter(|_| self.at + by < self.end)
    }

    pub fn is(&self, text: &str) -> bool {
        self.token().is_some_and(|token| token.is(text))
    }

    pub fn next_is(&self, text: &str) -> bool {
        self.ahead(1).is_some_and(|token| token.is(text))
    }

    /// Takes the token if it is `text`.
    pub fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }

    /// As [`Parser::take`], for use with `?`.
    pub fn expect(&mut self, text: &str) -> Option<()> {
        self.take(text).then_some(())
    }

    pub fn identifier(&mut self) -> Option<Arc<str>> {
        let token = self.token().filter(|token| token.is_identifier())?;
        self.at += 1;
        Some(token.text.clone())
    }

    /// Runs one level deeper; nothing when that is too deep.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= DEPTH {
            return None;
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Reads what stands between the bracket here and its partner, then goes past it.
    pub fn between<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let close = self.text.partner(self.at);
        if close >= self.end {
            return None;
        }
        let outer = std::mem::replace(&mut self.end, close);
        self.at += 1;
        let result = self.deeper(read);
        self.at = close + 1;
        self.end = outer;
        result
    }

    /// Reads items between commas up to the end of what is being read.
    pub fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        while self.at < self.end {
            items.push(read(self)?);
            if !self.take(",") {
                break;
            }
        }
        (self.at >= self.end).then_some(items)
    }

    /// Goes past the bracket here and all it holds.
    pub fn skip_group(&mut self) {
        self.at = self.text.partner(self.at).saturating_add(1).min(self.end);
    }

    /// Goes past attributes, specifiers that mean nothing here, and execution spaces.
    pub fn skip_attributes(&mut self) {
        loop {
            if self.is("[") && self.next_is("[") {
                self.skip_group();
            } else if self.token().is_some_and(|token| is_attribute_word(&token.text)) && self.next_is("(") {
                self.at += 1;
                self.skip_group();
            } else {
                return;
            }
        }
    }

    /// The token after the template list that opens at `open`, if one does.
    pub fn after_angles(&self, open: usize) -> Option<usize> {
        let mut depth = 0i32;
        let mut at = open;
        while at < self.end && at < open + TEMPLATE_LIST {
            let token = self.text.tokens.get(at)?;
            match &*token.text {
                "<" => depth += 1,
                ">" => depth -= 1,
                ">>" => depth -= 2,
                ">>>" => depth -= 3,
                "(" | "[" | "{" => at = self.text.partner(at),
                ")" | "]" | "}" | ";" | "&&" | "||" | "?" | "<<<" => return None,
                _ => {}
            }
            at += 1;
            if depth <= 0 {
                return (depth == 0).then_some(at);
            }
        }
        None
    }

    /// `a::b<c>::d`, template lists taken where `with_arguments` allows them.
    pub fn name(&mut self, with_arguments: impl Fn(&Self, usize) -> bool) -> Option<Name> {
        self.take("::");
        let mut path = self.identifier()?.to_string();
        let mut arguments = None;
        let mut scope = None;
        loop {
            if self.is("<")
                && let Some(after) = self.after_angles(self.at).filter(|&after| with_arguments(self, after))
            {
                arguments = Some(self.template_arguments(after));
            }
            if !(self.is("::") && self.ahead(1).is_some_and(Token::is_identifier)) || path.len() > 400 {
                break;
            }
            self.at += 1;
            scope = arguments.take().map(|list| (path.len(), list)).or(scope);
            path.push_str("::");
            path.push_str(&self.identifier()?);
        }
        Some(Name { path: path.into(), arguments, scope })
    }

    /// The arguments of the template list that opens here and ends before `after`.
    pub fn template_arguments(&mut self, after: usize) -> Vec<TemplateArgument> {
        let outer = std::mem::replace(&mut self.end, after - 1);
        self.at += 1;
        self.lists += 1;
        let mut arguments = Vec::new();
        while self.at < self.end {
            arguments.push(self.template_argument());
        }
        self.lists -= 1;
        self.at = after;
        self.end = outer;
        arguments
    }

    /// The template argument here, read both as a value and as a type.
    fn template_argument(&mut self) -> TemplateArgument {
        let begin = self.at;
        let end = self.argument_end();
        let (mut value, mut kind) = (None, None);
        if self.lists <= LISTS {
            let inner = std::mem::replace(&mut self.end, end);
            value = self.deeper(|parser| parser.without_angles()).filter(|_| self.at == end);
            self.at = begin;
            kind = self.deeper(Self::type_name).filter(|_| self.at == end);
            self.end = inner;
        }
        self.at = end + 1;
        TemplateArgument { at: begin..end, value, kind }
    }

    /// The end of the template argument that begins here: a comma outside all brackets.
    fn argument_end(&self) -> usize {
        let mut at = self.at;
        let mut depth = 0i32;
        while at < self.end {
            match self.text.tokens.get(at).map(|token| &*token.text) {
                Some("<") => depth += 1,
                Some(">") => depth -= 1,
                Some(">>") => depth -= 2,
                Some("(" | "[" | "{") => at = self.text.partner(at).min(self.end),
                Some(",") if depth <= 0 => break,
                _ => {}
            }
            at += 1;
        }
        at.min(self.end)
    }
}

fn is_attribute_word(word: &str) -> bool {
    matches!(
        word,
        "__attribute__"
            | "__attribute"
            | "alignas"
            | "__align__"
            | "__launch_bounds__"
            | "__declspec"
            | "__cluster_dims__"
            | "__block_size__"
            | "__maxnreg__"
    )
}

/// Words that can be no type's name.
pub fn is_reserved(word: &str) -> bool {
    matches!(
        word,
        "if" | "else"
            | "for"
            | "while"
            | "do"
            | "switch"
            | "case"
            | "default"
            | "return"
            | "break"
            | "continue"
            | "goto"
            | "sizeof"
            | "new"
            | "delete"
            | "throw"
            | "true"
            | "false"
            | "nullptr"
            | "this"
            | "operator"
            | "template"
            | "using"
            | "typedef"
            | "namespace"
            | "static_cast"
            | "reinterpret_cast"
            | "const_cast"
            | "dynamic_cast"
            | "alignof"
            | "public"
            | "private"
            | "protected"
            | "try"
            | "catch"
            | "asm"
            | "static_assert"
            | "noexcept"
            | "co_await"
            | "__restrict__"
            | "__restrict"
            | "restrict"
            | "__grid_constant__"
            | "__launch_bounds__"
            | "override"
    )
}
