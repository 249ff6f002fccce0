//! Remarks on programs of a few lines, and on the shipped one with a fault planted in it.

use super::*;

const KERNEL: &str = "constexpr int kN = 2048;\n\
    __global__ void two(const float* in, float* out, int n, float r) { if (BOUND > 3) out[0] = in[0]; }\n";

fn program(body: &str, bound: &str) -> (Program, Kernel) {
    let text = format!("{}void run() {{\n{body}\n}}\n", KERNEL.replace("BOUND", bound));
    (Program::new(&text), Kernel { name: "two".to_owned(), call: "two".to_owned(), line: 2 })
}

fn faults(body: &str) -> Vec<HostFault> {
    let (program, kernel) = program(body, "n");
    host_faults(&program, &kernel).into_iter().map(|remark| remark.fault).collect()
}

#[test]
fn a_number_in_place_of_n_is_found_unless_the_launch_hands_it_over() {
    let line = |body: &str, bound: &str| {
        let (program, kernel) = program(body, bound);
        written_n(&program, &kernel, 2048)
    };
    assert_eq!(line("two<<<1, 2>>>(a, b, n, r);", "kN - 1"), Some(2));
    assert_eq!(line("two<<<1, 2>>>(a, b, n, r);", "2048"), Some(2));
    assert_eq!(line("two<<<1, 2>>>(a, b, kN, r);", "kN - 1"), None);
    assert_eq!(line("two<<<1, 2>>>(a, b, n, r);", "n + 1024"), None);
    assert_eq!(line("two<<<1, 2>>>(a, b, n, r);", "(n < 2047 ? 1 : 2)"), Some(2));
    assert_eq!(line("two<<<1, 2>>>(a, b, n, r);", "(2046 >= n ? 1 : 2)"), Some(2));
    assert_eq!(
        line("two<<<1, 2>>>(a, b, n, r);", "f<2047>(n) + 2046 + n"),
        None,
        "an argument of a template, and no bound"
    );
    assert_eq!(line("two<<<1, 2>>>(a, b, n, r);", "(n == kN) + 2"), None);
}

#[test]
fn an_r_beyond_a_quarter_is_named_where_it_is_one_number() {
    assert_eq!(faults("const float r = 0.3f;\ntwo<<<1, 2>>>(a, b, n, r);"), [HostFault::UnstableR]);
    assert_eq!(faults("two<<<1, 2>>>(a, b, n, 0.26f);"), [HostFault::UnstableR]);
    assert!(faults("const float r = 0.25f;\ntwo<<<1, 2>>>(a, b, n, r);").is_empty());
    assert!(faults("float r = 0.3f;\nr = 0.2f;\ntwo<<<1, 2>>>(a, b, n, r);").is_empty());
    assert!(faults("for (float r : {0.24f, 0.26f}) two<<<1, 2>>>(a, b, n, r);").is_empty());
}

#[test]
fn an_unstable_r_beside_a_stable_one_is_there_to_be_shown() {
    assert!(faults("two<<<1, 2>>>(a, b, n, 0.24f);\ntwo<<<1, 2>>>(a, b, n, 0.26f);").is_empty());
}

const ALLOCATED: &str = "float *a, *b; cudaMalloc(&a, 4 * n); cudaMalloc(&b, 4 * n);\n\
    cudaMemcpy(a, u.data(), 4 * n, cudaMemcpyHostToDevice);\n";

#[test]
fn a_grid_that_nothing_fills_is_named() {
    let run = "for (int i = 0; i < 9; ++i) { two<<<1, 2>>>(a, b, n, r); std::swap(a, b); }\ncudaFree(b);";
    assert_eq!(faults(&format!("{ALLOCATED}{run}")), [HostFault::OneBufferUnfilled]);
    let filled = "cudaMemcpy(b, a, 4 * n, cudaMemcpyDeviceToDevice);\n";
    assert!(faults(&format!("{ALLOCATED}{filled}{run}")).is_empty());
    let elsewhere = "fill(b, n);\n";
    assert!(faults(&format!("{ALLOCATED}{elsewhere}{run}")).is_empty());
    let aliased = "float* c = b; fill(c, n);\n";
    assert!(faults(&format!("{ALLOCATED}{aliased}{run}")).is_empty());
}

