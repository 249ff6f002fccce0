//! From CUDA to C++, on preprocessed text: the few things that g++ cannot parse. Pure.
//!
//! Preprocessed, because then a launch inside a macro is a launch like any other. Line markers stay, so every message and
//! every line table still speaks of heat.cu.

use std::fmt::Write;
use std::ops::Range;

use super::conditions::own_lines;
use super::externals::{self, LABEL};
use super::unreached;
use crate::submission::lexer::{Token, lex};

/// What `__shared__` is defined as in cuda_on_host/cuda_runtime.h.
pub(super) const SHARED: &str = "hg_shared_qualifier";
/// The symbol of dynamic shared memory (hooks.inc).
const DYNAMIC: &str = "hg_dynamic_shared";

/// Attributes that nvcc passes over and by which g++ leaves out its hooks or checks.
const UNWATCHED: [&str; 16] = [
    "no_sanitize",
    "__no_sanitize__",
    "no_sanitize_thread",
    "__no_sanitize_thread__",
    "no_sanitize_undefined",
    "__no_sanitize_undefined__",
    "no_sanitize_address",
    "__no_sanitize_address__",
    "no_address_safety_analysis",
    "__no_address_safety_analysis__",
    "no_instrument_function",
    "__no_instrument_function__",
    "no_sanitize_coverage",
    "__no_sanitize_coverage__",
    "disable_sanitizer_instrumentation",
    "no_profile_instrument_function",
];

/// Functions of g++'s that are made of moves without a hook, and what has one. The grader's own headers use the former.
const BUILTIN_COPIES: [(&str, &str); 3] =
    [("__builtin_memcpy", "memcpy"), ("__builtin_memmove", "memmove"), ("__builtin_memset", "memset")];

/// How much of the host code is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostCode<'a> {
    Kept,
    /// Functions go unless this call of the kernel can reach them: they never run.
    Reached(&'a str),
    /// main() and every function with a launch lose their bodies: host code may use what only nvcc's headers know.
    Dropped,
    /// Both.
    Least(&'a str),
}

/// Where a part of a text stands in it.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// Rewrites preprocessed heat.cu so that g++ takes it.
pub fn to_cpp(preprocessed: &str, host: HostCode) -> String {
    let tokens: Vec<Token> = lex(preprocessed).tokens.into_iter().filter(|token| !token.directive).collect();
    let mut edits = Edits::default();
    let closings: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].is(">>>")).collect();
    for (position, token) in tokens.iter().enumerate() {
        if token.is("<<<") {
            launch(&tokens, position, &closings, &mut edits);
        } else if token.is(SHARED) {
            shared(&tokens, position, &mut edits);
        } else if token.is("__noinline__")
            && !before(&tokens, position).is_some_and(|token| token.is("(") || token.is(","))
        {
            edits.replace(token.span.clone(), "__attribute__((noinline))");
        } else if UNWATCHED.iter().any(|word| token.is(word)) {
            // An attribute that takes as many arguments and does nothing.
            edits.replace(token.span.clone(), "deprecated");
        } else if ["optimize", "__optimize__"].iter().any(|word| token.is(word)) && is_attribute(&tokens, position) {
            let end = matching(&tokens, position + 1, ["(", ")"]);
            edits.replace(token.span.start..tokens[end].span.end, "unused");
        }
    }
    let own = OwnText::of(preprocessed);
    externals::label(&tokens, &own, &mut edits);
    for token in tokens.iter().filter(|token| BUILTIN_COPIES.iter().any(|(builtin, _)| token.is(builtin))) {
        if own.holds(token) {
            let plain = BUILTIN_COPIES.iter().find(|(builtin, _)| token.is(builtin)).map_or("", |(_, plain)| plain);
            edits.replace(token.span.clone(), plain);
        }
    }
    for pragma in linking_pragmas(preprocessed) {
        edits.blank(pragma);
    }
    let dropped = match host {
        HostCode::Kept => Vec::new(),
        HostCode::Reached(call) => unreached::spans(preprocessed, call),
        HostCode::Dropped => host_bodies(&tokens),
        HostCode::Least(call) => [unreached::spans(preprocessed, call), host_bodies(&tokens)].concat(),
    };
    for body in dropped {
        edits.blank(body);
    }
    edits.apply(preprocessed)
}

