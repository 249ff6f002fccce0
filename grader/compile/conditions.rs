//! Which lines of heat.cu its own conditions leave in: `#if __CUDACC_VER_MAJOR__ > 12` depends on the compiler that asks, and
//! one text may then be several programs. A preprocessor that resolves directives alone (g++'s -fdirectives-only) tells:
//! it leaves each line as it was written, `#define`s included, so two accounts can be compared to the letter. Pure.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::diagnostics::{SOURCE_NAME, pattern};
use crate::submission::lexer::{TokenKind, lex};

/// A line as its markers name it: the file's name and the number.
pub type Line = (String, u32);

/// The lines of heat.cu that one compiler's preprocessor leaves in, with their numbers, but for blank ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftIn(Vec<(u32, String)>);

impl LeftIn {
    /// `text` is heat.cu with its directives resolved, with line markers (`# 12 "heat.cu"`).
    pub fn of(text: &str) -> Self {
        Self(own_lines(text).map(|((_, line), text)| (line, text.to_owned())).collect())
    }

    /// The first line that the two have not alike; lines in `omitted` were taken out of one of the texts beforehand.
    pub fn first_difference(&self, other: &Self, omitted: &BTreeSet<u32>) -> Option<u32> {
        let compared = |left_in: &'_ Self| -> Vec<(u32, String)> {
            left_in.0.iter().filter(|(line, _)| !omitted.contains(line)).cloned().collect()
        };
        let (here, there) = (compared(self), compared(other));
        let same = here.iter().zip(&there).take_while(|(here, there)| here == there).count();
        let at = |lines: &[(u32, String)]| lines.get(same).map(|(line, _)| *line);
        [at(&here), at(&there)].into_iter().flatten().min()
    }

    /// The text without conditions. A line keeps its number as long as numbers rise.
    pub fn text(&self) -> String {
        let (mut text, mut at) = (String::new(), 1);
        for (line, written) in &self.0 {
            for _ in at..*line {
                text.push('\n');
            }
            text.push_str(written);
            text.push('\n');
            at = at.max(*line) + 1;
        }
        text
    }
}

/// Whether a text may have a condition: a `#if`, however it is spelled. Wrong only towards yes.
pub fn has_conditions(source: &str) -> bool {
    let joined = without_splices(source);
    let after = |mark: &str| {
        joined.split(mark).skip(1).any(|rest| {
            let rest = rest.trim_start();
            rest.starts_with("if") || rest.starts_with("/*")
        })
    };
    after("#") || after("%:")
}

/// The line of the first line marker in a text (`# 7 "other.h" 1`): it says that what follows is another file's, and no account
/// of the text can be trusted then.
pub fn line_marker(source: &str) -> Option<u32> {
    let tokens = lex(source).tokens;
    let directive = tokens.windows(2).find(|pair| {
        pair[0].directive && pair[0].starts_line && pair[1].kind == TokenKind::Number && !pair[1].starts_line
    });
    // In a raw string, or where a splice joins it.
    let looks_so = || {
        let joined = without_splices(source);
        joined.lines().position(|line| marker(line).is_some()).map(|at| at as u32 + 1)
    };
    directive.map(|pair| pair[0].line).or_else(looks_so)
}

/// Whether a `#line` gives lines other numbers than their own.
pub fn renumbers(source: &str) -> bool {
    lex(source).tokens.windows(2).any(|pair| pair[0].directive && pair[0].starts_line && pair[1].is("line"))
}

/// Lines joined as compilers join them; blanks may follow the backslash.
fn without_splices(source: &str) -> String {
    static SPLICE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\\[ \t\r\x0b\x0c]*\n"));
    SPLICE.replace_all(source, "").into_owned()
}

/// The lines of heat.cu itself in what a preprocessor left, whatever a `#line` in it calls them.
pub(super) fn own_lines(text: &str) -> impl Iterator<Item = (Line, &str)> {
    // For each file that is open around a line, whether it is heat.cu.
    let mut around: Vec<bool> = Vec::new();
    let mut own = true;
    let mut at: Line = (String::new(), 0);
    text.lines().filter_map(move |line| {
        if let Some((number, file, flags)) = marker(line) {
            match flags.first() {
                Some(&"1") => {
                    around.push(own);
                    own = file.rsplit('/').next() == Some(SOURCE_NAME);
                }
                Some(&"2") => own = around.pop().unwrap_or(true),
                _ => {}
            }
            at = (file.to_owned(), number);
            return None;
        }
        let here = at.clone();
        at.1 = at.1.wrapping_add(1);
        (own && !here.0.starts_with('<') && !line.trim().is_empty()).then_some((here, line))
    })
}

/// Bytes of heat.cu's own text after the preprocessor that are looked at: macros make any number out of a few.
const MOST_OWN: usize = 4 << 20;

