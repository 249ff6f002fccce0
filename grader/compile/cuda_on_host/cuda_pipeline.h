// Asynchronous copies from global to shared memory. A copy lands at the wait, not before: see grader/execute/cpu/copies.rs.
#pragma once
#include "cuda_runtime.h"

HG_DEVICE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_fill = 0) {
    // cp.async wants both addresses aligned to its size of 4, 8 or 16.
    if ((reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from)) % bytes) hg_trap(2);
    hg_async_copy(to, from, bytes, zero_fill);
}
HG_DEVICE void __pipeline_commit() { hg_async_commit(); }
HG_DEVICE void __pipeline_wait_prior(size_t newest_left) { hg_async_wait(static_cast<unsigned>(newest_left)); }
