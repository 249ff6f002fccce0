//! What a report follows from, as digests: when all of it is the same, there is no need to grade again.

use std::path::Path;

use anyhow::{Context, Result};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::grade::{EngineChoice, MAX_SEED, Order, Workshop};
use crate::submission::{ReadError, Submission};

/// Parts of a digest, none of which can run into the next.
#[derive(Clone, Default)]
pub struct Parts(Sha256);

impl Parts {
    pub fn with(mut self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    pub fn maybe(self, part: Option<&str>) -> Self {
        match part {
            Some(part) => self.with("some").with(part),
            None => self.with("none"),
        }
    }

    /// 64 hexadecimal digits.
    pub fn digest(self) -> String {
        HEXLOWER.encode(&self.0.finalize())
    }
}

/// What was handed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Digest of heat.cu, or of why there is none.
    pub program: String,
    /// Digest of heat.cu and answer.md.
    pub whole: String,
    /// Whether heat.cu could be read.
    pub is_read: bool,
}

impl Content {
    pub fn of(read: &Result<Submission, ReadError>) -> Self {
        let (program, answer, note) = match read {
            Ok(read) => (read.sha256.clone(), read.answer_md.as_deref(), read.answer_note.as_deref()),
            Err(fault) => (Parts::default().with("fault").with(fault.to_string()).digest(), None, None),
        };
        let whole = Parts::default().with(&program).maybe(answer).maybe(note).digest();
        Self { program, whole, is_read: read.is_ok() }
    }
}

/// The part of every key that is the machine's, the grader's and the order's.
pub fn common(order: &Order, workshop: &Workshop, exercise: &str) -> Result<Parts> {
    let gpu = match workshop.shared_gpu() {
        Some(Ok(gpu)) => Some(gpu.name.as_str()),
        _ => None,
    };
    let nvcc = workshop.toolkit().as_ref().map(|toolkit| toolkit.version.as_str());
    let gxx = workshop.host_compiler().as_ref().map(|gxx| gxx.version.as_str());
    let engine = match order.engine {
        EngineChoice::Auto => "auto",
        EngineChoice::Cuda => "cuda",
        EngineChoice::Cpu => "cpu",
    };
    let options = (order.scope, order.strict, order.arch, order.sanitize, order.needs_nvcc);
    Ok(Parts::default()
        .with(exercise)
        .with(env!("CARGO_PKG_VERSION"))
        .with(this_binary()?)
        .maybe(nvcc)
        .maybe(gxx)
        .with(engine)
        .maybe(gpu)
        .with(format!("{options:?}")))
}

/// Digest of this program, whose figures and headers are built in.
fn this_binary() -> Result<String> {
    // The one that runs, whatever has taken its place on the disk since.
    let mut file = std::fs::File::open(Path::new("/proc/self/exe")).context("this program cannot be read")?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut file, &mut buffer).context("this program cannot be read")? {
            0 => break,
            read => digest.update(&buffer[..read]),
        }
    }
    Ok(HEXLOWER.encode(&digest.finalize()))
}

/// The seed of one submission: the same for the same program in the same batch, and nothing that gives the batch's away.
pub fn seed_of(batch: u64, program: &str) -> u64 {
    let digest = Parts::default().with("seed").with(batch.to_le_bytes()).with(program).0.finalize();
    digest.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte)) & MAX_SEED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str, answer: Option<&str>) -> Content {
        let read = Submission { answer_md: answer.map(str::to_owned), ..Submission::from_text("ann", text) };
        Content::of(&Ok(read))
    }

    #[test]
    fn the_answer_makes_another_submission_of_the_same_program() {
        let (plain, answered) = (content("a", None), content("a", Some("rows:")));
        assert_eq!(plain.program, answered.program);
        assert_ne!(plain.whole, answered.whole);
        assert_ne!(plain.program, content("b", None).program);
        assert_ne!(content("a", Some("")).whole, plain.whole);
    }

    #[test]
    fn parts_do_not_run_into_one_another() {
        assert_ne!(Parts::default().with("ab").with("c").digest(), Parts::default().with("a").with("bc").digest());
        assert_ne!(Parts::default().maybe(None).digest(), Parts::default().maybe(Some("none")).digest());
    }

    #[test]
    fn seeds_differ_by_batch_and_by_program() {
        assert_eq!(seed_of(1, "a"), seed_of(1, "a"));
        assert!(seed_of(1, "a") != seed_of(2, "a") && seed_of(1, "a") != seed_of(1, "b"));
        assert!(seed_of(1, "a") <= MAX_SEED);
    }
}
