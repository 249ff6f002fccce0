//! Faulty kernels, written down apart from the ones that a diagnosis tries, and what is made of their grids.

use super::code::Code;
use super::scene::Scene;
use super::{Cause, from_grids};
use crate::grid::Grid;
use crate::submission::Geometry;

const R: f32 = 0.24;
const N: usize = 100;

fn initial() -> Grid {
    Grid::initial(N, 3)
}

/// One timestep of any five-point stencil: `cell` is given the grid, the row and the column.
fn stepped(u: &Grid, cell: impl Fn(&Grid, usize, usize) -> f32) -> Grid {
    let n = u.n();
    let value = |at: usize| {
        let (row, column) = (at / n, at % n);
        if u.on_ring(row, column) { u.at(row, column) } else { cell(u, row, column) }
    };
    Grid::from_cells(n, (0..n * n).map(value).collect()).unwrap()
}

fn heat(u: &Grid, row: usize, column: usize, r: f32) -> f32 {
    let around = u.at(row - 1, column) + u.at(row + 1, column) + u.at(row, column - 1) + u.at(row, column + 1);
    (1.0 - 4.0 * r) * u.at(row, column) + r * around
}

fn step(u: &Grid, r: f32) -> Grid {
    stepped(u, |u, row, column| heat(u, row, column, r))
}

/// A block at a time: `load` gives the grid as the block at (top, left) sees it, `advanced` says whether the first step
/// updates the cell.
fn tiled(
    u: &Grid,
    (height, width): (usize, usize),
    load: impl Fn(usize, usize, isize, isize) -> f32,
    advanced: impl Fn(usize, usize, isize, isize) -> bool,
) -> Grid {
    let n = u.n();
    let mut out = u.cells().to_vec();
    for row in 1..n - 1 {
        for column in 1..n - 1 {
            let (top, left) = (1 + (row - 1) / height * height, 1 + (column - 1) / width * width);
            let loaded = |row: isize, column: isize| load(top, left, row, column);
            let middle = |row: isize, column: isize| {
                let centre = loaded(row, column);
                if !advanced(top, left, row, column) {
                    return centre;
                }
                let around = loaded(row - 1, column)
                    + loaded(row + 1, column)
                    + loaded(row, column - 1)
                    + loaded(row, column + 1);
                centre + R * (around - 4.0 * centre)
            };
            let (row_at, column_at) = (row as isize, column as isize);
            let around = middle(row_at - 1, column_at)
                + middle(row_at + 1, column_at)
                + middle(row_at, column_at - 1)
                + middle(row_at, column_at + 1);
            let centre = middle(row_at, column_at);
            out[row * n + column] = centre + R * (around - 4.0 * centre);
        }
    }
    Grid::from_cells(n, out).unwrap()
}

/// The grid's cell, 0 outside.
fn cold(u: &Grid, row: isize, column: isize) -> f32 {
    let n = u.n() as isize;
    let in_grid = row >= 0 && row < n && column >= 0 && column < n;
    if in_grid { u.at(row as usize, column as usize) } else { 0.0 }
}

fn in_interior(row: isize, column: isize) -> bool {
    let last = N as isize - 1;
    row > 0 && row < last && column > 0 && column < last
}

fn blocks(across: u32, down: u32, x: u32, y: u32) -> Geometry {
    Geometry { grid: [across, down, 1], block: [x, y, 1], shared: 0 }
}

/// The causes of a launch from the initial grid; cells of NaN are cells that nobody wrote.
fn causes_of(after: &Grid, geometry: Geometry) -> Vec<Cause> {
    let before = initial();
    let tolerance = 16.0 * 2f64.powi(-24) * f64::from(before.max_abs()) * 2.0;
    let scene = Scene::new((&before, after), R, tolerance, (1, Some(geometry)), true).unwrap();
    let mut causes = Vec::new();
    from_grids(&scene, Vec::new(), Vec::new(), &mut causes);
    causes
}

fn codes(after: &Grid) -> Vec<Code> {
    causes_of(after, blocks(4, 13, 32, 8)).into_iter().map(|cause| cause.code).collect()
}

/// The first cause's sentence and evidence.
fn said(after: &Grid) -> String {
    let causes = causes_of(after, blocks(4, 13, 32, 8));
    let first = causes.first().expect("a cause");
    format!("{} {}", first.sentence, first.evidence.join(" "))
}

fn changed(grid: &Grid, cell: impl Fn(usize, usize, f32) -> f32) -> Grid {
    let n = grid.n();
    let value = |(at, &old): (usize, &f32)| cell(at / n, at % n, old);
    Grid::from_cells(n, grid.cells().iter().enumerate().map(value).collect()).unwrap()
}

fn right() -> Grid {
    step(&step(&initial(), R), R)
}

