//! The folder of a batch's results: the only file that knows what lies where in it.
//!
//! ```text
//! DIR/batch.json             the seed of everything in it
//! DIR/reports/LEARNER.json   one report a submission
//! DIR/ledger/LEARNER.json    what that report is about, and its digest
//! DIR/earlier/LEARNER.json   a report that has made way: a verdict, for a later submission's `ungraded`, or whatever was
//!                            there of somebody who is not in the class any more; with its ledger in earlier/ledger/
//! DIR/class.json             who is in the class, and which of them are graded here
//! DIR/summary.json, ...      the products
//! ```
//!
//! A report is believed when its digest is the ledger's: half of one, or one that somebody has edited, is not. The ledger
//! is written first, so that there is no moment at which a whole new report lies there and is not believed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use data_encoding::HEXLOWER;
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
            match fs::create_dir_all(folder.join(part)) {
                Err(error) if error.kind() != ErrorKind::StorageFull => {
                    return Ok(Err(format!("{shown} cannot be made: {error}")));
                }
                made => made.with_context(|| format!("{shown} cannot be made"))?,
            }
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
        if fs::read(self.folder.join(file(EARLIER, learner))).is_ok_and(|there| there == kept.text) {
            return Ok(());
        }
        self.make_room(learner)?;
        self.write(&file(EARLIER, learner), &kept.text)
    }

    /// Gives what lies in `earlier/` of a learner a number, so that nothing is lost.
    fn make_room(&self, learner: &str) -> Result<()> {
        let earlier = self.folder.join(EARLIER);
        fs::create_dir_all(earlier.join(LEDGER)).with_context(|| earlier.display().to_string())?;
        let there = earlier.join(format!("{learner}.json"));
        if !there.exists() {
            return Ok(());
        }
        let numbered = (2..).map(|number| earlier.join(format!("{learner}.{number}.json"))).find(|path| !path.exists());
        numbered.map_or(Ok(()), |numbered| fs::rename(&there, numbered)).with_context(|| there.display().to_string())
    }

    fn place(&self, learner: &str, entry: &Entry, text: &[u8]) -> Result<()> {
        self.write(&file(LEDGER, learner), (serde_json::to_string_pretty(entry)? + "\n").as_bytes())?;
        self.write(&file(REPORTS, learner), text)
    }

    /// Moves to `earlier/` whatever reports are none of these learners'. Whose they are is returned, in order.
    pub fn retain(&self, learners: &BTreeSet<String>) -> Result<Vec<String>> {
        let strangers = |part: &str| -> Result<Vec<String>> {
            let paths = fs::read_dir(self.folder.join(part))?.map(|entry| Ok(entry?.path()));
            let paths = paths.collect::<Result<Vec<PathBuf>>>()?;
            let json = paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "json"));
            let names = json.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
            Ok(names.filter(|name| !learners.contains(name)).collect())
        };
        let mut moved = strangers(REPORTS)?;
        for learner in &moved {
            self.make_room(learner)?;
            self.rename(&file(REPORTS, learner), &file(EARLIER, learner))?;
        }
        for learner in strangers(LEDGER)? {
            fs::create_dir_all(self.folder.join(EARLIER).join(LEDGER))?;
            self.rename(&file(LEDGER, &learner), &earlier_ledger(&learner))?;
        }
        moved.sort();
        Ok(moved)
    }

    /// Takes back from `earlier/` the reports of learners who had left the class, or had been left out of it by mistake. Of
    /// somebody who has a report nothing is taken.
    pub fn recall<'l>(&self, learners: impl Iterator<Item = &'l str>) -> Result<()> {
        for learner in learners {
            if self.folder.join(file(REPORTS, learner)).exists() {
                continue;
            }
            let whole = |text: &Vec<u8>| {
                let entry = fs::read(self.folder.join(earlier_ledger(learner))).ok();
                let entry = entry.and_then(|entry| serde_json::from_slice::<Entry>(&entry).ok());
                entry.is_some_and(|entry| entry.report == digest(text))
            };
            if fs::read(self.folder.join(file(EARLIER, learner))).ok().filter(whole).is_some() {
                self.rename(&earlier_ledger(learner), &file(LEDGER, learner))?;
                self.rename(&file(EARLIER, learner), &file(REPORTS, learner))?;
            }
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let from = self.folder.join(from);
        fs::rename(&from, self.folder.join(to)).with_context(|| from.display().to_string())
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

fn earlier_ledger(learner: &str) -> String {
    format!("{EARLIER}/{}", file(LEDGER, learner))
}

/// 64 hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
#[path = "out_tests.rs"]
mod tests;
