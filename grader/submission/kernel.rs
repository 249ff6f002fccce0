//! Which `__global__` function is the learner's, and how the end of heat.cu would call it.

use std::fmt;

use thiserror::Error;

use super::Kernel;
use super::arrivals::{Arrival, arrivals, completed};
use super::directive;
use super::program::{Function, Program, path_means};
use super::signature::{self, CONTRACT};
use super::sites::Sites;

/// The kernels that the lesson ships.
pub const SHIPPED: [&str; 3] = ["copyGrid", "heatStepGlobal", "heatStepTiled"];

/// A `__global__` function of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name, namespaces included.
    pub name: String,
    /// `(const float*, float*, int, float)`
    pub signature: String,
    /// Line of its definition, from 1.
    pub line: u32,
    /// Why it is not the learner's kernel; nothing when it may be.
    pub why_not: Option<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}{}", self.line, self.name, self.signature)?;
        match &self.why_not {
            Some(why) => write!(f, ": {why}"),
            None => Ok(()),
        }
    }
}

/// Why there is no telling which kernel to grade.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum KernelFault {
    #[error("there is no __global__ function in heat.cu; add a kernel with the parameters {CONTRACT}")]
    NoKernel,
    #[error(
        "no two-step kernel yet: heat.cu has only the kernels of the lesson; add yours with the parameters {CONTRACT}"
    )]
    OnlyShipped { found: Vec<Found> },
    #[error("no __global__ function of heat.cu has the parameters {CONTRACT}")]
    NoneFits { found: Vec<Found> },
    #[error("{} kernels have the parameters {CONTRACT}; say which one is yours: // grader: kernel={}", found.len(), first_name(found))]
    Several { found: Vec<Found> },
    #[error("the template {name} is launched as {}; say which one is yours: // grader: kernel={}", instances.join(" and "), instances.first().map(String::as_str).unwrap_or_default())]
    SeveralInstances { name: String, line: u32, instances: Vec<String> },
    #[error(
        "{name} is a template and nothing gives its arguments; launch it, or say them: // grader: kernel={name}<32, 8>"
    )]
    NoInstance { name: String, line: u32 },
    #[error("line {line}: the directive names {name}, a kernel of the lesson; name your own")]
    DirectiveNamesShipped { name: String, line: u32 },
    #[error("line {line}: the directive names {name}, but heat.cu has no such kernel")]
    DirectiveNamesUnknown { name: String, line: u32, found: Vec<Found> },
    #[error("line {line}: the directive names {}, but {}", found.name, found.why_not.as_deref().unwrap_or_default())]
    DirectiveNamesUnfit { line: u32, found: Found },
    #[error("line {line}: the directive cannot be followed: {what}; the form is {}", directive::FORM)]
    BadDirective { line: u32, what: String },
}

impl KernelFault {
    /// Lines of detail: every kernel that was found, and why it does not count.
    pub fn details(&self) -> Vec<String> {
        match self {
            Self::OnlyShipped { found }
            | Self::NoneFits { found }
            | Self::Several { found }
            | Self::DirectiveNamesUnknown { found, .. } => found.iter().map(ToString::to_string).collect(),
            Self::DirectiveNamesUnfit { found, .. } => vec![found.to_string()],
            _ => Vec::new(),
        }
    }

    /// The line of heat.cu that it is about, from 1.
    pub fn line(&self) -> Option<u32> {
        match self {
            Self::NoKernel | Self::OnlyShipped { .. } => None,
            Self::NoneFits { found } => found.iter().find(|found| !is_shipped(&found.name)).map(|found| found.line),
            // None of them is at fault more than the others, and each is listed with its line.
            Self::Several { .. } => None,
            Self::SeveralInstances { line, .. }
            | Self::NoInstance { line, .. }
            | Self::DirectiveNamesShipped { line, .. }
            | Self::DirectiveNamesUnknown { line, .. }
            | Self::DirectiveNamesUnfit { line, .. }
            | Self::BadDirective { line, .. } => Some(*line),
        }
    }
}

fn first_name(found: &[Found]) -> &str {
    found.first().map(|found| found.name.as_str()).unwrap_or("NAME")
}

