//! The pictures of a report as files in a folder.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::outbox::{self, Target};
use crate::report::{Report, apron, picture};

/// The files, and what each shows.
const FILES: [(&str, &str); 3] = [
    ("error-map.png", "where it is wrong: yellow little, blue much, a cross NaN"),
    ("reads-map.png", "how often each cell is read"),
    ("apron.svg", "what one block reads and writes"),
];

/// A folder for pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Album(pub PathBuf);

impl Album {
    /// Makes the folder where there is none, and tries whether files can be put there; else why not.
    pub fn open(&self) -> Result<(), String> {
        let shown = self.0.display();
        if self.0.exists() && !self.0.is_dir() {
            return Err(format!("{shown} is a file; --picture names a folder"));
        }
        if !self.0.exists() && !outbox::folder_of(&self.0).is_dir() {
            return Err(format!("the folder {} does not exist", outbox::folder_of(&self.0).display()));
        }
        let opened = std::fs::create_dir(&self.0).or_else(|error| if self.0.is_dir() { Ok(()) } else { Err(error) });
        let tried = opened.and_then(|()| tempfile::Builder::new().prefix(outbox::TEMPORARY).tempfile_in(&self.0));
        // The error of a temporary file names one that nobody has typed.
        tried.map(|_| ()).map_err(|error| format!("the pictures cannot be put into {shown}: {}", error.kind()))
    }

    /// Writes the pictures that the report has, each as a whole, and takes away those that an earlier run left there. Returns
    /// a line for each that was written.
    pub fn put(&self, report: &Report) -> anyhow::Result<Vec<String>> {
        let bytes =
            [picture::error_map(report), picture::reads::map(report), apron::file(report).map(String::into_bytes)];
        let mut lines = Vec::new();
        for ((name, shows), bytes) in FILES.into_iter().zip(bytes) {
            let file: &Path = &self.0.join(name);
            match bytes {
                Some(bytes) => {
                    outbox::replace(file, &bytes).with_context(|| file.display().to_string())?;
                    lines.push(format!("{}: {shows}", file.display()));
                }
                None if is_ours(file) => Target::File(file.to_owned()).remove()?,
                None => {}
            }
        }
        Ok(lines)
    }
}

/// Whether a file is a picture of this program's, which says so near its beginning.
fn is_ours(file: &Path) -> bool {
    const NAME: &[u8] = b"heat-grader";
    let mut start = Vec::new();
    let read = std::fs::File::open(file).and_then(|file| file.take(1024).read_to_end(&mut start));
    read.is_ok() && start.windows(NAME.len()).any(|bytes| bytes == NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::loads::ReadsMap;

    fn counted() -> Report {
        let map = ReadsMap { n: 2, most: 1, reads: vec!["11".to_owned(), "11".to_owned()] };
        Report { reads_map: Some(map), ..Report::blank() }
    }

    #[test]
    fn pictures_replace_those_of_an_earlier_run_and_what_there_is_none_of_goes() {
        let folder = tempfile::tempdir().unwrap();
        let album = Album(folder.path().join("new"));
        album.open().unwrap();
        album.open().unwrap();
        for name in ["error-map.png", "reads-map.png", "mine.txt"] {
            std::fs::write(album.0.join(name), "old").unwrap();
        }
        std::fs::write(album.0.join("apron.svg"), "<svg><!-- heat-grader --></svg>").unwrap();
        let lines = album.put(&counted()).unwrap();
        assert!(lines.len() == 1 && lines[0].ends_with("reads-map.png: how often each cell is read"), "{lines:?}");
        assert!(std::fs::read(album.0.join("reads-map.png")).unwrap().starts_with(b"\x89PNG"));
        assert!(is_ours(&album.0.join("reads-map.png")), "the next run may take it away");
        assert!(!album.0.join("apron.svg").exists(), "a picture of an earlier run");
        assert!(album.0.join("error-map.png").exists() && album.0.join("mine.txt").exists(), "not ours to take away");
        assert_eq!(std::fs::read_dir(&album.0).unwrap().count(), 3, "no temporary file is left");
    }

    #[test]
    fn a_folder_that_cannot_be_is_refused_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let refused = |path: PathBuf| Album(path).open().unwrap_err();
        assert!(refused(file.clone()).ends_with("is a file; --picture names a folder"));
        assert!(refused(folder.path().join("no/such")).ends_with("no does not exist"));
        assert!(refused(PathBuf::from("/proc/self/pictures")).starts_with("the pictures cannot be put into"));
        assert_eq!(Album(folder.path().join("made")).open(), Ok(()));
    }
}
