//! What was handed in, as a tree of names: of a folder on disk, or of an archive in memory. No link is followed, nothing is
//! unpacked, and of programs, answers and archives within an archive alone the bytes are kept.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::archive::{self, ARCHIVE_CAP, ArchiveFault, Content, Kind, Limits, last_part};
use super::source::{ANSWER_CAP, SOURCE_CAP, has_cu_extension};

/// Folders within a learner's folder that are looked into, one in another.
pub const DEPTH: usize = 8;
/// Entries of one learner's folder that are looked at: as many as an archive may have.
pub const ENTRIES: usize = 2_000;
/// What a folder of a batch's results holds, and nobody's submission: its seed and its reports.
pub const RESULTS: [&str; 2] = ["batch.json", "reports"];
/// What of a folder counts where there is a heat.cu in it, whatever else lies there.
const SUBMISSION: [&str; 2] = ["heat.cu", "answer.md"];

/// A file or folder.
#[derive(Debug)]
pub struct Node {
    /// Its own name, with bytes that are not UTF-8 spelt `%FF`, so that names which differ there alone stay apart.
    pub name: String,
    pub what: What,
}

/// What a name stands for.
#[derive(Debug)]
pub enum What {
    File(Held),
    Folder(Vec<Node>),
    /// A folder on disk that is too deep to be looked into.
    Deeper,
    /// A folder on disk that cannot be looked into.
    Closed(PathBuf),
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

/// What lies in the folder of a class, by name. Links within it are listed, and not followed; `out` is what results go to.
pub fn of_class(folder: &Path, out: &Path) -> Result<Vec<Node>> {
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

/// One learner's folder, whatever its name.
pub fn of_learner(folder: &Path, name: String) -> Node {
    Node { name, what: listed(folder, DEPTH, &mut ENTRIES.clone()) }
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
    let name = spelt(path.file_name().unwrap_or_default().as_bytes());
    let kind = fs::symlink_metadata(&path).map(|metadata| metadata.file_type());
    let what = match kind {
        Ok(kind) if kind.is_dir() && is_results(&path) => What::Results,
        Ok(kind) if kind.is_dir() => listed(&path, depth, left),
        Ok(kind) if kind.is_symlink() => What::Irregular(Held::Disk(path), "a link"),
        Ok(kind) if !kind.is_file() => What::Irregular(Held::Disk(path), "a device or pipe"),
        // What cannot be looked at is told when it is read.
        _ => What::File(Held::Disk(path)),
    };
    Node { name, what }
}

/// What is to be a file: a folder of that name is none, and nothing to look into.
fn regular(path: PathBuf) -> Node {
    if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
        let name = spelt(path.file_name().unwrap_or_default().as_bytes());
        return Node { name, what: What::Irregular(Held::Disk(path), "a folder") };
    }
    node(path, 0, &mut 0)
}

/// A name as text: what of it is no UTF-8 is spelt byte by byte.
pub fn spelt(name: &[u8]) -> String {
    let mut spelt = String::new();
    for chunk in name.utf8_chunks() {
        spelt.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| spelt.push_str(&format!("%{byte:02X}")));
    }
    spelt
}

/// Whether a folder is what a batch left: it has a batch's files, and nothing that somebody handed in.
fn is_results(path: &Path) -> bool {
    let handed_in = |path: &PathBuf| has_cu_extension(path) || archive::packed(path).is_some();
    RESULTS.iter().all(|name| path.join(name).exists())
        && sorted(path, usize::MAX).is_ok_and(|paths| !paths.iter().flatten().any(handed_in))
}

fn listed(path: &Path, depth: usize, left: &mut usize) -> What {
    if path.join(SUBMISSION[0]).symlink_metadata().is_ok() {
        let there = SUBMISSION.map(|name| path.join(name)).into_iter().filter(|path| path.symlink_metadata().is_ok());
        return What::Folder(there.map(regular).collect());
    }
    let paths = match sorted(path, *left) {
        Ok(Some(paths)) => paths,
        Ok(None) => return What::Crowded,
        Err(_) => return What::Closed(path.to_owned()),
    };
    *left -= paths.len();
    let mut nodes = Vec::new();
    for path in paths {
        let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_folder && depth == 0 {
            nodes.push(Node { name: spelt(path.file_name().unwrap_or_default().as_bytes()), what: What::Deeper });
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

/// Most parts of an archive's path that become folders of the tree: more than anything is looked for in.
const PARTS: usize = 3 * DEPTH;

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
        for part in entry.path.split('/').take(PARTS) {
            branch = branch.children.entry(part.to_owned()).or_default();
        }
        // Deeper than is looked, it is only known to be there.
        let too_deep = entry.path.split('/').count() > PARTS;
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
