//! Small texts, spelt as a learner's inline PTX could spell them. Where the machine has nvcc, ptxas must take what comes.

use proptest::prelude::*;

use super::*;
use crate::compile::nvcc::{Outcome, assemble};
use crate::compile::toolkit::{Toolkit, find_toolkit};

const COUNTER: &str = "hg_0123456789abcdef";

fn toolkit() -> Option<Toolkit> {
    let found = find_toolkit(true).found();
    if found.is_none() {
        eprintln!("no nvcc here: nothing assembled");
    }
    found
}

/// A kernel with these statements; registers p q, r1 to r9, d1 to d9 (d1 is a grid), f1 to f9.
fn kernel_for(arch: u32, statements: &str) -> String {
    format!(
        ".version 8.8\n.target sm_{arch}\n.address_size 64\n\
         .extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b) ;\n\
         .visible .entry _Z1kPKfPfif(\n\t.param .u64 in, .param .u64 out, .param .u32 n, .param .f32 r)\n{{\n\
         .reg .pred %p<3>;\n.reg .b32 %r<10>;\n.reg .f32 %f<17>;\n.reg .b64 %rd<20>;\n.reg .b16 %h<3>;\n.reg .b128 %q;\n\
         .shared .align 16 .b8 tile[1024];\n\
         \tld.param.u64 %rd1, [in];\n\tcvta.to.global.u64 %rd1, %rd1;\n\tld.param.u32 %r1, [n];\n\tmov.u32 %r2, tile;\n\
         \tsetp.lt.s32 %p1, %r1, 3;\n\tsetp.lt.s32 %p2, %r1, 5;\n{statements}\n\tret;\n}}\n"
    )
}

fn kernel(statements: &str) -> String {
    kernel_for(90, statements)
}

/// What is added before each read, in order: `4`, `@%p1 16`, `bytes` where it is worked out.
fn additions(counted: &str) -> Vec<String> {
    let added = |line: &str| {
        let at_once = line.split_once("red.global.add.u64 [%hg_0123456789abcdef_slot], ");
        let kept = line.split_once("add.u64 %hg_0123456789abcdef_sum, %hg_0123456789abcdef_sum, ");
        let (guard, rest) = at_once.filter(|(_, rest)| !rest.ends_with("_sum;")).or(kept)?;
        Some(format!("{guard}{}", rest.trim_end_matches(';').replace("%hg_0123456789abcdef_", "")))
    };
    counted.lines().filter_map(added).collect()
}

/// What stands after each addition of the sum to the counter, with the addition's guard: `ret;`, `@%p1: @%p1 ret;`.
fn flushes(counted: &str) -> Vec<String> {
    let lines: Vec<&str> = counted.lines().collect();
    let flushed = |pair: &[&str]| {
        let guard =
            pair[0].strip_suffix("red.global.add.u64 [%hg_0123456789abcdef_slot], %hg_0123456789abcdef_sum;")?;
        Some(if guard.is_empty() { pair[1].to_owned() } else { format!("{}: {}", guard.trim(), pair[1]) })
    };
    lines.windows(2).filter_map(flushed).collect()
}

/// Counts a text and has ptxas assemble both forms of it.
fn counted(ptx: &str) -> String {
    let module = Module::parse(ptx).unwrap_or_else(|reason| panic!("{reason:?}\n{ptx}"));
    let counted = module.counted(COUNTER).unwrap_or_else(|reason| panic!("{reason:?}\n{ptx}"));
    let arch = if ptx.contains("sm_100") { 100 } else { 90 };
    if let Some(toolkit) = toolkit() {
        for text in [&counted, &module.text()] {
            let built = assemble(&toolkit, text, arch, None).unwrap();
            assert!(matches!(built.outcome, Outcome::Compiled(_)), "{:?}\n{text}", built.outcome);
        }
    }
    counted
}

