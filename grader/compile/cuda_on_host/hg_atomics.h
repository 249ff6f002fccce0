// Atomics of global and shared memory. hg_atomic() tells the grader of the access (one read of its size); the
// operation itself is the host's own, so that blocks on several cores stay right.
#pragma once

// In assembly, so that the checked build does not instrument them.
template <class Word>
HG_DEVICE Word hg_load(const Word* address) {
    Word value;
    __asm__ __volatile__("mov %1, %0" : "=r"(value) : "m"(*address));
    return value;
}
template <class Word>
HG_DEVICE bool hg_compare_exchange(Word* address, Word& seen, Word wanted) {
    bool done;
    __asm__ __volatile__("lock cmpxchg %3, %1\n\tsete %0" : "=q"(done), "+m"(*address), "+a"(seen) : "r"(wanted) : "memory", "cc");
    return done;
}

template <class T, class Next>
HG_DEVICE T hg_atomic_update(T* address, Next next) {
    hg_atomic(address, sizeof(T));
    T old = hg_from_bits<T>(0), wanted;
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long, unsigned int>;
    Word* word = reinterpret_cast<Word*>(address);
    Word seen = hg_load(word), replacement;
    do {
        __builtin_memcpy(&old, &seen, sizeof old);
        wanted = next(old);
        __builtin_memcpy(&replacement, &wanted, sizeof wanted);
    } while (!hg_compare_exchange(word, seen, replacement));
    return old;
}

#define HG_ATOMIC(name, expression)                                                                                  \
    template <class T>                                                                                               \
    HG_DEVICE T name(T* address, std::common_type_t<T> value) {                                                      \
        return hg_atomic_update(address, [&](T old) __attribute__((always_inline)) -> T { return (expression); });   \
    }                                                                                                                \
    template <class T>                                                                                               \
    HG_DEVICE T name##_block(T* address, std::common_type_t<T> value) { return name(address, value); }               \
    template <class T>                                                                                               \
    HG_DEVICE T name##_system(T* address, std::common_type_t<T> value) { return name(address, value); }
HG_ATOMIC(atomicAdd, old + value)
HG_ATOMIC(atomicSub, old - value)
HG_ATOMIC(atomicExch, (static_cast<void>(old), value))
HG_ATOMIC(atomicMin, value < old ? value : old)
HG_ATOMIC(atomicMax, old < value ? value : old)
HG_ATOMIC(atomicAnd, old & value)
HG_ATOMIC(atomicOr, old | value)
HG_ATOMIC(atomicXor, old ^ value)
HG_ATOMIC(atomicInc, old >= value ? T(0) : T(old + 1))
HG_ATOMIC(atomicDec, old == T(0) || old > value ? value : T(old - 1))
#undef HG_ATOMIC
template <class T>
HG_DEVICE T atomicCAS(T* address, std::common_type_t<T> compare, std::common_type_t<T> value) {
    return hg_atomic_update(address, [&](T old) __attribute__((always_inline)) -> T { return old == compare ? value : old; });
}
