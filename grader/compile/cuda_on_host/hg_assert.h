// assert() of a kernel: stands for <cassert> and <assert.h> too, so no #pragma once.
#undef assert
#ifdef NDEBUG
#define assert(condition) static_cast<void>(0)
#else
#define assert(condition) ((condition) ? static_cast<void>(0) : hg_trap(1))
#endif