/// Finds the learner's kernel by the contract: parameters, name, and where several fit a directive or a launch.
pub fn find_kernel(program: &Program) -> Result<Kernel, KernelFault> {
    let read = directive::read(&program.comments);
    let directive = read.clone().unwrap_or_default();
    if let Some(named) = &directive.kernel {
        return directed(program, named, directive.line);
    }
    let kernels = kernels(program);
    let fitting: Vec<usize> =
        kernels.iter().filter(|(_, found)| found.why_not.is_none()).map(|(index, _)| *index).collect();
    let found = || kernels.iter().map(|(_, found)| found.clone()).collect::<Vec<_>>();
    match fitting.as_slice() {
        [] if kernels.is_empty() => Err(KernelFault::NoKernel),
        [] if kernels.iter().all(|(_, found)| is_shipped(&found.name)) => {
            Err(KernelFault::OnlyShipped { found: found() })
        }
        [] => Err(KernelFault::NoneFits { found: found() }),
        [only] => instance(program, *only),
        several => match (launched(program, several).as_slice(), read) {
            ([only], _) => instance(program, *only),
            (_, Err(bad)) => Err(KernelFault::BadDirective { line: bad.line, what: bad.what }),
            _ => Err(KernelFault::Several {
                found: found().into_iter().filter(|found| found.why_not.is_none()).collect(),
            }),
        },
    }
}

/// Every kernel of the text once, definitions before mere declarations, in the order of their lines.
fn kernels(program: &Program) -> Vec<(usize, Found)> {
    let mut kernels: Vec<(usize, Found)> = Vec::new();
    let globals =
        program.functions.iter().enumerate().filter(|(_, function)| function.global && !function.specialisation);
    let (defined, declared): (Vec<_>, Vec<_>) = globals.partition(|(_, function)| function.body.is_some());
    for (index, function) in defined.into_iter().chain(declared) {
        let found = found(program, function);
        let known = |other: &(usize, Found)| other.1.name == found.name && other.1.signature == found.signature;
        if kernels.len() < 64 && !kernels.iter().any(known) {
            kernels.push((index, found));
        }
    }
    kernels.sort_by_key(|(_, found)| found.line);
    kernels
}

fn found(program: &Program, function: &Function) -> Found {
    let why_not = if is_shipped(&function.path) {
        Some("shipped with the lesson".to_owned())
    } else {
        // A template may leave its body to its specialisations.
        let of_it = |other: &Function| other.path == function.path && other.body.is_some();
        let is_defined = || function.body.is_some() || program.functions.iter().any(of_it);
        let undefined = || (!is_defined()).then(|| "it is declared but never defined".to_owned());
        signature::fault(program, function).or_else(undefined)
    };
    Found {
        name: function.path.to_string(),
        signature: signature::spelt(program, function),
        line: function.line,
        why_not,
    }
}

fn is_shipped(path: &str) -> bool {
    SHIPPED.contains(&path.rsplit("::").next().unwrap_or_default())
}

/// The kernel that a directive names.
fn directed(program: &Program, named: &str, line: u32) -> Result<Kernel, KernelFault> {
    let (name, list) = match named.split_once('<') {
        Some((name, list)) => (name.trim(), Some(list.trim_end().trim_end_matches('>'))),
        None => (named.trim(), None),
    };
    let name = name.trim_start_matches("::");
    let kernels = kernels(program);
    let mut matching: Vec<_> = kernels.iter().filter(|(_, found)| path_means(name, &found.name)).collect();
    matching.sort_by_key(|(_, found)| found.why_not.is_some());
    match matching.as_slice() {
        _ if is_shipped(name) => Err(KernelFault::DirectiveNamesShipped { name: name.to_owned(), line }),
        [] => {
            let found = kernels.into_iter().map(|(_, found)| found).collect();
            Err(KernelFault::DirectiveNamesUnknown { name: name.to_owned(), line, found })
        }
        [(_, found), ..] if found.why_not.is_some() => {
            Err(KernelFault::DirectiveNamesUnfit { line, found: found.clone() })
        }
        [(index, _), ..] => match (list, program.functions.get(*index)) {
            (Some(list), Some(function)) => Ok(called(function, &arguments_of(list))),
            _ => instance(program, *index),
        },
    }
}

