//! Host code whose values decide the launch, against what a compiler's program gave; and code that must be refused, because
//! a wrong value would fail a right kernel.

use super::{LaunchFault, Submission, find_kernel, find_launch, parse};

const KERNEL: &str = "__global__ void twoStep(const float* in, float* out, int n, float r) { out[0] = in[0]; }\n";

/// What stands before the launch's function, what stands in it, and the rows of blocks for n = 2048 and n = 131.
type Case = (&'static str, &'static str, [u32; 2]);

fn rows(before: &str, body: &str) -> Result<[u32; 2], LaunchFault> {
    let launch = "dim3 grid((n - 2 + 31) / 32, rows), block(32, 8); twoStep<<<grid, block>>>(pa, pb, n, r);";
    let text = format!(
        "{KERNEL}{before}\nvoid go(const float* pa, float* pb, int n, float r) {{\n{body}\n{launch}\n}}\n\
         int main() {{ int n = 2048; float *pa = nullptr, *pb = nullptr; go(pa, pb, n, 0.2f); }}\n"
    );
    let program = parse(&Submission::from_text("test", &text));
    let kernel = find_kernel(&program).expect("a kernel");
    let launch = find_launch(&program, &kernel)?;
    Ok([launch.geometry(2048)?.grid[1], launch.geometry(131)?.grid[1]])
}

fn check(cases: &[Case]) {
    for (before, body, expected) in cases {
        assert_eq!(rows(before, body).as_ref(), Ok(expected), "{before} {body}");
    }
}

#[test]
fn overloads_are_told_apart_by_the_types_of_their_arguments() {
    check(&[
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } int rowsOf(int n, unsigned) { return (n + 5) / 16; }",
            "int rows = rowsOf(n, 0u);",
            [128, 8],
        ),
        (
            "int rowsOf(int n, unsigned) { return (n + 5) / 16; } int rowsOf(int n, int) { return (n + 5) / 8; }",
            "int rows = rowsOf(n, 0);",
            [256, 17],
        ),
        (
            "int rowsOf(int n, double) { return (n + 5) / 16; } int rowsOf(int n, float) { return (n + 5) / 8; }",
            "int rows = rowsOf(n, 0.f);",
            [256, 17],
        ),
        (
            "int rowsOf(int n, float) { return (n + 5) / 16; } int rowsOf(int n, double) { return (n + 5) / 8; }",
            "int rows = rowsOf(n, 1.0);",
            [256, 17],
        ),
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } int rowsOf(int n, unsigned) { return (n + 5) / 16; }",
            "unsigned u = 1; int rows = rowsOf(n, u);",
            [128, 8],
        ),
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } int rowsOf(int n, size_t) { return (n + 5) / 16; }",
            "int rows = rowsOf(n, (size_t)1);",
            [128, 8],
        ),
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } int rowsOf(int n, size_t) { return (n + 5) / 16; }",
            "int rows = rowsOf(n, sizeof(float));",
            [128, 8],
        ),
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } int rowsOf(int n, bool) { return (n + 5) / 16; }",
            "int rows = rowsOf(n, true);",
            [128, 8],
        ),
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } int rowsOf(int n, char) { return (n + 5) / 16; }",
            "int rows = rowsOf(n, 'x');",
            [128, 8],
        ),
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } int rowsOf(int n, float) { return (n + 5) / 16; }",
            "int rows = rowsOf(n, 1 + 0.5f);",
            [128, 8],
        ),
        (
            "template <class T> int rowsOf(int n, T) { return (n + 5) / 16; } int rowsOf(int n, int) { return (n + 5) / 8; }",
            "int rows = rowsOf(n, 1);",
            [256, 17],
        ),
        (
            "int rowsOf(int n, int) { return (n + 5) / 8; } template <class T> int rowsOf(int n, T) { return (n + 5) / 16; }",
            "int rows = rowsOf(n, 1.0f);",
            [128, 8],
        ),
        (
            "struct S { int rows(int n, int) { return (n + 5) / 8; } int rows(int n, unsigned) { return (n + 5) / 16; } };",
            "S s; int rows = s.rows(n, 1u);",
            [128, 8],
        ),
        ("int f(int* n) { return 8; } int f(int n) { return 16; }", "int k = 0; int rows = (n + 5) / f(k);", [128, 8]),
        (
            "int f(int n) { return 16; } int f(int* n) { return 8; }",
            "int k = 0; int rows = (n + 5) / f(&k);",
            [256, 17],
        ),
        ("int f(int n) { return 16; } int f(int* n) { return 8; }", "int rows = (n + 5) / f(nullptr);", [256, 17]),
        (
            "struct D { int v; D(int a) : v(a) {} D(float a) : v((int)a * 2) {} };",
            "D d(1.0f); int rows = (n - 2 + 7) / 8 / d.v;",
            [128, 8],
        ),
        (
            "struct D { int v; D(unsigned a) : v(a) {} D(int a) : v(a * 2) {} };",
            "D d(1); int rows = (n - 2 + 7) / 8 / d.v;",
            [128, 8],
        ),
        (
            "struct A {int x;}; struct B {int y;}; struct D { int v; D(A a) : v(a.x) {} D(B b) : v(b.y * 2) {} };",
            "B q{1}; D d(q); int rows = (n - 2 + 7) / 8 / d.v;",
            [128, 8],
        ),
        (
            "struct A {int x;}; struct B {int y;}; int f(A) { return 8; } int f(B) { return 16; }",
            "int rows = (n + 5) / f(B{1});",
            [128, 8],
        ),
        (
            "enum class Mode { A, B }; int f(Mode) { return 8; } int f(int) { return 16; }",
            "int rows = (n + 5) / f(Mode::B);",
            [256, 17],
        ),
        (
            "enum class M { A, B }; enum class N { A, B }; int f(M) { return 8; } int f(N) { return 16; }",
            "int rows = (n + 5) / f(N::B);",
            [128, 8],
        ),
        ("int f(dim3 d) { return 8; } int f(int d) { return 16; }", "dim3 k(1); int rows = (n + 5) / f(k);", [256, 17]),
        (
            "int g() { return 1; } unsigned h() { return 1; } int f(int) { return 8; } int f(unsigned) { return 16; }",
            "int rows = (n + 5) / f(h());",
            [128, 8],
        ),
        (
            "struct M { int v[2] = {32, 8}; int& at(int i) { return v[i]; } const int& at(int i) const { return v[i]; } };",
            "M m; m.at(1) = 8; int rows = (n - 2 + m.at(1) - 1) / m.at(1);",
            [256, 17],
        ),
        (
            "struct M { int v = 8; int y() const { return v; } int& y() { return v; } };",
            "M m; int rows = (n - 2 + m.y() - 1) / m.y();",
            [256, 17],
        ),
        (
            "template <class T> T ceilDiv(T a, T b) { return (a + b - 1) / b; } int ceilDiv(int a, int b) { return (a + b - 1) / b; }",
            "int rows = ceilDiv(n - 2, 8);",
            [256, 17],
        ),
        (
            "int ceilDiv(int a, int b) { return (a + b - 1) / b; } size_t ceilDiv(size_t a, size_t b) { return (a + b - 1) / b; }",
            "int rows = ceilDiv(n - 2, 8);",
            [256, 17],
        ),
    ]);
}

