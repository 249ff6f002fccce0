//! Launches whose sizes go through references, pointers, objects, tables and lambdas; and those that must be refused.

use super::{Geometry, LaunchFault, LaunchSource, Submission, find_kernel, find_launch, parse};

const KERNEL: &str = "__global__ void twoStep(const float* in, float* out, int n, float r) { out[0] = in[0]; }\n";

type Case = (&'static str, &'static str, &'static str);

fn launch((_, before, statements): Case) -> Result<super::Launch, LaunchFault> {
    let main = format!("int main(int argc, char** argv) {{ float *a, *b; float r = 0.2f; {statements} }}\n");
    let program = parse(&Submission::from_text("test", &format!("{KERNEL}{before}{main}")));
    let kernel = find_kernel(&program).expect("a kernel");
    find_launch(&program, &kernel)
}

/// Blocks of 32 x 8 threads for tiles of 32 x 8 cells, for any n.
fn is_usual(case: Case) {
    let name = case.0;
    let launch = launch(case).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    assert_eq!(launch.source, LaunchSource::LaunchStatement, "{name}");
    for (n, grid) in [(2048, [64, 256, 1]), (131, [5, 17, 1])] {
        let expected = Geometry { grid, block: [32, 8, 1], shared: 0 };
        assert_eq!(launch.geometry(n), Ok(expected), "{name} at n = {n}: {}", case.2);
    }
}

fn are_usual(cases: &[Case]) {
    cases.iter().copied().for_each(is_usual);
}

#[test]
fn sizes_set_through_references_and_pointers_are_followed() {
    are_usual(&[
        (
            "a reference",
            "",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); dim3& t = block; t.x = 32; t.y = 8; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a reference to a reference",
            "",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); auto& t = block; auto& s = t; s = dim3(32, 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a pointer",
            "",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); dim3* p = &block; p->x = 32; (*p).y = 8; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a pointer set anew",
            "",
            "int n=2048; dim3 block, other; dim3 grid((n + 29) / 32, (n + 5) / 8); dim3* p = &other; p = &block; *p = dim3(32, 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a pointer in a struct",
            "struct V { dim3* b; };\n",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); V v{&block}; v.b->x = 32; v.b->y = 8; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a reference in a struct",
            "struct V { dim3& b; V(dim3& t) : b(t) {} void set() { b = dim3(32, 8); } };\n",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); V v(block); v.set(); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a copy is no alias",
            "",
            "int n=2048; dim3 block(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); auto t = block; t.x = 7; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a pointer into an array",
            "",
            "int n=2048; int s[2] = {1, 1}; int* p = s; p[0] = 32; p[1] = 8; dim3 block(s[0], s[1]); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "pointers to members",
            "",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); unsigned* x = &block.x; *x = 32; unsigned& y = block.y; y = 8; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "one of two by a known condition",
            "",
            "int n=2048; dim3 block, other; dim3 grid((n + 29) / 32, (n + 5) / 8); dim3& t = argc > 1 ? other : block; t = dim3(32, 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a helper with a reference",
            "void shape(dim3& t) { t.x = 32; t.y = 8; }\n",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); shape(block); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a helper with a pointer",
            "void shape(dim3* t) { t->x = 32; t->y = 8; }\nvoid outer(dim3* t) { shape(t); }\n",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); dim3* p = &block; outer(p); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a helper that returns a reference",
            "dim3& pick(dim3& a, dim3& b) { return b; }\n",
            "int n=2048; dim3 block, o; dim3 grid((n + 29) / 32, (n + 5) / 8); pick(o, block) = dim3(32, 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a helper in a loop",
            "void grow(dim3& t) { t.x *= 2; }\n",
            "int n=2048; dim3 block(1, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); for (int i = 0; i < 5; ++i) grow(block); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a method that sets something else",
            "struct C { dim3 block{32, 8}; int n = 2048; void wide() { block.x = 64; } void other() { n = 3; } };\n",
            "C c; if (atoi(argv[1])) c.other(); int n = c.n; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, c.block>>>(a, b, n, r);",
        ),
        (
            "a builder",
            "struct L { dim3 b, t; L& block(int x, int y) { b = dim3(x, y); return *this; } L& tile(int x, int y) { t = dim3(x, y); return *this; } void run(const float* a, float* o, int n, float r) { twoStep<<<dim3((n - 3 + t.x) / t.x, (n - 3 + t.y) / t.y), b>>>(a, o, n, r); } };\n",
            "L().block(32, 8).tile(32, 8).run(a, b, 2048, r);",
        ),
        (
            "a builder that returns copies",
            "struct L { dim3 b, t; L block(int x, int y) { b = dim3(x, y); return *this; } L tile(int x, int y) { t = dim3(x, y); return *this; } };\n",
            "int n = 2048; auto l = L().block(32, 8).tile(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, l.b>>>(a, b, n, r);",
        ),
        (
            "a builder of pointers",
            "struct L { dim3 b; L* block(int x, int y) { b = dim3(x, y); return this; } };\n",
            "int n = 2048; L* l = new L(); l->block(1, 1)->block(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, l->b>>>(a, b, n, r);",
        ),
        (
            "two pointers to one object",
            "struct L { dim3 b; };\n",
            "int n = 2048; L* l = new L(); auto* k = l; k->b = dim3(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, l->b>>>(a, b, n, r);",
        ),
        (
            "two shared pointers",
            "struct L { dim3 b; };\n",
            "int n = 2048; auto l = std::make_shared<L>(); auto k = l; k->b = dim3(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, l->b>>>(a, b, n, r);",
        ),
        (
            "get of a unique pointer",
            "struct L { dim3 b; };\nvoid set(L* l) { l->b = dim3(32, 8); }\nvoid set2(L& l) { l.b.x = 32; }\n",
            "int n = 2048; std::unique_ptr<L> l(new L); set(l.get()); set2(*l); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, l->b>>>(a, b, n, r);",
        ),
        (
            "a lambda called elsewhere",
            "template <class F> void apply(F f) { int block = 3; f(32, 8); }\n",
            "int n = 2048; dim3 block; auto set = [&](int x, int y) { block = dim3(x, y); }; apply(set); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a capture by reference",
            "",
            "int n = 2048; dim3 block; auto set = [&t = block] { t.x = 32; t.y = 8; }; set(); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a capture by value",
            "",
            "int n = 2048; int bx = 32; auto f = [bx] { return bx; }; bx = 64; dim3 block(f(), 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a lambda that changes its copy",
            "",
            "int n = 2048; dim3 block(32, 8); auto f = [block]() mutable { block.x = 1; }; f(); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a name in an inner scope",
            "",
            "int n = 2048; int bx = 32; auto f = [&] { return bx; }; dim3 block; { int bx = 7; block = dim3(f(), 8); } dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "items by reference",
            "",
            "int n = 2048; dim3 s[2]; for (auto& t : s) { t.x = 32; t.y = 8; } dim3 block = s[1]; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "items by value",
            "",
            "int n = 2048; std::vector<dim3> s{dim3(32, 8)}; for (auto t : s) { t.x = 1; } dim3 block = s[0]; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "names bound by reference",
            "struct P { dim3 g, t; };\n",
            "int n = 2048; P p; auto& [x, y] = p; y = dim3(32, 8); x = dim3((n + 29) / 32, (n + 5) / 8); twoStep<<<p.g, p.t>>>(a, b, n, r);",
        ),
        (
            "objects by value",
            "struct I { dim3 b; };\nvoid f(I i) { i.b = dim3(1, 1); }\n",
            "int n = 2048; I o{dim3(32, 8)}; f(o); I p = o; p.b.x = 1; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, o.b>>>(a, b, n, r);",
        ),
        (
            "a reference to an inner object",
            "struct I { dim3 b; };\nstruct O { I i; I& inner() { return i; } };\n",
            "int n = 2048; O o; o.inner().b = dim3(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, o.i.b>>>(a, b, n, r);",
        ),
        (
            "a global object",
            "dim3 block;\nvoid set(int x) { block.x = x; block.y = 8; }\n",
            "int n = 2048; set(32); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a pointer to a global object",
            "dim3 block;\ndim3* p = &block;\n",
            "int n = 2048; p->x = 32; p->y = 8; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a static member",
            "struct C { static int bx; };\nint C::bx = 1;\nvoid set() { C::bx = 32; }\n",
            "int n = 2048; set(); dim3 block(C::bx, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "an operator that returns a reference",
            "struct S { unsigned v[2]; unsigned& operator[](int i) { return v[i]; } };\n",
            "int n = 2048; S s; s[0] = 32; s[1] = 8; dim3 block(s.v[0], s[1]); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "two setters of one name",
            "struct P { dim3 b; void set(int x) { b = dim3(x, x); } void set(dim3 t) { b = t; } };\n",
            "int n = 2048; P p; p.set(dim3(32, 8)); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, p.b>>>(a, b, n, r);",
        ),
        (
            "an optional",
            "",
            "std::optional<dim3> o; int n = 2048; o = dim3(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, *o>>>(a, b, n, r);",
        ),
        (
            "a C style object",
            "struct S { float *a, *b; int n; dim3 grid, block; int t; };\nvoid init(S* s, int n) { s->n = n; s->block = dim3(32, 8); s->grid = dim3((n + 29) / 32, (n + 5) / 8); cudaMalloc(&s->a, n * n * 4); }\nvoid step(S* s) { twoStep<<<s->grid, s->block>>>(s->a, s->b, s->n, 0.2f); float* t = s->a; s->a = s->b; s->b = t; s->t += 2; }\n",
            "S s; init(&s, 2048); while (s.t < 1000) step(&s);",
        ),
        (
            "a method that swaps",
            "struct S { dim3 grid, block; int n; float *a, *b; void step() { twoStep<<<grid, block>>>(a, b, n, 0.2f); std::swap(a, b); } };\n",
            "S s; s.n = 2048; s.block = dim3(32, 8); s.grid = dim3((s.n + 29) / 32, (s.n + 5) / 8); for (int i = 0; i < 3; ++i) s.step();",
        ),
        (
            "objects swapped by a helper",
            "struct Grid { float* d; int n; };\nvoid swapGrids(Grid& x, Grid& y) { std::swap(x, y); }\n",
            "Grid x{a, 2048}, y{b, 2048}; dim3 block(32, 8); dim3 grid((x.n + 29) / 32, (x.n + 5) / 8); for (int s = 0; s < 9; s += 2) { twoStep<<<grid, block>>>(x.d, y.d, x.n, r); swapGrids(x, y); }",
        ),
        (
            "n through a pointer",
            "void size(int* n) { *n = 2048; }\n",
            "int n; size(&n); dim3 block(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
    ]);
}