#[test]
fn reads_are_counted_however_they_are_spelt() {
    let cases: [(&str, &[&str]); 30] = [
        ("ld.global.f32 %f1, [%rd1];", &["4"]),
        ("ld.f32.global %f1, [%rd1];", &["4"]),
        ("ld .global .f32 %f1, [%rd1];", &["4"]),
        ("ld/**/.global.f32 %f1, [%rd1];", &["4"]),
        ("ld.global.f32%f1,[%rd1];", &["4"]),
        ("ld.global\n.f32\n%f1\n,\n[\n%rd1\n]\n;", &["4"]),
        ("ld.global.f32 %f1, [%rd1]; ld.global.f32 %f2, [%rd1+4];", &["4", "4"]),
        ("// ld.global.f32 %f1, [%rd1];", &[]),
        ("/* ld.global.f32 %f1, [%rd1]; */", &[]),
        ("// \\\nld.global.f32 %f1, [%rd1];", &["4"]),
        ("/* // */ ld.global.f32 %f1, [%rd1]; // */", &["4"]),
        (".pragma \"nounroll\"; ld.global.f32 %f1, [%rd1];", &["4"]),
        ("L1: ld.global.f32 %f1, [%rd1]; bra L1;", &["4"]),
        ("@%p1 ld.global.f32 %f1, [%rd1];", &["@%p1 4"]),
        ("@!%p1 ld.global.f32 %f1, [%rd1];", &["@!%p1 4"]),
        ("@ ! %p1 ld.global.v4.f32 {%f1, %f2,\n%f3, %f4}, [%rd1];", &["@!%p1 16"]),
        ("{ .reg .pred %p1; mov.pred %p1, %p2; @%p1 ld.global.u8 %r3, [%rd1]; }", &["@%p1 1"]),
        ("ld.global.nc.L1::no_allocate.L2::128B.v2.b64 {%rd3, %rd4}, [%rd1];", &["16"]),
        ("ld.volatile.global.u16 %h1, [%rd1];", &["2"]),
        ("ld.relaxed.gpu.global.b64 %rd3, [%rd1];", &["8"]),
        ("ld.acquire.sys.global.b128 %q, [%rd1];", &["16"]),
        ("ldu.global.f32 %f1, [%rd1];", &["4"]),
        ("atom.global.add.f32 %f1, [%rd1], %f2; red.global.add.f32 [%rd1], %f2;", &["4"]),
        ("atom.global.cas.b64 %rd3, [%rd1], %rd4, %rd5;", &["8"]),
        ("atom.shared.add.u32 %r3, [%r2], 1; ld.shared.f32 %f1, [tile]; ld.param.u32 %r3, [n];", &[]),
        ("cp.async.ca.shared.global [%r2], [%rd1], 4; cp.async.commit_group; cp.async.wait_group 0;", &["4"]),
        ("@%p2 cp.async.cg.shared::cta.global.L2::128B [%r2], [%rd1], 16;", &["@%p2 16"]),
        ("prefetch.global.L2 [%rd1]; st.global.f32 [%rd1], %f1; bar.sync 0;", &[]),
        ("ld.global.f32 %f1, [%rd1]; .loc 1 7 5\n ld.global.f32 %f2, [%rd1];", &["4", "4"]),
        ("ld.global.v2.u8 {%h1, _}, [%rd1];", &["2"]),
    ];
    for (statements, expected) in cases {
        assert_eq!(additions(&counted(&kernel(statements))), expected, "{statements}");
    }
}

