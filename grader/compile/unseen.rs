//! Accesses that g++'s hooks do not see, found in its own account of a function. Pure.
//!
//! `-fsanitize=thread` puts a hook before each load and store of an assignment, and none before the structure that a call
//! takes or gives by value straight in memory (`take(*p)`, `a[i] = make()`). What is inlined is an assignment again. Nor does
//! it put one before a load of what never changes (`weights[i]` of a `const` table): see [`super::tables`].
//! Source: GCC's gcc/tsan.cc (instrument_gimple), and the text that -fdump-tree-tsan-lineno-uid writes, where each variable has
//! a number behind its name (`tileD.2360`) and a value on its way has only that (`D.2490`).

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::diagnostics::pattern;
use crate::submission::lexer::lex;

/// The function that the engine calls, which is the beginning of all that a kernel does.
const ENTRY: &str = "hg_kernel";

/// Bytes of an account that is read: a kernel's is 30 KB, and one that nobody has read says nothing.
const MOST: usize = 16 << 20;

/// What has no hook in what the kernel may call. Lines are of heat.cu, 0 where they are not known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// The line of the first call that takes or gives a structure straight in memory.
    pub call: Option<u32>,
    /// Variables outside the functions that are read at no fixed place, and the line of a read of each.
    pub tables: BTreeMap<String, u32>,
}

impl Unseen {
    /// As g++'s account of the functions has it.
    pub fn of(dump: &str) -> Self {
        if dump.len() > MOST {
            return Self { call: Some(0), ..Self::default() };
        }
        let functions = functions(dump);
        let reached = reached(&functions);
        let call = reached.iter().find_map(|function| function.first_unseen());
        Self { call, tables: reached.iter().flat_map(|function| function.unseen_tables()).collect() }
    }
}

/// A function of a dump.
struct Function<'d> {
    /// Its name without scopes, template arguments and parameters.
    name: &'d str,
    lines: Vec<&'d str>,
}

fn functions(dump: &str) -> Vec<Function<'_>> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| pattern(r"^;; Function (.*?) \([^\s()]+, funcdef_no="));
    let mut found: Vec<Function> = Vec::new();
    for line in dump.lines() {
        if let Some(head) = HEAD.captures(line).and_then(|head| head.get(1)) {
            let bare = head.as_str().split(['<', '(', '[']).next().unwrap_or_default().trim();
            let name = bare.rsplit("::").next().and_then(|name| name.rsplit(' ').next()).unwrap_or_default();
            found.push(Function { name, lines: Vec::new() });
        } else if let Some(function) = found.last_mut() {
            function.lines.push(line);
        }
    }
    found
}

/// Those that the entry point names, and those that they name; all of them once one calls what only a pointer tells. Host code,
/// which the initialisers of the file's variables call, hands structures over as it likes.
fn reached<'f, 'd>(functions: &'f [Function<'d>]) -> Vec<&'f Function<'d>> {
    // What is known by no name of its own, as a lambda is, may be called by anybody.
    let (mut reached, mut rest): (Vec<&Function>, Vec<&Function>) =
        functions.iter().partition(|function| function.name == ENTRY || function.name.is_empty());
    let mut at = 0;
    while let Some(function) = reached.get(at) {
        at += 1;
        if function.calls_a_pointer() {
            return functions.iter().collect();
        }
        let words = function.words();
        let (named, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|other| words.contains(other.name));
        reached.extend(named);
        rest = others;
    }
    reached
}

impl Function<'_> {
    fn first_unseen(&self) -> Option<u32> {
        let mut own = HashSet::new();
        for line in &self.lines {
            let (statement, at) = bare(line);
            own.extend(own_names(line, &statement));
            if line.starts_with(' ') && operands(&statement).into_iter().any(|operand| is_elsewhere(operand, &own)) {
                return Some(at);
            }
        }
        None
    }

    /// Names and lines of the variables of others that it reads without a hook.
    fn unseen_tables(&self) -> Vec<(String, u32)> {
        static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"([\w$]+)(?:<[^=;]*>)?D\.\d+"));
        let (mut own, mut found, mut hooked) = (HashSet::new(), Vec::new(), false);
        for line in &self.lines {
            let (statement, at) = bare(line);
            own.extend(own_names(line, &statement));
            if statement.contains("__tsan_") {
                hooked |= statement.contains("_read");
                continue;
            }
            let Some((_, read)) = statement.split_once(" = ") else {
                hooked = false;
                continue;
            };
            // The address for the hook of the statement that follows.
            if read.starts_with('&') {
                continue;
            }
            let is_load = operands(&statement).is_empty() && is_elsewhere(read.trim_end_matches(';'), &own);
            if is_load && !std::mem::take(&mut hooked) {
                found.extend(NAME.captures_iter(read).map(|name| (name[1].to_owned(), at)));
            }
            hooked = false;
        }
        found
    }

    /// The words of its statements, without the numbers of variables and functions.
    fn words(&self) -> HashSet<String> {
        static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"D\.\d+"));
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let words = |line: &&str| {
            let line = NUMBER.replace_all(line, " ");
            line.split(|c| !part(c)).map(str::to_owned).collect::<Vec<_>>()
        };
        self.lines.iter().flat_map(words).collect()
    }

    /// Whether a callee is a value (`f_25(D) (...)`) or a virtual function.
    fn calls_a_pointer(&self) -> bool {
        static CALL: LazyLock<Regex> =
            LazyLock::new(|| pattern(r"(?:^|= )(?:[^\s\[\]()&*,]*_\d+(?:\(D\))?|OBJ_TYPE_REF\(.*\)) \("));
        self.lines.iter().any(|line| CALL.is_match(&bare(line).0))
    }
}

