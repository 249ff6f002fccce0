//! Launch styles as people write them, each with the geometry it has for two sizes.

use super::{Geometry, LaunchFault, LaunchSource, Submission, find_kernel, find_launch, parse};

const KERNEL: &str = "__global__ void twoStep(const float* in, float* out, int n, float r) { out[0] = in[0]; }\n";

fn launch(text: &str) -> Result<super::Launch, String> {
    let program = parse(&Submission::from_text("test", text));
    let kernel = find_kernel(&program).map_err(|fault| format!("{fault}\n{}", fault.details().join("\n")))?;
    find_launch(&program, &kernel).map_err(|fault| format!("{fault}\n{}", fault.details().join("\n")))
}

fn fault(text: &str) -> LaunchFault {
    let program = parse(&Submission::from_text("test", text));
    let kernel = find_kernel(&program).expect("a kernel");
    find_launch(&program, &kernel).expect_err(text)
}

/// Grid x, y and block x, y, and bytes of dynamic shared memory.
type Shape = ([u32; 2], [u32; 2], u32);

fn shape(geometry: Geometry) -> Shape {
    let Geometry { grid: [gx, gy, gz], block: [bx, by, bz], shared } = geometry;
    assert_eq!((gz, bz), (1, 1));
    ([gx, gy], [bx, by], shared)
}

fn check(name: &str, text: &str, at_2048: Shape, at_131: Shape) {
    let launch = launch(text).unwrap_or_else(|fault| panic!("{name}: {fault}\n{text}"));
    assert_eq!(launch.source, LaunchSource::LaunchStatement, "{name}");
    for (n, expected) in [(2048, at_2048), (131, at_131)] {
        let geometry = launch.geometry(n).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert_eq!(shape(geometry), expected, "{name} at n = {n}\n{text}");
    }
}

/// A main() around some statements, after the kernel.
fn main_with(statements: &str) -> String {
    format!("{KERNEL}int main(int argc, char** argv) {{ float *a, *b; float r = 0.2f; {statements} }}\n")
}

/// One block of 32 x 8 threads a tile of 32 x 8 cells: 64 x 256 blocks at 2048, 5 x 17 at 131.
const USUAL: (Shape, Shape) = (([64, 256], [32, 8], 0), ([5, 17], [32, 8], 0));
/// Nothing that depends on n.
const FIXED: (Shape, Shape) = (([64, 256], [32, 8], 0), ([64, 256], [32, 8], 0));