#[test]
fn what_is_written_for_some_template_arguments_is_taken_for_those() {
    check(&[
        (
            "template <class T> int rowsFor(int n) { return (n + 5) / 8; } template <> int rowsFor<float>(int n) { return (n + 5) / 16; }",
            "int rows = rowsFor<float>(n);",
            [128, 8],
        ),
        (
            "template <class T> int rowsFor(int n) { return (n + 5) / 8; } template <> int rowsFor<float>(int n) { return (n + 5) / 16; }",
            "int rows = rowsFor<int>(n);",
            [256, 17],
        ),
        (
            "template <int T> int tile() { return 4; } template <> int tile<8>() { return 8; }",
            "int rows = (n - 2 + 7) / tile<8>();",
            [256, 17],
        ),
        (
            "template <int T> int tile() { return 4; } template <> int tile<8>() { return 8; }",
            "int rows = (n - 2 + 7) / tile<9>();",
            [513, 34],
        ),
        (
            "constexpr int T = 8; template <int T> int tile() { return 4; } template <> int tile<8>() { return 8; }",
            "int rows = (n - 2 + 7) / tile<T>();",
            [256, 17],
        ),
        (
            "template <class T> struct Tile { static constexpr int y = 4; }; template <> struct Tile<float> { static constexpr int y = 8; };",
            "int rows = (n - 2 + 7) / Tile<float>::y;",
            [256, 17],
        ),
        (
            "template <class T, int N> struct Tile { static constexpr int y = 4; }; template <int N> struct Tile<float, N> { static constexpr int y = N; };",
            "int rows = (n - 2 + 7) / Tile<int, 8>::y;",
            [513, 34],
        ),
    ]);
}