/// Why a preprocessed text is not looked at.
pub fn grown_too_large(text: &str) -> Option<String> {
    let bytes: usize = own_lines(text).map(|(_, line)| line.len() + 1).sum();
    (bytes > MOST_OWN)
        .then(|| format!("macros make {} MiB of heat.cu, more than the {} that are read", bytes >> 20, MOST_OWN >> 20))
}

/// `12`, `heat.cu` and the flags of `# 12 "heat.cu" 2`.
fn marker(line: &str) -> Option<(u32, &str, Vec<&str>)> {
    let (number, rest) = line.strip_prefix("# ")?.split_once(" \"")?;
    let (file, flags) = rest.split_once('"')?;
    Some((number.parse().ok()?, file, flags.split_whitespace().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_macros_make_large_is_not_looked_at_whatever_its_headers() {
        let header = "int long_name_of_a_header;\n".repeat(400_000);
        let text =
            |own: usize| format!("# 1 \"heat.cu\"\n# 1 \"a.h\" 1\n{header}# 2 \"heat.cu\" 2\n{}\n", ";".repeat(own));
        assert_eq!(grown_too_large(&text(1 << 20)), None);
        let sentence = grown_too_large(&text(9 << 20)).expect("a sentence");
        assert_eq!(sentence, "macros make 9 MiB of heat.cu, more than the 4 that are read");
    }

    #[test]
    fn what_is_included_is_not_heat_cu_and_what_a_line_directive_renames_is() {
        let text = "# 0 \"heat.cu\"\n# 0 \"<built-in>\"\n# 1 \"h.h\" 1\nint x;\n# 7 \"heat.cu\" 2\nint a;\n\nint b;\n# 1 \"gen.cu\"\nint d;\n";
        let lines: Vec<u32> = own_lines(text).map(|((_, line), _)| line).collect();
        assert_eq!(lines, [7, 9, 1]);
    }

    #[test]
    fn heat_cu_that_includes_itself_is_heat_cu_all_along() {
        let text = "# 1 \"heat.cu\"\n# 1 \"./heat.cu\" 1\nint inner;\n# 1 \"/x/h.h\" 1 3\nint h;\n# 2 \"./heat.cu\" 2 3\nint more;\n# 2 \"heat.cu\" 2\nint outer;\n";
        let lines: Vec<&str> = own_lines(text).map(|(_, text)| text).collect();
        assert_eq!(lines, ["int inner;", "int more;", "int outer;"]);
    }

    #[test]
    fn a_line_that_one_of_them_leaves_out_is_a_difference_unless_it_was_taken_out_beforehand() {
        let of = |lines: &str| LeftIn::of(&format!("# 1 \"heat.cu\"\n{lines}"));
        let (ours, theirs) = (of("#define F 1\n\nint a;\n"), of("\n#define F 2\nint a;\n"));
        assert_eq!(ours.first_difference(&theirs, &BTreeSet::new()), Some(1));
        assert_eq!(ours.first_difference(&theirs, &BTreeSet::from([1, 2])), None);
        assert_eq!(ours.first_difference(&ours, &BTreeSet::new()), None);
        assert_eq!(of("int a;\n").first_difference(&of("int a;\nint b;\n"), &BTreeSet::new()), Some(2));
    }

    #[test]
    fn the_text_without_conditions_keeps_its_lines_where_they_were() {
        let left_in = LeftIn::of("# 1 \"heat.cu\"\nint a;\n\n\nint b;\n# 2 \"other.cu\"\nint c;\n");
        assert_eq!(left_in.text(), "int a;\n\n\nint b;\nint c;\n");
    }

    #[test]
    fn a_condition_is_seen_however_it_is_spelled() {
        for text in ["#if 1\n", "  #  ifdef A\n", "#\\\nif 1\n", "%:ifndef A\n", "#/* */if 1\n", "x\n#i\\\nf 1"] {
            assert!(has_conditions(text), "{text}");
        }
        for text in ["#include <cuda_runtime.h>\n#define A(x) #x\nif (a) b;\n#pragma once\n", "a % : if\n"] {
            assert!(!has_conditions(text), "{text}");
        }
    }

    #[test]
    fn a_line_marker_is_found_and_a_number_elsewhere_is_none() {
        for text in
            ["int a;\n# 7 \"x.h\" 1\n", "\n %: 7 \"x.h\" 1\n", "\n#\\\n7 \"x.h\" 1\n", "R\"(\n# 1 \"x.h\" 1\n)\""]
        {
            assert_eq!(line_marker(text), Some(2), "{text}");
        }
        for text in ["#line 7 \"x.h\"\n", "/*\n # 1 first\n# 2 second\n*/", "#define A 1\n#\n7\n"] {
            assert_eq!(line_marker(text), None, "{text}");
        }
    }
}
