//! Several folders of results put together into one: the shards of a class, graded on several machines.
//!
//! The result follows from the folders alone, so that merging again changes nothing; the folders are only read. Of
//! several reports on one submission a verdict goes before `ungraded`, then the folder that was named first; where they
//! differ in more than durations and paths, a note says so. A report that is not as it was written is not taken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::find::{self, Handed};
use super::out::{Found, Kept, Out, found, kept_seed};
use super::products::{self, Entry, Material};
use super::roster::{CLASS, Listed, Own, Roster};
use super::summary::{self, Summary};
use super::text::{self, Course};
use super::usage;
use crate::compile::diagnostics::without_folders;
use crate::exit_code::ExitCode;
use crate::outbox;
use crate::progress;
use crate::report::{self, Durations, Report, escape};
use crate::verdict::Verdict;

/// What `merge` was asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Folders of results; the first counts before the second.
    pub folders: Vec<PathBuf>,
    /// The folder of the results together.
    pub out: PathBuf,
}

/// A folder of results to merge.
#[derive(Debug)]
pub struct Source {
    /// As it was given.
    pub folder: PathBuf,
    /// Nothing where its batch has not begun.
    pub roster: Option<Roster>,
}

/// What is merged besides the folders.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The class as whoever shared it out saw it: everybody in it is told of, and older work is not taken.
    pub class: Option<Roster>,
    /// Why whose report will not come, where none is there.
    pub lost: BTreeMap<String, String>,
    /// Why whose report may be an earlier one, where one is there.
    pub doubts: BTreeMap<String, String>,
}

/// Merges what the command line names.
pub fn run(options: &Options) -> Result<ExitCode> {
    let began = Instant::now();
    let (sources, seed) = match look(&options.folders) {
        Ok(found) => found,
        Err(reason) => return usage(reason),
    };
    if let Some(source) = sources.iter().find(|source| same(&source.folder, &options.out)) {
        return usage(format!("{} is to be merged, so --out has to be another folder", source.folder.display()));
    }
    if let Some(reason) = occupied(&options.out) {
        return usage(reason);
    }
    for source in sources.iter().filter(|source| source.roster.is_none()) {
        progress::note(&format!("nothing was graded in {} yet", shown(&source.folder)));
    }
    let out = match Out::open(&options.out)? {
        Ok(out) => out,
        Err(reason) => return usage(reason),
    };
    out.seed(Some(seed))?;
    let merged = merge(&sources, &Known::default(), &out)?;
    let course = Course {
        out: options.out.display().to_string(),
        graded: 0,
        left: 0,
        took: began.elapsed().as_secs_f64(),
        products: merged.products.clone(),
        merged: Some(sources.len()),
        aside: merged.aside.clone(),
    };
    outbox::print(&text::render(&merged.summary, &course));
    Ok(merged.exit_code())
}

/// What merging came to.
#[derive(Debug)]
pub struct Merged {
    pub summary: Summary,
    /// Names of the products.
    pub products: Vec<String>,
    /// Whose reports were moved out of the way.
    pub aside: Vec<String>,
    /// Whether a report that counts is one whose submission could not be graded again.
    pub stays: bool,
}

impl Merged {
    /// Ungraded while anything is missing, as it was where the folders were made.
    pub fn exit_code(&self) -> ExitCode {
        let missing = self.summary.counts.ungraded + self.summary.counts.not_graded > 0;
        if missing || self.stays { ExitCode::Ungraded } else { ExitCode::Passed }
    }
}

