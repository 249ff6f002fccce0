//! Answers to the calls in the table: what compiled heat.cu asks of this runtime.
//!
//! Every function here runs on a coroutine's stack of the lane's own OS thread. None may unwind.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::abi::{SLOTS, Slot};
use super::checker::{Touch, TouchKind};
use super::copies::Copy;
use super::lane::{self, Lane};
use super::print;
use super::raw::RawFault;
use crate::execute::Watch;

/// The table for a trial that watches like this.
pub fn table(watch: Watch) -> [usize; SLOTS] {
    let mut table = [nothing as *const () as usize; SLOTS];
    let mut set = |slot: Slot, function: *const ()| table[slot as usize] = function as usize;
    set(Slot::SyncThreads, sync_threads as *const ());
    set(Slot::SyncReduce, sync_reduce as *const ());
    set(Slot::WarpExchange, warp_exchange as *const ());
    set(Slot::ActiveMask, active_mask as *const ());
    set(Slot::AsyncCopy, async_copy as *const ());
    set(Slot::AsyncCommit, async_commit as *const ());
    set(Slot::AsyncWait, async_wait as *const ());
    set(Slot::Split, split as *const ());
    set(Slot::Atomic, atomic as *const ());
    set(Slot::Trap, trap as *const ());
    set(Slot::Unsupported, unsupported as *const ());
    set(Slot::Clock, clock as *const ());
    set(Slot::OutOfBounds, out_of_bounds as *const ());
    set(Slot::Print, print::print as *const ());
    set(Slot::Misaligned, type_mismatch as *const ());
    set(Slot::MemoryOf, memory_of as *const ());
    set(Slot::Shift, bad_shift as *const ());
    set(Slot::Cast, bad_cast as *const ());
    set(Slot::Memcpy, memcpy as *const ());
    set(Slot::Memset, memset as *const ());
    match watch {
        Watch::Fast => {}
        Watch::Count => {
            set(Slot::Read1, count::<1> as *const ());
            set(Slot::Read2, count::<2> as *const ());
            set(Slot::Read4, count::<4> as *const ());
            set(Slot::Read8, count::<8> as *const ());
            set(Slot::Read16, count::<16> as *const ());
            set(Slot::Write1, bound::<1> as *const ());
            set(Slot::Write2, bound::<2> as *const ());
            set(Slot::Write4, bound::<4> as *const ());
            set(Slot::Write8, bound::<8> as *const ());
            set(Slot::Write16, bound::<16> as *const ());
            set(Slot::ReadRange, read_range as *const ());
            set(Slot::WriteRange, write_range as *const ());
        }
        Watch::Full => {
            set(Slot::Read1, read::<1> as *const ());
            set(Slot::Read2, read::<2> as *const ());
            set(Slot::Read4, read::<4> as *const ());
            set(Slot::Read8, read::<8> as *const ());
            set(Slot::Read16, read::<16> as *const ());
            set(Slot::Write1, write::<1> as *const ());
            set(Slot::Write2, write::<2> as *const ());
            set(Slot::Write4, write::<4> as *const ());
            set(Slot::Write8, write::<8> as *const ());
            set(Slot::Write16, write::<16> as *const ());
            set(Slot::ReadRange, read_range as *const ());
            set(Slot::WriteRange, write_range as *const ());
        }
    }
    table
}

extern "C" fn nothing() {}

/// Looks one access up in full.
fn touch(address: usize, bytes: usize, code: usize, kind: TouchKind) {
    let lane = lane::current();
    if lane.is_null() {
        return;
    }
    // SAFETY: the lane belongs to this OS thread, and the reference ends with this call.
    let lane = unsafe { &mut *lane };
    if lane.checker.watch == Watch::Fast || lane.in_exchange(address) {
        return;
    }
    if lane.stacks().contain(address) {
        if !lane.is_own_local(address) {
            let (owner, standing) = (lane.local_owner(address), lane.standing);
            lane.checker.touch_foreign(Touch { address, bytes, code, kind }, &standing, owner);
        }
        return;
    }
    if kind == TouchKind::Write && lane.has_arrived_ahead() && lane.variables.in_segment(address) {
        // SAFETY: called by the running thread on its own stack.
        unsafe {
            lane::unsupported(lane, "a store to shared memory between arriving at a barrier and waiting there", code)
        }
    }
    let standing = lane.standing;
    lane.asked_from.store(code, Ordering::Relaxed);
    lane.bytes_read += lane.checker.touch(Touch { address, bytes, code, kind }, &standing) as u64;
    lane.asked_from.store(0, Ordering::Relaxed);
}

extern "C" fn read<const BYTES: usize>(address: usize, code: usize) {
    touch(address, BYTES, code, TouchKind::Read);
}

