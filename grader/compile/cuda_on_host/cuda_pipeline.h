// Asynchronous copies from global to shared memory. A copy lands at the wait, not before: see grader/execute/cpu/copies.rs.
#pragma once
#include "cuda_runtime.h"

HG_DEVICE void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_fill = 0) { hg_async_copy(to, from, bytes, zero_fill); }
HG_DEVICE void __pipeline_commit() { hg_async_commit(); }
HG_DEVICE void __pipeline_wait_prior(size_t newest_left) { hg_async_wait(static_cast<unsigned>(newest_left)); }