#[test]
fn launches_in_objects_tables_and_lambdas_are_followed() {
    are_usual(&[
        (
            "a vector with a length",
            "",
            "int n = 2048; std::vector<int> s(2, 8); s[0] = 32; dim3 block(s[0], s[1]); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "push_back and front",
            "",
            "int n = 2048; std::vector<dim3> s; s.emplace_back(32, 8); s.push_back({16, 16}); dim3 block = s.front(); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "an array and back",
            "",
            "int n = 2048; std::array<unsigned, 2> s{32, 8}; dim3 block(s[0], s.back()); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "std::div",
            "",
            "int n = 2048; auto q = std::div(n - 2, 32); dim3 grid(q.quot + (q.rem > 0), (n + 5) / 8), block(32, 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "an object that is called",
            "struct Step { dim3 block; Step(int x, int y) : block(x, y) {} void operator()(const float* a, float* b, int n, float r) const { twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), block>>>(a, b, n, r); } };\n",
            "Step step{32, 8}; int n = 2048; for (int i = 0; i < 500; ++i) { step(a, b, n, r); std::swap(a, b); }",
        ),
        (
            "an object handed over and called",
            "struct Step { int n; void operator()() const { twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(0, 0, n, 0.2f); } };\ntemplate <class F> float timeIt(F&& f, int k) { f(); for (int i = 0; i < k; ++i) f(); return 0; }\n",
            "timeIt(Step{2048}, 10);",
        ),
        (
            "an object called where it is made",
            "struct Step { void operator()(const float* a, float* b, int n, float r) const { twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r); } };\n",
            "Step{}(a, b, 2048, r);",
        ),
        (
            "lambdas outside functions",
            "auto cdiv = [](int a, int b) { return (a + b - 1) / b; };\nconstexpr auto launch = [](const float* a, float* b, int n, float r) { dim3 t(32, 8); twoStep<<<dim3(cdiv(n - 2, t.x), cdiv(n - 2, t.y)), t>>>(a, b, n, r); };\n",
            "launch(a, b, 2048, r);",
        ),
        (
            "a table with one launch",
            "__global__ void other(const float* in, float* out, int n, float r, int z) {}\nstruct E { const char* name; void (*f)(const float*, float*, int, float); dim3 block; };\n",
            "int n = 2048; E table[] = {{\"two\", twoStep, dim3(32, 8)}}; for (auto& e : table) { e.f<<<dim3((n + 29) / 32, (n + 5) / 8), e.block>>>(a, b, n, r); }",
        ),
        (
            "a table with an index",
            "__global__ void copyGrid(const float* in, float* out, int n, float r) {}\nstruct E { const char* name; void (*f)(const float*, float*, int, float); dim3 block; };\nstatic const E table[] = {{\"copy\", copyGrid, {16, 16}}, {\"two\", twoStep, {32, 8}}};\n",
            "int n = 2048; for (int i = 0; i < 2; ++i) { table[i].f<<<dim3((n + 29) / 32, (n + 5) / 8), table[i].block>>>(a, b, n, r); }",
        ),
        (
            "a table of bound names",
            "__global__ void copyGrid(const float* in, float* out, int n, float r) {}\nstruct E { const char* name; void (*f)(const float*, float*, int, float); dim3 block; };\n",
            "int n = 2048; std::vector<E> table = {{\"copy\", copyGrid, {16, 16}}, {\"two\", &twoStep, {32, 8}}}; for (const auto& [name, f, block] : table) f<<<dim3((n + 29) / 32, (n + 5) / 8), block>>>(a, b, n, r);",
        ),
        (
            "a table of lambdas",
            "struct E { const char* name; std::function<void(const float*, float*, int, float)> f; };\n",
            "int n = 2048; std::vector<E> t{{\"two\", [](const float* i, float* o, int n, float r) { twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(i, o, n, r); }}}; for (auto& e : t) e.f(a, b, n, r);",
        ),
        (
            "members of a base",
            "struct Base { int n; dim3 block{32, 8}; Base(int m) : n(m) {} dim3 grid() const { return dim3((n + 29) / block.x, (n + 5) / block.y); } };\nstruct Two : Base { using Base::Base; void step() { twoStep<<<grid(), block>>>(0, 0, n, 0.2f); } };\n",
            "Two t(2048); t.step();",
        ),
        (
            "a virtual function",
            "struct Base { virtual dim3 block() const { return dim3(1, 1); } virtual ~Base() {} void go(int n) { dim3 t = block(); twoStep<<<dim3((n - 3 + t.x) / t.x, (n - 3 + t.y) / t.y), t>>>(0, 0, n, 0.2f); } };\nstruct Two : public Base { dim3 block() const override { return dim3(32, 8); } };\n",
            "Two t; t.go(2048);",
        ),
        (
            "a base that knows its descendant",
            "template <class D> struct Base { void go(int n) { auto& d = static_cast<D&>(*this); twoStep<<<d.grid(n), d.block>>>(0, 0, n, 0.2f); } };\nstruct Two : Base<Two> { dim3 block{32, 8}; dim3 grid(int n) { return dim3((n + 29) / 32, (n + 5) / 8); } };\n",
            "Two t; t.go(2048);",
        ),
        (
            "getopt",
            "static struct { int n; int tx; } conf = {2048, 32};\n",
            "int c; while ((c = getopt(argc, argv, \"n:\")) != -1) { switch (c) { case 'n': conf.n = atoi(optarg); break; default: return 1; } } dim3 grid((conf.n + 29) / conf.tx, (conf.n + 5) / 8); twoStep<<<grid, dim3(conf.tx, 8)>>>(a, b, conf.n, r);",
        ),
        (
            "a parser of arguments",
            "struct Conf { int n, steps; };\nstatic void parse(int argc, char** argv, Conf* c) { for (int i = 1; i < argc; ++i) { if (!strcmp(argv[i], \"-n\")) c->n = atoi(argv[++i]); } }\n",
            "Conf c = {2048, 1000}; parse(argc, argv, &c); int n = c.n; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, dim3(32, 8)>>>(a, b, c.n, r);",
        ),
        (
            "one configuration for all launches",
            "",
            "int n=2048; cudaLaunchConfig_t c = {}; c.gridDim = dim3((n + 29) / 32, (n + 5) / 8); c.blockDim = dim3(32, 8); for (int i = 0; i < 500; ++i) { cudaLaunchKernelEx(&c, twoStep, (const float*)a, b, n, r); std::swap(a, b); }",
        ),
        (
            "a constructor template",
            "struct S { dim3 block; template <class T> S(T x, T y) : block(x, y) {} };\n",
            "int n = 2048; S s(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, s.block>>>(a, b, n, r);",
        ),
        (
            "a conversion to dim3",
            "struct T { int x, y; operator dim3() const { return dim3(x, y); } };\n",
            "int n = 2048; T t{32, 8}; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, t>>>(a, b, n, r);",
        ),
        (
            "an object that computes",
            "struct S { int x; int operator()(int k) const { return x * k; } };\n",
            "int n = 2048; S s{16}; dim3 block(s(2), 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a default case",
            "",
            "int n = 2048; int which = 7; dim3 block; switch (which) { case 1: block = dim3(16, 16); twoStep<<<n, block>>>(a, b, n, r); break; default: block = dim3(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r); }",
        ),
        (
            "falling through",
            "",
            "int n = 2048; int which = 1; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); switch (which) { case 1: block.x = 32; case 2: block.y = 8; twoStep<<<grid, block>>>(a, b, n, r); break; default: twoStep<<<1, 1>>>(a, b, n, r); }",
        ),
        (
            "a label",
            "",
            "int n = 2048; dim3 block(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); again: twoStep<<<grid, block>>>(a, b, n, r); if (--argc > 0) goto again;",
        ),
        (
            "a size from the command line",
            "struct Cfg { int n = 2048; int bx = 32, by = 8; };\nCfg parse(int argc, char** argv) { Cfg c; for (int i = 1; i < argc; i++) { std::string s = argv[i]; if (s == \"-b\") c.bx = std::stoi(argv[++i]); } return c; }\n",
            "Cfg c = parse(argc, argv); dim3 block(c.bx, c.by), grid((c.n + 29) / c.bx, (c.n + 5) / c.by); twoStep<<<grid, block>>>(a, b, c.n, r);",
        ),
    ]);
}

