//! A ring that did not keep its temperature: what was stored there.

use super::Cause;
use super::code::Code;
use super::scene::Scene;
use super::stencil::at_or_cold;
use crate::judge::words::{counted, span};

/// The cause, when the launch changed ring cells, and whether nothing but ring cells is wrong.
pub fn cause(scene: &Scene) -> Option<(Cause, bool)> {
    let last = scene.n() - 1;
    let ring = (0..=last).flat_map(|row| (0..=last).map(move |column| (row, column)));
    let changed: Vec<(usize, usize)> = ring
        .filter(|&(row, column)| scene.before.on_ring(row, column))
        .filter(|&(row, column)| scene.after.at(row, column).to_bits() != scene.before.at(row, column).to_bits())
        .collect();
    let (&(top, _), &(bottom, _)) = (changed.first()?, changed.last()?);
    let all = |is: &dyn Fn(usize, usize) -> bool| changed.iter().all(|&(row, column)| is(row, column));
    let got = |row: usize, column: usize| scene.after.at(row, column);
    let inner = |at: usize| at.clamp(1, last - 1);
    let advanced = |row: usize, column: usize| {
        let (u, row, column) = (scene.before, row as isize, column as isize);
        let around = [(0, 1), (0, -1), (1, 0), (-1, 0)];
        let around: f32 = around.into_iter().map(|(down, across)| at_or_cold(u, row + down, column + across)).sum();
        let centre = at_or_cold(u, row, column);
        centre + scene.r * (around - 4.0 * centre)
    };
    let what = if all(&|row, column| got(row, column) == 0.0) {
        "It stores 0 there."
    } else if all(&|row, column| scene.meets(row, column, scene.after.at(inner(row), inner(column)))) {
        "It stores the inner neighbour's value there, as if no heat could leave."
    } else if all(&|row, column| scene.meets(row, column, scene.before.at(row, column))) {
        "It recomputes the ring's values, which come back changed in their last bits."
    } else if all(&|row, column| scene.meets(row, column, advanced(row, column))) {
        "It advances ring cells like interior ones."
    } else {
        "What it stores there is neither 0 nor a neighbour's value."
    };
    let alone = scene.follows(|row, column| scene.right.at(row, column))
        && !scene.interior().any(|(row, column)| scene.is_unwritten(row, column));
    let extent = format!(
        "{} of the ring changed in launch {} (n = {}), in {}.",
        counted(changed.len() as u64, "cell"),
        scene.launch,
        scene.n(),
        span("row", (top, bottom))
    );
    let cause = Cause::new(Code::RingLost, "The kernel stores into the ring, which must keep its temperature.");
    Some((cause.with(what).with(extent), alone))
}
