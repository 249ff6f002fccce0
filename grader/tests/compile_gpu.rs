//! With the nvcc and g++ of this machine, where it has both.

use std::fs;

use object::{Object, ObjectSection, ObjectSymbol};

use super::*;
use crate::compile::nvcc::LESSON_ARCH;
use crate::compile::ptx::count_reads_of;
use crate::compile::toolkit::{find_host_compiler, find_toolkit};
use crate::selftest::Expected;
use crate::submission::{Program, find_kernel};
use crate::verdict::Verdict;

fn toolchain() -> Option<(Toolkit, HostCompiler)> {
    let pair = find_toolkit(true).found().zip(find_host_compiler().found());
    if pair.is_none() {
        eprintln!("no nvcc or no g++ here: nothing tested");
    }
    pair
}

fn builds(source: &str, kernel: &str, arch: u32) -> Option<GpuBuilds> {
    let (toolkit, gxx) = toolchain()?;
    match build(&toolkit, &gxx, source, kernel, arch).unwrap().outcome {
        Outcome::Compiled(builds) => Some(builds),
        other => panic!("{kernel}: {other:?}"),
    }
}

/// Names of the global symbols of a cubin.
fn symbols(cubin: &[u8]) -> Vec<String> {
    let file = object::File::parse(cubin).unwrap();
    let global = file.symbols().filter(|symbol| symbol.is_global());
    global.filter_map(|symbol| symbol.name().ok().map(str::to_owned)).collect()
}

/// Kernels of a cubin, by their sections.
fn kernels(cubin: &[u8]) -> Vec<String> {
    let file = object::File::parse(cubin).unwrap();
    let names = file.sections().filter_map(|section| section.name().ok()?.strip_prefix(".text.").map(str::to_owned));
    names.collect()
}

/// The machine code of a kernel.
fn code(cubin: &[u8], kernel: &str) -> Vec<u8> {
    let file = object::File::parse(cubin).unwrap();
    file.section_by_name(&format!(".text.{kernel}")).unwrap().data().unwrap().to_vec()
}

const SIGNATURE: &str = "(const float* in, float* out, int n, float r) { out[n] = in[n + 1] * r; }";

#[test]
fn the_kernel_is_found_whatever_it_is_called() {
    let text = format!(
        "constexpr int kX = 4;\n\
         namespace {{ template <int X, int Y> __global__ void hidden{SIGNATURE} }}\n\
         namespace a {{ namespace b {{ __global__ void k{SIGNATURE} __global__ void k(const float* in, float* out) {{}} }} }}\n\
         static __global__ void quiet{SIGNATURE}\n\
         extern \"C\" __global__ void plain{SIGNATURE}\n\
         template <class P> __global__ void policy{SIGNATURE}\n\
         struct Wide {{ static constexpr int x = 32; }};\n\
         int main() {{}}   // no newline at the end, and a splice \\"
    );
    let cases = [
        ("hidden<kX, kX + 4>", "(anonymous namespace)::hidden<4, 8>"),
        ("a::b::k", "a::b::k(float const*, float*, int, float)"),
        ("quiet", "quiet("),
        ("::plain", "plain"),
        ("policy<Wide>", "policy<Wide>"),
    ];
    for (call, name) in cases {
        let Some(builds) = builds(&text, call, LESSON_ARCH) else { return };
        let demangled = crate::compile::diagnostics::demangle(&builds.entry);
        assert!(demangled.contains(name), "{call}: {demangled}");
        assert_eq!(kernels(&builds.plain), [builds.entry.as_str()], "no other kernel comes along");
        assert!(symbols(&builds.plain).contains(&builds.entry), "{call} can be loaded by its name");
        let counted = builds.counted.unwrap();
        let visible = symbols(&counted.cubin);
        assert!(visible.contains(&counted.counter) && visible.contains(&builds.entry), "{visible:?}");
        assert_eq!(counted.slots, SLOTS);
        assert!(builds.uses.registers > 0 && builds.uses.name == builds.entry);
    }
}

