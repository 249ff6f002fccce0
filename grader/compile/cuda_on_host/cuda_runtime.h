// CUDA C++ on the host: what heat.cu sees instead of the CUDA toolkit when g++ compiles it for engine cpu.
//
// A CUDA thread is a coroutine of the grader; everything that needs the others (barriers, shuffles, asynchronous
// copies) or must be seen by the grader (atomics) is a call through the table of hooks.inc, answered by
// grader/execute/cpu. Host-side API functions only have to compile: the learner's main() never runs.
//
// The words __shared__ and __noinline__ are left for grader/compile/rewrite.rs, which sees where a declaration ends.
#pragma once

#include <climits>
#include <cmath>
#include <math.h>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <type_traits>
#include <utility>
// As nvcc's headers do: what std says of every kind of number (`isnan`, `abs`, `sqrt` of a float) holds unqualified too.
#include <math.h>
#include <stdlib.h>

#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 88
#define __CUDA_API_VER_MAJOR__ 13
#define __CUDA_API_VER_MINOR__ 0
#define __NVCC_DIAG_PRAGMA_SUPPORT__ 1
#define __CUDACC_DEVICE_ATOMIC_BUILTINS__ 1
#define CUDA_DOUBLE_MATH_FUNCTIONS 1
#define CUDART_VERSION 13000
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 750
#define __CUDA_ARCH_LIST__ 750
#endif

// ---- qualifiers -----------------------------------------------------------------------------------------------
#define __global__
#define __device__
#define __host__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __device_builtin__
#define __cudart_builtin__
#define CUDARTAPI
#define CUDART_CB
// A section of its own for every declaration: one section may not hold const and mutable objects side by side.
#define HG_TEXT2(x) #x
#define HG_TEXT(x) HG_TEXT2(x)
#define __constant__ __attribute__((section("hg_constant." HG_TEXT(__COUNTER__))))
#define __shared__ hg_shared_qualifier

#define HG_DEVICE inline __attribute__((always_inline))

// ---- vector types ---------------------------------------------------------------------------------------------
#define HG_VECTORS(T, name, a2, a4)                                                                                  \
    struct name##1 { T x; };                                                                                         \
    struct __attribute__((aligned(a2))) name##2 { T x, y; };                                                         \
    struct name##3 { T x, y, z; };                                                                                   \
    struct __attribute__((aligned(a4))) name##4 { T x, y, z, w; };                                                   \
    HG_DEVICE constexpr name##1 make_##name##1(T x) { return {x}; }                                                  \
    HG_DEVICE constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                          \
    HG_DEVICE constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                                  \
    HG_DEVICE constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
HG_VECTORS(signed char, char, 2, 4)
HG_VECTORS(unsigned char, uchar, 2, 4)
HG_VECTORS(short, short, 4, 8)
HG_VECTORS(unsigned short, ushort, 4, 8)
HG_VECTORS(int, int, 8, 16)
HG_VECTORS(unsigned int, uint, 8, 16)
HG_VECTORS(long, long, 16, 16)
HG_VECTORS(unsigned long, ulong, 16, 16)
HG_VECTORS(long long, longlong, 16, 16)
HG_VECTORS(unsigned long long, ulonglong, 16, 16)
HG_VECTORS(float, float, 8, 16)
HG_VECTORS(double, double, 16, 16)
#undef HG_VECTORS

struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

// ---- where a thread stands ------------------------------------------------------------------------------------
// Constant for as long as a thread lives, hence const: reads of const objects are not instrumented.
extern __thread const uint3 threadIdx __asm__("hg_thread_idx");
extern __thread const uint3 blockIdx __asm__("hg_block_idx");
extern __thread const dim3 blockDim __asm__("hg_block_dim");
extern __thread const dim3 gridDim __asm__("hg_grid_dim");
static constexpr int warpSize = 32;

