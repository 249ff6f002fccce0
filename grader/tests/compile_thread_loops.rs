use super::*;

/// heat.cu as rewrite.rs leaves it, with a line marker in front.
fn cut(kernel: &str, call: &str) -> Option<String> {
    let text = format!("# 1 \"heat.cu\"\n{kernel}\n# 1 \"entry_point\"\n");
    let loops = thread_loops(&text, call)?;
    assert_eq!(loops.text.lines().count(), text.lines().count(), "lines move");
    assert!(loops.call.contains(PREFIX), "{}", loops.call);
    let start = loops.text.find(PREFIX).expect("the new function");
    Some(loops.text[start..].to_owned())
}

fn kernel(body: &str) -> Option<String> {
    cut(&format!("void k(const float* in, float* out, int n, float r) {{ {body} }}"), "k")
}

const BARRIER: &str = "hg_sync_threads((static_cast<unsigned>(3) | static_cast<unsigned>(0) << 20));";

#[test]
fn a_kernel_is_cut_at_its_barriers() {
    let text = kernel(&format!(
        "static __thread __attribute__((used)) float t[8]; const int x = threadIdx.x; t[x] = in[x]; {BARRIER} out[x] = t[x];"
    ))
    .unwrap();
    assert_eq!(text.matches("for ( unsigned hg_x").count() + text.matches("for (unsigned hg_x").count(), 2);
    assert_eq!(text.matches("float t [ 8 ]").count(), 1, "{text}");
    assert_eq!(text.matches("const int x = threadIdx . x").count(), 2, "{text}");
    assert!(!text.contains("hg_sync_threads") && !text.contains("hg_kept"), "{text}");
}

#[test]
fn what_may_have_changed_is_kept_and_what_cannot_is_computed_again() {
    let kept = |declarations: &str| {
        let text = kernel(&format!("{declarations} {BARRIER} out[0] = a;")).expect(declarations);
        text.contains("hg_kept")
    };
    for again in [
        "const int a = n - 2;",
        "const int b = n; const int a = b * 2;",
        "constexpr int b = 3; const int a = min(n, b);",
        "auto a = [&](int i) { return in[i]; };",
        "float& a = out[n];",
    ] {
        assert!(!kept(again), "{again}");
    }
    for kept_across in [
        "const float a = in[0];",
        "int a = n;",
        "const float* a = in + n;",
        "static __thread int mode; const int a = mode;",
        "const int a = of_the_file;",
        "float a;",
        "float a[4] = {};",
        "auto a = in[n];",
        "const int a = helper(n);",
        "const int b = in[0] > 1, a = b + 1;",
        "const float v = *in; const float a = v * 2;",
        "int a = n; int& b = a; b += 1;",
        "float& b = out[n]; const float a = b;",
    ] {
        assert!(kept(kept_across), "{kept_across}");
    }
}

#[test]
fn a_return_behind_the_last_barrier_goes_on_with_the_next_thread() {
    let text = kernel(&format!("{BARRIER} if (n < 3) return; auto f = [] {{ return 1; }}; out[0] = f();")).unwrap();
    assert_eq!(text.matches("goto hg_next").count(), 1, "{text}");
    assert_eq!(text.matches("return 1").count(), 1, "{text}");
    assert!(kernel(&format!("if (n < 3) return; {BARRIER} out[0] = 1;")).is_none());
}

#[test]
fn templates_and_namespaces_keep_their_heads() {
    let text = cut(
        "namespace a { template <int W, int H> void k(const float* in, float* out, int n, float r) { out[W] = in[H]; } }",
        "a::k<32, 8>",
    )
    .unwrap();
    assert!(text.starts_with("hg_loops_k ( const float * in"), "{text}");
}