#[test]
fn where_nvcc_does_not_take_the_pointer_the_name_decides_and_no_message_speaks_of_it() {
    // A function of two forms: which is meant is told by the parameters, unless a macro spoils the line.
    let text = format!("#define float float_\nstruct float_ {{}};\n#undef float\n__global__ void k{SIGNATURE}\n");
    let spoilt = format!("{text}#define __device__ spoilt\n");
    assert_eq!(builds(&spoilt, "k", LESSON_ARCH).map(|builds| builds.entry), toolchain().map(|_| "_Z1kPKfPfif".into()));
    let Some((toolkit, gxx)) = toolchain() else { return };
    let broken = format!("{text}void f() {{\n");
    let built = nvcc::check_as_cuda(&toolkit, &gxx, &broken, Some("k"), LESSON_ARCH).unwrap();
    let Outcome::Rejected(said) = &built.outcome else { panic!("{built:?}") };
    assert!(!format!("{built:?}").contains("hg_"), "{built:?}");
    assert_eq!(said.shown[0].message, "at the end of the file: expected a \"}\"");
    assert_eq!(said.shown[1].line, Some(5), "the brace that is not closed: {said:?}");
    let absent = check_and_build(&toolkit, &gxx, &text, Some("absent"), LESSON_ARCH).unwrap();
    let Outcome::Compiled((cuda, builds)) = absent.outcome else { panic!() };
    assert_eq!((cuda.entry, builds), (None, None));
    let built = build(&toolkit, &gxx, &text, "absent", LESSON_ARCH).unwrap();
    assert!(matches!(built.outcome, Outcome::Rejected(said) if said.shown[0].message.ends_with("the name absent")));
}

#[test]
fn a_template_that_is_never_launched_is_instantiated_and_its_faults_are_placed() {
    let Some((toolkit, gxx)) = toolchain() else { return };
    let text =
        "template <int X> __global__ void k(const float* in, float* out, int n, float r) {\n    X::absent();\n}\n";
    let built = nvcc::check_as_cuda(&toolkit, &gxx, text, Some("k<3>"), LESSON_ARCH).unwrap();
    let Outcome::Rejected(said) = &built.outcome else { panic!("{built:?}") };
    assert_eq!(said.shown[0].line, Some(2));
    assert!(!format!("{built:?}").contains("hg_"), "{built:?}");
}

#[test]
fn asking_for_the_name_and_writing_the_text_anew_change_no_instruction() {
    let Some((toolkit, gxx)) = toolchain() else { return };
    for fixture in ["plain", "float4_loads", "template_tile", "inline_ptx_load", "warp_shuffles"] {
        let (source, call) = fixture_kernel("right", fixture);
        let asked = check_and_build(&toolkit, &gxx, &source, Some(&call), LESSON_ARCH).unwrap().outcome;
        let unasked = nvcc::check_as_cuda(&toolkit, &gxx, &source, None, LESSON_ARCH).unwrap().outcome;
        let (Outcome::Compiled((asked, builds)), Outcome::Compiled(unasked)) = (asked, unasked) else {
            panic!("{fixture}")
        };
        let builds = builds.unwrap();
        let code = |cubin| code(cubin, &builds.entry);
        assert_eq!(code(&asked.assembled.cubin), code(&unasked.assembled.cubin), "{fixture}: asking");
        assert_eq!(code(&asked.assembled.cubin), code(&builds.plain), "{fixture}: writing anew");
    }
}

