//! PTX taken apart: comments away, then statements by `;`, `{` and `}`, each with its line of heat.cu.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::NotCountable;
use crate::compile::diagnostics::{SOURCE_NAME, pattern};

/// A place in a source file: file number, line, column.
type At = (u32, u32, u32);

/// One piece of PTX: a statement, a label, or a brace of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    /// As it is written anew: one line, single spaces, the `;` included.
    pub text: String,
    /// Line of heat.cu, from the `.loc` before it.
    pub line: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `.version`, `.target`, `.address_size`: statements without an end.
    Header,
    Open,
    Close,
    /// `name:`
    Label,
    /// `.loc`, cut down to its place.
    Loc,
    /// What stands before the `{` of a function.
    Head,
    /// A statement that begins with a dot; a function that is only declared, too.
    Directive,
    Instruction(Instruction),
}

/// `@!%p1 ld.global.nc.f32 %f1, [%rd1]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// `@!%p1`
    pub guard: Option<String>,
    pub opcode: String,
    /// Without their dots, in order.
    pub modifiers: Vec<String>,
    pub operands: Vec<String>,
}

impl Instruction {
    pub fn has(&self, modifier: &str) -> bool {
        self.modifiers.iter().any(|own| own == modifier)
    }

    /// `ld.global.f32`, not too long for a sentence.
    pub fn spelt(&self) -> String {
        let mut spelt = self.opcode.clone();
        self.modifiers.iter().for_each(|modifier| spelt.extend([".", modifier]));
        spelt.chars().take(60).collect()
    }
}

/// Names of variables, registers, labels and functions.
pub const NAME: &str = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)";

static TRIVIA: LazyLock<Regex> = LazyLock::new(|| pattern(r#"(?s)"[^"]*"|//[^\n\r]*|/\*.*?\*/"#));
static FILE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\.file\s+(\d+)\s+"(\d+)"(?:\s*,\s*\d+\s*,\s*\d+)?"#));
static LOC: LazyLock<Regex> = LazyLock::new(|| {
    let inlined =
        format!(r"(?:\s*,\s*function_name\s+{NAME}(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?");
    pattern(&format!(r"^\.loc\s+(\d+)\s+(\d+)\s+(\d+){inlined}"))
});
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\.(?:version\s+\d+\.\d+|target\s+sm_\d+[af]?(?:\s*,\s*(?:debug|map_f64_to_f32|texmode_\w+))*|address_size\s+64)\b",
    )
});
static SECTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\.section\s+\.debug_\w+\s*\{(?:\s*(?:[\w$]+\s*:|\.b\d+\b[\w$,+\s-]*))*\s*\}"));
static LABEL: LazyLock<Regex> = LazyLock::new(|| pattern(&format!(r"^({NAME})\s*:")));
static FUNCTION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:\.(?:visible|extern|weak|common)\s*)*\.(?:entry|func)\b"));
static STRING: LazyLock<Regex> = LazyLock::new(|| pattern(r#""(\d+)""#));
static ALPHABET: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[\w$%.,;:{}()\[\]<>@!+\-*=|&~^? ]*$"));
static INSTRUCTION: LazyLock<Regex> = LazyLock::new(|| {
    let modifiers = r"((?:\s*\.\s*\w+(?:::\w+)*)*)";
    pattern(&format!(r"^(?:@\s*(!?)\s*({NAME})\s+)?([a-z]\w*){modifiers}\s*([^;]*);$"))
});
/// `.pragma`s that change no meaning.
static PRAGMA: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:nounroll|enable_smem_spilling|(?:used_bytes_mask|frequency) *[\w.]+)$"));

/// Takes PTX apart.
pub fn pieces(ptx: &str) -> Result<Vec<Piece>, NotCountable> {
    let mut strings = Vec::new();
    let bare = TRIVIA.replace_all(ptx, |found: &Captures<'_>| {
        if !found[0].starts_with('"') {
            return " ".to_owned();
        }
        strings.push(found[0].trim_matches('"').to_owned());
        format!("\"{}\"", strings.len() - 1)
    });
    let mut reader =
        Reader { rest: bare.trim_ascii_start(), depth: 0, lines: Lines::default(), strings, pieces: Vec::new() };
    reader.find_files(&bare);
    while !reader.rest.is_empty() {
        reader.read()?;
        reader.rest = reader.rest.trim_ascii_start();
    }
    if reader.depth != 0 {
        return Err(NotCountable::hiding("inline PTX with a brace that is never closed", reader.lines.line));
    }
    match reader.pieces.iter().find(|piece| !piece.text.is_ascii()) {
        Some(piece) => Err(NotCountable::hiding("inline PTX with characters that PTX does not use", piece.line)),
        None => Ok(reader.pieces),
    }
}

