//! Which type a register has: PTX declares registers by block, and inner ones hide outer ones.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::text::{Kind, NAME, Piece};
use crate::compile::diagnostics::pattern;

/// The registers declared so far, by open block.
#[derive(Default)]
pub struct Scopes {
    blocks: Vec<Block>,
}

#[derive(Default)]
struct Block {
    /// Type by name.
    single: BTreeMap<String, String>,
    /// `%r<10>`: prefix to (count, type).
    many: BTreeMap<String, (u64, String)>,
}

impl Scopes {
    /// Follows the text by one piece.
    pub fn take(&mut self, piece: &Piece) {
        match piece.kind {
            Kind::Open => self.blocks.push(Block::default()),
            Kind::Close => drop(self.blocks.pop()),
            Kind::Directive => self.declare(&piece.text),
            _ => {}
        }
    }

    fn declare(&mut self, text: &str) {
        static REGISTERS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\.reg\s*((?:\.\s*\w+\s*)+?)([^.;]*);$"));
        static ONE: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"^({NAME})\s*(?:<\s*(\d+)\s*>)?$")));
        let (Some(found), Some(block)) = (REGISTERS.captures(text), self.blocks.last_mut()) else { return };
        let kind: String = found[1].chars().filter(|character| !character.is_whitespace()).collect();
        for name in found[2].split(',') {
            let Some(name) = ONE.captures(name.trim()) else { continue };
            match name.get(2).map(|count| count.as_str().parse()) {
                Some(count) => block.many.insert(name[1].to_owned(), (count.unwrap_or(0), kind.clone())).map(drop),
                None => block.single.insert(name[1].to_owned(), kind.clone()).map(drop),
            };
        }
    }

    /// `.b32`, `.pred`: the type of a register; `None` when no register has that name.
    pub fn kind(&self, name: &str) -> Option<&str> {
        let digits = name.len() - name.trim_end_matches(|character: char| character.is_ascii_digit()).len();
        self.blocks.iter().rev().find_map(|block| block.kind(name, digits))
    }
}

impl Block {
    fn kind(&self, name: &str, digits: usize) -> Option<&str> {
        if let Some(kind) = self.single.get(name) {
            return Some(kind);
        }
        (1..=digits).find_map(|taken| {
            let (prefix, number) = name.split_at(name.len() - taken);
            let (count, kind) = self.many.get(prefix)?;
            number.parse().is_ok_and(|number: u64| number < *count).then_some(kind.as_str())
        })
    }
}