extern "C" fn write<const BYTES: usize>(address: usize, code: usize) {
    touch(address, BYTES, code, TouchKind::Write);
}

/// A read under [`Watch::Count`]: grids are counted here, the rest (rare) the long way.
extern "C" fn count<const BYTES: usize>(address: usize, code: usize) {
    let lane = lane::current();
    if lane.is_null() {
        return;
    }
    // SAFETY: as in `touch`.
    let this = unsafe { &mut *lane };
    if let Some(spot) = this.standing.grids.spot(address)
        && this.standing.grids.inside(spot, BYTES)
    {
        this.bytes_read += BYTES as u64;
        return;
    }
    if this.variables.in_segment(address) || this.stacks().contain(address) {
        return;
    }
    touch(address, BYTES, code, TouchKind::Read);
}

/// A write under [`Watch::Count`]: only whether it stays in range.
extern "C" fn bound<const BYTES: usize>(address: usize, code: usize) {
    let lane = lane::current();
    if lane.is_null() {
        return;
    }
    // SAFETY: as in `touch`.
    let this = unsafe { &mut *lane };
    let grid = this.standing.grids.spot(address).is_some_and(|spot| this.standing.grids.inside(spot, BYTES));
    if grid || this.variables.in_segment(address) || this.stacks().contain(address) {
        return;
    }
    touch(address, BYTES, code, TouchKind::Write);
}

extern "C" fn read_range(address: usize, bytes: usize, code: usize) {
    touch(address, bytes, code, TouchKind::Read);
}

extern "C" fn write_range(address: usize, bytes: usize, code: usize) {
    touch(address, bytes, code, TouchKind::Write);
}

extern "C" fn sync_threads(line: u32) {
    // SAFETY: called by the running thread on its own stack.
    unsafe { Lane::arrive(lane::current(), line) }
}

/// A thread arrives at a barrier whose arrival and wait are apart, or waits there.
extern "C" fn split(what: u32, token: u32, code: usize) -> u32 {
    // SAFETY: as above.
    unsafe { Lane::split(lane::current(), what, token, code) }
}

extern "C" fn sync_reduce(line: u32, operation: i32, value: i32) -> i32 {
    // SAFETY: as above.
    unsafe { Lane::reduce(lane::current(), line, operation.clamp(0, 2) as usize, value) }
}

extern "C" fn warp_exchange(mask: u32, value: u64, line: u32) -> *const u64 {
    // SAFETY: as above.
    unsafe { Lane::exchange(lane::current(), mask, value, line) }
}

extern "C" fn memory_of(address: usize) -> u32 {
    // SAFETY: as in `touch`.
    unsafe { Lane::memory_of_asked(lane::current(), address) as u32 }
}

extern "C" fn active_mask(site: usize) -> u32 {
    // SAFETY: as in `touch`.
    unsafe { Lane::active_mask(lane::current(), site) }
}

extern "C" fn async_copy(to: *mut u8, from: *const u8, bytes: usize, zero_fill: usize, code: usize) {
    touch(from as usize, bytes.saturating_sub(zero_fill), code, TouchKind::Read);
    // SAFETY: as in `touch`.
    unsafe { (&mut *lane::current()).copies().issue(Copy { to, from, bytes, zero_fill, code }) };
}

extern "C" fn async_commit() {
    // SAFETY: as in `touch`.
    unsafe { (*lane::current()).copies().commit() };
}

/// Copies land here, not when they are issued: a forgotten wait is then seen as a never-written read.
extern "C" fn async_wait(newest_left: u32) {
    // SAFETY: as in `touch`; the reference ends before the copy is looked at.
    while let Some(copy) = unsafe { (*lane::current()).copies().land(newest_left as usize) } {
        touch(copy.to as usize, copy.bytes, copy.code, TouchKind::Write);
        // SAFETY: the kernel asked for exactly this copy; a wild pointer faults as the kernel's own access would.
        unsafe {
            let real = copy.bytes.saturating_sub(copy.zero_fill);
            std::ptr::copy(copy.from, copy.to, real);
            std::ptr::write_bytes(copy.to.add(real), 0, copy.bytes - real);
        }
    }
}

extern "C" fn atomic(address: usize, bytes: usize, code: usize) {
    let lane = lane::current();
    if !lane.is_null() {
        // SAFETY: called by the running thread on its own stack.
        unsafe { Lane::before_atomic(lane) };
    }
    touch(address, bytes, code, TouchKind::Atomic);
}

extern "C" fn trap(why: i32, code: usize) {
    let lane = lane::current();
    // SAFETY: a kernel thread traps on its own stack.
    unsafe {
        let fault = RawFault::Trap { why, site: lane::site(code, (*lane).checker.base), actor: (*lane).actor() };
        lane::fail(lane, fault)
    }
}

