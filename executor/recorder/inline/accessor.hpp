// Tensors as kernels and loops index them: an address, extents and strides.
#pragma once
#include "kcast/value.hpp"

namespace at {

template <class T> struct DefaultPtrTraits {
    using PtrType = T *;
};
template <class T> struct RestrictPtrTraits {
    using PtrType = T *__restrict__;
};

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class TensorAccessor {
  public:
    using PtrType = typename Traits<T>::PtrType;

  private:
    PtrType first;
    const Index *extent, *step;

  public:
    KCAST_BOTH TensorAccessor(PtrType data, const Index *sizes, const Index *strides)
        : first(data), extent(sizes), step(strides)
    {
    }
    KCAST_BOTH Index size(Index axis) const { return extent[axis]; }
    KCAST_BOTH Index stride(Index axis) const { return step[axis]; }
    KCAST_BOTH PtrType data() const { return first; }
    KCAST_BOTH decltype(auto) operator[](Index at) const
    {
        if constexpr (N == 1) {
            return static_cast<T &>(first[step[0] * at]);
        } else {
            return TensorAccessor<T, N - 1, Traits, Index>(first + step[0] * at, extent + 1,
                                                           step + 1);
        }
    }
};

// With its extents in itself, so that it can be a kernel's argument.
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits, class Index = int64_t>
class GenericPackedTensorAccessor {
  public:
    using PtrType = typename Traits<T>::PtrType;

  private:
    PtrType first;
    Index extent[N], step[N];

  public:
    GenericPackedTensorAccessor(PtrType data, const int64_t *sizes, const int64_t *strides)
        : first(data)
    {
        for (size_t i = 0; i < N; i++) {
            extent[i] = static_cast<Index>(sizes[i]);
            step[i] = static_cast<Index>(strides[i]);
        }
    }
    KCAST_BOTH Index size(Index axis) const { return extent[axis]; }
    KCAST_BOTH Index stride(Index axis) const { return step[axis]; }
    KCAST_BOTH PtrType data() const { return first; }
    KCAST_BOTH decltype(auto) operator[](Index at) const
    {
        return TensorAccessor<T, N, Traits, Index>(first, extent, step)[at];
    }
};

template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, Traits, int32_t>;
template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, Traits, int64_t>;

} // namespace at