#[test]
fn what_a_read_takes_is_worked_out_where_the_text_does_not_say() {
    let of = |statements: &str| counted(&kernel(statements));
    let text = of("@%p1 ld.f32 %f1, [%rd1+-8];");
    assert_eq!(additions(&text), ["@%p1 bytes"]);
    assert!(text.contains("add.s64 %hg_0123456789abcdef_from, %hg_0123456789abcdef_from, -8;"), "{text}");
    assert!(text.contains("selp.b64 %hg_0123456789abcdef_bytes, 4, 0, %hg_0123456789abcdef_in;"), "{text}");
    assert_eq!(additions(&of("ld.v4.u32 {%r3,%r4,%r5,%r6}, [%rd1+16];")), ["bytes"]);
    assert_eq!(additions(&of("atom.exch.b32 %r3, [%rd1], %r4;")), ["bytes"]);
    let text = of("cp.async.ca.shared.global [%r2], [%rd1], 8, %r3;");
    assert!(text.contains("mov.b32 %hg_0123456789abcdef_j, %r3;"), "{text}");
    assert_eq!(additions(&text), ["bytes"]);
    assert_eq!(additions(&of("cp.async.ca.shared.global [%r2], [%rd1], 8, 4;")), ["4"]);
    let text = of("{ .reg .pred %r3; mov.pred %r3, %p1; cp.async.ca.shared.global [%r2], [%rd1], 8, %r3; }");
    assert!(
        text.contains("selp.b64 %hg_0123456789abcdef_bytes, 0, 8, %r3;"),
        "a predicate that hides a number: {text}"
    );
    let bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], %r3, [%r2];";
    assert_eq!(additions(&of(bulk)), ["bytes"]);
    assert_eq!(additions(&of("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], %r3;")), [] as [&str; 0]);
    let wide = kernel_for(100, "ld.global.v8.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, [%rd1];");
    assert_eq!(additions(&counted(&wide.replace("8.8", "9.0"))), ["32"]);
}

#[test]
fn what_cannot_be_counted_is_named() {
    let cases = [
        ("tex.1d.v4.f32.s32 {%f1,%f2,%f3,%f4}, [%rd1, {%r1}];", "a texture read (tex.1d.v4.f32.s32)", false),
        ("suld.b.1d.b32.trap %r3, [%rd1, {%r1}];", "a surface access (suld.b.1d.b32.trap)", false),
        ("wmma.load.a.sync.aligned.row.m8n8k4.f64 {%rd2}, [%rd1];", "a tensor-core instruction", false),
        ("multimem.ld_reduce.global.add.f32 %f1, [%rd1];", "an access to multicast memory", false),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile [%r2], [%rd1, {%r1, %r1}], [%r2];",
            "a tensor copy",
            false,
        ),
        ("call (%r1), %rd3, (%r1), proto;", "a call through a function pointer", false),
        ("p: .callprototype _ (.param .b32 _);", "a call through a function pointer", false),
        ("call.uni elsewhere, (%r1);", "a call of a function that is not in heat.cu (elsewhere)", false),
        ("frobnicate.global.f32 %f1, [%rd1];", "an instruction that the grader does not know (frobnicate", false),
        ("ld.global.sneaky.f32 %f1, [%rd1];", "a read in a form that the grader does not know", false),
        ("ld.global.shared.f32 %f1, [%rd1];", "a read in a form that the grader does not know", false),
        ("ld.global.f32.f32 %f1, [%rd1];", "a read in a form that the grader does not know", false),
        ("LD.global.f32 %f1, [%rd1];", "PTX that the grader cannot read", false),
        ("cp.async.ca.shared.global [%r2], [%rd1], 8, %f1;", "a read with an operand of unknown form", false),
        (".pragma \"anything else\";", "a PTX directive that the grader does not know", false),
        (".alias a, b;", "a PTX directive that the grader does not know (.alias)", false),
        ("#define hidden ld.global.f32\nhidden %f1, [%rd1];", "inline PTX with a preprocessor line", true),
        ("/* ld.global.f32 %f1, [%rd1];", "inline PTX with characters that PTX does not use", true),
        ("ld.global.f32 %f1, [%rd1]\u{a0};", "inline PTX with characters that PTX does not use", true),
        ("\" ld.global.f32 %f1, [%rd1];", "inline PTX with characters that PTX does not use", true),
        ("ret; } } {", "inline PTX with a closing brace too many", true),
        ("{ ld.global.f32 %f1, [%rd1];", "inline PTX with a brace that is never closed", true),
        (".version 8.8\n.target sm_90", "a PTX header in a function", true),
        ("mov.u64 %rd3, hg_0123456789abcdef;", "a name that the grader keeps to itself", true),
    ];
    for (statements, construct, hides) in cases {
        let refused = count_reads(&kernel(statements), COUNTER).expect_err(statements);
        assert!(refused.construct.starts_with(construct), "{statements}: {refused:?}");
        assert_eq!(refused.hides, hides, "{statements}: {refused:?}");
    }
}

