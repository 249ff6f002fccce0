//! The lesson's timestep, and a model of a tiled kernel in which single parts can be made faulty.

use super::scene::Scene;
use crate::grid::Grid;

/// One timestep of the lesson's scheme; the ring keeps its values. Shape of `u`, n x n.
pub fn step(u: &Grid, r: f32) -> Grid {
    map_interior(u, |row, column| updated(u, row, column, r))
}

/// The lesson's update of an interior cell.
pub fn updated(u: &Grid, row: usize, column: usize, r: f32) -> f32 {
    let centre = u.at(row, column);
    centre + r * (neighbours(u, row, column) - 4.0 * centre)
}

/// Sum of the four neighbours of an interior cell.
pub fn neighbours(u: &Grid, row: usize, column: usize) -> f32 {
    u.at(row, column - 1) + u.at(row, column + 1) + u.at(row - 1, column) + u.at(row + 1, column)
}

/// The grid with each interior cell replaced.
pub fn map_interior(u: &Grid, cell: impl Fn(usize, usize) -> f32) -> Grid {
    let n = u.n();
    let mut cells = u.cells().to_vec();
    for row in 1..n - 1 {
        for column in 1..n - 1 {
            cells[row * n + column] = cell(row, column);
        }
    }
    Grid::from_cells(n, cells).unwrap_or_else(|| u.clone())
}

/// The tile of a block: its first cell, and its size in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    pub top: isize,
    pub left: isize,
    pub height: isize,
    pub width: isize,
}

/// The sides of a tile or of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    pub north: bool,
    pub south: bool,
    pub west: bool,
    pub east: bool,
}

impl Sides {
    /// All of them first, then every other choice of at least one.
    pub fn choices() -> impl Iterator<Item = Self> {
        let of =
            |bits: u32| Self { north: bits & 1 != 0, south: bits & 2 != 0, west: bits & 4 != 0, east: bits & 8 != 0 };
        (1..16).rev().map(of)
    }

    /// In words: `every side`, `the south and east side`.
    pub fn words(self) -> String {
        let named = [(self.north, "north"), (self.south, "south"), (self.west, "west"), (self.east, "east")];
        let names: Vec<&str> = named.into_iter().filter(|(is, _)| *is).map(|(_, name)| name).collect();
        match names.as_slice() {
            [_, _, _, _] => "every side".to_owned(),
            [one] => format!("the {one} side"),
            [rest @ .., last] => format!("the {} and {last} sides", rest.join(", ")),
            [] => "no side".to_owned(),
        }
    }

    /// A tile by the lengths that these sides show: `32 columns by 8 rows`, `60 columns`.
    pub fn tile(self, (rows, columns): (usize, usize)) -> String {
        match (self.west || self.east, self.north || self.south) {
            (true, false) => format!("{columns} columns"),
            (false, true) => format!("{rows} rows"),
            _ => format!("{columns} columns by {rows} rows"),
        }
    }
}

/// What the first timestep leaves in a cell of the shared copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// The cell one timestep on.
    Advanced,
    /// What was loaded.
    Kept,
    /// Nothing: 0.
    Cold,
}

/// A tiled kernel: what it loads into each apron cell, and what its first timestep makes of each.
pub trait Kernel {
    /// What is loaded for the cell at (row, column), up to two cells around the tile.
    fn loads(&self, u: &Grid, tile: &Tile, row: isize, column: isize) -> f32 {
        let _ = tile;
        at_or_cold(u, row, column)
    }

    /// What the first timestep does with the cell, up to one cell around the tile. Ring cells keep their value.
    fn first(&self, u: &Grid, tile: &Tile, row: isize, column: isize) -> Middle {
        let _ = tile;
        if inside(u, row, column) { Middle::Advanced } else { Middle::Kept }
    }
}

/// The cell, or 0 outside the grid, as the lesson's load has it.
pub fn at_or_cold(u: &Grid, row: isize, column: isize) -> f32 {
    let side = u.n() as isize;
    let in_grid = (0..side).contains(&row) && (0..side).contains(&column);
    if in_grid { u.at(row as usize, column as usize) } else { 0.0 }
}

/// Whether the cell lies in the interior.
pub fn inside(u: &Grid, row: isize, column: isize) -> bool {
    let last = u.n() as isize - 1;
    (1..last).contains(&row) && (1..last).contains(&column)
}

/// Whether a kernel in tiles of that size, the first at (origin, origin), makes of the grid what the submission made. The
/// tile with the largest error comes first, and the first cell that differs ends it: a wrong guess costs one tile.
pub fn makes(scene: &Scene, kernel: &impl Kernel, (height, width): (usize, usize), origin: usize) -> bool {
    let n = scene.n();
    let (high, wide) = (height.max(1), width.max(1));
    let agrees = |top: usize, left: usize| {
        let (height, width) = (high as isize, wide as isize);
        tile_agrees(scene, kernel, &Tile { top: top as isize, left: left as isize, height, width })
    };
    let first = |at: usize, side: usize| origin + (at - origin) / side * side;
    agrees(first(scene.worst.0, high), first(scene.worst.1, wide))
        && (origin..n - 1).step_by(high).all(|top| (origin..n - 1).step_by(wide).all(|left| agrees(top, left)))
}

fn tile_agrees(scene: &Scene, kernel: &impl Kernel, tile: &Tile) -> bool {
    let (u, r) = (scene.before, scene.r);
    let last = u.n() as isize - 2;
    let rows = tile.top.max(1)..=(tile.top + tile.height - 1).min(last);
    let columns = tile.left.max(1)..=(tile.left + tile.width - 1).min(last);
    // The middle of the tile and one cell around it, clipped to the rows and columns that the grid needs.
    let (first_row, first_column) = (rows.start() - 1, columns.start() - 1);
    let (middle_rows, middle_columns) = (first_row..=rows.end() + 1, first_column..=columns.end() + 1);
    let across = (middle_columns.end() - first_column + 1) as usize;
    let load = |row, column| kernel.loads(u, tile, row, column);
    let middle: Vec<f32> = middle_rows
        .flat_map(|row| middle_columns.clone().map(move |column| (row, column)))
        .map(|(row, column)| match kernel.first(u, tile, row, column) {
            Middle::Kept => load(row, column),
            Middle::Cold => 0.0,
            Middle::Advanced => {
                let centre = load(row, column);
                let around =
                    load(row, column - 1) + load(row, column + 1) + load(row - 1, column) + load(row + 1, column);
                centre + r * (around - 4.0 * centre)
            }
        })
        .collect();
    let at = |row: isize, column: isize| middle[(row - first_row) as usize * across + (column - first_column) as usize];
    rows.clone().all(|row| {
        columns.clone().all(|column| {
            let centre = at(row, column);
            let around = at(row, column - 1) + at(row, column + 1) + at(row - 1, column) + at(row + 1, column);
            let (row, column) = (row as usize, column as usize);
            scene.is_unwritten(row, column) || scene.meets(row, column, centre + r * (around - 4.0 * centre))
        })
    })
}
