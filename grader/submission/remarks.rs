//! What the text alone makes certain: faults of main(), which the grader never runs, and numbers in place of n.
//!
//! A remark that is wrong is worse than none, so each rule knows one plain way to write its fault and passes over anything
//! else.

use std::ops::Range;
use std::sync::Arc;

use super::Kernel;
use super::lexer::{Token, TokenKind};
use super::program::Program;

/// A fault of the host's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    /// Only one of the launch's two grids is filled.
    OneBufferUnfilled,
    /// The launch is given an r above 1/4.
    UnstableR,
    /// The grid is copied to the host after every launch.
    CopyEveryStep,
    /// The program's setting for the learner's launch is still empty, so that it never makes it.
    LaunchNotSet,
    /// Its setting for the words read is still 0.
    WordsNotSet,
}

/// A fault of the host's code, and its line (from 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark {
    pub fault: HostFault,
    pub line: u32,
}

/// The largest stable r.
const STABLE: f64 = 0.25;

/// The line where the kernel's body uses the number `n`, by itself or by the name of a constant, though it is given n.
/// A constant that the launch hands over as n does not count: the grader puts its own n in its place.
pub fn written_n(program: &Program, kernel: &Kernel, n: u32) -> Option<u32> {
    let body = body_of(program, kernel)?;
    let handed_over: Vec<Arc<str>> = launches(program)
        .into_iter()
        .filter_map(|launch| launch.arguments.get(2).cloned())
        .flat_map(|tokens| {
            tokens.filter_map(|at| program.text.tokens.get(at)).map(|token| token.text.clone()).collect::<Vec<_>>()
        })
        .collect();
    let stands_for_n = |token: &Token| match token.kind {
        TokenKind::Number => number(token) == Some(f64::from(n)),
        TokenKind::Identifier => {
            !handed_over.contains(&token.text) && constant(program, &token.text) == Some(f64::from(n))
        }
        _ => false,
    };
    let text = &program.text;
    // `n == 2048` asks for the exercise's size and takes nothing for granted.
    let compared =
        |at: usize| [at.wrapping_sub(1), at + 1].into_iter().any(|by| text.is(by, "==") || text.is(by, "!="));
    let mut found = body.filter(|&at| text.tokens.get(at).is_some_and(stands_for_n) && !compared(at));
    found.next().map(|at| text.line(at))
}

/// Faults of the functions that launch the kernel, each kind once.
pub fn host_faults(program: &Program, kernel: &Kernel) -> Vec<Remark> {
    let own = kernel.name.rsplit("::").next().unwrap_or_default();
    let mut remarks: Vec<Remark> = Vec::new();
    let launches: Vec<Launch> = launches(program).into_iter().filter(|launch| &*launch.kernel == own).collect();
    // Beside a stable one an unstable r is there to be shown.
    let shown = !launches.iter().all(|launch| unstable(program, launch).is_some());
    for launch in &launches {
        let unstable = unstable(program, launch).filter(|_| !shown);
        let found = [unstable, unfilled(program, launch), copied(program, launch)];
        for remark in found.into_iter().flatten() {
            if !remarks.iter().any(|known| known.fault == remark.fault) {
                remarks.push(remark);
            }
        }
    }
    remarks.extend(left_over(program));
    remarks.sort_by_key(|remark| remark.line);
    remarks
}

/// A setting of the shipped program that still has the value with which it was shipped, though there is a kernel now: the
/// launch, which it runs and times nothing without, else the words read, which it prints.
fn left_over(program: &Program) -> Option<Remark> {
    let text = &program.text;
    let set_to = |name: &str, value: &str| {
        let [only] = program.variables.get(name)?.as_slice() else { return None };
        let at = only.declarator.name_at;
        let given = text.tokens.get(at + 2).is_some_and(|token| &*token.text == value);
        let same = given && text.is(at + 1, "=") && text.is(at + 3, ";");
        same.then(|| text.line(at))
    };
    let launch = set_to("kTwoStepLaunch", "nullptr").map(|line| Remark { fault: HostFault::LaunchNotSet, line });
    launch.or_else(|| set_to("kTwoStepWordsRead", "0").map(|line| Remark { fault: HostFault::WordsNotSet, line }))
}

/// `kernel<<<...>>>(a, b, n, r)` in a function's body.
struct Launch {
    kernel: Arc<str>,
    /// Of the kernel's name.
    at: usize,
    /// Tokens of each argument.
    arguments: Vec<Range<usize>>,
    /// Tokens of the function's body.
    function: Range<usize>,
}

