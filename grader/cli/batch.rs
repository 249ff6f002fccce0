//! `batch` as it is typed.

use std::path::PathBuf;

use clap::Args;

use super::Common;
use crate::batch::Options;
use crate::judge::plan::Scope;

#[derive(Debug, Args)]
pub struct Batch {
    /// A folder with a folder or file a learner, or an archive of one.
    pub folder: PathBuf,
    /// Where reports and summaries go. The next batch with the same folder goes on from what is there.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Submissions graded at once: as many as there are cores, unless memory is short.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Run the thousand timesteps at n = 512 where there is no GPU, as `check` does.
    #[arg(long)]
    pub quick: bool,
    /// Grade everything, also what has a report that still holds.
    #[arg(long)]
    pub force: bool,
    /// Grade again what is ungraded.
    #[arg(long)]
    pub retry_ungraded: bool,
    /// Show no progress.
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub common: Common,
}

impl Batch {
    pub fn options(self) -> Options {
        let scope = if self.quick { Scope::Quick } else { Scope::Full };
        let (offline, seed) = (self.common.offline, self.common.seed);
        Options {
            order: super::order(self.folder.clone(), scope, true, self.common),
            folder: self.folder,
            out: self.out,
            seed,
            offline,
            jobs: self.jobs.map(usize::from),
            force: self.force,
            retry_ungraded: self.retry_ungraded,
            quiet: self.quiet,
        }
    }
}