#[test]
fn a_copy_after_every_launch_is_named_and_one_under_a_condition_is_not() {
    let looped = |copy: &str| faults(&format!("for (int i = 0; i < 9; ++i) {{ two<<<1, 2>>>(a, b, n, r); {copy} }}"));
    let copy = "cudaMemcpy(u, b, 4 * n, cudaMemcpyDeviceToHost);";
    assert_eq!(looped(copy), [HostFault::CopyEveryStep]);
    assert!(looped(&format!("if (i % 100 == 0) {{ {copy} }}")).is_empty());
    assert!(looped(&format!("if (i % 100 == 0) {copy}")).is_empty());
    assert!(faults(&format!("two<<<1, 2>>>(a, b, n, r); {copy}")).is_empty());
}

/// Remarks on a launch function of the lesson's form.
fn handed(function: &str) -> Vec<Unlike> {
    let text = format!("{}{function}", KERNEL.replace("BOUND", "n"));
    let program = std::sync::Arc::new(Program::new(&text));
    let kernel = Kernel { name: "two".to_owned(), call: "two".to_owned(), line: 2 };
    let launch = crate::submission::find_launch(&program, &kernel).expect("a launch");
    let unlike = |remark: Remark| match remark.fault {
        HostFault::LaunchUnlike(unlike) => unlike,
        other => panic!("{other:?}"),
    };
    all(&program, &kernel, Some(&launch), 2048).into_iter().map(unlike).collect()
}

#[test]
fn a_launch_that_hands_over_other_things_than_its_function_is_given_is_named() {
    let of = |body: &str| handed(&format!("void go(const float* in, float* out, int n, float r) {{ {body} }}\n"));
    let table = [
        ("two<<<64, 256>>>(out, (float*)in, n, r);", Unlike::SwappedGrids),
        ("two<<<64, 256>>>(out, const_cast<float*>(in), n, r);", Unlike::SwappedGrids),
        ("two<<<64, 256>>>(in + 1, out, n, r);", Unlike::MovedGrid),
        ("two<<<64, 256>>>(in, &out[n], n, r);", Unlike::MovedGrid),
        ("two<<<64, 256>>>(in, out, n, 0.5f * r);", Unlike::OtherR),
        ("two<<<64, 256>>>(in, out, n, (r + r) / 4);", Unlike::OtherR),
        ("two<<<64, 256>>>(in, out, n, r);\ntwo<<<64, 256>>>(in, out, n, r);", Unlike::Twice),
        ("if (n != 2048) two<<<64, 256>>>(in, out, n, r);", Unlike::Skipped),
        ("static int calls = 0; two<<<++calls > 3 ? 1 : 64, 256>>>(in, out, n, r);", Unlike::ByCalls),
    ];
    for (body, unlike) in table {
        assert_eq!(of(body), [unlike], "{body}");
    }
    let counted = "int calls = 0;\nvoid go(const float* in, float* out, int n, float r) {\n\
                   ++calls;\nconst dim3 block(32, 8), grid(calls > 3 ? 1 : 64, 256);\n\
                   two<<<grid, block>>>(in, out, n, r);\n}\n";
    assert_eq!(handed(counted), [Unlike::ByCalls]);
}

#[test]
fn a_launch_that_may_be_meant_so_gets_no_remark() {
    let plain = [
        // The lesson's, in other names, with a guard that holds at 2048.
        "void go(const float* a, float* b, int n, float r) { if (n > 2) two<<<64, 256>>>(a, b, n, r); }",
        "void go(const float* a, float* b, int n, float r) { if (n < 64) two<<<1, 256>>>(a, b, n, r); else \
         two<<<64, 256>>>(a, b, n, r); }",
        // r is worked out from what the function is given.
        "void go(const float* in, float* out, int n, float dt) { two<<<64, 256>>>(in, out, n, 0.5f * dt); }",
        // Another function's grids are its own affair: two timesteps there and back, one allocation for both.
        "void go(float* a, float* b, int n, float r) { two<<<64, 256>>>(a, b, n, r); two<<<64, 256>>>(b, a, n, r); }",
        "void go(float* both, int now, int n, float r) { two<<<64, 256>>>(both + now * n * n, both + !now * n * n, n, r); }",
        "void go(float* a, float* b, int n, float r) { two<<<64, 256>>>(a, b, n, r); /* warm up */ two<<<64, 256>>>(a, b, n, r); }",
        "int main() { float *d_a, *d_b; const int n = 2048; const float r = 0.2f; for (int i = 0; i < 500; ++i) { \
         two<<<64, 256>>>(d_a, d_b, n, r); std::swap(d_a, d_b); } }",
        // Measured, not launched twice.
        "float go(const float* in, float* out, int n, float r) { two<<<64, 256>>>(in, out, n, r); \
         two<<<64, 256>>>(in, out, n, r); return 0; }",
        "void go(const float* in, float* out, int n, float r) { two<<<64, 256>>>(in, out, n, r); \
         for (int i = 0; i < 9; ++i) two<<<64, 256>>>(in, out, n, r); }",
        // Parameters that mean something else by then.
        "void go(const float* in, float* out, int n, float r) { r = 0.5f * r; two<<<64, 256>>>(in, out, n, 2 * r); }",
        "void go(const float* in, float* out, int n, float r) { two<<<64, 256>>>(in + 0, out, n, 1.0f * r); }",
        // Counted, and nothing depends on it.
        "int calls = 0; void go(const float* in, float* out, int n, float r) { ++calls; two<<<64, 256>>>(in, out, n, r); }",
    ];
    for text in plain {
        assert_eq!(handed(text), [], "{text}");
    }
}

