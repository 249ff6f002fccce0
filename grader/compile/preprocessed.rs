//! Is heat.cu the same code for g++ with our CUDA headers as it is for nvcc with its own? Conditional compilation can tell
//! the two apart, and engine cpu would then judge a kernel that no GPU runs. Pure, on the texts that both preprocessors left.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::diagnostics::SOURCE_NAME;
use super::functions::matching;
use crate::submission::lexer::{Token, lex};

/// What a preprocessor left of heat.cu: its tokens by line, without the qualifiers that CUDA's headers and ours spell
/// differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preprocessed(BTreeMap<u32, Vec<Arc<str>>>);

impl Preprocessed {
    /// `text` has line markers (`# 12 "heat.cu"`).
    pub fn of(text: &str) -> Self {
        let mut own: BTreeMap<u32, String> = BTreeMap::new();
        let mut at = None;
        for line in text.lines() {
            if let Some(marker) = line.strip_prefix("# ") {
                at = line_of_heat_cu(marker);
            } else if let Some(number) = &mut at {
                let kept = own.entry(*number).or_default();
                kept.push_str(line);
                kept.push(' ');
                *number += 1;
            }
        }
        Self(
            own.into_iter()
                .map(|(line, text)| (line, plain(&lex(&text).tokens)))
                .filter(|(_, t)| !t.is_empty())
                .collect(),
        )
    }

    /// The first of so many lines of heat.cu that is other code for `other`.
    pub fn first_difference(&self, other: &Self, lines: u32) -> Option<u32> {
        (1..=lines).find(|line| match (self.0.get(line), other.0.get(line)) {
            (Some(here), Some(there)) => here != there && !is_of_headers(here) && !is_of_headers(there),
            (None, None) => false,
            _ => true,
        })
    }
}

/// 12 of `12 "heat.cu" 2`; `None` where another file begins.
fn line_of_heat_cu(marker: &str) -> Option<u32> {
    let (number, file) = marker.split_once(" \"")?;
    let (file, _) = file.split_once('"')?;
    if file == SOURCE_NAME { number.parse().ok() } else { None }
}

/// The tokens but for attributes and qualifiers.
fn plain(tokens: &[Token]) -> Vec<Arc<str>> {
    const QUALIFIERS: [&str; 6] =
        ["hg_shared_qualifier", "inline", "static", "extern", "__inline__", "__forceinline__"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        if token.is("__attribute__") || token.is("__declspec") {
            at = matching(tokens, at + 1).map_or(tokens.len(), |close| close + 1);
            continue;
        }
        if !QUALIFIERS.iter().any(|word| token.is(word)) {
            kept.push(token.text.clone());
        }
        at += 1;
    }
    kept
}

/// Whether a line holds what a header's macro may have made: the two sets of headers need not make the same.
fn is_of_headers(tokens: &[Arc<str>]) -> bool {
    const PREFIXES: [&str; 4] = ["__", "hg_", "cuda", "CUDA"];
    tokens.iter().any(|token| PREFIXES.iter().any(|prefix| token.starts_with(prefix)) && &**token != "__restrict__")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Preprocessed {
        Preprocessed::of(&format!("# 1 \"heat.cu\"\n{text}"))
    }

    #[test]
    fn only_lines_of_heat_cu_count_and_markers_say_which_they_are() {
        let text = "# 1 \"other.h\"\nint x;\n# 7 \"heat.cu\" 2\nint a;\n\nint b;\n# 1 \"h\" 1\nint c;\n# 11 \"heat.cu\" 2\nint d;\n";
        let lines: Vec<u32> = Preprocessed::of(text).0.into_keys().collect();
        assert_eq!(lines, [7, 9, 11]);
    }

    #[test]
    fn qualifiers_and_what_headers_make_of_names_are_no_difference() {
        let theirs = seen(
            "__attribute__((global)) void k(const float* __restrict__ in) {\n__attribute__((shared)) float t[8];\n__syncthreads();\nfloat x = __int_as_float(0x7f800000U);\n__attribute__((launch_bounds(256)))\n",
        );
        let ours = seen(
            "void k(const float* __restrict__ in) {\nhg_shared_qualifier float t[8];\nhg_sync_threads((3));\nfloat x = __builtin_inff();\n\n",
        );
        assert_eq!(ours.first_difference(&theirs, 9), None);
    }

    #[test]
    fn a_line_that_only_one_sees_and_a_line_that_each_sees_otherwise_are_found() {
        let theirs = seen("int a;\n\nr *= 0.5f;\n");
        assert_eq!(seen("int a;\n\n\n").first_difference(&theirs, 3), Some(3));
        assert_eq!(theirs.first_difference(&seen("int a;\nint b;\nr *= 0.5f;\n"), 3), Some(2));
        assert_eq!(seen("int a;\n\nr *= 1.0f;\n").first_difference(&theirs, 3), Some(3));
        // What stands behind the end of the file is the grader's own.
        assert_eq!(seen("int a;\n\n\n").first_difference(&theirs, 2), None);
    }
}
