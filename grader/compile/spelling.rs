//! One spelling for what our CUDA headers and NVIDIA's spell differently once macros are expanded: qualifiers, barriers, assert,
//! assumptions. All else is the same token by token, because the macros of ours have the text of theirs. Pure.

use super::functions::{matching, text_of};
use crate::submission::lexer::{Token, TokenKind};

/// `__syncthreads_count` and its like, by the number that our macros give them.
const REDUCTIONS: [&str; 3] = ["__syncthreads_count", "__syncthreads_and", "__syncthreads_or"];

/// Attributes behind CUDA's qualifiers that say where code runs, or with how much.
const QUALIFIERS: [&str; 9] = [
    "device",
    "global",
    "host",
    "managed",
    "grid_constant",
    "launch_bounds",
    "cluster_dims",
    "maxnreg",
    "nv_inline_hint",
];

/// A token's index and how it is spelled here.
pub type Spelled = (usize, String);

/// The tokens in one spelling, in order; a token may be left out.
pub fn spelled_alike(tokens: &[Token]) -> Vec<Spelled> {
    let mut speller = Speller { tokens, dropped: vec![false; tokens.len()], spelled: Vec::with_capacity(tokens.len()) };
    let mut at = 0;
    while at < tokens.len() {
        at = if speller.dropped[at] { at + 1 } else { speller.token(at) };
    }
    speller.spelled
}

struct Speller<'t> {
    tokens: &'t [Token],
    /// Tokens ahead that are left out.
    dropped: Vec<bool>,
    spelled: Vec<Spelled>,
}

impl Speller<'_> {
    fn is(&self, at: usize, text: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.is(text))
    }

    fn spell(&mut self, at: usize, text: &str) {
        self.spelled.push((at, text.to_owned()));
    }

    /// Spells the token at `at`, with others where it takes more than one to say the same; the first one after that.
    fn token(&mut self, at: usize) -> usize {
        let text = &*self.tokens[at].text;
        match text {
            "hg_shared_qualifier" => self.spell(at, "<shared>"),
            "__noinline__" => self.spell(at, "<noinline>"),
            "__inline__" => self.spell(at, "inline"),
            "__assume" => self.spell(at, "__builtin_assume"),
            "__attribute__" | "__syncthreads" | "__barrier_sync" | "__assert_fail" | "hg_sync_threads"
            | "hg_sync_reduce" | "hg_assumed"
                if self.is(at + 1, "(") =>
            {
                let Some(close) = matching(self.tokens, at + 1) else { return self.tokens.len() };
                return self.call(at, close);
            }
            _ => {
                let text = text.to_owned();
                self.spell(at, &text);
            }
        }
        at + 1
    }

    /// Spells a name with what stands in brackets behind it; what a text has written there itself stays.
    fn call(&mut self, at: usize, close: usize) -> usize {
        let first = self.tokens.get(at + 2);
        let spelled = match &*self.tokens[at].text {
            "__attribute__" => return self.attribute(at, close),
            "hg_sync_reduce" => return self.reduction(at, close),
            "hg_assumed" => return self.assumption(at, close),
            "hg_sync_threads" if self.is(at + 3, "static_cast") => "__syncthreads",
            "__syncthreads" if close == at + 2 => "__syncthreads",
            "__barrier_sync" if close == at + 3 && first.is_some_and(|id| &*id.text == "0") => "__syncthreads",
            // What it says of the place is for the one who reads it.
            "__assert_fail" if close == at + 2 || first.is_some_and(|first| first.kind == TokenKind::String) => {
                "__assert_fail"
            }
            own => {
                let own = own.to_owned();
                self.spell(at, &own);
                return at + 1;
            }
        };
        self.spell(at, spelled);
        close + 1
    }

    fn attribute(&mut self, at: usize, close: usize) -> usize {
        let inside = self.tokens.get(at + 3..close.saturating_sub(1)).unwrap_or_default();
        let of = |word: &str| inside.first().is_some_and(|first| first.is(word));
        let one = inside.len() == 1 || matching_end(inside);
        match () {
            () if one && QUALIFIERS.iter().any(|word| of(word)) => {}
            () if one && of("shared") => self.spell(at, "<shared>"),
            () if one && of("noinline") => self.spell(at, "<noinline>"),
            () if one && (of("constant") || of("section") && inside[2].text.starts_with("\"hg_constant.")) => {
                self.spell(at, "<constant>");
            }
            () => {
                let text = text_of(&self.tokens[at..=close]);
                self.spell(at, &text);
            }
        }
        close + 1
    }

    /// `hg_sync_reduce((site), 1, (predicate))` is `__syncthreads_and(predicate)`.
    fn reduction(&mut self, at: usize, close: usize) -> usize {
        let site = matching(self.tokens, at + 2).unwrap_or(close);
        let which = self.tokens.get(site + 2).and_then(|which| REDUCTIONS.get(which.text.parse::<usize>().ok()?));
        match which {
            Some(name) if self.is(site + 4, "(") => {
                self.spell(at, name);
                self.dropped[close] = true;
                site + 4
            }
            _ => {
                self.spell(at, "hg_sync_reduce");
                at + 1
            }
        }
    }

    /// `hg_assumed(bool(condition))` is `__builtin_assume(condition)`.
    fn assumption(&mut self, at: usize, close: usize) -> usize {
        self.spell(at, "__builtin_assume");
        self.dropped[close] = true;
        (at + 3).min(close)
    }
}