#[test]
fn launches_in_main_are_worked_out_for_any_n() {
    let cases = [
        (
            "two dim3",
            "int n = 2048; dim3 block(32, 8); dim3 grid((n - 2 + 31) / 32, (n - 2 + 7) / 8); twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "braces",
            "int n = 2048; dim3 block{32, 8}; dim3 grid{(n - 2 + 31u) / 32, (n - 2 + 7u) / 8, 1}; twoStep<<<grid, block>>>(a, b, n, r);",
        ),
        (
            "copy from dim3",
            "int n = 2048; dim3 block = dim3(32, 8), grid = dim3((n + 29) / 32, (n + 5) / 8); twoStep<<<grid, block, 0>>>(a, b, n, r);",
        ),
        (
            "auto",
            "const auto n = 2048; auto block = dim3(32, 8); auto grid = dim3{(n + 29u) / 32, (n + 5u) / 8}; twoStep<<<grid, block, 0, 0>>>(a, b, n, r);",
        ),
        (
            "members assigned",
            "int n = 2048; dim3 g, t; t.x = 32; t.y = 8; g.x = (n - 2 + t.x - 1) / t.x; g.y = (n - 2 + t.y - 1) / t.y; g.z = 1; twoStep<<<g, t>>>(a, b, n, r);",
        ),
        (
            "written in place",
            "int n = 2048; twoStep<<<dim3((n - 2 + 31) / 32, (n - 2 + 7) / 8), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "lists in place",
            "unsigned n = 2048; twoStep<<<{(n - 2 + 31) / 32, (n - 2 + 7) / 8}, {32, 8}>>>(a, b, n, r);",
        ),
        (
            "command line with a fallback",
            "int n = argc > 1 ? atoi(argv[1]) : 2048; dim3 g((n + 29) / 32, (n + 5) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "command line without one",
            "int n = atoi(argv[1]); dim3 g((n + 29) / 32, (n + 5) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "overwritten by an if",
            "int n = 2048; if (argc > 1) n = std::atoi(argv[1]); dim3 g((n + 29) / 32, (n + 5) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "in the time loop",
            "int n = 2048, steps = 1000; dim3 b2(32, 8); for (int s = 0; s < steps; s += 2) { dim3 g((n + 29) / 32, (n + 5) / 8); twoStep<<<g, b2>>>(a, b, n, r); std::swap(a, b); }",
        ),
        (
            "in a while loop",
            "int n = 2048; int s = 0; dim3 g((n + 29) / 32, (n + 5) / 8); while (s < 1000) { if (s % 2 == 0) { twoStep<<<g, dim3(32, 8)>>>(a, b, n, r); } s += 2; }",
        ),
        (
            "ceil of a float",
            "int n = 2048; dim3 t(32, 8); dim3 g(ceil((n - 2) / (float)t.x), (int)ceilf((n - 2) / 8.0f)); twoStep<<<g, t>>>(a, b, n, r);",
        ),
        (
            "casts",
            "int n = 2048; dim3 t(32, 8); dim3 g(static_cast<unsigned>((n - 2 + 31) / 32), unsigned(n - 2 + 7) / 8u); twoStep<<<g, t>>>(a, b, n, r);",
        ),
        (
            "std::max",
            "int n = 2048; const int m = std::max(n - 2, 1); dim3 g((m + 31) / 32, (m + 7) >> 3); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "swapped buffers",
            "int n = 2048; dim3 g((n + 29) / 32, (n + 5) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r); twoStep<<<g, dim3(32, 8)>>>(b, a, n, r);",
        ),
        (
            "a lambda called twice",
            "int n = 2048; dim3 g((n + 29) / 32, (n + 5) / 8), t(32, 8); auto step = [&](const float* i, float* o) { twoStep<<<g, t>>>(i, o, n, r); }; step(a, b); step(b, a);",
        ),
        (
            "a lambda handed over",
            "const int n = 2048; float ms = timeIt([=] { dim3 g((n + 29) / 32, (n + 5) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r); }, 10);",
        ),
        (
            "a helper lambda",
            "int n = 2048; auto up = [](int x, int y) { return (x + y - 1) / y; }; twoStep<<<dim3(up(n - 2, 32), up(n - 2, 8)), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "cudaLaunchKernel",
            "int n = 2048; dim3 g((n + 29) / 32, (n + 5) / 8); void* args[] = {&a, &b, &n, &r}; cudaLaunchKernel((const void*)twoStep, g, dim3(32, 8), args, 0, nullptr);",
        ),
        (
            "cudaLaunchKernel by address",
            "int size = 2048; dim3 g((size + 29) / 32, (size + 5) / 8); void* args[4]; args[0] = &a; args[1] = &b; args[2] = (void*)&size; args[3] = &r; CHECK(cudaLaunchKernel(reinterpret_cast<void*>(&twoStep), g, dim3(32, 8), args, 0, stream));",
        ),
        (
            "cudaLaunchKernelEx",
            "int n = 2048; cudaLaunchConfig_t c = {}; c.gridDim = dim3((n + 29) / 32, (n + 5) / 8); c.blockDim = dim3(32, 8); c.stream = 0; cudaLaunchKernelEx(&c, twoStep, (const float*)a, b, n, r);",
        ),
        (
            "cudaLaunchKernelEx from a list",
            "int n = 2048; cudaLaunchConfig_t c{.gridDim = {(unsigned)(n + 29) / 32, (unsigned)(n + 5) / 8}, .blockDim = {32, 8}}; cudaLaunchKernelEx(&c, twoStep, a, b, n, r);",
        ),
        (
            "an alias of the kernel",
            "int n = 2048; auto kernel = twoStep; auto* other = &twoStep; kernel<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "a function pointer",
            "int n = 2048; void (*kernel)(const float*, float*, int, float) = twoStep; kernel<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "size_t arithmetic",
            "const size_t n = 2048; const size_t inner = n - 2; dim3 g((inner + 31) / 32, (inner + 7) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, (int)n, r);",
        ),
        (
            "another size in between",
            "int N = 2048; int n = N; int width = N - 2; dim3 g((width + 31) / 32, (n - 2 + 7) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "structured binding",
            "int n = 2048; auto [gx, gy] = std::make_pair((n + 29) / 32, (n + 5) / 8); twoStep<<<dim3(gx, gy), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "a branch on n",
            "int n = 2048; dim3 t(16, 16); if (n > 100) { t = dim3(32, 8); } else { t.x = 8; } twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), t>>>(a, b, n, r);",
        ),
        (
            "through cudaMalloc and checks",
            "int n = 2048; cudaMalloc(&a, n * n * sizeof(float)); if (cudaGetLastError() != cudaSuccess) { fprintf(stderr, \"no\"); return 1; } float* h = new float[n * n]; for (int i = 0; i < n * n; ++i) h[i] = i % 7; dim3 g((n + 29) / 32, (n + 5) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r); cudaDeviceSynchronize();",
        ),
        (
            "an array of sizes",
            "int n = 2048; int block[2] = {32, 8}; int grid[2]; for (int d = 0; d < 2; ++d) grid[d] = (n - 2 + block[d] - 1) / block[d]; twoStep<<<dim3(grid[0], grid[1]), dim3(block[0], block[1])>>>(a, b, n, r);",
        ),
        (
            "switch",
            "int n = 2048; int which = 2; dim3 t; switch (which) { case 1: t = dim3(8, 8); break; case 2: t = dim3(32, 8); break; default: t = dim3(1, 1); } twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), t>>>(a, b, n, r);",
        ),
        (
            "const uint3",
            "int n = 2048; uint3 g = make_uint3((n + 29) / 32, (n + 5) / 8, 1); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "do while",
            "int n = 2048; int s = 0; do { twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r); s += 2; } while (s < 1000);",
        ),
    ];
    for (name, statements) in cases {
        check(name, &main_with(statements), USUAL.0, USUAL.1);
    }
}

