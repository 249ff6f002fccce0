// Cooperative groups of one block: the block itself, tiles of a warp, lanes that came together, asynchronous copies. Groups larger than a block need
// a cooperative launch, which the exercise's launches are not.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {

// Lanes of the warp that the block has.
HG_DEVICE unsigned hg_warp_lanes() {
    const unsigned left = hg_block_threads() - (hg_block_rank() & ~31u);
    return left < 32 ? (1u << left) - 1u : 0xffffffffu;
}
// Lanes of a mask before this one; and the lane that has so many of them before it.
HG_DEVICE unsigned hg_rank_in(unsigned lanes) { return static_cast<unsigned>(__builtin_popcount(lanes & ((1u << hg_lane()) - 1u))); }
HG_DEVICE unsigned hg_lane_at(unsigned lanes, unsigned rank) {
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((lanes >> lane & 1u) && rank-- == 0) return lane;
    return HG_NO_LANE;
}

// A group whose size is known when it runs: some lanes of a warp, or the block, for which no lane stands.
class thread_group {
public:
    HG_DEVICE void sync(unsigned line = __builtin_LINE()) const {
        if (lanes) return __syncwarp(lanes, line);
        hg_sync_threads(line);
    }
    HG_DEVICE unsigned size() const { return lanes ? static_cast<unsigned>(__builtin_popcount(lanes)) : hg_block_threads(); }
    HG_DEVICE unsigned num_threads() const { return size(); }
    HG_DEVICE unsigned thread_rank() const { return lanes ? hg_rank_in(lanes) : hg_block_rank(); }
    HG_DEVICE bool is_valid() const { return true; }
    HG_DEVICE explicit constexpr thread_group(unsigned lanes) : lanes(lanes) {}
    HG_DEVICE unsigned hg_lanes() const { return lanes; }

protected:
    unsigned lanes;
};

struct thread_block : thread_group {
    HG_DEVICE constexpr thread_block() : thread_group(0) {}
    HG_DEVICE void sync(unsigned line = __builtin_LINE()) const { hg_sync_threads(line); }
    HG_DEVICE static unsigned thread_rank() { return hg_block_rank(); }
    HG_DEVICE static unsigned size() { return hg_block_threads(); }
    HG_DEVICE static unsigned num_threads() { return size(); }
    HG_DEVICE static dim3 group_index() { return dim3(blockIdx); }
    HG_DEVICE static dim3 thread_index() { return dim3(threadIdx); }
    HG_DEVICE static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    HG_DEVICE static dim3 dim_threads() { return group_dim(); }
    struct arrival_token {
        unsigned number;
    };
    HG_DEVICE arrival_token barrier_arrive() const {
        return {hg_split(HG_ARRIVES, 0)};
    }
    HG_DEVICE void barrier_wait(arrival_token&& token, unsigned line = __builtin_LINE()) const {
        hg_split(HG_WAITS, token.number);
        hg_sync_threads(line);
    }
};
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

// Lanes that came together, numbered anew.
class coalesced_group : public thread_group {
    HG_DEVICE unsigned packed(unsigned votes) const {
        unsigned bits = 0, rank = 0;
        for (unsigned lane = 0; lane < 32; ++lane)
            if (lanes >> lane & 1u) bits |= (votes >> lane & 1u) << rank++;
        return bits;
    }
    template <class T> HG_DEVICE T from(T v, unsigned lane, unsigned line) const {
        return hg_from_bits<T>(hg_warp_values(lanes, hg_bits(v), line)[lane]);
    }

public:
    HG_DEVICE explicit constexpr coalesced_group(unsigned lanes) : thread_group(lanes) {}
    HG_DEVICE unsigned meta_group_rank() const { return 0; }
    HG_DEVICE unsigned meta_group_size() const { return 1; }
    template <class T> HG_DEVICE T shfl(T v, unsigned source, unsigned line = __builtin_LINE()) const {
        return from(v, hg_lane_at(lanes, source), line);
    }
    template <class T> HG_DEVICE T shfl_up(T v, unsigned d, unsigned line = __builtin_LINE()) const {
        return from(v, d <= thread_rank() ? hg_lane_at(lanes, thread_rank() - d) : hg_lane(), line);
    }
    template <class T> HG_DEVICE T shfl_down(T v, unsigned d, unsigned line = __builtin_LINE()) const {
        return from(v, d < size() - thread_rank() ? hg_lane_at(lanes, thread_rank() + d) : hg_lane(), line);
    }
    HG_DEVICE unsigned ballot(int p, unsigned line = __builtin_LINE()) const { return packed(__ballot_sync(lanes, p, line)); }
    HG_DEVICE int any(int p, unsigned line = __builtin_LINE()) const { return __any_sync(lanes, p, line); }
    HG_DEVICE int all(int p, unsigned line = __builtin_LINE()) const { return __all_sync(lanes, p, line); }
    template <class T> HG_DEVICE unsigned match_any(T v, unsigned line = __builtin_LINE()) const {
        return packed(__match_any_sync(lanes, v, line));
    }
    template <class T> HG_DEVICE unsigned match_all(T v, int& all, unsigned line = __builtin_LINE()) const {
        return packed(__match_all_sync(lanes, v, &all, line));
    }
};
HG_DEVICE coalesced_group coalesced_threads() { return coalesced_group(hg_active_mask()); }

