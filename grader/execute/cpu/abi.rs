//! The table through which compiled heat.cu reaches this runtime; its order is that of cuda_on_host/hooks.inc.

/// Slots of `hg_table`.
#[derive(Clone, Copy)]
#[repr(usize)]
pub enum Slot {
    SyncThreads = 0,
    SyncReduce = 1,
    WarpExchange = 2,
    ActiveMask = 3,
    AsyncCopy = 4,
    AsyncCommit = 5,
    AsyncWait = 6,
    Atomic = 7,
    Trap = 8,
    Unsupported = 9,
    Clock = 10,
    OutOfBounds = 11,
    Split = 12,
    Misaligned = 13,
    Print = 14,
    MemoryOf = 15,
    Read1 = 16,
    Read2 = 17,
    Read4 = 18,
    Read8 = 19,
    Read16 = 20,
    Write1 = 21,
    Write2 = 22,
    Write4 = 23,
    Write8 = 24,
    Write16 = 25,
    ReadRange = 26,
    WriteRange = 27,
    Memcpy = 28,
    Memset = 29,
    Shift = 30,
    Cast = 31,
}

/// Slots in the table; 8 bytes each.
pub const SLOTS: usize = 64;

/// Bytes of dynamic shared memory that every build reserves, the most of any architecture (hooks.inc).
pub const DYNAMIC_SHARED: usize = 233_472;

/// `extern "C" void hg_kernel(const float*, float*, int, float)`, appended to heat.cu by the host build.
pub type KernelFn = unsafe extern "C" fn(*const f32, *mut f32, i32, f32);
