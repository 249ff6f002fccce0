//! Which system calls a process may make, enforced by the kernel (seccomp filters).
//!
//! A call that only an attack makes is trapped where somebody can tell of it (a worker's SIGSYS handler names it), and
//! refused where nobody can (a compiler). Calls that libraries try out of habit are refused and nothing is said of them.
//! The filter that a worker gets before it loads a learner's object is a deny-list, because the loader opens files; the
//! one that it gets before any of the learner's code runs is an allow-list besides.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::calls::{NAMESPACES, NEVER, NEWER, NOT_A_WORKER, WHILE_RUNNING};

pub use seccompiler::{apply_filter, apply_filter_all_threads};

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Whether this kernel offers filters that trap.
pub fn offered() -> bool {
    // Where /proc does not say, the kernel is asked: an unknown action is refused with another error than no seccomp.
    const GET_ACTION_AVAIL: u32 = 2;
    let action = libc::SECCOMP_RET_TRAP;
    // SAFETY: reads one u32 through a pointer to a live one.
    unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0u32, &raw const action) == 0 }
}

/// The filters of a compiler: no network, no other process's memory, no namespaces. It may start other programs.
pub fn compiler() -> Result<Vec<BpfProgram>> {
    let mut refused = plain(&NEVER);
    let namespaces = NAMESPACES.map(|flag| rule([bits(0, flag as u64, flag as u64)])).into_iter();
    refused.insert(libc::SYS_clone, namespaces.collect::<Result<_>>()?);
    Ok(vec![deny(refused, SeccompAction::Errno(libc::EPERM as u32))?, older_calls_only()?])
}

/// The filters of a worker of engine cpu before it loads an object.
pub fn before_loading() -> Result<Vec<BpfProgram>> {
    Ok(vec![deny(never_of_a_worker()?, SeccompAction::Trap)?, older_calls_only()?])
}

/// Its further filters before any of the learner's code runs: no file any more, no new machine code, nothing but what
/// running kernels takes.
pub fn before_running() -> Result<Vec<BpfProgram>> {
    let mut trapped = plain(&[
        libc::SYS_open,
        libc::SYS_openat,
        libc::SYS_readlink,
        libc::SYS_readlinkat,
        libc::SYS_getdents64,
        libc::SYS_stat,
        libc::SYS_lstat,
        libc::SYS_chdir,
    ]);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        trapped.insert(call, vec![rule([bits(2, libc::PROT_EXEC as u64, libc::PROT_EXEC as u64)])?]);
    }
    let mut allowed = plain(&WHILE_RUNNING);
    // Left to the filter before, whose answer makes glibc fall back on the older calls.
    allowed.extend(plain(&NEWER));
    allowed.insert(libc::SYS_prlimit64, vec![rule([is(2, 0)])?]);
    let own = u64::from(std::process::id());
    allowed.insert(libc::SYS_tgkill, vec![rule([is(0, own)])?]);
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    Ok(vec![deny(trapped, SeccompAction::Trap)?, filter(allowed, refuse, SeccompAction::Allow)?])
}

/// The filters of a worker of engine cuda, which runs no learner's code on the processor: the driver opens devices and
/// files, so only what no driver does is refused.
pub fn driver() -> Result<Vec<BpfProgram>> {
    const DRIVERS: [c_long; 10] = [
        // A driver speaks to its daemons over local sockets, and asks the kernel about its memory.
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
        libc::SYS_userfaultfd,
        libc::SYS_process_madvise,
        libc::SYS_personality,
    ];
    let mut refused = plain(&NEVER);
    refused.retain(|call, _| !DRIVERS.contains(call));
    refused.extend(plain(&[libc::SYS_execve, libc::SYS_execveat]));
    let elsewhere = |family: i32| rule([is(0, family as u64)]);
    refused.insert(libc::SYS_socket, vec![elsewhere(libc::AF_INET)?, elsewhere(libc::AF_INET6)?]);
    Ok(vec![deny(refused, SeccompAction::Errno(libc::EPERM as u32))?])
}

fn never_of_a_worker() -> Result<Rules> {
    let mut trapped = plain(&NEVER);
    trapped.extend(plain(&NOT_A_WORKER));
    // A thread is a clone that shares everything; all else is a process.
    trapped.insert(libc::SYS_clone, vec![rule([bits(0, libc::CLONE_THREAD as u64, 0)])?]);
    // A process that stops itself would be waited for.
    let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].map(|signal| rule([is(2, signal as u64)]));
    let mut signals = vec![rule([is_not(0, u64::from(std::process::id()))])?];
    signals.extend(stops.into_iter().collect::<Result<Vec<_>>>()?);
    trapped.insert(libc::SYS_tgkill, signals);
    for (call, flags) in [(libc::SYS_open, 1), (libc::SYS_openat, 2)] {
        let changes = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC];
        let changes = changes.map(|flag| rule([bits(flags, flag as u64, flag as u64)]));
        trapped.insert(call, changes.into_iter().collect::<Result<_>>()?);
    }
    // Reading its limits is what glibc does; setting them is not.
    trapped.insert(libc::SYS_prlimit64, vec![rule([is_not(2, 0)])?]);
    trapped.extend(plain(&[libc::SYS_setrlimit]));
    Ok(trapped)
}

/// Says that this kernel does not know them: glibc then makes the older ones.
fn older_calls_only() -> Result<BpfProgram> {
    deny(plain(&NEWER), SeccompAction::Errno(libc::ENOSYS as u32))
}

fn plain(calls: &[c_long]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn rule<const N: usize>(conditions: [Result<SeccompCondition>; N]) -> Result<SeccompRule> {
    let conditions = conditions.into_iter().collect::<Result<Vec<_>>>()?;
    SeccompRule::new(conditions).context("a system call's rule")
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition> {
    // All arguments looked at are ints or flags that fit one, but for the pointer of prlimit64.
    let width = if value == 0 && argument == 2 { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
    SeccompCondition::new(argument, width, operator, value).context("a system call's condition")
}

fn bits(argument: u8, mask: u64, wanted: u64) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), wanted)
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn deny(rules: Rules, action: SeccompAction) -> Result<BpfProgram> {
    filter(rules, SeccompAction::Allow, action)
}

fn filter(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Result<BpfProgram> {
    let arch = std::env::consts::ARCH.try_into().context("seccomp filters for this processor")?;
    let filter = SeccompFilter::new(rules, otherwise, matched, arch).context("a seccomp filter")?;
    filter.try_into().context("a seccomp filter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_compile_and_fit_the_kernels_limit() {
        for programs in [compiler(), before_loading(), before_running(), driver()] {
            let programs = programs.unwrap();
            assert!(programs.iter().map(Vec::len).sum::<usize>() < 4096);
        }
    }
}
