//! What compilers say, as data: nvcc's front end (EDG), g++, ptxas.
//!
//! A compiler's output is the learner's text thrown back with the machine's file names, and an `#include` can put other
//! people's files into it. So a message is kept only when it lies in heat.cu itself, the quoted line comes from the
//! submission and never from the compiler, paths lose their folders, and control characters are spelled out.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name under which every submission is compiled.
pub const SOURCE_NAME: &str = "heat.cu";

/// Diagnostics kept of one compilation, and those looked at: hostile text can make a compiler talk without end.
const MOST: usize = 20;
const MOST_READ: usize = 2000;
/// Characters kept of a message.
const MESSAGE: usize = 400;
/// Lines that a quotation in a message may have.
const QUOTATION: u32 = 20;
/// Characters kept of a quoted source line.
const LINE: usize = 160;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
    Note,
}

/// Which program spoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    Nvcc,
    HostCompiler,
    Ptxas,
}

/// One thing that a compiler said about heat.cu.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Line of heat.cu, from 1; null when the message belongs to none.
    pub line: Option<u32>,
    /// Column, from 1; null when the compiler gave none.
    pub column: Option<u32>,
    /// One line of plain text, in the compiler's words, without folders and control characters.
    pub message: String,
    /// That line of heat.cu, as submitted.
    pub source_line: Option<String>,
    pub tool: Speaker,
}

/// The diagnostics of one compilation, in the order in which they were said, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostics {
    /// At most 20.
    pub shown: Vec<Diagnostic>,
    /// How many more there were, of the first few thousand.
    pub more: u32,
}

impl Diagnostics {
    /// Whether one of them is an error.
    pub fn has_error(&self) -> bool {
        self.shown.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Splits off the warnings (with their notes); errors come first, so that a flood of warnings hides none.
    fn split(said: Vec<Diagnostic>) -> (Self, Self) {
        let mut errors = Self::default();
        let mut warnings = Self::default();
        let mut into_errors = true;
        for diagnostic in said {
            match diagnostic.severity {
                Severity::Error => into_errors = true,
                Severity::Warning => into_errors = false,
                Severity::Note => {}
            }
            if into_errors { errors.push(diagnostic) } else { warnings.push(diagnostic) }
        }
        (errors, warnings)
    }

    /// Adds one unless it is there already or there are 20.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if self.shown.contains(&diagnostic) {
            return;
        }
        if self.shown.len() < MOST {
            self.shown.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    /// Adds all of another, in order.
    pub fn append(&mut self, other: Self) {
        other.shown.into_iter().for_each(|diagnostic| self.push(diagnostic));
        self.more += other.more;
    }
}

/// Reads the output of nvcc, g++ or ptxas into (errors, warnings). `source` is the submission's text; `folder`, where
/// it was compiled, never shows.
pub fn parse(output: &str, source: &str, folder: &Path) -> (Diagnostics, Diagnostics) {
    let folder = format!("{}/", folder.display());
    let output = if folder.len() > 1 { output.replace(&folder, "") } else { output.to_owned() };
    let mut reader = Reader::new(source);
    for line in output.lines() {
        if reader.said.len() >= MOST_READ && !line.contains("error") {
            continue;
        }
        if reader.said.len() >= 2 * MOST_READ {
            break;
        }
        let end = line.char_indices().nth(4000).map_or(line.len(), |(index, _)| index);
        reader.read(&line[..end]);
    }
    Diagnostics::split(reader.said)
}

/// `text` fit for a terminal and a report: one line, control and bidirectional-override characters spelled out, at most
/// `most` characters.
pub fn plain(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (count, character) in text.trim_end().chars().enumerate() {
        if count == most {
            shown.push_str("...");
            break;
        }
        match character {
            '\t' => shown.push(' '),
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
                shown.extend(character.escape_unicode());
            }
            _ if character.is_control() => shown.extend(character.escape_default()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Absolute paths cut down to their last component.
pub fn without_folders(text: &str) -> String {
    static PATH: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"(^|[\s"'`(<:=,\[‘])/(?:[^\s"'`()<>:,;\[\]’/]*/)+([^\s"'`()<>:,;\[\]/’]*)"#));
    PATH.replace_all(text, "$1$2").into_owned()
}

/// A C++ symbol as people write it: `_Z4stepPKfPfif` is `step(float const*, float*, int, float)`.
pub fn demangle(symbol: &str) -> String {
    cpp_demangle::Symbol::new(symbol)
        .ok()
        .and_then(|parsed| parsed.demangle().ok())
        .unwrap_or_else(|| symbol.to_owned())
}

/// Compiles a pattern of this crate's own.
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern is valid")
}

/// `heat.cu(12): error #20: message` (nvcc's front end)
static EDG: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^([^()]+)\((\d+)\): (?:catastrophic |internal )?(error|warning|remark|note)(?: #[\w-]+)?: (.*)$")
});
/// `At end of source: error: expected a "}"` (nvcc's front end)
static END: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^At end of source: (?:catastrophic )?(error|warning)(?: #[\w-]+)?: (.*)$"));
/// `heat.cu:12:5: error: message` (g++, the assembler)
static GNU: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^([^:\s][^:]*):(\d+):(?:(\d+):)? (?:fatal |internal compiler )?(error|Error|warning|Warning|note): (.*)$")
});
/// `ptxas heat.ptx, line 12; error   : message`, `nvcc fatal   : message`
static DRIVER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(ptxas|nvcc|nvlink)\b[^:]*?(error|fatal|warning) *: (.*)$"));
/// A link that failed: the one message of the linker that learners meet.
static UNDEFINED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(undefined reference to .*|multiple definition of .*)$"));
/// `at line 14`, `at line 14 of heat.cu`: where a template was used (EDG).
static USED_AT: LazyLock<Regex> = LazyLock::new(|| pattern(r"at line (\d+)(?: of (\S+))?$"));
/// `heat.cu:14:3:   required from here`, `from heat.cu:3:` (g++)
static CAME_FROM: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?:^heat\.cu:(\d+):(?:\d+:)?\s+required from|(?:^In file included |^ +)from heat\.cu:(\d+)[:,])")
});

