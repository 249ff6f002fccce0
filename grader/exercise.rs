//! What is asked: the figures of reference/exercise.toml.

use serde::Deserialize;

use crate::grid::MIN_N;
use crate::points::Points;

/// The exercise this binary was built for.
const SHIPPED: &str = include_str!("../reference/exercise.toml");

/// The whole exercise in figures. Every key must be known and present, so a misspelt one is an error.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Exercise {
    pub exercise: Figures,
    pub tolerance: Tolerance,
    pub launch: LaunchDefaults,
    pub trials: Trials,
    /// What a pass is worth, and single checks where they are given points.
    pub points: Points,
}

/// The lesson's own figures.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Cells a side of the graded grid, ring included.
    pub n: u32,
    /// Cells a side for the long run of a quick self-check.
    pub quick_n: u32,
    /// Timesteps of the long run.
    pub steps: u32,
    /// Timesteps that one launch advances.
    pub steps_per_launch: u32,
    /// The diffusion number of the long run; at most 1/4, or the tolerance does not hold.
    pub r: f32,
    /// Words that may be read from global memory per updated cell and timestep.
    pub budget: f64,
}

/// How far a cell may differ from the reference: rounding * unit * max|u0| * timesteps.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Roundings that one timestep may part by.
    pub rounding: f64,
    /// What one rounding errs by at most, for values around 1.
    pub unit: f64,
}

/// The launch of a kernel whose file says nothing else.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LaunchDefaults {
    /// Threads of a block in x and y.
    pub block: [u32; 2],
    /// Cells of a tile in x and y.
    pub tile: [u32; 2],
    /// Kernels of reference/heat.cu that are never the submission.
    pub shipped: Vec<String>,
}

/// The trials, in the order in which they run.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Trials {
    pub hazards: Hazards,
    pub sharp: Sharp,
    pub count: Count,
    pub thousand: Thousand,
    pub portable: Portable,
}

/// Small grids with every access observed.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Hazards {
    pub sizes: Vec<u32>,
    /// One diffusion number a size.
    pub r: Vec<f32>,
    pub launches: Vec<u32>,
}

/// The graded size while rounding is still small.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Sharp {
    pub sizes: Vec<u32>,
    pub launches: Vec<u32>,
}

/// Words read, at n and r of the exercise.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Count {
    pub launches: Vec<u32>,
}

/// All timesteps.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Thousand {
    /// Launches drawn at random and compared sharply.
    pub spot_checks: u32,
}

/// Odd and tiny grids.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Portable {
    pub sizes: Vec<u32>,
    pub r: f32,
    pub launches: Vec<u32>,
}

impl Exercise {
    /// The exercise this binary was built for. An error is a mistake in reference/exercise.toml.
    pub fn shipped() -> anyhow::Result<Self> {
        Self::from_toml(SHIPPED)
    }

    /// Reads and checks an exercise.toml.
    pub fn from_toml(text: &str) -> anyhow::Result<Self> {
        let exercise: Self = toml::from_str(text)?;
        exercise.validate()?;
        Ok(exercise)
    }

    /// Launches of the long run.
    pub fn launches(&self) -> u32 {
        self.exercise.steps / self.exercise.steps_per_launch
    }

    /// Timesteps that so many launches advance.
    pub fn timesteps(&self, launches: u32) -> u32 {
        launches * self.exercise.steps_per_launch
    }

    /// Interior cells of an n x n grid: the cells that a timestep updates.
    pub fn interior_cells(n: u32) -> u64 {
        u64::from(n.saturating_sub(2)).pow(2)
    }

    /// The largest difference that rounding explains after `timesteps` steps from a grid with the given max|u0|.
    ///
    /// Derived, not guessed: for r <= 1/4 a timestep is a contraction in the max norm (the five weights lie in [0, 1]
    /// and sum to one: the lesson's discrete maximum principle), so rounding differences add up and never grow.
    pub fn tolerance(&self, timesteps: u32, max_abs: f32) -> f64 {
        self.tolerance.rounding * self.tolerance.unit * f64::from(max_abs) * f64::from(timesteps)
    }

