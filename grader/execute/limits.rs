//! What a launch may ask of the hardware. Only the shared memory of a block differs among the architectures that the
//! lesson supports; the lowest of them is sm_75 (Tesla T4).
//! Source: CUDA C++ Programming Guide, table of technical specifications per compute capability.

use std::sync::Arc;

use crate::submission::{Geometry, GeometryOf};

const THREADS: u64 = 1024;
const BLOCK: [u32; 3] = [1024, 1024, 64];
const GRID: [u32; 3] = [2_147_483_647, 65_535, 65_535];
/// Registers of a multiprocessor, 32 bits each, on every architecture since sm_50; a block can have all of them.
const REGISTERS: u64 = 65_536;
/// How many registers a thread are given out at a time.
const REGISTERS_AT_A_TIME: u64 = 8;
/// Parts of a multiprocessor, each with its own registers and warps.
const PARTS: u64 = 4;
const WARP: u64 = 32;
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

/// What a kernel itself allows its blocks, as far as nvcc and ptxas told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// The most threads that it promises to the compiler (`__launch_bounds__`).
    pub bound: Option<u32>,
    /// Registers a thread.
    pub registers: Option<u32>,
}

/// The same launch, refused where its block has more threads than the kernel allows.
pub fn bounded(geometry: Arc<GeometryOf>, own: Own) -> Arc<GeometryOf> {
    Arc::new(move |n| {
        let launch = geometry(n)?;
        let threads = threads(&launch);
        if let Some(most) = own.bound.filter(|&most| threads > u64::from(most)) {
            return Err(format!("a block of {threads} threads, where the kernel's __launch_bounds__ allows {most}"));
        }
        match own.registers {
            // A block that no kernel can have is told by the engine.
            Some(registers) if threads <= THREADS => check_registers(registers, threads)?,
            _ => {}
        }
        Ok(launch)
    })
}

/// Whether a multiprocessor has the registers for a block of a kernel that takes so many a thread. It gives them to whole
/// warps, by eights a thread; each of its four parts has a quarter of them, for a quarter of the warps (cuda_occupancy.h of
/// the toolkit, cudaOccMaxBlocksPerSMRegsLimit).
pub fn check_registers(registers: u32, threads: u64) -> Result<(), String> {
    let each = u64::from(registers.max(1)).next_multiple_of(REGISTERS_AT_A_TIME);
    let needed = each.saturating_mul(threads.next_multiple_of(PARTS * WARP));
    if needed <= REGISTERS {
        return Ok(());
    }
    let most = REGISTERS / (PARTS * WARP * each) * PARTS * WARP;
    Err(format!(
        "a block of {threads} threads with {registers} registers each takes {needed} registers, more than the {REGISTERS} of a \
         multiprocessor; with {registers} a thread it can have at most {most} threads"
    ))
}

/// What helps against a refusal in the words of this file.
pub fn remedy(refusal: &str) -> &'static str {
    if refusal.contains(" registers each takes ") {
        "A launch that fails leaves the grid as it was. Make the block smaller, or let a thread hold fewer values at once (a \
         shorter local array, less unrolling). With `__launch_bounds__(threads of your block)` before the kernel's name \
         nvcc takes no more registers than such a block can have, and keeps the rest in slower local memory."
    } else {
        "A launch that fails leaves the grid as it was; check its block and shared memory against the limits."
    }
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
    fn registers_are_those_of_a_multiprocessor() {
        // 64 a thread are enough for the largest block, 255 for the lesson's.
        assert!(
            [(64, 1024), (255, 256), (72, 896), (80, 768), (0, 1024)]
                .iter()
                .all(|&(r, t)| check_registers(r, t).is_ok())
        );
        // 80 a thread: 6 warps in each of the four parts.
        assert!(check_registers(80, 800).unwrap_err().contains("at most 768 threads"));
        let refusal = check_registers(106, 1024).unwrap_err();
        assert!(refusal.contains("1024 threads with 106 registers each takes 114688 registers"), "{refusal}");
        assert!(refusal.contains("65536") && refusal.ends_with("at most 512 threads"), "{refusal}");
        assert!(
            remedy(&refusal).contains("__launch_bounds__") && !remedy("an empty grid").contains("__launch_bounds__")
        );
    }

    #[test]
    fn a_kernel_refuses_blocks_that_are_too_large_for_it() {
        let launched = |own: Own, side: u32| {
            bounded(Arc::new(move |_| Ok(Geometry { grid: [1, 1, 1], block: [32, side, 1], shared: 0 })), own)(100)
                .map(|_| ())
        };
        assert_eq!(launched(Own::default(), 32), Ok(()));
        assert!(
            launched(Own { bound: Some(128), registers: None }, 8)
                .unwrap_err()
                .contains("__launch_bounds__ allows 128")
        );
        let hungry = Own { bound: None, registers: Some(65) };
        assert_eq!(launched(hungry, 8), Ok(()));
        assert!(launched(hungry, 32).unwrap_err().contains("65 registers each"));
        assert_eq!(launched(hungry, 64), Ok(()), "no block has so many threads: the engine says so");
    }

    #[test]
    fn shared_memory_is_the_architectures() {
        let launch = Geometry { grid: [1, 1, 1], block: [32, 8, 1], shared: 80 * 1024 };
        assert!(check_for(75, &launch, 0).is_err() && check_for(86, &launch, 0).is_ok());
        assert!(check_for(90, &Geometry { shared: 228 * 1024, ..launch }, 0).unwrap_err().contains("sm_90"));
    }
}