/// The lines of a preprocessed text that are heat.cu's own.
pub(super) struct OwnText(Vec<Range<usize>>);

impl OwnText {
    pub fn of(preprocessed: &str) -> Self {
        Self(own_lines(preprocessed).map(|(_, line)| range_in(preprocessed, line)).collect())
    }

    pub fn holds(&self, token: &Token) -> bool {
        let line = self.0.partition_point(|line| line.end <= token.span.start);
        self.0.get(line).is_some_and(|line| line.contains(&token.span.start))
    }
}

/// Edits of a text, by byte range.
#[derive(Default)]
pub(super) struct Edits {
    all: Vec<(Range<usize>, Edit)>,
}

enum Edit {
    Text(String),
    /// White space; line ends and line markers stay.
    Blank,
}

impl Edits {
    pub(super) fn replace(&mut self, span: Range<usize>, text: impl Into<String>) {
        self.all.push((span, Edit::Text(text.into())));
    }

    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    pub(super) fn blank(&mut self, span: Range<usize>) {
        self.all.push((span, Edit::Blank));
    }

    /// Applies them in order; one inside another is dropped.
    pub(super) fn apply(mut self, text: &str) -> String {
        self.all.sort_by_key(|(span, _)| (span.start, std::cmp::Reverse(span.end)));
        let mut out = String::with_capacity(text.len() + text.len() / 16);
        let mut at = 0;
        for (span, edit) in self.all {
            if span.start < at {
                continue;
            }
            out.push_str(&text[at..span.start]);
            match edit {
                Edit::Text(new) => out.push_str(&new),
                Edit::Blank => text[span.clone()].split_inclusive('\n').for_each(|line| blank(line, &mut out)),
            }
            at = span.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

/// A line as white space; a line marker stays, or everything behind it would stand on another line.
fn blank(line: &str, out: &mut String) {
    let marker = line.strip_prefix("# ").is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    if marker {
        out.push_str(line);
    } else {
        out.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    }
}

/// Whether the word at a position is an attribute with arguments: `__attribute__((...))`, `[[gnu::...]]`.
pub(super) fn is_attribute(tokens: &[Token], position: usize) -> bool {
    if !tokens.get(position + 1).is_some_and(|token| token.is("(")) {
        return false;
    }
    let mut depth = 0;
    for (index, token) in tokens[..position].iter().enumerate().rev() {
        depth += i32::from(token.is(")") || token.is("]")) - i32::from(token.is("(") || token.is("["));
        if depth < 0 {
            let outer = before(tokens, index).filter(|outer| outer.is(&token.text));
            let head = || index.checked_sub(2).and_then(|head| tokens.get(head));
            let named = || head().is_some_and(|head| head.is("__attribute__") || head.is("__attribute"));
            return outer.is_some() && (token.is("[") || named());
        }
        if token.is(";") || token.is("{") || token.is("}") {
            return false;
        }
    }
    false
}

/// Lines that set how what follows is optimised or linked. A function that is optimised otherwise passes g++'s hooks by; nvcc
/// makes nothing of another symbol.
fn linking_pragmas(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let lines = text.split_inclusive('\n').map(|line| {
        let span = start..start + line.len();
        start = span.end;
        (line, span)
    });
    let sets = |line: &str| {
        let mut words =
            line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '#').filter(|word| !word.is_empty());
        let first = words.next().unwrap_or_default();
        let pragma = first == "#pragma" || (first == "#" && words.next() == Some("pragma"));
        let optimises = |word: &str| word.contains("optimize") || word.ends_with("options");
        pragma
            && match words.next() {
                Some("weak" | "redefine_extname") => true,
                Some("GCC") => words.next().is_some_and(optimises),
                _ => false,
            }
    };
    lines.filter(|(line, _)| line.trim_start().starts_with('#') && sets(line)).map(|(_, span)| span).collect()
}

pub(super) fn before(tokens: &[Token], position: usize) -> Option<&Token> {
    tokens.get(position.checked_sub(1)?)
}

/// `k<<<grid, block>>>(in, out, n, r)` becomes a plain call: it only has to compile.
fn launch(tokens: &[Token], open: usize, closings: &[usize], edits: &mut Edits) {
    if let Some(&close) = closings.get(closings.partition_point(|close| *close < open)) {
        edits.blank(tokens[open].span.start..tokens[close].span.end);
    }
}

/// A shared array lives in the thread-local segment of the OS thread that runs the block. `used`, because g++ would
/// take one that nobody writes for all zeros; the dynamic one is a view of the header's.
fn shared(tokens: &[Token], position: usize, edits: &mut Edits) {
    let start = tokens[..position].iter().rposition(ends_before_declaration).map_or(0, |end| end + 1);
    let Some(length) = tokens[position..].iter().position(|token| token.is(";") || token.is("{")) else { return };
    let end = position + length;
    let specifier = |word: &str| tokens[start..end].iter().find(|token| token.is(word));
    if let Some(external) = specifier("extern") {
        if in_function(&tokens[..start]) {
            edits.replace(external.span.clone(), "typedef");
            view(tokens, start, position, end, edits);
        } else {
            edits.blank(external.span.clone());
            edits.insert(dynamic_label_place(&tokens[position..=end]), format!(" {LABEL}\"{DYNAMIC}\")"));
            let alignment = move_alignas(tokens, position, end, edits);
            edits.replace(tokens[position].span.clone(), alignment + "extern __thread");
        }
        return;
    }
    if let Some(word) = specifier("static") {
        edits.blank(word.span.clone());
    }
    let alignment = move_alignas(tokens, position, end, edits);
    edits.replace(tokens[position].span.clone(), alignment + "static __thread __attribute__((used))");
}

/// `extern __shared__ T name[];` in a function becomes a type of its own and a reference to the one dynamic array: an
/// assembler name would be lost where a template is instantiated.
fn view(tokens: &[Token], start: usize, position: usize, end: usize, edits: &mut Edits) {
    let declaration = &tokens[start..end];
    let Some(bracket) = declaration.iter().position(|token| token.is("[")) else { return };
    let Some(name) = declaration[..bracket].last().filter(|token| token.is_identifier()) else { return };
    let alias = format!("hg_type_of_{}", name.text);
    for token in declaration.iter().filter(|token| token.is("alignas")) {
        let at = start + declaration.iter().position(|other| other.span == token.span).unwrap_or(0);
        alignas(&tokens[at..end]).iter().for_each(|token| edits.blank(token.span.clone()));
    }
    edits.blank(tokens[position].span.clone());
    edits.replace(name.span.clone(), alias.clone());
    let reference = format!("; {alias}& {} = reinterpret_cast<{alias}&>({DYNAMIC})", name.text);
    edits.insert(tokens[end].span.start, reference);
}

/// Whether the text after these tokens stands in a function's body, rather than in a namespace or class.
pub(super) fn in_function(before: &[Token]) -> bool {
    let mut depth = 0;
    for (index, token) in before.iter().enumerate().rev() {
        depth += i32::from(token.is("}")) - i32::from(token.is("{"));
        if depth < 0 {
            let head = before[..index].iter().rposition(ends_before_block).map_or(0, |end| end + 1);
            let has = |word: &str| before[head..index].iter().any(|token| token.is(word));
            // A template's parameters say `class` too, but only a function's head has brackets.
            return has("(") || !(has("namespace") || has("struct") || has("class") || has("union") || has("extern"));
        }
    }
    false
}

fn ends_before_block(token: &Token) -> bool {
    [";", "{", "}"].iter().any(|end| token.is(end))
}

/// Takes an `alignas(...)` behind the qualifier out, and returns it for the place in front of the storage class.
fn move_alignas(tokens: &[Token], position: usize, end: usize, edits: &mut Edits) -> String {
    let mut text = String::new();
    for token in alignas(&tokens[position + 1..end]) {
        edits.blank(token.span.clone());
        let _ = write!(text, "{} ", token.text);
    }
    text
}

pub(super) fn ends_before_declaration(token: &Token) -> bool {
    [";", "{", "}", ":", ")"].iter().any(|end| token.is(end))
}

/// The tokens of an `alignas(...)` that directly follows: C++ wants it in front of the storage class.
fn alignas(tokens: &[Token]) -> &[Token] {
    if !tokens.first().is_some_and(|token| token.is("alignas")) {
        return &[];
    }
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(1) {
        depth += i32::from(token.is("(")) - i32::from(token.is(")"));
        if depth == 0 {
            return &tokens[..=index];
        }
    }
    &[]
}

/// Where an assembler name goes: after the declarator's brackets, before attributes and the semicolon.
fn dynamic_label_place(declaration: &[Token]) -> usize {
    let bracket = declaration.iter().rposition(|token| token.is("]"));
    let place = bracket.map(|index| declaration[index].span.end);
    place.or_else(|| declaration.last().map(|token| token.span.start)).unwrap_or(0)
}

/// Bodies, braces excluded, of main() and of functions that contain a launch.
fn host_bodies(tokens: &[Token]) -> Vec<Range<usize>> {
    let mut bodies = Vec::new();
    let mut position = 0;
    while position < tokens.len() {
        let starts_body = tokens[position].is("{") && before(tokens, position).is_some_and(|token| token.is(")"));
        if !starts_body {
            position += 1;
            continue;
        }
        let end = matching(tokens, position, ["{", "}"]);
        let launches = tokens[position..end].iter().any(|token| token.is("<<<"));
        if launches || is_main(&tokens[..position]) {
            bodies.push(tokens[position].span.end..tokens[end].span.start);
            position = end;
        }
        position += 1;
    }
    bodies
}

/// Where the bracket at a position is closed, braces by braces and so on; the end where it never is.
pub(super) fn matching(tokens: &[Token], open: usize, [opens, closes]: [&str; 2]) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        depth += i32::from(token.is(opens)) - i32::from(token.is(closes));
        if depth == 0 {
            return index;
        }
    }
    tokens.len() - 1
}