    fn validate(&self) -> anyhow::Result<()> {
        let figures = &self.exercise;
        let trials = &self.trials;
        let sizes = [figures.n, figures.quick_n].into_iter();
        let sizes = sizes.chain(trials.hazards.sizes.iter().copied()).chain(trials.sharp.sizes.iter().copied());
        let mut sizes = sizes.chain(trials.portable.sizes.iter().copied());
        anyhow::ensure!(
            sizes.all(|n| n as usize >= MIN_N),
            "exercise.toml: a grid needs at least {MIN_N} cells a side"
        );
        anyhow::ensure!(
            figures.steps_per_launch > 0 && figures.steps >= 2 * figures.steps_per_launch,
            "exercise.toml: steps must hold at least two launches"
        );
        anyhow::ensure!(
            figures.steps.is_multiple_of(figures.steps_per_launch),
            "exercise.toml: steps must be a multiple of steps_per_launch"
        );
        let mut numbers = trials.hazards.r.iter().copied().chain([figures.r, trials.portable.r]);
        anyhow::ensure!(
            numbers.all(|r| 0.0 < r && r <= 0.25),
            "exercise.toml: r must lie in (0, 1/4], or the tolerance does not hold"
        );
        anyhow::ensure!(
            trials.hazards.sizes.len() == trials.hazards.r.len(),
            "exercise.toml: trials.hazards needs one r a size"
        );
        let lists =
            [&trials.hazards.launches, &trials.sharp.launches, &trials.count.launches, &trials.portable.launches];
        anyhow::ensure!(
            lists.into_iter().all(|list| !list.is_empty() && list[0] > 0 && list.is_sorted_by(|a, b| a < b)),
            "exercise.toml: launches must be a rising list of counts from 1"
        );
        anyhow::ensure!(
            figures.budget > 0.0 && self.tolerance.rounding > 0.0,
            "exercise.toml: budget and rounding must be above 0"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_exercise_holds_the_lessons_figures() {
        let exercise = Exercise::shipped().expect("reference/exercise.toml");
        let figures = &exercise.exercise;
        assert_eq!((figures.n, figures.quick_n, figures.steps, figures.steps_per_launch), (2048, 512, 1000, 2));
        assert_eq!((figures.r, figures.budget, exercise.launches()), (0.2, 1.5, 500));
        assert_eq!(Exercise::interior_cells(2048), 4_186_116);
        assert_eq!(exercise.trials.hazards.sizes, [100, 260]);
    }

    #[test]
    fn the_tolerance_is_the_designs() {
        let exercise = Exercise::shipped().expect("reference/exercise.toml");
        assert_eq!(exercise.tolerance(2, 1.0), 2.0 * 16.0 / f64::from(1 << 24));
        // DESIGN.md: bound 1.9e-6 after two timesteps and 9.5e-4 after a thousand, for max|u0| = 1.
        assert!((exercise.tolerance(2, 1.0) - 1.907e-6).abs() < 1e-9);
        assert!((exercise.tolerance(1000, 1.0) - 9.5367e-4).abs() < 1e-8);
        assert_eq!(exercise.tolerance(2, 2.25), 2.25 * exercise.tolerance(2, 1.0));
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        assert!(Exercise::from_toml(&SHIPPED.replace("quick_n", "quickn")).is_err());
    }

    #[test]
    fn an_unstable_diffusion_number_is_an_error() {
        let error = Exercise::from_toml(&SHIPPED.replace("r = 0.25", "r = 0.26")).unwrap_err();
        assert!(error.to_string().contains("1/4"), "{error}");
    }

    #[test]
    fn launches_must_rise() {
        assert!(Exercise::from_toml(&SHIPPED.replace("launches = [1, 3]", "launches = [3, 1]")).is_err());
    }
}
