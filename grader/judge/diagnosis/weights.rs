//! Which weights a wrong grid was made with, by least squares.
//!
//! A timestep is linear in the grid, so the r of each step, or the nine weights of a stencil, follow from the cells. What is
//! found is a cause only if a kernel with those weights gives every cell.

use super::Cause;
use super::code::Code;
use super::scene::Scene;
use crate::grid::Grid;

/// Largest grid, cells a side, whose weights are fitted.
const LARGEST: usize = 600;
/// How far a weight may be from a whole multiple of r to be called that multiple.
const NEAR: f64 = 0.01;
/// Rounds of Gauss-Newton where both timesteps have the same unknown weights.
const ROUNDS: usize = 12;
/// (down, across) of the nine cells, and their names.
const CELLS: [(isize, isize, &str); 9] = [
    (0, 0, "centre"),
    (-1, 0, "north"),
    (1, 0, "south"),
    (0, -1, "west"),
    (0, 1, "east"),
    (-1, -1, "north-west"),
    (-1, 1, "north-east"),
    (1, -1, "south-west"),
    (1, 1, "south-east"),
];
type Weights = [f64; CELLS.len()];

/// The fault, if other weights explain the grid.
pub fn cause(scene: &Scene) -> Option<Cause> {
    // Any weights that come to it explain a grid that is the same everywhere.
    let (first, mut cells) = (scene.after.at(1, 1), scene.interior());
    if scene.n() > LARGEST || cells.all(|(row, column)| scene.after.at(row, column) == first) {
        return None;
    }
    wrong_r(scene).or_else(|| wrong_stencil(scene))
}

/// A grid in double precision, row-major.
#[derive(Clone)]
struct Field {
    n: usize,
    cells: Vec<f64>,
}

impl Field {
    fn of(grid: &Grid) -> Self {
        Self { n: grid.n(), cells: grid.cells().iter().map(|&cell| f64::from(cell)).collect() }
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.cells[row * self.n + column]
    }

    /// The interior by `cell`, the ring by `ring` times its value.
    fn mapped(&self, ring: f64, cell: impl Fn(usize, usize) -> f64) -> Self {
        let mut mapped = self.clone();
        mapped.cells.iter_mut().for_each(|cell| *cell *= ring);
        for row in 1..self.n - 1 {
            for column in 1..self.n - 1 {
                mapped.cells[row * self.n + column] = cell(row, column);
            }
        }
        mapped
    }

    /// Each interior cell's neighbour in that direction; 0 on the ring.
    fn shifted(&self, (down, across, _): (isize, isize, &str)) -> Self {
        self.mapped(0.0, |row, column| self.at(row.saturating_add_signed(down), column.saturating_add_signed(across)))
    }

    /// What a timestep adds to the grid, over r; 0 on the ring.
    fn curvature(&self) -> Self {
        self.mapped(0.0, |row, column| {
            let around = self.at(row - 1, column)
                + self.at(row + 1, column)
                + self.at(row, column - 1)
                + self.at(row, column + 1);
            around - 4.0 * self.at(row, column)
        })
    }

    /// A timestep with these weights; the ring times `ring`.
    fn weighed(&self, weights: &Weights, ring: f64) -> Self {
        self.mapped(ring, |row, column| {
            let cell = |(down, across, _): (isize, isize, &str)| {
                self.at(row.saturating_add_signed(down), column.saturating_add_signed(across))
            };
            CELLS.into_iter().zip(weights).map(|(at, weight)| weight * cell(at)).sum()
        })
    }
}

fn lesson(r: f64) -> Weights {
    [1.0 - 4.0 * r, r, r, r, r, 0.0, 0.0, 0.0, 0.0]
}

