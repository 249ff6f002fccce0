//! Check `time`: medians of the rounds, the ratio to heatStepTiled with a bootstrap interval, and the lesson's table.
//! Reported, never gating: "the ratio is the answer and the pass is only the gate".

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::execute::{KernelTimes, RawTimes, TimedBy};
use crate::verdict::{Check, CheckId, Status};

/// Kernels of reference/heat.cu by the names that their times go by.
pub const COPY: &str = "copyGrid";
pub const GLOBAL: &str = "heatStepGlobal";
pub const TILED: &str = "heatStepTiled";

/// How far copyGrid's medians of the two workers may part before the ratio means nothing.
const COPIES_MAY_PART: f64 = 0.02;
/// Resamples of the bootstrap, and the share of them that its interval holds.
const RESAMPLES: usize = 2000;
const SHARE: f64 = 0.95;
/// Stream of the seed's generator that the resamples are drawn from; the plan uses 0 and 1.
const STREAM: u64 = 2;

/// What the times came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// The lesson's table: copyGrid, heatStepGlobal, heatStepTiled, the submission.
    pub rows: Vec<Row>,
    /// The submission's time a timestep over heatStepTiled's: below 1 the submission is faster.
    pub ratio: f64,
    /// 95 % bootstrap interval of that ratio of medians.
    pub interval: [f64; 2],
    /// Rounds of each kernel.
    pub rounds: u32,
    /// copyGrid's median in the submission's worker over that in the reference's.
    pub copies: f64,
    /// Why the ratio cannot be relied on; null when it can.
    pub unreliable: Option<String>,
}

/// One kernel of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub kernel: String,
    /// Milliseconds a timestep, median.
    pub ms: f64,
    /// 8 n^2 bytes a launch, one read and one write of each cell, over the time of a launch.
    pub gb_per_s: f64,
    /// copyGrid's time over the time a timestep, percent; may exceed 100 for a kernel of several timesteps a launch.
    pub percent_of_copy: f64,
    /// Words read from global memory per interior cell and timestep; null when not counted.
    pub reads: Option<f64>,
}

/// What the rounds came to; `None` when a kernel is missing or has none. `reads` gives words per cell-step by kernel name,
/// `seed` is the report's.
pub fn timing(times: &RawTimes, reads: &dyn Fn(&str) -> Option<f64>, seed: u64) -> Option<Timing> {
    let made = |times: &&KernelTimes| !times.rounds.is_empty();
    let reference = |kernel| times.of(TimedBy::Reference, kernel).filter(made);
    let (copy, global, tiled) = (reference(COPY)?, reference(GLOBAL)?, reference(TILED)?);
    let submitted = || times.kernels.iter().filter(|times| times.by == TimedBy::Submission).filter(made);
    let submission = submitted().find(|times| times.kernel != COPY)?;
    let other_copy = submitted().find(|times| times.kernel == COPY)?;
    let copy_ms = median(&copy.rounds);
    let row = |kernel: &KernelTimes| Row {
        kernel: kernel.kernel.clone(),
        ms: a_timestep(kernel),
        gb_per_s: 8.0 * f64::from(times.n).powi(2) / median(&kernel.rounds) / 1e6,
        percent_of_copy: 100.0 * copy_ms / a_timestep(kernel),
        reads: reads(&kernel.kernel),
    };
    let ratio = a_timestep(submission) / a_timestep(tiled);
    let copies = median(&other_copy.rounds) / copy_ms;
    Some(Timing {
        rows: [copy, global, tiled, submission].map(row).into(),
        ratio,
        interval: interval(submission, tiled, seed),
        rounds: submission.rounds.len() as u32,
        copies,
        unreliable: unreliable(copies, submission),
    })
}

/// Whether copyGrid took the same in both workers, as far as it was timed: else the ratio of two other kernels says little.
pub fn copies_agree(times: &RawTimes) -> bool {
    let copy = |by| times.of(by, COPY).map(|copy| median(&copy.rounds)).filter(|copy| *copy > 0.0);
    copy(TimedBy::Reference).zip(copy(TimedBy::Submission)).is_none_or(|(of, other)| together(other / of))
}

fn together(copies: f64) -> bool {
    (copies - 1.0).abs() <= COPIES_MAY_PART
}

/// Check `time` over what was measured.
pub fn time(timing: &Timing) -> Check {
    let [low, high] = timing.interval;
    let faster = if timing.ratio < 1.0 { "faster" } else { "slower" };
    let ms = timing.rows.last().map_or(0.0, |row| row.ms);
    let summary = format!(
        "{ms:.5} ms a timestep, {:.3} times heatStepTiled's ({faster}; 95% interval {low:.3} to {high:.3})",
        timing.ratio
    );
    let Some(reason) = &timing.unreliable else {
        return Check::new(CheckId::Time, Status::Pass, summary)
            .with(format!("Medians of {} rounds of each kernel, taken in turns on one GPU.", timing.rounds));
    };
    Check::new(CheckId::Time, Status::Warn, format!("not to be relied on: {summary}"))
        .with(format!(
            "{reason} Something else used the GPU, its clocks changed, or the grids of the two processes lie differently in \
             its memory; time it again on an idle one."
        ))
}

/// The lesson's table, a line a row and one for the header.
pub fn table(timing: &Timing) -> Vec<String> {
    let width = timing.rows.iter().map(|row| row.kernel.chars().count()).max().unwrap_or(0).max("kernel".len());
    let header = format!(
        "{:width$}  {:>13}  {:>8}  {:>9}  {:>15}",
        "kernel", "ms a timestep", "GB/s", "% of copy", "reads/cell-step"
    );
    let line = |row: &Row| {
        let reads = row.reads.map_or_else(|| "-".to_owned(), |reads| format!("{reads:.3}"));
        let Row { kernel, ms, gb_per_s, percent_of_copy, .. } = row;
        format!("{kernel:width$}  {ms:>13.5}  {gb_per_s:>8.1}  {percent_of_copy:>9.1}  {reads:>15}")
    };
    std::iter::once(header).chain(timing.rows.iter().map(line)).collect()
}

/// Milliseconds a timestep, median.
fn a_timestep(times: &KernelTimes) -> f64 {
    median(&times.rounds) / f64::from(times.timesteps.max(1))
}

fn unreliable(copies: f64, submission: &KernelTimes) -> Option<String> {
    if !together(copies) {
        return Some(format!(
            "copyGrid took {copies:.3} times as long beside the submission as beside the reference; it should take the same."
        ));
    }
    (!submission.same_grids).then(|| "The rounds of the submission did not all end with the same grid.".to_owned())
}

/// The middle value, or the mean of the two in the middle; 0 of nothing.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (length, middle) if length % 2 == 1 => sorted[middle],
        (_, middle) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13): the rounds of both kernels
/// are drawn again with replacement, and the ratio of their medians is taken each time.
fn interval(submission: &KernelTimes, tiled: &KernelTimes, seed: u64) -> [f64; 2] {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(STREAM);
    let mut again = |times: &KernelTimes| {
        // The bias of the remainder is below 1e-8 for any number of rounds that could be made.
        let mut draw = || times.rounds[random.next_u32() as usize % times.rounds.len()];
        let drawn: Vec<f64> = times.rounds.iter().map(|_| draw()).collect();
        median(&drawn) / f64::from(times.timesteps.max(1))
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| again(submission) / again(tiled)).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[(share * (RESAMPLES - 1) as f64).round() as usize];
    [at((1.0 - SHARE) / 2.0), at(1.0 - (1.0 - SHARE) / 2.0)]
}

#[cfg(test)]
#[path = "../tests/judge_timing.rs"]
mod tests;
