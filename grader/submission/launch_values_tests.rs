//! Launches through functions as values: instances that are named, lambdas in constants, packs, tables; and the structs
//! that hold what a launch needs.

use super::{LaunchFault, Submission, find_kernel, find_launch, parse};

const KERNEL: &str = "__global__ void twoStep(const float* in, float* out, int n, float r) { out[0] = in[0]; }\n\
    using Launch = void (*)(const float*, float*, int, float);\n";

fn found(text: &str, n: u32) -> Result<([u32; 3], [u32; 3]), LaunchFault> {
    let text = format!("{KERNEL}{text}");
    let program = parse(&Submission::from_text("test", &text));
    let kernel = find_kernel(&program).expect("a kernel");
    let geometry = find_launch(&program, &kernel)?.geometry(n)?;
    Ok((geometry.grid, geometry.block))
}

/// One block of 32 x 8 threads a tile; where the grid is one row of blocks short, the grid as it is.
fn check(name: &str, text: &str) {
    let full = "(n - 2 + 7) / 8";
    assert!(text.contains(full), "{name}");
    for n in [2048, 131] {
        let grid = [(n - 2u32).div_ceil(32), (n - 2).div_ceil(8), 1];
        let launch = found(text, n).unwrap_or_else(|fault| panic!("{name}: {fault}\n{text}"));
        assert_eq!(launch, (grid, [32, 8, 1]), "{name} at n = {n}");
        let short = text.replace(full, "((n - 2) / 8 - 1)");
        let launch = found(&short, n).unwrap_or_else(|fault| panic!("{name}: {fault}\n{short}"));
        assert_eq!(launch, ([grid[0], (n - 2) / 8 - 1, 1], [32, 8, 1]), "{name} at n = {n}, short");
    }
}

const TEMPLATE: &str = "template <int X, int Y = 8> void launchT(const float* in, float* out, int n, float r) { \
    twoStep<<<dim3((n - 2 + X - 1) / X, (n - 2 + 7) / 8), dim3(X, Y)>>>(in, out, n, r); }\n";
const LOOP: &str = "int main() { int n = 2048; float *a, *b; for (int i = 0; i < 500; i++) { launch(a, b, n, 0.2f); std::swap(a, b); } }";

#[test]
fn instances_that_are_named_as_values_are_followed() {
    check("in a constant", &format!("{TEMPLATE} constexpr Launch launch = launchT<32, 8>; {LOOP}"));
    check("by address", &format!("{TEMPLATE} constexpr int kX = 32; const Launch launch = &launchT<kX>; {LOOP}"));
    let handed = "void repeat(Launch l, float* a, float* b, int n) { for (int i = 0; i < 9; ++i) l(a, b, n, 0.2f); } \
        int main() { float *a, *b; repeat(launchT<32, 8>, a, b, 2048); }";
    check("handed over", &format!("{TEMPLATE}{handed}"));
    let kernel = "template <void (*Kernel)(const float*, float*, int, float)> void launchK(const float* in, float* out, int n, float r) { \
        Kernel<<<dim3((n - 2 + 31) / 32, (n - 2 + 7) / 8), dim3(32, 8)>>>(in, out, n, r); } constexpr Launch launch = launchK<twoStep>; ";
    check("of a kernel", &format!("{kernel}{LOOP}"));
}

#[test]
fn two_named_instances_are_two_launches() {
    let text = format!("{TEMPLATE} Launch all[] = {{launchT<32, 8>, launchT<16, 8>}}; int main() {{}}");
    assert!(matches!(found(&text, 2048), Err(LaunchFault::Ambiguous { .. })));
}

#[test]
fn lambdas_in_constants_are_followed() {
    let run = "void repeat(Launch l, int n) { float *a, *b; l(a, b, n, 0.2f); } int main() { repeat(kLaunch, 2048); }";
    for (name, begin) in [("plain", "constexpr Launch kLaunch = ["), ("as a pointer", "const Launch kLaunch = +[")] {
        let body = "](const float* in, float* out, int n, float r) { dim3 g((n - 2 + 31) / 32, (n - 2 + 7) / 8); \
            twoStep<<<g, dim3(32, 8)>>>(in, out, n, r); }; ";
        check(name, &format!("{begin}{body}{run}"));
        check(name, &format!("{begin}{body}int main() {{ float *a, *b; kLaunch(a, b, 2048, 0.2f); }}"));
    }
    let named = format!(
        "{TEMPLATE} constexpr Launch kLaunch = [](const float* in, float* out, int n, float r) {{ launchT<32>(in, out, n, r); }}; "
    );
    check("with a call inside", &format!("{named}{run}"));
}

const GRID: &str = "int n = 2048; float *a, *b; dim3 block(32, 8), grid((n - 2 + 31) / 32, (n - 2 + 7) / 8);";

#[test]
fn packs_of_arguments_are_followed() {
    let cases = [
        (
            "kernel and pack",
            "template <typename K, typename... A> void launch(dim3 g, dim3 b, K k, A... args) { k<<<g, b>>>(args...); }",
            "launch(grid, block, twoStep, a, b, n, 0.2f);",
        ),
        (
            "forwarded",
            "template <typename... A> void launch(dim3 g, dim3 b, A&&... args) { twoStep<<<g, b>>>(std::forward<A>(args)...); }",
            "launch(grid, block, a, b, n, 0.2f);",
        ),
        (
            "handed on",
            "template <typename... A> void run(dim3 g, dim3 b, A... args) { twoStep<<<g, b>>>(args...); } template <typename... A> void launch(A&&... args) { run(std::forward<A>(args)...); }",
            "launch(grid, block, a, b, n, 0.2f);",
        ),
    ];
    for (name, functions, call) in cases {
        check(
            name,
            &format!("{functions} int main() {{ {GRID} for (int i = 0; i < 9; i++) {{ {call} std::swap(a, b); }} }}"),
        );
    }
}

