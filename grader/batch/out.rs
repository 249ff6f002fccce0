//! The folder of a batch's results: the only file that knows what lies where in it.
//!
//! ```text
//! DIR/batch.json             the seed of everything in it
//! DIR/reports/LEARNER.json   one report a submission
//! DIR/ledger/LEARNER.json    what that report is about, and its digest
//! DIR/earlier/LEARNER.json   a verdict that a later submission's `ungraded` has replaced
//! DIR/class.json             who is in the class, and which of them are graded here
//! DIR/summary.json, ...      the products
//! ```
//!
//! A report is believed when its digest is the ledger's: half of one, or one that somebody has edited, is not. The ledger
//! is written first, so that there is no moment at which a whole new report lies there and is not believed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::grade::{MAX_SEED, seed};
use crate::outbox::{self, TEMPORARY};
use crate::report::{Report, json};
use crate::submission::handed::RESULTS;
use crate::verdict::Verdict;

pub const BATCH: &str = RESULTS[0];
pub const REPORTS: &str = RESULTS[1];
const LEDGER: &str = "ledger";
const EARLIER: &str = "earlier";
const LOCK: &str = ".lock";
/// Times that a held lock is tried again, 10 ms apart.
const LOCK_TRIES: u32 = 30;

/// What is the same for everything in the folder.
#[derive(Debug, Serialize, Deserialize)]
struct Batch {
    /// Version of this file: 1.
    schema: u32,
    /// What each submission's seed is derived from; known to the instructor alone.
    seed: u64,
}

/// What a report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Digest of everything that the report follows from.
    pub key: String,
    /// Digest of what was handed in.
    pub content: String,
    /// SHA-256 of the report's file.
    pub report: String,
}

/// A report that is believed.
#[derive(Debug)]
pub struct Kept {
    pub entry: Entry,
    pub report: Report,
    /// The bytes of its file.
    pub text: Vec<u8>,
}

/// What lies in a folder of results about a learner.
#[derive(Debug)]
pub enum Found {
    Whole(Box<Kept>),
    /// A report that is not as it was written: torn, edited, or without the ledger's word for it.
    Damaged,
    Nothing,
}

impl Found {
    pub fn whole(self) -> Option<Kept> {
        match self {
            Self::Whole(kept) => Some(*kept),
            Self::Damaged | Self::Nothing => None,
        }
    }
}

/// The folder, held by this process alone.
#[derive(Debug)]
pub struct Out {
    folder: PathBuf,
    _lock: File,
}

