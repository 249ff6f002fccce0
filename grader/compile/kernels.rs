//! The kernels that PTX holds, and what ptxas says they take.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Match, Regex};

use serde::{Deserialize, Serialize};

use super::diagnostics::{demangle, pattern};

/// What ptxas says a kernel takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelUse {
    /// The mangled name.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Static shared memory a block, bytes.
    pub shared: u32,
    /// Stack frame a thread, bytes: local arrays and spills.
    pub stack: u32,
    /// Bytes spilled a thread: stores, loads.
    pub spill_stores: u32,
    pub spill_loads: u32,
}

/// A kernel that PTX holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub mangled: String,
    /// `ns::step(float const*, float*, int, float)`; the same as `mangled` for extern "C".
    pub demangled: String,
    /// PTX types in order: `u64`, `f32`, `b8[16]` for a struct.
    pub params: Vec<String>,
}

/// The kernels in PTX, each once, in its order.
pub fn entries(ptx: &str) -> Vec<Entry> {
    static ENTRY: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.entry\s+([\w$%]+)\s*(?:\(([^)]*)\))?"));
    static PARAM: LazyLock<Regex> = LazyLock::new(|| pattern(r"\.param\b[^,]*?\.([busf]\d+)\b[^,\[]*(\[\d+\])?"));
    let params = |list: &str| {
        PARAM
            .captures_iter(list)
            .map(|found| format!("{}{}", &found[1], found.get(2).map_or("", |size| size.as_str())))
            .collect()
    };
    let entry = |found: Captures<'_>| Entry {
        mangled: found[1].to_owned(),
        demangled: demangle(&found[1]),
        params: found.get(2).map_or_else(Vec::new, |list| params(list.as_str())),
    };
    let mut found: Vec<Entry> = Vec::new();
    for entry in ENTRY.captures_iter(ptx).map(entry) {
        if !found.iter().any(|known| known.mangled == entry.mangled) {
            found.push(entry);
        }
    }
    found
}

/// The most threads that a block of the kernel may have (`__launch_bounds__`), by its path without template arguments, or
/// where none has that by its name; `None` where the PTX sets no bound, or its instances differ.
pub fn most_threads(ptx: &str, kernel: &str) -> Option<u32> {
    // Between the parameters and the body stand directives with numbers, this one among them.
    static BOUND: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"\.entry\s+([\w$%]+)\s*(?:\([^)]*\))?(?:\s*\.\w+[\d,\s]*?)*?\s*\.maxntid\s+([\d,\s]+)")
    });
    let named: Vec<_> = BOUND.captures_iter(ptx).map(|found| found.extract::<2>().1).collect();
    let threads = |sides: &str| {
        sides.split(',').map(|side| side.trim().parse::<u32>().ok()).try_fold(1u32, |all, side| all.checked_mul(side?))
    };
    let mut bounds = of_kernel(&named, kernel, |[mangled, _]| mangled).map(|[_, sides]| threads(sides));
    let first = bounds.next()??;
    bounds.all(|other| other == Some(first)).then_some(first)
}

/// Mangled names of the global variables that instructions, or the initial values of others, use: what a compiler folded is
/// not among them.
pub fn variables_used(ptx: &str) -> BTreeSet<String> {
    static DECLARED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^[\w\s.]*\.global\s[^=;{}]*?([\w$]+)\s*(?:\[\d*\])*\s*(=|;)"));
    let (mut declared, mut used) = (BTreeSet::new(), BTreeSet::new());
    for line in ptx.lines() {
        let found = DECLARED.captures(line);
        declared.extend(found.as_ref().map(|found| found[1].to_owned()));
        let rest = found.and_then(|found| found.get(0)).map_or(0, |head| head.end());
        used.extend(line[rest..].split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').map(str::to_owned));
    }
    declared.intersection(&used).cloned().collect()
}

/// Registers a thread of the kernel, by its path likewise: of its instances the fewest, since which is launched is not known.
pub fn registers(uses: &[KernelUse], kernel: &str) -> Option<u32> {
    of_kernel(uses, kernel, |used| &used.name).map(|used| used.registers).min()
}

/// Those that are the kernel's by their mangled names: of its path, or where none has that, of its name.
fn of_kernel<'a, T>(all: &'a [T], kernel: &str, mangled: impl Fn(&T) -> &str) -> impl Iterator<Item = &'a T> {
    let path_of = |one: &T| {
        let demangled = demangle(mangled(one));
        let path = demangled.split(['(', '<']).next().unwrap_or_default().trim();
        path.rsplit(' ').next().unwrap_or_default().to_owned()
    };
    let last = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
    let paths: Vec<String> = all.iter().map(path_of).collect();
    let exact = paths.iter().any(|path| path == kernel);
    let is_it = move |path: &str, kernel: &str| if exact { path == kernel } else { last(path) == last(kernel) };
    let chosen: Vec<bool> = paths.iter().map(|path| is_it(path, kernel)).collect();
    all.iter().zip(chosen).filter_map(|(one, chosen)| chosen.then_some(one))
}

/// Reads `ptxas -v`.
pub(super) fn kernel_uses(said: &str) -> Vec<KernelUse> {
    static START: LazyLock<Regex> = LazyLock::new(|| pattern(r"Compiling entry function '([^']+)'"));
    static FRAME: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"));
    static USED: LazyLock<Regex> = LazyLock::new(|| pattern(r"Used (\d+) registers(?:.*?(\d+)(?:\+\d+)? bytes smem)?"));
    let number = |text: Option<Match<'_>>| text.and_then(|text| text.as_str().parse().ok()).unwrap_or(0);
    let mut kernels: Vec<KernelUse> = Vec::new();
    for line in said.lines() {
        if let Some(found) = START.captures(line) {
            kernels.push(KernelUse { name: found[1].to_owned(), ..KernelUse::default() });
        } else if let (Some(found), Some(kernel)) = (FRAME.captures(line), kernels.last_mut()) {
            (kernel.stack, kernel.spill_stores, kernel.spill_loads) =
                (number(found.get(1)), number(found.get(2)), number(found.get(3)));
        } else if let (Some(found), Some(kernel)) = (USED.captures(line), kernels.last_mut()) {
            (kernel.registers, kernel.shared) = (number(found.get(1)), number(found.get(2)));
        }
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_instructions_name_are_used() {
        let ptx = ".global .align 4 .b8 folded[16] = {255, 1};\n.global .align 4 .b8 _ZZ1kE5table[20];\n\
                   .visible .global .align 8 .u64 pointer = generic(behind);\n.global .align 4 .b8 behind[4] = {1};\n\
                   .entry k(\n.param .u64 k_0\n)\n{\nmov.u64 %rd16, _ZZ1kE5table;\nld.global.u64 %rd1, [pointer];\n}\n";
        let used: Vec<_> = variables_used(ptx).into_iter().collect();
        assert_eq!(used, ["_ZZ1kE5table", "behind", "pointer"]);
    }
}