#[test]
fn launches_over_constants_macros_and_helpers_follow_n() {
    let cases = [
        (
            "macro n",
            "#define N 2048\n#define BX 32\n#define BY 8\n",
            "twoStep<<<dim3((N - 2 + BX - 1) / BX, (N - 2 + BY - 1) / BY), dim3(BX, BY)>>>(a, b, N, r);",
        ),
        (
            "macro behind a constant",
            "#define N 2048\n",
            "const int n = N; dim3 g((N + 29) / 32, (n + 5) / 8); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "macro behind a macro",
            "#define SIZE 2048\n#define N SIZE\n",
            "twoStep<<<dim3((N + 29) / 32, (SIZE + 5) / 8), dim3(32, 8)>>>(a, b, N, r);",
        ),
        (
            "computed macro",
            "#define SIZE 2048\n#define N (SIZE)\n#define INNER (N - 2)\n",
            "twoStep<<<dim3((INNER + 31) / 32, (SIZE + 5) / 8), dim3(32, 8)>>>(a, b, N, r);",
        ),
        (
            "constexpr n",
            "constexpr int kN = 2048;\nconstexpr int kTileX = 32, kTileY = 8;\n",
            "int n = kN; dim3 g((kN - 2 + kTileX - 1) / kTileX, (n - 2 + kTileY - 1) / kTileY); twoStep<<<g, dim3(kTileX, kTileY)>>>(a, b, n, r);",
        ),
        (
            "derived constant",
            "static const int kN = 2048; const int kInner = kN - 2; enum { TX = 32, TY = TX / 4 };\n",
            "twoStep<<<dim3((kInner + TX - 1) / TX, (kInner + TY - 1) / TY), dim3(TX, TY)>>>(a, b, kN, r);",
        ),
        (
            "enumerators",
            "enum Sizes : int { first = 31, TX, OTHER = 7, TY };\n",
            "int n = 2048; twoStep<<<dim3((n + 29) / TX, (n + 5) / TY), dim3(TX, TY)>>>(a, b, n, r);",
        ),
        (
            "scoped constants",
            "namespace config { constexpr int n = 2048; struct Tile { static constexpr int x = 32; static constexpr int y = 8; }; }\n",
            "twoStep<<<dim3((config::n + 29) / config::Tile::x, (config::n + 5) / config::Tile::y), dim3(config::Tile::x, config::Tile::y)>>>(a, b, config::n, r);",
        ),
        (
            "helper",
            "int ceilDiv(int a, int b) { return (a + b - 1) / b; }\n",
            "int n = 2048; dim3 g(ceilDiv(n - 2, 32), ceilDiv(n - 2, 8)); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "helper template",
            "template <typename T, typename U> __host__ __device__ constexpr inline T up(T a, U b) { return a / b + (a % b != 0 ? 1 : 0); }\n",
            "int n = 2048; dim3 g(up(n - 2, 32), up<int, int>(n - 2, 8)); twoStep<<<g, dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "helper with a loop",
            "static unsigned blocks(int cells, int tile) { unsigned count = 0; for (int at = 0; at < cells; at += tile) { ++count; } return count; }\n",
            "int n = 2048; twoStep<<<dim3(blocks(n - 2, 32), blocks(n - 2, 8)), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "helper that returns dim3",
            "dim3 gridFor(int n, dim3 t) { return dim3((n - 2 + t.x - 1) / t.x, (n - 2 + t.y - 1) / t.y); }\n",
            "int n = 2048; dim3 t(32, 8); twoStep<<<gridFor(n, t), t>>>(a, b, n, r);",
        ),
        (
            "helper by reference",
            "void shape(int n, dim3& grid, dim3* block) { *block = dim3(32, 8); grid.x = (n + 29) / block->x; grid.y = (n + 5) / block->y; }\n",
            "int n = 2048; dim3 g, t; shape(n, g, &t); twoStep<<<g, t>>>(a, b, n, r);",
        ),
        (
            "helper macro",
            "#define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))\n",
            "int n = 2048; twoStep<<<dim3(CEIL_DIV(n - 2, 32), CEIL_DIV(n - 2, 8)), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "launch in a macro",
            "#define LAUNCH(k, g, t, ...) do { k<<<g, t>>>(__VA_ARGS__); check(cudaGetLastError(), #k); } while (0)\n",
            "int n = 2048; dim3 t(32, 8); LAUNCH(twoStep, dim3((n + 29) / 32, (n + 5) / 8), t, a, b, n, r);",
        ),
        (
            "launch in a statement macro",
            "#define STEP twoStep<<<grid, block>>>(a, b, n, r)\n",
            "int n = 2048; dim3 block(32, 8), grid((n + 29) / 32, (n + 5) / 8); STEP;",
        ),
        (
            "struct of settings",
            "struct Config { int n = 2048; dim3 block{32, 8}; int tileX = 32; int tileY{8}; };\n",
            "Config cfg; dim3 g((cfg.n - 2 + cfg.tileX - 1) / cfg.tileX, (cfg.n - 2 + cfg.tileY - 1) / cfg.tileY); twoStep<<<g, cfg.block>>>(a, b, cfg.n, r);",
        ),
        (
            "struct from a list",
            "struct Params { int n; float r; int bx, by; };\n",
            "Params p = {2048, 0.2f, 32, 8}; const int n = p.n; twoStep<<<dim3((p.n + 29) / p.bx, (n + 5) / p.by), dim3(p.bx, p.by)>>>(a, b, n, p.r);",
        ),
        (
            "launch function",
            "void run(float* a, float* b, int n, float r, int steps) { dim3 t(32, 8); dim3 g((n + 29) / 32, (n + 5) / 8); for (int s = 0; s < steps; s += 2) { twoStep<<<g, t>>>(a, b, n, r); std::swap(a, b); } }\n",
            "const int size = 2048; run(a, b, size, 0.2f, 1000);",
        ),
        (
            "launch function with geometry",
            "static float timed(dim3 grid, dim3 block, float* a, float* b, int m, float r = 0.2f) { twoStep<<<grid, block>>>(a, b, m, r); return 0; }\n",
            "const int n = 2048; dim3 g((n + 29) / 32, (n + 5) / 8); float ms = timed(g, dim3(32, 8), a, b, n);",
        ),
        (
            "two functions deep",
            "void inner(int n, int bx, int by) { twoStep<<<dim3((n - 2 + bx - 1) / bx, (n - 2 + by - 1) / by), dim3(bx, by)>>>(0, 0, n, 0.2f); }\nvoid outer(int n) { inner(n, 32, 8); }\n",
            "int n = 2048; outer(n);",
        ),
        (
            "launch template",
            "template <int BX, int BY = 8> void run(int n) { constexpr int threads = BX; twoStep<<<dim3((n - 2 + threads - 1) / BX, (n - 2 + BY - 1) / BY), dim3(BX, BY)>>>(0, 0, n, 0.2f); }\n",
            "run<32>(2048);",
        ),
        (
            "kernel handed over",
            "template <typename K> void launch(K kernel, dim3 g, dim3 t, int n) { kernel<<<g, t>>>(0, 0, n, 0.2f); }\n__global__ void heatStepTiled(const float* in, float* out, int n, float r) {}\n",
            "int n = 2048; launch(heatStepTiled, dim3(1), dim3(1), n); launch(twoStep, dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8), n);",
        ),
        (
            "member function",
            "struct Solver { int n; dim3 block{32, 8}; dim3 grid; Solver(int size) : n(size), grid((n + 29) / 32, (size + 5) / 8) {} void step(float* a, float* b) { twoStep<<<grid, block>>>(a, b, n, 0.2f); } };\n",
            "Solver solver(2048); solver.step(a, b);",
        ),
        (
            "member function outside",
            "class Solver { public: void step(); private: int n_ = 2048; static constexpr int TX = 32; };\nvoid Solver::step() { twoStep<<<dim3((n_ + 29) / TX, (n_ + 5) / 8), dim3(TX, 8)>>>(0, 0, n_, 0.2f); }\n",
            "Solver s; s.step();",
        ),
        (
            "conditions of the preprocessor",
            "#ifndef TX\n#define TX 32\n#endif\n#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)\n#define TY 8\n#else\n#define TY 16\n#endif\n#if 0\nint main() { twoStep<<<1, 1>>>(a, b, n, r); }\n#endif\n",
            "int n = 2048; /* twoStep<<<2, 2>>>(a, b, n, r); */ const char* s = \"twoStep<<<3, 3>>>(a, b, n, r)\"; twoStep<<<dim3((n + 29) / TX, (n + 5) / TY), dim3(TX, TY)>>>(a, b, n, r);",
        ),
        (
            "template kernel beside",
            "template <int T> __global__ void other(float* x) {}\n",
            "int n = 2048; other<32><<<1, 32>>>(a); twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "shipped launches beside",
            "__global__ void copyGrid(const float* in, float* out, int n, float r) {}\n",
            "int n = 2048; copyGrid<<<dim3(7), dim3(7)>>>(a, b, n, r); twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "global variable",
            "int g_n = 2048; dim3 g_block(32, 8);\nvoid parse(int argc, char** argv) { if (argc > 1) g_n = atoi(argv[1]); }\n",
            "parse(argc, argv); twoStep<<<dim3((g_n + 29) / 32, (g_n + 5) / 8), g_block>>>(a, b, g_n, r);",
        ),
        (
            "recursion",
            "constexpr int log2i(int x) { return x <= 1 ? 0 : 1 + log2i(x / 2); }\n",
            "int n = 2048; twoStep<<<dim3((n + 29) >> log2i(32), (n + 5) >> log2i(8)), dim3(1 << 5, 1 << 3)>>>(a, b, n, r);",
        ),
    ];
    for (name, before, statements) in cases {
        check(name, &format!("{before}{}", main_with(statements)), USUAL.0, USUAL.1);
    }
}