fn arguments_of(list: &str) -> Vec<String> {
    let mut depth = 0i32;
    let parts = list.split(|c: char| {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            _ => {}
        }
        depth == 0 && c == ','
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Those of `candidates` that the text launches; of those that it cannot launch without arguments, none if others can.
fn launched(program: &Program, candidates: &[usize]) -> Vec<usize> {
    let sites = Sites::of(program);
    let arrivals = arrivals(program, &sites);
    let launched = |reachable: bool| -> Vec<usize> {
        let hits = |index: &&usize| {
            arrivals
                .iter()
                .any(|arrival| arrival.reachable >= reachable && same_kernel(program, arrival.kernel, **index))
        };
        candidates.iter().filter(hits).copied().collect()
    };
    let reached = launched(true);
    if reached.is_empty() { launched(false) } else { reached }
}

fn same_kernel(program: &Program, one: usize, other: usize) -> bool {
    let path = |index: usize| program.functions.get(index).map(|function| &function.path);
    one == other || path(one) == path(other)
}

/// The kernel with its template arguments, from its launches or defaults.
fn instance(program: &Program, index: usize) -> Result<Kernel, KernelFault> {
    let Some(function) = program.functions.get(index) else { return Err(KernelFault::NoKernel) };
    if function.template.is_none() {
        return Ok(called(function, &[]));
    }
    let (name, line) = (function.path.to_string(), function.line);
    let sites = Sites::of(program);
    let arrivals: Vec<Arrival> =
        arrivals(program, &sites).into_iter().filter(|arrival| same_kernel(program, arrival.kernel, index)).collect();
    let any_reachable = arrivals.iter().any(|arrival| arrival.reachable);
    let mut instances: Vec<Vec<String>> = Vec::new();
    for arrival in arrivals.iter().filter(|arrival| arrival.reachable || !any_reachable) {
        if let Some(arguments) = arrival.arguments.clone().filter(|arguments| !instances.contains(arguments)) {
            instances.push(arguments);
        }
    }
    if instances.len() > 1 {
        // Those that the contract's arguments would deduce: `k<double>` is another kernel's launch.
        instances.retain(|arguments| is_of_the_contract(function, arguments));
    }
    match instances.as_slice() {
        [] => match completed(program, function, Vec::new()) {
            Some(arguments) => Ok(called(function, &arguments)),
            None => Err(KernelFault::NoInstance { name, line }),
        },
        [only] => Ok(called(function, only)),
        several => {
            let instances = several.iter().take(8).map(|arguments| call_text(function, arguments)).collect();
            Err(KernelFault::SeveralInstances { name, line, instances })
        }
    }
}

/// Whether the template's types are those of the contract's parameters.
fn is_of_the_contract(function: &Function, arguments: &[String]) -> bool {
    let parameters = function.template.iter().flatten();
    parameters.zip(arguments).filter(|(parameter, _)| parameter.is_type).all(|(parameter, argument)| {
        let deduced = parameter.name.as_deref().and_then(|name| signature::deduced_type(function, name));
        deduced.is_none_or(|deduced| deduced == *argument)
    })
}

fn called(function: &Function, arguments: &[String]) -> Kernel {
    Kernel { name: function.path.to_string(), call: call_text(function, arguments), line: function.line }
}

/// `ns::twoStep<32, 8>`
pub fn call_text(function: &Function, arguments: &[String]) -> String {
    if arguments.is_empty() {
        function.path.to_string()
    } else {
        format!("{}<{}>", function.path, arguments.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Result<Kernel, KernelFault> {
        find_kernel(&Program::new(text))
    }

    #[test]
    fn parameters_are_compared_as_types() {
        let fitting = [
            "const float* __restrict__ in, float* __restrict__ out, int n, float r",
            "float const *const in, float out[], const int n, const float r",
            "const float in[], float*, std::int32_t, float",
            "const real* in, real* out, size_type n, real r",
            "cptr in, float* const out, signed n, const volatile float r",
            "const FLOAT *RESTRICT in, FLOAT *RESTRICT out, int n = 3, float r = 0.2f",
        ];
        let before = "using real = float; typedef int size_type; typedef const float *cptr;\n#define FLOAT float\n#define RESTRICT __restrict__\n";
        for parameters in fitting {
            let found = find(&format!("{before}static __global__ void __launch_bounds__(256) k({parameters}) {{}}"));
            assert_eq!(found.map(|kernel| kernel.line), Ok(4), "{parameters}");
        }
    }

    #[test]
    fn a_kernel_that_does_not_count_is_listed_with_the_reason() {
        let cases = [
            ("const double* in, double* out, int n, double r", "its in is const double*"),
            ("const float* in, float* out, unsigned n, float r", "its n is unsigned int"),
            ("const float* in, float* out, const int& n, float r", "its n is const int&"),
            ("float* in, float* out, int n, float r", "its in is float*"),
            ("const float* in, float* out, int n", "it has 3 parameters"),
            ("const float* in, float* out, int n, double r", "its r is double"),
        ];
        for (parameters, reason) in cases {
            let fault = find(&format!("__global__ void k({parameters}) {{}}")).expect_err(parameters);
            assert!(matches!(fault, KernelFault::NoneFits { .. }));
            assert!(fault.details().iter().any(|line| line.contains(reason)), "{:?}", fault.details());
        }
    }

    #[test]
    fn shipped_kernels_alone_are_no_submission_yet() {
        let text = "__global__ void heatStepTiled(const float* in, float* out, int n, float r) {}\n";
        assert!(matches!(find(text), Err(KernelFault::OnlyShipped { .. })));
        let named = format!("// grader: kernel=heatStepTiled\n{text}");
        assert!(matches!(find(&named), Err(KernelFault::DirectiveNamesShipped { line: 1, .. })));
        assert_eq!(find("int main() {}"), Err(KernelFault::NoKernel));
    }

    #[test]
    fn of_kernels_of_one_name_the_one_that_the_launch_means_is_taken() {
        let kernel = "__global__ void k(const float*, float*, int, float) {}";
        let run = |name: &str| format!("void run() {{ {name}<<<1, 2>>>(x, y, n, r); }}");
        let cases = [
            (format!("namespace old {{ {kernel} }}\n{kernel}\n{}", run("k")), Ok("k")),
            (format!("namespace mine {{ {kernel} }}\n{kernel}\n{}", run("mine::k")), Ok("mine::k")),
            (format!("namespace mine {{ {kernel}\n{} }}\n{kernel}\n", run("k")), Ok("mine::k")),
            (format!("namespace a {{ namespace b {{ {kernel} {} }} {kernel} }}\n{kernel}", run("k")), Ok("a::b::k")),
            (format!("namespace a {{ namespace b {{ {} }} {kernel} }}\n{kernel}", run("k")), Ok("a::k")),
            (format!("namespace a {{ {kernel} }} namespace b {{ {kernel} {} }}", run("a::k")), Ok("a::k")),
            (format!("namespace a {{ {kernel} }} using namespace a;\n{}", run("k")), Ok("a::k")),
            (
                format!("struct old {{ static {} }};\n{kernel} namespace b {{ {kernel} {} }}", run("k"), run("k")),
                Err(()),
            ),
        ];
        for (text, expected) in cases {
            let found = find(&text).map(|kernel| kernel.name);
            assert_eq!(found.as_deref().map_err(|_| ()), expected, "{text}: {found:?}");
        }
    }

    #[test]
    fn a_template_whose_body_is_a_specialisation_is_defined() {
        let declared = "template <int T> __global__ void k(const float*, float*, int, float);";
        let special = "template <> __global__ void k<32>(const float*, float*, int, float) {}";
        let run = "void run() { k<32><<<1, 2>>>(x, y, n, r); }";
        let found = find(&format!("{declared}\n{special}\n{run}"));
        assert_eq!(found.map(|kernel| kernel.call).as_deref(), Ok("k<32>"));
        assert!(matches!(find(&format!("{declared}\n{run}")), Err(KernelFault::NoneFits { .. })));
    }

    #[test]
    fn of_a_templates_launches_the_one_with_the_contracts_types_is_taken() {
        let template = "template <typename T, int B> __global__ void k(const T* in, T* out, int n, T r) {}\n";
        let run = |launches: &str| format!("{template}void run() {{ {launches} }}");
        let found = find(&run("k<double, 8><<<1, 2>>>(x, y, n, r); k<float, 8><<<1, 2>>>(x, y, n, r);"));
        assert_eq!(found.map(|kernel| kernel.call).as_deref(), Ok("k<float, 8>"));
        let several = find(&run("k<float, 16><<<1, 2>>>(x, y, n, r); k<float, 8><<<1, 2>>>(x, y, n, r);"));
        assert!(matches!(several, Err(KernelFault::SeveralInstances { .. })), "{several:?}");
    }

    #[test]
    fn of_several_kernels_the_launched_or_named_one_is_taken() {
        let two = "__global__ void a(const float*, float*, int, float) {}\n__global__ void b(const float*, float*, int, float) {}\n";
        assert!(matches!(find(two), Err(KernelFault::Several { found }) if found.len() == 2));
        let launched = format!("{two}int main() {{ b<<<1, 2>>>(x, y, n, r); }}");
        assert_eq!(find(&launched).map(|kernel| kernel.name).as_deref(), Ok("b"));
        let named = format!("{launched} // grader: kernel=a\n");
        assert_eq!(find(&named).map(|kernel| kernel.name).as_deref(), Ok("a"));
        let wrong = format!("{launched} // grader: kernel=c\n");
        assert!(matches!(find(&wrong), Err(KernelFault::DirectiveNamesUnknown { .. })));
    }

    #[test]
    fn a_template_needs_one_set_of_arguments() {
        let kernel = "template <int X> __global__ void k(const float*, float*, int, float) {}\n";
        assert!(matches!(find(kernel), Err(KernelFault::NoInstance { .. })));
        let two = format!("{kernel}int main() {{ k<1><<<1, 2>>>(x, y, n, r); k<2><<<1, 2>>>(x, y, n, r); }}");
        assert!(matches!(find(&two), Err(KernelFault::SeveralInstances { .. })));
    }

    #[test]
    fn defaults_count_whichever_declaration_gives_them() {
        let (tail, end) = ("(const float* in, float* out, int n, float r)", "__global__ void k");
        let of = |declared: &str, defined: &str, launch: &str| {
            let main = format!("int main() {{ {launch}<<<g, b>>>(x, y, n, r); }}");
            let (declared, defined) = (format!("{declared} {end}{tail};"), format!("{defined} {end}{tail} {{}}"));
            let before = "struct Cfg { using real = float; static constexpr int tx = 16; };";
            let orders = [format!("{before}{declared}{main}{defined}"), format!("{before}{declared}{defined}{main}")];
            let found = orders.map(|text| find(&text).map(|kernel| kernel.call).map_err(|fault| fault.to_string()));
            assert_eq!(found[0], found[1], "{declared}");
            found[0].clone().unwrap_or_else(|fault| panic!("{declared} {defined} {launch}: {fault}"))
        };
        let plain = "template <int TX, int TY>";
        assert_eq!(of("template <int TX = 32, int TY = 8>", plain, "k"), "k<32, 8>");
        assert_eq!(of("template <int TX = 32, int TY = 8>", plain, "k<>"), "k<32, 8>");
        assert_eq!(of("template <int TX = 32, int TY = 8>", plain, "k<64>"), "k<64, 8>");
        assert_eq!(of("template <int = 32, int = 8>", plain, "k<64>"), "k<64, 8>");
        assert_eq!(of("template <int A, int B = A / 4>", plain, "k<64>"), "k<64, 16>");
        assert_eq!(of("template <int TY, int TX = TY / 4>", plain, "k<64>"), "k<64, 16>");
        assert_eq!(of("template <int A, int B = 8>", "template <int TX = 32, int TY>", "k"), "k<32, 8>");
        assert_eq!(of("template <class P = Cfg, int X = P::tx>", "template <class Q, int X>", "k"), "k<Cfg, 16>");
        assert_eq!(
            of("template <class T = Cfg::real, class U = T>", "template <class T, class U>", "k"),
            "k<float, float>"
        );
    }

    #[test]
    fn defaults_of_another_template_of_the_name_do_not_count() {
        let text = "template <class T = int> __global__ void k(T* x);\n\
            template <class T> __global__ void k(const float*, float*, int, float) {}\n";
        assert!(matches!(find(text), Err(KernelFault::NoInstance { .. })));
    }

    #[test]
    fn what_the_parameters_deduce_beats_a_default() {
        let text = "template <class T = double, int W = 32> __global__ void k(const T*, T*, int, T);\n\
            template <class T, int W> __global__ void k(const T* in, T* out, int n, T r) {}\n";
        assert_eq!(find(text).map(|kernel| kernel.call).as_deref(), Ok("k<float, 32>"));
    }

    #[test]
    fn a_declaration_alone_is_no_kernel_and_one_before_main_does_not_matter() {
        let declared = "__global__ void k(const float*, float*, int, float);\n";
        assert!(matches!(find(declared), Err(KernelFault::NoneFits { .. })));
        let defined =
            format!("{declared}int main() {{}}\n__global__ void k(const float* in, float* out, int n, float r) {{}}");
        assert_eq!(find(&defined).map(|kernel| kernel.line), Ok(3));
    }
}
