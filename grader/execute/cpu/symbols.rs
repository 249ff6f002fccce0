//! From code offsets to lines of heat.cu, through the object's own line tables.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::raw::Site;
use crate::execute::Place;

/// The name under which every submission is compiled.
const FILE: &str = "heat.cu";

/// Line tables of one object.
pub struct Symbols {
    loader: addr2line::Loader,
}

impl Symbols {
    pub fn read(object: &Path) -> Result<Self> {
        let loader = addr2line::Loader::new(object)
            .map_err(|error| anyhow!("cannot read the line tables of the compiled kernel: {error}"))?;
        Ok(Self { loader })
    }

    /// The innermost line of heat.cu at a site; inlined functions of the CUDA headers are looked through.
    pub fn place(&self, site: Site) -> Option<Place> {
        let offset = match site {
            Site::Line(line) => return Some(Place { line, column: 0 }),
            Site::Code(0) => return None,
            // A return address: the call is the instruction before it.
            Site::Code(offset) => offset - 1,
        };
        let mut frames = self.loader.find_frames(offset).ok()?;
        while let Ok(Some(frame)) = frames.next() {
            if let Some(location) = frame.location
                && location.file.is_some_and(|file| file.rsplit('/').next() == Some(FILE))
                && let Some(line) = location.line
            {
                return Some(Place { line, column: location.column.unwrap_or(0) });
            }
        }
        None
    }

    /// The first of the code addresses, the innermost of a stack first, that has a line of heat.cu.
    pub fn place_of_any(&self, codes: &[u64]) -> Option<Place> {
        codes.iter().find_map(|&code| self.place(Site::Code(code)))
    }
}
