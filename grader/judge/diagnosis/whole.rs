//! Faults that are the same in every tile: what is wrong with the two timesteps themselves.

use super::Cause;
use super::code::Code;
use super::scene::Scene;
use super::stencil::{Kernel, Middle, Sides, Tile, at_or_cold, inside, makes, map_interior, neighbours, step};
use crate::grid::Grid;

/// Most timesteps that a launch is tried for.
const MOST_STEPS: u32 = 6;
/// Rows that are tried at once.
const STRIP: usize = 8;
/// How far from the ring a moved result must be the right one.
const DEEP: usize = 3;

/// The fault, if it is one of these.
pub fn cause(scene: &Scene) -> Option<Cause> {
    step_count(scene)
        .or_else(|| old_values(scene))
        .or_else(|| ring_advanced(scene))
        .or_else(|| ring_cold(scene))
        .or_else(|| moved(scene))
}

fn step_count(scene: &Scene) -> Option<Cause> {
    if scene.is(scene.before) {
        let said = "The launch leaves the grid as it was: no timestep is taken.";
        return Some(Cause::tried(Code::GridNotAdvanced, said, scene));
    }
    let one = step(scene.before, scene.r);
    if scene.is(&one) {
        let said = "The launch advances one timestep; the second one is missing.";
        return Some(Cause::tried(Code::OnlyOneStep, said, scene));
    }
    let mut grid = scene.right.clone();
    for steps in 3..=MOST_STEPS {
        grid = step(&grid, scene.r);
        if scene.is(&grid) {
            let said = format!("The launch advances {steps} timesteps where two are asked for.");
            return Some(Cause::tried(Code::TooManySteps, said, scene));
        }
    }
    None
}

/// A second timestep that mixes grids: its centre or its neighbours are from before the first.
fn old_values(scene: &Scene) -> Option<Cause> {
    let (u, r) = (scene.before, scene.r);
    let middle = &step(u, r);
    let made = |centre: &Grid, around: &Grid, taken: &Grid| {
        map_interior(u, |row, column| {
            centre.at(row, column) + r * (neighbours(around, row, column) - 4.0 * taken.at(row, column))
        })
    };
    let centre = [(u, middle, u), (u, middle, middle), (middle, middle, u)];
    if centre.into_iter().any(|(centre, around, taken)| scene.is(&made(centre, around, taken))) {
        let said = "The second timestep takes the centre cell from before the first timestep.";
        return Some(Cause::tried(Code::OldValuesInSecondStep, said, scene));
    }
    scene.is(&made(middle, u, middle)).then(|| {
        let said = "The second timestep takes the four neighbours from before the first timestep.";
        Cause::tried(Code::OldValuesInSecondStep, said, scene)
    })
}

/// What a load finds outside the grid.
#[derive(Clone, Copy)]
enum Outside {
    Cold,
    /// The nearest cell of the grid.
    Nearest,
    /// The cell that row * n + column comes to.
    Next,
}

impl Outside {
    fn at(self, u: &Grid, row: isize, column: isize) -> f32 {
        let last = u.n() as isize - 1;
        let nearest = |at: isize| at.clamp(0, last) as usize;
        match self {
            Self::Cold => at_or_cold(u, row, column),
            Self::Nearest => u.at(nearest(row), nearest(column)),
            Self::Next => {
                let at = row * u.n() as isize + column;
                usize::try_from(at).ok().and_then(|at| u.cells().get(at)).copied().unwrap_or(0.0)
            }
        }
    }
}

/// Whether a ring cell belongs to one of the sides.
fn on_sides(u: &Grid, sides: Sides, row: isize, column: isize) -> bool {
    let last = u.n() as isize - 1;
    (sides.north && row == 0)
        || (sides.south && row == last)
        || (sides.west && column == 0)
        || (sides.east && column == last)
}

struct RingAdvanced(Sides, Outside);

impl Kernel for RingAdvanced {
    fn loads(&self, u: &Grid, _: &Tile, row: isize, column: isize) -> f32 {
        self.1.at(u, row, column)
    }

    fn first(&self, u: &Grid, _: &Tile, row: isize, column: isize) -> Middle {
        let moved = inside(u, row, column) || on_sides(u, self.0, row, column);
        if moved { Middle::Advanced } else { Middle::Kept }
    }
}

