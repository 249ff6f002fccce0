//! What a launch may ask of the hardware: the limits of the lowest architecture the lesson supports (sm_75, Tesla T4).
//! Source: CUDA C++ Programming Guide, table of technical specifications per compute capability.

use crate::submission::Geometry;

const THREADS: u64 = 1024;
const BLOCK: [u32; 3] = [1024, 1024, 64];
const GRID: [u32; 3] = [2_147_483_647, 65_535, 65_535];
/// Bytes of shared memory a block can have, dynamic part opted in to.
const SHARED: u64 = 64 * 1024;

/// Whether the launch is possible; `static_shared` is what the kernel's own arrays take, bytes. The error says what is too
/// much.
pub fn check(geometry: &Geometry, static_shared: u64) -> Result<(), String> {
    let Geometry { grid, block, shared } = geometry;
    let shape = |[x, y, z]: [u32; 3]| if z == 1 { format!("{x} x {y}") } else { format!("{x} x {y} x {z}") };
    let threads = block.iter().map(|&side| u64::from(side)).product::<u64>();
    if grid.contains(&0) {
        return Err(format!("the grid has no blocks ({})", shape(*grid)));
    }
    if block.contains(&0) {
        return Err(format!("the block has no threads ({})", shape(*block)));
    }
    if threads > THREADS || block.iter().zip(BLOCK).any(|(&side, most)| side > most) {
        return Err(format!("a block of {} is {threads} threads; a block can have at most {THREADS}", shape(*block)));
    }
    if grid.iter().zip(GRID).any(|(&side, most)| side > most) {
        return Err(format!("a grid of {} blocks is larger than the hardware allows", shape(*grid)));
    }
    let bytes = u64::from(*shared) + static_shared;
    if bytes > SHARED {
        return Err(format!("a block asks for {bytes} bytes of shared memory; sm_75 has at most {SHARED}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(grid: [u32; 3], block: [u32; 3], shared: u32) -> Result<(), String> {
        check(&Geometry { grid, block, shared }, 3000)
    }

    #[test]
    fn the_models_launch_is_possible() {
        assert_eq!(of([64, 256, 1], [32, 8, 1], 0), Ok(()));
        assert_eq!(of([64, 256, 1], [1024, 1, 1], 61_000), Ok(()));
    }

    #[test]
    fn what_the_hardware_refuses_is_named() {
        assert!(of([0, 1, 1], [32, 8, 1], 0).unwrap_err().contains("no blocks"));
        assert!(of([1, 1, 1], [64, 64, 1], 0).unwrap_err().contains("4096 threads"));
        assert!(of([1, 1, 1], [1, 1, 65], 0).is_err());
        assert!(of([1, 70_000, 1], [32, 8, 1], 0).is_err());
        assert!(of([1, 1, 1], [32, 8, 1], 64_000).unwrap_err().contains("67000 bytes"));
    }
}
