//! Check `reads`: words read from global memory per updated cell and timestep, against the budget.

use super::Seen;
use super::outcome::Outcome;
use super::plan::{Kind, Uncounted};
use super::words;
use crate::execute::Place;
use crate::exercise::Exercise;
use crate::verdict::{Check, CheckId, Status};

/// Words read by one launch, and what they come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reads {
    /// 4-byte words read from global memory by the counted launch that read most.
    pub words: u64,
    /// That launch, from 1; the first of them.
    pub launch: u32,
    /// Words that the first launch read.
    pub first: u64,
    /// Interior cells that it updated.
    pub cells: u64,
    /// Timesteps that it advanced.
    pub timesteps: u32,
    /// Most words allowed per updated cell and timestep.
    pub budget: f64,
}

impl Reads {
    /// What one launch reads.
    pub fn of_launch(words: u64, cells: u64, timesteps: u32, budget: f64) -> Self {
        Self { words, launch: 1, first: words, cells, timesteps, budget }
    }

    /// Words read per updated cell and timestep.
    pub fn per_cell_step(&self) -> f64 {
        self.words as f64 / (self.cells as f64 * f64::from(self.timesteps))
    }

    /// Whether the count is within the budget.
    pub fn within_budget(&self) -> bool {
        self.per_cell_step() <= self.budget
    }

    /// Whether a later launch is over the budget and reads more than the first one did, by an eighth at least.
    pub fn is_late(&self) -> bool {
        !self.within_budget() && 8 * self.words > 9 * self.first
    }

    /// Whether the count can be true: each interior cell is read at least once by a launch that gets every cell right.
    pub fn is_plausible(&self) -> bool {
        self.words >= self.cells
    }
}

/// What the count trial counted; or a later launch of the long run that reads more than its first one: a grid of another size
/// is no excuse for that.
pub fn measured(seen: &Seen) -> Option<Reads> {
    let of = |kind: Kind| {
        seen.gating().find(|outcome| outcome.planned.kind == kind).and_then(|outcome| of_trial(seen.exercise, outcome))
    };
    of(Kind::Thousand).filter(Reads::is_late).or_else(|| of(Kind::Count))
}

fn of_trial(exercise: &Exercise, outcome: &Outcome) -> Option<Reads> {
    let (_, first) = *outcome.words_read.first().filter(|(launch, _)| *launch == 1)?;
    let most = |most: (u32, u64), one: &(u32, u64)| if one.1 > most.1 { *one } else { most };
    let (launch, words) = outcome.words_read.iter().fold((1, first), most);
    Some(Reads {
        words,
        launch,
        first,
        cells: Exercise::interior_cells(outcome.planned.n),
        timesteps: exercise.exercise.steps_per_launch,
        budget: exercise.exercise.budget,
    })
}

/// Check `reads`; `None` while the count trial is missing, or until the grids are known to be right where none is made.
pub fn reads(seen: &Seen) -> Option<Check> {
    if let Some(uncounted) = &seen.means.uncounted {
        return seen.complete_for(CheckId::Values).then(|| not_counted(uncounted));
    }
    seen.gating().find(|outcome| outcome.planned.kind == Kind::Count)?;
    Some(match measured(seen) {
        Some(reads) if !reads.is_plausible() => implausible(&reads),
        Some(reads) => counted(&reads),
        None => Check::new(CheckId::Reads, Status::Skip, "could not be judged: no launch was counted to its end"),
    })
}

/// What cannot be counted at all: nobody's fault when it is an ordinary feature, a failure when it is there to hide reads.
fn not_counted(uncounted: &Uncounted) -> Check {
    let at = uncounted.line.map_or_else(String::new, |line| format!("heat.cu:{line}: "));
    let place = uncounted.line.map(|line| Place { line, column: 0 });
    let check = match uncounted.hides {
        true => Check::new(CheckId::Reads, Status::Fail, format!("{at}{} hides what it reads", uncounted.construct)),
        false => Check::new(
            CheckId::Reads,
            Status::Skip,
            format!("could not be judged: {at}{} cannot be counted", uncounted.construct),
        ),
    };
    check.with("Reads that an ordinary load makes are counted, through any cache and in any width.").at(place)
}

fn counted(reads: &Reads) -> Check {
    let (status, relation) = if reads.within_budget() { (Status::Pass, "within") } else { (Status::Fail, "over") };
    let late = if reads.is_late() { format!(" in launch {}", reads.launch) } else { String::new() };
    let summary = format!(
        "{:.3} words read per cell-step{late}, {relation} the budget of {}",
        reads.per_cell_step(),
        reads.budget
    );
    let check = Check::new(CheckId::Reads, status, summary);
    // Over the budget the cause, which follows, has the figures and what to look at.
    if status == Status::Fail {
        return check;
    }
    check.with(format!(
        "{} words in one launch for {} interior cells and {} timesteps.",
        words::grouped(reads.words),
        words::grouped(reads.cells),
        reads.timesteps
    ))
}

/// A right kernel that seems to read less than every cell once reads by a way that is not counted here. Which one, and
/// whether to hide it, a count cannot tell: that is for a person to see, so nobody passes or fails by it.
fn implausible(reads: &Reads) -> Check {
    let summary = format!(
        "could not be judged: {} words counted, fewer than the {} cells that a launch must read",
        words::grouped(reads.words),
        words::grouped(reads.cells)
    );
    Check::new(CheckId::Reads, Status::Skip, summary)
        .with("The kernel reads its input in a way that this engine does not count; an instructor has to look at it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_2048(words: u64, timesteps: u32) -> Reads {
        Reads::of_launch(words, Exercise::interior_cells(2048), timesteps, 1.5)
    }

    #[test]
    fn the_lessons_kernels_come_to_the_lessons_ratios() {
        let ratio = |reads: Reads| format!("{:.5}", reads.per_cell_step());
        assert_eq!(ratio(at_2048(20_930_580, 1)), "5.00000");
        assert_eq!(ratio(at_2048(5_561_092, 1)), "1.32846");
        assert_eq!(ratio(at_2048(7_056_400, 2)), "0.84283");
    }

    #[test]
    fn the_budget_itself_is_allowed_and_a_word_more_is_not() {
        let budget = 3 * Exercise::interior_cells(2048);
        assert!(at_2048(budget, 2).within_budget());
        assert!(!at_2048(budget + 1, 2).within_budget());
    }

    #[test]
    fn fewer_words_than_cells_cannot_be_the_whole_count() {
        assert!(!at_2048(4_186_115, 2).is_plausible());
        assert!(at_2048(4_186_116, 2).is_plausible());
    }
}