/// The same in every tile, so the tiles may be of any size: strips of rows.
fn anywhere(scene: &Scene, kernel: &impl Kernel) -> bool {
    makes(scene, kernel, (STRIP, scene.n() - 2), 1)
}

fn ring_advanced(scene: &Scene) -> Option<Cause> {
    let outsides = [Outside::Cold, Outside::Nearest, Outside::Next];
    let sides =
        Sides::choices().find(|&sides| outsides.into_iter().any(|out| anywhere(scene, &RingAdvanced(sides, out))))?;
    let said =
        "The first timestep also advances ring cells in the block's copy, so the second one meets walls that moved.";
    Some(Cause::tried(Code::RingAdvancedInFirstStep, said, scene).with(walls(sides)))
}

struct RingCold {
    sides: Sides,
    /// Whether the first timestep still finds the ring's temperature.
    loaded: bool,
}

impl Kernel for RingCold {
    fn loads(&self, u: &Grid, _: &Tile, row: isize, column: isize) -> f32 {
        let cold = !self.loaded && on_sides(u, self.sides, row, column);
        if cold { 0.0 } else { at_or_cold(u, row, column) }
    }

    fn first(&self, u: &Grid, _: &Tile, row: isize, column: isize) -> Middle {
        match inside(u, row, column) {
            true => Middle::Advanced,
            false if on_sides(u, self.sides, row, column) => Middle::Cold,
            false => Middle::Kept,
        }
    }
}

fn ring_cold(scene: &Scene) -> Option<Cause> {
    Sides::choices().find_map(|sides| {
        let fits = |loaded| anywhere(scene, &RingCold { sides, loaded });
        let said = if fits(false) {
            "Ring cells are taken for cells outside the grid: their temperature is read as 0."
        } else if fits(true) {
            "The second timestep finds 0 where the ring's temperature belongs: the first one did not hand the ring on."
        } else {
            return None;
        };
        Some(Cause::tried(Code::OutsideTakenAsCold, said, scene).with(walls(sides)))
    })
}

fn walls(sides: Sides) -> String {
    format!("It happens along {} of the grid.", sides.words())
}

struct Moved(isize, isize, Outside);

impl Kernel for Moved {
    fn loads(&self, u: &Grid, _: &Tile, row: isize, column: isize) -> f32 {
        self.2.at(u, row + self.0, column + self.1)
    }
}

/// The right result in the wrong place.
fn moved(scene: &Scene) -> Option<Cause> {
    let directions = [(0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)];
    directions.into_iter().find_map(|(down, across)| {
        let exact = [Outside::Cold, Outside::Nearest, Outside::Next];
        let exact = exact.into_iter().any(|outside| anywhere(scene, &Moved(down, across, outside)));
        if !exact && !moved_inside(scene, down, across) {
            return None;
        }
        let said = format!("The result is moved: each cell holds what belongs into {}.", neighbour(down, across));
        Some(match exact {
            true => Cause::tried(Code::OffByOne, said, scene),
            false => Cause::new(Code::OffByOne, said).with(format!(
                "This holds for every cell more than {} cells from the ring (launch {}, n = {}).",
                DEEP - 1,
                scene.launch,
                scene.n()
            )),
        })
    })
}

fn moved_inside(scene: &Scene, down: isize, across: isize) -> bool {
    let n = scene.n();
    let deep = |at: usize| at >= DEEP && at + DEEP < n;
    let target = |row: usize, column: usize| {
        scene.right.at(row.saturating_add_signed(down), column.saturating_add_signed(across))
    };
    n > 4 * DEEP
        && scene
            .interior()
            .filter(|&(row, column)| deep(row) && deep(column) && !scene.is_unwritten(row, column))
            .all(|(row, column)| scene.meets(row, column, target(row, column)))
}

fn neighbour(down: isize, across: isize) -> String {
    let vertical = match down {
        1 => "south",
        -1 => "north",
        _ => "",
    };
    let horizontal = match across {
        1 => "east",
        -1 => "west",
        _ => "",
    };
    format!("its neighbour to the {vertical}{horizontal}")
}