#[test]
fn a_refusal_names_the_line_of_heat_cu_that_was_inlined_from_a_header() {
    let located = |statements: &str| {
        let text = kernel(statements) + ".file 1 \"/tmp/x/heat.cu\"\n.file 2 \"/usr/include/sm_30.hpp\"\n";
        count_reads(&text, COUNTER).expect_err(statements).line
    };
    assert_eq!(located(".loc 1 23 5\nfrob;"), Some(23));
    assert_eq!(located(".loc 1 23 5\n.loc 1 0 5\nfrob;"), Some(23));
    let inlined = ".loc 1 20 1\n.loc 2 9 3, function_name $L__info_string0, inlined_at 1 31 7\n\
                   .loc 2 5 3, function_name $L__info_string1+12, inlined_at 2 9 3\nfrob;";
    assert_eq!(located(inlined), Some(31));
    assert_eq!(located(".loc 2 9 3\nfrob;"), None);
}

#[test]
fn only_what_a_kernel_reaches_is_kept_and_judged() {
    let other = ".entry other() { tex.1d.v4.f32.s32 {a,b,c,d}, [t, {e}]; ret; }\n\
                 .func (.param .b32 x) helper (.param .b64 y) { .reg .f32 %f1; .reg .b64 %a;\n\
                 ld.param.u64 %a, [y]; ld.global.f32 %f1, [%a]; st.param.f32 [x+0], %f1; ret; }\n\
                 .func unused () { frob; ret; }\n";
    let call = "{ .param .b64 a; .param .b32 b; st.param.b64 [a+0], %rd1; call.uni (b), helper, (a); ld.param.f32 %f1, [b+0]; }";
    let whole = kernel(call).replace(".visible .entry", &format!("{other}.entry"));
    assert!(count_reads(&whole, COUNTER).is_err());
    let module = Module::parse(&whole).unwrap();
    assert_eq!(module.kernels(), ["other", "_Z1kPKfPfif"]);
    let kept = module.keep(&BTreeSet::from(["_Z1kPKfPfif"]));
    let text = kept.text();
    assert!(text.contains("helper") && !text.contains("unused") && !text.contains("other"), "{text}");
    assert!(text.contains("\n.visible .entry _Z1kPKfPfif"), "a program can find it by name: {text}");
    assert_eq!(additions(&counted(&text)), ["4"]);
    assert_eq!(count_reads_of(&whole, &["_Z1kPKfPfif"], COUNTER).map(|text| additions(&text).len()), Ok(1));
}

const READ: &str = "ld.global.f32 %f1, [%rd1];";

#[test]
fn a_kernel_counts_wherever_its_threads_end() {
    let cases: [(&str, &[&str]); 14] = [
        ("READ", &["ret;"]),
        ("", &[]),
        ("@%p1 ret; exit;", &[]),
        ("@%p1 ret; READ", &["@%p1: @%p1 ret;", "ret;"]),
        ("@!%p1 ret.uni; READ @%p2 exit; READ", &["@!%p1: @!%p1 ret.uni;", "@%p2: @%p2 exit;", "ret;"]),
        ("@ ! %p1 ret\n; READ", &["@!%p1: @!%p1 ret;", "ret;"]),
        ("@%p1 bra L1; READ ret; L1: READ READ", &["ret;", "ret;"]),
        ("READ @%p1 bra L1; bra L2; L1: ret; L2: exit;", &["ret;", "exit;", "ret;"]),
        ("L1: READ @%p1 bra L1; @%p2 ret; bra L1;", &["@%p2: @%p2 ret;", "ret;"]),
        ("{ .reg .pred %p1; mov.pred %p1, %p2; READ @%p1 ret; }", &["@%p1: @%p1 ret;", "ret;"]),
        ("@%p1 trap; @%p2 brkpt; READ", &["ret;"]),
        ("READ ret; // ret;\n/* ret; */", &["ret;", "ret;"]),
        ("READ { .reg .b32 x; { ret; } }", &["ret;", "ret;"]),
        ("ld.f32 %f1, [%rd1]; .pragma \"nounroll\"; L1: @%p1 bra L1; exit;", &["exit;", "ret;"]),
    ];
    for (statements, expected) in cases {
        let text = counted(&kernel(&statements.replace("READ", READ)));
        assert_eq!(flushes(&text), expected, "{statements}");
        assert_eq!(text.contains("_sum"), !expected.is_empty(), "{statements}");
    }
}

