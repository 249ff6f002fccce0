//! Excerpts of logs that compute-sanitizer 2025.3 wrote on an H200, and one in the form of releases up to 2022.

use super::*;

fn at(line: u32) -> Option<Place> {
    Some(Place { line, column: 0 })
}

fn only(log: &str) -> Finding {
    let mut found = findings(log).expect("a log with findings");
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

const MEMCHECK: &str = "\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at heatTwoStep(const float *, float *, int, float)+0x220 in heat.cu:19
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7ff3fcbffe6c is out of bounds
=========     and is 404 bytes before the nearest allocation at 0x7ff3fcc00000 of size 40000 bytes
========= 
========= Invalid __global__ read of size 4 bytes
=========     at heatTwoStep(const float *, float *, int, float)+0x220 in heat.cu:19
=========     by thread (1,0,0) in block (0,0,0)
=========     Access to 0x7ff3fcbffe70 is out of bounds
=========     and is 400 bytes before the nearest allocation at 0x7ff3fcc00000 of size 40000 bytes
========= 
========= ERROR SUMMARY: 2 errors
";

#[test]
fn threads_outside_an_allocation_are_one_site() {
    let found = only(MEMCHECK);
    assert_eq!((found.kind, found.place, found.count), (FindingKind::OutOfRange, at(19), 2));
    assert_eq!((&*found.memory, found.store), ("global", Some(false)));
    assert_eq!(found.actor, Some(Actor { block: [0, 0, 0], thread: [0, 0, 0] }));
    let store = MEMCHECK.replace("read of size", "write of size");
    assert_eq!(only(&store).store, Some(true));
    let shared = MEMCHECK.replace("__global__", "__shared__").replace("out of bounds", "misaligned");
    assert_eq!((only(&shared).kind, &*only(&shared).memory), (FindingKind::Misaligned, "shared"));
}

const RACECHECK: &str = "\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at heatTwoStep(const float *, float *, int, float)+0x6b0 in heat.cu:52
=========     and Read access at heatTwoStep(const float *, float *, int, float)+0x1010 in heat.cu:67 [19564 hazards]
=========     and Read access at heatTwoStep(const float *, float *, int, float)+0x1020 in heat.cu:67 [8248 hazards]
=========     and Read access at heatTwoStep(const float *, float *, int, float)+0x1030 in heat.cu:68 [16252 hazards]
=========     and Read access at heatTwoStep(const float *, float *, int, float)+0x1040 in heat.cu:68 [10824 hazards]
=========     and Read access at heatTwoStep(const float *, float *, int, float)+0x1050 in heat.cu:65 [6776 hazards]
========= 
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
";

#[test]
fn a_race_has_two_lines_and_counts_its_hazards() {
    let found = only(RACECHECK);
    assert_eq!((found.kind, found.place, found.other), (FindingKind::Race, at(52), at(67)));
    assert_eq!((found.store, found.actor, found.count), (Some(true), None, 19564 + 8248 + 16252 + 10824 + 6776));
    assert_eq!(only(&RACECHECK.replace("= Error:", "= Warning:")).kind, FindingKind::MaybeRace);
}

#[test]
fn the_words_of_older_releases_are_read_too() {
    let old = "\
========= COMPUTE-SANITIZER
========= ERROR: Race reported between Read access at 0x6360 in /somewhere/heat.cu:123:k(const float*, float*, int, float)
=========     and Write access at 0x1fe0 in /somewhere/heat.cu:63:k(const float*, float*, int, float) [1088 hazards]
========= 
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
";
    let found = only(old);
    assert_eq!((found.kind, found.place, found.other), (FindingKind::Race, at(123), at(63)));
    assert_eq!((found.store, found.count), (Some(false), 1088));
}

#[test]
fn unwritten_words_are_counted_beyond_what_was_printed() {
    let log = "\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at heatTwoStep(const float *, float *, int, float)+0x1020 in heat.cu:66
=========     by thread (0,0,0) in block (0,2,0)
=========     Address 0x7f0d72c0b894
========= 
========= ERROR SUMMARY: 76168 errors
========= ERROR SUMMARY: 75168 errors were not printed. Use --print-limit option to adjust the number of printed errors
";
    let found = only(log);
    assert_eq!((found.kind, found.place, found.count), (FindingKind::NeverWritten, at(66), 75169));
    assert_eq!(found.actor, Some(Actor { block: [0, 2, 0], thread: [0, 0, 0] }));
}

#[test]
fn threads_that_miss_a_barrier_are_found() {
    let log = "\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at heatTwoStep(const float *, float *, int, float)+0x10b0 in heat.cu:59
=========     by thread (0,3,0) in block (0,2,0)
========= 
========= ERROR SUMMARY: 1 error
";
    let found = only(log);
    assert_eq!((found.kind, found.place, found.store), (FindingKind::Divergence, at(59), None));
}

#[test]
fn an_access_in_a_header_is_placed_at_the_line_that_called_it() {
    let log = "\
========= Invalid __shared__ write of size 4 bytes
=========     at k(const float *, float *, int, float)+0x90 in memcpy_async.h:80
=========     by thread (3,0,0) in block (1,0,0)
=========         Device Frame: k(const float *, float *, int, float)+0x90 in heat.cu:31
";
    assert_eq!(only(log).place, at(31));
}

#[test]
fn a_clean_log_has_no_findings_and_one_that_breaks_off_no_answer() {
    assert_eq!(findings("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"), Some(Vec::new()));
    let races =
        "========= COMPUTE-SANITIZER\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n";
    assert_eq!(findings(races), Some(Vec::new()));
    assert_eq!(findings("========= COMPUTE-SANITIZER\n"), None);
    assert_eq!(findings(""), None);
    // What a kernel prints carries no bar, and a bar alone says nothing.
    assert_eq!(findings("Invalid __global__ read of size 4 bytes\n"), None);
}
