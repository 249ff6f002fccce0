//! With the nvcc and g++ of this machine, where it has both (CUDA_HOME names one elsewhere); recorded texts else.

use super::*;
use crate::compile::toolkit::{find_host_compiler, find_toolkit};
use std::collections::BTreeSet;

fn toolchain() -> Option<(Toolkit, HostCompiler)> {
    let pair = find_toolkit(true).found().zip(find_host_compiler().found());
    if pair.is_none() {
        eprintln!("no nvcc or no g++ here: nothing tested");
    }
    pair
}

fn check(source: &str) -> Option<Build<Cuda>> {
    let (toolkit, gxx) = toolchain()?;
    Some(check_as_cuda(&toolkit, &gxx, source, None, LESSON_ARCH).unwrap())
}

/// The first error of a text that must be rejected.
fn first_error(source: &str) -> Option<Diagnostic> {
    match check(source)?.outcome {
        Outcome::Rejected(said) => Some(said.shown[0].clone()),
        other => panic!("{other:?}"),
    }
}

/// The limit that a text hits when the compiler may use this much.
fn limit(cpu_seconds: u64, address_space: u64, source: &str) -> Option<Limit> {
    let (toolkit, gxx) = toolchain()?;
    let limits = Limits {
        cpu: Duration::from_secs(cpu_seconds),
        address_space: Some(address_space),
        wall: Duration::from_secs(300),
        ..Limits::default()
    };
    match to_ptx_within(&limits, &toolkit, &gxx, source, None, LESSON_ARCH).unwrap().0.outcome {
        Outcome::LimitHit { limit, .. } => Some(limit),
        other => panic!("{:.500}", format!("{other:?}")),
    }
}

const TWO: &str = r#"
__global__ void k(const float* in, float* out, int n, float r) {
    __shared__ float s[SIZE];
    int unused = 3;
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x + 1] * n * r;
}
extern "C" __global__ void kk(const float* in, float* out, int n, float r) { out[n] = in[n] * r; }
"#;

#[test]
fn a_right_kernel_gives_ptx_cubin_and_what_it_takes() {
    let Some(build) = check(&TWO.replace("SIZE", "1800")) else { return };
    let Outcome::Compiled(cuda) = build.outcome else { panic!("{build:?}") };
    assert_eq!(&cuda.assembled.cubin[..4], b"\x7fELF");
    let uses: Vec<_> = cuda.assembled.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.shared)).collect();
    assert!(uses.contains(&("_Z1kPKfPfif", 7200)) && uses.contains(&("kk", 0)), "{uses:?}");
    assert!(cuda.assembled.kernels.iter().all(|kernel| kernel.registers > 0));
    assert_eq!(entries(&cuda.ptx).len(), 2);
    assert_eq!(build.warnings.shown[0].line, Some(4));
    assert_eq!(cuda.arch, 75);
}

#[test]
fn an_error_names_its_line_and_column() {
    let Some(said) = first_error("__global__ void k(float* a) {\n    a[0] = b;\n}\n") else { return };
    assert_eq!((said.line, said.column, said.message.as_str()), (Some(2), Some(12), "identifier \"b\" is undefined"));
    assert_eq!(said.source_line.as_deref(), Some("    a[0] = b;"));
}

#[test]
fn what_only_ptxas_reports_is_a_rejection() {
    let Some(said) = first_error(&TWO.replace("SIZE", "18000")) else { return };
    assert!(said.message.contains("too much shared data (72000 bytes, 49152 max)"), "{}", said.message);
}

#[test]
fn files_of_the_machine_do_not_leak_into_messages() {
    for text in [
        "#include \"/etc/passwd\"\n",
        "#define F(x) x\nF(\n#include \"/etc/passwd\"\n)\n",
        "#include \"../../etc/passwd\"\n",
    ] {
        let Some((toolkit, gxx)) = toolchain() else { return };
        let build = check_as_cuda(&toolkit, &gxx, text, None, LESSON_ARCH).unwrap();
        assert!(matches!(build.outcome, Outcome::Rejected(_)));
        let shown = format!("{build:?}");
        assert!(!shown.contains("root") && !shown.contains("daemon") && !shown.contains("heat-grader-"), "{shown}");
    }
}

#[test]
fn templates_that_multiply_hit_the_cpu_or_the_memory_limit() {
    let bomb = "template<int N, int M> struct F { static constexpr long v = F<N-1,2*M>::v + F<N-1,2*M+1>::v; };\n\
                template<int M> struct F<0,M> { static constexpr long v = M; };\n\
                __global__ void k(float* out) { out[0] = F<28,1>::v; }\n";
    assert!(limit(1, 4 << 30, bomb).is_none_or(|hit| hit == Limit::Cpu));
    assert!(limit(60, 400 << 20, bomb).is_none_or(|hit| hit == Limit::Memory));
}