#[test]
fn a_right_grid_a_single_wrong_cell_and_noise_have_no_cause() {
    assert!(codes(&right()).is_empty());
    assert!(codes(&changed(&right(), |row, column, old| if (row, column) == (40, 41) { 9.0 } else { old })).is_empty());
    let other = Grid::initial(N, 99);
    let noise = changed(
        &right(),
        |row, column, old| if row % (N - 1) * (column % (N - 1)) == 0 { old } else { other.at(row, column) },
    );
    assert!(codes(&noise).is_empty());
    // Too small an error to tell one guess from another.
    assert!(
        codes(&changed(&right(), |row, column, old| if (row, column) == (40, 41) { old + 2e-5 } else { old }))
            .is_empty()
    );
}

#[test]
fn the_number_of_timesteps_is_counted() {
    assert_eq!(codes(&initial()), [Code::GridNotAdvanced]);
    assert_eq!(codes(&step(&initial(), R)), [Code::OnlyOneStep]);
    assert_eq!(codes(&step(&right(), R)), [Code::TooManySteps]);
    assert!(said(&step(&step(&right(), R), R)).contains("advances 4 timesteps"));
}

#[test]
fn a_second_step_that_mixes_grids_is_told_by_what_it_mixes() {
    let (u, middle) = (initial(), step(&initial(), R));
    let old_centre =
        stepped(&u, |u, row, column| u.at(row, column) + heat(&middle, row, column, R) - middle.at(row, column));
    let old_neighbours = stepped(&u, |u, row, column| {
        heat(u, row, column, R) + (1.0 - 4.0 * R) * (middle.at(row, column) - u.at(row, column))
    });
    assert_eq!(codes(&old_centre), [Code::OldValuesInSecondStep]);
    assert!(said(&old_centre).contains("the centre cell from before"));
    assert!(said(&old_neighbours).contains("four neighbours from before"));
}

#[test]
fn a_wall_that_moves_in_the_first_step_is_told_by_its_side() {
    let u = initial();
    let load = |_: usize, _: usize, row: isize, column: isize| cold(&u, row, column);
    let everywhere = tiled(&u, (8, 32), load, |_, _, _, _| true);
    assert_eq!(codes(&everywhere), [Code::RingAdvancedInFirstStep]);
    assert!(said(&everywhere).contains("along every side"));
    let far = tiled(&u, (8, 32), load, |_, _, row, column| row > 0 && column > 0);
    assert!(said(&far).contains("along the south and east sides"), "{}", said(&far));
}

#[test]
fn a_wall_read_as_nought_is_told() {
    let u = initial();
    let inner = |row: isize, column: isize| if in_interior(row, column) { cold(&u, row, column) } else { 0.0 };
    let loads =
        tiled(&u, (8, 32), |_, _, row, column| inner(row, column), |_, _, row, column| in_interior(row, column));
    assert_eq!(codes(&loads), [Code::OutsideTakenAsCold]);
    let middle = step(&u, R);
    let second = stepped(
        &changed(&middle, |row, column, old| if u.on_ring(row, column) { 0.0 } else { old }),
        |u, row, column| heat(u, row, column, R),
    );
    assert!(
        said(&changed(&second, |row, column, old| if u.on_ring(row, column) { u.at(row, column) } else { old }))
            .contains("the first one did not hand the ring on")
    );
}

#[test]
fn a_moved_result_is_told_with_its_direction() {
    let u = initial();
    let east =
        tiled(&u, (8, 32), |_, _, row, column| cold(&u, row, column + 1), |_, _, row, column| in_interior(row, column));
    assert_eq!(codes(&east), [Code::OffByOne]);
    assert!(said(&east).contains("neighbour to the east"));
    let whole = right();
    let stored = changed(&whole, |row, column, old| {
        let moved = row > 1 && in_interior(row as isize, column as isize);
        if moved { whole.at(row - 1, column) } else { old }
    });
    assert_eq!(codes(&stored), [Code::OffByOne]);
    assert!(said(&stored).contains("to the north. This holds for every cell more than 2"), "{}", said(&stored));
}

#[test]
fn another_r_is_solved_for() {
    let u = initial();
    let both = step(&step(&u, 0.12), 0.12);
    assert_eq!(codes(&both), [Code::WrongR]);
    assert!(said(&both).starts_with("Both timesteps use r = 0.12; the launch was given r = 0.24."));
    assert!(said(&step(&step(&u, R), 0.2)).starts_with("One of the two timesteps uses r = 0.2;"));
    let unstable = step(&step(&u, 0.3), 0.3);
    assert_eq!(codes(&unstable), [Code::UnstableR]);
    assert!(said(&unstable).contains("1 - 4r = -0.2"), "{}", said(&unstable));
}