fn fixture_kernel(verdict: &str, name: &str) -> (String, String) {
    let path = format!("{}/fixtures/{verdict}/{name}/heat.cu", env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(path).unwrap();
    let call = find_kernel(&Program::new(&source)).unwrap_or_else(|fault| panic!("{name}: {fault:?}")).call;
    (source, call)
}

/// One fixture of each way of loading; nvcc takes seconds for those with large headers.
const LOADS: [&str; 9] = [
    "plain",
    "float4_loads",
    "ldg_and_lambdas",
    "inline_ptx_load",
    "load_by_memcpy",
    "load_through_pointer",
    "pipeline_async_copy",
    "register_tile",
    "template_tile",
];

#[test]
fn right_fixtures_are_counted_or_refused_by_name() {
    let Some((toolkit, gxx)) = toolchain() else { return };
    for name in LOADS {
        counted_or_refused(&toolkit, &gxx, name);
    }
}

fn counted_or_refused(toolkit: &Toolkit, gxx: &HostCompiler, name: &str) {
    let (source, call) = fixture_kernel("right", name);
    let asynchronous = ["async", "pipeline", "barrier"].iter().any(|word| name.contains(word));
    for arch in if asynchronous { &[90][..] } else { &[LESSON_ARCH, 90] } {
        counted_or_refused_for(toolkit, gxx, name, (&source, &call), *arch);
    }
}

fn counted_or_refused_for(toolkit: &Toolkit, gxx: &HostCompiler, name: &str, (source, call): (&str, &str), arch: u32) {
    let built = build(toolkit, gxx, source, call, arch).unwrap();
    let Outcome::Compiled(builds) = built.outcome else { panic!("{name}: {:?}", built.outcome) };
    let verdict =
        fs::read_to_string(format!("{}/fixtures/right/{name}/verdict.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let cuda = Expected::parse(&verdict, "cuda").unwrap().verdict;
    match &builds.counted {
        Ok(counted) => {
            assert!(symbols(&counted.cubin).contains(&counted.counter), "{name}");
            assert_eq!(cuda, Verdict::Pass, "{name} is counted");
        }
        Err(reason) => {
            assert_eq!(cuda, Verdict::Ungraded, "{name}: {reason:?}");
            assert!(reason.line.is_some() && !reason.hides, "{name}: {reason:?}");
        }
    }
}

#[test]
fn counting_never_keeps_a_launch_from_starting() {
    let loads: String = (0..56).map(|i| format!("float a{i} = in[n * {i} + threadIdx.x];\n")).collect();
    let sums: String = (0..56).map(|i| format!("out[n * {i}] = a{i} * a{} + r;\n", 55 - i)).collect();
    let text = format!("__global__ void k(const float* in, float* out, int n, float r) {{\n{loads}{sums}}}\n");
    let Some(builds) = builds(&text, "k", LESSON_ARCH) else { return };
    let limit = builds.uses.registers.next_multiple_of(8).max(64);
    assert!(builds.counted.unwrap().kernels[0].registers <= limit, "{:?}", builds.uses);
}

#[test]
fn the_copy_kernel_comes_without_the_reference() {
    let Some((toolkit, gxx)) = toolchain() else { return };
    let reference = build_reference(&toolkit, &gxx, LESSON_ARCH).unwrap();
    assert_eq!(kernels(&reference.copy), [reference.copy_grid.as_str()]);
    let steps = kernels(&reference.steps);
    assert!(steps.contains(&reference.heat_step_global) && steps.contains(&reference.heat_step_tiled), "{steps:?}");
    assert_eq!((steps.len(), kernels(&reference.counted.cubin).len()), (2, 2));
    assert!(symbols(&reference.counted.cubin).contains(&reference.counted.counter));
}

#[test]
fn loads_made_to_be_overlooked_are_counted_and_what_cannot_be_is_placed() {
    let Some((toolkit, gxx)) = toolchain() else { return };
    let counted = |verdict: &str, name: &str| {
        let (source, call) = fixture_kernel(verdict, name);
        let built = nvcc::check_as_cuda(&toolkit, &gxx, &source, Some(&call), LESSON_ARCH).unwrap();
        let Outcome::Compiled(cuda) = built.outcome else { panic!("{name}: {:?}", built.outcome) };
        let entry = cuda.entry.unwrap();
        count_reads_of(&cuda.ptx, &[&entry], "hg_counter").map(|text| {
            let additions = text.lines().filter(|line| line.contains("add.u64 %hg_counter_sum, %hg_counter_sum, "));
            let seen: Vec<String> = additions.map(|line| line.rsplit(' ').next().unwrap().to_owned()).collect();
            seen
        })
    };
    // One statement of each kind, or the same unrolled: the plain load and its double.
    for (name, second) in [
        ("second_load_in_odd_ptx", "4;"),
        ("second_load_generic", "%hg_counter_bytes;"),
        ("second_load_volatile", "4;"),
        ("second_load_atomic", "4;"),
    ] {
        let seen = counted("wrong", name).unwrap();
        let (first, again) = (seen.iter().step_by(2), seen.iter().skip(1).step_by(2));
        assert!(first.clone().count() == again.clone().count() && !seen.is_empty(), "{name}: {seen:?}");
        assert!(
            first.clone().all(|bytes| bytes == "4;") && again.clone().all(|bytes| bytes == second),
            "{name}: {seen:?}"
        );
    }
    for name in ["constant_weights", "load_by_memcpy"] {
        let seen = counted("right", name).unwrap();
        let (words, single) = (|bytes: &String| bytes == "4;", |bytes: &String| bytes == "1;");
        assert!(seen.iter().all(words) || seen.iter().all(single) && seen.len() % 4 == 0, "{name}: {seen:?}");
    }
    let pointer = counted("right", "load_through_pointer").unwrap_err();
    assert_eq!(
        (pointer.construct.as_str(), pointer.line, pointer.hides),
        ("a call through a function pointer", Some(38), false)
    );
    let texture = counted("right", "texture_when_bound").unwrap_err();
    assert!(texture.construct.starts_with("a texture read (tex.1d"), "{texture:?}");
    assert_eq!((texture.line, texture.hides), (Some(20), false));
}