fn launches(program: &Program) -> Vec<Launch> {
    let text = &program.text;
    let of_function = |function: Range<usize>| {
        function.clone().filter(|&at| text.is(at, "<<<")).filter_map(move |at| {
            let close = (at..function.end).find(|&at| text.is(at, ">>>"))?;
            let kernel = text.tokens.get(at.checked_sub(1)?).filter(|token| token.is_identifier())?;
            Some(Launch {
                kernel: kernel.text.clone(),
                at: at - 1,
                arguments: arguments(program, close + 1)?,
                function: function.clone(),
            })
        })
    };
    let bodies =
        program.functions.iter().filter(|function| !function.global).filter_map(|function| function.body.as_ref());
    bodies.flat_map(|body| of_function(body.at.clone()).collect::<Vec<_>>()).collect()
}

/// The arguments in the brackets that open at a token.
fn arguments(program: &Program, open: usize) -> Option<Vec<Range<usize>>> {
    let text = &program.text;
    let close = Some(text.partner(open)).filter(|&close| text.is(open, "(") && close < text.tokens.len())?;
    let (mut all, mut from, mut at) = (Vec::new(), open + 1, open + 1);
    while at < close {
        if text.is(at, ",") {
            all.push(from..at);
            from = at + 1;
        }
        // Over brackets within.
        let partner = text.partner(at);
        at = if partner < close { partner + 1 } else { at + 1 };
    }
    all.push(from..close);
    Some(all)
}

fn body_of(program: &Program, kernel: &Kernel) -> Option<Range<usize>> {
    let mut own = program.functions.iter().filter(|function| function.global && *function.path == *kernel.name);
    own.find(|function| function.body.is_some())?.body.as_ref().map(|body| body.at.clone())
}

/// A number's value without its suffix; `None` for anything but plain decimals.
fn number(token: &Token) -> Option<f64> {
    let digits = token.text.replace('\'', "");
    let plain = digits.trim_end_matches(['f', 'F', 'u', 'U', 'l', 'L']);
    let decimal = plain.chars().all(|c| c.is_ascii_digit() || c == '.');
    plain.parse().ok().filter(|_| decimal && token.kind == TokenKind::Number)
}

/// The value of a constant outside functions, when it is one number.
fn constant(program: &Program, name: &str) -> Option<f64> {
    let text = &program.text;
    let single = |at: &Range<usize>| (at.len() == 1).then(|| text.tokens.get(at.start)).flatten().and_then(number);
    if let Some(defined) = program.constants.get(name) {
        return single(&defined.value.at);
    }
    match program.variables.get(name)?.as_slice() {
        [one] => initial(program, one.declarator.name_at),
        _ => None,
    }
}

/// The one number after `name =`.
fn initial(program: &Program, name_at: usize) -> Option<f64> {
    let text = &program.text;
    let ends = text.is(name_at + 3, ";") || text.is(name_at + 3, ",");
    (text.is(name_at + 1, "=") && ends).then(|| text.tokens.get(name_at + 2)).flatten().and_then(number)
}

/// An argument of one name.
fn name<'p>(program: &'p Program, argument: &Range<usize>) -> Option<&'p Token> {
    (argument.len() == 1)
        .then(|| program.text.tokens.get(argument.start))
        .flatten()
        .filter(|token| token.is_identifier())
}

fn unstable(program: &Program, launch: &Launch) -> Option<Remark> {
    let argument = launch.arguments.get(3)?;
    let given = program.text.tokens.get(argument.start).filter(|_| argument.len() == 1)?;
    let value = match given.kind {
        TokenKind::Number => number(given)?,
        TokenKind::Identifier => local_constant(program, launch, &given.text)?,
        _ => return None,
    };
    (value > STABLE).then_some(Remark { fault: HostFault::UnstableR, line: given.line })
}

/// A `const` or `constexpr` number of the function, or of the file where the function has no such name.
fn local_constant(program: &Program, launch: &Launch, name: &str) -> Option<f64> {
    let text = &program.text;
    let mut declared = launch.function.clone().filter(|&at| {
        let typed = text.tokens.get(at.wrapping_sub(1)).is_some_and(|token| token.is("float") || token.is("auto"));
        typed && text.is(at, name)
    });
    match (declared.next(), declared.next()) {
        (Some(at), None) => {
            let word = |back: usize| text.tokens.get(at.wrapping_sub(back));
            let fixed = word(2).is_some_and(|token| token.is("const") || token.is("constexpr"));
            initial(program, at).filter(|_| fixed)
        }
        (None, _) => constant(program, name),
        _ => None,
    }
}

