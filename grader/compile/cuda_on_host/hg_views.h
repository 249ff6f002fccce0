// cuda::std::span and cuda::std::mdspan: views of memory that they do not own. C++17 has neither, so cuda::std's are std's here.
// Source: C++20, [views.span], and C++23, [views.multidim]; CUDA's mdspan is indexed by view(row, column).
#pragma once
#include <array>
#include "hg_async.h"

namespace std {

constexpr size_t dynamic_extent = static_cast<size_t>(-1);

template <class T, size_t Extent = dynamic_extent>
class span {
    T* first_ = nullptr;
    size_t size_ = Extent == dynamic_extent ? 0 : Extent;

public:
    using element_type = T;
    using value_type = remove_cv_t<T>;
    using size_type = size_t;
    using iterator = T*;
    constexpr span() = default;
    constexpr span(T* first, size_t size) : first_(first), size_(size) {}
    constexpr span(T* first, T* last) : first_(first), size_(static_cast<size_t>(last - first)) {}
    template <size_t N> constexpr span(T (&array)[N]) : first_(array), size_(N) {}
    template <class U, size_t N> constexpr span(const span<U, N>& other) : first_(other.data()), size_(other.size()) {}
    constexpr T* data() const { return first_; }
    constexpr size_t size() const { return size_; }
    constexpr size_t size_bytes() const { return size_ * sizeof(T); }
    constexpr bool empty() const { return size_ == 0; }
    constexpr T& operator[](size_t at) const { return first_[at]; }
    constexpr T& front() const { return first_[0]; }
    constexpr T& back() const { return first_[size_ - 1]; }
    constexpr T* begin() const { return first_; }
    constexpr T* end() const { return first_ + size_; }
    constexpr span<T> first(size_t count) const { return {first_, count}; }
    constexpr span<T> last(size_t count) const { return {first_ + size_ - count, count}; }
    constexpr span<T> subspan(size_t from, size_t count = dynamic_extent) const {
        return {first_ + from, count == dynamic_extent ? size_ - from : count};
    }
};
template <class T> span(T*, size_t) -> span<T>;
template <class T, size_t N> span(T (&)[N]) -> span<T, N>;

template <class Index, size_t... Extents>
class extents {
    array<Index, sizeof...(Extents)> sizes_{static_cast<Index>(Extents)...};

public:
    using index_type = Index;
    using size_type = make_unsigned_t<Index>;
    using rank_type = size_t;
    constexpr extents() = default;
    // As many sizes as there are dimensions, or as many as are dynamic.
    template <class... Sizes, class = enable_if_t<(sizeof...(Sizes) > 0) && (is_convertible_v<Sizes, Index> && ...)>>
    constexpr explicit extents(Sizes... sizes) {
        const Index given[] = {static_cast<Index>(sizes)...};
        constexpr size_t written[] = {Extents...};
        for (size_t dimension = 0, at = 0; dimension < sizeof...(Extents); ++dimension) {
            const bool all = sizeof...(Sizes) == sizeof...(Extents);
            if (written[dimension] == dynamic_extent || all) sizes_[dimension] = given[at++];
        }
    }
    static constexpr size_t rank() { return sizeof...(Extents); }
    constexpr Index extent(size_t dimension) const { return sizes_[dimension]; }
};

template <class Index, size_t Rank, size_t... Extents>
struct hg_dextents : hg_dextents<Index, Rank - 1, Extents..., dynamic_extent> {};
template <class Index, size_t... Extents>
struct hg_dextents<Index, 0, Extents...> {
    using type = extents<Index, Extents...>;
};
template <class Index, size_t Rank>
using dextents = typename hg_dextents<Index, Rank>::type;

// The last index runs fastest, or the first one.
struct layout_right {
    template <class E> static constexpr size_t stride(const E& extents, size_t dimension) {
        size_t stride = 1;
        for (size_t inner = dimension + 1; inner < E::rank(); ++inner) stride *= static_cast<size_t>(extents.extent(inner));
        return stride;
    }
};
struct layout_left {
    template <class E> static constexpr size_t stride(const E& extents, size_t dimension) {
        size_t stride = 1;
        for (size_t inner = 0; inner < dimension; ++inner) stride *= static_cast<size_t>(extents.extent(inner));
        return stride;
    }
};

template <class T, class E, class Layout = layout_right>
class mdspan {
    T* data_ = nullptr;
    E extents_{};

    template <class... Indices> constexpr size_t offset(Indices... indices) const {
        static_assert(sizeof...(Indices) == E::rank(), "an mdspan takes an index for each dimension");
        size_t offset = 0, dimension = 0;
        ((offset += static_cast<size_t>(indices) * Layout::stride(extents_, dimension++)), ...);
        return offset;
    }

public:
    using element_type = T;
    using value_type = remove_cv_t<T>;
    using extents_type = E;
    using index_type = typename E::index_type;
    constexpr mdspan() = default;
    constexpr mdspan(T* data, const E& extents) : data_(data), extents_(extents) {}
    template <class... Sizes, class = enable_if_t<(sizeof...(Sizes) > 0) && (is_convertible_v<Sizes, index_type> && ...)>>
    constexpr explicit mdspan(T* data, Sizes... sizes) : data_(data), extents_(sizes...) {}
    template <class... Indices> constexpr T& operator()(Indices... indices) const { return data_[offset(indices...)]; }
    template <class I> constexpr T& operator[](const array<I, E::rank()>& at) const {
        return apply([this](auto... indices) -> T& { return data_[offset(indices...)]; }, at);
    }
    static constexpr size_t rank() { return E::rank(); }
    constexpr index_type extent(size_t dimension) const { return extents_.extent(dimension); }
    constexpr const E& extents() const { return extents_; }
    constexpr index_type stride(size_t dimension) const {
        return static_cast<index_type>(Layout::stride(extents_, dimension));
    }
    constexpr T* data_handle() const { return data_; }
    constexpr size_t size() const {
        size_t size = 1;
        for (size_t dimension = 0; dimension < rank(); ++dimension) size *= static_cast<size_t>(extent(dimension));
        return size;
    }
};

}  // namespace std