#[test]
fn a_variable_that_only_host_code_fills_is_found_where_the_kernel_reads_it() {
    let filled = |body: &str, host: &str| {
        let text = format!(
            "__constant__ float c;\n__device__ float f(float u) {{ return c * u; }}\n\
             __global__ void two(const float* in, float* out, int n, float r) {{ {body} }}\n\
             void run(float r) {{\n{host}\n}}\n"
        );
        let kernel = Kernel { name: "two".to_owned(), call: "two".to_owned(), line: 3 };
        filled_by_host(&Program::new(&text), &kernel)
    };
    let copy = "CHECK(cudaMemcpyToSymbol(c, &r, sizeof r));";
    let found = Some(Filled { name: "c".to_owned(), line: 5 });
    assert_eq!(filled("out[0] = c * in[0];", copy), found);
    assert_eq!(filled("out[0] = f(in[0]);", copy), found, "by way of a helper");
    assert_eq!(filled("out[0] = r * in[0];", copy), None, "the kernel does not read it");
    assert_eq!(filled("out[0] = c * in[0];", "use(r);"), None, "nobody fills it");
}

#[test]
fn a_setting_of_the_shipped_program_that_was_left_over_is_named() {
    let with = |settings: &str| {
        let text = format!("{}{settings}void run() {{ two<<<1, 2>>>(a, b, n, r); }}\n", KERNEL.replace("BOUND", "n"));
        let kernel = Kernel { name: "two".to_owned(), call: "two".to_owned(), line: 2 };
        host_faults(&Program::new(&text), &kernel)
    };
    let settings =
        "constexpr Launch kTwoStepLaunch = nullptr; // launchTwoStep, say\nconstexpr int kTwoStepWordsRead = 0;\n";
    let line = 1 + KERNEL.lines().count() as u32;
    assert_eq!(with(settings), [Remark { fault: HostFault::LaunchNotSet, line }]);
    let told = settings.replace("nullptr", "launchTwoStep");
    assert_eq!(with(&told), [Remark { fault: HostFault::WordsNotSet, line: line + 1 }]);
    assert!(with(&told.replace("= 0", "= 432")).is_empty());
    assert!(with("").is_empty());
}

/// The shipped program with a kernel, its launch and its settings filled in, pieces of the text replaced.
fn shipped(replaced: &[(&str, &str)]) -> String {
    let kernel = "__global__ void heatTwoStep(const float* in, float* out, int n, float r) { out[0] = in[0] + r; }\n\
        void launchTwoStep(const float* in, float* out, int n, float r) {\n\
        heatTwoStep<<<dim3(64, 256), dim3(32, 8)>>>(in, out, n, r);\n}\n";
    let settings = [
        ("// 3. Tell main about it", &*format!("{kernel}// 3. Tell main about it")),
        ("kTwoStepLaunch = nullptr", "kTwoStepLaunch = launchTwoStep"),
        ("kTwoStepWordsRead = 0", "kTwoStepWordsRead = 432"),
    ];
    let text = include_str!("../../reference/heat.cu").to_owned();
    replaced_in(replaced_in(text, &settings), replaced)
}

fn replaced_in(mut text: String, replaced: &[(&str, &str)]) -> String {
    for (from, to) in replaced {
        assert!(text.contains(from), "{from:?} is not there");
        text = text.replace(from, to);
    }
    text
}

/// Each fault that is found in a text, with its line as it is written.
fn found(text: &str) -> Vec<(HostFault, String)> {
    found_of("heatTwoStep", text)
}