/// Looks into folders that are to be merged, and returns their seed with them. An error says what is wrong with what was
/// typed: a folder that is none of results, or one that was graded in another way than the others.
pub fn look(folders: &[PathBuf]) -> Result<(Vec<Source>, u64), String> {
    let mut sources: Vec<Source> = Vec::new();
    let mut common: Option<(u64, &Path)> = None;
    for folder in folders {
        let name = folder.display();
        if !folder.is_dir() {
            return Err(format!("{name} is no folder"));
        }
        let seed = kept_seed(folder).map_err(|error| format!("{error:#}"))?;
        let Some(seed) = seed else { return Err(format!("{name} is no folder of results: it has no batch.json")) };
        match common {
            Some((other, first)) if other != seed => {
                let first = first.display();
                return Err(format!("{name} was graded with another seed than {first}; shards share one"));
            }
            _ => common = common.or(Some((seed, folder))),
        }
        if sources.iter().any(|source| same(&source.folder, folder)) {
            continue;
        }
        let roster = Roster::read(folder).map_err(|error| format!("{error:#}"))?;
        sources.push(Source { folder: folder.clone(), roster });
    }
    let rosters = || sources.iter().filter_map(|source| Some((source, source.roster.as_ref()?)));
    let Some((first, model)) = rosters().next() else { return Err("nothing was graded in these folders yet".into()) };
    for (source, roster) in rosters() {
        let (one, other) = (source.folder.display(), first.folder.display());
        if (roster.scope, roster.strict) != (model.scope, model.strict) {
            return Err(format!("{one} was graded with other options (--quick, --strict) than {other}"));
        }
    }
    Ok((sources, common.map_or(0, |(seed, _)| seed)))
}

/// Why a folder cannot take merged results: it holds others, which merging would replace.
pub fn occupied(out: &Path) -> Option<String> {
    let is_merged = Roster::read(out).ok().flatten().is_some_and(|roster| roster.merged);
    let reports = out.join(super::out::REPORTS).read_dir().is_ok_and(|mut reports| reports.next().is_some());
    let is_taken = !is_merged && (reports || out.join(CLASS).exists());
    is_taken.then(|| format!("{} holds a batch's own results; give another --out", out.display()))
}