extern "C" fn unsupported(construct: *const c_char, code: usize) {
    // SAFETY: the headers pass a string literal; the rest as in `trap`.
    unsafe { lane::unsupported(lane::current(), &CStr::from_ptr(construct).to_string_lossy(), code) }
}

extern "C" fn clock() -> u64 {
    thread_local!(static START: Instant = Instant::now());
    START.with(|start| start.elapsed().as_nanos() as u64)
}

/// What g++ passes to its bounds handler.
#[repr(C)]
struct OutOfBoundsData {
    file: *const c_char,
    line: u32,
    column: u32,
    array_type: *const TypeDescriptor,
    index_type: *const TypeDescriptor,
}

#[repr(C)]
struct TypeDescriptor {
    kind: u16,
    info: u16,
    name: [c_char; 1],
}

extern "C" fn out_of_bounds(data: *const OutOfBoundsData, index: i64, _code: usize) {
    let lane = lane::current();
    if lane.is_null() || data.is_null() {
        return;
    }
    // SAFETY: the compiler passes its own static descriptors; the lane as in `touch`.
    let (line, name, wide, lane) = unsafe {
        let name = CStr::from_ptr((&raw const (*(*data).array_type).name).cast()).to_string_lossy();
        // An integer's info is its width's logarithm, shifted by one, and its sign.
        let wide = (*(*data).index_type).info >> 1 >= 6;
        ((*data).line, name.trim_matches('\'').to_owned(), wide, &mut *lane)
    };
    let index = if wide { index } else { i64::from(index as i32) };
    let actor = lane.actor();
    lane.checker.out_of_bounds(line, name, index, actor);
}

/// What g++ passes to the handler of its alignment checks.
#[repr(C)]
struct TypeMismatchData {
    file: *const c_char,
    line: u32,
    column: u32,
    pointed_to: *const TypeDescriptor,
    log_alignment: u8,
    /// 0 a load, 1 a store.
    access: u8,
}

/// An address is no multiple of what the type of an access is aligned to, and a GPU traps there; or the access leaves the
/// object that the compiler sees it in.
extern "C" fn type_mismatch(data: *const TypeMismatchData, address: usize, code: usize) {
    let lane = lane::current();
    if lane.is_null() || data.is_null() {
        return;
    }
    // SAFETY: the compiler passes its own static data; the lane as in `touch`.
    unsafe {
        if (*data).log_alignment == 0 {
            let kind = if (*data).access & 1 == 0 { TouchKind::Read } else { TouchKind::Write };
            return (*lane).beyond_object(Touch { address, bytes: 0, code, kind });
        }
    }
    // SAFETY: the compiler passes its own static data; a kernel thread makes the access on its own stack.
    unsafe {
        let fault = RawFault::Misaligned {
            alignment: 1 << ((*data).log_alignment & 31),
            site: lane::site(code, (*lane).checker.base),
            actor: (*lane).actor(),
        };
        lane::fail(lane, fault)
    }
}

/// A shift by as many bits as the number has, or more, which C++ leaves undefined.
extern "C" fn bad_shift(_data: *const c_void, _left: u64, _right: u64, code: usize) {
    undefined("a shift by as many bits as the number has, or by more or less than none: C++ leaves it undefined", code);
}

/// A number with a fraction became a whole one of a type that has none as large, or NaN did.
extern "C" fn bad_cast(_data: *const c_void, _value: u64, code: usize) {
    undefined(
        "a conversion of NaN, or of a number out of the type's range, to a whole one: C++ leaves it undefined",
        code,
    );
}

/// What comes out is the compiler's choice, so what a GPU would make of it cannot be told.
fn undefined(construct: &str, code: usize) {
    let lane = lane::current();
    if !lane.is_null() {
        // SAFETY: as in `trap`.
        unsafe { lane::unsupported(lane, construct, code) }
    }
}

extern "C" fn memcpy(to: *mut c_void, from: *const c_void, bytes: usize, code: usize) -> *mut c_void {
    if bytes > 0 {
        touch(from as usize, bytes, code, TouchKind::Read);
        touch(to as usize, bytes, code, TouchKind::Write);
    }
    // SAFETY: the caller's own copy; `memmove` semantics are right for both.
    unsafe { libc::memmove(to, from, bytes) }
}

extern "C" fn memset(to: *mut c_void, value: i32, bytes: usize, code: usize) -> *mut c_void {
    if bytes > 0 {
        touch(to as usize, bytes, code, TouchKind::Write);
    }
    // SAFETY: the caller's own store.
    unsafe { libc::memset(to, value, bytes) }
}