/// The same for a kernel of another name.
fn found_of(kernel: &str, text: &str) -> Vec<(HostFault, String)> {
    let kernel = Kernel { name: kernel.to_owned(), call: kernel.to_owned(), line: 1 };
    let line = |line: u32| text.lines().nth(line as usize - 1).unwrap_or_default().trim().to_owned();
    let remarks = host_faults(&Program::new(text), &kernel);
    remarks.into_iter().map(|remark| (remark.fault, line(remark.line))).collect()
}

/// The one fault found, and the beginning of its line.
fn finds(text: &str, fault: HostFault, begins: &str) {
    let found = found(text);
    let named = matches!(found.as_slice(), [(one, line)] if *one == fault && line.starts_with(begins));
    assert!(named, "{found:?} is not {fault:?} at {begins:?}\n{text}");
}

fn finds_nothing(text: &str) {
    let found = found(text);
    assert!(found.is_empty(), "{found:?}\n{text}");
}

/// The call with which the shipped program runs the learner's kernel for long.
const ADVANCE: &str = "for (int i = 0; i < launches; ++i) buffers.advance(launch, kR);";

/// The line that fills the second buffer.
const SECOND: &str = "        CUDA_CHECK(cudaMemcpy(next, u.data(), bytes(), cudaMemcpyHostToDevice));\n";

#[test]
fn the_shipped_program_with_a_kernel_gets_no_remark() {
    finds_nothing(&shipped(&[]));
}

#[test]
fn the_submissions_and_right_fixtures_get_the_remarks_that_their_verdicts_list() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for folder in ["submissions", "fixtures/right"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder").flatten() {
            let Ok(text) = std::fs::read_to_string(entry.path().join("heat.cu")) else { continue };
            let verdict =
                std::fs::read_to_string(entry.path().join("verdict.json")).unwrap_or_else(|_| "{}".to_owned());
            let verdict: serde_json::Value = serde_json::from_str(&verdict).expect("a verdict");
            let listed = verdict.get("remarks").and_then(|all| all.as_array()).cloned().unwrap_or_default();
            let program = std::sync::Arc::new(Program::new(&text));
            let Ok(kernel) = crate::submission::find_kernel(&program) else { continue };
            seen += 1;
            let code = |fault| match fault {
                HostFault::OneBufferUnfilled => "one-buffer-unfilled",
                HostFault::UnstableR => "unstable-r",
                HostFault::CopyEveryStep => "copy-every-step",
                HostFault::LaunchNotSet | HostFault::WordsNotSet => "settings-left-over",
                HostFault::LaunchUnlike(_) => "launch-unlike",
            };
            let remarks = host_faults(&program, &kernel);
            let codes: Vec<&str> = remarks.iter().map(|remark| code(remark.fault)).collect();
            if codes != listed {
                wrong.push(format!("{}: {remarks:?}", entry.path().display()));
            }
        }
    }
    assert!(wrong.is_empty() && seen > 50, "{seen} programs\n{}", wrong.join("\n"));
}

#[test]
fn the_shipped_constant_for_r_is_followed_to_the_launch() {
    finds(&shipped(&[("kR = 0.2f;", "kR = 0.3f;")]), HostFault::UnstableR, "constexpr float kR = 0.3f;");
    finds_nothing(&shipped(&[("kR = 0.2f;", "kR = 0.25f;")]));
    // What is read from elsewhere is not known.
    finds_nothing(&shipped(&[
        ("constexpr float kR = 0.2f;", "float kR = 0.3f;"),
        ("int main() {", "int main() {\n    kR = std::atof(std::getenv(\"R\"));"),
    ]));
}

#[test]
fn a_template_kernel_of_a_filled_in_program_is_followed() {
    let text = include_str!("../../submissions/amara/heat.cu").to_owned();
    let faults = |replaced: &[(&str, &str)]| {
        let found = found_of("heatTwice", &replaced_in(text.clone(), replaced));
        found.into_iter().map(|(fault, _)| fault).collect::<Vec<_>>()
    };
    assert!(faults(&[]).is_empty());
    assert_eq!(faults(&[("kR = 0.2f;", "kR = 0.3f;")]), [HostFault::UnstableR]);
    assert_eq!(faults(&[(SECOND, "")]), [HostFault::OneBufferUnfilled]);
    let copied = ADVANCE.replace("buffers", "{ buffers").replace("kR);", "kR); buffers.copyTo(last); }");
    assert_eq!(faults(&[(ADVANCE, &copied)]), [HostFault::CopyEveryStep]);
    // All at once, by the lines of the text.
    let all = [("kR = 0.2f;", "kR = 0.3f;"), (SECOND, ""), (ADVANCE, &*copied)];
    assert_eq!(faults(&all), [HostFault::UnstableR, HostFault::OneBufferUnfilled, HostFault::CopyEveryStep]);
}