#[test]
fn a_flood_of_warnings_hides_no_error_and_takes_no_age() {
    let text = format!("{}__global__ void k(float* a) {{ a[0] = b; }}\n", "#warning flood\n".repeat(30_000));
    let Some(build) = check(&text) else { return };
    assert!(matches!(build.outcome, Outcome::Rejected(_)), "{:.500}", format!("{build:?}"));
    assert_eq!(build.warnings.shown.len(), 20);
}

#[test]
fn an_endless_include_is_a_fault_of_the_text() {
    let Some(build) = check("#include \"/dev/zero\"\n") else { return };
    assert!(!matches!(build.outcome, Outcome::Compiled(_)));
}

#[test]
fn an_nvcc_that_compiles_nothing_is_an_error_and_not_the_learners_fault() {
    let Some((mut toolkit, gxx)) = toolchain() else { return };
    toolkit.nvcc = "/bin/false".into();
    assert!(check_as_cuda(&toolkit, &gxx, "nonsense", None, LESSON_ARCH).is_err());
    toolkit.nvcc = "/nonexistent/nvcc".into();
    assert!(check_as_cuda(&toolkit, &gxx, "nonsense", None, LESSON_ARCH).is_err());
}

#[test]
fn an_architecture_that_nvcc_dropped_falls_back_to_the_next_it_knows() {
    let Some((toolkit, gxx)) = toolchain() else { return };
    let build = check_as_cuda(&toolkit, &gxx, &TWO.replace("SIZE", "18"), None, 35).unwrap();
    let Outcome::Compiled(cuda) = build.outcome else { panic!("{build:?}") };
    assert!(cuda.arch > 35);
}

#[test]
fn an_empty_text_and_hostile_bytes_are_survived() {
    assert!(check("").is_none_or(|build| matches!(build.outcome, Outcome::Compiled(_))));
    assert!(check("\u{0}\u{1b}[31m(((\n\"").is_none_or(|build| matches!(build.outcome, Outcome::Rejected(_))));
}

#[test]
fn entries_list_names_and_parameter_types() {
    let ptx = "\
.version 9.0
.visible .entry _ZN2ns2tkILi4EEEvPKfPfif(
	.param .u64 .ptr .align 1 _ZN2ns2tkILi4EEEvPKfPfif_param_0,
	.param .u64 _ZN2ns2tkILi4EEEvPKfPfif_param_1,
	.param .u32 _ZN2ns2tkILi4EEEvPKfPfif_param_2,
	.param .f32 _ZN2ns2tkILi4EEEvPKfPfif_param_3
)
.maxntid 256
{
	ret;
}
.entry kk(
	.param .align 8 .b8 kk_param_0[16]
)
{
}
.visible .entry none()
{
}
";
    let found = entries(ptx);
    assert_eq!(found[0].demangled, "void ns::tk<4>(float const*, float*, int, float)");
    assert_eq!(found[0].params, ["u64", "u64", "u32", "f32"]);
    assert_eq!((found[1].mangled.as_str(), found[1].params.as_slice()), ("kk", ["b8[16]".to_owned()].as_slice()));
    assert_eq!((found.len(), found[2].params.len()), (3, 0));
    assert_eq!(["ns::tk", "tk", "kk", "k"].map(|name| most_threads(ptx, name)), [Some(256), Some(256), None, None]);
    let instances = |second: &str| format!("{ptx}{}", ptx.replace("ILi4E", "ILi8E").replace("256", second));
    assert_eq!(most_threads(&instances("256"), "tk"), Some(256));
    assert_eq!(most_threads(&instances("32, 8, 1"), "tk"), Some(256));
    assert_eq!(most_threads(&instances("128"), "tk"), None, "which instance is launched is not known");
}

#[test]
fn ptxas_figures_are_read() {
    let said = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kk' for 'sm_75'
ptxas info    : Function properties for kk
    800 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 64 registers, used 0 barriers, 800 bytes cumulative stack size, 376 bytes cmem[0]
ptxas info    : Compiling entry function '_Z1kPKfPfif' for 'sm_75'
ptxas info    : Function properties for _Z1kPKfPfif
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 7200 bytes smem, 376 bytes cmem[0]
";
    let kernel = |name: &str, registers, shared, stack, spill_stores, spill_loads| KernelUse {
        name: name.to_owned(),
        registers,
        shared,
        stack,
        spill_stores,
        spill_loads,
    };
    assert_eq!(kernel_uses(said), [kernel("kk", 64, 0, 800, 12, 16), kernel("_Z1kPKfPfif", 12, 7200, 0, 0, 0)]);
    let instances = [("_ZN2ns2tkILi4EEEvPKfPfif", 90), ("_ZN2ns2tkILi8EEEvPKfPfif", 70), ("_Z2tkPKfPfif", 30)];
    let uses = instances.map(|(name, registers)| kernel(name, registers, 0, 0, 0, 0));
    assert_eq!(
        ["ns::tk", "tk", "other::tk", "k"].map(|name| registers(&uses, name)),
        [Some(70), Some(30), Some(30), None]
    );
}

