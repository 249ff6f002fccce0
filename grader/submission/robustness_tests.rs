//! No text makes this module panic, recurse without end or work without end.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::archive::{self, Content, Kind, Limits};
use super::archive_tests::{gz_of, tar_of, zip_of};
use super::directive;
use super::lexer::lex;
use super::{Submission, constructs, find_answer, find_kernel, find_launch, parse};
use crate::mutate::{fixtures, mutated};

fn take_all(text: &str) {
    let submission = Submission { answer_md: Some(text.to_owned()), ..Submission::from_text("hostile", text) };
    let program = parse(&submission);
    let _ = constructs(&program);
    let _ = find_answer(&submission);
    match find_kernel(&program) {
        Ok(kernel) => match find_launch(&program, &kernel) {
            Ok(launch) => {
                for n in [0, 1, 2, 3, 131, 2048, u32::MAX] {
                    let _ = launch.geometry(n).map_err(|fault| (fault.to_string(), fault.details()));
                }
            }
            Err(fault) => drop((fault.to_string(), fault.details(), fault.line())),
        },
        Err(fault) => drop((fault.to_string(), fault.details(), fault.line())),
    }
}

const KERNEL: &str = "__global__ void k(const float* a, float* b, int n, float r) {}\n";

fn around(text: &str) -> String {
    format!("{KERNEL} int main() {{ int n = 2048; int x; {text}; k<<<n / 32, x>>>(a, b, n, r); }}")
}