template <unsigned Size, class Parent = void>
struct thread_block_tile {
    thread_block_tile() = default;
    // What a tile was taken of may be left out of its type.
    template <class Other, class = std::enable_if_t<std::is_void<Parent>::value && !std::is_void<Other>::value>>
    HG_DEVICE thread_block_tile(const thread_block_tile<Size, Other>&) {}
    static_assert(Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
    HG_DEVICE static unsigned first() { return hg_lane() & ~(Size - 1); }
    HG_DEVICE operator thread_group() const { return thread_group(mask() & hg_warp_lanes()); }
    HG_DEVICE static unsigned mask() { return Size == 32 ? 0xffffffffu : ((1u << (Size & 31)) - 1u) << first(); }
    HG_DEVICE static unsigned thread_rank() { return hg_lane() & (Size - 1); }
    HG_DEVICE static constexpr unsigned size() { return Size; }
    HG_DEVICE static constexpr unsigned num_threads() { return Size; }
    HG_DEVICE static unsigned meta_group_rank() { return thread_block::thread_rank() / Size; }
    HG_DEVICE static unsigned meta_group_size() { return (thread_block::size() + Size - 1) / Size; }
    HG_DEVICE void sync(unsigned line = __builtin_LINE()) const { __syncwarp(mask(), line); }
    template <class T> HG_DEVICE T shfl(T v, int source, unsigned line = __builtin_LINE()) const { return __shfl_sync(mask(), v, source, Size, line); }
    template <class T> HG_DEVICE T shfl_up(T v, unsigned d, unsigned line = __builtin_LINE()) const { return __shfl_up_sync(mask(), v, d, Size, line); }
    template <class T> HG_DEVICE T shfl_down(T v, unsigned d, unsigned line = __builtin_LINE()) const { return __shfl_down_sync(mask(), v, d, Size, line); }
    template <class T> HG_DEVICE T shfl_xor(T v, int b, unsigned line = __builtin_LINE()) const { return __shfl_xor_sync(mask(), v, b, Size, line); }
    HG_DEVICE unsigned ballot(int p, unsigned line = __builtin_LINE()) const { return __ballot_sync(mask(), p, line) >> first(); }
    HG_DEVICE int any(int p, unsigned line = __builtin_LINE()) const { return __any_sync(mask(), p, line); }
    HG_DEVICE int all(int p, unsigned line = __builtin_LINE()) const { return __all_sync(mask(), p, line); }
};
template <unsigned Size, class Group>
HG_DEVICE thread_block_tile<Size, Group> tiled_partition(const Group&) { return {}; }

// Threads next to each other in a group, so many to a part, by their rank.
HG_DEVICE unsigned hg_part(const thread_group& group, unsigned size) {
    if (size == 0 || size > 32 || (size & (size - 1)) != 0) hg_trap(0);
    if (group.hg_lanes() == 0) return (size == 32 ? 0xffffffffu : ((1u << size) - 1u) << (hg_lane() & ~(size - 1))) & hg_warp_lanes();
    unsigned part = 0, rank = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
        if ((group.hg_lanes() >> lane & 1u) && rank++ / size == group.thread_rank() / size) part |= 1u << lane;
    return part;
}
HG_DEVICE thread_group tiled_partition(const thread_group& group, unsigned size) { return thread_group(hg_part(group, size)); }
HG_DEVICE coalesced_group tiled_partition(const coalesced_group& group, unsigned size) { return coalesced_group(hg_part(group, size)); }

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