#[test]
fn packs_that_double_end() {
    let text = "template <typename... A> void run(A... args) { run(args..., args...); twoStep<<<1, 1>>>(args...); } int main() { run(1, 2, 3); }";
    let _ = found(text, 2048);
    let text = "template <typename... A> int run(A... args) { return run(args, args); } int main() { twoStep<<<run(1, 2), 1>>>(0, 0, 2048, 0.2f); }";
    let _ = found(text, 2048);
}

#[test]
fn tables_of_kernels_are_read_by_index() {
    let row = "struct Row { const char* name; void (*kernel)(const float*, float*, int, float); int steps; };";
    let cases = [
        (
            "rows",
            row,
            "Row rows[] = {{\"x\", twoStep, 2}}; for (int i = 0; i < 1; i++) { rows[i].kernel<<<grid, block>>>(a, b, n, 0.2f); }",
        ),
        (
            "kernels",
            "",
            "const Launch kernels[] = {twoStep}; for (int i = 0; i < 1; ++i) { kernels[i]<<<grid, block>>>(a, b, n, 0.2f); }",
        ),
    ];
    for (name, types, statements) in cases {
        check(name, &format!("{types} int main() {{ {GRID} {statements} }}"));
    }
}

#[test]
fn types_declared_inside_a_function_are_known_there() {
    let cases = [
        ("struct", "struct S { dim3 g; }; S s; s.g = grid; twoStep<<<s.g, block>>>(a, b, n, 0.2f);"),
        ("variable behind it", "struct S { dim3 g; } s = {grid}; twoStep<<<s.g, block>>>(a, b, n, 0.2f);"),
        ("two members", "struct S { dim3 g, b; } s; s.g = grid; s.b = block; twoStep<<<s.g, s.b>>>(a, b, n, 0.2f);"),
        ("numbers", "struct Local { int w, h; }; Local d = {32, 8}; twoStep<<<grid, dim3(d.w, d.h)>>>(a, b, n, 0.2f);"),
        (
            "typedef",
            "typedef struct { int w, h; } Local; Local d = {32, 8}; twoStep<<<grid, dim3(d.w, d.h)>>>(a, b, n, 0.2f);",
        ),
        (
            "without a name",
            "struct { const char* name; Launch kernel; int steps; } rows[] = {{\"x\", twoStep, 2}}; for (auto& row : rows) { row.kernel<<<grid, block>>>(a, b, n, 0.2f); }",
        ),
        ("enum", "enum { A, B }; const int h[2] = {4, 8}; twoStep<<<grid, dim3(32, h[B])>>>(a, b, n, 0.2f);"),
        ("enum class", "enum class M { A = 1, B = 8 }; twoStep<<<grid, dim3(32, (int)M::B)>>>(a, b, n, 0.2f);"),
        (
            "method",
            "struct L { int h; int twice() const { return 2 * h; } } l = {4}; twoStep<<<grid, dim3(32, l.twice())>>>(a, b, n, 0.2f);",
        ),
    ];
    for (name, statements) in cases {
        check(name, &format!("int main() {{ {GRID} {statements} }}"));
        let other = "struct S { int z; }; struct Local { int h, w; }; enum { A = 5, B = 0 }; enum class M { A, B };";
        check(
            name,
            &format!(
                "{other} void f() {{ struct S {{ int q; }}; struct Local {{ int h, w; }}; enum {{ B, A }}; }} int main() {{ {GRID} {statements} }}"
            ),
        );
    }
    let own = "enum { B = 8 }; void f() { enum { B = 1 }; }";
    check(
        "another function's",
        &format!("{own} int main() {{ {GRID} twoStep<<<grid, dim3(32, B)>>>(a, b, n, 0.2f); }}"),
    );
}

#[test]
fn memory_for_one_struct_is_that_struct() {
    let head = "typedef struct sim { int n; float *a, *b; dim3 grid, block; } sim; static sim* made(int n) { ";
    let tail = " s->n = n; s->block.x = 32; s->block.y = 8; s->block.z = 1; s->grid.x = (n - 2 + 31) / 32; s->grid.y = (n - 2 + 7) / 8; s->grid.z = 1; return s; } \
        static void step(sim* s) { twoStep<<<s->grid, s->block>>>(s->a, s->b, s->n, 0.2f); float* t = s->a; s->a = s->b; s->b = t; } \
        int main() { sim* s = made(2048); for (int i = 0; i < 500; ++i) step(s); free(s); return 0; }";
    for memory in [
        "sim* s = (sim*)malloc(sizeof(sim));",
        "sim* s = (sim*)malloc(sizeof *s);",
        "sim* s = (struct sim*)calloc(1, sizeof(*s));",
        "sim* s = static_cast<sim*>(std::malloc(sizeof(sim)));",
        "auto* s = (sim*)calloc(1, sizeof *s);",
    ] {
        check(memory, &format!("{head}{memory}{tail}"));
    }
}
