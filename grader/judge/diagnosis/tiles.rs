//! Faults along the edges of tiles: what a block takes its neighbours' cells for.

use super::Cause;
use super::code::Code;
use super::scene::Scene;
use super::stencil::{Kernel, Middle, Sides, Tile, at_or_cold, inside, makes};
use crate::grid::Grid;
use crate::submission::Geometry;

/// Usual sides of a tile, tried after those that the launch suggests.
const USUAL: [usize; 4] = [32, 16, 8, 64];
/// Largest grid, cells a side, on which tiles are tried: faults of tiles show on the small ones.
const LARGEST: usize = 600;

/// The fault, if it is one of these.
pub fn cause(scene: &Scene) -> Option<Cause> {
    if scene.n() > LARGEST {
        return None;
    }
    let sizes = sizes(scene.geometry.as_ref(), scene.n());
    let mut tilings = sizes.into_iter().flat_map(|size| [(size, 1), (size, 0)]);
    tilings.find_map(|(size, origin)| halo(scene, size, origin).or_else(|| swapped(scene, size, origin)))
}

/// The cells that fall to a block, (rows, columns), where the launch covers an n x n grid once.
pub fn shared_out(geometry: &Geometry, n: usize) -> (usize, usize) {
    let each = |blocks: u32| (n - 2).div_ceil((blocks as usize).max(1));
    (each(geometry.grid[1]), each(geometry.grid[0]))
}

/// Sizes of tiles (rows, columns) to try, the likeliest first.
fn sizes(geometry: Option<&Geometry>, n: usize) -> Vec<(usize, usize)> {
    let (mut heights, mut widths) = (Vec::new(), Vec::new());
    if let Some(geometry) = geometry {
        let (height, width) = shared_out(geometry, n);
        let threads = geometry.block.map(|threads| threads as usize);
        let around = |threads: usize| [threads, threads.saturating_sub(4), threads.saturating_sub(2), 2 * threads];
        // The last tile may reach beyond the grid, so the share of a block is a lower bound.
        widths.extend(around(threads[0]).into_iter().chain([width]));
        heights.extend(around(threads[1]).into_iter().chain([height]));
    }
    let tidy = |sides: Vec<usize>| {
        let mut tidy: Vec<usize> = Vec::new();
        for side in sides.into_iter().chain(USUAL).filter(|side| (2..n).contains(side)) {
            if !tidy.contains(&side) {
                tidy.push(side);
            }
        }
        tidy
    };
    let (heights, widths) = (tidy(heights), tidy(widths));
    heights.iter().flat_map(|&height| widths.iter().map(move |&width| (height, width))).collect()
}

/// How far a cell lies outside the tile, on the given sides only; 0 inside.
fn beyond(tile: &Tile, sides: Sides, row: isize, column: isize) -> isize {
    let reach = |side: bool, cells: isize| if side { cells.max(0) } else { 0 };
    let (bottom, right) = (tile.top + tile.height - 1, tile.left + tile.width - 1);
    let vertical = reach(sides.north, tile.top - row).max(reach(sides.south, row - bottom));
    vertical.max(reach(sides.west, tile.left - column)).max(reach(sides.east, column - right))
}

/// What is missing around a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Halo {
    /// The first timestep leaves the cells around the tile as they were loaded.
    NotAdvanced,
    /// The second timestep finds 0 around the tile; whether also where the ring lies there.
    Empty { ring: bool },
    /// No more than so many cells around the tile are loaded; what lies beyond is 0.
    Loaded(isize),
}

struct Missing(Halo, Sides);

impl Kernel for Missing {
    fn loads(&self, u: &Grid, tile: &Tile, row: isize, column: isize) -> f32 {
        match self.0 {
            Halo::Loaded(cells) if beyond(tile, self.1, row, column) > cells => 0.0,
            _ => at_or_cold(u, row, column),
        }
    }

    fn first(&self, u: &Grid, tile: &Tile, row: isize, column: isize) -> Middle {
        let outside = beyond(tile, self.1, row, column) > 0;
        match self.0 {
            Halo::NotAdvanced if outside => Middle::Kept,
            Halo::Empty { ring } if outside && (ring || inside(u, row, column)) => Middle::Cold,
            _ if inside(u, row, column) => Middle::Advanced,
            _ => Middle::Kept,
        }
    }
}

fn halo(scene: &Scene, size: (usize, usize), origin: usize) -> Option<Cause> {
    let empty = [false, true].map(|ring| Halo::Empty { ring });
    let kinds = [Halo::NotAdvanced, empty[0], empty[1], Halo::Loaded(1), Halo::Loaded(0)];
    let fits = |&(sides, halo): &(Sides, Halo)| makes(scene, &Missing(halo, sides), size, origin);
    let (sides, halo) = Sides::choices().flat_map(|sides| kinds.map(|halo| (sides, halo))).find(fits)?;
    let said = match halo {
        Halo::NotAdvanced => {
            "The second timestep reads cells around the tile that the first one did not advance: the halo is one cell too \
             small."
        }
        Halo::Empty { .. } => "The second timestep reads 0 around the tile: the first one left no result there.",
        Halo::Loaded(0) => "Cells around the tile are taken as 0: no halo is loaded.",
        Halo::Loaded(_) => "Only one cell around the tile is loaded; two timesteps need two.",
    };
    Some(Cause::tried(Code::HaloTooSmall, said, scene).with(format!(
        "It happens along {} of each tile of {}.",
        sides.words(),
        sides.tile(size)
    )))
}

/// Halo cells of opposite sides of a tile in each other's place.
struct Swapped {
    rows: bool,
    columns: bool,
    /// Whether the outermost cell of one side stands for the outermost of the other, as in a mirror.
    mirrored: bool,
}

impl Swapped {
    fn source(&self, at: isize, first: isize, length: isize) -> isize {
        let last = first + length - 1;
        match at {
            _ if at < first && self.mirrored => last + (first - at),
            _ if at > last && self.mirrored => first - (at - last),
            // first - 2 stands for last + 1, first - 1 for last + 2, and the other way round.
            _ if at < first => last + 3 - (first - at),
            _ if at > last => first - 3 + (at - last),
            _ => at,
        }
    }
}

impl Kernel for Swapped {
    fn loads(&self, u: &Grid, tile: &Tile, row: isize, column: isize) -> f32 {
        let from_row = if self.rows { self.source(row, tile.top, tile.height) } else { row };
        let from_column = if self.columns { self.source(column, tile.left, tile.width) } else { column };
        at_or_cold(u, from_row, from_column)
    }
}

fn swapped(scene: &Scene, size: (usize, usize), origin: usize) -> Option<Cause> {
    let axes = [(true, false, "north and south"), (false, true, "west and east"), (true, true, "all opposite")];
    axes.into_iter().find_map(|(rows, columns, names)| {
        let fits = |mirrored| makes(scene, &Swapped { rows, columns, mirrored }, size, origin);
        [false, true].into_iter().any(fits).then(|| {
            let sides = Sides { north: rows, south: rows, west: columns, east: columns };
            let said = format!("The halos on the {names} sides of each tile are in each other's place.");
            Cause::tried(Code::NeighboursSwapped, said, scene).with(format!("Each tile has {}.", sides.tile(size)))
        })
    })
}