impl Out {
    /// Makes or takes over the folder. The inner error says what is wrong with what was typed.
    pub fn open(folder: &Path) -> Result<Result<Self, String>> {
        let shown = folder.display();
        if folder.exists() && !folder.is_dir() {
            return Ok(Err(format!("{shown} is a file; --out names a folder")));
        }
        for part in [REPORTS, LEDGER] {
            fs::create_dir_all(folder.join(part)).with_context(|| format!("{shown} cannot be made"))?;
        }
        let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK));
        let lock = lock.with_context(|| format!("{shown} cannot be written to"))?;
        let mut locked = lock.try_lock();
        for _ in 0..LOCK_TRIES {
            // A process that another thread is just starting holds a copy of every open file for a moment.
            if !matches!(locked, Err(fs::TryLockError::WouldBlock)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            locked = lock.try_lock();
        }
        match locked {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Ok(Err(format!("another batch is writing to {shown}"))),
            Err(fs::TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{shown} cannot be locked"));
            }
        }
        let out = Self { folder: folder.to_owned(), _lock: lock };
        out.sweep();
        Ok(Ok(out))
    }

    /// Deletes what a process that was killed in the middle of writing has left.
    pub fn sweep(&self) {
        for part in ["", REPORTS, LEDGER] {
            for entry in fs::read_dir(self.folder.join(part)).into_iter().flatten().flatten() {
                let name = entry.file_name();
                if name.to_string_lossy().starts_with(TEMPORARY) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                    let _ = fs::remove_file(entry.path());
                }
            }
        }
    }

    /// The batch's seed: the one that is typed, else the one kept, else a random one; kept from now on.
    pub fn seed(&self, typed: Option<u64>) -> Result<u64> {
        let kept = match kept_seed(&self.folder) {
            Ok(kept) => kept,
            Err(_) if typed.is_some() => None,
            Err(error) => anyhow::bail!("{error:#}; give --seed, or another --out"),
        };
        let seed = typed.or(kept).map_or_else(seed::random, Ok)?;
        if kept != Some(seed) {
            prepare(&self.folder, seed)?;
        }
        Ok(seed)
    }

    /// The learner's report and what it is about, if it is whole and as it was written.
    pub fn kept(&self, learner: &str) -> Option<Kept> {
        found(&self.folder, learner).whole()
    }

    /// Puts another folder's report in its place, byte for byte; a verdict that it is not about is put aside.
    pub fn copy(&self, learner: &str, kept: &Kept) -> Result<()> {
        match self.kept(learner) {
            Some(here) if here.entry == kept.entry => return Ok(()),
            Some(here) if here.entry.content != kept.entry.content || kept.report.verdict == Verdict::Ungraded => {
                self.set_aside(learner, &here)?;
            }
            _ => {}
        }
        self.place(learner, &kept.entry, &kept.text)
    }

    /// Keeps a verdict that is about to be replaced.
    fn set_aside(&self, learner: &str, kept: &Kept) -> Result<()> {
        if kept.report.verdict == Verdict::Ungraded {
            return Ok(());
        }
        fs::create_dir_all(self.folder.join(EARLIER))?;
        self.write(&file(EARLIER, learner), &kept.text)
    }

    fn place(&self, learner: &str, entry: &Entry, text: &[u8]) -> Result<()> {
        self.write(&file(LEDGER, learner), (serde_json::to_string_pretty(entry)? + "\n").as_bytes())?;
        self.write(&file(REPORTS, learner), text)
    }

    /// Takes away reports that are none of these learners'; verdicts are put aside.
    pub fn retain(&self, learners: &BTreeSet<String>) -> Result<()> {
        for part in [REPORTS, LEDGER] {
            for entry in fs::read_dir(self.folder.join(part))? {
                let path = entry?.path();
                let learner = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                if path.extension().is_some_and(|end| end == "json") && !learners.contains(&learner) {
                    self.kept(&learner).map_or(Ok(()), |kept| self.set_aside(&learner, &kept))?;
                    fs::remove_file(&path).with_context(|| path.display().to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Puts a report in its place. One that decides nothing never destroys a verdict: about the same content it is not
    /// written, and false returned; about other content, the verdict is put aside.
    pub fn put(&self, learner: &str, key: &str, content: &str, report: &Report) -> Result<bool> {
        if report.verdict == Verdict::Ungraded
            && let Some(kept) = self.kept(learner).filter(|kept| kept.report.verdict != Verdict::Ungraded)
        {
            if kept.entry.content == content {
                return Ok(false);
            }
            self.set_aside(learner, &kept)?;
        }
        let text = json::render(report)?;
        let entry = Entry { key: key.to_owned(), content: content.to_owned(), report: digest(text.as_bytes()) };
        self.place(learner, &entry, text.as_bytes())?;
        Ok(true)
    }

    /// Where a learner's report lies, from the folder.
    pub fn report_path(learner: &str) -> String {
        file(REPORTS, learner)
    }

    /// Writes a file of the folder as a whole, by rename.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        outbox::replace(&path, bytes).with_context(|| path.display().to_string())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// What lies in a folder of results about a learner. Takes no lock: a report is replaced as a whole.
pub fn found(folder: &Path, learner: &str) -> Found {
    let Ok(text) = fs::read(folder.join(file(REPORTS, learner))) else { return Found::Nothing };
    let entry = fs::read(folder.join(file(LEDGER, learner))).ok();
    let entry = entry.and_then(|entry| serde_json::from_slice::<Entry>(&entry).ok());
    let entry = entry.filter(|entry| digest(&text) == entry.report);
    match (entry, serde_json::from_slice(&text)) {
        (Some(entry), Ok(report)) => Found::Whole(Box::new(Kept { entry, report, text })),
        _ => Found::Damaged,
    }
}

/// The seed that a folder of results keeps, if it keeps one yet. Takes no lock.
pub fn kept_seed(folder: &Path) -> Result<Option<u64>> {
    let file = folder.join(BATCH);
    match fs::read_to_string(&file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        text => {
            let batch = text.ok().and_then(|text| serde_json::from_str::<Batch>(&text).ok());
            match batch.filter(|batch| batch.schema == 1 && batch.seed <= MAX_SEED) {
                Some(batch) => Ok(Some(batch.seed)),
                None => anyhow::bail!("{} cannot be read", file.display()),
            }
        }
    }
}

/// Makes a folder of results that a batch will draw its seeds from `seed` in. Takes no lock.
pub fn prepare(folder: &Path, seed: u64) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let path = folder.join(BATCH);
    let text = serde_json::to_string_pretty(&Batch { schema: 1, seed })? + "\n";
    outbox::replace(&path, text.as_bytes()).with_context(|| path.display().to_string())
}

fn file(part: &str, learner: &str) -> String {
    format!("{part}/{learner}.json")
}

/// 64 hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_code::ExitCode;

    fn out() -> (tempfile::TempDir, Out) {
        let folder = tempfile::tempdir().unwrap();
        let out = Out::open(&folder.path().join("out")).unwrap().unwrap();
        (folder, out)
    }

    fn report(verdict: Verdict) -> Report {
        Report { verdict, ..Report::of_error("x", ExitCode::Ungraded) }
    }

    #[test]
    fn a_report_is_believed_until_it_is_torn_or_edited() {
        let (_folder, out) = out();
        assert!(out.put("ann", "k", "c", &report(Verdict::Pass)).unwrap());
        assert_eq!(out.kept("ann").unwrap().entry.key, "k");
        let path = out.folder.join("reports/ann.json");
        let whole = fs::read_to_string(&path).unwrap();
        for damage in [whole.replace("pass", "fail"), whole[..whole.len() / 2].to_owned(), String::new()] {
            fs::write(&path, damage).unwrap();
            assert!(out.kept("ann").is_none());
        }
        fs::write(&path, &whole).unwrap();
        assert!(out.kept("ann").is_some());
        fs::write(out.folder.join("ledger/ann.json"), "{").unwrap();
        assert!(out.kept("ann").is_none() && out.kept("nobody").is_none());
    }

    #[test]
    fn nothing_that_decides_nothing_destroys_a_verdict() {
        let (_folder, out) = out();
        out.put("ann", "k1", "c1", &report(Verdict::Pass)).unwrap();
        assert!(!out.put("ann", "k2", "c1", &report(Verdict::Ungraded)).unwrap());
        assert_eq!(out.kept("ann").unwrap().report.verdict, Verdict::Pass);
        assert!(out.put("ann", "k3", "c2", &report(Verdict::Ungraded)).unwrap());
        assert_eq!(out.kept("ann").unwrap().report.verdict, Verdict::Ungraded);
        assert!(fs::read_to_string(out.folder.join("earlier/ann.json")).unwrap().contains("\"pass\""));
        assert!(out.put("ann", "k3", "c2", &report(Verdict::Fail)).unwrap());
    }

    #[test]
    fn the_seed_is_drawn_once() {
        let (_folder, out) = out();
        let seed = out.seed(None).unwrap();
        assert_eq!(out.seed(None).unwrap(), seed);
        assert_eq!((out.seed(Some(7)).unwrap(), out.seed(None).unwrap()), (7, 7));
        fs::write(out.folder.join(BATCH), "{}").unwrap();
        assert!(out.seed(None).is_err() && out.seed(Some(7)).is_ok());
    }

    #[test]
    fn two_batches_never_write_to_one_folder_and_leavings_are_swept() {
        let (folder, out) = out();
        let path = folder.path().join("out");
        assert!(Out::open(&path).unwrap().unwrap_err().contains("another batch"));
        fs::write(path.join("reports/.heat-grader-abc"), "half").unwrap();
        drop(out);
        Out::open(&path).unwrap().unwrap();
        assert!(!path.join("reports/.heat-grader-abc").exists());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(Out::open(&folder.path().join("file")).unwrap().unwrap_err().contains("is a file"));
    }
}
