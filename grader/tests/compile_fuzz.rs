//! What reads or rewrites a submission's text survives whatever comes: no panic, no hang, nothing believed twice.

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::diagnostics;
use super::ptx::{Module, count_reads_of, rescan};
use super::rewrite::{HostCode, to_cpp};
use super::thread_loops::{PREFIX, thread_loops};
use crate::mutate::{fixtures, mutated};

const COUNTER: &str = "hg_0123456789abcdef";
/// What nvcc 13 makes of heatStepGlobal and heatStepTiled.
const PTX: &str = include_str!("heat_sm75.ptx");
/// The longest that one text may take.
const SOON: Duration = Duration::from_secs(3);

/// Fixtures as the preprocessor leaves them, as far as that matters here.
fn preprocessed() -> Vec<String> {
    let spelt = |text: &String| {
        let without: String = text
            .lines()
            .map(|line| if line.starts_with("#include") { "\n".to_owned() } else { format!("{line}\n") })
            .collect();
        let spelt = without
            .replace("__shared__", "hg_shared_qualifier")
            .replace("__syncthreads()", "hg_sync_threads((static_cast<unsigned>(3)))")
            .replace("__global__", "");
        format!("# 1 \"heat.cu\"\n{spelt}")
    };
    fixtures().iter().map(spelt).collect()
}

/// Names of kernels and functions in fixtures, as a call spells them.
const CALLS: [&str; 6] = ["heatTwoStep", "twoStep", "heatTwoStep<32, 8>", "ns::twoStep", "k", "main"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn damaged_ptx_is_counted_right_or_refused(text in mutated(vec![PTX.to_owned()])) {
        let began = Instant::now();
        let Ok(module) = Module::parse(&text) else { return Ok(()) };
        if let Ok(counted) = module.counted(COUNTER) {
            let plain = module.text();
            prop_assert_eq!(rescan::check(&counted, &plain, COUNTER), Ok(()));
            let without = counted.lines().filter(|line| !line.contains(COUNTER)).collect::<Vec<_>>().join("\n");
            prop_assert_eq!(without.trim_end(), plain.trim_end());
            // Something is added for every global read.
            let reads = counted.lines().filter(|line| line.contains("ld.global")).count();
            let added = [format!("%{COUNTER}_sum, %{COUNTER}_sum, "), format!("[%{COUNTER}_slot], ")];
            let adds = counted.lines().filter(|line| added.iter().any(|added| line.contains(added))).count();
            prop_assert!(adds >= reads, "{} additions for {} reads", adds, reads);
        }
        let kernels = module.kernels();
        if let (Some(kernel), true) = (kernels.first(), kernels.len() < 50) {
            let _ = count_reads_of(&text, &[kernel], COUNTER);
        }
        prop_assert!(began.elapsed() < SOON);
    }

    #[test]
    fn damaged_source_is_rewritten_without_moving_a_line(text in mutated(preprocessed())) {
        let began = Instant::now();
        for host in [HostCode::Kept, HostCode::Dropped] {
            let cpp = to_cpp(&text, host);
            prop_assert_eq!(cpp.lines().count(), text.lines().count());
            prop_assert!(to_cpp(&cpp, HostCode::Kept).lines().count() == cpp.lines().count());
        }
        prop_assert!(began.elapsed() < SOON);
    }

    #[test]
    fn damaged_source_is_cut_into_loops_without_moving_a_line(text in mutated(preprocessed())) {
        let began = Instant::now();
        let cpp = to_cpp(&text, HostCode::Kept);
        for call in CALLS {
            if let Some(loops) = thread_loops(&cpp, call) {
                prop_assert!(loops.call.contains(PREFIX));
                prop_assert_eq!(loops.text.lines().count(), cpp.lines().count());
            }
        }
        prop_assert!(began.elapsed() < SOON);
    }

    #[test]
    fn damaged_messages_never_show_the_folder(text in mutated(vec![MESSAGES.to_owned()]), source in mutated(fixtures())) {
        let (errors, warnings) = diagnostics::parse(&text, &source, Path::new("/tmp/.secret-folder"));
        for said in errors.shown.iter().chain(&warnings.shown) {
            let harmless = said.message.chars().all(|c| !c.is_control()) && !said.message.contains("/tmp/.secret-folder/");
            prop_assert!(harmless, "{}", said.message);
        }
    }
}

/// Messages as nvcc, g++ and ptxas write them.
const MESSAGES: &str = "/tmp/.secret-folder/heat.cu(12): error: identifier \"x\" is undefined\n  float a = x;\n            ^\n\
    \n1 error detected in the compilation of \"/tmp/.secret-folder/heat.cu\".\n\
    /tmp/.secret-folder/heat.cu(3): warning #177-D: variable \"a\" was declared but never referenced\n\
    heat.cu:14:5: error: \u{1b}[31mexpected ';' before '}' token\n   14 |     }\n      |     ^\n\
    In file included from heat.cu:3:\n/etc/passwd:1:5: error: found ':' in nested-name-specifier\n\
    ptxas error   : Entry function '_Z1kPKfPfif' uses too much shared data (0x14000 bytes, 0xc000 max)\n\
    At end of source: error: expected a \"}\"\n          detected during instantiation of \"T f(T)\" at line 14\n";

#[test]
fn hostile_texts_end_soon() {
    let many = |piece: &str, times: usize| piece.repeat(times);
    let kernel =
        |body: &str| format!("# 1 \"heat.cu\"\nvoid k(const float* in, float* out, int n, float r) {{ {body} }}\n");
    let texts = [
        ("open brackets", kernel(&many("(", 50_000))),
        ("braces", kernel(&format!("{}{}", many("{", 50_000), many("}", 50_000)))),
        ("functions", format!("# 1 \"heat.cu\"\n{}{}", many("void f(int a) { f(a); }\n", 5_000), kernel(""))),
        ("function heads", format!("# 1 \"heat.cu\"\n{}", many("void f(int a) ", 20_000))),
        ("barriers", kernel(&many("hg_sync_threads((static_cast<unsigned>(3))); ", 5_000))),
        ("locals", kernel(&many("int a = n; hg_sync_threads((static_cast<unsigned>(3))); out[0] = a; ", 2_000))),
        ("shared arrays", kernel(&many("hg_shared_qualifier float t[8]; ", 5_000))),
        ("launches", kernel(&many("k<<<1, 2>>>(in, out, n, r); ", 5_000))),
        ("launch openings", kernel(&many("k<<<", 50_000))),
        ("templates", format!("# 1 \"heat.cu\"\n{}", many("template <int a> ", 20_000))),
        ("lambdas", kernel(&format!("{}{}", many("[&](int a) { ", 5_000), many("}", 5_000)))),
        ("line markers", many("# 1 \"heat.cu\"\n", 50_000)),
        (
            "commas",
            kernel(&format!("int a0{};", (1..5_000).map(|i| format!(", a{i} = a{}", i - 1)).collect::<String>())),
        ),
        ("quotes", kernel(&many("\"'", 50_000))),
    ];
    for (name, text) in texts {
        let began = Instant::now();
        for host in [HostCode::Kept, HostCode::Dropped] {
            let cpp = to_cpp(&text, host);
            for call in ["k", "f"] {
                let _ = thread_loops(&cpp, call);
            }
        }
        let taken = began.elapsed();
        println!("{name}: {taken:?}");
        assert!(taken < Duration::from_secs(10), "{name} took {taken:?}");
    }
}