#[test]
fn what_is_in_doubt_is_left_to_coroutines() {
    for body in [
        format!("if (n > 2) {{ {BARRIER} }}"),
        format!("for (int i = 0; i < 2; ++i) {{ {BARRIER} }}"),
        format!("if (n > 2) {BARRIER} out[0] = 1;"),
        "hg_warp_exchange(~0u, 0, 1);".to_owned(),
        "static int calls; out[0] = ++calls;".to_owned(),
        "goto end; end: ;".to_owned(),
        "asm(\"\");".to_owned(),
        format!("float& a = *pick(out); {BARRIER} a = 1;"),
        format!("n -= 2; {BARRIER} out[n] = 1;"),
        "hg_sync_threads(3), out[0] = 1;".to_owned(),
        format!("int a = n; int* p = &a; {BARRIER} *p = 3;"),
        format!("float a[2] = {{}}; float* p = a; {BARRIER} p[0] = 3;"),
        format!("struct {{ int x; }} st = {{0}}; {BARRIER} out[0] = st.x;"),
        format!("enum M {{ A, B }} mode = A; {BARRIER} out[0] = mode;"),
        format!("const int w = n; typedef float Row[sizeof(w)]; {BARRIER} out[0] = 1;"),
        format!("auto f = [](int& x) {{ x = 2; }}; f(n); {BARRIER} out[n] = 1;"),
    ] {
        assert!(kernel(&body).is_none(), "{body}");
    }
}

/// A kernel that calls `help`.
fn with(helper: &str) -> Option<String> {
    cut(&format!("{helper} void k(const float* in, float* out, int n, float r) {{ out[0] = help(n); }}"), "k")
}

#[test]
fn helpers_that_know_their_thread_read_the_global_variable() {
    let local = |helper: &str| with(helper).expect(helper).contains("const uint3 threadIdx");
    assert!(local("int help(int n) { return n + 1; }"));
    assert!(local("void other() { use(threadIdx.x); } int help(int n) { return n; }"));
    assert!(!local("int deep(int n) { return threadIdx.x; } int help(int n) { return deep(n); }"));
    assert!(!local("auto help = [](int n) { return n + threadIdx.x; };"));
}

#[test]
fn helpers_that_wait_or_keep_a_state_are_left_to_coroutines() {
    assert!(with("int help(int& n) { return n = 2; }").is_none());
    assert!(with("int help(const int& n) { return n + 2; }").is_some());
    assert!(with("int help(int n) { hg_sync_threads(3); return n; }").is_none());
    assert!(with("int help(int n) { static int calls; return ++calls; }").is_none());
}

/// A kernel that waits through what CUDA's headers offer, cut; with the number of its intervals.
fn waiting(body: &str) -> Option<(usize, String)> {
    let text = cut(
        &format!("namespace cg = cooperative_groups; void k(const float* in, float* out, int n, float r) {{ {body} }}"),
        "k",
    )?;
    Some((text.matches("unsigned hg_thread = 0").count(), text))
}

#[test]
fn a_block_waits_in_many_spellings() {
    const BLOCK: &str = "auto g = cg::this_thread_block();";
    for (declaration, barrier, landing) in [
        (BLOCK, "g.sync();", ""),
        (BLOCK, "cg::sync(g);", ""),
        ("const cg::thread_block g = cooperative_groups::this_thread_block();", "g.sync();", ""),
        ("", "cg::this_thread_block().sync();", ""),
        ("", "cg::sync(cg::this_thread_block());", ""),
        (BLOCK, "cg::wait(g);", "hg_async_wait(0);"),
        (BLOCK, "cg::wait_prior<2>(g);", "hg_async_wait(2);"),
        ("static __thread bar_t b;", "b.arrive_and_wait();", "b.hg_land();"),
        ("static __thread bar_t b;", "b.wait(b.arrive());", "b.hg_land();"),
        ("static __thread bar_t b; auto t = b.arrive();", "b.wait(std::move(t));", "b.hg_land();"),
        ("auto p = cuda::make_pipeline(g, &state);", "p.consumer_wait();", "p.hg_land();"),
    ] {
        let (intervals, text) = waiting(&format!("{declaration} out[0] = 1; {barrier} out[1] = 2;")).expect(barrier);
        assert_eq!(intervals, 2, "{barrier}: {text}");
        assert!(!text.contains("const uint3 threadIdx"), "{barrier}: headers read the variable: {text}");
        let first = &text[..text.rfind("unsigned hg_thread = 0").unwrap()];
        assert!(first.contains(landing), "{barrier}: {text}");
    }
}

#[test]
fn what_is_no_barrier_of_the_block_is_no_cut() {
    for statement in [
        "tile.sync();",
        "auto g = cg::tiled_partition<32>(cg::this_thread_block()); g.sync();",
        "auto g = cg::this_thread_block(); sync(g);",
        "auto p = cuda::make_pipeline(); p.consumer_wait();",
        "b.wait(pick(t));",
        "auto g = cg::this_thread_block(); if (n > 2) g.sync();",
        "auto g = cg::this_thread_block(); g.sync(), out[0] = 1;",
        "auto g = cg::this_thread_block(); cg::wait(h);",
    ] {
        let cut = waiting(&format!("{statement} out[1] = 2;"));
        assert!(cut.is_none_or(|(intervals, _)| intervals == 1), "{statement}");
    }
}