/// Operands by their commas, those inside brackets and braces left alone.
pub fn operands(text: &str) -> Vec<String> {
    let mut depth = 0i32;
    let parts = text.split(|character| {
        match character {
            '[' | '{' | '(' => depth += 1,
            ']' | '}' | ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && character == ','
    });
    parts.map(|part| part.trim().to_owned()).collect()
}

struct Reader<'a> {
    rest: &'a str,
    /// Open braces.
    depth: u32,
    lines: Lines,
    /// The texts of the strings, for which their numbers stand.
    strings: Vec<String>,
    pieces: Vec<Piece>,
}

impl Reader<'_> {
    /// `.file` stands at the end of the text.
    fn find_files(&mut self, bare: &str) {
        for (start, _) in bare.match_indices(".file") {
            let Some(found) = FILE.captures(&bare[start..]) else { continue };
            let name = found[2].parse().ok().and_then(|index: usize| self.strings.get(index));
            let own = name.is_some_and(|name| name.rsplit('/').next() == Some(SOURCE_NAME));
            if let (true, Ok(number)) = (own, found[1].parse()) {
                self.lines.own.push(number);
            }
        }
    }

    fn read(&mut self) -> Result<(), NotCountable> {
        if let Some(found) = FILE.find(self.rest).or_else(|| SECTION.find(self.rest)) {
            self.rest = &self.rest[found.end()..];
        } else if let Some(found) = LOC.captures(self.rest) {
            self.lines.take(&found);
            if let Some(line) = self.lines.line {
                self.push(Kind::Loc, format!(".loc 1 {line} 0"));
            }
            self.rest = &self.rest[found[0].len()..];
        } else if let Some(found) = HEADER.find(self.rest) {
            self.push(Kind::Header, spaced(found.as_str()));
            self.rest = &self.rest[found.end()..];
        } else if let Some(found) = LABEL.captures(self.rest) {
            self.push(Kind::Label, format!("{}:", &found[1]));
            self.rest = &self.rest[found[0].len()..];
        } else if let Some(rest) = self.rest.strip_prefix('{') {
            self.depth += 1;
            self.push(Kind::Open, "{".to_owned());
            self.rest = rest;
        } else if let Some(rest) = self.rest.strip_prefix('}') {
            let hiding = || NotCountable::hiding("inline PTX with a closing brace too many", self.lines.line);
            self.depth = self.depth.checked_sub(1).ok_or_else(hiding)?;
            self.push(Kind::Close, "}".to_owned());
            self.rest = rest;
        } else {
            self.statement()?;
        }
        Ok(())
    }

    fn statement(&mut self) -> Result<(), NotCountable> {
        let function = self.depth == 0 && FUNCTION.is_match(self.rest);
        let end = if function { self.rest.find(['{', ';']) } else { end_of_statement(self.rest) };
        let unfinished = || NotCountable::hiding("inline PTX with a statement that does not end", self.lines.line);
        let end = end.ok_or_else(unfinished)?;
        let head = function && self.rest.as_bytes()[end] == b'{';
        let (text, rest) = self.rest.split_at(if head { end } else { end + 1 });
        let text = spaced(text);
        self.rest = rest;
        let plain = STRING.replace_all(&text, "");
        if !plain.is_ascii() || !ALPHABET.is_match(&plain) {
            let what = if text.contains('#') { "a preprocessor line" } else { "characters that PTX does not use" };
            return Err(NotCountable::hiding(format!("inline PTX with {what}"), self.lines.line));
        }
        if head {
            self.lines.line = None;
            let text = self.with_strings(&text)?;
            self.push(Kind::Head, text);
        } else if text.starts_with('.') {
            let text = self.with_strings(&text)?;
            self.push(Kind::Directive, text);
        } else {
            self.instruction(&text)?;
        }
        Ok(())
    }

    fn instruction(&mut self, text: &str) -> Result<(), NotCountable> {
        let unknown = || {
            let start: String = text.chars().take(40).collect();
            NotCountable::ordinary(format!("PTX that the grader cannot read ({start})"), self.lines.line)
        };
        let found = INSTRUCTION.captures(text).ok_or_else(unknown)?;
        if found[5].contains([':', '"', '@', ';']) {
            return Err(unknown());
        }
        let guard = found.get(2).map(|name| format!("@{}{}", &found[1], name.as_str()));
        let modifiers = found[4].split('.').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let list = found[5].trim();
        let parts = if list.is_empty() { Vec::new() } else { operands(list) };
        let instruction = Instruction { guard, opcode: found[3].to_owned(), modifiers, operands: parts };
        let text = written(&instruction, list);
        self.push(Kind::Instruction(instruction), text);
        Ok(())
    }

    /// Puts strings back: only pragmas have any.
    fn with_strings(&self, text: &str) -> Result<String, NotCountable> {
        let Some(found) = STRING.captures(text) else { return Ok(text.to_owned()) };
        let string = found[1].parse().ok().and_then(|index: usize| self.strings.get(index));
        match string {
            Some(string)
                if PRAGMA.is_match(string) && text.strip_prefix(".pragma ") == Some(&format!("{};", &found[0])) =>
            {
                Ok(format!(".pragma \"{string}\";"))
            }
            _ => Err(NotCountable::ordinary("a PTX directive that the grader does not know", self.lines.line)),
        }
    }

    fn push(&mut self, kind: Kind, text: String) {
        self.pieces.push(Piece { kind, text, line: self.lines.line });
    }
}