#[test]
fn limits_and_machine_faults_are_told_from_faults_of_the_text() {
    let finished = |stderr: &str| Finished {
        status: Some(1),
        signal: None,
        stdout: String::new(),
        stderr: stderr.to_owned(),
        truncated: false,
        wall: Duration::ZERO,
        timed_out: None,
    };
    let judged = |stderr: &str| judge(&finished(stderr), "", Path::new("/tmp/x"), || Ok(()));
    let hit = |stderr: &str| match judged(stderr).unwrap().outcome {
        Outcome::LimitHit { limit, .. } => Some(limit),
        _ => None,
    };
    assert_eq!(hit("nvcc error   : 'cicc' died due to signal 24 (CPU time limit exceeded)"), Some(Limit::Cpu));
    assert_eq!(hit("g++: fatal error: CPU time limit exceeded signal terminated program cc1plus"), Some(Limit::Cpu));
    assert_eq!(hit("heat.cu(1): catastrophic error: out of memory"), Some(Limit::Memory));
    assert_eq!(hit("cc1plus: out of memory allocating 1073741840 bytes"), Some(Limit::Memory));
    assert_eq!(hit("heat.cu(1): error: identifier \"x\" is undefined"), None);
    assert!(judged("nvcc error   : 'cicc' died due to signal 9 (Kill signal)").is_err());
    assert!(judged("fatal error: error writing to heat.ii: No space left on device").is_err());
    // A learner's text must not make a rejection look like a full disk.
    assert!(judged("heat.cu:1:2: error: #error No space left on device").is_ok());
    assert_eq!(hit("nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)"), Some(Limit::Stack));
    let crash = "g++: internal compiler error: Segmentation fault signal terminated program cc1plus";
    assert_eq!(hit(crash), Some(Limit::Stack));
    let Outcome::Rejected(said) = judged("nvcc error   : 'cicc' died due to signal 6 (Abort signal)").unwrap().outcome
    else {
        panic!()
    };
    assert!(said.shown[0].message.contains("signal 6"));
    let Outcome::Rejected(said) = judged("").unwrap().outcome else { panic!() };
    assert_eq!(said.shown[0].message, "the compiler gave up without saying why");
}

#[test]
fn the_shipped_program_compiles() {
    let Ok(source) = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/reference/heat.cu")) else { return };
    let Some(build) = check(&source) else { return };
    let Outcome::Compiled(cuda) = &build.outcome else { panic!("{build:?}") };
    eprintln!("{:?}: {:?}", build.wall, cuda.assembled.kernels);
    let names: Vec<_> = entries(&cuda.ptx).into_iter().map(|entry| entry.demangled).collect();
    assert!(names.iter().any(|name| name == "heatStepTiled(float const*, float*, int, float)"), "{names:?}");
}

#[test]
fn a_library_that_came_without_its_header_is_no_fault_of_the_text() {
    let said = |message: &str| {
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            line: Some(3),
            column: None,
            message: message.to_owned(),
            source_line: None,
            tool: Speaker::Nvcc,
        };
        missing_library(&Diagnostics { shown: vec![diagnostic], more: 0 })
    };
    assert_eq!(said("curand.h: No such file or directory"), Some((3, "curand.h".to_owned())));
    assert_eq!(said("my_helpers.h: No such file or directory"), None);
}

#[test]
fn what_the_preprocessor_left_is_the_same_whether_a_kernel_is_named_or_not() {
    let Some((toolkit, gxx)) = toolchain() else { return };
    let text = "__global__ void k(const float* in, float* out, int n, float r) { out[n] = r * in[n]; }\n";
    let seen = |kernel: Option<&str>| {
        let build = check_as_cuda(&toolkit, &gxx, text, kernel, 75).expect("it compiles");
        let Outcome::Compiled(cuda) = build.outcome else { panic!("rejected") };
        assert_eq!(cuda.entry.is_some(), kernel.is_some());
        cuda.preprocessed.expect("nvcc left it")
    };
    assert_eq!(seen(Some("k")).first_difference(&seen(None), "k", &BTreeSet::new()), None);
}
