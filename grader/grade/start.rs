//! The seam to the cpu engine.

use std::sync::Arc;

use super::{Found, Order, Prepared, Source};
use crate::compile::toolkit::HostCompiler;
use crate::submission::Program;

/// Makes the host builds of the submission and of the reference and starts the cpu engine on them.
///
/// PLACE FOR THE LEAD: the builds come from `crate::compile::host`, the launch for any n from
/// `submission::find_launch(program, &found.kernel)?.geometry(n)`, the engine from `crate::execute::cpu::Engine::new`; it
/// implements [`super::trials::Engine`]. Where g++ refuses what nvcc takes: [`Prepared::Cannot`].
pub fn start_engine(
    gxx: &HostCompiler,
    order: &Order,
    program: &Arc<Program>,
    source: &Source,
    found: &Found,
) -> anyhow::Result<Prepared> {
    let _ = (gxx, order, program, source, found);
    Ok(Prepared::Cannot(
        "this build of heat-grader has no engine".to_owned(),
    ))
}