// ---- hooks: answered by grader/execute/cpu through the table in hooks.inc ------------------------------------------
extern "C" {
void hg_sync_threads(unsigned site);
unsigned hg_split(unsigned what, unsigned token);
int hg_sync_reduce(unsigned site, int operation, int value);
const unsigned long long* hg_warp_exchange(unsigned mask, unsigned long long value, unsigned line);
unsigned hg_active_mask();
void hg_copy_issue(void* to, const void* from, size_t bytes, size_t zero_fill);
void hg_copy_commit();
void hg_copy_land(unsigned newest_left);
void hg_atomic(const void* address, size_t bytes);
unsigned hg_memory_of(const void* address);
// why: 0 the kernel asked for it, 1 an assertion, 2 a misaligned asynchronous copy, 3 an assumption
[[noreturn]] void hg_trap(int why);
[[noreturn]] void hg_unsupported(const char* construct);
unsigned long long hg_clock();
}

// A barrier that threads which have returned do not reach: unlike __syncthreads, the others then wait for ever.
#define HG_WHOLE_BLOCK 0x80000000u
// What a thread does at a barrier whose arrival and wait are apart: grader/execute/cpu/lane.rs.
#define HG_WAITS 0u
#define HG_ARRIVES 1u
#define HG_ARRIVES_AND_WAITS 2u

// In the line of a warp operation that orders no memory. CUDA's guide says so of shuffles, votes, matches and reductions; only
// __syncwarp orders it.
#define HG_UNORDERED 0x80000000u
// Behind the values of a warp operation: which lanes took part, and the value of no lane.
#define HG_LANES 32
#define HG_NO_LANE 33u

// The thread's number in its block, x fastest.
HG_DEVICE unsigned hg_block_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
HG_DEVICE unsigned hg_block_threads() { return blockDim.x * blockDim.y * blockDim.z; }

// Asynchronous copies of the running thread: grader/execute/cpu/copies.rs. In a block that runs as loops (thread_loops.rs)
// they land when they are issued: it has been seen to give the same as one in which they land at the wait. The word behind
// threadIdx says which it is; hence the assembly, which is not instrumented. It does not change within one call of a kernel.
extern __thread const unsigned hg_thread_words[4] __asm__("hg_thread_idx");
HG_DEVICE bool hg_land_at_once() {
    unsigned at_once;
    __asm__("movl %1, %0" : "=r"(at_once) : "m"(hg_thread_words[3]));
    return at_once != 0;
}
HG_DEVICE void hg_async_copy(void* to, const void* from, size_t bytes, size_t zero_fill) {
    if (!hg_land_at_once()) return hg_copy_issue(to, from, bytes, zero_fill);
    const size_t real = zero_fill < bytes ? bytes - zero_fill : 0;
    __builtin_memmove(to, from, real);
    __builtin_memset(static_cast<char*>(to) + real, 0, bytes - real);
}
HG_DEVICE void hg_async_commit() {
    if (!hg_land_at_once()) hg_copy_commit();
}
HG_DEVICE void hg_async_wait(unsigned newest_left) {
    if (!hg_land_at_once()) hg_copy_land(newest_left);
}

// What a thread keeps of one local from a barrier interval to the next, when intervals run as loops (thread_loops.rs).
template <int Local, class T>
inline T* hg_kept() {
    static_assert(std::is_trivially_copyable<T>::value, "a local that a copy does not keep");
    alignas(T) static __thread char kept[1024 * sizeof(T)];
    return reinterpret_cast<T*>(kept);
}
template <class T>
using hg_plain = std::remove_cv_t<std::remove_reference_t<T>>;
// A type that C++ spells around the name it declares.
template <class T>
using hg_spelled = T;

// The dynamic shared array (hooks.inc); rewrite.rs makes every declaration of one a view of it.
extern "C" __thread char hg_dynamic_shared[233472];