#[test]
fn other_weights_are_solved_for() {
    let u = initial();
    let no_south = |u: &Grid, row: usize, column: usize| {
        heat(u, row, column, R) + R * (u.at(row - 1, column) - u.at(row + 1, column))
    };
    let second = stepped(&step(&u, R), no_south);
    assert_eq!(codes(&second), [Code::WrongStencil]);
    assert!(said(&second).starts_with("The second timestep adds the north neighbour twice and never the south one."));
    assert!(said(&step(&stepped(&u, no_south), R)).starts_with("The first timestep adds the north"));
    let each = stepped(&stepped(&u, no_south), no_south);
    assert!(said(&each).starts_with("Each timestep adds the north"), "{}", said(&each));
    let diagonal = |u: &Grid, row: usize, column: usize| {
        let around = u.at(row - 1, column - 1)
            + u.at(row - 1, column + 1)
            + u.at(row + 1, column - 1)
            + u.at(row + 1, column + 1);
        u.at(row, column) + R * (around - 4.0 * u.at(row, column))
    };
    assert!(said(&stepped(&step(&u, R), diagonal)).contains("four diagonal neighbours in place"));
    let centre = |u: &Grid, row: usize, column: usize| heat(u, row, column, R) + R * u.at(row, column);
    assert!(said(&stepped(&step(&u, R), centre)).contains("1 - 3r where the lesson has 1 - 4r"));
}

#[test]
fn a_grid_that_is_the_same_everywhere_says_nothing_of_weights() {
    for value in [0.0, 1e-42, 1.0] {
        let inner = |row, column, old| if in_interior(row as isize, column as isize) { value } else { old };
        assert!(codes(&changed(&right(), inner)).is_empty(), "{value}");
    }
}

#[test]
fn a_halo_that_is_too_small_is_told_with_its_tile() {
    let u = initial();
    let load = |_: usize, _: usize, row: isize, column: isize| cold(&u, row, column);
    let within = |top: usize, left: usize, row: isize, column: isize| {
        let (top, left) = (top as isize, left as isize);
        in_interior(row, column) && row >= top && row < top + 8 && column >= left && column < left + 32
    };
    let narrow = tiled(&u, (8, 32), load, within);
    assert_eq!(codes(&narrow), [Code::HaloTooSmall]);
    assert!(said(&narrow).contains("every side of each tile of 32 columns by 8 rows"), "{}", said(&narrow));
    let one_side = tiled(&u, (8, 32), load, |top, _, row, column| in_interior(row, column) && row >= top as isize);
    assert!(said(&one_side).contains("the north side of each tile of 8 rows."), "{}", said(&one_side));
    // Loaded as far as one cell around the tile of 16 x 16, though the block has 20 x 20 threads.
    let near = |at: isize, first: usize| at >= first as isize - 1 && at <= first as isize + 16;
    let short = tiled(
        &u,
        (16, 16),
        |top, left, row, column| if near(row, top) && near(column, left) { cold(&u, row, column) } else { 0.0 },
        |_, _, row, column| in_interior(row, column),
    );
    let causes = causes_of(&short, blocks(7, 7, 20, 20));
    assert!(causes[0].sentence.contains("Only one cell around the tile is loaded"), "{causes:?}");
}

#[test]
fn halos_in_each_others_place_are_told() {
    let u = initial();
    let rows = tiled(
        &u,
        (8, 32),
        |top, _, row, column| {
            let (first, last) = (top as isize, top as isize + 7);
            let from = if row < first {
                last + 3 - (first - row)
            } else if row > last {
                first - 3 + (row - last)
            } else {
                row
            };
            cold(&u, from, column)
        },
        |_, _, row, column| in_interior(row, column),
    );
    assert_eq!(codes(&rows), [Code::NeighboursSwapped]);
    assert!(said(&rows).contains("north and south"));
    let mirrored = tiled(
        &u,
        (8, 32),
        |_, left, row, column| {
            let (first, last) = (left as isize, left as isize + 31);
            let from = if column < first {
                last + first - column
            } else if column > last {
                first - (column - last)
            } else {
                column
            };
            cold(&u, row, from)
        },
        |_, _, row, column| in_interior(row, column),
    );
    assert!(said(&mirrored).contains("west and east"), "{}", said(&mirrored));
}

