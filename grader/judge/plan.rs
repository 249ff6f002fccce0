//! Which trials are made, in which order, and what each is for.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::execute::sanitized::Sanitized;
use crate::execute::{Processor, Trial, Watch};
use crate::exercise::Exercise;
use crate::grid::Grid;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The thousand timesteps on a smaller grid: what a learner waits for at a desk.
    Quick,
    /// The lesson's sizes throughout.
    Full,
}

impl Scope {
    /// As reports have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// What a planned trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Small grids, every access watched: values, ring, memory, race.
    Hazards,
    /// The graded size while rounding is still small: values, ring.
    Sharp,
    /// Words read: reads (and values, so that the counted build is known to be the same kernel).
    Count,
    /// The long run on its own: race, because both must end with the same bits.
    Repeat,
    /// All timesteps: values, ring.
    Thousand,
    /// Rounds of all timesteps against the clock: time (and the grid that they end with).
    Time,
    /// Odd and tiny grids: portable.
    Portable,
}

impl Kind {
    /// What a progress line calls it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Hazards => "hazards",
            Self::Sharp => "first launches",
            Self::Count => "words read",
            Self::Repeat | Self::Thousand => "long run",
            Self::Time => "timing",
            Self::Portable => "odd sizes",
        }
    }
}

/// Cells a side from which a grid of odd size is not watched in full.
const LARGE: u32 = 512;

/// A trial that a grade makes unless an earlier one decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub kind: Kind,
    /// Cells a side.
    pub n: u32,
    pub r: f32,
    pub launches: u32,
    pub watch: Watch,
    /// What runs it.
    pub on: Processor,
    /// Whether it can be found out which thread wrote a cell.
    pub attributable: bool,
    /// After which launches the grid is wanted.
    pub keep: Vec<u32>,
    /// Launches that are checked by themselves, from the submission's own grid before them.
    pub spots: Vec<u32>,
    /// Whether the words that those launches read are counted too, and those of the first one to tell them by. The last two
    /// of them are watched as well.
    pub counts_spots: bool,
    /// Whether an order is drawn in which threads and blocks run.
    pub any_order: bool,
    /// What the initial grid is drawn from.
    pub seed: u64,
}

impl Planned {
    /// Draws the initial grid, which is why a plan is made of these and not of trials.
    pub fn initial(&self) -> Grid {
        Grid::initial(self.n as usize, self.seed)
    }

    /// The trial itself, from the initial grid.
    pub fn trial(&self, initial: Arc<Grid>) -> Trial {
        Trial {
            initial,
            r: self.r,
            launches: self.launches,
            watch: self.watch,
            keep: self.keep.clone(),
            state: None,
            keep_state: if self.counts_spots { self.spots.iter().map(|spot| spot - 1).collect() } else { Vec::new() },
            writers_of: None,
            cell_reads: self.kind == Kind::Hazards && self.watch == Watch::Full,
            order: self.any_order.then_some(self.seed),
            shortcuts: true,
        }
    }
}

/// What the engines of a grade can do with its kernel.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Means {
    /// Whether there is a GPU: engine cuda, and engine cpu beside it for what a GPU does not show.
    pub gpu: bool,
    /// Why engine cpu cannot run the kernel, when it cannot: no thread is watched then.
    pub unwatched: Option<String>,
    /// Why no build counts reads, when none does.
    pub uncounted: Option<Uncounted>,
    /// What compute-sanitizer's tools said before the trials; empty when none was run.
    pub sanitized: Vec<Sanitized>,
}

/// What cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncounted {
    /// In plain words.
    pub construct: String,
    /// Line of heat.cu, where known.
    pub line: Option<u32>,
    /// Whether it serves to hide reads and has no ordinary use.
    pub hides: bool,
}

impl Means {
    /// What runs the trials that need not be watched.
    fn main(&self) -> Processor {
        if self.gpu { Processor::Gpu } else { Processor::Cpu }
    }
}

