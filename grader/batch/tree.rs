//! What was handed in, as a tree of names: of a folder on disk, or of an archive in memory. No link is followed, nothing is
//! unpacked, and of programs, answers and archives within an archive alone the bytes are kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::submission::archive::{self, ARCHIVE_CAP, ArchiveFault, Content, Kind, Limits, last_part};
use crate::submission::source::{ANSWER_CAP, SOURCE_CAP, has_cu_extension};

/// Folders within folders that are looked into.
const DEPTH: usize = 8;
/// Entries of one learner's folder that are looked at: as many as an archive may have.
pub const ENTRIES: usize = 2_000;
/// What a folder of results holds, and nobody's submission.
const RESULTS: [&str; 2] = [super::out::BATCH, super::out::REPORTS];

/// A file or folder.
#[derive(Debug)]
pub struct Node {
    /// Its own name, as far as it is Unicode.
    pub name: String,
    pub what: What,
}

/// What a name stands for.
#[derive(Debug)]
pub enum What {
    File(Held),
    Folder(Vec<Node>),
    /// A folder with more than [`ENTRIES`] entries.
    Crowded,
    /// A folder that batch made itself.
    Results,
    /// A link, a device or a pipe.
    Irregular(Held, &'static str),
}

/// Where the bytes are.
#[derive(Debug)]
pub enum Held {
    Disk(PathBuf),
    Packed(Content),
}

impl Node {
    pub fn children(&self) -> &[Node] {
        match &self.what {
            What::Folder(children) => children,
            _ => &[],
        }
    }

    /// The child of this name that is no folder.
    pub fn file(&self, name: &str) -> Option<&Held> {
        file(self.children(), name)
    }
}

/// The entry of this name that is no folder.
pub fn file<'n>(nodes: &'n [Node], name: &str) -> Option<&'n Held> {
    nodes.iter().find_map(|node| match &node.what {
        What::File(held) | What::Irregular(held, _) if node.name == name => Some(held),
        _ => None,
    })
}

/// What lies in a folder, by name. Links within it are listed, and not followed; `out` is what results go to.
pub fn of_folder(folder: &Path, out: &Path) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    let out = out.canonicalize().ok();
    for path in sorted(folder, usize::MAX).with_context(|| folder.display().to_string())?.unwrap_or_default() {
        // Each learner has a budget of their own.
        let mut node = node(path.clone(), DEPTH, &mut ENTRIES.clone());
        if out.is_some() && path.canonicalize().ok() == out {
            node.what = What::Results;
        }
        nodes.push(node);
    }
    Ok(nodes)
}

/// The paths in a folder, by name; nothing when there are more than `most`.
fn sorted(folder: &Path, most: usize) -> std::io::Result<Option<Vec<PathBuf>>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        if paths.len() >= most {
            return Ok(None);
        }
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(Some(paths))
}

fn node(path: PathBuf, depth: usize, left: &mut usize) -> Node {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kind = fs::symlink_metadata(&path).map(|metadata| metadata.file_type());
    let what = match kind {
        Ok(kind) if kind.is_dir() => folder(&path, depth, left),
        Ok(kind) if kind.is_symlink() => What::Irregular(Held::Disk(path), "a link"),
        Ok(kind) if !kind.is_file() => What::Irregular(Held::Disk(path), "a device or pipe"),
        // What cannot be looked at is told when it is read.
        _ => What::File(Held::Disk(path)),
    };
    Node { name, what }
}

/// Whether a folder is what a batch left: it has a batch's files, and nothing that somebody handed in.
fn is_results(path: &Path) -> bool {
    let handed_in = |path: &PathBuf| has_cu_extension(path) || archive::packed(path).is_some();
    RESULTS.iter().all(|name| path.join(name).exists())
        && sorted(path, usize::MAX).is_ok_and(|paths| !paths.iter().flatten().any(handed_in))
}

fn folder(path: &Path, depth: usize, left: &mut usize) -> What {
    if is_results(path) {
        return What::Results;
    }
    let paths = match sorted(path, *left) {
        Ok(Some(paths)) => paths,
        Ok(None) => return What::Crowded,
        Err(_) => Vec::new(),
    };
    *left -= paths.len();
    // Nothing beside a heat.cu decides what the submission is.
    let depth = if path.join("heat.cu").symlink_metadata().is_ok() { 0 } else { depth };
    let mut nodes = Vec::new();
    for path in paths {
        let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_folder && depth == 0 {
            continue;
        }
        let node = node(path, depth.saturating_sub(1), left);
        if matches!(node.what, What::Crowded) {
            return What::Crowded;
        }
        nodes.push(node);
    }
    What::Folder(nodes)
}

/// What lies in an archive, by name.
pub fn of_archive(bytes: &[u8], kind: Kind) -> Result<Vec<Node>, ArchiveFault> {
    let wanted = |path: &str| match Path::new(last_part(path)) {
        path if has_cu_extension(path) => Some(SOURCE_CAP),
        path if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("md")) => Some(ANSWER_CAP),
        path => archive::packed(path).map(|_| ARCHIVE_CAP),
    };
    let mut root = Branch::default();
    for entry in archive::files(bytes, kind, Limits::of_a_class(), &wanted)? {
        let mut branch = &mut root;
        for part in entry.path.split('/').take(DEPTH + 1) {
            branch = branch.children.entry(part.to_owned()).or_default();
        }
        // Deeper than is looked, it is only known to be there.
        let too_deep = entry.path.split('/').count() > DEPTH + 1;
        branch.content = Some(if too_deep { Content::Folder } else { entry.content });
    }
    Ok(root.nodes())
}

/// An archive's tree in the making: its entries come in any order.
#[derive(Default)]
struct Branch {
    content: Option<Content>,
    children: BTreeMap<String, Branch>,
}

impl Branch {
    fn nodes(self) -> Vec<Node> {
        let node = |(name, branch): (String, Branch)| {
            let what = match branch.content {
                Some(Content::Irregular(what)) => What::Irregular(Held::Packed(Content::Irregular(what)), what),
                Some(content) if content != Content::Folder && branch.children.is_empty() => {
                    What::File(Held::Packed(content))
                }
                _ => What::Folder(branch.nodes()),
            };
            Node { name, what }
        };
        self.children.into_iter().map(node).collect()
    }
}