#[test]
fn hostile_texts_end_soon_and_without_a_panic() {
    let many = |piece: &str, times: usize| piece.repeat(times);
    let texts = [
        ("open brackets", many("(", 100_000)),
        ("open square brackets", around("float t[3; float u[float u[4]; int v[2][")),
        ("a member's open square bracket", format!("struct S {{ int a[3; }}; int b[4; {KERNEL}")),
        ("nested brackets", around(&format!("x = {}1{}", many("(", 100_000), many(")", 100_000)))),
        ("nested braces", around(&format!("{}{}", many("{", 100_000), many("}", 100_000)))),
        ("open braces", format!("{KERNEL}{}", many("{", 200_000))),
        ("closing braces", format!("{}{KERNEL}", many("}", 200_000))),
        ("minus signs", around(&format!("x = {}1", many("- ", 100_000)))),
        ("a long sum", around(&format!("x = {}1", many("1+", 200_000)))),
        ("tall sums", around(&format!("x = {}1{}", many("(1+1+1+1+1+1+1+1+", 5_000), many(")", 5_000)))),
        ("members", around(&format!("x = a{}", many(".b", 100_000)))),
        ("indices", around(&format!("x = a{}", many("[0]", 100_000)))),
        ("else if", around(&format!("if (x) x = 1; {}", many("else if (n) x = 2; ", 50_000)))),
        ("nested if", around(&format!("{} x = 1", many("if (n) ", 50_000)))),
        ("lambdas", around(&format!("x = {}1{}", many("[&]{ return ", 2_000), many("; }()", 2_000)))),
        ("angles", around(&format!("x = {}1", many("a<", 100_000)))),
        ("nested template lists", around(&format!("x = {}1{}", many("x<x<const x*, ", 60), many("*>*>", 60)))),
        (
            "nested types",
            format!(
                "template <class T> struct A {{}}; {}",
                around(&format!("{}int{} y", many("A<", 90), many(">", 90)))
            ),
        ),
        (
            "endless instances",
            format!(
                "template <int N> struct F {{ static constexpr int v = F<N + 1>::v + F<N + 2>::v; using T = F<N + 1>; }}; template <class T> struct W {{ static constexpr int v = W<W<T>>::v; using U = typename W<W<T>>::U; }}; {}",
                around("x = F<1>::v + W<int>::v; typename W<int>::U y; F<1>::T z; x += sizeof(y)")
            ),
        ),
        (
            "bases of themselves",
            format!(
                "struct P : P {{}}; struct Q : R, R {{}}; struct R : Q, Q {{}}; {}",
                around("x = P::v + Q::v + R::v")
            ),
        ),
        (
            "captures of captures",
            around("auto f = [x] { return 1; }; for (int i = 0; i < 100000; ++i) f = [g = f] { return g(); }; x = f()"),
        ),
        ("capture lists", around(&format!("x = {}1{}", many("[a = ", 2_000), many("] { return a; }()", 2_000)))),
        ("closing angles", around(&format!("x = a<{}", many(">>>", 50_000)))),
        ("templates", format!("{}{KERNEL}", many("template <", 50_000))),
        ("launches", around(&many("k<<<1, 1>>>(a, b, n, r); ", 5_000))),
        ("launch openings", around(&many("k<<<", 50_000))),
        ("namespaces", format!("{}{KERNEL}", many("namespace a { ", 50_000))),
        ("structs", format!("{}{KERNEL}", many("struct a { ", 50_000))),
        ("kernels", many("__global__ void k(const float*, float*, int, float) {}\n", 10_000)),
        ("endless loop", around("while (true) { x = x + 1; }")),
        ("long loops", around("for (int i = 0; i < 1000000000; ++i) for (int j = 0; j < 1000000000; ++j) x += i * j")),
        (
            "endless recursion",
            format!(
                "int f(int a) {{ return f(a + 1); }} int g(int a) {{ return g(a) + g(a + 1); }} {}",
                around("x = f(1) + g(2)")
            ),
        ),
        ("circular constants", format!("const int p = q; const int q = p; {}", around("x = p"))),
        ("circular aliases", format!("using A = B; using B = A; {} __global__ void l(A* a, B b) {{}}", around("A y"))),
        (
            "circular structs",
            format!(
                "struct S {{ S s; T t; }}; struct T {{ S s; T t; int n; }}; {}",
                around("S s; x = sizeof(S) + sizeof(T)")
            ),
        ),
        (
            "circular macros",
            format!(
                "#define P Q\n#define Q P\n#define F(x) F(F(x)) G(x)\n#define G(x) F(x) F(x)\n{}",
                around("x = P + F(G(1))")
            ),
        ),
        ("doubling macros", format!("{}{}", doubling(60), around("x = M60"))),
        (
            "pasting macros",
            format!(
                "#define D(x) x##x\n#define E(x) D(x)\n{}",
                around(&format!("x = {}a{}", many("E(", 40), many(")", 40)))
            ),
        ),
        ("macro without an end", format!("#define F(x) x\n{}", many("F(", 100_000))),
        (
            "macro arguments",
            format!("#define F(x, ...) x __VA_ARGS__\n{}", around(&format!("x = F({}1)", many("1,", 100_000)))),
        ),
        ("conditions", many("#if 1\n", 100_000)),
        ("condition of brackets", format!("#if {}\n#endif\n{KERNEL}", many("(", 100_000))),
        ("else without if", many("#else\n#endif\n", 100_000)),
        ("raw strings", many("R\"(", 100_000)),
        ("comments", many("/*", 200_000)),
        ("quotes", many("\"'", 200_000)),
        ("splices", many("\\\n", 200_000)),
        ("directives", many("// grader: block=32x8\n", 20_000)),
        ("mutual callers", format!("{} {}", callers(40), around("f0(n)"))),
        ("numbers", around("x = 99999999999999999999999999999999999999999999999999 * 1e999 << 500 >> -1 % 0")),
        ("shifts", around("x = (1 << 31) / -1 + 0x8000000000000000 / -1 - (-9223372036854775807 - 1) % -1")),
        ("rows", format!("rows:\n{}ship: {}", many("| a | 1.5 ms 2x |\n", 20_000), many("word ", 20_000))),
    ];
    for (name, text) in texts {
        let begin = Instant::now();
        take_all(&text);
        let taken = begin.elapsed();
        assert!(taken < Duration::from_secs(20), "{name} took {taken:?}");
        println!("{name}: {taken:?}");
    }
}

/// `M0` stands for 1, every next macro for the last one twice.
fn doubling(count: usize) -> String {
    let next = |index: usize| format!("#define M{} M{} + M{}\n", index + 1, index, index);
    std::iter::once("#define M0 1\n".to_owned()).chain((0..count).map(next)).collect()
}

/// Functions that all call all others, the last one with a launch.
fn callers(count: usize) -> String {
    let calls: String = (0..count).map(|index| format!("f{index}(n);")).collect();
    (0..count).map(|index| format!("void f{index}(int n) {{ {calls} k<<<n, n>>>(a, b, n, r); }}\n")).collect()
}