#[test]
fn instances_plans_and_captures_are_followed() {
    let cases = [
        (
            "members through a type parameter",
            "template <int X, int Y, int H = 2> struct Tile { static constexpr int TX = X, TY = Y; static constexpr int SX = TX + 2 * H; };\nstruct Solver { int n_ = 2048; template <class P> void step() { dim3 block{P::TX, P::TY}; dim3 grid((n_ - 2 + P::SX - 5) / P::TX, (n_ - 2 + P::TY - 1) / P::TY); twoStep<<<grid, block>>>(0, 0, n_, 0.2f); } void run() { for (int s = 0; s < 9; s += 2) step<Tile<32, 8>>(); } };\n",
            "Solver s; s.run();",
        ),
        (
            "a member template of an object",
            "template <int X, int Y> struct Tile { enum { TX = X, TY = Y }; };\nstruct Solver { int n_ = 2048; template <class P> void step() { twoStep<<<dim3((n_ - 3 + P::TX) / P::TX, (n_ - 3 + P::TY) / P::TY), dim3(P::TX, P::TY)>>>(0, 0, n_, 0.2f); } };\n",
            "Solver s; s.step<Tile<32, 8>>();",
        ),
        (
            "constants of an instance",
            "template <int X> struct Tile { static constexpr int x = X, y = 8; };\n",
            "int n = 2048; twoStep<<<dim3((n + 29) / Tile<32>::x, (n + 5) / Tile<32>::y), dim3(Tile<32>::x, Tile<32>::y)>>>(a, b, n, r);",
        ),
        (
            "an alias of an instance",
            "template <int X, int Y = X / 4> struct Tile { static constexpr int kX = X; static constexpr int kY = Y; };\nusing Policy = Tile<32>;\n",
            "int n = 2048; twoStep<<<dim3((n + 29) / Policy::kX, (n + 5) / Policy::kY), dim3(Policy::kX, Policy::kY)>>>(a, b, n, r);",
        ),
        (
            "a local alias",
            "template <int X, int Y> struct Tile { static constexpr int kX = X, kY = Y; };\n",
            "using P = Tile<32, 8>; int n = 2048; twoStep<<<dim3((n + 29) / P::kX, (n + 5) / P::kY), dim3(P::kX, P::kY)>>>(a, b, n, r);",
        ),
        (
            "nested structs",
            "struct Config { struct Tile { static constexpr int x = 32; enum { y = 8 }; }; using Other = Tile; };\ntemplate <class C> void go(int n) { twoStep<<<dim3((n + 29) / C::Tile::x, (n + 5) / C::Other::y), dim3(Config::Tile::x, Config::Tile::y)>>>(0, 0, n, 0.2f); }\n",
            "go<Config>(2048);",
        ),
        (
            "an alias inside an instance",
            "template <int X, int Y> struct Tile { static constexpr int x = X, y = Y; };\ntemplate <int B> struct Config { using T = Tile<4 * B, B>; };\ntemplate <class C> void go(int n) { using T = typename C::T; twoStep<<<dim3((n + 29) / T::x, (n + 5) / C::T::y), dim3(T::x, T::y)>>>(0, 0, n, 0.2f); }\n",
            "go<Config<8>>(2048);",
        ),
        (
            "a policy handed over",
            "template <int X, int Y> struct Tile { static constexpr int x = X, y = Y; };\ntemplate <class P> void go(P, int n) { twoStep<<<dim3((n + 29) / P::x, (n + 5) / P::y), dim3(P::x, P::y)>>>(0, 0, n, 0.2f); }\n",
            "go(Tile<32, 8>{}, 2048);",
        ),
        (
            "static functions of an instance",
            "template <int X, int Y> struct Tile { static dim3 block() { return {X, Y}; } static dim3 grid(int n) { return dim3((n - 3 + X) / X, (n - 3 + Y) / Y); } };\ntemplate <class P> void go(int n) { twoStep<<<P::grid(n), P::block()>>>(0, 0, n, 0.2f); }\n",
            "go<Tile<32, 8>>(2048);",
        ),
        (
            "a struct template",
            "template <int BX, int BY> class Solver { public: explicit Solver(int n) : n_(n) {} void step(); private: dim3 grid() const { return dim3((n_ + BX - 3) / BX, (n_ + kUp) / BY); } static constexpr int kUp = BY - 3; int n_; };\ntemplate <int BX, int BY> void Solver<BX, BY>::step() { twoStep<<<grid(), dim3(BX, BY)>>>(0, 0, n_, 0.2f); }\n",
            "Solver<32, 8> solver(2048); solver.step();",
        ),
        (
            "a static launcher",
            "template <class P> struct Launcher { static void launch(int n) { twoStep<<<dim3((n + 29) / P::x, (n + 5) / P::y), dim3(P::x, P::y)>>>(0, 0, n, 0.2f); } };\nstruct Tile { static constexpr int x = 32, y = 8; };\n",
            "Launcher<Tile>::launch(2048);",
        ),
        (
            "a specialisation",
            "template <int A> struct Tile { static constexpr int x = 8, y = 8; };\ntemplate <> struct Tile<90> { static constexpr int x = 32, y = 8; };\n",
            "int n = 2048; twoStep<<<dim3((n + 29) / Tile<90>::x, (n + 5) / Tile<70>::y), dim3(Tile<90>::x, Tile<90>::y)>>>(a, b, n, r);",
        ),
        (
            "constants of a base",
            "template <int X, int Y> struct Tile { static constexpr int x = X, y = Y; };\nstruct Wide : public Tile<32, 8> {};\n",
            "int n = 2048; twoStep<<<dim3((n + 29) / Wide::x, (n + 5) / Wide::y), dim3(Wide::x, Wide::y)>>>(a, b, n, r);",
        ),
        (
            "a launch plan",
            "struct LaunchParams { dim3 grid, block; size_t shared; };\nstatic LaunchParams plan(int n) { const dim3 t{32, 8}; return {dim3((n - 3 + t.x) / t.x, (n - 3 + t.y) / t.y), t, 0}; }\n",
            "int n = 2048; const auto p = plan(n); twoStep<<<p.grid, p.block, p.shared>>>(a, b, n, r);",
        ),
        (
            "a pair of dim3",
            "std::pair<dim3, dim3> plan(int n) { dim3 t(32, 8); return {{(n - 3 + t.x) / t.x, (n - 3 + t.y) / t.y}, t}; }\n",
            "int n = 2048; auto [grid, block] = plan(n); twoStep<<<dim3(grid.x, grid.y), block>>>(a, b, n, r);",
        ),
        (
            "a tuple of dim3",
            "auto plan(int n) -> std::tuple<dim3, dim3> { return std::make_tuple(dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)); }\n",
            "int n = 2048; dim3 g, t; std::tie(g, t) = plan(n); auto both = plan(n); twoStep<<<g, std::get<1>(both)>>>(a, b, n, r);",
        ),
        (
            "a lambda that captures",
            "struct Options { int size{2048}; int steps{1000}; float r{0.2f}; };\nstatic std::optional<Options> parse(int argc, char** argv) { Options o; for (int i = 1; i < argc; ++i) { if (argc > 9) return std::nullopt; o.size = std::atoi(argv[i]); } return o; }\n",
            "auto opt = parse(argc, argv); if (!opt) { return 1; } const auto [size, steps, rr] = *opt; const dim3 t{32, 8}; const auto blocks = [&, n = opt->size](unsigned t) { return static_cast<unsigned>(std::ceil((n - 2) / static_cast<double>(t))); }; const dim3 g{blocks(t.x), (unsigned)(size + 5) / 8}; for (int s = 0; s < steps / 2; ++s) { twoStep<<<g, t>>>(a, b, opt->size, opt->r); }",
        ),
        (
            "an object on the heap",
            "class Sim { int n; dim3 block, grid; public: Sim(int size) : n(size) { block = dim3(32, 8); grid = dim3((n + 29) / 32, (n + 5) / 8); } void step() { twoStep<<<grid, block>>>(0, 0, n, 0.2f); } };\n",
            "Sim* sim = new Sim(2048); sim->step(); auto other = std::make_unique<Sim>(2048); other->step();",
        ),
        (
            "lambdas in a struct",
            "struct Plan { std::function<dim3(int)> grid; dim3 block; };\n",
            "int n = 2048; Plan plan{[](int m) { return dim3((m + 29) / 32, (m + 5) / 8); }, dim3(32, 8)}; twoStep<<<plan.grid(n), plan.block>>>(a, b, n, r);",
        ),
        (
            "a constant that n is computed from",
            "constexpr int kInner = 2046;\nconstexpr int kHalo = 1;\nconstexpr int kN = kInner + 2 * kHalo;\n",
            "twoStep<<<dim3((kInner + 31) / 32, (kInner + 7) / 8), dim3(32, 8)>>>(a, b, kN, r);",
        ),
        (
            "a macro that n is computed from",
            "#define LAST 2047\n#define INNER (LAST - 1)\n",
            "const int first = 0; int n = INNER * 1 + 3 - first; n = LAST - first + 1; twoStep<<<dim3((LAST + 30) / 32, (INNER + 7) / 8), dim3(32, 8)>>>(a, b, n, r);",
        ),
        (
            "a local that n is computed from",
            "",
            "const int inner = 2046; const int size = inner + 2; auto run = [&](int n) { twoStep<<<dim3((inner + 31) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r); }; run(size);",
        ),
    ];
    for (name, before, statements) in cases {
        check(name, &format!("{KERNEL}{before}{}", main_with(statements).replacen(KERNEL, "", 1)), USUAL.0, USUAL.1);
    }
}

