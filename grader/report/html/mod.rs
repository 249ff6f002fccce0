//! The class page: one HTML file that needs nothing beside it, neither the network nor another file.
//!
//! [`page`] shows the class first (totals, figures, a table) and holds a section for each learner, reachable by
//! `#learner-...`; which of them is seen is the stylesheet's doing, so links work without the script. Learners' text is
//! escaped twice over, for reading ([`safe`]) and for HTML (by `maud`), and the page's policy lets nothing run or load but
//! the one script and the one stylesheet of this grader, by their hashes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

use super::{Report, escape};

mod charts;
mod class;
mod excerpt;
mod learner;
mod loads;
mod scale;
mod table;
mod words;

const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// Everything that the page shows.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// What the page is called: the name of the folder, say.
    pub title: String,
    /// When it was made, in the caller's words.
    pub made_at: String,
    pub entries: Vec<Entry>,
    /// Learners whose submissions were not graded yet.
    pub waiting: Vec<String>,
    /// Groups of learners whose submissions are the same, by [`Entry::learner`].
    pub groups: Vec<Vec<String>>,
    /// What there is to know about a learner's report: by [`Entry::learner`], a sentence.
    pub remarks: Vec<(String, String)>,
    /// What lay beside the submissions and is nobody's.
    pub ignored: Vec<String>,
}

/// One learner's grade.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The learner's name, as the batch spells it.
    pub learner: String,
    /// Where the submission was found.
    pub path: String,
    pub report: Report,
    /// heat.cu's text; `None` when it could not be read.
    pub source: Option<String>,
}

/// An entry with the id of its section.
#[derive(Clone, Copy)]
struct Listed<'c> {
    entry: &'c Entry,
    id: &'c str,
}

impl<'c> Listed<'c> {
    fn report(&self) -> &'c Report {
        &self.entry.report
    }

    /// The learner's name with a link to the section.
    fn link(&self) -> Markup {
        html! { a href={ "#" (self.id) } title=[long(&self.entry.learner)] { bdi { (safe(&self.entry.learner)) } } }
    }
}

/// A name that may not fit where it stands, to be read in full.
fn long(name: &str) -> Option<String> {
    (name.chars().count() > 24).then(|| safe(name))
}

/// The whole page. The same class gives the same text.
pub fn page(class: &Class) -> String {
    let ids = ids(class.entries.iter().map(|entry| entry.learner.as_str()));
    let listed: Vec<Listed> = class.entries.iter().zip(&ids).map(|(entry, id)| Listed { entry, id }).collect();
    let title = safe(&class.title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="robots" content="noindex";
                title { (title) " · heat-grader" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (class::overview(class, &title, &listed))
                @for at in 0..listed.len() {
                    (learner::section(&listed, at))
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Text of a learner's, or of a report that quotes one: no control, formatting or direction-changing characters. `maud`
/// escapes what HTML would read.
fn safe(text: &str) -> String {
    escape::line(text)
}

/// Nothing may load, run or be sent but this stylesheet, this script and pictures within the page.
fn policy() -> String {
    let hash = |text: &str| BASE64.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Ids of sections, in order: `learner-` and what of a name can stand in a link, with a number where names collide.
fn ids<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut taken = std::collections::HashSet::new();
    let mut ids = Vec::new();
    for name in names {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let slug: String = name.chars().map(plain).take(60).collect();
        let slug = slug.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
        let base = if slug.is_empty() { "learner".to_owned() } else { format!("learner-{slug}") };
        let numbered = (2..).map(|number| format!("{base}-{number}"));
        let id = std::iter::once(base.clone()).chain(numbered).find(|id| !taken.contains(id)).unwrap_or(base);
        taken.insert(id.clone());
        ids.push(id);
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_plain_and_no_two_are_the_same() {
        let names = ["Ada Lovelace", "ada-lovelace", "\"><script>", "李", "", "class", "ada/lovelace.2"];
        let expected = [
            "learner-ada-lovelace",
            "learner-ada-lovelace-2",
            "learner-script",
            "learner",
            "learner-2",
            "learner-class",
            "learner-ada-lovelace-2-2",
        ];
        assert_eq!(ids(names.into_iter()), expected);
    }

    #[test]
    fn the_assets_can_stand_in_a_page() {
        assert!(!STYLE.to_lowercase().contains("</style") && !SCRIPT.to_lowercase().contains("</script"));
        // A browser hashes what it read, with line ends made plain.
        assert!(!STYLE.contains('\r') && !SCRIPT.contains('\r'));
        assert!(!STYLE.contains("url(") && !STYLE.contains("@import"));
    }
}