#[test]
fn static_variables_keep_their_values() {
    check(&[
        (
            "int once(int n) { static int calls = 0; ++calls; return (n + 5) / 8 / calls; }",
            "once(n); int rows = once(n);",
            [128, 8],
        ),
        ("int once(int n) { static int calls = 1; return (n + 5) / 8 / calls++; }", "int rows = once(n);", [256, 17]),
        (
            "int f(int n) { static const int tile = 8; return (n - 2 + tile - 1) / tile; }",
            "int rows = f(n);",
            [256, 17],
        ),
        ("int f(int n) { static int first = n; return (first + 5) / 8; }", "f(n / 2); int rows = f(n);", [128, 8]),
        (
            "int f(int n) { static int rows = (n + 5) / 8; return rows; }",
            "int rows = f(n); rows = f(n / 2);",
            [256, 17],
        ),
        ("", "static int rows = (n + 5) / 8;", [256, 17]),
        (
            "int f(int n) { static bool first = true; if (first) { first = false; return (n + 5) / 8; } return 1; }",
            "int rows = f(n); f(n);",
            [256, 17],
        ),
        (
            "struct S { int f(int n) { static int c = 0; c++; return (n + 5) / 8 / c; } };",
            "S s; s.f(n); int rows = s.f(n);",
            [128, 8],
        ),
        ("", "auto f = [](int n) { static int c = 0; c++; return (n + 5) / 8 / c; }; f(n); int rows = f(n);", [128, 8]),
        (
            "struct S { static int k; static int next() { return ++k; } }; int S::k = 6;",
            "S::next(); int rows = (n + 5) / S::next();",
            [256, 17],
        ),
        ("int next() { static int k{6}; return k += 1; }", "next(); int rows = (n + 5) / next();", [256, 17]),
        ("int& slot() { static int k = 4; return k; }", "slot() = 8; int rows = (n + 5) / slot();", [256, 17]),
        ("int* slot() { static int k = 4; return &k; }", "*slot() = 8; int rows = (n + 5) / *slot();", [256, 17]),
        (
            "struct C { int v = 8; }; C& conf() { static C c; return c; }",
            "conf().v *= 2; int rows = (n + 5) / conf().v;",
            [128, 8],
        ),
        (
            "int f(int i) { static int t[2] = {8, 4}; return t[i]++; }",
            "f(0); int rows = (n + 5) / (f(0) - 1);",
            [256, 17],
        ),
        (
            "int f() { static int k = 0; return k++; }",
            "for (int i = 0; i < 8; i++) f(); int rows = (n + 5) / f();",
            [256, 17],
        ),
        ("int f() { static int k = 0; return k++; }", "while (f() < 7) {} int rows = (n + 5) / f();", [256, 17]),
        (
            "int f() { static int k = 0; return k++; }",
            "int rows = n; if (n > 3 && f() == 0 && f() == 1) rows = (n + 5) / (4 * f());",
            [256, 17],
        ),
        ("int f() { static int a = 1, b = a + 7; return b++; }", "f(); int rows = (n + 5) / (f() - 1);", [256, 17]),
        (
            "int f(bool x) { if (x) { static int k = 8; return k++; } static int k = 1; return k++; }",
            "f(false); f(false); int rows = (n + 5) / f(true);",
            [256, 17],
        ),
        ("int f() { static unsigned char k = 255; k++; return k + 8; }", "int rows = (n + 5) / f();", [256, 17]),
    ]);
}

#[test]
fn destructors_run_where_their_scope_ends() {
    check(&[
        ("struct Halve { int& v; ~Halve() { v /= 2; } };", "int rows = (n - 2 + 7) / 8; { Halve h{rows}; }", [128, 8]),
        ("struct Halve { int& v; ~Halve() { v /= 2; } };", "int rows = (n - 2 + 7) / 8; Halve{rows};", [128, 8]),
        ("struct Halve { int& v; ~Halve() { v /= 2; } };", "int rows = (n - 2 + 7) / 8; Halve h{rows};", [256, 17]),
        (
            "struct Halve { int& v; ~Halve() { v /= 2; } }; void f(int& rows) { Halve h{rows}; }",
            "int rows = (n - 2 + 7) / 8; f(rows);",
            [128, 8],
        ),
        (
            "struct Buf { float* p = nullptr; Buf(int n) { cudaMalloc(&p, n * 4); } ~Buf() { cudaFree(p); } };",
            "int rows = (n - 2 + 7) / 8; { Buf t(n); }",
            [256, 17],
        ),
        (
            "int g = 1; struct B { ~B() { g *= 2; } }; struct T : B { };",
            "int rows = (n - 2 + 7) / 8; { T t; } rows /= g;",
            [128, 8],
        ),
        (
            "int g = 1; struct B { ~B() { g *= 2; } }; struct T { B b; };",
            "int rows = (n - 2 + 7) / 8; { T t; } rows /= g;",
            [128, 8],
        ),
        (
            "int g = 1; struct B { ~B() { g *= 2; } }; void f(B b) {}",
            "int rows = (n - 2 + 7) / 8; B b; f(b); rows /= g;",
            [128, 8],
        ),
        (
            "int g = 1; struct B { ~B() { g *= 2; } };",
            "int rows = (n - 2 + 7) / 8; for (int i = 0; i < 3; i++) { B b; } rows /= g;",
            [32, 2],
        ),
        (
            "struct H { int& v; ~H() { v /= 2; } }; int f(int& v) { H h{v}; return v; }",
            "int rows = (n - 2 + 7) / 8; int q = f(rows); rows = rows + q - q;",
            [128, 8],
        ),
        ("int g = 0; struct A { A() { g += 8; } ~A() { g -= 8; } };", "A q; int rows = (n + 5) / g;", [256, 17]),
        (
            "int g = 8; struct A { int v; A(int v) : v(v) {} ~A() { g = v; } };",
            "{ A q(4); A w(8); } int rows = (n + 5) / (g * 2);",
            [256, 17],
        ),
        ("int g = 8; struct A { ~A() { g = 16; } };", "if (n > 5) { A q; } int rows = (n + 5) / g;", [128, 8]),
        (
            "int g = 8; struct A { ~A() { g = 16; } };",
            "for (int i = 0; i < 2; i++) { A q; if (i == 0) continue; break; } int rows = (n + 5) / g;",
            [128, 8],
        ),
        (
            "int g = 8; struct A { ~A() { g = 16; } }; struct B { A a; B() {} };",
            "{ B q; } int rows = (n + 5) / g;",
            [128, 8],
        ),
        (
            "int g = 8; struct A { int* p; A(int* p) : p(p) {} ~A() { *p = 16; } };",
            "{ A q(&g); } int rows = (n + 5) / g;",
            [128, 8],
        ),
        ("int g = 8; struct A { ~A(); }; A::~A() { g = 16; }", "{ A q; } int rows = (n + 5) / g;", [128, 8]),
        ("int g = 8; struct A { ~A() { g = 16; } };", "{ A q[2]; } int rows = (n + 5) / g;", [128, 8]),
        (
            "int g = 8; struct A { int k() { return 1; } ~A() { g = 16; } };",
            "int q = A().k(); int rows = (n + 5) / g * q;",
            [128, 8],
        ),
        (
            "int g = 8; struct A { ~A() { g = 16; } }; A make() { return A(); }",
            "make(); int rows = (n + 5) / g;",
            [128, 8],
        ),
        (
            "struct Count { int& k; Count(int& k) : k(k) { ++k; } ~Count() { --k; } };",
            "int k = 0; { Count c(k); Count d(k); } int rows = (n + 5) / 8 + k;",
            [256, 17],
        ),
        (
            "static int depth = 0; struct Scope { Scope() { ++depth; } ~Scope() { --depth; } };",
            "Scope s; int rows = (n + 5) / 8 + depth - 1; { Scope q; }",
            [256, 17],
        ),
    ]);
}

