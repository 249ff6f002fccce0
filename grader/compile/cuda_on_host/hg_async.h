// cuda::barrier and cuda::pipeline of a block, and the copies bound to them. A copy lands at the wait that completes its
// stage. A barrier must expect every thread of the block: then waiting at it is waiting for the block.
#pragma once
#include <cstdint>
#include "cuda_runtime.h"

namespace cuda {
namespace std = ::std;

enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };

template <size_t Alignment>
struct aligned_size_t {
    size_t value;
    static constexpr size_t align = Alignment;
    HG_DEVICE constexpr explicit aligned_size_t(size_t bytes) : value(bytes) {}
    HG_DEVICE constexpr operator size_t() const { return value; }
};

// Whether an object lies on the thread's stack: near the frame of the function that is running.
HG_DEVICE bool hg_is_own(const void* object) {
    const ptrdiff_t distance = static_cast<const char*>(object) - static_cast<const char*>(__builtin_frame_address(0));
    return -16384 < distance && distance < 16384;
}

template <thread_scope Scope>
class barrier {
public:
    // Which arrival of the thread's it is.
    struct arrival_token {
        unsigned number;
    };
    barrier() = default;
    HG_DEVICE arrival_token arrive(ptrdiff_t arrivals = 1) {
        if (arrivals != 1) hg_unsupported("a cuda::barrier at which one thread arrives for several");
        return {hg_split(HG_ARRIVES, 0)};
    }
    HG_DEVICE void wait(arrival_token&& token, unsigned line = __builtin_LINE()) const {
        hg_split(HG_WAITS, token.number);
        hg_land();
        hg_sync_threads(line | HG_WHOLE_BLOCK);
    }
    // What a thread does before it waits for the others: thread_loops.rs cuts a kernel behind it.
    HG_DEVICE void hg_land() const {
        if (hg_is_own(this)) hg_unsupported("a cuda::barrier that is a thread's own: it belongs in shared memory");
        if (expected != hg_block_threads()) hg_unsupported("a cuda::barrier that does not expect the whole block");
        hg_async_commit();
        hg_async_wait(0);
    }
    HG_DEVICE void arrive_and_wait(unsigned line = __builtin_LINE()) {
        hg_split(HG_ARRIVES_AND_WAITS, 0);
        hg_land();
        hg_sync_threads(line | HG_WHOLE_BLOCK);
    }
    template <thread_scope S> friend HG_DEVICE void init(barrier<S>*, ptrdiff_t);

private:
    unsigned expected;
};
template <thread_scope Scope>
HG_DEVICE void init(barrier<Scope>* b, ptrdiff_t expected) { b->expected = static_cast<unsigned>(expected); }

template <thread_scope Scope, uint8_t Stages>
struct pipeline_shared_state {
    pipeline_shared_state() = default;
};
enum class pipeline_role { producer, consumer };

template <thread_scope Scope>
class pipeline {
public:
    HG_DEVICE void producer_acquire() {
        // A GPU would wait for ever.
        if (held == stages) hg_unsupported("a cuda::pipeline of which more stages are acquired than released");
        ++held;
    }
    HG_DEVICE void producer_commit() {
        hg_async_commit();
        ++committed;
    }
    HG_DEVICE void consumer_wait(unsigned line = __builtin_LINE()) {
        hg_land();
        if (Scope == thread_scope_block) hg_sync_threads(line);
    }
    // As of a barrier.
    HG_DEVICE void hg_land() {
        ++waited;
        hg_async_wait(committed > waited ? committed - waited : 0);
    }
    HG_DEVICE void consumer_release() {
        if (held == 0) hg_unsupported("a cuda::pipeline of which more stages are released than acquired");
        --held;
    }
    HG_DEVICE void quit() {}
    HG_DEVICE void wait_prior(unsigned newest_left, unsigned line) {
        hg_async_wait(newest_left);
        if (Scope == thread_scope_block) hg_sync_threads(line);
    }

    HG_DEVICE explicit pipeline(unsigned stages = ~0u) : stages(stages) {}

private:
    unsigned committed = 0, waited = 0, held = 0;
    // That the threads of a block share; a thread's own pipeline has as many as it takes.
    unsigned stages;
};
HG_DEVICE pipeline<thread_scope_thread> make_pipeline() { return pipeline<thread_scope_thread>(); }
template <class Group, thread_scope Scope, uint8_t Stages>
HG_DEVICE pipeline<Scope> make_pipeline(const Group&, pipeline_shared_state<Scope, Stages>*) { return pipeline<Scope>(Stages); }
template <uint8_t Prior, thread_scope Scope>
HG_DEVICE void pipeline_consumer_wait_prior(pipeline<Scope>& p, unsigned line = __builtin_LINE()) { p.wait_prior(Prior, line); }

template <class Size>
HG_DEVICE void hg_copy_alone(void* to, const void* from, Size bytes) { hg_async_copy(to, from, static_cast<size_t>(bytes), 0); }
template <class Group, class Size>
HG_DEVICE void hg_copy_together(const Group& group, void* to, const void* from, Size size) {
    const size_t bytes = static_cast<size_t>(size);
    if (hg_land_at_once()) {
        if (group.thread_rank() == 0) __builtin_memmove(to, from, bytes);
        return;
    }
    const bool wide = (reinterpret_cast<size_t>(to) | reinterpret_cast<size_t>(from) | bytes) % 16 == 0;
    const size_t piece = wide ? 16 : bytes % 4 == 0 ? 4 : 1;
    for (size_t at = group.thread_rank() * piece; at < bytes; at += group.size() * piece)
        hg_async_copy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, piece, 0);
}
template <class T, class U, class Size, thread_scope Scope>
HG_DEVICE void memcpy_async(T* to, const U* from, Size bytes, pipeline<Scope>&) { hg_copy_alone(to, from, bytes); }
template <class T, class U, class Size, thread_scope Scope>
HG_DEVICE void memcpy_async(T* to, const U* from, Size bytes, barrier<Scope>&) { hg_copy_alone(to, from, bytes); }
template <class Group, class T, class U, class Size, thread_scope Scope>
HG_DEVICE void memcpy_async(const Group& group, T* to, const U* from, Size bytes, pipeline<Scope>&) { hg_copy_together(group, to, from, bytes); }
template <class Group, class T, class U, class Size, thread_scope Scope>
HG_DEVICE void memcpy_async(const Group& group, T* to, const U* from, Size bytes, barrier<Scope>&) { hg_copy_together(group, to, from, bytes); }

}  // namespace cuda