/// Where a message lies.
enum Where {
    /// In heat.cu.
    Own,
    /// In another file.
    Other,
}

/// Reads a compiler's output line by line.
struct Reader<'a> {
    source: Vec<&'a str>,
    said: Vec<Diagnostic>,
    /// Where the last message lies; `None` before the first and after one without a place.
    place: Option<Where>,
    /// g++ names the line of heat.cu that led into another file before the message itself.
    came_from: Option<u32>,
    previous: &'a str,
    /// How many lines may still belong to a message whose quotation has not ended.
    quotation: u32,
}

impl<'a> Reader<'a> {
    fn new(source: &'a str) -> Self {
        let source = source.lines().collect();
        Self { source, said: Vec::new(), place: None, came_from: None, previous: "", quotation: 0 }
    }

    fn read(&mut self, line: &'a str) {
        if self.quotation > 0 {
            self.quoted_further(line);
        } else if let Some(found) = EDG.captures(line) {
            self.located(&found[1], found[2].parse().ok(), None, &found[3], &found[4], Speaker::Nvcc);
            // The words of a static_assert may have line ends in them.
            let ends =
                found[4].strip_prefix("static assertion failed with \"").is_none_or(|words| words.ends_with('"'));
            self.quotation = if ends { 0 } else { QUOTATION };
        } else if let Some(found) = GNU.captures(line) {
            let column = found.get(3).and_then(|column| column.as_str().parse().ok());
            self.located(&found[1], found[2].parse().ok(), column, &found[4], &found[5], Speaker::HostCompiler);
        } else if let Some(found) = END.captures(line) {
            self.unlocated(&found[1], &format!("at the end of the file: {}", &found[2]), Speaker::Nvcc);
        } else if let Some(found) = DRIVER.captures(line) {
            let tool = if &found[1] == "ptxas" { Speaker::Ptxas } else { Speaker::Nvcc };
            self.unlocated(&found[2], &readable_ptxas(&found[3]), tool);
        } else if let Some(found) = CAME_FROM.captures(line) {
            self.came_from = found.get(1).or(found.get(2)).and_then(|number| number.as_str().parse().ok());
        } else if let Some(found) = UNDEFINED.captures(line) {
            self.unlocated("error", &found[1], Speaker::HostCompiler);
        } else {
            self.continued(line);
        }
        self.previous = line;
    }

    fn located(&mut self, file: &str, line: Option<u32>, column: Option<u32>, word: &str, text: &str, tool: Speaker) {
        let severity = severity(word);
        if file == SOURCE_NAME {
            let line = line.filter(|line| *line > 0);
            self.say(severity, line, column, text, tool);
            self.place = Some(Where::Own);
            return;
        }
        let name = plain(file.rsplit('/').next().unwrap_or(file), 60);
        let line = self.came_from.or_else(|| self.includer_of(&name));
        self.place = Some(Where::Other);
        if severity != Severity::Note {
            self.say(severity, line, None, &elsewhere(severity, &name, line.is_some()), tool);
        }
    }

    fn unlocated(&mut self, word: &str, text: &str, tool: Speaker) {
        self.place = None;
        self.say(severity(word), None, None, text, tool);
    }

    fn say(&mut self, severity: Severity, line: Option<u32>, column: Option<u32>, text: &str, tool: Speaker) {
        let message = plain(&without_folders(text), MESSAGE);
        self.said.push(Diagnostic { severity, line, column, message, source_line: self.quoted(line), tool });
    }

