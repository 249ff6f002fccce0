//! The context switch of coroutines on x86-64: callee-saved registers on the old stack, swap stacks, back.
//!
//! Threads of a block wait at the same barrier, so the return addresses popped after a switch are the ones that the
//! processor's return stack predicts. That symmetry is why a switch costs a few nanoseconds here and several times as
//! much in a general library.

/// Saves the running context in `*save` and goes on with the context `to`. Returns when somebody switches back.
///
/// # Safety
/// `to` was saved by an earlier call, or comes from [`prepare`], and its stack is not in use.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(save: *mut *mut u8, to: *mut u8) {
    core::arch::naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// A context that starts `entry` on a fresh stack. `entry` must never return.
///
/// # Safety
/// `top` is the 16-byte aligned top of a stack with room for the frame.
pub unsafe fn prepare(top: *mut u8, entry: unsafe extern "C" fn() -> !) -> *mut u8 {
    let words = top.cast::<usize>();
    // SAFETY: 8 words below the top are inside the stack. At `entry` the stack pointer is 8 modulo 16, as after a call.
    unsafe {
        *words.sub(1) = 0;
        *words.sub(2) = entry as usize;
        for register in 3..=8 {
            *words.sub(register) = 0;
        }
        words.sub(8).cast()
    }
}
