//! What a worker of engine cuda is given to run.

use std::sync::Arc;

use super::message::{KernelFacts, Load, LoadCounted, LoadKernel};
use crate::execute::limits;
use crate::submission::Geometry;
use crate::submission::GeometryOf;

/// A kernel in a cubin.
#[derive(Clone)]
pub struct Kernel {
    /// What reports call it.
    pub name: String,
    pub cubin: Arc<[u8]>,
    /// Its name in the cubin; its parameters are (const float*, float*, int, float).
    pub entry: String,
    pub geometry: Arc<GeometryOf>,
    /// Timesteps that one launch advances; 1 for a copy.
    pub timesteps: u32,
}

/// The build that counts bytes read from global memory.
#[derive(Clone)]
pub struct Counted {
    pub cubin: Arc<[u8]>,
    pub entry: String,
    /// Name and length of its array of 64-bit counters.
    pub counter: String,
    pub slots: usize,
}

/// One program, built for the GPU.
#[derive(Clone)]
pub struct Program {
    /// The kernel that trials run.
    pub kernel: Kernel,
    pub counted: Option<Counted>,
    /// Kernels that are timed before and after it: copyGrid, and for the reference heatStepGlobal.
    pub also_timed: Vec<Kernel>,
    /// Compute capability (75 for sm_75) whose limits hold for a launch.
    pub arch: u32,
}

impl Program {
    /// All kernels, the one that trials run first.
    pub(super) fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        std::iter::once(&self.kernel).chain(&self.also_timed)
    }
}

/// The modules one after another, each once, and where the kernels are in them.
pub(super) fn load_request(program: &Program) -> (Load, Vec<u8>) {
    let mut cubins: Vec<&Arc<[u8]>> = Vec::new();
    let mut place = |cubin| {
        cubins.iter().position(|known| Arc::ptr_eq(known, cubin)).unwrap_or_else(|| {
            cubins.push(cubin);
            cubins.len() - 1
        })
    };
    let mut of = |cubin, entry: &str| LoadKernel { image: place(cubin), entry: entry.to_owned() };
    let kernels = program.kernels().map(|kernel| of(&kernel.cubin, &kernel.entry)).collect();
    let counted = program.counted.as_ref().map(|counted| LoadCounted {
        kernel: of(&counted.cubin, &counted.entry),
        counter: counted.counter.clone(),
        slots: counted.slots,
    });
    let images = cubins.iter().map(|cubin| cubin.len()).collect();
    (Load { images, kernels, counted }, cubins.into_iter().flat_map(|cubin| cubin.iter().copied()).collect())
}

/// The geometry of a launch, if the architecture can do it.
pub(super) fn geometry_for(kernel: &Kernel, facts: &KernelFacts, arch: u32, n: usize) -> Result<Geometry, String> {
    let geometry = (kernel.geometry)(n as u32)?;
    limits::check_for(arch, &geometry, facts.static_shared)?;
    Ok(geometry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cubin_that_kernels_share_is_sent_once() {
        let (one, two): (Arc<[u8]>, Arc<[u8]>) = (Arc::from([1u8, 2]), Arc::from([3u8]));
        let kernel = |name: &str, cubin: &Arc<[u8]>| Kernel {
            name: name.to_owned(),
            cubin: cubin.clone(),
            entry: name.to_owned(),
            geometry: Arc::new(|_| Err("none".to_owned())),
            timesteps: 1,
        };
        let counted = Counted { cubin: two.clone(), entry: "a".to_owned(), counter: "c".to_owned(), slots: 4 };
        let program = Program {
            kernel: kernel("a", &one),
            counted: Some(counted),
            also_timed: vec![kernel("b", &one), kernel("c", &two)],
            arch: 75,
        };
        let (load, blob) = load_request(&program);
        assert_eq!((load.images, blob), (vec![2, 1], vec![1, 2, 3]));
        assert_eq!(load.kernels.iter().map(|kernel| kernel.image).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(load.counted.map(|counted| counted.kernel.image), Some(1));
    }
}