#[test]
fn characters_and_bit_fields_have_their_values() {
    check(&[
        ("", "int rows = (n - 2 + 7) / 8; if ('\\377' < 0) rows /= 2;", [128, 8]),
        (
            "",
            "int rows = (n - 2 + 7) / 8; if ('\\n' != 10) rows /= 2; if ('\\0' != 0) rows /= 4; if ('\\x41' != 65) rows /= 8; if ('\\\\' != 92) rows /= 16; if ('\\'' != 39) rows /= 32; if ('a' != 97) rows /= 32;",
            [256, 17],
        ),
        (
            "",
            "int rows = (n - 2 + 7) / 8; char c = 'a'; if (c - 'a' != 0) rows /= 2; if ('\\t' != 9) rows /= 2;",
            [256, 17],
        ),
        ("", "int rows = (n - 2 + 7) / 8; if (u8'a' != 97 || L'a' != 97 || U'\\x100' != 256) rows /= 2;", [256, 17]),
        ("", "int rows = (n - 2 + 7) / 8; char c = 200; if (c > 0) rows /= 2;", [256, 17]),
        ("", "int rows = (n - 2 + 7) / 8; rows /= sizeof('a');", [256, 17]),
        ("", "int rows = (n - 2 + 7) / 8; rows /= '2' - '0';", [128, 8]),
        ("struct B { unsigned v : 3; };", "int rows = (n - 2 + 7) / 8; B b{1}; b.v = 9; rows /= b.v;", [256, 17]),
        (
            "struct B { int v : 3; int w : 5; };",
            "int rows = (n - 2 + 7) / 8; B b{}; b.v = 7; if (b.v < 0) rows /= 2;",
            [128, 8],
        ),
        (
            "struct B { unsigned x : 10, y : 10; };",
            "int rows = (n - 2 + 7) / 8; B b{32, 8}; b.y += 1024; rows = (n - 2 + b.y - 1) / b.y;",
            [256, 17],
        ),
        ("struct B { unsigned v : 4; };", "int rows = (n - 2 + 7) / 8; B b; b.v = rows; rows = b.v;", [0, 1]),
        ("struct B { unsigned v : 4 = 2; };", "int rows = (n - 2 + 7) / 8; B b; rows /= b.v;", [128, 8]),
        (
            "struct B { unsigned v : 3; };",
            "int rows = (n - 2 + 7) / 8; B b = {(unsigned)(8 + 1)}; rows /= b.v;",
            [256, 17],
        ),
        (
            "struct B { unsigned v : 2; };",
            "int rows = (n - 2 + 7) / 8; B b{3}; b.v++; if (b.v == 0) rows /= 2;",
            [128, 8],
        ),
    ]);
}