fn written(instruction: &Instruction, operands: &str) -> String {
    let mut text = instruction.guard.as_ref().map_or(String::new(), |guard| format!("{guard} "));
    text.push_str(&instruction.opcode);
    instruction.modifiers.iter().for_each(|modifier| text.extend([".", modifier]));
    if !operands.is_empty() {
        text.extend([" ", operands]);
    }
    text.push(';');
    text
}

/// Where the `;` of a statement is; vectors and initialisers have braces of their own.
fn end_of_statement(text: &str) -> Option<usize> {
    let mut depth = 0u32;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.checked_sub(1)?,
            b';' => return (depth == 0).then_some(index),
            _ => {}
        }
    }
    None
}

fn spaced(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Follows `.loc` to the line of heat.cu.
#[derive(Default)]
struct Lines {
    /// Numbers of the files named heat.cu.
    own: Vec<u32>,
    /// Where an inlined place was called from.
    called_from: BTreeMap<At, At>,
    line: Option<u32>,
}

impl Lines {
    fn take(&mut self, found: &Captures<'_>) {
        let number = |index: usize| found.get(index).and_then(|text| text.as_str().parse().ok());
        let at = |first: usize| Some((number(first)?, number(first + 1)?, number(first + 2)?));
        let Some(mut here) = at(1) else { return };
        if let Some(caller) = at(4) {
            self.called_from.insert(here, caller);
        }
        // Line 0 is the compiler's own: the line before it holds on.
        for _ in 0..64 {
            if self.own.contains(&here.0) && here.1 > 0 {
                self.line = Some(here.1);
                return;
            }
            match self.called_from.get(&here) {
                Some(caller) => here = *caller,
                None => return,
            }
        }
    }
}