// Which barrier of heat.cu: its line in the low 20 bits, and a number that tells two on one line apart.
#define HG_SITE (static_cast<unsigned>(__LINE__) | static_cast<unsigned>(__COUNTER__) << 20)
#define __syncthreads() hg_sync_threads(HG_SITE)
#define __syncthreads_count(p) hg_sync_reduce(HG_SITE, 0, (p))
#define __syncthreads_and(p) hg_sync_reduce(HG_SITE, 1, (p))
#define __syncthreads_or(p) hg_sync_reduce(HG_SITE, 2, (p))
#define __barrier_sync(id) hg_sync_threads(HG_SITE)
HG_DEVICE void __syncwarp(unsigned mask = 0xffffffffu, unsigned line = __builtin_LINE()) { hg_warp_exchange(mask, 0, line); }
HG_DEVICE void __threadfence() { __asm__ __volatile__("" ::: "memory"); }
HG_DEVICE void __threadfence_block() { __asm__ __volatile__("" ::: "memory"); }
HG_DEVICE void __threadfence_system() { __asm__ __volatile__("" ::: "memory"); }
HG_DEVICE unsigned __activemask() { return hg_active_mask(); }
[[noreturn]] HG_DEVICE void __trap() { hg_trap(0); }
HG_DEVICE void __brkpt() { hg_trap(0); }
[[noreturn]] HG_DEVICE void __assert_fail() { hg_trap(1); }
HG_DEVICE void __nanosleep(unsigned) {}
HG_DEVICE long long clock64() { return static_cast<long long>(hg_clock()); }
HG_DEVICE unsigned long long globaltimer() { return hg_clock(); }

// ---- warp functions -------------------------------------------------------------------------------------------
template <class T>
HG_DEVICE unsigned long long hg_bits(T value) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    unsigned long long bits = 0;
    __builtin_memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T>
HG_DEVICE T hg_from_bits(unsigned long long bits) {
    T value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}
HG_DEVICE unsigned hg_lane() { return hg_block_rank() & 31u; }
// The values of all lanes, for what orders no memory.
HG_DEVICE const unsigned long long* hg_warp_values(unsigned mask, unsigned long long value, unsigned line) {
    return hg_warp_exchange(mask, value, line | HG_UNORDERED);
}
HG_DEVICE bool hg_is_width(int width) { return 0 < width && width <= 32 && (width & (width - 1)) == 0; }
// Whose value a lane gets from a shuffle: nobody's where CUDA leaves undefined what a width means.
HG_DEVICE unsigned hg_lane_of(unsigned lane, int source, int width = 32) {
    if (!hg_is_width(width)) return HG_NO_LANE;
    const unsigned inner = static_cast<unsigned>(width - 1);
    return (lane & ~inner) | (static_cast<unsigned>(source) & inner);
}
HG_DEVICE unsigned hg_lane_up(unsigned lane, unsigned delta, int width = 32) {
    if (!hg_is_width(width)) return HG_NO_LANE;
    delta &= 31u;  // the hardware looks at five bits
    return (lane & static_cast<unsigned>(width - 1)) >= delta ? lane - delta : lane;
}
HG_DEVICE unsigned hg_lane_down(unsigned lane, unsigned delta, int width = 32) {
    if (!hg_is_width(width)) return HG_NO_LANE;
    delta &= 31u;
    return (lane & static_cast<unsigned>(width - 1)) + delta < static_cast<unsigned>(width) ? lane + delta : lane;
}
HG_DEVICE unsigned hg_lane_xor(unsigned lane, int bits, int width = 32) {
    if (!hg_is_width(width)) return HG_NO_LANE;
    const unsigned from = lane ^ (static_cast<unsigned>(bits) & 31u), group = ~static_cast<unsigned>(width - 1);
    return (from & group) <= (lane & group) ? from : lane;
}
template <class T>
HG_DEVICE T __shfl_sync(unsigned mask, T value, int source, int width = 32, unsigned line = __builtin_LINE()) {
    return hg_from_bits<T>(hg_warp_values(mask, hg_bits(value), line)[hg_lane_of(hg_lane(), source, width)]);
}
template <class T>
HG_DEVICE T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, unsigned line = __builtin_LINE()) {
    return hg_from_bits<T>(hg_warp_values(mask, hg_bits(value), line)[hg_lane_up(hg_lane(), delta, width)]);
}
template <class T>
HG_DEVICE T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, unsigned line = __builtin_LINE()) {
    return hg_from_bits<T>(hg_warp_values(mask, hg_bits(value), line)[hg_lane_down(hg_lane(), delta, width)]);
}
template <class T>
HG_DEVICE T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, unsigned line = __builtin_LINE()) {
    return hg_from_bits<T>(hg_warp_values(mask, hg_bits(value), line)[hg_lane_xor(hg_lane(), bits, width)]);
}