/// A statement without what its strings say and the places that -lineno puts before its parts, and the line of the first of
/// them in heat.cu.
fn bare(line: &str) -> (String, u32) {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[([^\[\]]*):(\d+):\d+(?: discrim \d+)?\] "));
    static TEXT: LazyLock<Regex> = LazyLock::new(|| pattern(r#""(?:[^"\\]|\\.)*""#));
    // What becomes of a call is noted behind it: `[return slot optimization]`, `[tail call]`.
    static NOTES: LazyLock<Regex> = LazyLock::new(|| pattern(r";(?: \[[a-z ]+\])+$"));
    let in_heat = PLACE.captures_iter(line).find(|place| place[1].ends_with("heat.cu"));
    let at = in_heat.and_then(|place| place[2].parse().ok()).unwrap_or(0);
    let statement = TEXT.replace_all(line.trim(), "\"\"");
    let statement = PLACE.replace_all(&statement, "");
    (NOTES.replace(&statement, ";").into_owned(), at)
}

/// What a line of a function declares; at its head, its parameters.
fn own_names(line: &str, statement: &str) -> Vec<String> {
    let is_head = !line.starts_with(' ') && line.ends_with(')');
    let mut names = if is_head { parameters(statement) } else { Vec::new() };
    names.extend(declared(statement).map(str::to_owned));
    names
}

/// The variable that a line of declarations declares.
fn declared(statement: &str) -> Option<&str> {
    static DECLARATION: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^[^=]*[ *&]([^\s\[\]()*&=]*D\.\d+)(?:\[[^\]]*\])*;$"));
    // A shared array declared in the kernel.
    let elsewhere = statement.starts_with("static ") || statement.starts_with("extern ");
    Some(DECLARATION.captures(statement).filter(|_| !elsewhere)?.get(1)?.as_str())
}

/// Names of a head's parameters: `floatD.41 takeD.7 (struct OneD.5 oD.8, intD.9 nD.9)`.
fn parameters(head: &str) -> Vec<String> {
    let inside = head.split_once(" (").map_or("", |(_, inside)| inside.trim_end_matches(')'));
    inside.split(',').filter_map(|one| one.rsplit([' ', '*', '&']).next()).map(str::to_owned).collect()
}

/// What a call takes by value, and where its result goes.
fn operands(statement: &str) -> Vec<&str> {
    let Some(call) = statement.strip_suffix(");") else { return Vec::new() };
    let Some(open) = opening(call) else { return Vec::new() };
    let head = &call[..open];
    let (result, callee) = head.split_once(" = ").map_or((None, head), |(result, callee)| (Some(result), callee));
    // `(float) _5` and `if (x > y)` are no calls.
    let is_call = callee.ends_with(' ') && !["", "if", "switch", "return"].contains(&callee.trim());
    if !is_call {
        return Vec::new();
    }
    arguments(&call[open + 1..]).into_iter().chain(result).collect()
}

/// The bracket that the end of the text closes.
fn opening(call: &str) -> Option<usize> {
    let mut depth = 1;
    call.char_indices().rev().find_map(|(at, c)| {
        depth += i32::from(c == ')') - i32::from(c == '(');
        (depth == 0).then_some(at)
    })
}

fn arguments(inside: &str) -> Vec<&str> {
    let (mut all, mut from, mut depth) = (Vec::new(), 0, 0);
    for (at, c) in inside.char_indices() {
        depth += i32::from("([<{".contains(c)) - i32::from(")]>}".contains(c));
        if c == ',' && depth == 0 {
            all.push(&inside[from..at]);
            from = at + 1;
        }
    }
    all.push(&inside[from..]);
    // A function's address is its name and a blank.
    all.into_iter().filter(|argument| !argument.ends_with(' ')).map(str::trim).collect()
}

/// Whether an operand lies in memory that is not the function's own: behind a pointer, or in a variable of another kind.
fn is_elsewhere(operand: &str, own: &HashSet<String>) -> bool {
    static REGISTER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^\s\[\]()&*,]*_\d+(?:\(D\))?$"));
    // A name with its number, at the operand's beginning or behind its `&`.
    static NAMED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[^\s\[\]()&*,+]*?D\.\d+"));
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"&([^\s\[\]()&*,+]*?D\.\d+)"));
    let constant = operand.is_empty() || operand.starts_with(['&', '"', '-', '{']);
    if constant || REGISTER.is_match(operand) {
        return false;
    }
    let is_own = |name: &str| name.starts_with("D.") || own.contains(name);
    if operand.contains("MEM") || operand.contains('*') || operand.contains("->") {
        return !ADDRESS.captures(operand).is_some_and(|found| is_own(&found[1]));
    }
    let operand = operand
        .split_once("VIEW_CONVERT_EXPR")
        .map_or(operand, |(_, viewed)| viewed.rsplit('(').next().unwrap_or(viewed));
    NAMED.find(operand).is_some_and(|base| !is_own(base.as_str()))
}