fn wrong_r(scene: &Scene) -> Option<Cause> {
    let u = Field::of(scene.before);
    let once = u.curvature();
    let twice = once.curvature();
    // Two timesteps with a and b make u + (a + b) Lu + ab LLu.
    let target = difference(scene, &u);
    let solved = least_squares(scene, &[&once, &twice], &target)?;
    let (sum, product) = (solved[0], solved[1]);
    let given = f64::from(scene.r);
    let root = (sum * sum / 4.0 - product).max(0.0).sqrt();
    let pairs = [(given, sum - given), (sum / 2.0, sum / 2.0), (sum / 2.0 + root, sum / 2.0 - root)];
    let made = |(a, b): (f64, f64)| {
        let cells = u.cells.iter().zip(&once.cells).zip(&twice.cells);
        let cells: Vec<f64> = cells.map(|((u, once), twice)| u + (a + b) * once + a * b * twice).collect();
        Field { n: u.n, cells }
    };
    let (a, b) = pairs.into_iter().find(|&pair| meets(scene, &made(pair)))?;
    let (a, b) = (rounded(a), rounded(b));
    let largest = a.max(b);
    let given = rounded(given);
    let said = match (a == b, a == given) {
        (true, _) => format!("Both timesteps use r = {a}; the launch was given r = {given}."),
        (false, true) => format!("One of the two timesteps uses r = {b}; the launch was given r = {given}."),
        (false, false) => format!("The timesteps use r = {a} and r = {b}; the launch was given r = {given}."),
    };
    if largest > 0.25 {
        let beyond = format!(
            "With r = {largest} the centre weighs 1 - 4r = {}: below 0, so the step amplifies.",
            rounded(1.0 - 4.0 * largest)
        );
        return Some(Cause::tried(Code::UnstableR, said, scene).with(beyond));
    }
    Some(Cause::tried(Code::WrongR, said, scene))
}

/// Four decimals: as exact as an r in a program is.
fn rounded(value: f64) -> f64 {
    // Adding 0 turns -0 into 0.
    (value * 1e4).round() / 1e4 + 0.0
}

fn wrong_stencil(scene: &Scene) -> Option<Cause> {
    let u = Field::of(scene.before);
    let (r, lesson) = (f64::from(scene.r), lesson(f64::from(scene.r)));
    let middle = u.weighed(&lesson, 1.0);
    let second = fitted(scene, &middle, |shifted| shifted.clone(), &Field { n: u.n, cells: vec![0.0; u.cells.len()] });
    let second = second.filter(|weights| meets(scene, &middle.weighed(weights, 1.0)));
    let ring_only = u.mapped(1.0, |_, _| 0.0).weighed(&lesson, 1.0);
    let first = fitted(scene, &u, |shifted| shifted.weighed(&lesson, 1.0), &ring_only);
    let first = first.filter(|weights| meets(scene, &u.weighed(weights, 1.0).weighed(&lesson, 1.0)));
    let (which, weights) = match (first, second) {
        (Some(weights), None) => ("The first timestep", weights),
        (None, Some(weights)) => ("The second timestep", weights),
        (Some(weights), Some(_)) => ("One of the two timesteps", weights),
        (None, None) => ("Each timestep", both(scene, &u, lesson)?),
    };
    let said = format!("{which} {}.", fault(&weights, r)?);
    Some(Cause::tried(Code::WrongStencil, said, scene).with(table(&weights, r)))
}

/// Weights with which the sum over the nine cells of `through`(each cell's neighbours) and `rest` comes to the grid.
fn fitted(scene: &Scene, from: &Field, through: impl Fn(&Field) -> Field, rest: &Field) -> Option<Weights> {
    let terms: Vec<Field> = CELLS.into_iter().map(|at| through(&from.shifted(at))).collect();
    let solved = least_squares(scene, &terms.iter().collect::<Vec<_>>(), &difference(scene, rest))?;
    solved.try_into().ok()
}

/// The same weights in both timesteps, by Gauss-Newton from the lesson's.
fn both(scene: &Scene, u: &Field, mut weights: Weights) -> Option<Weights> {
    for _ in 0..ROUNDS {
        let once = u.weighed(&weights, 1.0);
        let twice = once.weighed(&weights, 1.0);
        if meets(scene, &twice) {
            return Some(weights);
        }
        let slope = |at| {
            let through = u.shifted(at).weighed(&weights, 1.0);
            let direct = once.shifted(at);
            through.mapped(0.0, |row, column| through.at(row, column) + direct.at(row, column))
        };
        let slopes: Vec<Field> = CELLS.into_iter().map(slope).collect();
        let change = least_squares(scene, &slopes.iter().collect::<Vec<_>>(), &difference(scene, &twice))?;
        weights.iter_mut().zip(change).for_each(|(weight, change)| *weight += change);
    }
    None
}

/// What the submission's grid has beyond the field.
fn difference(scene: &Scene, field: &Field) -> Field {
    let after = Field::of(scene.after);
    after.mapped(0.0, |row, column| after.at(row, column) - field.at(row, column))
}

