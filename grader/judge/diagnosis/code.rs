//! The names of the faults that have a page: causes that a diagnosis can come to, remarks on main(), and advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// From which likeness (Jaro and Winkler's, 1 for the same) a name may be meant by another.
const LIKE: f64 = 0.75;

/// A fault, by the name of its page (`heat-grader explain CODE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A launch leaves the grid as it was.
    GridNotAdvanced,
    /// A launch advances one timestep.
    OnlyOneStep,
    /// A launch advances more than two timesteps.
    TooManySteps,
    /// The cells around the tile are not advanced before the second timestep reads them.
    HaloTooSmall,
    /// The first timestep moves the ring cells of the shared copy.
    RingAdvancedInFirstStep,
    /// Ring cells are read as 0, as if they lay outside the grid.
    OutsideTakenAsCold,
    /// Two accesses to shared memory with no barrier between them.
    MissingBarrier,
    /// A barrier that some threads of the block do not reach.
    BarrierNotReachedByAll,
    /// A launch stores into the grid that it reads.
    InPlaceUpdate,
    /// Blocks of one launch read what other blocks write in it.
    BlocksExchange,
    /// Two threads write one cell.
    TwoWriters,
    /// Shared cells are used that no thread has filled.
    SharedNotFilled,
    /// A launch stores into the ring.
    RingLost,
    /// The halos of opposite sides of the tile have changed places.
    NeighboursSwapped,
    /// A timestep weighs the wrong neighbours.
    WrongStencil,
    /// The second timestep takes values from before the first.
    OldValuesInSecondStep,
    /// The blocks do not reach the far side of the grid.
    GridTooSmall,
    /// Some cells of each tile have no thread.
    CellsWithoutAThread,
    /// A row or column too few, or a result moved by one.
    OffByOne,
    /// A timestep uses another r than the one given.
    WrongR,
    /// A timestep uses an r above 1/4.
    UnstableR,
    /// The kernel uses a number in place of the n given.
    HardCodedN,
    /// The kernel reads a variable that only the program's host code fills.
    FilledByHost,
    /// An access outside a grid or an array.
    IndexOutOfRange,
    /// Cells are read from global memory more than once a block.
    ReadsTooMany,
    /// The tile is so small that its apron costs more than the budget.
    TileTooSmall,
    /// The program fills only one of its two grids; a remark on main(), never a cause.
    OneBufferUnfilled,
    /// The program copies the grid to the host after every launch; a remark on main(), never a cause.
    CopyEveryStep,
    /// A setting of the shipped program is still as it was shipped; a remark, never a cause.
    SettingsLeftOver,
    /// The program launches the kernel otherwise than the grader; a remark, never a cause.
    LaunchUnlike,
    /// Lanes of a warp wait for each other's banks of shared memory.
    BankConflicts,
    /// A padding column that spares no warp a turn.
    PaddingUnused,
    /// Shared memory or registers let a multiprocessor hold few threads.
    LowOccupancy,
    /// Variables that did not fit the registers.
    RegisterSpills,
}

impl Code {
    pub const ALL: [Self; 34] = [
        Self::GridNotAdvanced,
        Self::OnlyOneStep,
        Self::TooManySteps,
        Self::HaloTooSmall,
        Self::RingAdvancedInFirstStep,
        Self::OutsideTakenAsCold,
        Self::MissingBarrier,
        Self::BarrierNotReachedByAll,
        Self::InPlaceUpdate,
        Self::BlocksExchange,
        Self::TwoWriters,
        Self::SharedNotFilled,
        Self::RingLost,
        Self::NeighboursSwapped,
        Self::WrongStencil,
        Self::OldValuesInSecondStep,
        Self::GridTooSmall,
        Self::CellsWithoutAThread,
        Self::OffByOne,
        Self::WrongR,
        Self::UnstableR,
        Self::HardCodedN,
        Self::FilledByHost,
        Self::IndexOutOfRange,
        Self::ReadsTooMany,
        Self::TileTooSmall,
        Self::OneBufferUnfilled,
        Self::CopyEveryStep,
        Self::SettingsLeftOver,
        Self::LaunchUnlike,
        Self::BankConflicts,
        Self::PaddingUnused,
        Self::LowOccupancy,
        Self::RegisterSpills,
    ];

    /// The name as reports, pages and the command line spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::GridNotAdvanced => "grid-not-advanced",
            Self::OnlyOneStep => "only-one-step",
            Self::TooManySteps => "too-many-steps",
            Self::HaloTooSmall => "halo-too-small",
            Self::RingAdvancedInFirstStep => "ring-advanced-in-first-step",
            Self::OutsideTakenAsCold => "outside-taken-as-cold",
            Self::MissingBarrier => "missing-barrier",
            Self::BarrierNotReachedByAll => "barrier-not-reached-by-all",
            Self::InPlaceUpdate => "in-place-update",
            Self::BlocksExchange => "blocks-exchange",
            Self::TwoWriters => "two-writers",
            Self::SharedNotFilled => "shared-not-filled",
            Self::RingLost => "ring-lost",
            Self::NeighboursSwapped => "neighbours-swapped",
            Self::WrongStencil => "wrong-stencil",
            Self::OldValuesInSecondStep => "old-values-in-second-step",
            Self::GridTooSmall => "grid-too-small",
            Self::CellsWithoutAThread => "cells-without-a-thread",
            Self::OffByOne => "off-by-one",
            Self::WrongR => "wrong-r",
            Self::UnstableR => "unstable-r",
            Self::HardCodedN => "hard-coded-n",
            Self::FilledByHost => "filled-by-host",
            Self::IndexOutOfRange => "index-out-of-range",
            Self::ReadsTooMany => "reads-too-many",
            Self::TileTooSmall => "tile-too-small",
            Self::OneBufferUnfilled => "one-buffer-unfilled",
            Self::CopyEveryStep => "copy-every-step",
            Self::SettingsLeftOver => "settings-left-over",
            Self::LaunchUnlike => "launch-unlike",
            Self::BankConflicts => "bank-conflicts",
            Self::PaddingUnused => "padding-unused",
            Self::LowOccupancy => "low-occupancy",
            Self::RegisterSpills => "register-spills",
        }
    }

    /// The fault of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// The fault whose name a mistyped one, or the beginning of one, is most like.
    pub fn like(typed: &str) -> Option<Self> {
        let likeness = |code: &Self| strsim::jaro_winkler(code.name(), typed);
        Self::ALL
            .into_iter()
            .max_by(|one, other| likeness(one).total_cmp(&likeness(other)))
            .filter(|code| likeness(code) > LIKE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_spelt_alike_everywhere() {
        for code in Code::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.name());
            assert_eq!(Code::of_name(code.name()), Some(code));
        }
        assert_eq!(Code::of_name("Only-One-Step"), None);
    }

    #[test]
    fn a_mistyped_name_is_told_by_what_it_is_like() {
        let like = |typed| Code::like(typed).map(Code::name);
        assert_eq!(like("missing-barier"), Some("missing-barrier"));
        assert_eq!(like("halo"), Some("halo-too-small"));
        assert_eq!(like("of-by-one"), Some("off-by-one"));
        assert_eq!((like("xyzzy"), like("")), (None, None));
    }
}