#[test]
fn a_body_whose_end_can_be_reached_counts_there_too() {
    for (end, expected) in [
        ("READ", &["}"][..]),
        ("READ @%p1 ret;", &["@%p1: @%p1 ret;", "}"]),
        ("READ ret; L1:", &["ret;", "}"]),
        ("READ @%p1 bra L1; ret; L1: { READ }", &["ret;", "}"]),
        ("READ { exit; } .loc 1 7 5\n", &["exit;"]),
        ("READ trap;", &["}"]),
        ("L1: READ bra L1;", &["}"]),
    ] {
        let text = kernel("END").replace("END\n\tret;", &end.replace("READ", READ));
        assert_eq!(flushes(&counted(&text)), expected, "{end}");
    }
}

/// A kernel that reads and calls a function with these statements, and another kernel that reads.
fn calling(statements: &str) -> String {
    let call = format!("{READ} {{ .param .b64 a; st.param.b64 [a+0], %rd1; call.uni helper, (a); }}");
    let others = format!(
        ".func helper (.param .b64 y) {{ .reg .f32 %f<3>; .reg .pred %p<3>; .reg .b64 %rd<3>; .reg .b32 %r1;\n\
         ld.param.u64 %rd1, [y]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3;\n{statements}\nret; }}\n\
         .visible .entry other(.param .u64 in) {{ .reg .b64 %rd1; .reg .f32 %f1;\n\
         ld.param.u64 %rd1, [in]; {READ} st.global.f32 [%rd1], %f1; ret; }}\n"
    );
    kernel(&call).replace(".visible .entry _Z1k", &format!("{others}.visible .entry _Z1k"))
}

#[test]
fn what_is_called_counts_at_once_and_an_exit_there_makes_all_do_so() {
    let at_once = |text: &str| text.matches("red.global.add.u64 [%hg_0123456789abcdef_slot], 4;").count();
    let text = counted(&calling(&format!("@%p1 ret; {READ}")));
    assert_eq!((additions(&text).len(), at_once(&text), flushes(&text)), (3, 1, vec!["ret;".into(), "ret;".into()]));
    let text = counted(&calling("@%p1 ret;"));
    assert_eq!((additions(&text).len(), at_once(&text), flushes(&text).len()), (2, 0, 2), "kernels alone read");
    for ending in ["exit;", "@%p1 exit;", "{ @!%p1 exit; }"] {
        let text = counted(&calling(&format!("{READ} {ending}")));
        assert_eq!((additions(&text).len(), at_once(&text), flushes(&text).len()), (3, 3, 0), "{ending}");
        let helper_reads_nothing = counted(&calling(ending));
        assert_eq!((at_once(&helper_reads_nothing), flushes(&helper_reads_nothing).len()), (2, 0), "{ending}");
    }
}

