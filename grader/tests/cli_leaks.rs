//! What a report must never hold: text of files beside the submission, and what names the grading machine.

use std::fs;
use std::path::Path;

use assert_cmd::Command;

/// Stands in every file that is not the submission's, and in the environment.
const SECRET: &str = "secretofann";

/// The plain fixture with lines before it, and lines at the start of its kernel.
fn program(before: &str, inside: &str) -> String {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/right/plain/heat.cu");
    let text = fs::read_to_string(fixture).expect("the plain fixture");
    let kernel = text.find("__global__ void heatTwoStep(").expect("its kernel");
    let body = kernel + text[kernel..].find('{').expect("its body") + 1;
    format!("{before}\n{}\n{inside}\n{}", &text[..body], &text[body..])
}

/// Everything that `check` says of a program that lies in `class/me`, in a folder with other people's files.
fn said(before: &str, inside: &str) -> String {
    let class = tempfile::Builder::new().prefix("gradingmachine").tempdir().expect("a folder");
    for folder in ["me", "ann"] {
        fs::create_dir(class.path().join(folder)).expect("a folder");
    }
    let theirs = format!("int {SECRET} = @;\n#error {SECRET}\n");
    fs::write(class.path().join("ann/heat.cu"), &theirs).expect("a file");
    fs::write(class.path().join("secret.h"), &theirs).expect("a file");
    let root = class.path().to_string_lossy().into_owned();
    let fill = |text: &str| text.replace("ROOT", &root);
    fs::write(class.path().join("me/heat.cu"), program(&fill(before), &fill(inside))).expect("a file");
    let output = Command::cargo_bin("heat-grader")
        .expect("the binary")
        .current_dir(class.path())
        .args(["check", "me", "--seed", "1", "--offline", "--engine", "cpu", "--report", "-"])
        .env("HEAT_TEST_SECRET", SECRET)
        .env("LOGNAME", SECRET)
        .env("TMPDIR", class.path())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // What the submission itself spells is its own to see again.
    text.replace(&root, if before.contains("ROOT") || inside.contains("ROOT") { "" } else { &root })
}

fn first_line(path: &str) -> Option<String> {
    let line = fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned();
    (line.len() >= 6).then_some(line)
}

#[test]
fn a_report_holds_no_text_of_other_files_and_no_name_of_the_machine() {
    let cases = [
        ("#include \"/etc/passwd\"", ""),
        ("#include \"../ann/heat.cu\"", ""),
        ("#include \"ROOT/ann/heat.cu\"", ""),
        ("#include \"ROOT/secret.h\"", ""),
        ("#define FILE_NAME \"ROOT/secret.h\"\n#include FILE_NAME", ""),
        ("%:include \"ROOT/secret.h\"", ""),
        ("#inc\\\nlude \"ROOT/secret.h\"", ""),
        ("#define X(a) #a\n#define int X(\n#include \"ROOT/secret.h\"\n)", ""),
        ("const unsigned char secret[] = {\n#embed \"/etc/passwd\"\n};\nstatic_assert(secret[0] == 0, \"\");", ""),
        ("#include \"/proc/self/environ\"", ""),
        ("#include \"/etc/hostname\"", ""),
        ("#pragma GCC dependency \"ROOT/secret.h\"", ""),
        ("asm(\".incbin \\\"ROOT/secret.h\\\"\");", ""),
        ("asm(\".include \\\"ROOT/secret.h\\\"\");", ""),
        ("#line 1 \"ROOT/secret.h\"\nint a = ;", ""),
        ("# 1 \"ROOT/ann/heat.cu\" 1\nint a = undefined_thing;\n# 2 \"heat.cu\" 2", ""),
        ("static_assert(false, __FILE__ \" \" __BASE_FILE__);", ""),
        ("#error __FILE__\n#pragma message(__FILE__)", ""),
        ("template <int> struct S; S<sizeof(__FILE__)> s;", ""),
        ("[[deprecated(__FILE__)]] void d() {}\nvoid e() { d(); }\nint x = ;", ""),
        ("#include <vector>\nstd::vector<int&> v;", ""),
        ("", "\n#line 1 \"ROOT/secret.h\"\nout[n + 5] = in[-1];"),
        ("", "\n# 1 \"ROOT/ann/heat.cu\"\nout[n + 5] = in[-1];"),
        ("", "\n#line 1 \"/etc/passwd\"\nout[n + 5] = in[-1];"),
        ("", "if (threadIdx.x == 0 && blockIdx.x == 0 && blockIdx.y == 0) printf(\"%s %s\\n\", __FILE__, __func__);"),
        ("#include <undefined_header.h>", ""),
        ("__global__ void huge() { __shared__ float t[1 << 20]; t[0] = 1; }", ""),
        ("extern \"C\" void __tsan_read4(void*) {}", ""),
    ];
    let machine = ["/etc/hostname", "/etc/passwd"].map(first_line);
    let forbidden: Vec<&str> =
        machine.iter().flatten().map(String::as_str).chain([SECRET, "gradingmachine", "cuda_on_host"]).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(8) {
            scope.spawn(|| {
                while let Some((before, inside)) = cases.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    let text = said(before, inside);
                    assert!(text.contains("\"verdict\""), "{before}{inside}: no report: {text}");
                    for word in &forbidden {
                        assert!(!text.contains(word), "{before}{inside}: {word} in {text}");
                    }
                }
            });
        }
    });
}