#[test]
fn launches_of_other_shapes_are_what_they_are() {
    let case = |name: &str, statements: &str, a: Shape, b: Shape| check(name, &main_with(statements), a, b);
    case(
        "plain numbers",
        "int n = 2048; twoStep<<<(n + 255) / 256, 256>>>(a, b, n, r);",
        ([8, 1], [256, 1], 0),
        ([1, 1], [256, 1], 0),
    );
    case(
        "comma operator",
        "int n = 2048; dim3 t = (16, 16); dim3 g((n + 15) / 16, (n + 15) / 16); twoStep<<<g, t>>>(a, b, n, r);",
        ([128, 128], [16, 1], 0),
        ([9, 9], [16, 1], 0),
    );
    case(
        "block as large as the apron",
        "int n = 2048; twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32 + 4, 8 + 4)>>>(a, b, n, r);",
        ([64, 256], [36, 12], 0),
        ([5, 17], [36, 12], 0),
    );
    case(
        "dynamic shared memory",
        "int n = 2048; size_t bytes = 2 * (32 + 4) * (8 + 4) * sizeof(float); twoStep<<<dim3(n / 32), dim3(32, 8), bytes, stream>>>(a, b, n, r);",
        ([64, 1], [32, 8], 3456),
        ([4, 1], [32, 8], 3456),
    );
    case("one expression for n", "twoStep<<<dim3(64, 256), dim3(32, 8)>>>(a, b, 2048, r);", FIXED.0, FIXED.1);
    case(
        "truncating division",
        "int n = 2048; twoStep<<<n / 100, 64>>>(a, b, n, r);",
        ([20, 1], [64, 1], 0),
        ([1, 1], [64, 1], 0),
    );
}