#[test]
fn shuffles_are_values_laid_down_before_a_cut_and_read_behind_it() {
    let (intervals, text) = waiting(
        "float u = in[0]; const float w = __shfl_up_sync(~0u, u, 1) + __shfl_xor_sync(~0u, u + 1, 4, 8); out[0] = w;",
    )
    .expect("shuffles");
    assert_eq!(intervals, 2, "{text}");
    let (before, behind) = text.split_at(text.rfind("unsigned hg_thread = 0").unwrap());
    for gives in ["hg_warp_gives < 0 > ( hg_thread , ~ 0u , u )", "hg_warp_gives < 1 > ( hg_thread , ~ 0u , u + 1 )"] {
        assert!(before.contains(gives), "{gives}: {text}");
    }
    assert!(behind.contains("hg_lane_xor ( hg_thread & 31u , 4 , 8 )"), "{text}");
    assert!(!text.contains("__shfl"), "{text}");
    // A value with an effect has it once.
    let (_, text) = waiting("out[0] = __shfl_up_sync(~0u, pull(), 1);").expect("a call");
    assert_eq!(text.matches("pull ( )").count(), 2, "{text}");
    assert!(text.contains("decltype ( pull ( ) )"), "{text}");
    let (intervals, text) = waiting("out[0] = 1; __syncwarp(); out[1] = 2;").expect("a warp's barrier");
    assert_eq!((intervals, text.contains("hg_warp_whole ( )")), (2, true), "{text}");
}

#[test]
fn shuffles_in_doubt_are_left_as_they_are() {
    for statement in [
        "if (n > 2) out[0] = __shfl_up_sync(~0u, in[0], 1);",
        "for (int i = 0; i < 2; ++i) out[i] = __shfl_up_sync(~0u, in[i], 1);",
        "out[0] = n > 2 ? __shfl_up_sync(~0u, in[0], 1) : 0;",
        "out[0] = n > 2 && __shfl_up_sync(~0u, n, 1);",
        "int i = 0; out[0] = __shfl_up_sync(~0u, i++, 1);",
        "float a = 1, b = __shfl_up_sync(~0u, a, 1);",
        "float a = 0; out[0] = __shfl_up_sync(~0u, a = in[0], 1);",
        "auto f = [&] { return __shfl_up_sync(~0u, in[0], 1); }; out[0] = f();",
        "out[0] = __shfl_up_sync(~0u, __shfl_up_sync(~0u, in[0], 1), 1);",
        "if (n > 2) __syncwarp();",
    ] {
        let cut = waiting(statement);
        assert!(cut.is_none_or(|(intervals, text)| intervals == 1 && !text.contains("hg_warp_")), "{statement}");
    }
}

#[test]
fn objects_and_pointers_to_arrays_live_across_barriers() {
    let text = kernel(&format!(
        "static __thread float t[8]; View<P> a(t); float (*rows)[4] = as_rows(t); {BARRIER} out[0] = a(1) + rows[0][1];"
    ))
    .expect("both are kept");
    assert!(text.contains("View < P >& a = hg_kept<0, View < P >>()[hg_thread];"), "{text}");
    assert!(text.contains("hg_spelled < float ( * ) [ 4 ] >  rows ; __builtin_memcpy(&rows"), "{text}");
    for refused in [
        "const int x = threadIdx.x; Ref a(x);",
        "float row[4] = {}; View a(row);",
        "float row[4][4] = {}; float (*a)[4] = row;",
    ] {
        assert!(kernel(&format!("{refused} {BARRIER} out[0] = a[0];")).is_none(), "{refused}");
    }
    assert!(kernel(&format!("const int x = threadIdx.x; float2 a(x, x); {BARRIER} out[0] = a.x;")).is_some());
}

#[test]
fn unfinished_text_is_left_alone() {
    for text in ["void k(", "void k(int a) {", "k", "", "{{{{", "void k() { ( }"] {
        assert!(cut(text, "k").is_none(), "{text}");
    }
}