#[test]
fn an_r_handed_to_advance_is_followed_to_the_launch() {
    let with = |r: &str| shipped(&[(ADVANCE, &ADVANCE.replace("kR", r))]);
    finds(&with("0.3f"), HostFault::UnstableR, "for (int i = 0; i < launches; ++i) buffers.advance(launch, 0.3f);");
    finds_nothing(&with("0.25f"));
    finds_nothing(&with("r"));
    finds_nothing(&with("launches > 9 ? 0.3f : 0.2f"));
    let named = ADVANCE.replace("for", "const float r = 0.3f;\n        for").replace("kR", "r");
    finds(&shipped(&[(ADVANCE, &named)]), HostFault::UnstableR, "for (int i = 0; i < launches; ++i) buffers.advance");
    // The tile's r is no fault of the learner's.
    finds_nothing(&shipped(&[("buffers.advance(launchTiled, kR)", "buffers.advance(launchTiled, 0.3f)")]));
}

#[test]
fn an_unstable_r_of_the_shipped_program_is_there_to_be_shown() {
    // The lesson's part about stability, with the learner's kernel in it.
    let part = ("buffers.advance(launchTiled, r);", "buffers.advance(launchTwoStep, r);");
    finds_nothing(&shipped(&[part]));
    finds_nothing(&shipped(&[part, ("kR = 0.2f;", "kR = 0.3f;")]));
    let both = format!("{ADVANCE}\n        buffers.advance(launch, 0.3f);");
    finds_nothing(&shipped(&[(ADVANCE, &both)]));
}

#[test]
fn a_kernel_in_the_shipped_tables_is_followed_too() {
    let table = ("{\"heatStepTiled\", launchTiled}}", "{\"heatStepTiled\", launchTiled}, {\"two\", launchTwoStep}}");
    finds_nothing(&shipped(&[table]));
    finds(&shipped(&[table, ("kR = 0.2f;", "kR = 0.3f;")]), HostFault::UnstableR, "constexpr float kR = 0.3f;");
    // Unknown where the table is used in any other way.
    let read = ("    double copyMs = 0.0;", "    double copyMs = kernels[0].first[0];");
    finds_nothing(&shipped(&[table, read, ("kR = 0.2f;", "kR = 0.3f;")]));
}

#[test]
fn the_second_buffer_left_out_of_fill_is_named() {
    let first = "CUDA_CHECK(cudaMemcpy(now, u.data()";
    finds(&shipped(&[(SECOND, "")]), HostFault::OneBufferUnfilled, first);
    let copied = "        CUDA_CHECK(cudaMemcpy(next, now, bytes(), cudaMemcpyDeviceToDevice));\n";
    finds_nothing(&shipped(&[(SECOND, copied)]));
    let looped = "        for (float* grid : {now, next})\n            CUDA_CHECK(cudaMemcpy(grid, u.data(), \
        bytes(), cudaMemcpyHostToDevice));\n";
    finds_nothing(&shipped(&[(SECOND, looped)]));
    // Filled from outside.
    let outside = "Buffers buffers(kN);\n    cudaMemcpy(buffers.next, initial.data(), buffers.bytes(), \
        cudaMemcpyHostToDevice);";
    finds_nothing(&shipped(&[(SECOND, ""), ("Buffers buffers(kN);", outside)]));
    let lent = "size_t bytes() const { return cellCount(n) * sizeof(float); }\n    float* other() { return next; }";
    let bytes = "size_t bytes() const { return cellCount(n) * sizeof(float); }";
    finds_nothing(&shipped(&[(SECOND, ""), (bytes, lent)]));
}

#[test]
fn zeros_in_the_second_buffer_are_named_where_the_walls_are_not_0() {
    let zeros = "        CUDA_CHECK(cudaMemset(next, 0, bytes()));\n";
    finds(&shipped(&[(SECOND, zeros)]), HostFault::OneBufferUnfilled, "CUDA_CHECK(cudaMemset(next, 0");
    let walls = ["u[i] = 1.0f;", "= 0.75f;", "= 0.5f; ", "= 0.25f;"];
    let cold = ["u[i] = 0.0f;", "= 0.0f;", "= 0.0f; ", "= 0.0f;"];
    let cold: Vec<(&str, &str)> = walls.into_iter().zip(cold).chain([(SECOND, zeros)]).collect();
    let text = shipped(&cold).replace("r <= 0.0f;", "r <= 0.25f;");
    finds_nothing(&text);
    // Both zeroed and neither filled: the ring is 0.
    let first = SECOND.replace("next", "now");
    finds_nothing(&shipped(&[(SECOND, zeros), (&first, &zeros.replace("next", "now"))]));
}