#[test]
fn templates_namespaces_and_linkage_are_found() {
    let kernel = |text: &str| find_kernel(&parse(&Submission::from_text("test", text))).map(|kernel| kernel.call);
    let parameters = "(const float* in, float* out, int n, float r)";
    let cases = [
        (format!("namespace ns {{ template <int X, int Y> __global__ void k{parameters} {{}} }} int main() {{ ns::k<32, 4 * 2><<<1, 2>>>(a, b, n, r); }}"), "ns::k<32, 8>"),
        (format!("template <int X = 32, int Y = X / 4> __global__ void __launch_bounds__(256) k{parameters} {{}}"), "k<32, 8>"),
        (format!("extern \"C\" __global__ __launch_bounds__(256) void k{parameters} {{}}"), "k"),
        ("template <typename T, int X> __global__ void k(const T* in, T* out, int n, T r) {} constexpr int W = 64; void f() { k<float, W><<<1, 2>>>(a, b, n, r); }".into(), "k<float, 64>"),
        ("template <typename T> __global__ void k(const T* in, T* out, int n, T r) {} void f() { k<<<1, 2>>>(a, b, n, r); }".into(), "k<float>"),
        (format!("template <bool B> __global__ void k{parameters} {{}} auto main() -> int {{ auto f = k<true>; f<<<1, 2>>>(a, b, n, r); }}"), "k<true>"),
        (format!("template <int X> __global__ void k{parameters} {{}} template <int Y> void go() {{ k<Y * 2><<<1, Y>>>(a, b, 9, r); }} int main() {{ go<16>(); }}"), "k<32>"),
        (format!("namespace h {{ template <int X, int Y> struct Tile {{ static constexpr int TX = X; }}; using P = Tile<32, 16>; }} template <class P> __global__ void k{parameters} {{}} template <class P> void go() {{ k<P><<<1, P::TX>>>(a, b, 9, r); }} int main() {{ go<h::Tile<32, 16>>(); go<h::P>(); }}"), "k<h::Tile<32, 16>>"),
        (format!("// grader: kernel=k<64,16>\ntemplate <int X, int Y> __global__ void k{parameters} {{}} void f() {{ k<1, 2><<<1, 2>>>(a, b, n, r); }}"), "k<64, 16>"),
    ];
    for (text, expected) in cases {
        assert_eq!(kernel(&text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn a_directive_wins_and_its_tile_is_never_taken_from_the_block() {
    let text = format!("// grader: block=36x12 shared=512\n{}", main_with("twoStep<<<1, 1>>>(a, b, 7, r);"));
    let launch = launch(&text).expect("a launch");
    assert_eq!((launch.source, launch.line), (LaunchSource::Directive, Some(1)));
    assert_eq!(launch.geometry(2048).map(shape), Ok(([64, 256], [36, 12], 512)));
    assert_eq!(launch.geometry(3).map(shape), Ok(([1, 1], [36, 12], 512)));
}

#[test]
fn a_launch_is_quoted_as_written() {
    let quoted = |statements: &str| launch(&main_with(statements)).expect("a launch").expression.unwrap_or_default();
    assert_eq!(quoted("int n = 2; dim3 g(n), t; twoStep<<<g, dim3(t), 0, 0>>>(a, b, n, r);"), "g, dim3(t), 0");
    assert_eq!(quoted("cudaLaunchConfig_t c{}; cudaLaunchKernelEx(&c, twoStep, a, b, 7, r);"), "&c");
    assert_eq!(quoted("void* v[4]; cudaLaunchKernel((void*)twoStep, 2, 32, v, 0, 0);"), "2, 32");
}

#[test]
fn without_directive_or_launch_the_default_holds() {
    let launch = launch(KERNEL).expect("a launch");
    assert_eq!(launch.source, LaunchSource::Default);
    assert_eq!(launch.geometry(131).map(shape), Ok(USUAL.1));
    assert_eq!(launch.geometry(0).map(shape), Ok(([0, 0], [32, 8], 0)));
}

#[test]
fn what_the_text_does_not_give_is_named_with_the_directive_that_settles_it() {
    let cases = [
        ("int n = 2048; int bx = atoi(argv[2]); twoStep<<<dim3(n / bx), dim3(bx)>>>(a, b, n, r);", "atoi(argv[2])"),
        (
            "int n = 2048; int g, t; cudaOccupancyMaxPotentialBlockSize(&g, &t, twoStep, 0, 0); twoStep<<<g, t>>>(a, b, n, r);",
            "g",
        ),
        (
            "int n = 2048; cudaDeviceProp p; cudaGetDeviceProperties(&p, 0); twoStep<<<p.multiProcessorCount, 256>>>(a, b, n, r);",
            "p",
        ),
        ("int n = 2048; for (int t = 8; t <= 32; t *= 2) twoStep<<<n / t, t>>>(a, b, n, r);", "t"),
        ("int n = 2048; int t = missing; twoStep<<<n / 32, t>>>(a, b, n, r);", "missing"),
        ("int n = 2048; int zero = 0; twoStep<<<n / zero, 32>>>(a, b, n, r);", "n / zero"),
    ];
    for (statements, expected) in cases {
        match fault(&main_with(statements)) {
            LaunchFault::CannotEvaluate { what, settles, line, .. } => {
                assert_eq!((what.as_str(), line), (expected, 2), "{statements}");
                assert_eq!(settles, "// grader: block=32x8 tile=32x8");
            }
            other => panic!("{statements}: {other}"),
        }
    }
}

#[test]
fn launches_that_differ_are_listed_with_their_geometries() {
    let text = main_with("int n = 2048;\ntwoStep<<<n / 32, 32>>>(a, b, n, r);\ntwoStep<<<n / 64, 64>>>(a, b, n, r);\n");
    let fault = fault(&text);
    assert_eq!(
        fault.details(),
        [
            "line 3: <<<n / 32, 32>>> is 64 x 1 blocks of 32 x 1 threads with 0 bytes of dynamic shared memory for n = 2048",
            "line 4: <<<n / 64, 64>>> is 32 x 1 blocks of 64 x 1 threads with 0 bytes of dynamic shared memory for n = 2048"
        ]
    );
}

#[test]
fn a_launch_that_a_known_condition_rules_out_does_not_count() {
    check(
        "by n",
        &main_with(
            "int n = 2048; if (n >= 100) twoStep<<<dim3((n + 29) / 32, (n + 5) / 8), dim3(32, 8)>>>(a, b, n, r); else twoStep<<<1, 1>>>(a, b, n, r);",
        ),
        USUAL.0,
        USUAL.1,
    );
}

#[test]
fn an_impossible_geometry_is_told_in_numbers() {
    let fault = fault(&main_with("int n = 2048; twoStep<<<n / 32, 32, -8>>>(a, b, n, r);"));
    assert!(fault.to_string().contains("comes to -8"), "{fault}");
}

/// One more level than is read, around a value.
fn nested(value: &str) -> String {
    format!("{}{value}{}", "(".repeat(300), ")".repeat(300))
}

#[test]
fn what_is_nested_too_deep_is_unknown_and_no_default() {
    let (deep, launch) = (nested("4"), "twoStep<<<grid, block>>>(a, b, n, r);");
    let many: String = (0..500).map(|k| format!("x{k} = {k}, ")).collect();
    let chain = |sign: &str, value: &str| format!("{}{value}", sign.repeat(300));
    let cases = [
        ("brackets of a variable", format!("int n = 2048; dim3 block(32, 8), grid({deep}, 4); {launch}")),
        ("minus signs", format!("int n = 2048; dim3 block(32, 8), grid({}, 4); {launch}", chain("- ", "4"))),
        ("a value", format!("int n = 2048; dim3 block(32, 8), grid = dim3({deep}, 4); {launch}")),
        ("braces", format!("int n = 2048; dim3 block(32, 8), grid{{{deep}, 4}}; {launch}")),
        ("the launch", format!("int n = 2048; dim3 block(32, 8); twoStep<<<{deep}, block>>>(a, b, n, r);")),
        (
            "a member",
            format!(
                "struct C {{ dim3 grid; C() : grid({deep}, 4) {{}} }}; int n = 2048; dim3 block(32, 8); C c; dim3 grid = c.grid; {launch}"
            ),
        ),
        (
            "a number",
            format!(
                "enum {{ A = 1 {}, B }}; int n = 2048; dim3 block(32, 8), grid(B, 4); {launch}",
                " + 1".repeat(140).repeat(3)
            ),
        ),
        ("many places", format!("int n = 2048; dim3 block(32, 8), grid(4, 4); {many} grid.x = {deep}; {launch}")),
    ];
    for (name, statements) in cases {
        let (structs, statements) = match statements.strip_prefix("struct").or(statements.strip_prefix("enum")) {
            Some(_) => statements.split_once("}; ").map(|(first, rest)| (format!("{first}}};\n"), rest)).unwrap(),
            None => (String::new(), &*statements),
        };
        let text = format!("{structs}{}", main_with(statements));
        match fault(&text) {
            LaunchFault::CannotEvaluate { why, .. } => assert!(!why.is_empty(), "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
    let helper = format!(
        "{KERNEL}dim3 shape(int n) {{ if (n < 0) return dim3(1, 1); return dim3({deep}, 4); return dim3(1, 1); }}\n"
    );
    let text = format!(
        "{helper}void run(float* a, float* b, int n, float r) {{ twoStep<<<shape(n), dim3(32, 8)>>>(a, b, n, r); }}\n"
    );
    assert!(matches!(fault(&text), LaunchFault::CannotEvaluate { .. }));
}

#[test]
fn names_of_numbers_are_what_a_compiler_makes_of_them() {
    let grid = "(n + 29) / 32, (n + 5) / 8";
    let run = |block: &str| format!("int n = 2048; twoStep<<<dim3({grid}), dim3({block})>>>(a, b, n, r);");
    let cases = [
        ("enum { X, Y, DIMS };\nconst int tile[DIMS] = {32, 8};\n", "tile[X], tile[Y]"),
        ("enum class Mode { Fused, Single };\n", "32, Mode::Single == Mode::Fused ? 4 : 8"),
        ("enum { ONE, TWO, WIDE = 32, WIDER };\n", "WIDER - TWO, 8 * TWO"),
        ("#define H 4 + 4\n#define W 8+8\n", "W * 2 + 8, H"),
        (
            "#define VERSION 2\n#define CAT_(a, b) a##b\n#define CAT(a, b) CAT_(a, b)\nconst int W_2 = 32;\n",
            "CAT(W_, VERSION), 8",
        ),
        ("", "32 bitor 0, (1 xor 9) bitand 15"),
    ];
    for (before, block) in cases {
        let text = format!("{before}{}", main_with(&run(block)));
        check(block, &text, USUAL.0, USUAL.1);
    }
    let device = "cudaDeviceProp prop; cudaGetDeviceProperties(&prop, 0);";
    check("warpSize", &main_with(&format!("{device} {}", run("prop.warpSize, 8"))), USUAL.0, USUAL.1);
    let fault = fault(&main_with(&format!("{device} {}", run("prop.maxThreadsPerBlock, 1"))));
    assert!(fault.to_string().contains("depends on the device"), "{fault}");
}
