//! How a kernel is called in PTX: nvcc is asked, by a variable after the end of heat.cu that points to the kernel.
//!
//! That also instantiates a template and keeps a static kernel that the file never launches. The variable is taken out
//! of the PTX again.

use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result};
use regex::Regex;

use super::diagnostics::pattern;
use super::nvcc::{Entry, entries};
use super::process::Finished;

/// An identifier that no text can know: `hg_` and 16 hexadecimal digits.
pub(super) fn random_name() -> Result<String> {
    let mut bytes = [0; 8];
    let source = "/dev/urandom";
    File::open(source).and_then(|mut file| file.read_exact(&mut bytes)).context(source)?;
    Ok(format!("hg_{:016x}", u64::from_le_bytes(bytes)))
}

/// The variable that points to a kernel.
pub(super) struct Naming {
    /// Its name, and that of the file that it poses as part of.
    pub name: String,
    kernel: String,
}

impl Naming {
    pub fn of(kernel: &str) -> Result<Self> {
        Ok(Self { name: random_name()?, kernel: kernel.split_whitespace().collect::<Vec<_>>().join(" ") })
    }

    /// heat.cu with the variable after its end; the lines before keep their numbers.
    pub fn appended_to(&self, source: &str) -> String {
        let Self { name, kernel } = self;
        format!(
            "{source}\n#line 1 \"{name}\"\n__device__ void (*{name})(const float*, float*, int, float) = {kernel};\n"
        )
    }

    /// What a preprocessor left of heat.cu, without the variable.
    pub fn taken_off<'t>(&self, preprocessed: &'t str) -> &'t str {
        let marker = format!("\n# 1 \"{}\"", self.name);
        preprocessed.find(&marker).map_or(preprocessed, |at| &preprocessed[..at])
    }

    /// Whether nvcc rejects the text where the variable stands: then the text is to be judged without it.
    pub fn is_at_fault(&self, finished: &Finished) -> bool {
        let named = |line: &str| line.starts_with(&self.name) && line.contains("error");
        !finished.success() && finished.stderr.lines().chain(finished.stdout.lines()).any(named)
    }

    /// The PTX without the variable, and where it pointed to; else the one kernel whose name fits.
    pub fn taken_from(&self, ptx: &str) -> (String, Option<String>) {
        let variable = pattern(&format!(r"(?m)^[^\n]*\b{} = ([\w$%]+);[^\n]*\n", self.name));
        let entry = variable.captures(ptx).map(|found| found[1].to_owned());
        let text = variable.replace(ptx, "").into_owned();
        let entry = entry.or_else(|| named(&entries(&text), &self.kernel));
        (text, entry)
    }
}

/// The only kernel of this name (`ns::k<32, 8>`: template arguments do not count) with the exercise's parameters.
fn named(entries: &[Entry], kernel: &str) -> Option<String> {
    let path = kernel.split('<').next()?.trim().trim_start_matches("::");
    let fits = |entry: &&Entry| {
        let types: Vec<&str> = entry.params.iter().map(String::as_str).collect();
        let parameters = matches!(types.as_slice(), ["u64", "u64", "u32" | "s32" | "b32", "f32" | "b32"]);
        parameters && (entry.mangled == last(path) || spelt_like(&entry.demangled, path))
    };
    let mut found = entries.iter().filter(fits);
    let only = found.next()?;
    found.next().is_none().then(|| only.mangled.clone())
}

fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

/// Whether a demangled name, `void (anonymous namespace)::ns::k<4>(float const*, ...)`, is the path's.
fn spelt_like(demangled: &str, path: &str) -> bool {
    let pieces: Regex = pattern(r"^(?:void )?(?:.*::)?([\w$]+)(?:<.*>)?\((?:float const\*, float\*, int, float)\)$");
    let plain = demangled.replace("(anonymous namespace)::", "");
    let whole = || plain.contains(&format!("{path}<")) || plain.contains(&format!("{path}("));
    pieces.captures(&plain).is_some_and(|found| &found[1] == last(path)) && whole()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(mangled: &str, demangled: &str) -> Entry {
        let params = ["u64", "u64", "u32", "f32"].map(str::to_owned).into();
        Entry { mangled: mangled.into(), demangled: demangled.into(), params }
    }

    #[test]
    fn a_kernel_that_nvcc_did_not_name_is_found_by_its_own_name() {
        let signature = "(float const*, float*, int, float)";
        let all = [
            entry("a", &format!("void (anonymous namespace)::ns::k<4, 8>{signature}")),
            entry("b", &format!("kk{signature}")),
            entry("c", "kk(float const*, float*)"),
            entry("plainC", "plainC"),
        ];
        assert_eq!(named(&all, "ns::k<kTileX, kTileX + 4>").as_deref(), Some("a"));
        assert_eq!(named(&all, "kk").as_deref(), Some("b"));
        assert_eq!(named(&all, "::plainC").as_deref(), Some("plainC"));
        assert_eq!(named(&all, "k3"), None);
        assert_eq!(named(&[all[1].clone(), entry("d", &all[1].demangled)], "kk"), None, "two fit");
    }
}
