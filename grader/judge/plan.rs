//! Which trials are made, in which order, and what each is for.

use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::execute::{Trial, Watch};
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

/// What a planned trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Small grids, every access watched: values, ring, memory, race.
    Hazards,
    /// The graded size while rounding is still small: values, ring.
    Sharp,
    /// Words read: reads (and values, so that the counted build is known to be the same kernel).
    Count,
    /// All timesteps: values, ring.
    Thousand,
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
            Self::Thousand => "long run",
            Self::Portable => "odd sizes",
        }
    }
}

/// A trial that a grade makes unless an earlier one decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub kind: Kind,
    /// Cells a side.
    pub n: u32,
    pub r: f32,
    pub launches: u32,
    pub watch: Watch,
    /// After which launches the grid is wanted.
    pub keep: Vec<u32>,
    /// Launches that are checked by themselves, from the submission's own grid before them.
    pub spots: Vec<u32>,
    /// What the initial grid is drawn from.
    pub seed: u64,
}

impl Planned {
    /// The trial itself. Draws the initial grid, which is why a plan is made of these and not of trials.
    pub fn trial(&self) -> Trial {
        Trial {
            initial: Arc::new(Grid::initial(self.n as usize, self.seed)),
            r: self.r,
            launches: self.launches,
            watch: self.watch,
            keep: self.keep.clone(),
            writer_of: None,
            shortcuts: true,
        }
    }
}

/// All trials of a grade in the order in which they are judged. Every seed derives from `seed`.
pub fn plan(exercise: &Exercise, scope: Scope, seed: u64) -> Vec<Planned> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let figures = &exercise.exercise;
    let trials = &exercise.trials;
    let mut planned = Vec::new();
    let mut add = |kind, n, r, watch, keep: &[u32], spots| {
        let seed = random.next_u64();
        let launches = keep.last().copied().unwrap_or(1);
        planned.push(Planned { kind, n, r, launches, watch, keep: keep.to_vec(), spots, seed });
    };
    for (&n, &r) in trials.hazards.sizes.iter().zip(&trials.hazards.r) {
        let last = trials.hazards.launches.last().copied().unwrap_or(1);
        add(Kind::Hazards, n, r, Watch::Full, &(1..=last).collect::<Vec<_>>(), Vec::new());
    }
    for &n in &trials.sharp.sizes {
        add(Kind::Sharp, n, figures.r, Watch::Fast, &trials.sharp.launches, Vec::new());
    }
    // At a desk the first launch is counted; a kernel that reads more later on is found out by a grade.
    let counted = if scope == Scope::Quick { &trials.count.launches[..1] } else { &trials.count.launches };
    add(Kind::Count, figures.n, figures.r, Watch::Count, counted, Vec::new());
    let long_n = if scope == Scope::Quick { figures.quick_n } else { figures.n };
    let spots = spots(trials.thousand.spot_checks, exercise.launches(), seed);
    add(Kind::Thousand, long_n, figures.r, Watch::Fast, &with_spots(exercise.launches(), &spots), spots);
    for &n in &trials.portable.sizes {
        // The large one is there for its values; the small ones show every odd-sized tile that it has.
        let watch = if n > 512 { Watch::Count } else { Watch::Full };
        add(Kind::Portable, n, trials.portable.r, watch, &trials.portable.launches, Vec::new());
    }
    planned
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
        plan(&Exercise::shipped().expect("reference/exercise.toml"), scope, seed)
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
    fn one_seed_gives_one_plan_and_each_trial_a_grid_of_its_own() {
        assert_eq!(made(Scope::Full, 5), made(Scope::Full, 5));
        assert_ne!(made(Scope::Full, 5), made(Scope::Full, 6));
        let seeds: std::collections::BTreeSet<u64> = made(Scope::Full, 5).iter().map(|p| p.seed).collect();
        assert_eq!(seeds.len(), 10);
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
