//! Puts the counting in.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::module::{Function, Module};
use super::opcodes::{Read, read_by};
use super::scope::Scopes;
use super::text::{Kind, NAME, Piece};
use super::{NotCountable, SLOTS, rescan};
use crate::compile::diagnostics::pattern;

impl Module {
    /// The text with counting: see [`super::count_reads`].
    pub fn counted(&self, counter: &str) -> Result<String, NotCountable> {
        let plain = self.text();
        if plain.contains(counter) {
            return Err(NotCountable::hiding("a name that the grader keeps to itself", None));
        }
        let functions: BTreeSet<&str> = self.functions().map(|function| function.name.as_str()).collect();
        let variable = format!(".visible .global .align 8 .b64 {counter}[{SLOTS}];");
        let counted = self.written(&variable, |function, lines| {
            let counting = Counting { counter, functions: &functions, scopes: Scopes::default() };
            counting.body(function, lines)
        })?;
        rescan::check(&counted, &plain, counter)?;
        Ok(counted)
    }
}

/// The counting of one function.
struct Counting<'a> {
    counter: &'a str,
    functions: &'a BTreeSet<&'a str>,
    scopes: Scopes,
}

impl Counting<'_> {
    fn body(mut self, function: &Function, lines: &mut Vec<String>) -> Result<(), NotCountable> {
        let mut counted = Vec::new();
        let mut any = false;
        for piece in &function.body {
            self.scopes.take(piece);
            let before = counted.len();
            self.before(piece, &mut counted)?;
            any |= counted.len() > before;
            counted.push(piece.text.clone());
        }
        let mut rest = counted.into_iter();
        lines.extend(rest.next());
        if any {
            lines.extend(prologue(self.counter));
        }
        lines.extend(rest);
        Ok(())
    }

    /// What is counted before a piece.
    fn before(&self, piece: &Piece, lines: &mut Vec<String>) -> Result<(), NotCountable> {
        let instruction = match &piece.kind {
            Kind::Instruction(instruction) => instruction,
            Kind::Directive => return within(piece),
            Kind::Head | Kind::Header => return Err(NotCountable::hiding("a PTX header in a function", piece.line)),
            _ => return Ok(()),
        };
        let read = read_by(instruction, self.functions, piece.line)?;
        let unreadable = || {
            NotCountable::ordinary(
                format!("a read with an operand of unknown form ({})", instruction.spelt()),
                piece.line,
            )
        };
        let bytes = match read {
            Read::Nothing => return Ok(()),
            Read::Fixed(bytes) => bytes.to_string(),
            Read::Generic { address, bytes } => self.generic(&address, bytes, lines).ok_or_else(unreadable)?,
            Read::Operand(operand) => self.size(&operand, lines).ok_or_else(unreadable)?,
            Read::Partial { operand, bytes } => self.partial(&operand, bytes, lines).ok_or_else(unreadable)?,
        };
        let guard = instruction.guard.as_ref().map_or(String::new(), |guard| format!("{guard} "));
        lines.push(format!("{guard}red.global.add.u64 [%{}_slot], {bytes};", self.counter));
        Ok(())
    }

    /// Bytes if the address is global, else 0. An address that is no register counts as global.
    fn generic(&self, address: &str, bytes: u64, lines: &mut Vec<String>) -> Option<String> {
        static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
            pattern(&format!(r"^({NAME})(?:\s*\+\s*(-?)\s*(\d+|0[xX][0-9a-fA-F]+)|\s*(-)\s*(\d+))?$"))
        });
        let found = ADDRESS.captures(address)?;
        let (c, base) = (self.counter, &found[1]);
        match self.scopes.kind(base) {
            Some(".b64" | ".u64" | ".s64") => lines.push(format!("mov.b64 %{c}_from, {base};")),
            Some(".b32" | ".u32" | ".s32") => {
                lines.push(format!("mov.b32 %{c}_j, {base};"));
                lines.push(format!("cvt.u64.u32 %{c}_from, %{c}_j;"));
            }
            Some(_) => return None,
            None if base.starts_with('%') => return None,
            None => return Some(bytes.to_string()),
        }
        if let Some(offset) = found.get(3).or(found.get(5)) {
            let negative = found.get(4).is_some() || found.get(2).is_some_and(|sign| !sign.is_empty());
            let sign = if negative { "-" } else { "" };
            lines.push(format!("add.s64 %{c}_from, %{c}_from, {sign}{};", offset.as_str()));
        }
        lines.push(format!("isspacep.global %{c}_in, %{c}_from;"));
        lines.push(format!("selp.b64 %{c}_bytes, {bytes}, 0, %{c}_in;"));
        Some(format!("%{c}_bytes"))
    }

    /// As many bytes as an operand says.
    fn size(&self, operand: &str, lines: &mut Vec<String>) -> Option<String> {
        if let Ok(bytes) = operand.parse::<u32>() {
            return Some(bytes.to_string());
        }
        let c = self.counter;
        match self.scopes.kind(operand)? {
            ".b32" | ".u32" | ".s32" => {
                lines.push(format!("mov.b32 %{c}_j, {operand};"));
                lines.push(format!("cvt.u64.u32 %{c}_bytes, %{c}_j;"));
                Some(format!("%{c}_bytes"))
            }
            _ => None,
        }
    }

    /// The fourth operand of `cp.async`: how many of the bytes are read, or a predicate for none.
    fn partial(&self, operand: &str, bytes: u64, lines: &mut Vec<String>) -> Option<String> {
        if self.scopes.kind(operand) == Some(".pred") {
            lines.push(format!("selp.b64 %{0}_bytes, 0, {bytes}, {operand};", self.counter));
            return Some(format!("%{}_bytes", self.counter));
        }
        self.size(operand, lines)
    }
}

/// A directive within a function.
fn within(piece: &Piece) -> Result<(), NotCountable> {
    static ALLOWED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"^\.(?:reg|param|local|shared|global|branchtargets)\b[^"]*;$|^\.pragma "[^"]*";$"#));
    let word: String = piece.text.split(' ').next().unwrap_or_default().chars().take(40).collect();
    match word.as_str() {
        _ if ALLOWED.is_match(&piece.text) => Ok(()),
        ".callprototype" | ".calltargets" => {
            Err(NotCountable::ordinary("a call through a function pointer", piece.line))
        }
        _ => Err(NotCountable::ordinary(format!("a PTX directive that the grader does not know ({word})"), piece.line)),
    }
}

/// Computes the thread's counter, and declares what the counting needs.
fn prologue(c: &str) -> [String; 10] {
    let multiprocessors = SLOTS / 32;
    [
        format!(".reg .b64 %{c}_slot, %{c}_from, %{c}_bytes;"),
        format!(".reg .b32 %{c}_i, %{c}_j;"),
        format!(".reg .pred %{c}_in;"),
        format!("mov.u32 %{c}_i, %smid;"),
        format!("and.b32 %{c}_i, %{c}_i, {};", multiprocessors - 1),
        format!("mov.u32 %{c}_j, %laneid;"),
        format!("and.b32 %{c}_j, %{c}_j, 31;"),
        format!("mad.lo.u32 %{c}_i, %{c}_i, 32, %{c}_j;"),
        format!("mov.u64 %{c}_slot, {c};"),
        format!("mad.wide.u32 %{c}_slot, %{c}_i, 8, %{c}_slot;"),
    ]
}