#[test]
fn rows_and_columns_of_one_length_both_stand_for_n() {
    are_usual(&[
        (
            "two macros",
            "#define NX 2048\n#define NY 2048\n",
            "dim3 grid((NX + 29) / 32, (NY + 5) / 8); twoStep<<<grid, dim3(32, 8)>>>(a, b, NX, r);",
        ),
        (
            "two constants",
            "",
            "const int nx = 2048, ny = 2048; dim3 grid((nx + 29) / 32, (ny + 5) / 8); twoStep<<<grid, dim3(32, 8)>>>(a, b, nx, r);",
        ),
        (
            "width and height",
            "constexpr int kWidth = 2048;\nconstexpr int kHeight = 2048;\n",
            "dim3 grid((kWidth + 29) / 32, (kHeight + 5) / 8); twoStep<<<grid, dim3(32, 8)>>>(a, b, kHeight, r);",
        ),
        (
            "two parameters",
            "void run(int nx, int ny) { float* a; dim3 grid((nx + 29) / 32, (ny + 5) / 8); twoStep<<<grid, dim3(32, 8)>>>(a, a, ny, 0.2f); }\n#define WIDTH 2048\n#define HEIGHT 2048\n",
            "run(WIDTH, HEIGHT);",
        ),
        (
            "two members",
            "struct P { int nx = 2048; int ny = 2048; };\n",
            "P p; dim3 grid((p.nx + 29) / 32, (p.ny + 5) / 8); twoStep<<<grid, dim3(32, 8)>>>(a, b, p.nx, r);",
        ),
        (
            "two copies",
            "",
            "int N = 2048; int nx = N, ny = N; dim3 grid((nx + 29) / 32, (ny + 5) / 8); twoStep<<<grid, dim3(32, 8)>>>(a, b, nx, r);",
        ),
    ]);
}