/// Whether the tokens end with `main(...)`.
fn is_main(tokens: &[Token]) -> bool {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().rev() {
        depth += i32::from(token.is(")")) - i32::from(token.is("("));
        if depth == 0 {
            return before(tokens, index).is_some_and(|token| token.is("main"));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(text: &str) -> String {
        to_cpp(text, HostCode::Kept).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_launch_becomes_a_call_on_the_same_line() {
        assert_eq!(squeezed("ns::k<32, 8><<<dim3(a << 2), b, 0, s>>>(x, y);"), "ns::k<32, 8> (x, y);");
        let lines = to_cpp("k<<<a,\n b>>>(x);\n", HostCode::Kept);
        assert_eq!(lines.lines().count(), 2);
    }

    #[test]
    fn static_shared_arrays_become_thread_local() {
        assert_eq!(
            squeezed("{ hg_shared_qualifier float t[12][36]; }"),
            "{ static __thread __attribute__((used)) float t[12][36]; }"
        );
        assert_eq!(
            squeezed("{ static hg_shared_qualifier float t[2]; }"),
            "{ static __thread __attribute__((used)) float t[2]; }"
        );
        assert_eq!(
            squeezed("{ hg_shared_qualifier alignas(16) float t[2]; }"),
            "{ alignas ( 16 ) static __thread __attribute__((used)) float t[2]; }"
        );
    }

    #[test]
    fn dynamic_shared_arrays_share_one_symbol() {
        let expected = "extern __thread float t[] __asm__/*hg*/(\"hg_dynamic_shared\");";
        assert_eq!(squeezed("extern hg_shared_qualifier float t[];"), expected);
        assert_eq!(squeezed("hg_shared_qualifier extern float t[];"), expected);
        let attributes = squeezed("extern hg_shared_qualifier float t[] __attribute__((aligned(16)));");
        assert_eq!(
            attributes,
            "extern __thread float t[] __asm__/*hg*/(\"hg_dynamic_shared\") __attribute__((aligned(16)));"
        );
    }

    #[test]
    fn in_a_function_dynamic_shared_arrays_are_views_of_one_array() {
        let view = squeezed("template <class T> void k() { extern hg_shared_qualifier T t[][34]; }");
        let expected =
            "typedef T hg_type_of_t[][34]; hg_type_of_t& t = reinterpret_cast<hg_type_of_t&>(hg_dynamic_shared); }";
        assert!(view.ends_with(expected), "{view}");
        let named = squeezed("namespace a { extern hg_shared_qualifier float t[]; }");
        assert!(named.contains("extern __thread float t[] __asm__"), "{named}");
    }

    #[test]
    fn noinline_is_an_attribute_only_where_it_is_not_one_already() {
        assert_eq!(squeezed("__noinline__ void f();"), "__attribute__((noinline)) void f();");
        assert_eq!(squeezed("__attribute__((__noinline__)) void f();"), "__attribute__((__noinline__)) void f();");
    }

    #[test]
    fn nothing_keeps_the_hooks_away() {
        for attribute in
            ["no_sanitize_thread", "__no_sanitize_thread__", "no_sanitize(\"thread\")", "__no_sanitize__(\"thread\")"]
        {
            let left = squeezed(&format!("__attribute__(({attribute})) [[gnu::{attribute}]] void f();"));
            assert!(!left.contains("sanitize") && left.matches("deprecated").count() == 2, "{left}");
        }
    }

    #[test]
    fn nothing_is_optimised_otherwise() {
        for attribute in ["optimize(\"O0\")", "__optimize__(0, \"no-inline\")"] {
            let left = squeezed(&format!("__attribute__((cold, {attribute})) [[gnu::{attribute}]] void f();"));
            assert_eq!(left, "__attribute__((cold, unused)) [[gnu::unused]] void f();");
        }
        assert_eq!(squeezed("x = f((optimize(3))); optimize(4);"), "x = f((optimize(3))); optimize(4);");
        let pragmas =
            "#pragma GCC optimize (\"O0\")\n # pragma GCC push_options\nvoid f();\n#pragma GCC ivdep\n#pragma unroll\n";
        let left = to_cpp(pragmas, HostCode::Kept);
        assert!(!left.contains("optimize") && !left.contains("options"), "{left}");
        assert!(left.contains("\nvoid f();\n#pragma GCC ivdep\n#pragma unroll\n"), "{left}");
    }

    #[test]
    fn host_code_can_be_dropped() {
        let text =
            "void k() { a(); }\nvoid go(int n) { k<<<1, 2>>>(n); }\nint main(int c, char** v)\n{\n tricky();\n}\n";
        let dropped = to_cpp(text, HostCode::Dropped);
        assert!(dropped.contains("a();") && !dropped.contains("tricky") && !dropped.contains("(n);"), "{dropped}");
        assert_eq!(dropped.lines().count(), text.lines().count());
    }

    #[test]
    fn line_markers_in_a_body_that_goes_stay() {
        let text = "# 1 \"heat.cu\"\nvoid go() {\n a();\n# 30 \"heat.cu\"\n b();\n}\nvoid k() { c(); }\n";
        for host in [HostCode::Reached("k"), HostCode::Dropped] {
            let text = text.replace("a()", if host == HostCode::Dropped { "k<<<1, 2>>>()" } else { "a()" });
            let left = to_cpp(&text, host);
            assert!(left.contains("\n# 30 \"heat.cu\"\n") && !left.contains("b()") && left.contains("c()"), "{left}");
        }
    }

    #[test]
    fn unfinished_text_is_left_as_it_is() {
        for text in ["k<<<", "hg_shared_qualifier", "{{{", "main(", "hg_shared_qualifier alignas(", ")"] {
            to_cpp(text, HostCode::Dropped);
        }
    }
}