#[test]
fn a_copy_beside_advance_is_named_where_it_is_in_the_same_loop() {
    let with = |loop_body: &str| shipped(&[(ADVANCE, loop_body)]);
    let head = "for (int i = 0; i < launches; ++i) {\n            buffers.advance(launch, kR);\n            ";
    finds(
        &with(&format!("{head}buffers.copyTo(last);\n        }}")),
        HostFault::CopyEveryStep,
        "buffers.copyTo(last);",
    );
    let direct = "CUDA_CHECK(cudaMemcpy(last.data(), buffers.now, buffers.bytes(), cudaMemcpyDeviceToHost));";
    finds(&with(&format!("{head}{direct}\n        }}")), HostFault::CopyEveryStep, "CUDA_CHECK(cudaMemcpy(last");
    finds_nothing(&with(&format!("{ADVANCE}\n        buffers.copyTo(last);")));
    finds_nothing(&with(&format!("{head}if (i % 100 == 0) buffers.copyTo(last);\n        }}")));
    finds_nothing(&with(&format!("{head}if (i % 100 == 0) {{ buffers.copyTo(last); }}\n        }}")));
    finds_nothing(&with(&format!("{head}if (i % 100) continue;\n            buffers.copyTo(last);\n        }}")));
    finds_nothing(&with(&format!("{head}i % 100 == 0 && check(buffers);\n        }}")));
    finds_nothing(&with(&format!("{head}buffers.copyTo(last);\n            buffers.fill(initial);\n        }}")));
    // Another object's grid, and a number.
    finds_nothing(&with(&format!("{head}other.copyTo(last);\n        }}")));
    finds_nothing(&with(&format!("{head}cudaMemcpy(&most, largest, 4, cudaMemcpyDeviceToHost);\n        }}")));
    // In advance itself.
    let inside = "std::swap(now, next);\n        CUDA_CHECK(cudaMemcpy(kept, now, bytes(), cudaMemcpyDeviceToHost));";
    finds(
        &shipped(&[("std::swap(now, next);\n    }", &format!("{inside}\n    }}"))]),
        HostFault::CopyEveryStep,
        "CUDA_CHECK(cudaMemcpy(kept",
    );
    // The lesson's part about copies shows what they cost.
    let policy = "if (every > 0 && step % every == 0) buffers.copyTo(last);";
    finds_nothing(&shipped(&[(policy, "buffers.copyTo(last);")]));
}

/// A program of a learner's own, whose launch is in a function.
fn own(main: &str) -> String {
    format!(
        "__global__ void heatTwoStep(const float* in, float* out, int n, float r) {{ out[0] = in[0]; }}\n\
        void launch(const float* a, float* b, int n, float r) {{ heatTwoStep<<<n / 32, 32>>>(a, b, n, r); }}\n\
        int main() {{\n    const int n = 2048;\n    const size_t bytes = 4 * n * n;\n    const float r = 0.2f;\n\
        std::vector<float> u(n * n);\n\
        for (int i = 0; i < n; ++i) u[i] = 1.0f;\n\
        float *a, *b;\n    cudaMalloc(&a, bytes);\n    cudaMalloc(&b, bytes);\n{main}\n}}\n"
    )
}

const BOTH: &str = "cudaMemcpy(a, u.data(), bytes, cudaMemcpyHostToDevice);\n\
    cudaMemcpy(b, u.data(), bytes, cudaMemcpyHostToDevice);\n";
const LOOP: &str = "for (int i = 0; i < 500; ++i) {\n    launch(a, b, n, r);\n    std::swap(a, b);\n}\n";
const BACK: &str = "cudaMemcpy(u.data(), a, bytes, cudaMemcpyDeviceToHost);\n";