/// Pieces that mean something, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "__global__ void k(const float* in, float* out, int n, float r) {",
        "}",
        "{",
        "(",
        ")",
        "<",
        ">",
        "<<<",
        ">>>",
        ",",
        ";",
        "k",
        "n",
        "x",
        "int ",
        "dim3 ",
        "template <int N = 3>",
        "struct S ",
        "S",
        "for",
        "if",
        "else ",
        "while",
        "return ",
        "auto ",
        "[&]",
        "=",
        "+",
        "-",
        "/",
        "*",
        "&",
        "%",
        "0",
        "1",
        "32",
        "2048u",
        ".x",
        "->",
        "::",
        "?",
        ":",
        "#define N 5\n",
        "\n#define F(x) x##N\n",
        "F(",
        "N",
        "\n#if N\n",
        "\n#endif\n",
        "\n#else\n",
        "// grader: block=",
        "32x8\n",
        "\"",
        "'",
        "\\\n",
        "/*",
        "*/",
        "R\"(",
        "using T = ",
        "T",
        "cudaLaunchKernel(k,",
        "k<<<n, 32>>>(a, b, n, r);",
        "int main() {",
        "sizeof(",
        "static_cast<int>(",
        "enum E { A, B = 3 };",
        "namespace a {",
        "rows:",
        "ship:",
        "switch (n) { case 1:",
        "do {",
        "} while (n);",
        "é",
        "\u{0}",
    ]);
    prop::collection::vec(piece, 0..120).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_taken(text in any::<String>()) {
        take_all(&text);
    }

    #[test]
    fn any_mix_of_pieces_is_taken(text in pieces()) {
        take_all(&text);
        take_all(&format!("{KERNEL}int main() {{ {text}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn damaged_fixtures_are_taken(text in mutated(fixtures())) {
        let began = Instant::now();
        take_all(&text);
        prop_assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    }
}

/// Directives and answers as people write them.
const DIRECTIVES: &str = "// grader: kernel=ns::twoStep<32, 8> block=32x8 tile=28x4 shared=4096\n/* grader: block=256 */\n\
    // grader:tile=32 x 8,shared=0x10 block = 1024x1x1\n__global__ void twoStep(const float*, float*, int, float) {}\n";
const ANSWERS: [&str; 3] = [
    "rows:\n| kernel | time (ms) | GB/s | ratio |\n|---|---|---|---|\n| `twoStep` | 0.205 ms | 163.6 | 0.72x |\n\
        | reads per cell-step | 0.843 | | |\n\n## Ship:\nWhen memory\nbandwidth is short.\n",
    "two new rows: twoStep 0.84283 words, 1,024.5 µs\nwhen to ship: never é.\n",
    "int a;\n// rows:\n//   - heatTwoStep reads 0.84283 words\n/* rows: 1e9 ms .5x 1.2.3,4\nship: <one sentence>\n*/\n",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn damaged_directives_are_taken(text in mutated(vec![DIRECTIVES.to_owned()])) {
        let _ = directive::read(&lex(&text).comments);
        take_all(&text);
    }

    #[test]
    fn damaged_answers_are_taken_and_cut_to_size(text in mutated(ANSWERS.map(str::to_owned).to_vec())) {
        let submissions = [
            Submission { answer_md: Some(text.clone()), ..Submission::from_text("answer", "int a;") },
            Submission::from_text("comment", &text),
        ];
        for answer in submissions.iter().filter_map(find_answer) {
            prop_assert!(answer.rows.len() <= 16);
            prop_assert!(answer.rows.iter().all(|row| row.numbers.iter().all(|number| number.is_finite())));
            prop_assert!(answer.ship.is_none_or(|ship| ship.chars().count() <= 501));
        }
    }

    #[test]
    fn damaged_archives_are_taken(
        kind in 0..3u8,
        edits in prop::collection::vec((0.0..1.0f64, any::<u8>(), 0..40usize), 0..6),
        cut in prop::option::of(0.0..1.0f64),
    ) {
        let entries: [(&str, &[u8]); 4] =
            [("hw/", b""), ("hw/heat.cu", &[b'x'; 300]), ("hw/answer.md", b"rows: 1"), ("inner.zip", b"PK\x03\x04")];
        let (mut bytes, kind) = match kind {
            0 => (zip_of(&entries), Kind::Zip),
            1 => (tar_of(&entries), Kind::Tar),
            _ => (gz_of(&tar_of(&entries)), Kind::TarGz),
        };
        for (place, byte, length) in edits {
            let at = (place * bytes.len() as f64) as usize;
            match length {
                0..20 => bytes[at] = byte,
                20..30 => drop(bytes.drain(at..(at + length).min(bytes.len()))),
                _ => drop(bytes.splice(at..at, vec![byte; length])),
            }
        }
        bytes.truncate((cut.unwrap_or(1.0) * bytes.len() as f64) as usize);
        let files = [Limits::default(), Limits::of_a_class()].map(|limits| archive::files(&bytes, kind, limits, &|_| Some(1 << 10)));
        for file in files.into_iter().flatten().flatten() {
            prop_assert!(!file.path.split('/').any(|part| matches!(part, "" | "." | "..")));
            prop_assert!(!matches!(file.content, Content::Whole(bytes) if bytes.len() > 1 << 10));
        }
    }
}