// The same where a block runs as loops (thread_loops/warp.rs): every thread has laid its value down before one takes any.
// What is more than that gives the block up, as a true exchange does.
HG_DEVICE void hg_warp_whole(unsigned mask = 0xffffffffu) {
    if (mask != 0xffffffffu) hg_warp_exchange(mask, 0, 0);
}
template <int Slot, class T>
HG_DEVICE void hg_warp_gives(unsigned thread, unsigned mask, T value) {
    hg_warp_whole(mask);
    hg_kept<-1 - Slot, T>()[thread] = value;
}
template <int Slot, class T>
HG_DEVICE T hg_warp_takes(unsigned thread, unsigned lane, T*) {
    const unsigned from = (thread & ~31u) | lane;
    if (lane > 31 || from >= hg_block_threads()) hg_warp_exchange(0, 0, 0);
    return hg_kept<-1 - Slot, T>()[from];
}
HG_DEVICE unsigned __ballot_sync(unsigned mask, int predicate, unsigned line = __builtin_LINE()) {
    const unsigned long long* all = hg_warp_values(mask, predicate != 0, line);
    unsigned votes = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((all[HG_LANES] >> lane & 1u) && all[lane]) votes |= 1u << lane;
    return votes;
}
HG_DEVICE int __any_sync(unsigned mask, int predicate, unsigned line = __builtin_LINE()) { return __ballot_sync(mask, predicate, line) != 0; }
HG_DEVICE int __all_sync(unsigned mask, int predicate, unsigned line = __builtin_LINE()) { return __ballot_sync(mask, !predicate, line) == 0; }

// ---- loads, stores and arithmetic with names of their own ------------------------------------------------------
template <class T> HG_DEVICE T __ldg(const T* p) { return *p; }
template <class T> HG_DEVICE T __ldca(const T* p) { return *p; }
template <class T> HG_DEVICE T __ldcg(const T* p) { return *p; }
template <class T> HG_DEVICE T __ldcs(const T* p) { return *p; }
template <class T> HG_DEVICE T __ldlu(const T* p) { return *p; }
template <class T> HG_DEVICE T __ldcv(const T* p) { return *p; }
template <class T> HG_DEVICE void __stwb(T* p, T v) { *p = v; }
template <class T> HG_DEVICE void __stcg(T* p, T v) { *p = v; }
template <class T> HG_DEVICE void __stcs(T* p, T v) { *p = v; }
template <class T> HG_DEVICE void __stwt(T* p, T v) { *p = v; }

// Operations that round as their names say: _rn to nearest, _rz to zero, _ru up, _rd down. The processor rounds by two bits of
// MXCSR (Intel SDM, volume 1, 10.2.3); volatile assembly keeps an operation between the two changes.
#define HG_SSE(function, T, instruction, mode)                                                                       \
    HG_DEVICE T function(T a, T b) {                                                                                 \
        hg_rounding rounding(mode);                                                                                  \
        __asm__ __volatile__(instruction " %1, %0" : "+x"(a) : "x"(b));                                              \
        return a;                                                                                                    \
    }
#define HG_CONVERSION(function, T, S, constraint, instruction, mode)                                                 \
    HG_DEVICE T function(S a) {                                                                                      \
        hg_rounding rounding(mode);                                                                                  \
        T result = 0;                                                                                                \
        __asm__ __volatile__(instruction " %1, %0" : "+x"(result) : constraint(a));                                  \
        return result;                                                                                               \
    }
#define HG_FMA(function, T, mode)                                                                                    \
    HG_DEVICE T function(T a, T b, T c) {                                                                            \
        hg_rounding rounding(mode);                                                                                  \
        __asm__ __volatile__("" : "+x"(a), "+x"(b), "+x"(c));                                                        \
        T result = std::fma(a, b, c);                                                                                \
        __asm__ __volatile__("" : "+x"(result));                                                                     \
        return result;                                                                                               \
    }
