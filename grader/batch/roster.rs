//! Who is in a class, and what of it lies in a folder of results: `class.json`. With it, parts of a class that were graded
//! on several machines can be put together, and it can be told who is missing.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::duplicates::Prints;
use super::find::Handed;
use super::names;
use super::summary::{Facts, Summary};
use super::work::Item;
use crate::judge::plan::Scope;

pub const CLASS: &str = "class.json";
/// Version of the file.
const SCHEMA: u32 = 1;

/// A class, and the part of it that a folder's reports are about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Roster {
    /// Version of this file: 1.
    pub schema: u32,
    /// Which part of the class was graded here; null when all of it was, or parts were put together.
    pub shard: Option<String>,
    /// Whether the reports were put together from those of other folders.
    pub merged: bool,
    /// The class's folder, as it was given.
    pub folder: String,
    pub scope: Scope,
    pub strict: bool,
    /// What lay beside the submissions.
    pub ignored: Vec<String>,
    /// Everybody in the class, by learner.
    pub class: Vec<Listed>,
}

/// One submission of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub learner: String,
    /// Where it was found.
    pub path: String,
    /// What was handed in, where it is graded in this folder; null where it is not.
    pub own: Option<Own>,
}

/// What was handed in, as digests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Own {
    pub content: String,
    pub bytes: Option<String>,
    pub kernel: Option<String>,
    /// What there is to know about its report: that grading again came to nothing, say.
    #[serde(default)]
    pub note: Option<String>,
}

impl Listed {
    pub fn other(handed: &Handed) -> Self {
        Self { learner: handed.learner.clone(), path: handed.path.display().to_string(), own: None }
    }

    pub fn own(item: &Item) -> Self {
        let Prints { bytes, kernel } = item.prints.clone();
        Self {
            own: Some(Own { content: item.content.whole.clone(), bytes, kernel, note: None }),
            ..Self::other(&item.handed)
        }
    }

    pub fn prints(&self) -> Prints {
        let own = self.own.as_ref();
        Prints { bytes: own.and_then(|own| own.bytes.clone()), kernel: own.and_then(|own| own.kernel.clone()) }
    }
}

impl Roster {
    /// A class of which nothing is told yet but who is in it.
    pub fn of(facts: &Facts, mut class: Vec<Listed>) -> Self {
        class.sort_by(|one, other| one.learner.cmp(&other.learner));
        Self {
            schema: SCHEMA,
            shard: None,
            merged: false,
            folder: facts.folder.clone(),
            scope: facts.scope,
            strict: facts.strict,
            ignored: facts.ignored.clone(),
            class,
        }
    }

    /// Takes over what the summary has to say about its rows; whether that is anything new.
    pub fn note(&mut self, summary: &Summary) -> bool {
        let before = self.clone();
        for row in &summary.submissions {
            let listed = self.class.iter_mut().find(|listed| listed.learner == row.learner);
            if let Some(own) = listed.and_then(|listed| listed.own.as_mut()) {
                own.note.clone_from(&row.note);
            }
        }
        *self != before
    }

    pub fn facts(&self) -> Facts {
        let Self { folder, scope, strict, ignored, .. } = self.clone();
        Facts { folder, scope, strict, ignored }
    }

    /// What is told of a learner.
    pub fn listed(&self, learner: &str) -> Option<&Listed> {
        let at = self.class.binary_search_by(|listed| listed.learner.as_str().cmp(learner)).ok()?;
        self.class.get(at)
    }

    /// Reads a folder's roster; nothing where none was written yet.
    ///
    /// # Errors
    /// When it is torn, or names a learner by what is no name of ours: it would be used as a file's.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let file = folder.join(CLASS);
        let text = match fs::read(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| file.display().to_string())?,
        };
        let roster = serde_json::from_slice::<Self>(&text).ok();
        let sound = |roster: &Self| {
            roster.schema == SCHEMA
                && roster.class.iter().all(|listed| names::names_a_file(&listed.learner))
                && roster.class.is_sorted_by(|one, other| one.learner < other.learner)
        };
        let roster = roster.filter(sound);
        Ok(Some(roster.with_context(|| format!("{} is torn, or another grader's", file.display()))?))
    }

    /// The roster as JSON, with a final newline.
    pub fn render(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(learner: &str) -> Roster {
        let facts = Facts { folder: "class".into(), scope: Scope::Full, strict: false, ignored: Vec::new() };
        Roster::of(&facts, vec![Listed { learner: learner.into(), path: "class/x".into(), own: None }])
    }

    #[test]
    fn a_roster_comes_back_as_it_was_and_none_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Roster::read(folder.path()).unwrap(), None);
        fs::write(folder.path().join(CLASS), roster("ann").render().unwrap()).unwrap();
        assert_eq!(Roster::read(folder.path()).unwrap(), Some(roster("ann")));
    }

    #[test]
    fn a_torn_roster_and_names_that_lead_elsewhere_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["{".to_owned(), roster("../../etc/x").render().unwrap(), roster("").render().unwrap()] {
            fs::write(folder.path().join(CLASS), text).unwrap();
            assert!(Roster::read(folder.path()).unwrap_err().to_string().contains("class.json"));
        }
    }
}