#[test]
fn lambdas_copy_what_they_say() {
    check(&[
        (
            "",
            "int rows = (n - 2 + 7) / 8; int k = 1; auto f = [k]() mutable { k *= 2; return k; }; f(); f(); rows /= k;",
            [256, 17],
        ),
        ("", "int rows = (n - 2 + 7) / 8; int k = 1; auto f = [k] { return k; }; k = 2; rows /= f();", [256, 17]),
        ("", "int rows = (n - 2 + 7) / 8; int k = 1; auto f = [=] { return k; }; k = 2; rows /= f();", [256, 17]),
        ("", "int rows = (n - 2 + 7) / 8; int k = 1; auto f = [&] { return k; }; k = 2; rows /= f();", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int k = 1; auto f = [&k] { k = 2; }; f(); rows /= k;", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int k = 1; auto f = [=, &k] { k = 2; }; f(); rows /= k;", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int k = 1; auto f = [&q = k] { q = 2; }; f(); rows /= k;", [128, 8]),
    ]);
}

#[test]
fn a_method_is_that_of_the_struct_that_is_written_unless_it_is_virtual() {
    check(&[
        (
            "struct A { int get(int) { return 2; } }; struct B : A { int get(int) { return 1; } };",
            "int rows = (n - 2 + 7) / 8; B b; rows /= b.get(0);",
            [256, 17],
        ),
        (
            "struct A { int get(int) { return 2; } }; struct B : A { int get(int) { return 1; } };",
            "int rows = (n - 2 + 7) / 8; B b; A& q = b; rows /= q.get(0);",
            [128, 8],
        ),
        (
            "struct A { virtual int get(int) { return 2; } }; struct B : A { int get(int) override { return 1; } };",
            "int rows = (n - 2 + 7) / 8; B b; A& q = b; rows /= q.get(0);",
            [256, 17],
        ),
        (
            "struct A { virtual int get() { return 2; } int f() { return get(); } }; struct B : A { int get() override { return 1; } };",
            "int rows = (n - 2 + 7) / 8; B b; rows /= b.f();",
            [256, 17],
        ),
        (
            "struct A { int get() { return 2; } int f() { return get(); } }; struct B : A { int get() { return 1; } };",
            "int rows = (n - 2 + 7) / 8; B b; rows /= b.f();",
            [128, 8],
        ),
        (
            "struct A { virtual int get() { return 2; } virtual ~A() {} }; struct B : A { int get() override { return 1; } };",
            "int rows = (n - 2 + 7) / 8; A* q = new B; rows /= q->get();",
            [256, 17],
        ),
        (
            "struct A { virtual int get() { return 2; } }; struct B : A { int get() override { return 1; } }; int f(A q) { return q.get(); }",
            "int rows = (n - 2 + 7) / 8; B b; rows /= f(b);",
            [128, 8],
        ),
        (
            "int g = 1; struct B { B() {} B(const B&) { g *= 2; } };",
            "int rows = (n - 2 + 7) / 8; B b; B c = b; rows /= g;",
            [128, 8],
        ),
        (
            "struct B { int v; B(int v) : v(v) {} B(const B& o) : v(o.v * 2) {} };",
            "int rows = (n - 2 + 7) / 8; B b(1); B c(b); rows /= c.v;",
            [128, 8],
        ),
        (
            "struct B { int v; B& operator=(int k) { v = 2 * k; return *this; } };",
            "int rows = (n - 2 + 7) / 8; B b{1}; b = 1; rows /= b.v;",
            [128, 8],
        ),
        (
            "struct B { int v; B& operator=(const B& o) { v = 2 * o.v; return *this; } };",
            "int rows = (n - 2 + 7) / 8; B b{1}, c{1}; b = c; rows /= b.v;",
            [128, 8],
        ),
    ]);
}

#[test]
fn lists_in_braces_leave_zeros() {
    check(&[
        ("", "int rows = (n - 2 + 7) / 8; int q[3] = {1}; if (q[1] == 0) rows /= 2;", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int q[3] = {}; rows += q[2];", [256, 17]),
        (
            "",
            "int rows = (n - 2 + 7) / 8; int q[4] = {8}; rows = (n - 2 + q[0] - 1 + q[3]) / (q[0] + q[1]);",
            [256, 17],
        ),
        ("", "int rows = (n - 2 + 7) / 8; int q[100] = {1}; rows += q[99];", [256, 17]),
        ("", "int rows = (n - 2 + 7) / 8; int q[2][2] = {{1}, {2}}; rows += q[0][1]; rows /= q[1][0];", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int q[2][2] = {1, 2, 3, 4}; rows /= q[1][0];", [85, 5]),
        ("struct P { int x, y; };", "int rows = (n - 2 + 7) / 8; P q[2] = {{1}}; rows += q[0].y + q[1].x;", [256, 17]),
        ("struct P { int x, y = 2; };", "int rows = (n - 2 + 7) / 8; P q[2] = {{1}}; rows /= q[1].y;", [128, 8]),
        ("int q[3]; int w[4] = {2};", "int rows = (n - 2 + 7) / 8; rows += q[2] + w[3]; rows /= w[0];", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int t[] = {32, 8}; rows /= sizeof(t) / sizeof(t[0]);", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int t[2][3] = {}; rows /= sizeof(t) / sizeof(t[0]);", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int t[100]; rows = (n + 5) / (sizeof(t) / 50);", [256, 17]),
        ("", "int t[2][2] = {{1, 2}, {3, 4}}; t[1][1] = 8; int rows = (n + 5) / t[1][1];", [256, 17]),
        (
            "void f(int (*t)[2]) { t[1][1] = 8; }",
            "int t[2][2] = {{1, 2}, {3, 4}}; f(t); int rows = (n + 5) / t[1][1];",
            [256, 17],
        ),
        ("", "int t[2][2] = {{1, 2}, {3, 4}}; int* p = t[1]; p[1] = 8; int rows = (n + 5) / t[1][1];", [256, 17]),
        ("struct P { int a[2]; int b; };", "P p = {{1, 2}, 8}; int rows = (n + 5) / p.b;", [256, 17]),
        ("", "int t[3] = {}; t[1] += 8; int rows = (n + 5) / t[1] + t[2];", [256, 17]),
        (
            "struct T { int a; int b; };",
            "int rows = (n - 2 + 7) / 8; T t{}; rows += t.b; T q = {1}; rows += q.b; T w = T(); rows += w.a;",
            [256, 17],
        ),
    ]);
}

#[test]
fn members_may_begin_with_what_others_are() {
    check(&[
        (
            "struct T { int x = 32, y = 8; };",
            "int rows = (n - 2 + 7) / 8; T t; rows = (n - 2 + t.y - 1) / t.y;",
            [256, 17],
        ),
        (
            "struct T { int x = 32; int y = x / 4; };",
            "int rows = (n - 2 + 7) / 8; T t; rows = (n - 2 + t.y - 1) / t.y;",
            [256, 17],
        ),
        (
            "struct T { int x = 32; int y = x / 4; };",
            "int rows = (n - 2 + 7) / 8; T t{64}; rows = (n - 2 + t.y - 1) / t.y;",
            [128, 9],
        ),
        (
            "struct T { int x{32}, y{8}; dim3 b{32, 8}; };",
            "int rows = (n - 2 + 7) / 8; T t; rows = (n - 2 + t.b.y - 1) / t.y;",
            [256, 17],
        ),
        ("struct T { int n; int rows = (n + 5) / 8; };", "T t{n}; int rows = t.rows;", [256, 17]),
        (
            "struct T { int n; int rows = count(); int count() { return (n + 5) / 8; } };",
            "T t{n}; int rows = t.rows;",
            [256, 17],
        ),
        ("struct T { int n, rows; T(int m) : rows((n + 5) / 8), n(m) {} };", "T t(n); int rows = t.rows;", [256, 17]),
        (
            "struct T { int v[3] = {1, 2}; };",
            "int rows = (n - 2 + 7) / 8; T t; rows /= t.v[1]; rows += t.v[2];",
            [128, 8],
        ),
        (
            "struct T { int a = 1; int b = 2; int c = 3; };",
            "int rows = (n - 2 + 7) / 8; T t{.b = 4}; rows /= t.a * t.b;",
            [64, 4],
        ),
    ]);
}

#[test]
fn packs_and_lists_are_followed() {
    check(&[
        (
            "template <class... T> int count(T... t) { return sizeof...(t); }",
            "int rows = (n - 2 + 7) / 8; rows /= count(1, 2);",
            [128, 8],
        ),
        (
            "template <class... T> int count(T... t) { return sizeof...(T); }",
            "int rows = (n - 2 + 7) / 8; rows /= count(1, 2.0f, n, rows);",
            [64, 4],
        ),
        (
            "template <int... N> int count() { return sizeof...(N); }",
            "int rows = (n - 2 + 7) / 8; rows /= count<5, 6>();",
            [128, 8],
        ),
        (
            "template <class... T> int sum(T... t) { return (t + ...); }",
            "int rows = (n - 2 + 7) / 8; rows /= sum(1, 1);",
            [128, 8],
        ),
        (
            "template <class... T> int sum(T... t) { return (0 + ... + t); }",
            "int rows = (n - 2 + 7) / 8; rows /= sum(1, 1, 2);",
            [64, 4],
        ),
        (
            "template <class... T> void each(int& k, T... t) { ((k += t), ...); }",
            "int rows = (n - 2 + 7) / 8; int k = 0; each(k, 1, 1); rows /= k;",
            [128, 8],
        ),
        (
            "int sum() { return 0; } template <class T, class... U> int sum(T t, U... u) { return t + sum(u...); }",
            "int rows = (n - 2 + 7) / 8; rows /= sum(1, 1, 2);",
            [64, 4],
        ),
        (
            "template <class T> T mx(T a) { return a; } template <class T, class... U> T mx(T a, U... u) { T b = mx(u...); return a > b ? a : b; }",
            "int rows = (n - 2 + 7) / 8; rows /= mx(1, 2, 1);",
            [128, 8],
        ),
        (
            "template <class... T> int last(T... t) { int q[] = {t...}; return q[sizeof...(t) - 1]; }",
            "int rows = (n - 2 + 7) / 8; rows /= last(1, 1, 2);",
            [128, 8],
        ),
        ("", "int rows = (n - 2 + 7) / 8; rows /= std::max({1, 2, 1});", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; rows /= std::min({4, 2, 3});", [128, 8]),
        ("", "int rows = (n - 2 + 7) / 8; int q = 2; rows /= std::max({1, q, q + 1});", [85, 5]),
        (
            "template <class T> T product(T t) { return t; } template <class T, class... R> T product(T t, R... rest) { return t * product(rest...); }",
            "int rows = (n - 2 + 7) / product(2, 2, 2);",
            [256, 17],
        ),
        (
            "template <class... T> int product(T... t) { return (t * ... * 1); }",
            "int rows = (n - 2 + 7) / product(2, 4);",
            [256, 17],
        ),
        (
            "template <class... T> constexpr int product(T... t) { return (... * t); }",
            "int rows = (n - 2 + 7) / product(2, 4);",
            [256, 17],
        ),
        (
            "template <class... T> int most(T... t) { int m = 0; ((m = t > m ? t : m), ...); return m; }",
            "int rows = (n - 2 + 7) / most(2, 8, 4);",
            [256, 17],
        ),
        (
            "template <class... T> bool all(T... t) { return (t && ...); }",
            "int rows = all(n, true, 1) ? (n - 2 + 7) / 8 : 1;",
            [256, 17],
        ),
        (
            "template <int... N> struct Dims { static constexpr int v[] = {N...}; };",
            "int rows = (n - 2 + 7) / Dims<32, 8>::v[1];",
            [256, 17],
        ),
        (
            "template <class... T> int sum(T... t) { int s = 0; int unused[] = {(s += t, 0)...}; (void)unused; return s; }",
            "int rows = (n - 2 + 7) / sum(4, 4);",
            [256, 17],
        ),
        (
            "template <class... T> int last(T... t) { int q[] = {t * 2 ...}; return q[0]; }",
            "int rows = (n - 2 + 7) / last(4, 1);",
            [256, 17],
        ),
    ]);
}

#[test]
fn operators_of_structs_are_followed() {
    check(&[
        (
            "struct B { int v; B operator+(int k) const { return {v * k}; } };",
            "int rows = (n - 2 + 7) / 8; B b{1}; b = b + 2; rows /= b.v;",
            [128, 8],
        ),
        (
            "struct B { int v; }; B operator+(B b, int k) { return {b.v * k}; }",
            "int rows = (n - 2 + 7) / 8; B b{1}; b = b + 2; rows /= b.v;",
            [128, 8],
        ),
        (
            "struct B { int v; bool operator==(const B& o) const { return true; } };",
            "int rows = (n - 2 + 7) / 8; B b{1}, c{2}; if (b == c) rows /= 2;",
            [128, 8],
        ),
    ]);
}

#[test]
fn a_long_vector_is_known_by_its_length() {
    check(&[
        (
            "",
            "std::vector<std::vector<float>> u(n, std::vector<float>(n)); int rows = (u.size() - 2 + 7) / 8;",
            [256, 17],
        ),
        ("", "std::vector<int> t(8); int rows = (n - 2 + t.size() - 1) / t.size();", [256, 17]),
        ("", "auto t = std::vector<int>(8); int rows = (n - 2 + t.size() - 1) / t.size();", [256, 17]),
        ("", "std::vector<float> t(n); t.resize(n / 2); int rows = (t.size() + 4) / 8;", [128, 8]),
        (
            "void cut(std::vector<float>& t) { t.resize(t.size() / 2); }",
            "std::vector<float> t(n); cut(t); int rows = (t.size() + 9) / 8;",
            [129, 9],
        ),
        (
            "void cut(std::vector<float> t) { t.resize(t.size() / 2); }",
            "std::vector<float> t(n); cut(t); int rows = (t.size() + 5) / 8;",
            [256, 17],
        ),
        (
            "",
            "std::vector<std::vector<float>> t(n); for (auto& row : t) row.resize(n); int rows = (t.size() + 5) / 8;",
            [256, 17],
        ),
        ("", "std::vector<float> t(n), u(n / 2); std::swap(t, u); int rows = (u.size() + 5) / 8;", [256, 17]),
        ("", "std::vector<float> t(n), u; u = t; int rows = (u.size() + 5) / 8;", [256, 17]),
        ("", "std::vector<float> t(n); auto u = t; u.resize(300); int rows = (t.size() + 5) / 8;", [256, 17]),
        ("", "int rows = 1; if (int q = (n + 5) / 8) rows = q;", [256, 17]),
    ]);
}

#[test]
fn what_cannot_be_told_is_refused() {
    let cases = [
        (
            "template <class T> int tile(T) { return 4; } template <> int tile(float) { return 8; }",
            "int rows = (n - 2 + 7) / tile(1.f);",
        ),
        (
            "template <class T> struct Tile { static constexpr int y = 4; }; template <class T> struct Tile<T*> { static constexpr int y = 8; };",
            "int rows = (n - 2 + 7) / Tile<float*>::y;",
        ),
        (
            "template <class T, int N> struct Tile { static constexpr int y = 4; }; template <int N> struct Tile<float, N> { static constexpr int y = N; };",
            "int rows = (n - 2 + 7) / Tile<float, 8>::y;",
        ),
        (
            "template <class T> constexpr int kTile = 4; template <> constexpr int kTile<float> = 8;",
            "int rows = (n - 2 + 7) / kTile<float>;",
        ),
        (
            "template <class T> struct S { int f(int n) { return 4; } }; template <> int S<float>::f(int n) { return 8; }",
            "S<float> s; int rows = (n + 5) / s.f(n);",
        ),
        (
            "struct S { int rows(int n) { return (n + 5) / 8; } int rows(int n) const { return (n + 5) / 16; } };",
            "const S s{}; int rows = s.rows(n);",
        ),
        ("union U { int a; unsigned char c[4]; };", "int rows = (n - 2 + 7) / 8; U u; u.a = 258; rows /= u.c[0];"),
        ("union U { int a; int b; };", "int rows = (n - 2 + 7) / 8; U u; u.a = 2; u.b = 1; rows /= u.a;"),
        ("", "int rows = (n - 2 + 7) / 8; auto next = [k = 0]() mutable { return ++k; }; next(); rows /= next();"),
        (
            "",
            "int rows = (n - 2 + 7) / 8; std::function<int()> f = [k = 1]() mutable { return k++; }; f(); rows /= f();",
        ),
        (
            "struct A { int v = 1; int get() { return v; } }; struct B : A { int v = 2; };",
            "int rows = (n - 2 + 7) / 8; B b; rows /= b.get();",
        ),
        (
            "struct A { int v = 2; }; struct B : A { int v = 1; };",
            "int rows = (n - 2 + 7) / 8; B b; A& q = b; rows /= q.v;",
        ),
        (
            "struct A { int v = 2; int get() const { return v; } }; struct B : A { int v = 1; int get() const { return v; } };",
            "int rows = (n - 2 + 7) / 8; B b; A q = b; rows /= q.get();",
        ),
        (
            "template <int K> int f(int n) { static int c = 0; c++; return (n + 5) / 8 / c; }",
            "f<1>(n); int rows = f<2>(n);",
        ),
        (
            "int g = 1; struct B { ~B() { g *= 2; } };",
            "int rows = (n - 2 + 7) / 8; { auto t = std::make_unique<B>(); } rows /= g;",
        ),
        ("int g = 1; struct B { ~B() { g *= 2; } };", "int rows = (n - 2 + 7) / 8; B* t = new B; delete t; rows /= g;"),
        (
            "int g = 1; struct B { ~B() { g *= 2; } };",
            "int rows = (n - 2 + 7) / 8; { std::vector<B> t(2); } rows /= g;",
        ),
        ("", "int t[4] = {1, 2}; memset(t, 0, sizeof t); int rows = (n + 5) / (8 + t[0]);"),
        ("struct P { int a[2]; int b; };", "P p = {1, 2, 8}; int rows = (n + 5) / p.b;"),
        ("struct P { int a, b; }; struct Q { P p; int c; };", "Q q = {1, 2, 8}; int rows = (n + 5) / q.c;"),
        (
            "",
            "std::vector<std::vector<float>> t(n, std::vector<float>(n)); t[0].resize(100); int rows = (t[0].size() + 5) / 8;",
        ),
        ("", "std::vector<float> t(n); auto u = std::move(t); int rows = (t.size() + u.size() + 5) / 8;"),
        ("", "std::vector<int> t(100, 8); t[5] = 4; int rows = (n - 3 + t[5]) / t[5];"),
        ("", "std::vector<int> t(100, 8); t.front() = 4; int rows = (n - 3 + t[0]) / t[0];"),
        ("", "std::vector<int> t(100, 8); for (int& x : t) x = 4; int rows = (n - 3 + t[0]) / t[0];"),
        ("", "std::vector<int> t(100, 8); for (int i = 0; i < 100; i++) t[i] = 4; int rows = (n - 3 + 8) / t[0];"),
        ("", "std::vector<int> t(10, 8); std::fill(t.begin(), t.end(), 4); int rows = (n - 3 + 8) / t[3];"),
    ];
    for (before, body) in cases {
        let found = rows(before, body);
        assert!(matches!(found, Err(LaunchFault::CannotEvaluate { .. })), "{found:?}: {before} {body}");
    }
}
