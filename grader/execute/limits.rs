//! What a launch may ask of the hardware. Only the shared memory of a block differs among the architectures that the
//! lesson supports; the lowest of them is sm_75 (Tesla T4).
//! Source: CUDA C++ Programming Guide, table of technical specifications per compute capability.

use std::sync::Arc;

use crate::submission::{Geometry, GeometryOf};

const THREADS: u64 = 1024;
const BLOCK: [u32; 3] = [1024, 1024, 64];
const GRID: [u32; 3] = [2_147_483_647, 65_535, 65_535];
/// The lesson's own architecture.
pub const LESSON_ARCH: u32 = 75;

/// Bytes of shared memory a block can have, dynamic part opted in to. An architecture that is not known gets the
/// smallest figure of those that are.
fn shared_of(arch: u32) -> u64 {
    1024 * match arch {
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        90 | 100 | 101 | 103 | 110 => 227,
        _ => 64,
    }
}

/// Whether sm_75 can do the launch; see [`check_for`].
pub fn check(geometry: &Geometry, static_shared: u64) -> Result<(), String> {
    check_for(LESSON_ARCH, geometry, static_shared)
}

/// Whether the architecture (`75` for sm_75) can do the launch; `static_shared` is what the kernel's own arrays take, bytes.
/// The error says what is too much.
pub fn check_for(arch: u32, geometry: &Geometry, static_shared: u64) -> Result<(), String> {
    let Geometry { grid, block, shared } = geometry;
    let shape = |[x, y, z]: [u32; 3]| if z == 1 { format!("{x} x {y}") } else { format!("{x} x {y} x {z}") };
    let threads = threads(geometry);
    if grid.contains(&0) {
        return Err(format!("the grid has no blocks ({})", shape(*grid)));
    }
    if block.contains(&0) {
        return Err(format!("the block has no threads ({})", shape(*block)));
    }
    if threads > THREADS {
        return Err(format!("a block of {} is {threads} threads; a block can have at most {THREADS}", shape(*block)));
    }
    if block.iter().zip(BLOCK).any(|(&side, most)| side > most) {
        return Err(format!("a block of {}; no block can be larger than {}", shape(*block), shape(BLOCK)));
    }
    if grid.iter().zip(GRID).any(|(&side, most)| side > most) {
        return Err(format!("a grid of {} blocks is larger than the hardware allows", shape(*grid)));
    }
    let bytes = u64::from(*shared) + static_shared;
    let most = shared_of(arch);
    if bytes > most {
        return Err(format!("a block asks for {bytes} bytes of shared memory; sm_{arch} has at most {most}"));
    }
    Ok(())
}

/// The same launch, refused where its block has more threads than the kernel promises to the compiler (`__launch_bounds__`).
pub fn bounded(geometry: Arc<GeometryOf>, most: u32) -> Arc<GeometryOf> {
    Arc::new(move |n| {
        let launch = geometry(n)?;
        let threads = threads(&launch);
        if threads > u64::from(most) {
            return Err(format!("a block of {threads} threads, where the kernel's __launch_bounds__ allows {most}"));
        }
        Ok(launch)
    })
}

/// Threads of a block.
fn threads(launch: &Geometry) -> u64 {
    launch.block.iter().fold(1, |all, &side| all.saturating_mul(side.into()))
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
        assert!(of([1, 1, 1], [1, 1, 65], 0).unwrap_err().contains("no block can be larger than 1024 x 1024 x 64"));
        assert!(of([1, 70_000, 1], [32, 8, 1], 0).is_err());
        assert!(of([1, 1, 1], [32, 8, 1], 64_000).unwrap_err().contains("67000 bytes"));
    }

    #[test]
    fn shared_memory_is_the_architectures() {
        let launch = Geometry { grid: [1, 1, 1], block: [32, 8, 1], shared: 80 * 1024 };
        assert!(check_for(75, &launch, 0).is_err() && check_for(86, &launch, 0).is_ok());
        assert!(check_for(90, &Geometry { shared: 228 * 1024, ..launch }, 0).unwrap_err().contains("sm_90"));
    }
}