/// The text with every function that is not to be inlined inlined instead; `None` where there is none. A barrier to the
/// compiler at its beginning keeps its loads from being merged with those around the call, as the call itself would.
pub fn inlined(text: &str) -> Option<String> {
    const BARRIER: &str = " __asm__ volatile(\"\" ::: \"memory\");";
    let tokens = lex(text).tokens;
    let mut edits: Vec<(std::ops::Range<usize>, &str)> = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.is("noinline") || token.is("__noinline__")) {
        edits.push((token.span.clone(), "always_inline"));
        let end = tokens[at..].iter().find(|token| token.is(";") || token.is("{")).filter(|token| token.is("{"));
        edits.extend(end.map(|body| (body.span.end..body.span.end, BARRIER)));
    }
    edits.sort_by_key(|(span, _)| span.start);
    // A function may say it twice.
    edits.dedup();
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (span, new) in &edits {
        out.push_str(&text[at..span.start]);
        out.push_str(new);
        at = span.end;
    }
    (!edits.is_empty()).then(|| out + &text[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of a dump with these statements.
    fn dump(statements: &str) -> String {
        format!(
            ";; Function hg_kernel (hg_kernel, funcdef_no=3)\n\nvoidD.48 hg_kernelD.9 (const floatD.41 * inD.1, struct F4D.2 givenD.3, intD.9 \
             nD.4)\n{{\n  struct F4D.2 locD.5[2];\n  struct F4D.2 D.2431;\n  static struct F4D.2 arrD.6[8];\n  floatD.41 _14;\n\n  \
             <bb 2> [local count: 1073741824]:\n{statements}\n  return;\n\n}}\n"
        )
    }

    #[test]
    fn a_structure_that_a_call_takes_from_memory_or_gives_to_it_has_no_hook() {
        let unseen = [
            "  [heat.cu:10:16] _14 = takeD.7 ([heat.cu:10:16] MEM[(const struct OneD.8 &)_1]);",
            "  [heat.cu:10:16] _14 = takeD.7 (_3, [heat.cu:10:16] *_1);",
            "  [heat.cu:10:21] [heat.cu:10:8] arrD.6[n_17(D)] = mkD.7 (_5);",
            "  [heat.cu:10:21] MEM[(struct F4D.2 *)_7] = mkD.7 (_6); [return slot optimization]",
            "  [heat.cu:10:21] MEM[(struct F4D.2 *)_7] = mkD.7 (_6); [return slot optimization] [tail call]",
            "  [heat.cu:10:13] _31 = takeD.7 ([heat.cu:10:13] MEM[(const struct F4D.2 &)&arrD.6 + 32B]);",
            "  [heat.cu:10:27] _29 = f_25(D) ([heat.cu:10:27] in_11(D)->partD.12);",
            "  [heat.cu:10:27] _29 = takeD.7 ([heat.cu:10:27] locD.99[1]);",
            "  [heat.cu:10:27] _29 = takeD.7 ([heat.cu:10:27] DD.98[1]);",
            "  [heat.cu:10:27] _29 = takeD.7 ([my heat.cu:10:27] $tileD.97[1]);",
            "  [heat.cu:10:27] _29 = takeD.7 ([heat.cu:10:27] αD.97.xD.96);",
        ];
        for statement in unseen {
            assert_eq!(Unseen::of(&dump(statement)).call, Some(10), "{statement}");
        }
        assert_eq!(Unseen::of(&dump("  _14 = takeD.7 (*_1);")).call, Some(0), "no place");
    }

    #[test]
    fn values_addresses_and_variables_of_the_functions_own_need_none() {
        let seen = [
            "  [heat.cu:10:13] _31 = f_25(D) ([heat.cu:10:47] locD.5[n_17(D)]);",
            "  [heat.cu:10:13] locD.5[1] = mkD.7 (2.0e+0);",
            "  _31 = takeD.7 (givenD.3);",
            "  _31 = takeD.7 (givenD.3.partD.12);",
            "  D.2431 = mkD.7 (_5);",
            "  _31 = takeD.7 (D.2431);",
            "  _31 = takeD.7 ({});",
            "  _31 = takeD.7 (MEM[(struct F4D.2 *)&locD.5 + 16B]);",
            "  __builtin___tsan_read4D.20 (&arrD.6[3]);",
            "  __builtin_memcpyD.21 (&locD.5, in_11(D), 16);",
            "  [heat.cu:10:5] *_5 = *_7;",
            "  if (_3 > _4)",
            "  _5 = (long unsigned intD.16) (_4);",
            "  printfD.22 (\"%f, *p\", _14);",
            "  hg_sync_threadsD.23 (12);",
        ];
        for statement in seen {
            assert_eq!(Unseen::of(&dump(statement)).call, None, "{statement}");
        }
    }

    #[test]
    fn a_load_of_what_never_changes_has_no_hook() {
        let tables = |statements: &str| Unseen::of(&dump(statements)).tables.into_iter().collect::<Vec<_>>();
        let of = |name: &str| vec![(name.to_owned(), 7)];
        assert_eq!(tables("  [heat.cu:7:3] _6 = [heat.cu:7:5] gtD.20[q_105];"), of("gt"));
        assert_eq!(tables("  [heat.cu:7:3] _6 = vt<float>D.20[q_105];"), of("vt"));
        assert_eq!(tables("  [heat.cu:7:3] _6 = MEM[(const floatD.41 *)&gtD.20 + 4B];")[0].0, "float");
        let copied = "  __builtin___tsan_write8D.1 (&arrD.6[_2]);\n  [heat.cu:7:3] arrD.6[_2] = gtD.20[q_105];";
        assert_eq!(tables(copied), of("gt"), "the hook is the store's");
        let seen = "  _5 = &ntD.30[q_105];\n  __builtin___tsan_read4D.1 (_5);\n  _6 = ntD.30[q_105];\n  _7 = locD.5[_6];\n  _8 = \
                    givenD.3.partD.12;\n  _9 = _8 + 1.0e+0;\n  # _10 = PHI <_9(2), _6(3)>";
        assert_eq!(tables(seen), []);
        let after = format!("{seen}\n  [heat.cu:7:1] _11 = gtD.20[_6];");
        assert_eq!(tables(&after), of("gt"));
    }

    #[test]
    fn only_what_the_kernel_may_call_counts() {
        let other = |name: &str| {
            format!(
                ";; Function ns::{name}<4> (_Z1x, funcdef_no=9)\n\nvoid {name} (const float * p)\n{{\n  _14 = take (*_1);\n}}\n"
            )
        };
        let with = |statement: &str| Unseen::of(&(other("helper") + &dump(statement))).call;
        assert_eq!(with("  hg_sync_threadsD.23 (12);"), None, "an initialiser's");
        assert_eq!(with("  ns::helper<4>D.50 (in_11(D));"), Some(0));
        assert_eq!(with("  other_helperD.52 (in_11(D));"), None, "another name");
        assert_eq!(with("  _29 = f_25(D) (_3);"), Some(0), "whatever it points to");
        assert_eq!(with("  _29 = OBJ_TYPE_REF(_2;(struct B)b_3->0) (b_3);"), Some(0), "a virtual function");
        assert_eq!(with("  _5 = (long unsigned int) (_4);"), None);
        let lambda = other("<lambda(const One&)>::operator()").replace("ns::", "").replace("<4>", "");
        assert_eq!(Unseen::of(&(lambda + &dump("  return;"))).call, Some(0), "it has no name to be called by");
        assert_eq!(Unseen::of(&"x".repeat(MOST + 1)).call, Some(0), "an account that nobody reads");
    }

    #[test]
    fn what_is_kept_apart_is_inlined() {
        let text =
            "__attribute__((noinline)) float f(One o); [[gnu::__noinline__]] float g() { return 1; } int noinlined;";
        let expected = "__attribute__((always_inline)) float f(One o); [[gnu::always_inline]] float g() { __asm__ volatile(\"\" ::: \
                        \"memory\"); return 1; } int noinlined;";
        assert_eq!(inlined(text).as_deref(), Some(expected));
        assert_eq!(inlined("float f();"), None);
    }
}
