// Cooperative groups of one block: the block itself, tiles of a warp, asynchronous copies. Groups larger than a block need
// a cooperative launch, which the exercise's launches are not.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {

struct thread_block {
    HG_DEVICE void sync(unsigned line = __builtin_LINE()) const { hg_sync_threads(line); }
    HG_DEVICE static unsigned thread_rank() { return hg_block_rank(); }
    HG_DEVICE static unsigned size() { return hg_block_threads(); }
    HG_DEVICE static unsigned num_threads() { return size(); }
    HG_DEVICE static dim3 group_index() { return dim3(blockIdx); }
    HG_DEVICE static dim3 thread_index() { return dim3(threadIdx); }
    HG_DEVICE static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    HG_DEVICE static dim3 dim_threads() { return group_dim(); }
    struct arrival_token {};
    HG_DEVICE arrival_token barrier_arrive() const {
        hg_split(HG_ARRIVES);
        return {};
    }
    HG_DEVICE void barrier_wait(arrival_token&&, unsigned line = __builtin_LINE()) const {
        hg_split(HG_WAITS);
        hg_sync_threads(line);
    }
};
using thread_group = thread_block;
HG_DEVICE thread_block this_thread_block() { return {}; }

struct grid_group {
    HG_DEVICE void sync() const { hg_unsupported("cooperative_groups::this_grid().sync()"); }
    HG_DEVICE bool is_valid() const { return false; }
    HG_DEVICE static unsigned long long size() { return 1ull * gridDim.x * gridDim.y * gridDim.z * thread_block::size(); }
    HG_DEVICE static unsigned long long thread_rank() {
        const unsigned long long block = blockIdx.x + 1ull * gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
        return block * thread_block::size() + thread_block::thread_rank();
    }
};
HG_DEVICE grid_group this_grid() { return {}; }

// The size of the tile that a tile is cut from; 0 where that is the block.
template <class Parent>
struct hg_cut_from { static constexpr unsigned threads = 0; };

template <unsigned Size, class Parent = void>
struct thread_block_tile {
    unsigned cut_from = hg_cut_from<Parent>::threads;
    static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
    HG_DEVICE static unsigned first() { return hg_lane() & ~(Size - 1); }
    HG_DEVICE static unsigned mask() { return Size == 32 ? 0xffffffffu : ((1u << (Size & 31)) - 1u) << first(); }
    HG_DEVICE static unsigned thread_rank() { return hg_lane() & (Size - 1); }
    HG_DEVICE static constexpr unsigned size() { return Size; }
    HG_DEVICE static constexpr unsigned num_threads() { return Size; }
    HG_DEVICE unsigned meta_group_rank() const { return (cut_from ? hg_lane() & (cut_from - 1) : thread_block::thread_rank()) / Size; }
    HG_DEVICE unsigned meta_group_size() const { return ((cut_from ? cut_from : thread_block::size()) + Size - 1) / Size; }
    // A tile whose type does not say what it is cut from: `thread_block_tile<32>`, as a parameter's is.
    HG_DEVICE operator thread_block_tile<Size, void>() const {
        thread_block_tile<Size, void> tile;
        tile.cut_from = cut_from;
        return tile;
    }
    HG_DEVICE void sync(unsigned line = __builtin_LINE()) const { __syncwarp(mask(), line); }
    template <class T> HG_DEVICE T shfl(T v, int source, unsigned line = __builtin_LINE()) const { return __shfl_sync(mask(), v, source, Size, line); }
    template <class T> HG_DEVICE T shfl_up(T v, unsigned d, unsigned line = __builtin_LINE()) const { return __shfl_up_sync(mask(), v, d, Size, line); }
    template <class T> HG_DEVICE T shfl_down(T v, unsigned d, unsigned line = __builtin_LINE()) const { return __shfl_down_sync(mask(), v, d, Size, line); }
    template <class T> HG_DEVICE T shfl_xor(T v, int b, unsigned line = __builtin_LINE()) const { return __shfl_xor_sync(mask(), v, b, Size, line); }
    HG_DEVICE unsigned ballot(int p, unsigned line = __builtin_LINE()) const { return __ballot_sync(mask(), p, line) >> first(); }
    HG_DEVICE int any(int p, unsigned line = __builtin_LINE()) const { return __any_sync(mask(), p, line); }
    HG_DEVICE int all(int p, unsigned line = __builtin_LINE()) const { return __all_sync(mask(), p, line); }
};
template <unsigned Size, class Parent>
struct hg_cut_from<thread_block_tile<Size, Parent>> { static constexpr unsigned threads = Size; };
template <unsigned Size, class Group>
HG_DEVICE thread_block_tile<Size, Group> tiled_partition(const Group&) { return {}; }

template <class Group>
HG_DEVICE void sync(const Group& group, unsigned line = __builtin_LINE()) { group.sync(line); }

// Whether the thread is its group's first.
template <class Group>
HG_DEVICE bool hg_leads(const Group& group) { return group.thread_rank() == 0; }
HG_DEVICE bool hg_leads(const thread_block&) { return (threadIdx.x | threadIdx.y | threadIdx.z) == 0; }

// Threads of the group share the copy, in pieces as large as the size allows; where copies land at once, the first makes all of it.
template <class Group>
HG_DEVICE void memcpy_async(const Group& group, void* to, const void* from, size_t bytes) {
    if (hg_land_at_once()) {
        if (hg_leads(group)) __builtin_memmove(to, from, bytes);
        return;
    }
    const bool wide = (reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from) | bytes) % 16 == 0;
    const size_t piece = wide ? 16 : bytes % 4 == 0 ? 4 : 1;
    for (size_t at = group.thread_rank() * piece; at < bytes; at += group.size() * piece)
        hg_async_copy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, piece, 0);
    hg_async_commit();
}
// The one size of the first form is in bytes, whatever the pointers' type; the two of the second form in elements.
template <class Group, class T>
HG_DEVICE void memcpy_async(const Group& group, T* to, const T* from, size_t bytes) {
    memcpy_async(group, static_cast<void*>(to), static_cast<const void*>(from), bytes);
}
template <class Group, class T>
HG_DEVICE void memcpy_async(const Group& group, T* to, size_t room, const T* from, size_t count) {
    memcpy_async(group, to, from, sizeof(T) * (count < room ? count : room));
}
template <class Group>
HG_DEVICE void wait(const Group& group, unsigned line = __builtin_LINE()) {
    hg_async_wait(0);
    group.sync(line);
}
template <unsigned Stages, class Group>
HG_DEVICE void wait_prior(const Group& group, unsigned line = __builtin_LINE()) {
    hg_async_wait(Stages);
    group.sync(line);
}

}  // namespace cooperative_groups