#[test]
fn what_changes_out_of_sight_is_unknown_rather_than_wrong() {
    let cases: [Case; 16] = [
        (
            "pointer arithmetic",
            "",
            "int n=2048; int s[2] = {32, 1}; int* p = s + 1; *p = 8; dim3 block(s[0], s[1]); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a pointer to another type",
            "",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); unsigned* x = (unsigned*)&block; x[0] = 32; x[1] = 8; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "past a member",
            "",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); unsigned* x = &block.x; x[1] = 8; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "one of two by an unknown condition",
            "",
            "int n=2048; dim3 block, other; dim3 grid((n + 29) / 32, (n + 5) / 8); dim3& t = atoi(argv[1]) ? other : block; t = dim3(32, 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "an unknown helper",
            "",
            "int n=2048; dim3 block; dim3 grid((n + 29) / 32, (n + 5) / 8); configure(&block); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a helper behind a condition",
            "void grow(dim3& t) { t.x *= 2; }\n",
            "int n=2048; dim3 block(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); if (atoi(argv[1])) grow(block); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a method behind a condition",
            "struct C { dim3 block{32, 8}; int n = 2048; void wide() { block.x = 64; } void other() { n = 3; } };\n",
            "C c; if (atoi(argv[1])) c.wide(); int n = c.n; dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, c.block>>>(a, b, n, r);",
        ),
        (
            "a lambda handed to an unknown function",
            "",
            "int n = 2048; dim3 block(32, 8); mystery([&](int x) { block.x = x; }); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "std::cin",
            "",
            "int n = 2048; int bx = 32; std::cin >> bx; dim3 block(bx, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "std::sort",
            "",
            "int n = 2048; std::vector<int> s{8, 32}; std::sort(s.begin(), s.end(), std::greater<int>()); dim3 block(s[0], s[1]); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a constructor without a body",
            "struct S { dim3 block; S(int x); };\n",
            "int n = 2048; S s(3); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, s.block>>>(a, b, n, r);",
        ),
        (
            "std::exchange",
            "",
            "int n = 2048; int bx = 32; int old = std::exchange(bx, 64); dim3 block(bx, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "memcpy",
            "",
            "int n = 2048; dim3 src(32, 8), block; memcpy(&block, &src, sizeof(dim3)); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "a pointer that moves",
            "",
            "int n = 2048; int s[2] = {1, 1}; int* p = s; *p++ = 32; *p = 8; dim3 block(s[0], s[1]); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "std::map",
            "",
            "int n = 2048; std::map<std::string, dim3> m; m[\"two\"] = dim3(32, 8); dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, m[\"two\"]>>>(a, b, n, r);",
        ),
        (
            "a switch on the command line",
            "template <int X> __global__ void zz(int x) {}\n",
            "int n = 2048; int which = atoi(argv[1]); dim3 block; switch (which) { case 1: block = dim3(16, 16); break; default: block = dim3(32, 8); } dim3 grid((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
    ];
    for case in cases {
        match launch(case) {
            Err(LaunchFault::CannotEvaluate { settles, .. }) => {
                assert!(settles.starts_with("// grader: "), "{settles}")
            }
            other => panic!("{}: {other:?}", case.0),
        }
    }
}

