// assert() of a kernel: stands for <cassert> and <assert.h> too, so no #pragma once.
#undef assert
#ifdef NDEBUG
#define assert(condition) (static_cast<void>(0))
#else
#define assert(condition) (static_cast<bool>(condition) ? void(0) : __assert_fail())
#endif