fn meets(scene: &Scene, field: &Field) -> bool {
    scene.follows(|row, column| field.at(row, column) as f32)
}

/// The factors with which the terms add up to the target in the written interior cells, by the normal equations.
fn least_squares(scene: &Scene, terms: &[&Field], target: &Field) -> Option<Vec<f64>> {
    let size = terms.len();
    let mut matrix = vec![vec![0.0; size + 1]; size];
    // Every third row is enough for a handful of unknowns; the answer is tested on all.
    let (n, thinned) = (scene.n(), if scene.n() > 60 { 3 } else { 1 });
    for row in (1..n - 1).filter(|row| row % thinned == 0 || n <= 60) {
        for column in 1..n - 1 {
            if scene.is_unwritten(row, column) {
                continue;
            }
            for (line, one) in matrix.iter_mut().zip(terms) {
                let one = one.at(row, column);
                for (sum, other) in line.iter_mut().zip(terms) {
                    *sum += one * other.at(row, column);
                }
                line[size] += one * target.at(row, column);
            }
        }
    }
    solved(matrix)
}

/// Gaussian elimination with partial pivoting; `None` for a matrix without an inverse, or one that is not finite.
fn solved(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = matrix.len();
    for column in 0..size {
        let pivot = (column..size).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        matrix.swap(column, pivot);
        let largest = matrix[column][column];
        if !largest.is_finite() || largest.abs() < 1e-12 {
            return None;
        }
        let base = matrix[column].clone();
        for (row, line) in matrix.iter_mut().enumerate() {
            if row != column {
                let factor = line[column] / largest;
                line.iter_mut().zip(&base).for_each(|(cell, base)| *cell -= factor * base);
            }
        }
    }
    Some((0..size).map(|at| matrix[at][size] / matrix[at][at]).collect())
}

/// How often each neighbour is added, in words; `None` when the weights are the lesson's.
fn fault(weights: &Weights, r: f64) -> Option<String> {
    let times = |at: usize| weights[at] / r;
    let is = |at: usize, wanted: f64| (times(at) - wanted).abs() < NEAR;
    let straight = 1..5;
    let missing: Vec<&str> = straight.clone().filter(|&at| is(at, 0.0)).map(|at| CELLS[at].2).collect();
    let double: Vec<&str> = straight.clone().filter(|&at| is(at, 2.0)).map(|at| CELLS[at].2).collect();
    let single = straight.clone().filter(|&at| is(at, 1.0)).count();
    let diagonal = (5..9).filter(|&at| !is(at, 0.0)).count();
    let centre = (1.0 - weights[0]) / r;
    Some(match (missing.as_slice(), double.as_slice(), single, diagonal) {
        ([missing], [double], 2, 0) => format!("adds the {double} neighbour twice and never the {missing} one"),
        ([missing], [], 3, 0) => format!("never adds the {missing} neighbour"),
        ([_, _, _, _], _, _, 4) => "adds the four diagonal neighbours in place of the four nearest".to_owned(),
        (_, _, _, 1..) => "adds diagonal neighbours, which the lesson's stencil does not have".to_owned(),
        (_, _, 4, 0) if (centre - 4.0).abs() >= NEAR => {
            format!("weighs the centre with 1 - {}r where the lesson has 1 - 4r", rounded(centre))
        }
        (_, _, 4, 0) => return None,
        _ => "weighs its neighbours otherwise than the lesson".to_owned(),
    })
}

/// The weights in multiples of r.
fn table(weights: &Weights, r: f64) -> String {
    let multiple = |at: usize| format!("{} {}r", CELLS[at].2, tidy(weights[at] / r));
    let diagonal = (5..9).any(|at| (weights[at] / r).abs() >= NEAR);
    let named: Vec<String> = (1..if diagonal { 9 } else { 5 }).map(multiple).collect();
    let centre = tidy((1.0 - weights[0]) / r);
    format!("The weights, worked out from the cells: centre 1 - {centre}r, {}.", named.join(", "))
}

/// Two decimals, or more where two would make it a whole number; without a minus before 0.
fn tidy(value: f64) -> f64 {
    let rounded = |scale: f64| (value * scale).round() / scale + 0.0;
    if (value - value.round()).abs() < 0.5 * NEAR && (value - value.round()).abs() > 1e-3 {
        return rounded(1e4);
    }
    rounded(100.0)
}
