//! The driver's error numbers (CUresult in cuda.h) in plain words.

use super::message::{KernelFacts, RawFault};
use crate::execute::{Actor, Place, RunFault, limits};
use crate::submission::Geometry;

const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
const INVALID_CONTEXT: u32 = 201;
const OUT_OF_RESOURCES: u32 = 701;

/// Whether an error of a launch is the machine's doing and not the kernel's.
pub fn is_the_machines(code: u32) -> bool {
    !matches!(code, INVALID_VALUE | OUT_OF_MEMORY | OUT_OF_RESOURCES) && crash_words(code).is_none()
}

/// What a kernel did to end like this.
fn crash_words(code: u32) -> Option<&'static str> {
    Some(match code {
        700 => "an access to memory that belongs to nobody (illegal address)",
        702 => "the driver ended a launch that ran too long",
        710 => "an assertion failed",
        714 => "a thread's call stack or local memory overflowed",
        715 => "an illegal instruction, such as a trap",
        716 => "an access to an address that is not a multiple of its size (misaligned address)",
        717 => "an access to the wrong kind of memory, such as a shared address taken for a global one",
        718 => "a jump to where there is no code",
        719 => "a thread trapped, or used shared or local memory that it does not have (unspecified launch failure)",
        _ => return None,
    })
}

/// The fault as the judge takes it. `output` is what was printed: a failed assertion says there where it stands.
pub fn run_fault(fault: RawFault, facts: &KernelFacts, geometry: &Geometry, output: &str) -> RunFault {
    match fault {
        RawFault::Refused { launch, code: OUT_OF_MEMORY } => RunFault::Crash {
            launch,
            what: format!("each thread needs {} bytes of local memory, more than the GPU can give to all", facts.local),
            memory: None,
            place: None,
            actor: None,
        },
        RawFault::Refused { launch, code } => {
            RunFault::LaunchRefused { launch, reason: refusal_words(code, facts, geometry) }
        }
        RawFault::Crashed { launch, code } => {
            let (place, actor) = assertion(output).filter(|_| code == 710).unzip();
            let what = crash_words(code).map_or_else(|| format!("CUDA driver error {code}"), str::to_owned);
            RunFault::Crash { launch, what, memory: None, place, actor }
        }
    }
}

fn refusal_words(code: u32, facts: &KernelFacts, geometry: &Geometry) -> String {
    let threads = geometry.block.iter().map(|&side| u64::from(side)).product::<u64>();
    if let Err(refusal) = limits::check_registers(facts.registers, threads) {
        return refusal;
    }
    if threads > u64::from(facts.most_threads) {
        return format!("a block of {threads} threads, where this kernel can have at most {}", facts.most_threads);
    }
    let shared = u64::from(geometry.shared) + facts.static_shared;
    match code {
        INVALID_VALUE if shared > 48 * 1024 => {
            format!("a block asks for {shared} bytes of shared memory, more than this GPU has for one")
        }
        INVALID_VALUE | INVALID_CONTEXT => "the driver takes it for an invalid launch".to_owned(),
        OUT_OF_RESOURCES => format!(
            "a block of {threads} threads with {} registers each and {shared} bytes of shared memory does not fit on this GPU",
            facts.registers
        ),
        code => format!("CUDA driver error {code}"),
    }
}

/// Line and thread of the first failed assertion in what the driver printed:
/// `heat.cu:9: void k(...): block: [0,0,0], thread: [3,0,0] Assertion `x > 0` failed.`
fn assertion(output: &str) -> Option<(Place, Actor)> {
    let line = output.lines().find(|line| line.contains("Assertion `") && line.contains("block: ["))?;
    let number = line.split(':').nth(1)?.trim().parse().ok()?;
    let triple = |name: &str| -> Option<[u32; 3]> {
        let (_, rest) = line.split_once(name)?;
        let (inside, _) = rest.split_once(']')?;
        let numbers: Vec<u32> = inside.split(',').filter_map(|part| part.trim().parse().ok()).collect();
        numbers.try_into().ok()
    };
    let actor = Actor { block: triple("block: [")?, thread: triple("thread: [")? };
    Some((Place { line: number, column: 0 }, actor))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: KernelFacts = KernelFacts { static_shared: 2000, registers: 64, local: 0, most_threads: 768 };

    fn geometry(block: [u32; 3], shared: u32) -> Geometry {
        Geometry { grid: [1, 1, 1], block, shared }
    }

    #[test]
    fn refusals_say_what_is_too_much() {
        let of =
            |code, geometry: Geometry| match run_fault(RawFault::Refused { launch: 2, code }, &FACTS, &geometry, "") {
                RunFault::LaunchRefused { launch: 2, reason } => reason,
                other => panic!("{other:?}"),
            };
        assert!(of(1, geometry([32, 32, 1], 0)).contains("1024 threads, where this kernel can have at most 768"));
        assert!(of(1, geometry([32, 8, 1], 300_000)).contains("302000 bytes"));
        assert!(of(701, geometry([32, 8, 1], 0)).contains("does not fit"));
        // In the words of engine cpu.
        let hungry = KernelFacts { registers: 106, most_threads: 512, ..FACTS };
        let fault = run_fault(RawFault::Refused { launch: 1, code: 701 }, &hungry, &geometry([32, 32, 1], 0), "");
        let reason = limits::check_registers(106, 1024).expect_err("too many");
        assert_eq!(fault, RunFault::LaunchRefused { launch: 1, reason });
    }

    #[test]
    fn a_failed_assertion_is_placed_by_what_the_driver_prints() {
        let output = "hello\nheat.cu:9: void k(const float *, float *, int, float): block: [1,2,0], thread: [3,0,0] \
                      Assertion `n < 0` failed.\n";
        let fault = run_fault(RawFault::Crashed { launch: 1, code: 710 }, &FACTS, &geometry([32, 8, 1], 0), output);
        let RunFault::Crash { place, actor, .. } = fault else { panic!("{fault:?}") };
        assert_eq!(place, Some(Place { line: 9, column: 0 }));
        assert_eq!(actor, Some(Actor { block: [1, 2, 0], thread: [3, 0, 0] }));
    }

    #[test]
    fn what_the_kernel_cannot_have_done_is_the_machines_fault() {
        assert!(is_the_machines(214) && is_the_machines(999) && is_the_machines(3));
        assert!(!is_the_machines(700) && !is_the_machines(719) && !is_the_machines(1));
    }
}