class hg_rounding {
    unsigned before = __builtin_ia32_stmxcsr();

public:
    HG_DEVICE explicit hg_rounding(unsigned mode) { __builtin_ia32_ldmxcsr((before & ~0x6000u) | mode); }
    HG_DEVICE ~hg_rounding() { __builtin_ia32_ldmxcsr(before); }
};
// What has no sign bit to spare is halved first. The bit that goes is kept in the last one: it may decide the rounding.
template <class T>
HG_DEVICE T hg_halved(unsigned long long a, T (*convert)(long long)) {
    const long long half = static_cast<long long>(a >> 1 | (a & 1));
    return a >> 63 ? 2 * convert(half) : convert(static_cast<long long>(a));
}
#define HG_DIRECTED(suffix, mode)                                                                                    \
    HG_SSE(__fadd_##suffix, float, "addss", mode)                                                                    \
    HG_SSE(__fsub_##suffix, float, "subss", mode)                                                                    \
    HG_SSE(__fmul_##suffix, float, "mulss", mode)                                                                    \
    HG_SSE(__fdiv_##suffix, float, "divss", mode)                                                                    \
    HG_SSE(__dadd_##suffix, double, "addsd", mode)                                                                   \
    HG_SSE(__dsub_##suffix, double, "subsd", mode)                                                                   \
    HG_SSE(__dmul_##suffix, double, "mulsd", mode)                                                                   \
    HG_SSE(__ddiv_##suffix, double, "divsd", mode)                                                                   \
    HG_FMA(__fmaf_##suffix, float, mode)                                                                             \
    HG_FMA(__fma_##suffix, double, mode)                                                                             \
    HG_CONVERSION(__fsqrt_##suffix, float, float, "x", "sqrtss", mode)                                               \
    HG_CONVERSION(__dsqrt_##suffix, double, double, "x", "sqrtsd", mode)                                             \
    HG_CONVERSION(__double2float_##suffix, float, double, "x", "cvtsd2ss", mode)                                     \
    HG_CONVERSION(__int2float_##suffix, float, int, "r", "cvtsi2ssl", mode)                                          \
    HG_CONVERSION(__ll2float_##suffix, float, long long, "r", "cvtsi2ssq", mode)                                     \
    HG_CONVERSION(__ll2double_##suffix, double, long long, "r", "cvtsi2sdq", mode)                                   \
    HG_DEVICE float __ull2float_##suffix(unsigned long long a) { return hg_halved(a, __ll2float_##suffix); }         \
    HG_DEVICE double __ull2double_##suffix(unsigned long long a) { return hg_halved(a, __ll2double_##suffix); }      \
    HG_DEVICE float __uint2float_##suffix(unsigned a) { return __ll2float_##suffix(a); }                             \
    HG_DEVICE float __frcp_##suffix(float a) { return __fdiv_##suffix(1.0f, a); }                                    \
    HG_DEVICE double __drcp_##suffix(double a) { return __ddiv_##suffix(1.0, a); }
HG_DIRECTED(rd, 0x2000u)
HG_DIRECTED(ru, 0x4000u)
HG_DIRECTED(rz, 0x6000u)
#undef HG_DIRECTED
#undef HG_SSE
#undef HG_CONVERSION
#undef HG_FMA
HG_DEVICE float __fadd_rn(float a, float b) { return a + b; }
HG_DEVICE float __fsub_rn(float a, float b) { return a - b; }
HG_DEVICE float __fmul_rn(float a, float b) { return a * b; }
HG_DEVICE float __fdiv_rn(float a, float b) { return a / b; }
HG_DEVICE float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
HG_DEVICE float __frcp_rn(float a) { return 1.0f / a; }
HG_DEVICE float __fsqrt_rn(float a) { return std::sqrt(a); }
HG_DEVICE double __dadd_rn(double a, double b) { return a + b; }
HG_DEVICE double __dsub_rn(double a, double b) { return a - b; }
HG_DEVICE double __dmul_rn(double a, double b) { return a * b; }
HG_DEVICE double __ddiv_rn(double a, double b) { return a / b; }
HG_DEVICE double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
HG_DEVICE double __drcp_rn(double a) { return 1.0 / a; }
HG_DEVICE double __dsqrt_rn(double a) { return std::sqrt(a); }
HG_DEVICE float __double2float_rn(double a) { return static_cast<float>(a); }
HG_DEVICE float __int2float_rn(int a) { return static_cast<float>(a); }
HG_DEVICE float __uint2float_rn(unsigned a) { return static_cast<float>(a); }
HG_DEVICE float __ll2float_rn(long long a) { return static_cast<float>(a); }
HG_DEVICE float __ull2float_rn(unsigned long long a) { return static_cast<float>(a); }
HG_DEVICE double __int2double_rn(int a) { return a; }
HG_DEVICE double __uint2double_rn(unsigned a) { return a; }
HG_DEVICE double __ll2double_rn(long long a) { return static_cast<double>(a); }
HG_DEVICE double __ull2double_rn(unsigned long long a) { return static_cast<double>(a); }
HG_DEVICE float __fdividef(float a, float b) { return a / b; }
HG_DEVICE float __saturatef(float a) { return a > 0.0f ? a < 1.0f ? a : 1.0f : 0.0f; }
HG_DEVICE int __float_as_int(float a) { return hg_from_bits<int>(hg_bits(a)); }
HG_DEVICE unsigned __float_as_uint(float a) { return hg_from_bits<unsigned>(hg_bits(a)); }
HG_DEVICE float __int_as_float(int a) { return hg_from_bits<float>(hg_bits(a)); }
HG_DEVICE float __uint_as_float(unsigned a) { return hg_from_bits<float>(hg_bits(a)); }
HG_DEVICE long long __double_as_longlong(double a) { return hg_from_bits<long long>(hg_bits(a)); }
HG_DEVICE double __longlong_as_double(long long a) { return hg_from_bits<double>(hg_bits(a)); }
#include "hg_math.h"
// What nvcc takes for granted has to hold: where it does not, a GPU does anything.
HG_DEVICE constexpr void hg_assumed(bool holds) {
    if (!holds) hg_trap(3);
}
#define __builtin_assume(...) hg_assumed(bool(__VA_ARGS__))
#define __assume(...) hg_assumed(bool(__VA_ARGS__))
// In which memory an address lies: grader/execute/cpu/lane.rs.
HG_DEVICE unsigned __isGlobal(const void* p) { return hg_memory_of(p) == 1; }
HG_DEVICE unsigned __isShared(const void* p) { return hg_memory_of(p) == 2; }
HG_DEVICE unsigned __isLocal(const void* p) { return hg_memory_of(p) == 3; }
HG_DEVICE unsigned __isConstant(const void* p) { return hg_memory_of(p) == 4; }

// ::min and ::max of every arithmetic pair, as CUDA has them: of a number and none (NaN), the number. The plain overloads win
// over std's templates.
template <class T> HG_DEVICE constexpr T hg_least(T a, T b) { return b < a || a != a ? b : a; }
template <class T> HG_DEVICE constexpr T hg_most(T a, T b) { return a < b || a != a ? b : a; }
#define HG_EXTREMES(T)                                                                                               \
    HG_DEVICE constexpr T min(T a, T b) { return hg_least(a, b); }                                                   \
    HG_DEVICE constexpr T max(T a, T b) { return hg_most(a, b); }
HG_EXTREMES(int)
HG_EXTREMES(unsigned)
HG_EXTREMES(long)
HG_EXTREMES(unsigned long)
HG_EXTREMES(long long)
HG_EXTREMES(unsigned long long)
HG_EXTREMES(float)
HG_EXTREMES(double)
#undef HG_EXTREMES
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>>>
HG_DEVICE constexpr std::common_type_t<A, B> min(A a, B b) { return hg_least<std::common_type_t<A, B>>(a, b); }
template <class A, class B, class = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && !std::is_same_v<A, B>>>
HG_DEVICE constexpr std::common_type_t<A, B> max(A a, B b) { return hg_most<std::common_type_t<A, B>>(a, b); }
HG_DEVICE unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }
HG_DEVICE unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }

#include "hg_guards.h"
#include "hg_assert.h"
#include "hg_atomics.h"
#include "hg_host_api.h"