/// One grid of the launch is filled and the other is nowhere but where it is allocated, launched, swapped, read and freed.
fn unfilled(program: &Program, launch: &Launch) -> Option<Remark> {
    let (one, other) = (name(program, launch.arguments.first()?)?, name(program, launch.arguments.get(1)?)?);
    let uses = |name: &str| -> Option<Vec<Use>> {
        let text = &program.text;
        let places = launch.function.clone().filter(|&at| text.is(at, name));
        places.map(|at| use_of(program, launch, at)).collect()
    };
    let (ones, others) = (uses(&one.text)?, uses(&other.text)?);
    let allocated = |uses: &[Use]| uses.iter().filter(|used| **used == Use::Allocated).count() == 1;
    let filled = |uses: &[Use]| uses.contains(&Use::Filled);
    let certain = one.text != other.text && allocated(&ones) && allocated(&others) && filled(&ones) != filled(&others);
    let unfilled = if filled(&ones) { other } else { one };
    certain.then_some(Remark { fault: HostFault::OneBufferUnfilled, line: unfilled.line })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Allocated,
    Filled,
    Other,
}

/// What is done with a grid at a token; `None` where that is not plain.
fn use_of(program: &Program, launch: &Launch, at: usize) -> Option<Use> {
    let text = &program.text;
    if launch.arguments.iter().any(|argument| argument.contains(&at)) {
        return Some(Use::Other);
    }
    // The innermost call that the token stands in.
    let open = (launch.function.start..at).rev().find(|&open| text.is(open, "(") && text.partner(open) > at);
    let Some(open) = open.filter(|&open| text.partner(open) < launch.function.end) else {
        // A declaration: `float *a, *b;` or `float* a = nullptr;`
        let before = text.tokens.get(at.wrapping_sub(1))?;
        return (before.is("*") || before.is("float")).then_some(Use::Other);
    };
    let called = text.tokens.get(open.wrapping_sub(1)).filter(|token| token.is_identifier())?;
    let position = arguments(program, open)?.iter().position(|argument| argument.contains(&at))?;
    match (&*called.text, position) {
        ("cudaMalloc", 0) => Some(Use::Allocated),
        ("cudaMemcpy", 0) => Some(Use::Filled),
        ("cudaMemcpy", 1) | ("cudaFree" | "swap", _) => Some(Use::Other),
        _ => None,
    }
}

/// `for (...) { launch; ...; cudaMemcpy(..., cudaMemcpyDeviceToHost); }`, the copy under no condition.
fn copied(program: &Program, launch: &Launch) -> Option<Remark> {
    let text = &program.text;
    let encloses =
        |open: &usize| text.is(*open, "{") && (launch.at..launch.function.end).contains(&text.partner(*open));
    let open = (launch.function.start..launch.at).rev().find(encloses)?;
    let header_close = open.checked_sub(1).filter(|&at| text.is(at, ")"))?;
    let header = (launch.function.start..header_close).rev().find(|&at| text.partner(at) == header_close)?;
    let looped = text.is(header.checked_sub(1)?, "for");
    let mut at = open + 1;
    while looped && at < text.partner(open) {
        let statement = text.is(at - 1, ";") || text.is(at - 1, "{") || text.is(at - 1, "}");
        let to_host = |call: usize| {
            (call..text.partner(call + 1)).any(|at| text.is(at, "cudaMemcpyDeviceToHost")) && text.is(call + 1, "(")
        };
        if statement && text.is(at, "cudaMemcpy") && to_host(at) {
            return Some(Remark { fault: HostFault::CopyEveryStep, line: text.line(at) });
        }
        // Over what stands in brackets of its own: a block under a condition, say.
        let partner = text.partner(at);
        at = if partner < text.partner(open) { partner + 1 } else { at + 1 };
    }
    None
}

#[cfg(test)]
mod tests {
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
        let looped =
            |copy: &str| faults(&format!("for (int i = 0; i < 9; ++i) {{ two<<<1, 2>>>(a, b, n, r); {copy} }}"));
        let copy = "cudaMemcpy(u, b, 4 * n, cudaMemcpyDeviceToHost);";
        assert_eq!(looped(copy), [HostFault::CopyEveryStep]);
        assert!(looped(&format!("if (i % 100 == 0) {{ {copy} }}")).is_empty());
        assert!(looped(&format!("if (i % 100 == 0) {copy}")).is_empty());
        assert!(faults(&format!("two<<<1, 2>>>(a, b, n, r); {copy}")).is_empty());
    }

    #[test]
    fn a_setting_of_the_shipped_program_that_was_left_over_is_named() {
        let with = |settings: &str| {
            let text =
                format!("{}{settings}void run() {{ two<<<1, 2>>>(a, b, n, r); }}\n", KERNEL.replace("BOUND", "n"));
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
}
