//! `batch` as it is typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Common;
use crate::batch::Options;
use crate::batch::merge;
use crate::batch::shard::{self, Shard};
use crate::batch::slurm::{Array, script};
use crate::grade::EngineChoice;
use crate::judge::plan::Scope;

/// What the end of a batch, or of a merge, tells.
pub const EXIT_CODES: &str = "Exit codes: 0 every submission passed or failed; 3 some are ungraded or not graded yet, or could not be graded again, or nothing could be graded at all; 130 interrupted, the same command goes on from there; 2 usage error.";

/// What `--seed` means for a class.
pub const SEED: &str = "Derive every submission's seed from this number. Unless given, one is drawn the first time; DIR/batch.json keeps it, and a re-run uses it again";

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
    /// Grade only part k of n of the class, from 0; every learner is in one of them. Put together with `merge`.
    #[arg(long, value_name = "k/n", conflicts_with = "array")]
    pub shard: Option<Shard>,
    #[command(flatten)]
    pub cluster: Cluster,
    #[command(flatten)]
    pub common: Common,
}

/// A Slurm job array.
#[derive(Debug, Args)]
#[command(next_help_heading = "Slurm")]
pub struct Cluster {
    /// Grade on a Slurm cluster: submit a job array, watch it, submit again what does not come back, merge. Ctrl-C cancels it.
    #[arg(long, group = "array")]
    pub slurm: bool,
    /// Print the array's script, for sites that submit by hand.
    #[arg(long, group = "array")]
    pub print_slurm: bool,
    /// Parts of the class, each a task of the array: one for every eight submissions unless given.
    #[arg(long, value_name = "N", requires = "array", value_parser = clap::value_parser!(u32).range(1..=i64::from(shard::MOST)))]
    pub shards: Option<u32>,
    /// Ask for a GPU for each task (--gres=gpu:1).
    #[arg(long, requires = "array")]
    pub gpu: bool,
    /// An option for sbatch, such as --slurm-option=--partition=gpu (may be repeated).
    #[arg(long, value_name = "OPTION", requires = "array", value_parser = script::option, allow_hyphen_values = true)]
    pub slurm_option: Vec<String>,
    /// Times that a task is submitted before its submissions are ungraded.
    #[arg(long, value_name = "N", requires = "array", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    pub slurm_attempts: u32,
    /// Seconds between two questions to Slurm.
    #[arg(long, value_name = "S", requires = "array", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    pub slurm_poll: u32,
}

#[derive(Debug, Args)]
pub struct Merge {
    /// Folders of results. Where two have a report on one submission, a verdict counts before `ungraded`, then the folder
    /// named first.
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Where the results together go.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl Merge {
    pub fn options(self) -> merge::Options {
        merge::Options { folders: self.folders, out: self.out }
    }
}

impl Batch {
    /// The job array, where one is asked for.
    pub fn array(&self) -> Option<Array> {
        let cluster = &self.cluster;
        let asked = cluster.slurm || cluster.print_slurm;
        asked.then(|| Array {
            print: cluster.print_slurm,
            shards: cluster.shards,
            gpu: cluster.gpu,
            options: cluster.slurm_option.clone(),
            attempts: cluster.slurm_attempts,
            poll: Duration::from_secs(cluster.slurm_poll.into()),
            words: self.words(),
            first: switches(&[("--force", self.force), ("--retry-ungraded", self.retry_ungraded)]),
        })
    }

    /// What each task of an array is told besides its shard. The seed is not among it: it lies in the shards' folders, and is
    /// nobody's to read off a command line.
    fn words(&self) -> Vec<String> {
        let common = &self.common;
        let mut words = switches(&[
            ("--quick", self.quick),
            ("--offline", common.offline),
            ("--strict", common.strict),
            ("--sanitize", common.sanitize),
            ("--outer-sandbox", common.walls.outer_sandbox),
            ("--no-sandbox", common.walls.no_sandbox),
        ]);
        words.extend(self.jobs.map(|jobs| format!("--jobs={jobs}")));
        words.extend(common.arch.map(|arch| format!("--arch=sm_{arch}")));
        words.extend(match common.engine.into() {
            EngineChoice::Auto => None,
            EngineChoice::Cuda => Some("--engine=cuda".to_owned()),
            EngineChoice::Cpu => Some("--engine=cpu".to_owned()),
        });
        words
    }

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
            shard: self.shard,
        }
    }
}

/// The options that are on.
fn switches(all: &[(&str, bool)]) -> Vec<String> {
    all.iter().filter(|(_, on)| *on).map(|(word, _)| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        batch: Batch,
    }

    fn typed(words: &str) -> Result<Batch, String> {
        let words = ["batch", "class", "--out=out"].into_iter().chain(words.split_whitespace());
        Typed::try_parse_from(words).map(|typed| typed.batch).map_err(|error| error.to_string())
    }

    #[test]
    fn tasks_are_given_every_option_that_a_grade_follows_from() {
        let words = "--quick --offline --strict --sanitize --outer-sandbox --jobs=3 --arch=sm_90 --engine=cuda";
        let batch = typed(&format!("--slurm --seed 7 --quiet {words}")).unwrap();
        let array = batch.array().unwrap();
        assert_eq!(array.words.join(" "), words);
        // They are options of `batch`, and mean the same there.
        let again = typed(&array.words.join(" ")).unwrap();
        assert_eq!(again.words(), array.words);
        assert!(array.first.is_empty() && again.array().is_none());
        assert_eq!(typed("--slurm --force --retry-ungraded").unwrap().array().unwrap().first.len(), 2);
    }

    #[test]
    fn options_of_an_array_need_one_and_a_shard_is_none() {
        for words in
            ["--gpu", "--shards 2", "--slurm-option=--partition=gpu", "--slurm --print-slurm", "--slurm --shard 0/2"]
        {
            assert!(typed(words).is_err(), "{words}");
        }
        let array =
            typed("--print-slurm --gpu --slurm-option --partition=gpu --slurm-option=--time=10").unwrap().array();
        assert_eq!(array.unwrap().options, ["--partition=gpu", "--time=10"]);
        assert!(typed("--slurm --slurm-option=--array=1").unwrap_err().contains("heat-grader's own"));
        assert!(typed("--shard 2/2").unwrap_err().contains("0/2 to 1/2"));
    }
}