/// All trials of a grade in the order in which they are judged. Every seed derives from `seed`.
pub fn plan(exercise: &Exercise, scope: Scope, seed: u64, means: &Means) -> Vec<Planned> {
    let figures = &exercise.exercise;
    let trials = &exercise.trials;
    let mut list =
        List { random: ChaCha8Rng::seed_from_u64(seed), attributable: means.unwatched.is_none(), all: vec![] };
    let (main, watched) = (means.main(), means.unwatched.is_none());
    let (watcher, watch) = if watched { (Processor::Cpu, Watch::Full) } else { (main, Watch::Fast) };
    for (&n, &r) in trials.hazards.sizes.iter().zip(&trials.hazards.r) {
        let last = trials.hazards.launches.last().copied().unwrap_or(1);
        list.add(Kind::Hazards, n, r, (watcher, watch), &(1..=last).collect::<Vec<_>>());
    }
    for &n in &trials.sharp.sizes {
        list.add(Kind::Sharp, n, figures.r, (main, Watch::Fast), &trials.sharp.launches);
    }
    let long = exercise.launches();
    if means.uncounted.is_none() {
        let counted: Vec<u32> = match (means.gpu, scope) {
            (true, _) => trials.count.launches.iter().copied().chain([long]).collect(),
            // At a desk the first launch is counted; a kernel that reads more later on is found out by a grade.
            (false, Scope::Quick) => trials.count.launches[..1].to_vec(),
            (false, Scope::Full) => trials.count.launches.clone(),
        };
        list.add(Kind::Count, figures.n, figures.r, (main, Watch::Count), &counted);
    }
    let long_n = if scope == Scope::Quick && !means.gpu { figures.quick_n } else { figures.n };
    let spots = spots(trials.thousand.spot_checks, long, seed);
    if means.gpu {
        list.add(Kind::Repeat, long_n, figures.r, (main, Watch::Fast), &[long]);
    }
    let thousand = list.add(Kind::Thousand, long_n, figures.r, (main, Watch::Fast), &with_spots(long, &spots));
    thousand.spots = spots;
    // A GPU counts the whole long run.
    thousand.counts_spots = !means.gpu && watched && means.uncounted.is_none();
    let long_seed = thousand.seed;
    // The large one is there for its values, and a GPU sees those; the small ones show every odd-sized tile that it has.
    for &n in trials.portable.sizes.iter().filter(|&&n| watched && !(means.gpu && n > LARGE)) {
        let watch = if n > LARGE { Watch::Count } else { Watch::Full };
        list.add(Kind::Portable, n, trials.portable.r, (Processor::Cpu, watch), &trials.portable.launches);
    }
    for &n in trials.portable.sizes.iter().filter(|_| means.gpu) {
        list.add(Kind::Portable, n, trials.portable.r, (Processor::Gpu, Watch::Fast), &trials.portable.launches);
    }
    if means.gpu {
        list.add(Kind::Time, figures.n, figures.r, (main, Watch::Fast), &[long]);
    }
    // From the same grid: the long runs must come to the same end, and one run of the reference serves the counted one too.
    let sharp = list.all.iter().find(|planned| planned.kind == Kind::Sharp && planned.n == figures.n);
    let counted_seed = if means.gpu { Some(long_seed) } else { sharp.map(|sharp| sharp.seed) };
    for planned in &mut list.all {
        match planned.kind {
            Kind::Repeat | Kind::Time => planned.seed = long_seed,
            Kind::Count => planned.seed = counted_seed.unwrap_or(planned.seed),
            _ => {}
        }
    }
    list.all
}

/// A plan in the making.
struct List {
    random: ChaCha8Rng,
    attributable: bool,
    all: Vec<Planned>,
}

impl List {
    /// Adds a trial with a seed of its own, from which more can be said of it.
    fn add(&mut self, kind: Kind, n: u32, r: f32, (on, watch): (Processor, Watch), keep: &[u32]) -> &mut Planned {
        let (seed, attributable) = (self.random.next_u64(), self.attributable);
        let launches = keep.last().copied().unwrap_or(1);
        let (keep, spots, counts_spots) = (keep.to_vec(), Vec::new(), false);
        // The first trial runs threads in the order of their numbers: what it finds is where a learner looks first. Others are
        // watched too, so that a race is told and not only what comes of it.
        let any_order = kind == Kind::Hazards && !self.all.is_empty();
        let planned =
            Planned { kind, n, r, launches, watch, on, attributable, keep, spots, counts_spots, any_order, seed };
        self.all.push(planned);
        self.all.last_mut().expect("a trial was just added")
    }
}

/// Launches to check by themselves: the last one, which a kernel that counts its launches could tell from the others, and
/// as many as wanted of those between, distinct, rising, drawn from the seed.
fn spots(wanted: u32, launches: u32, seed: u64) -> Vec<u32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(1);
    let mut spots: std::collections::BTreeSet<u32> = (launches > 1).then_some(launches).into_iter().collect();
    let most = (wanted + 1).min(launches.saturating_sub(1)) as usize;
    while spots.len() < most {
        spots.insert(2 + random.next_u32() % (launches - 1));
    }
    spots.into_iter().collect()
}

