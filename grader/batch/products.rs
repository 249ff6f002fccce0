//! What a batch leaves besides its reports. Each product is made at the end, from all entries, and replaced as a whole.

use anyhow::Result;

use super::duplicates::Prints;
use super::out::Out;
use super::sheet;
use super::summary::{self, Summary};
use crate::report::{Report, html, junit};

/// One submission with its report, as products see it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub learner: String,
    /// Where it was found.
    pub path: String,
    /// Its report; none when it was not graded yet.
    pub report: Option<Report>,
    /// What there is to know about that report.
    pub note: Option<String>,
    /// What it is compared by.
    pub prints: Prints,
}

/// Everything that products are made of.
pub struct Material<'a> {
    pub summary: &'a Summary,
    /// By learner, in the order of the summary's rows.
    pub entries: &'a [Entry],
    /// heat.cu of the entry with this index, read anew; none when it cannot be read.
    pub source: &'a dyn Fn(usize) -> Option<String>,
}

/// Makes the bytes of one product.
type Make = fn(&Material) -> Result<Vec<u8>>;

/// The products, by the names of their files.
const PRODUCTS: [(&str, Make); 4] = [
    ("summary.json", |material| Ok(summary::render(material.summary)?.into_bytes())),
    ("summary.csv", |material| sheet::render(material.summary)),
    ("junit.xml", |material| Ok(junit::render(&material.entries.iter().map(named).collect::<Vec<_>>())?.into_bytes())),
    ("index.html", |material| Ok(html::page(&class(material)).into_bytes())),
];

/// The entries that have a report, with their index.
fn graded<'m>(material: &'m Material) -> impl Iterator<Item = (usize, &'m Entry, &'m Report)> {
    let entries = material.entries.iter().enumerate();
    entries.filter_map(|(at, entry)| Some((at, entry, entry.report.as_ref()?)))
}

fn named(entry: &Entry) -> (&str, Option<&Report>) {
    (&entry.learner, entry.report.as_ref())
}

/// The class as its page shows it.
fn class(material: &Material) -> html::Class {
    let summary = material.summary;
    let page_entry = |(at, entry, report): (usize, &Entry, &Report)| html::Entry {
        learner: entry.learner.clone(),
        path: entry.path.clone(),
        report: report.clone(),
        source: (material.source)(at),
    };
    let missing = match summary.counts.not_graded {
        0 => String::new(),
        left => format!(", {left} of {} not graded yet", summary.counts.submissions),
    };
    html::Class {
        title: summary.folder.clone(),
        made_at: format!("{} UTC{missing}", jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M")),
        entries: graded(material).map(page_entry).collect(),
        waiting: material
            .entries
            .iter()
            .filter(|entry| entry.report.is_none())
            .map(|entry| entry.learner.clone())
            .collect(),
        groups: summary.groups.iter().map(|group| group.learners.clone()).collect(),
        remarks: material
            .entries
            .iter()
            .filter_map(|entry| Some((entry.learner.clone(), entry.note.clone()?)))
            .collect(),
        ignored: summary.ignored.clone(),
    }
}

/// Writes all products, and returns the names of their files.
pub fn write(out: &Out, material: &Material) -> Result<Vec<String>> {
    for (name, make) in PRODUCTS {
        out.write(name, &make(material)?)?;
    }
    Ok(PRODUCTS.iter().map(|(name, _)| (*name).to_owned()).collect())
}