    /// A line of the quotation in the message before it.
    fn quoted_further(&mut self, line: &str) {
        self.quotation = if line.ends_with('"') { 0 } else { self.quotation - 1 };
        if let Some(last) = self.said.last_mut() {
            last.message = plain(&format!("{}\n{}", last.message, without_folders(line)), MESSAGE);
        }
    }

    /// A line that belongs to the message before it.
    fn continued(&mut self, line: &'a str) {
        if let Some(used) = USED_AT.captures(line) {
            self.used_at(&used, line);
        } else if line.trim() == "^" {
            self.caret(line);
        } else if let (Some(Where::Own), Some(last)) = (&self.place, self.said.last_mut()) {
            let text = line.trim();
            if line.starts_with("          ") && text.contains(" types are: ") {
                last.message = plain(&format!("{}; {}", last.message, without_folders(text)), MESSAGE);
            }
        }
    }

    /// EDG's trace of template uses, innermost first: the last line of heat.cu in it is the learner's.
    fn used_at(&mut self, used: &Captures<'_>, line: &str) {
        let number: Option<u32> = used[1].parse().ok();
        let in_source = used.get(2).map(|file| file.as_str() == SOURCE_NAME);
        match (&self.place, in_source) {
            (Some(Where::Other), Some(true)) => {
                let quoted = self.quoted(number);
                if let Some(last) = self.said.last_mut() {
                    (last.line, last.source_line) = (number, quoted);
                    last.message = last.message.replace(OF_FILE, OF_LINE);
                }
            }
            (Some(Where::Own), None | Some(true)) if line.trim().starts_with("detected during") => {
                if let Some(last) = self.said.last_mut() {
                    last.message = plain(&format!("{} ({})", last.message, without_folders(line.trim())), MESSAGE);
                }
            }
            _ => {}
        }
    }

    /// EDG marks the column under a copy of the line, two characters further right. The copy has its macros expanded,
    /// so the mark counts only when copy and submission agree.
    fn caret(&mut self, line: &str) {
        let (Some(Where::Own), Some(copy)) = (&self.place, self.previous.strip_prefix("  ")) else { return };
        let Some(last) = self.said.last_mut() else { return };
        let original = last.line.and_then(|number| self.source.get(number as usize - 1));
        let offset = line.chars().take_while(|character| *character != '^').count();
        if last.column.is_none() && original.is_some_and(|original| original.trim_end() == copy.trim_end()) {
            last.column = u32::try_from(offset.saturating_sub(1)).ok();
        }
    }

    fn quoted(&self, line: Option<u32>) -> Option<String> {
        let index = (line? as usize).checked_sub(1)?;
        self.source.get(index).map(|text| plain(text, LINE))
    }

    /// The line of heat.cu that includes a file of this name.
    fn includer_of(&self, name: &str) -> Option<u32> {
        let includes =
            |line: &str| line.trim_start().starts_with('#') && line.contains("include") && line.contains(name);
        let index = self.source.iter().position(|line| includes(line))?;
        u32::try_from(index + 1).ok()
    }
}

fn severity(word: &str) -> Severity {
    match word {
        "warning" | "Warning" => Severity::Warning,
        "note" | "remark" => Severity::Note,
        _ => Severity::Error,
    }
}

/// How another file comes in, with a line of heat.cu to say it of and without.
const OF_LINE: &str = "a file that this line includes or whose templates it uses";
const OF_FILE: &str = "a file that heat.cu includes or names in a #line";

/// All that may be said about a message in a file that is not the learner's.
fn elsewhere(severity: Severity, name: &str, has_line: bool) -> String {
    let word = if severity == Severity::Error { "error" } else { "warning" };
    // The compiler's own file, under a name that it draws.
    if name.ends_with(".s") {
        return format!(
            "{word} of the assembler: inline assembly, or a name that the compiler or the grader defines too"
        );
    }
    format!("{word} in {name}, {}", if has_line { OF_LINE } else { OF_FILE })
}

/// ptxas speaks of mangled names and hexadecimal bytes.
fn readable_ptxas(text: &str) -> String {
    static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"'(_Z\w+)'"));
    static HEX: LazyLock<Regex> = LazyLock::new(|| pattern(r"\b0x([0-9a-fA-F]{1,15})\b"));
    let named = NAME.replace_all(text, |found: &Captures<'_>| format!("'{}'", demangle(&found[1])));
    let decimal =
        |found: &Captures<'_>| u64::from_str_radix(&found[1], 16).map_or(found[0].to_owned(), |n| n.to_string());
    HEX.replace_all(&named, decimal).into_owned()
}

#[cfg(test)]
#[path = "../tests/compile_diagnostics.rs"]
mod tests;