#[test]
fn the_second_look_sees_a_thread_that_ends_without_its_count() {
    let source = "@%p1 ret; ld.global.f32 %f1, [%rd1]; @%p2 bra L1; exit; L1:";
    let plain = Module::parse(&kernel(source)).unwrap();
    let right = plain.counted(COUNTER).unwrap();
    assert_eq!(rescan::check(&right, &plain.text(), COUNTER), Ok(()));
    let flush = "red.global.add.u64 [%hg_0123456789abcdef_slot], %hg_0123456789abcdef_sum;\n";
    let zero = "mov.b64 %hg_0123456789abcdef_sum, 0;\n";
    let add = "add.u64 %hg_0123456789abcdef_sum, %hg_0123456789abcdef_sum, 4;\n";
    let all = [flush, zero, add];
    assert_eq!(all.map(|line| right.matches(line).count()), [3, 1, 1]);
    let moved = format!("setp.lt.s32 %p1, %r1, 3;\n{zero}");
    let slot = "mov.u64 %hg_0123456789abcdef_slot, hg_0123456789abcdef;\n";
    for (from, to) in [
        (format!("@%p1 {flush}"), String::new()),
        (format!("@%p1 {flush}"), flush.into()),
        (format!("@%p1 {flush}"), format!("@!%p1 {flush}")),
        (format!("@%p1 {flush}"), format!("@%p1 {flush}@%p1 {flush}")),
        (format!("{flush}exit;"), "exit;".into()),
        (format!("{flush}exit;"), format!("{zero}{flush}exit;")),
        (format!("{flush}ret;"), "ret;".into()),
        (format!("{flush}ret;"), format!("{flush}{slot}ret;")),
        (add.into(), format!("{add}{zero}")),
        (add.into(), format!("{add}{flush}")),
        (add.into(), format!("{add}{add}")),
        (add.into(), format!("@%p1 {add}")),
        (add.into(), add.replace('4', "2")),
        (add.into(), add.replace("add.u64", "sub.u64")),
        (add.into(), add.replace("4;", "%hg_0123456789abcdef_sum;")),
        (add.into(), "red.global.add.u64 [%hg_0123456789abcdef_slot], 4;\n".into()),
        (zero.into(), String::new()),
        (zero.into(), zero.replace('0', "1")),
        (zero.into(), format!("{zero}{zero}")),
        ("setp.lt.s32 %p1, %r1, 3;\n".into(), moved.clone()),
        ("mad.wide.u32 %hg_0123456789abcdef_slot".into(), "mad.wide.u32 %hg_0123456789abcdef_from".into()),
    ] {
        assert!(right.contains(&from), "{from}");
        assert!(rescan::check(&right.replacen(&from, &to, 1), &plain.text(), COUNTER).is_err(), "{from} -> {to}");
    }
    let late = right.replace(zero, "").replace("setp.lt.s32 %p1, %r1, 3;\n", &moved);
    assert!(rescan::check(&late, &plain.text(), COUNTER).is_err(), "a sum that begins anew in a loop");
    let (text, counted) = (plain.text(), right.clone());
    let func = |text: &str| text.replace(".visible .entry", ".visible .func");
    assert!(rescan::check(&func(&counted), &func(&text), COUNTER).is_err(), "a sum in a function that is called");
    let lost = |text: &str| format!("{text}.func f()\n{{\nexit;\n}}\n");
    assert!(rescan::check(&lost(&counted), &lost(&text), COUNTER).is_err(), "an exit that loses the sum");
    let open = |text: &str| text.replace("\nret;\n}", "\n}");
    assert_eq!(rescan::check(&open(&counted), &open(&text), COUNTER), Ok(()), "the end of the body ends the thread");
    let open = |text: &str| text.replace("\nret;\n}", "\nmov.u32 %r3, 1;\n}");
    assert!(rescan::check(&open(&counted), &open(&text), COUNTER).is_err(), "a body that ends without its count");
}