#[test]
fn instances_of_one_kernel_are_told_apart_by_a_known_switch_and_listed_otherwise() {
    let text = |variant: &str| {
        format!(
            "template <int X, int Y> __global__ void k(const float* in, float* out, int n, float r) {{ out[0] = in[0]; }}\n\
             int main(int argc, char** argv) {{ float *a, *b; int n = 2048; int tile = {variant}; switch (tile) {{\n\
             case 8: k<8, 8><<<n / 8, dim3(8, 8)>>>(a, b, n, 0.2f); break;\n\
             case 16: k<16, 16><<<n / 16, dim3(16, 16)>>>(a, b, n, 0.2f); break;\n\
             default: k<32, 8><<<n / 32, dim3(32, 8)>>>(a, b, n, 0.2f); }} }}\n"
        )
    };
    let kernel = |variant: &str| {
        let found = find_kernel(&parse(&Submission::from_text("test", &text(variant))));
        found.map(|kernel| kernel.call).map_err(|fault| fault.to_string())
    };
    assert_eq!(kernel("16").as_deref(), Ok("k<16, 16>"));
    assert_eq!(kernel("5").as_deref(), Ok("k<32, 8>"));
    let listed = kernel("atoi(argv[1])").expect_err("three instances");
    assert!(["k<8, 8>", "k<16, 16>", "k<32, 8>"].iter().all(|instance| listed.contains(instance)), "{listed}");
}

#[test]
fn a_type_that_depends_on_a_parameter_is_the_contracts() {
    let text = "template <typename T, int X> struct Traits { using value_type = T; static constexpr int x = X; };\n\
                template <typename Tr> __global__ void k(const typename Tr::value_type* in, typename Tr::value_type* out, int n, typename Tr::value_type r) { out[0] = in[0]; }\n\
                template <typename Tr = Traits<float, 32>> void go(float* a, int n) { k<Tr><<<dim3((n + 29) / Tr::x, (n + 5) / 8), dim3(Tr::x, 8)>>>(a, a, n, 0.2f); }\n\
                int main() { go(nullptr, 2048); }\n";
    let program = parse(&Submission::from_text("test", text));
    let kernel = find_kernel(&program).expect("a kernel");
    assert_eq!(kernel.call, "k<Traits<float, 32>>");
    let geometry = find_launch(&program, &kernel).expect("a launch").geometry(131);
    assert_eq!(geometry, Ok(Geometry { grid: [5, 17, 1], block: [32, 8, 1], shared: 0 }));
}