/// The launches to keep: the last one, and each spot with the one before it.
fn with_spots(last: u32, spots: &[u32]) -> Vec<u32> {
    let mut keep: Vec<u32> = spots.iter().flat_map(|&spot| [spot - 1, spot]).chain([last]).collect();
    keep.sort_unstable();
    keep.dedup();
    keep
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(scope: Scope, seed: u64) -> Vec<Planned> {
        plan(&Exercise::shipped().expect("reference/exercise.toml"), scope, seed, &Means::default())
    }

    #[test]
    fn a_gpu_counts_and_times_the_whole_run_and_leaves_watching_to_engine_cpu() {
        let exercise = Exercise::shipped().expect("reference/exercise.toml");
        let planned = |means: &Means| plan(&exercise, Scope::Quick, 1, means);
        let with = planned(&Means { gpu: true, ..Means::default() });
        let of = |kind| with.iter().filter(move |p| p.kind == kind).collect::<Vec<_>>();
        assert!(of(Kind::Hazards).iter().all(|p| (p.on, p.watch) == (Processor::Cpu, Watch::Full)));
        assert_eq!((of(Kind::Count)[0].n, of(Kind::Count)[0].launches), (2048, 500));
        let (long, again, timed) = (of(Kind::Thousand)[0], of(Kind::Repeat)[0], of(Kind::Time)[0]);
        for same in [long, again, timed, of(Kind::Count)[0]] {
            assert_eq!((same.n, same.launches, same.seed), (2048, 500, long.seed));
        }
        assert_eq!(of(Kind::Portable).len(), 9);
        let uncounted = Uncounted { construct: "a texture".to_owned(), line: None, hides: false };
        let alone =
            Means { gpu: true, unwatched: Some("why".to_owned()), uncounted: Some(uncounted), ..Means::default() };
        assert!(planned(&alone).iter().all(|p| p.on == Processor::Gpu && !p.attributable && p.kind != Kind::Count));
    }

    #[test]
    fn the_plan_is_the_designs_table() {
        let rows: Vec<_> = made(Scope::Full, 1).iter().map(|p| (p.kind, p.n, p.launches, p.watch)).collect();
        let expected = [
            (Kind::Hazards, 100, 3, Watch::Full),
            (Kind::Hazards, 260, 3, Watch::Full),
            (Kind::Sharp, 2048, 3, Watch::Fast),
            (Kind::Count, 2048, 3, Watch::Count),
            (Kind::Thousand, 2048, 500, Watch::Fast),
            (Kind::Portable, 3, 3, Watch::Full),
            (Kind::Portable, 5, 3, Watch::Full),
            (Kind::Portable, 35, 3, Watch::Full),
            (Kind::Portable, 131, 3, Watch::Full),
            (Kind::Portable, 1025, 3, Watch::Count),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_quick_plan_differs_in_the_long_run_and_the_launches_counted() {
        let (quick, full) = (made(Scope::Quick, 1), made(Scope::Full, 1));
        for (quick, full) in quick.iter().zip(&full) {
            let n = if full.kind == Kind::Thousand { 512 } else { full.n };
            let (launches, keep) =
                if full.kind == Kind::Count { (1, vec![1]) } else { (full.launches, full.keep.clone()) };
            assert_eq!(*quick, Planned { n, launches, keep, ..full.clone() });
        }
    }

    #[test]
    fn one_seed_gives_one_plan() {
        assert_eq!(made(Scope::Full, 5), made(Scope::Full, 5));
        assert_ne!(made(Scope::Full, 5), made(Scope::Full, 6));
        let seeds: std::collections::BTreeSet<u64> = made(Scope::Full, 5).iter().map(|p| p.seed).collect();
        assert_eq!(seeds.len(), 9, "counted is what the first launches are made of");
    }

    #[test]
    fn spots_are_distinct_rise_and_have_the_launch_before_them_kept() {
        for seed in 0..50 {
            let plan = made(Scope::Full, seed);
            let long = plan.iter().find(|p| p.kind == Kind::Thousand).unwrap();
            assert_eq!(long.spots.len(), 5);
            assert_eq!(long.spots.last(), Some(&500));
            assert!(long.spots.is_sorted_by(|a, b| a < b) && long.keep.is_sorted_by(|a, b| a < b));
            assert_eq!(long.keep.last(), Some(&500));
            for spot in &long.spots {
                assert!((2..=500).contains(spot));
                assert!(long.keep.contains(spot) && long.keep.contains(&(spot - 1)));
            }
        }
    }
}