/// Whether the tokens are a name with arguments and nothing behind them: `launch_bounds(256, 2)`.
fn matching_end(tokens: &[Token]) -> bool {
    tokens.get(1).is_some_and(|open| open.is("(")) && matching(tokens, 1) == Some(tokens.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submission::lexer::lex;

    fn spelled(text: &str) -> String {
        let words: Vec<String> = spelled_alike(&lex(text).tokens).into_iter().map(|(_, text)| text).collect();
        words.join(" ")
    }

    const SITE: &str = "(static_cast<unsigned>(7) | static_cast<unsigned>(0) << 20)";

    #[test]
    fn both_sets_of_headers_end_in_one_spelling() {
        for (ours, theirs) in [
            ("void k()", "__attribute__((global)) void k()".to_owned()),
            ("void k()", "__attribute__((global)) void __attribute__((launch_bounds(256, 2))) k()".to_owned()),
            ("extern hg_shared_qualifier float t[];", "extern __attribute__((shared)) float t[];".to_owned()),
            ("__attribute__((section(\"hg_constant.\" \"0\"))) int c;", "__attribute__((constant)) int c;".to_owned()),
            ("__noinline__ inline f", "__attribute__((noinline)) __inline__ f".to_owned()),
            (&format!("hg_sync_threads({SITE}); a"), "__syncthreads(); a".to_owned()),
            (
                &format!("hg_sync_reduce({SITE}, 2, (a || hg_sync_reduce({SITE}, 0, (b)))) + 1"),
                "__syncthreads_or(a || __syncthreads_count(b)) + 1".to_owned(),
            ),
            ("hg_assumed(bool(a > f(2))); b", "__builtin_assume(a > f(2)); b".to_owned()),
            ("hg_assumed(bool(a))", "__assume(a)".to_owned()),
            (
                "(static_cast<bool>(a) ? void(0) : __assert_fail());",
                "(static_cast <bool> (a) ? void (0) : __assert_fail (\"a\", \"heat.cu\", 7, f));".to_owned(),
            ),
        ] {
            assert_eq!(spelled(ours), spelled(&theirs), "{theirs}");
        }
    }

    #[test]
    fn what_is_said_within_stays_apart() {
        for (one, other) in [
            (format!("hg_sync_reduce({SITE}, 2, (a))"), "__syncthreads_or(b)"),
            (format!("hg_sync_reduce({SITE}, 2, (a))"), "__syncthreads_and(a)"),
            ("hg_assumed(bool(a))".to_owned(), "__builtin_assume(b)"),
            ("hg_shared_qualifier float t;".to_owned(), "float t;"),
            ("mine::__assert_fail(1)".to_owned(), "mine::__assert_fail(2)"),
            ("mine::hg_sync_threads(1)".to_owned(), "mine::hg_sync_threads(2)"),
            ("__attribute__((aligned(8))) x".to_owned(), "__attribute__((aligned(16))) x"),
            ("__attribute__((device, aligned(8))) x".to_owned(), "x"),
            (
                "(static_cast<bool>(a) ? void(0) : __assert_fail())".to_owned(),
                "(static_cast<bool>(b) ? void(0) : __assert_fail())",
            ),
        ] {
            assert_ne!(spelled(&one), spelled(other), "{other}");
        }
    }

    #[test]
    fn unfinished_text_is_no_trouble() {
        for text in [
            "hg_sync_reduce(",
            "hg_sync_reduce()",
            "hg_sync_reduce(a, 9, (b))",
            "hg_assumed()",
            "hg_assumed(a)",
            "__attribute__(())",
            "__attribute__((section()))",
            "__attribute__",
        ] {
            spelled(text);
        }
    }
}