#[test]
fn an_own_main_is_told_the_r_that_it_hands_to_its_launch_function() {
    let with = |r: &str| own(&format!("{BOTH}{}{BACK}", LOOP.replace("n, r)", &format!("n, {r})"))));
    finds_nothing(&with("r"));
    finds_nothing(&with("0.25f"));
    finds(&with("0.3f"), HostFault::UnstableR, "launch(a, b, n, 0.3f);");
    finds(&with("r").replace("r = 0.2f", "r = 0.3f"), HostFault::UnstableR, "launch(a, b, n, r);");
    let variable = with("r").replace("const float r = 0.2f", "float r = 0.3f");
    finds(&variable, HostFault::UnstableR, "launch(a, b, n, r);");
    finds_nothing(&variable.replace("float *a, *b;", "float *a, *b; read(argv, r);"));
    // Two calls, one of them stable; and an r that is worked out.
    let twice = LOOP.replace("n, r);", "n, 0.3f);\n    launch(b, a, n, 0.2f);");
    finds_nothing(&own(&format!("{BOTH}{twice}{BACK}")));
    finds_nothing(&with("0.3f * r"));
    // A function that has two bodies, and a parameter that is changed.
    let overloaded = format!("{}void launch(float* a) {{}}\n", with("0.3f"));
    finds_nothing(&overloaded);
    finds_nothing(&with("0.3f").replace("{ heatTwoStep<<<", "{ if (r > 0.25f) r = 0.25f; heatTwoStep<<<"));
    // Through two functions, a default, and a template.
    let run = "void run(float* a, float* b, float r = 0.3f) { for (int i = 0; i < 9; ++i) launch(a, b, 2048, r); }\n";
    let through = |call: &str| own(&format!("{BOTH}{call}\n{BACK}")).replace("int main", &format!("{run}int main"));
    finds(&through("run(a, b);"), HostFault::UnstableR, "void run(");
    finds(&through("run(a, b, 0.4f);"), HostFault::UnstableR, "run(a, b, 0.4f);");
    finds_nothing(&through("run(a, b, 0.2f);"));
    let template = with("0.3f")
        .replace("launch(a, b, n", "launch<32>(a, b, n")
        .replace("void launch", "template <int T>\nvoid launch");
    let template = template.replace("heatTwoStep<<<", "heatTwoStep<T><<<");
    finds(&template, HostFault::UnstableR, "launch<32>(a, b, n, 0.3f);");
}

#[test]
fn an_own_main_is_told_the_grid_that_it_hands_over_unfilled() {
    let with =
        |fill: &str| own(&format!("cudaMemcpy(a, u.data(), bytes, cudaMemcpyHostToDevice);\n{fill}{LOOP}{BACK}"));
    finds(&with(""), HostFault::OneBufferUnfilled, "launch(a, b, n, r);");
    finds(&with("cudaMemset(b, 0, bytes);\n"), HostFault::OneBufferUnfilled, "cudaMemset(b");
    // A hot spot alone leaves the walls at 0.
    finds_nothing(&with("cudaMemset(b, 0, bytes);\n").replace("u[i] = 1.0f", "u[i] = 0.0f"));
    let spot = "const int centre = n * n / 2; u[centre] = 1.0f;";
    finds_nothing(&with("cudaMemset(b, 0, bytes);\n").replace("for (int i = 0; i < n; ++i) u[i] = 1.0f;", spot));
    finds_nothing(&with("cudaMemcpy(b, a, bytes, cudaMemcpyDeviceToDevice);\n"));
    finds_nothing(&with("for (float* grid : {a, b}) cudaMemcpy(grid, u.data(), bytes, cudaMemcpyHostToDevice);\n"));
    finds_nothing(&with("fill(b, n);\n"));
    let copies =
        with("").replace("{ heatTwoStep<<<", "{ cudaMemcpy(b, a, 4 * n, cudaMemcpyDeviceToDevice); heatTwoStep<<<");
    finds_nothing(&copies);
}

#[test]
fn grids_outside_functions_are_looked_for_in_all_of_them() {
    let file = |fill: &str| {
        let text = own(&format!("cudaMemcpy(a, u.data(), bytes, cudaMemcpyHostToDevice);\n{LOOP}{BACK}"));
        text.replace("float *a, *b;", "fill();")
            .replace("int main", &format!("float *a, *b;\nvoid fill() {{{fill}}}\nint main"))
    };
    finds(&file(""), HostFault::OneBufferUnfilled, "cudaMemcpy(a, u.data()");
    finds_nothing(&file("cudaMemcpy(b, host, bytes, cudaMemcpyHostToDevice);"));
}

