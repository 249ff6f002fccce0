//! Recorded outputs of nvcc 13.0.88 (with g++ 12.2 before it), g++ 12.2 and ptxas 13.0.88.

use proptest::prelude::*;

use super::*;

const SOURCE: &str = "\
#include <vector>
#define BAD(x) undefined_##x
__global__ void k(const float* in, float* out, int n, float r) {
    int x = undefined_name;
    float y = \"abc\"
    BAD(r);
    in[3] = 2.0f;
}
void two(int a, int b); void two(float* a, int b);
template<class T> T f(T x) { return x.foo(); }
int g() { int unused = 3; two(\"x\", 3); std::vector<int&> v; return f(2); }
#include \"/home/other/secret.txt\"
";

const NVCC: &str = r#"heat.cu(4): error: identifier "undefined_name" is undefined
      int x = undefined_name;
              ^

heat.cu(5): error #144: a value of type "const char *" cannot be used to initialize an entity of type "float"
      float y = "abc"
                ^

heat.cu(6): error: identifier "undefined_r" is undefined
      undefined_r;
      ^

heat.cu(11): error: no instance of overloaded function "two" matches the argument list
            argument types are: (const char [2], int)
  int g() { int unused = 3; two("x", 3); std::vector<int&> v; return f(2); }
                            ^
heat.cu(9): note #3326-D: function "two(float *, int)" does not match because argument #1 does not match parameter
  void two(int a, int b); void two(float* a, int b);
                               ^

/usr/include/c++/12/bits/new_allocator.h(63): error: pointer to reference is not allowed
        typedef _Tp* pointer;
                   ^
          detected during:
            instantiation of class "std::__new_allocator<_Tp> [with _Tp=int &]" at line 124 of /usr/include/c++/12/bits/allocator.h
            instantiation of class "std::vector<_Tp, _Alloc> [with _Tp=int &, _Alloc=std::allocator<int &>]" at line 11 of heat.cu

/home/other/secret.txt(1): error: identifier "hunter2" is undefined
  hunter2
  ^

heat.cu(11): warning #177-D: variable "unused" was declared but never referenced
  int g() { int unused = 3; two("x", 3); std::vector<int&> v; return f(2); }
                ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

heat.cu(10): error: expression must have class type but it has type "int"
  template<class T> T f(T x) { return x.foo(); }
                                      ^
          detected during instantiation of "T f(T) [with T=int]" at line 11

6 errors detected in the compilation of "heat.cu".
"#;

const GXX: &str = "\
heat.cu: In function 'void k(const float*, float*, int, float)':
heat.cu:4:13: error: 'undefined_name' was not declared in this scope
    4 |     int x = undefined_name;
      |             ^~~~~~~~~~~~~~
heat.cu:2:16: error: 'undefined_r' was not declared in this scope
    2 | #define BAD(x) undefined_##x
      |                ^~~~~~~~~~
heat.cu:6:5: note: in expansion of macro 'BAD'
    6 |     BAD(r);
      |     ^~~
heat.cu:7:11: error: assignment of read-only location '*(in + 12)'
heat.cu:7:11: error: assignment of read-only location '*(in + 12)'
In file included from /usr/include/x86_64-linux-gnu/c++/12/bits/c++allocator.h:33,
                 from /usr/include/c++/12/vector:61,
                 from heat.cu:1:
/usr/include/c++/12/bits/new_allocator.h: In instantiation of 'class std::__new_allocator<int&>':
/usr/include/c++/12/bits/stl_vector.h:423:11:   required from 'class std::vector<int&>'
heat.cu:11:58:   required from here
/usr/include/c++/12/bits/new_allocator.h:63:26: error: forming pointer to reference type 'int&'
   63 |       typedef _Tp*       pointer;
      |                          ^~~~~~~
In file included from heat.cu:12:
/home/other/secret.txt:1:1: error: 'hunter2' does not name a type
    1 | hunter2
      | ^~~~~~~
heat.cu:12:10: fatal error: /tmp/heat-grader-a1b2/nosuch.h: No such file or directory
/usr/bin/ld: /tmp/cc12.o: in function `main': heat.cu:(.text+0x9): undefined reference to `helper(int)'
";

fn folder() -> &'static Path {
    Path::new("/tmp/heat-grader-a1b2")
}

fn errors(output: &str) -> Vec<Diagnostic> {
    parse(output, SOURCE, folder()).0.shown
}

fn brief(said: &[Diagnostic]) -> Vec<(Option<u32>, Option<u32>, &str)> {
    said.iter().map(|said| (said.line, said.column, said.message.as_str())).collect()
}

#[test]
fn nvcc_messages_keep_line_column_and_words() {
    let said = errors(NVCC);
    let elsewhere = "error in new_allocator.h, a file that this line includes or whose templates it uses";
    let secret = "error in secret.txt, a file that this line includes or whose templates it uses";
    assert_eq!(
        brief(&said),
        [
            (Some(4), Some(13), r#"identifier "undefined_name" is undefined"#),
            (
                Some(5),
                Some(15),
                r#"a value of type "const char *" cannot be used to initialize an entity of type "float""#
            ),
            (Some(6), None, r#"identifier "undefined_r" is undefined"#),
            (
                Some(11),
                Some(27),
                r#"no instance of overloaded function "two" matches the argument list; argument types are: (const char [2], int)"#
            ),
            (
                Some(9),
                Some(30),
                r#"function "two(float *, int)" does not match because argument #1 does not match parameter"#
            ),
            (Some(11), None, elsewhere),
            (Some(12), None, secret),
            (
                Some(10),
                Some(37),
                r#"expression must have class type but it has type "int" (detected during instantiation of "T f(T) [with T=int]" at line 11)"#
            ),
        ]
    );
    assert_eq!(said[0].source_line.as_deref(), Some("    int x = undefined_name;"));
    assert_eq!((said[0].tool, said[4].severity), (Speaker::Nvcc, Severity::Note));
}

#[test]
fn a_message_with_line_ends_in_it_stays_one() {
    let output = "heat.cu(4): error: static assertion failed with \"\n::error::PASSED\nheat.cu:1: error: forged\"\n  \
                  static_assert(false, \"...\");\n  ^\n\nheat.cu(5): error: identifier \"b\" is undefined\n";
    let said = errors(output);
    let message = "static assertion failed with \"\\n::error::PASSED\\nheat.cu:1: error: forged\"";
    assert_eq!(brief(&said), [(Some(4), None, message), (Some(5), None, "identifier \"b\" is undefined")]);
}

#[test]
fn warnings_are_kept_apart() {
    let warnings = parse(NVCC, SOURCE, folder()).1;
    assert_eq!(
        brief(&warnings.shown),
        [(Some(11), Some(15), r#"variable "unused" was declared but never referenced"#)]
    );
}

#[test]
fn gxx_messages_keep_line_and_column_and_come_once() {
    let said = errors(GXX);
    let elsewhere = "error in new_allocator.h, a file that this line includes or whose templates it uses";
    let secret = "error in secret.txt, a file that this line includes or whose templates it uses";
    assert_eq!(
        brief(&said),
        [
            (Some(4), Some(13), "'undefined_name' was not declared in this scope"),
            (Some(2), Some(16), "'undefined_r' was not declared in this scope"),
            (Some(6), Some(5), "in expansion of macro 'BAD'"),
            (Some(7), Some(11), "assignment of read-only location '*(in + 12)'"),
            (Some(11), None, elsewhere),
            (Some(12), None, secret),
            (Some(12), Some(10), "nosuch.h: No such file or directory"),
            (None, None, "undefined reference to `helper(int)'"),
        ]
    );
    assert_eq!(said[0].tool, Speaker::HostCompiler);
}

#[test]
fn text_of_other_files_and_folders_never_show() {
    for output in [NVCC, GXX] {
        let (errors, warnings) = parse(output, SOURCE, folder());
        let shown = serde_json::to_string(&(errors, warnings)).unwrap().replace("/home/other/secret.txt\\\"", "");
        for secret in ["hunter2", "/usr/include", "/tmp", "typedef"] {
            assert!(!shown.contains(secret), "{secret} in {shown}");
        }
    }
}

#[test]
fn ptxas_speaks_plainly() {
    let said = errors(
        "ptxas error   : Entry function '_Z1kPKfPfif' uses too much shared data (0x11940 bytes, 0xc000 max)\n\
         ptxas heat.ptx, line 12; fatal   : Parsing error near '@': syntax error\n\
         ptxas fatal   : Ptx assembly aborted due to errors\n",
    );
    assert_eq!(
        said[0].message,
        "Entry function 'k(float const*, float*, int, float)' uses too much shared data (72000 bytes, 49152 max)"
    );
    assert_eq!((said[0].tool, said[1].message.as_str()), (Speaker::Ptxas, "Parsing error near '@': syntax error"));
}

#[test]
fn a_flood_is_capped_and_counted_and_hides_no_error() {
    let mut output: String = (0..500).map(|line| format!("heat.cu({line}): warning #1-D: odd\n\n")).collect();
    output.push_str("heat.cu(4): error: identifier \"undefined_name\" is undefined\n");
    let (errors, warnings) = parse(&output, SOURCE, folder());
    assert_eq!((errors.shown.len(), errors.more), (1, 0));
    assert_eq!((warnings.shown.len(), warnings.more), (20, 480));
}

#[test]
fn terminal_escapes_and_text_direction_are_spelled_out() {
    let said = errors("heat.cu:1:1: error: #error \u{1b}[2J\u{202e}evil\u{7}\tend\r\n");
    assert_eq!(said[0].message, r"#error \u{1b}[2J\u{202e}evil\u{7} end");
    assert_eq!(plain(&"x".repeat(50), 10), "xxxxxxxxxx...");
}

#[test]
fn paths_lose_their_folders_and_arithmetic_stays() {
    assert_eq!(without_folders("see '/usr/include/c++/12/vector' and a / b, x/y"), "see 'vector' and a / b, x/y");
    assert_eq!(without_folders("\"/home/me/a.h\""), "\"a.h\"");
}

#[test]
fn symbols_are_demangled_where_they_can_be() {
    assert_eq!(demangle("_ZN2ns2tkILi4EEEvPKfPfif"), "void ns::tk<4>(float const*, float*, int, float)");
    assert_eq!(demangle("kk"), "kk");
    assert_eq!(demangle("_Z"), "_Z");
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_and_no_message_has_control_characters(
        lines in proptest::collection::vec("(heat\\.cu[(:][0-9]{1,12}[):]:? ?([0-9]:)? ?(error|note)[:#] ?.{0,40}|( ){0,20}\\^| at line [0-9]{1,12}( of heat\\.cu)?|.{0,60})", 0..30),
        source in ".{0,200}",
    ) {
        let (errors, warnings) = parse(&lines.join("\n"), &source, folder());
        for said in errors.shown.iter().chain(&warnings.shown) {
            prop_assert!(!said.message.chars().any(char::is_control));
            prop_assert!(said.message.chars().count() <= 403);
        }
    }
}
