//! Is the kernel the same code for g++ with our CUDA headers as it is for nvcc with its own? Conditional compilation can tell
//! the two apart, and engine cpu would then judge a kernel that no GPU runs. Pure, on the texts that both preprocessors left.
//!
//! Only the kernel and the functions that it reaches are compared. Host code may well differ: the two sets of headers define
//! other macros, and nothing of it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::functions::{Function, identifiers, led_to, matching};
use super::once::included;
use crate::submission::lexer::{Token, TokenKind, lex};

/// A line as its markers name it: the file's name and the number.
type Line = (String, u32);

/// What a preprocessor left of heat.cu, by line, without what the headers of the two compilers spell differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preprocessed {
    lines: BTreeMap<Line, Vec<String>>,
    functions: Vec<Definition>,
    /// The files that it took in, by their full paths.
    included: BTreeSet<PathBuf>,
}

/// Where a function stands, and the names that its body uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Definition {
    name: String,
    first: Line,
    last: Line,
    uses: BTreeSet<String>,
}

impl Preprocessed {
    /// `text` has line markers (`# 12 "heat.cu"`).
    pub fn of(text: &str) -> Self {
        let (mut tokens, mut places, mut lines) = (Vec::<Token>::new(), Vec::<Line>::new(), BTreeMap::new());
        for (line, text) in own_lines(text) {
            let own = lex(&text).tokens;
            places.extend(std::iter::repeat_n(line.clone(), own.len()));
            lines.entry(line).or_insert_with(Vec::new).extend(plain(&own));
            tokens.extend(own);
        }
        let at = |token: &Token| tokens.iter().position(|other| std::ptr::eq(other, token));
        let mut functions = Vec::new();
        for function in Function::all(&tokens) {
            // To the closing brace: the last statement may be there for one of the two alone.
            let first = function.head.first().and_then(at);
            let opens = function
                .head
                .last()
                .and_then(at)
                .and_then(|end| tokens[end..].iter().position(|token| token.is("{")).map(|length| end + length));
            let last = opens.and_then(|open| matching(&tokens, open));
            if let Some((first, last)) = first.zip(last) {
                functions.push(Definition {
                    name: function.name.text.to_string(),
                    first: places[first].clone(),
                    last: places[last].clone(),
                    uses: identifiers(function.body).map(str::to_owned).collect(),
                });
            }
        }
        Self { lines, functions, included: included(text) }
    }

    /// The headers of the machine that the text took in.
    pub fn included(&self) -> &BTreeSet<PathBuf> {
        &self.included
    }

    /// The first line of `kernel`, or of a function that it reaches, that is other code for `other`.
    pub fn first_difference<'a>(&'a self, other: &Self, kernel: &'a str) -> Option<u32> {
        let used = |function: &'a Definition| function.uses.iter().map(String::as_str).collect();
        let uses: Vec<_> = self.functions.iter().map(|function| (function.name.as_str(), used(function))).collect();
        let reached = led_to([kernel], &uses);
        let ranges = self.functions.iter().filter(|function| reached.contains(function.name.as_str()));
        let mut different = ranges.filter_map(|function| self.differs_within(other, &function.first, &function.last));
        different.next()
    }

    fn differs_within(&self, other: &Self, first: &Line, last: &Line) -> Option<u32> {
        if first.0 != last.0 || first.1 > last.1 {
            return None;
        }
        let empty = Vec::new();
        // A macro of one set of headers joins the lines of its arguments; a function of the other leaves them apart.
        let mut in_headers = false;
        (first.1..=last.1).find(|line| {
            let key = (first.0.clone(), *line);
            let (here, there) = (self.lines.get(&key).unwrap_or(&empty), other.lines.get(&key).unwrap_or(&empty));
            let of_headers = is_of_headers(here) || is_of_headers(there);
            let goes_on = |line: &[String]| line.last().is_some_and(|token| token != ";");
            let differs = match (here.is_empty(), there.is_empty()) {
                _ if in_headers => false,
                (false, false) => !same_statements(here, there),
                (true, true) => false,
                _ => !of_headers,
            };
            let open = goes_on(here) || goes_on(there);
            let ended = [here, there].iter().any(|line| line.last().is_some_and(|token| token == ";"));
            in_headers = if in_headers { !ended } else { of_headers && open };
            differs
        })
    }
}

/// The lines of heat.cu itself, whatever a `#line` in it calls them.
fn own_lines(text: &str) -> impl Iterator<Item = (Line, String)> {
    let mut depth = 0_u32;
    let mut at: Line = (String::new(), 0);
    text.lines().filter_map(move |line| {
        if let Some((number, file, flags)) = marker(line) {
            depth = match flags.first() {
                Some(&"1") => depth + 1,
                Some(&"2") => depth.saturating_sub(1),
                _ => depth,
            };
            at = (file.to_owned(), number);
            return None;
        }
        let here = at.clone();
        at.1 = at.1.wrapping_add(1);
        (depth == 0 && !here.0.starts_with('<') && !line.trim().is_empty()).then(|| (here, line.to_owned()))
    })
}

/// `12`, `heat.cu` and the flags of `# 12 "heat.cu" 2`.
fn marker(line: &str) -> Option<(u32, &str, Vec<&str>)> {
    let (number, rest) = line.strip_prefix("# ")?.split_once(" \"")?;
    let (file, flags) = rest.split_once('"')?;
    Some((number.parse().ok()?, file, flags.split_whitespace().collect()))
}