#[test]
fn cells_that_nobody_wrote_are_told_by_where_they_lie() {
    let missing = |is: &dyn Fn(usize, usize) -> bool| {
        changed(&right(), |row, column, old| {
            let interior = in_interior(row as isize, column as isize);
            if interior && is(row, column) { f32::NAN } else { old }
        })
    };
    let of = |after: &Grid, geometry: Geometry| {
        let causes = causes_of(after, geometry);
        assert_eq!(causes.len(), 1, "{causes:?}");
        (causes[0].code, format!("{} {}", causes[0].sentence, causes[0].evidence.join(" ")))
    };
    let (code, text) = of(&missing(&|_, column| column == 98), blocks(4, 13, 32, 8));
    assert!(code == Code::OffByOne && text.contains("column 98 is never written, the last of"), "{text}");
    let (code, text) = of(&missing(&|row, _| row == 1), blocks(4, 13, 32, 8));
    assert!(code == Code::OffByOne && text.contains("row 1 is never written, the first of"), "{text}");
    let (code, text) = of(&missing(&|row, column| row == 98 || column == 1), blocks(4, 13, 32, 8));
    assert!(code == Code::OffByOne && text.contains("row 98 and column 1 are never written"), "{text}");
    let (code, text) = of(&missing(&|_, column| column > 96), blocks(3, 13, 32, 8));
    assert!(code == Code::GridTooSmall && !text.contains("count blocks by the tile"), "they are: {text}");
    let (code, text) = of(&missing(&|row, column| row > 72 || column > 96), blocks(3, 9, 36, 12));
    assert!(code == Code::GridTooSmall && text.contains("Each block writes 8 rows, but has 12 threads"), "{text}");
    let (code, text) = of(&missing(&|row, _| row > 32), blocks(4, 13, 32, 8));
    assert!(code == Code::GridTooSmall && text.contains("indices are in each other's place"), "{text}");
    let (code, text) = of(&missing(&|_, column| (column - 1) % 32 >= 8), blocks(4, 13, 8, 1));
    assert!(
        code == Code::CellsWithoutAThread && text.contains("of every 32 columns only the first 8 are written"),
        "{text}"
    );
    let (code, text) = of(&missing(&|row, column| row % 8 != 1 || (column - 1) % 32 >= 8), blocks(4, 13, 8, 1));
    assert!(
        code == Code::CellsWithoutAThread && text.contains("and of every 8 rows only the first one is written"),
        "{text}"
    );
    // No pattern, no cause.
    assert!(causes_of(&missing(&|row, column| row == column), blocks(4, 13, 32, 8)).is_empty());
}

#[test]
fn a_ring_that_is_stored_to_is_told_with_what_is_stored() {
    let u = initial();
    let ring = |value: &dyn Fn(usize, usize, f32) -> f32| {
        changed(&right(), |row, column, old| if u.on_ring(row, column) { value(row, column, old) } else { old })
    };
    let nought = ring(&|_, _, _| 0.0);
    assert_eq!(codes(&nought), [Code::RingLost]);
    assert!(said(&nought).contains("stores 0"));
    assert!(said(&ring(&|_, _, old| f32::from_bits(old.to_bits() + 1))).contains("last bits"));
    let whole = right();
    let inner = ring(&|row, column, _| whole.at(row.clamp(1, N - 2), column.clamp(1, N - 2)));
    assert!(said(&inner).contains("as if no heat could leave"));
}

#[test]
fn of_two_faults_both_are_named_and_no_third() {
    let nobody = |grid: &Grid, is: &dyn Fn(usize, usize) -> bool| {
        changed(grid, |row, column, old| {
            let interior = in_interior(row as isize, column as isize);
            if interior && is(row, column) { f32::NAN } else { old }
        })
    };
    let u = initial();
    let load = |_: usize, _: usize, row: isize, column: isize| cold(&u, row, column);
    let within = |top: usize, left: usize, row: isize, column: isize| {
        let (top, left) = (top as isize, left as isize);
        in_interior(row, column) && row >= top && row < top + 8 && column >= left && column < left + 32
    };
    let firsts = [
        (step(&u, R), Code::OnlyOneStep),
        (step(&right(), R), Code::TooManySteps),
        (step(&step(&u, 0.12), 0.12), Code::WrongR),
        (tiled(&u, (8, 32), load, |_, _, _, _| true), Code::RingAdvancedInFirstStep),
        (tiled(&u, (8, 32), load, within), Code::HaloTooSmall),
    ];
    for (grid, code) in &firsts {
        assert_eq!(codes(&nobody(grid, &|_, column| column == 98)), [*code, Code::OffByOne]);
        assert_eq!(codes(&nobody(grid, &|row, _| row > 64)), [*code, Code::GridTooSmall]);
        let ring = changed(grid, |row, column, old| if u.on_ring(row, column) { 0.0 } else { old });
        assert_eq!(codes(&ring), [*code, Code::RingLost]);
    }
    // Two faults of the arithmetic at once explain each other away: nothing is said that is not so.
    let both = tiled(&u, (8, 32), |_, _, row, column| cold(&u, row, column + 1), within);
    assert!(codes(&both).iter().all(|code| matches!(code, Code::OffByOne | Code::HaloTooSmall)), "{:?}", codes(&both));
}
