//! Puts the counting in.
//!
//! A kernel adds the bytes of its reads to a register, and adds that to the counter directly before every statement that
//! ends the thread: an addition to memory for each read takes longer than the reads. Functions that are called count at
//! once, since their registers are gone when they return. So do the kernels when such a function may end the thread,
//! which would lose the kernel's register.

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
        let ends_elsewhere = self.functions().any(ends_another);
        let variable = format!(".visible .global .align 8 .b64 {counter}[{SLOTS}];");
        let counted = self.written(&variable, |function, lines| {
            let way = if function.kernel && !ends_elsewhere { Way::AtTheEnd } else { Way::AtOnce };
            let counting = Counting { counter, functions: &functions, scopes: Scopes::default(), way };
            counting.body(function, lines)
        })?;
        rescan::check(&counted, &plain, counter)?;
        Ok(counted)
    }
}

/// Whether a function may end the thread of a kernel that calls it. Kernels cannot be called.
fn ends_another(function: &Function) -> bool {
    let exit = |piece: &Piece| matches!(&piece.kind, Kind::Instruction(instruction) if instruction.opcode == "exit");
    !function.kernel && function.body.iter().any(exit)
}

/// When the counter grows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Before each read.
    AtOnce,
    /// Before the thread ends, by what a register holds.
    AtTheEnd,
}

/// The counting of one function.
struct Counting<'a> {
    counter: &'a str,
    functions: &'a BTreeSet<&'a str>,
    scopes: Scopes,
    way: Way,
}

impl Counting<'_> {
    fn body(mut self, function: &Function, lines: &mut Vec<String>) -> Result<(), NotCountable> {
        let mut additions = Vec::new();
        for piece in &function.body {
            self.scopes.take(piece);
            let mut before = Vec::new();
            self.before(piece, &mut before)?;
            additions.push(before);
        }
        let any = additions.iter().any(|before| !before.is_empty());
        let at_the_end = any && self.way == Way::AtTheEnd;
        let last = function.body.len().saturating_sub(1);
        let falls_off = falls_off(&function.body);
        for (index, (piece, before)) in function.body.iter().zip(additions).enumerate() {
            lines.extend(before);
            match end_of_thread(piece) {
                Some(guard) if at_the_end => lines.extend(self.flush(guard)),
                None if at_the_end && index == last && falls_off => lines.extend(self.flush(None)),
                _ => {}
            }
            lines.push(piece.text.clone());
            if any && index == 0 {
                lines.extend(self.prologue());
            }
        }
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
        let (c, guard) = (self.counter, prefix(instruction.guard.as_deref()));
        lines.push(match self.way {
            Way::AtOnce => format!("{guard}red.global.add.u64 [%{c}_slot], {bytes};"),
            Way::AtTheEnd => format!("{guard}add.u64 %{c}_sum, %{c}_sum, {bytes};"),
        });
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

    /// Declares what the counting needs, and begins it.
    fn prologue(&self) -> Vec<String> {
        let c = self.counter;
        let mut lines = vec![
            format!(".reg .b64 %{c}_slot, %{c}_from, %{c}_bytes;"),
            format!(".reg .b32 %{c}_i, %{c}_j;"),
            format!(".reg .pred %{c}_in;"),
        ];
        match self.way {
            Way::AtOnce => lines.extend(slot(c)),
            Way::AtTheEnd => lines.extend([format!(".reg .b64 %{c}_sum;"), format!("mov.b64 %{c}_sum, 0;")]),
        }
        lines
    }

    /// Adds the register to the counter, for a thread that ends under this guard.
    fn flush(&self, guard: Option<&str>) -> Vec<String> {
        let c = self.counter;
        let mut lines = slot(c).to_vec();
        lines.push(format!("{}red.global.add.u64 [%{c}_slot], %{c}_sum;", prefix(guard)));
        lines
    }
}

fn prefix(guard: Option<&str>) -> String {
    guard.map_or(String::new(), |guard| format!("{guard} "))
}

/// The guard of a statement that ends the thread of a kernel. `trap` and `brkpt` end the run, and need no count.
fn end_of_thread(piece: &Piece) -> Option<Option<&str>> {
    match &piece.kind {
        Kind::Instruction(instruction) if ["ret", "exit"].contains(&instruction.opcode.as_str()) => {
            Some(instruction.guard.as_deref())
        }
        _ => None,
    }
}

/// Whether control may reach the closing brace of a body.
fn falls_off(body: &[Piece]) -> bool {
    let passed = |piece: &&Piece| matches!(piece.kind, Kind::Close | Kind::Loc | Kind::Directive);
    body.iter().rev().find(|piece| !passed(piece)).and_then(end_of_thread) != Some(None)
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

/// Computes the address of the thread's counter.
fn slot(c: &str) -> [String; 7] {
    let multiprocessors = SLOTS / 32;
    [
        format!("mov.u32 %{c}_i, %smid;"),
        format!("and.b32 %{c}_i, %{c}_i, {};", multiprocessors - 1),
        format!("mov.u32 %{c}_j, %laneid;"),
        format!("and.b32 %{c}_j, %{c}_j, 31;"),
        format!("mad.lo.u32 %{c}_i, %{c}_i, 32, %{c}_j;"),
        format!("mov.u64 %{c}_slot, {c};"),
        format!("mad.wide.u32 %{c}_slot, %{c}_i, 8, %{c}_slot;"),
    ]
}