#[test]
fn an_own_main_is_told_of_a_copy_beside_each_call_of_its_launch_function() {
    let with = |steps: &str| own(&format!("{BOTH}{}{BACK}", LOOP.replace("std::swap(a, b);", steps)));
    let copy = "cudaMemcpy(u.data(), b, bytes, cudaMemcpyDeviceToHost);";
    finds(&with(copy), HostFault::CopyEveryStep, "cudaMemcpy(u.data(), b");
    finds_nothing(&with(&format!("if (i % 100 == 0) {{ {copy} }}")));
    finds_nothing(&with(&format!("if (i % 100 == 0) {copy}")));
    // A loop within the loop that copies.
    let nested = "for (int run = 0; run < 3; ++run) {\n    for (int i = 0; i < 9; ++i) launch(a, b, n, r);\n";
    finds_nothing(&own(&format!("{BOTH}{nested}    {copy}\n}}")));
    // Rounds that begin anew are checks; one that goes on from its own copy is not.
    let anew = |host: &str| format!("cudaMemcpy(a, {host}.data(), bytes, cudaMemcpyHostToDevice); {copy}");
    finds_nothing(&with(&anew("initial")));
    finds(&with(&anew("u")), HostFault::CopyEveryStep, "cudaMemcpy(a, u");
    // A launch function that copies, and one that may return first.
    let inside = |first: &str| {
        let after = format!("(a, b, n, r); {first} cudaMemcpy(kept, b, 4 * n, cudaMemcpyDeviceToHost); }}");
        with("std::swap(a, b);").replace("(a, b, n, r); }", &after)
    };
    finds(&inside(""), HostFault::CopyEveryStep, "void launch(");
    finds_nothing(&inside("if (n > 9) return;"));
    // A function that is handed the grid, and copies it.
    let fetch = "void fetch(float* to, const float* from, size_t bytes) {\n    cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);\n}\n";
    let called = |to: &str| with(to).replace("int main", &format!("{fetch}int main"));
    finds(&called("fetch(u.data(), b, bytes);"), HostFault::CopyEveryStep, "fetch(u.data(), b, bytes);");
    finds_nothing(&called("fetch(u.data(), largest, bytes);"));
}

#[test]
fn names_that_stand_for_each_other_come_to_an_end() {
    let text = "void (*x)(int) = y;\nvoid (*y)(int) = x;\nvoid run(L f) { walk(f); }\nvoid walk(L f) { run(f); run(walk); }\n\
        void go(float* a, float* b, int n, float r) { heatTwoStep<<<1, 1>>>(a, b, n, r); x = go; go(a, b, n, r); run(go); }\n\
        L x = go;\nint main() { go(a, b, 1, 0.3f); }\n";
    finds_nothing(text);
    // Many calls of many calls, launches and uses.
    let calls = |name: &str| format!("{name}(u);").repeat(2000);
    let many = format!(
        "void e(float* u) {{ }}\nvoid d(float* u) {{ {} }}\nvoid c(float* u) {{ {} }}\nvoid h(float* u) {{ {} }}\n",
        calls("e"),
        calls("d"),
        calls("c")
    );
    let launches = "two(a, b, n, r); heatTwoStep<<<1, 1>>>(a, b, n, r);".repeat(2000);
    let loops = format!("for (int i = 0; i < 9; ++i) {{ {} {launches} }}", calls("h"));
    let two = "void two(float* a, float* b, int n, float r) { heatTwoStep<<<1, 1>>>(a, b, n, r); }\n";
    finds_nothing(&format!("{many}{two}void run(float* a, float* b, int n, float r) {{ {loops} }}\n"));
}

#[test]
fn damaged_programs_are_taken() {
    let kernel = Kernel { name: "heatTwoStep".to_owned(), call: "heatTwoStep".to_owned(), line: 1 };
    let copied = ADVANCE.replace("buffers", "{ buffers").replace("kR);", "0.3f); buffers.copyTo(last); }");
    let text = shipped(&[(SECOND, "        CUDA_CHECK(cudaMemset(next, 0, bytes()));\n"), (ADVANCE, &copied)]);
    let (begin, end) = (text.find("using Launch").expect("launches"), text.len());
    for at in (begin..end).step_by(89).filter(|&at| text.is_char_boundary(at)) {
        // Cut off, cut out, and with the beginning gone.
        let next = text[at..].find([' ', '(', ')', '{', '}', ',']).map_or(end, |by| at + by + 1);
        let out = format!("{}{}", &text[..at], &text[next..]);
        for damaged in [&text[..at], &out, &text[at..]] {
            host_faults(&Program::new(damaged), &kernel);
        }
    }
    for bare in
        ["{ heatTwoStep<<<1, 1>>>(a, b, n, r); }", "heatTwoStep<<<1, 1>>>(a, b, n, r)", "f(){heatTwoStep<<<1>>>(a,b)}"]
    {
        host_faults(&Program::new(bare), &kernel);
    }
}
