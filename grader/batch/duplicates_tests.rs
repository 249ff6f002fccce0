use std::path::Path;

use super::*;

fn fixture(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name).join("heat.cu");
    std::fs::read_to_string(file).unwrap()
}

/// The plain fixture and its kernel's part of it.
fn plain() -> (String, Range<usize>) {
    let text = fixture("right/plain");
    let begin = text.rfind("__global__ void heatTwoStep(").unwrap();
    let length = text[begin..].find("\n}\n").unwrap() + 3;
    (text, begin..begin + length)
}

fn with_kernel(change: impl Fn(String) -> String) -> String {
    let (text, kernel) = plain();
    format!("{}{}{}", &text[..kernel.start], change(text[kernel.clone()].to_owned()), &text[kernel.end..])
}

fn renamed(text: &str, names: &[(&str, &str)]) -> String {
    names.iter().fold(text.to_owned(), |text, (from, to)| {
        regex::Regex::new(&format!(r"\b{from}\b")).unwrap().replace_all(&text, *to).into_owned()
    })
}

#[test]
fn names_comments_and_white_space_make_no_difference() {
    let (text, _) = plain();
    let print = kernel_print(&text).expect("a print");
    let names = [("heatTwoStep", "myKernel"), ("row", "zeile"), ("col", "spalte"), ("in", "a"), ("out", "b")];
    assert_eq!(kernel_print(&renamed(&text, &names)), Some(print.clone()));
    let spread = with_kernel(|kernel| kernel.replace(";\n", "; // mine\n\n").replace("    ", "\t"));
    assert_ne!(spread, text);
    assert_eq!(kernel_print(&spread), Some(print));
}

#[test]
fn other_arithmetic_is_another_kernel() {
    let (text, _) = plain();
    let print = kernel_print(&text);
    for (from, to) in [("threadIdx.x", "threadIdx.y"), ("+ 1", "+ 2"), (" < n", " <= n")] {
        let changed = with_kernel(|kernel| kernel.replacen(from, to, 1));
        assert_ne!(changed, text, "{from} stands in it");
        assert_ne!(kernel_print(&changed), print, "{from}");
    }
}

#[test]
fn what_the_kernel_calls_counts_and_what_everybody_hands_in_does_not() {
    let kernel = |helper: &str| {
        let body = "float s = 0.0f; for (int k = 0; k < n; ++k) { s += half(in[k], r) + half(in[k + 1], r) - half(in[k + 2], r); } \
                    if (threadIdx.x == 0 && blockIdx.x == 0) { out[n] = s * r + in[n] * (1.0f - r); }";
        format!(
            "__device__ float half(float x, float y) {{ {helper} }}\n\
                 __global__ void k(const float* in, float* out, int n, float r) {{ {body} }}\n"
        )
    };
    let print = |helper: &str| kernel_print(&(REFERENCE.to_owned() + &kernel(helper)));
    assert!(print("return x * y;").is_some());
    assert_eq!(print("return x * y;"), print("return x*y; /* half */"));
    assert_ne!(print("return x * y;"), print("return x + y;"));
}

#[test]
fn the_lessons_kernels_and_no_kernel_have_no_print() {
    assert_eq!(kernel_print(REFERENCE), None);
    let begin = REFERENCE.find("__global__ void heatStepTiled(").unwrap();
    let length = REFERENCE[begin..].find("\n}\n").unwrap() + 3;
    let copied = REFERENCE[begin..begin + length].replace("heatStepTiled", "heatTwoStep").replace("cells", "tile");
    assert_eq!(kernel_print(&(REFERENCE.to_owned() + &copied)), None);
    assert_eq!(kernel_print("__global__ void k(const float* in, float* out, int n, float r) {}"), None);
    assert_eq!(kernel_print(""), None);
}

#[test]
fn no_two_fixtures_that_differ_are_alike_by_chance() {
    let names = ["right/plain", "wrong/halo_one_cell", "wrong/shared_one_past", "wrong/no_barrier_after_load"];
    let prints: BTreeSet<_> = names.iter().map(|name| kernel_print(&fixture(name)).expect("a print")).collect();
    assert_eq!(prints.len(), names.len());
}

#[test]
fn kernels_written_by_different_people_are_not_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/right");
    let mut by_print: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        if let Some(print) = kernel_print(&fixture(&format!("right/{name}"))) {
            by_print.entry(print).or_default().push(name);
        }
    }
    assert!(by_print.len() > 30, "{by_print:?}");
    // Those that differ from the plain one, or from one another, in their host code, constants and launch bounds alone.
    let mut alike: Vec<_> = by_print.into_values().filter(|names| names.len() > 1).collect();
    alike.iter_mut().for_each(|names| names.sort());
    alike.sort();
    let host_code = ["builders_and_functors", "heap_solver", "kernel_table_thrust"];
    let launches = [
        "copies_every_launch_at_r_above_quarter",
        "decoys",
        "helper_launch",
        "launch_kernel",
        "launch_kernel_ex",
        "namespaced",
        "one_buffer_unfilled",
        "overlapping_tiles",
        "plain",
    ];
    let bounds = ["register_tile", "spilled_registers"];
    let others = ["launch_halves_r", "older_one_in_a_namespace"];
    let ways_to_a_launch = [
        "argument_pack",
        "enumerated_block",
        "kernel_table_by_index",
        "lambda_in_constant",
        "named_instance",
        "struct_in_function",
    ];
    let host_styles = [
        "buffers_that_move",
        "largest_of_a_pack",
        "overloaded_launchers",
        "rows_in_vectors",
        "sizes_with_operators",
        "static_settings",
    ];
    let expected = [
        ways_to_a_launch.to_vec(),
        host_styles.to_vec(),
        host_code.to_vec(),
        launches.to_vec(),
        others.to_vec(),
        bounds.to_vec(),
    ];
    assert_eq!(alike, expected);
}

#[test]
fn groups_are_told_once_and_by_the_stronger_reason() {
    let print = |bytes: &str, kernel: &str| Prints { bytes: Some(bytes.to_owned()), kernel: Some(kernel.to_owned()) };
    let (a, b, c, none) = (print("1", "k"), print("2", "k"), print("3", "m"), Prints::default());
    let of = |prints: &[(&str, &Prints)]| {
        groups(prints).into_iter().map(|group| (group.kind, group.learners.join(" "))).collect::<Vec<_>>()
    };
    assert_eq!(of(&[("ann", &a), ("bob", &a), ("cy", &c)]), [(Likeness::SameBytes, "ann bob".to_owned())]);
    assert_eq!(
        of(&[("dot", &b), ("bob", &a), ("ann", &a)]),
        [(Likeness::SameBytes, "ann bob".to_owned()), (Likeness::SameKernel, "ann bob dot".to_owned())]
    );
    assert_eq!(of(&[("ann", &none), ("bob", &none)]), []);
}