#[test]
fn the_second_look_sees_a_read_without_its_addition() {
    let plain = Module::parse(&kernel("@%p1 ld.global.f32 %f1, [%rd1];")).unwrap();
    let right = plain.counted(COUNTER).unwrap();
    assert_eq!(rescan::check(&right, &plain.text(), COUNTER), Ok(()));
    let addition = "@%p1 add.u64 %hg_0123456789abcdef_sum, %hg_0123456789abcdef_sum, 4;\n";
    assert!(right.contains(addition));
    for (from, to) in [
        (addition, ""),
        ("@%p1 add", "add"),
        ("@%p1 add", "@!%p1 add"),
        ("sum, 4;", "sum, 2;"),
        ("ret;", "red.global.add.u64 [%hg_0123456789abcdef_slot], 4;\nret;"),
        ("ld.global.f32", "ld.global.v2.f32"),
        ("mad.wide.u32 %hg_0123456789abcdef_slot", "mad.wide.u32 %hg_0123456789abcdef_from"),
    ] {
        assert!(right.contains(from), "{from}");
        assert!(rescan::check(&right.replacen(from, to, 1), &plain.text(), COUNTER).is_err(), "{from} -> {to}");
    }
    let func = Module::parse(&calling(&format!("@%p1 {READ} exit;"))).unwrap();
    let right = func.counted(COUNTER).unwrap();
    assert_eq!(rescan::check(&right, &func.text(), COUNTER), Ok(()));
    for (from, to) in [
        ("@%p1 red.global.add.u64 [%hg_0123456789abcdef_slot], 4;\n", ""),
        ("@%p1 red", "red"),
        ("slot], 4;", "slot], 2;"),
        ("exit;", "red.global.add.u64 [%hg_0123456789abcdef_slot], 4;\nexit;"),
        ("mad.wide.u32 %hg_0123456789abcdef_slot", "mad.wide.u32 %hg_0123456789abcdef_from"),
    ] {
        assert!(right.contains(from), "{from}");
        assert!(rescan::check(&right.replacen(from, to, 1), &func.text(), COUNTER).is_err(), "{from} -> {to}");
    }
    let right = plain.counted(COUNTER).unwrap();
    let changed = right.replace("ld.global.f32", "ld.f32");
    let plain = plain.text().replace("ld.global.f32", "ld.f32");
    assert!(rescan::check(&changed, &plain, COUNTER).is_ok(), "a generic read counted in full");
}

/// Words that make texts which are nearly PTX.
const WORDS: [&str; 44] = [
    "ld",
    ".global",
    ".f32",
    " %f1",
    ", ",
    "[%rd1]",
    ";",
    "{",
    "}",
    "@%p1 ",
    "@!",
    "atom",
    ".add",
    "cp.async",
    ".ca",
    ".shared",
    "4",
    "\n",
    "//",
    "/*",
    "*/",
    "\"",
    ".loc 1 2 3",
    ".reg .pred ",
    "%p1",
    "x:",
    ".v4",
    "(",
    ")",
    "call.uni ",
    "ret;",
    "exit;",
    "@%p1 ret;",
    "@!%p2 exit",
    "ld.global.f32 %f1, [%rd1];",
    ".entry k()",
    ".func f()",
    "ld.f32 %f1, [%rd1];",
    "ld.global.u8 %r1, [%rd1];",
    "{%f1,%f2,%f3,%f4}",
    ".pragma \"nounroll\";",
    "#",
    "tex",
    "%hg_0123456789abcdef_slot",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_counted_or_refused(words in prop::collection::vec(prop::sample::select(&WORDS[..]), 0..40), whole: bool) {
        let text = words.concat();
        let text = if whole { text } else { kernel(&text) };
        if let (Ok(module), Ok(counted)) = (Module::parse(&text), count_reads(&text, COUNTER)) {
            prop_assert_eq!(rescan::check(&counted, &module.text(), COUNTER), Ok(()));
            // Written anew, a text stays what it is.
            prop_assert_eq!(Module::parse(&module.text()).map(|again| again.text()), Ok(module.text()));
        }
    }

    #[test]
    fn any_characters_are_survived(text in "\\PC*") {
        let _ = count_reads(&text, COUNTER);
        let _ = count_reads(&kernel(&text), COUNTER);
    }
}