/// The tokens but for attributes, qualifiers and brackets; shared and constant memory by one name, numbers by their value.
fn plain(tokens: &[Token]) -> Vec<String> {
    const DROPPED: [&str; 10] = ["inline", "static", "extern", "__inline__", "(", ")", "{", "}", "const", "constexpr"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        if token.is("__attribute__") || token.is("__declspec") {
            let end = matching(tokens, at + 1).map_or(tokens.len(), |close| close + 1);
            let inside = &tokens[at..end];
            let of = |word: &str| {
                inside.iter().any(|token| token.is(word) || token.text.starts_with(&format!("\"hg_{word}")))
            };
            kept.extend(["shared", "constant"].into_iter().filter(|word| of(word)).map(|word| format!("<{word}>")));
            at = end;
            continue;
        }
        at += 1;
        if token.is("hg_shared_qualifier") {
            kept.push("<shared>".to_owned());
        } else if token.kind == TokenKind::Number {
            kept.push(number(&token.text));
        } else if !DROPPED.iter().any(|word| token.is(word)) {
            kept.push(token.text.to_string());
        }
    }
    kept
}

/// A number by its value, where that is plain: `0x01` is `1`, and `3.0F` is `3.0f`.
fn number(text: &str) -> String {
    let small = text.to_ascii_lowercase();
    let (digits, hexadecimal) = small.strip_prefix("0x").map_or((small.as_str(), false), |rest| (rest, true));
    if hexadecimal {
        return u64::from_str_radix(digits.trim_end_matches(['u', 'l']), 16).map_or(small.clone(), |n| n.to_string());
    }
    let end = digits.trim_end_matches(['f', 'u', 'l']);
    end.parse::<f64>().map_or(small.clone(), |value| format!("{value}{}", if digits.ends_with('f') { "f" } else { "" }))
}

/// Whether two lines are the same, statement by statement; those that a header's macro may have made are not looked at.
fn same_statements(here: &[String], there: &[String]) -> bool {
    let statements = |line: &'_ [String]| {
        let all = line.split(|token| token == ";").map(<[String]>::to_vec);
        all.filter(|statement| !statement.is_empty()).collect::<Vec<_>>()
    };
    let (mut here, mut there) = (statements(here), statements(there));
    if here.len() == there.len() {
        let mut pairs = here.iter().zip(&there);
        return pairs.all(|(here, there)| here == there || is_of_headers(here) || is_of_headers(there));
    }
    for line in [&mut here, &mut there] {
        line.retain(|statement| !is_of_headers(statement));
    }
    here == there
}

/// Whether a line holds what a header's macro may have made: the two sets of headers need not make the same.
fn is_of_headers(tokens: &[String]) -> bool {
    const PREFIXES: [&str; 4] = ["__", "hg_", "cuda", "CUDA"];
    tokens.iter().any(|token| PREFIXES.iter().any(|prefix| token.starts_with(prefix)) && token != "__restrict__")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with this body, from line 2 on, as a preprocessor leaves it.
    fn kernel(body: &str) -> Preprocessed {
        Preprocessed::of(&format!("# 1 \"heat.cu\"\nvoid k(float r) {{\n{body}\n}}\n"))
    }

    fn difference(ours: &str, theirs: &str) -> Option<u32> {
        kernel(ours).first_difference(&kernel(theirs), "k")
    }

    #[test]
    fn what_is_included_is_not_heat_cu_and_what_a_line_directive_renames_is() {
        let text = "# 0 \"heat.cu\"\n# 0 \"<built-in>\"\n# 1 \"h.h\" 1\nint x;\n# 7 \"heat.cu\" 2\nint a;\n\nint b;\n# 1 \"gen.cu\"\nint d;\n";
        let lines: Vec<u32> = own_lines(text).map(|((_, line), _)| line).collect();
        assert_eq!(lines, [7, 9, 1]);
    }

    #[test]
    fn a_line_that_only_one_sees_and_a_line_that_each_sees_otherwise_are_found() {
        assert_eq!(difference("int a;\n\n", "int a;\nr *= 0.5f;\n"), Some(3));
        assert_eq!(difference("int a;\nint b;\n", "int a;\n\n"), Some(3));
        assert_eq!(difference("\n", "r *= 0.5f;\n"), Some(2));
        assert_eq!(difference("hg_sync_threads((3)); r *= 1.0f;", "__syncthreads(); r *= 0.5f;"), Some(2));
        assert_eq!(difference("hg_shared_qualifier float t[8];", "float t[8];"), Some(2));
    }

    #[test]
    fn what_the_headers_spell_differently_is_no_difference() {
        for (ours, theirs) in [
            ("hg_shared_qualifier float t[8];", "__attribute__((shared)) float t[8];"),
            ("hg_sync_threads((3));", "__syncthreads();"),
            ("float x = __builtin_inff();", "float x = __int_as_float(0x7f800000U);"),
            ("float x = 3.141592654f * 1;", "float x = 3.141592654F * 0x01;"),
            ("static_cast<void>(0);", "(static_cast<void> (0));"),
            ("do {} while (0);\n\n", "__builtin_assume(r > 2 &&\nr < 3);\n"),
            ("hg_sync_reduce((3), 2, (a || b))\n + 1;\n", "__syncthreads_or(a ||\nb) + 1;\n"),
        ] {
            assert_eq!(difference(ours, theirs), None, "{theirs}");
        }
    }

    #[test]
    fn only_the_kernel_and_what_it_reaches_count() {
        let text = |scale: &str, host: &str| {
            let helper = format!("float help(float r) {{ return r * {scale}; }}");
            Preprocessed::of(&format!(
                "# 1 \"heat.cu\"\n{helper}\nvoid k(float r) {{ help(r); }}\nint main() {{ {host} }}\n"
            ))
        };
        let ours = text("1.0f", "use(1);");
        assert_eq!(ours.first_difference(&text("1.0f", "use(2);"), "k"), None);
        assert_eq!(ours.first_difference(&text("0.5f", "use(1);"), "k"), Some(1));
    }
}