fn same(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Puts the folders' reports into `out`, with all products.
pub fn merge(sources: &[Source], known: &Known, out: &Out) -> Result<Merged> {
    let mut roster = union(sources, known)?;
    let mut choices: Vec<Choice> = Vec::new();
    for listed in &mut roster.class {
        let wanted = known.class.as_ref().and(listed.own.as_ref()).map(|own| own.content.clone());
        let choice = choose(&listed.learner, wanted.as_deref(), sources);
        listed.own = choice.own.clone().or(listed.own.take());
        choices.push(choice);
    }
    let stays = choices.iter().any(|choice| choice.own.as_ref().is_some_and(|own| own.note.is_some()));
    // Before any report, so that a merge that breaks off can be done again.
    out.write(CLASS, roster.render()?.as_bytes())?;
    let mut entries = Vec::new();
    for (listed, choice) in roster.class.iter().zip(choices) {
        let Listed { learner, path, .. } = listed.clone();
        let doubt = known.doubts.get(&learner).filter(|_| choice.kept.is_some());
        let notes: Vec<&str> = choice.notes.iter().chain(doubt).map(String::as_str).collect();
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        let report = match (choice.kept, known.lost.get(&learner)) {
            (Some(kept), _) => {
                out.copy(&learner, &kept)?;
                Some(kept.report)
            }
            (None, Some(why)) => {
                let content = listed.own.as_ref().map_or("", |own| &own.content);
                out.put(&learner, "", content, &lost(listed, why))?;
                out.kept(&learner).map(|kept| kept.report)
            }
            (None, None) => None,
        };
        entries.push(Entry { learner, path, report, note, prints: listed.prints() });
    }
    let reported = entries.iter().filter(|entry| entry.report.is_some()).map(|entry| entry.learner.clone());
    let aside = out.retain(&reported.collect())?;
    let facts = roster.facts();
    let summary = summary::of(&entries, &facts);
    let class = handed_in(&facts.folder, out.folder());
    let source = |at: usize| {
        let entry: &Entry = entries.get(at)?;
        let sha256 = entry.report.as_ref()?.submission.as_ref()?.sha256.as_ref()?;
        let read = class.get(&entry.learner)?.read().ok()?;
        // What lies there by now may be another submission than the one that was graded.
        (read.sha256 == *sha256).then_some(read.text)
    };
    let products = products::write(out, &Material { summary: &summary, entries: &entries, source: &source })?;
    Ok(Merged { summary, products, aside, stays })
}

/// The submissions by learner, if they can be found from here; only the page's source depends on it.
fn handed_in(folder: &str, out: &Path) -> BTreeMap<String, Handed> {
    let class = find::find(Path::new(folder), out).ok().and_then(Result::ok).unwrap_or_default();
    class.submissions.into_iter().map(|handed| (handed.learner.clone(), handed)).collect()
}

/// Everybody in any of the classes, or in the one that is known.
fn union(sources: &[Source], known: &Known) -> Result<Roster> {
    let rosters: Vec<&Roster> = known.class.iter().chain(sources.iter().filter_map(|s| s.roster.as_ref())).collect();
    let first = rosters.first().context("nothing was graded in these folders yet")?;
    let mut class: BTreeMap<&str, Listed> = BTreeMap::new();
    for listed in rosters.iter().flat_map(|roster| &roster.class) {
        if known.class.as_ref().is_none_or(|known| known.listed(&listed.learner).is_some()) {
            class.entry(&listed.learner).or_insert_with(|| listed.clone());
        }
    }
    Ok(Roster { merged: true, ..Roster::of(&first.facts(), class.into_values().collect()) })
}

/// What there is about one submission.
#[derive(Default)]
struct Choice {
    /// The report that counts.
    kept: Option<Kept>,
    /// What it is about.
    own: Option<Own>,
    /// What is to be known about it.
    notes: Vec<String>,
}

/// Chooses between the reports of one learner; with `wanted`, only what is about that content.
fn choose(learner: &str, wanted: Option<&str>, sources: &[Source]) -> Choice {
    let mut notes = Vec::new();
    let mut candidates: Vec<(String, Kept, &Own)> = Vec::new();
    for source in sources {
        let Some(own) = source.roster.as_ref().and_then(|roster| roster.listed(learner)?.own.as_ref()) else {
            continue;
        };
        let folder = shown(&source.folder);
        match settled(&source.folder, learner) {
            Found::Whole(kept) if kept.entry.content == wanted.unwrap_or(&own.content) => {
                candidates.push((folder, *kept, own));
            }
            Found::Whole(_) => notes.push(format!("the report in {folder} is about an earlier version")),
            Found::Damaged => {
                notes.push(format!("the report in {folder} is not as it was written, so it was not taken"));
            }
            Found::Nothing => {}
        }
    }
    let decided = candidates.iter().position(|(_, kept, _)| kept.report.verdict != Verdict::Ungraded);
    if candidates.is_empty() {
        return Choice { notes, ..Choice::default() };
    }
    let (folder, chosen, own) = candidates.remove(decided.unwrap_or(0));
    for (other, kept, _) in &candidates {
        let about = if kept.entry.content == chosen.entry.content { "" } else { " about another version" };
        if !about.is_empty() || comparable(&kept.report) != comparable(&chosen.report) {
            let came_to = came_to(&kept.report);
            notes.push(format!("{other} has a different report{about} ({came_to}); the one in {folder} counts"));
        }
    }
    notes.extend(own.note.clone());
    Choice { kept: Some(chosen), own: Some(own.clone()), notes }
}

/// As [`found`]; a batch that is just replacing a report is given the time to.
fn settled(folder: &Path, learner: &str) -> Found {
    match found(folder, learner) {
        Found::Damaged => {
            std::thread::sleep(Duration::from_millis(20));
            found(folder, learner)
        }
        other => other,
    }
}

/// A report without what differs between two grades of one submission on two machines.
fn comparable(report: &Report) -> Report {
    let mut report = Report { durations: Durations::default(), ..report.clone() };
    if let Some(submission) = &mut report.submission {
        submission.path.clear();
    }
    report
}

fn came_to(report: &Report) -> String {
    let word = super::sheet::verdict(Some(report.verdict));
    report.failing_check.map_or_else(|| word.to_owned(), |check| format!("{word} at {}", check.name()))
}

/// The report on a submission whose own will not come.
fn lost(listed: &Listed, why: &str) -> Report {
    let path = escape::line(&listed.path);
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let sha256 = listed.own.as_ref().and_then(|own| own.bytes.clone());
    let submission = report::Submission { path, name, sha256, ..report::Submission::default() };
    Report { submission: Some(submission), ..Report::of_error(without_folders(why), ExitCode::Ungraded) }
}

fn shown(folder: &Path) -> String {
    escape::line(&folder.display().to_string())
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
