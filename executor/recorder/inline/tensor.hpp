// Tensors. What they are like stands in the interpreter's description; what is made of them is made
// by PyTorch, which kcast::ask calls by its name in Python.
#pragma once
#include "kcast/accessor.hpp"
#include "kcast/call.hpp"

namespace at {

class Tensor;
using TensorList = ArrayRef<Tensor>;

// What Tensor::type() gives.
class DeprecatedTypeProperties {
    ScalarType of;
    Device where;

  public:
    DeprecatedTypeProperties(ScalarType type, Device device) : of(type), where(device) {}
    ScalarType scalarType() const { return of; }
    bool is_cuda() const { return where.is_cuda(); }
    DeviceType device_type() const { return where.type(); }
};

#define KCAST_UNARY(name)                                                                          \
    Tensor name() const { return kcast::ask("." #name, {*this}); }
#define KCAST_BINARY(name)                                                                         \
    Tensor name(const Tensor &other) const { return kcast::ask("." #name, {*this, other}); } \
    Tensor name(const Scalar &other) const { return kcast::ask("." #name, {*this, other}); }
#define KCAST_PLACE(name, parameter, ...)                                                          \
    Tensor &name parameter const                                                                   \
    {                                                                                              \
        kcast::ask("." #name, {*this, ##__VA_ARGS__});                                         \
        return const_cast<Tensor &>(*this);                                                        \
    }
#define KCAST_REDUCTION(name)                                                                      \
    Tensor name(IntArrayRef dim, bool keepdim = false) const                                       \
    {                                                                                              \
        return kcast::ask("." #name, {*this, dim, keepdim});                                 \
    }

class Tensor {
    kcast::Described *of = nullptr;

    const kcast::Described &known() const
    {
        TORCH_CHECK(of, "Expected a proper Tensor but got None (or an undefined Tensor in C++)");
        return *of;
    }
    int64_t axis(int64_t dim) const
    {
        int64_t count = known().dim, range = count > 0 ? count : 1;

        TORCH_CHECK_INDEX(dim >= -range && dim < range,
                          "Dimension out of range (expected to be in range of [", -range, ", ",
                          range - 1, "], but got ", dim, ")");
        return dim < 0 ? dim + range : dim;
    }
    void release()
    {
        if (of && __atomic_sub_fetch(&of->references, 1, __ATOMIC_ACQ_REL) == 0) {
            kcast::host->release(of->id);
        }
        of = nullptr;
    }
    template <class T> void check_type() const
    {
        ScalarType wanted = CppTypeToScalarType<std::remove_const_t<T>>::value;

        TORCH_CHECK(scalar_type() == wanted, "expected scalar type ", wanted, " but found ",
                    scalar_type());
    }

  public:
    Tensor() = default;
    explicit Tensor(kcast::Described *described) : of(described)
    {
        __atomic_add_fetch(&of->references, 1, __ATOMIC_RELAXED);
    }
    Tensor(const Tensor &other) : of(other.of)
    {
        if (of) {
            __atomic_add_fetch(&of->references, 1, __ATOMIC_RELAXED);
        }
    }
    Tensor(Tensor &&other) noexcept : of(other.of) { other.of = nullptr; }
    Tensor &operator=(Tensor other) noexcept
    {
        std::swap(of, other.of);
        return *this;
    }
    ~Tensor() { release(); }

    kcast::Described *described() const { return of; }
    bool defined() const { return of; }
    void reset() { release(); }
    int64_t dim() const { return known().dim; }
    int64_t ndimension() const { return dim(); }
    IntArrayRef sizes() const { return {known().sizes, static_cast<size_t>(dim())}; }
    IntArrayRef strides() const { return {known().strides, static_cast<size_t>(dim())}; }
    int64_t size(int64_t at_axis) const
    {
        TORCH_CHECK_INDEX(dim() > 0, "Dimension specified as ", at_axis,
                          " but tensor has no dimensions");
        return of->sizes[axis(at_axis)];
    }
    int64_t stride(int64_t at_axis) const
    {
        TORCH_CHECK_INDEX(dim() > 0, "Dimension specified as ", at_axis,
                          " but tensor has no dimensions");
        return of->strides[axis(at_axis)];
    }
    int64_t numel() const
    {
        int64_t count = of ? 1 : 0;

        for (int64_t extent : of ? sizes() : IntArrayRef()) {
            count *= extent;
        }
        return count;
    }
    int64_t element_size() const { return known().element; }
    size_t itemsize() const { return static_cast<size_t>(element_size()); }
    size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
    ScalarType scalar_type() const { return static_cast<ScalarType>(known().dtype); }
    caffe2::TypeMeta dtype() const { return scalar_type(); }
    Device device() const
    {
        return Device(static_cast<DeviceType>(known().device), static_cast<DeviceIndex>(of->index));
    }
    DeviceIndex get_device() const { return device().index(); }
    bool is_cuda() const { return device().is_cuda(); }
    bool is_cpu() const { return device().is_cpu(); }
    DeprecatedTypeProperties type() const { return {scalar_type(), device()}; }
    TensorOptions options() const { return TensorOptions(scalar_type()).device(device()); }
    Layout layout() const { return kStrided; }
    bool is_floating_point() const { return isFloatingType(scalar_type()); }
    bool is_contiguous() const
    {
        int64_t expected = 1;

        for (int64_t i = dim() - 1; i >= 0; i--) {
            if (of->sizes[i] == 0) {
                return true;
            }
        }
        for (int64_t i = dim() - 1; i >= 0; i--) {
            if (of->sizes[i] != 1 && of->strides[i] != expected) {
                return false;
            }
            expected *= of->sizes[i];
        }
        return true;
    }
    bool is_same(const Tensor &other) const { return of == other.of; }
    bool is_same_size(const Tensor &other) const { return sizes() == other.sizes(); }

    void *data_ptr() const { return known().data; }
    void *mutable_data_ptr() const { return known().data; }
    const void *const_data_ptr() const { return known().data; }
    template <class T> T *data_ptr() const
    {
        check_type<T>();
        return static_cast<T *>(of->data);
    }
    template <class T> T *mutable_data_ptr() const { return data_ptr<T>(); }
    template <class T> const std::remove_const_t<T> *const_data_ptr() const
    {
        return data_ptr<std::remove_const_t<T>>();
    }
    template <class T> T *data() const { return data_ptr<T>(); }
    template <class T, size_t N> TensorAccessor<T, N> accessor() const
    {
        TORCH_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N,
                    " dims but tensor has ", dim());
        return TensorAccessor<T, N>(data_ptr<T>(), of->sizes, of->strides);
    }
    template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
    GenericPackedTensorAccessor<T, N, Traits, int32_t> packed_accessor32() const
    {
        TORCH_CHECK(numel() <= std::numeric_limits<int32_t>::max(),
                    "numel needs to be smaller than int32_t max; otherwise, please use "
                    "packed_accessor64");
        return packed<T, N, Traits, int32_t>();
    }
    template <class T, size_t N, template <class> class Traits = DefaultPtrTraits>
    GenericPackedTensorAccessor<T, N, Traits, int64_t> packed_accessor64() const
    {
        return packed<T, N, Traits, int64_t>();
    }
    template <class T, size_t N, template <class> class Traits, class Index>
    GenericPackedTensorAccessor<T, N, Traits, Index> packed() const
    {
        TORCH_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N,
                    " dims but tensor has ", dim());
        return GenericPackedTensorAccessor<T, N, Traits, Index>(data_ptr<T>(), of->sizes,
                                                                of->strides);
    }

    // From here on PyTorch does it.
    int64_t storage_offset() const { return kcast::ask(".storage_offset", {*this}); }
    bool requires_grad() const { return kcast::ask(".requires_grad", {*this}); }
    Scalar item() const { return kcast::ask(".item", {*this}).scalar(); }
    template <class T> T item() const { return item().template to<T>(); }
    Tensor contiguous() const
    {
        if (is_contiguous()) {
            return *this;
        }
        return kcast::ask(".contiguous", {*this});
    }
    Tensor view(IntArrayRef size) const { return kcast::ask(".view", {*this, size}); }
    Tensor reshape(IntArrayRef size) const { return kcast::ask(".reshape", {*this, size}); }
    Tensor expand(IntArrayRef size) const { return kcast::ask(".expand", {*this, size}); }
    Tensor permute(IntArrayRef order) const { return kcast::ask(".permute", {*this, order}); }
    Tensor transpose(int64_t a, int64_t b) const
    {
        return kcast::ask(".transpose", {*this, a, b});
    }
    Tensor flatten(int64_t first = 0, int64_t last = -1) const
    {
        return kcast::ask(".flatten", {*this, first, last});
    }
    Tensor squeeze(int64_t dim) const { return kcast::ask(".squeeze", {*this, dim}); }
    Tensor unsqueeze(int64_t dim) const { return kcast::ask(".unsqueeze", {*this, dim}); }
    Tensor select(int64_t dim, int64_t index) const
    {
        return kcast::ask(".select", {*this, dim, index});
    }
    Tensor operator[](int64_t index) const { return select(0, index); }
    Tensor narrow(int64_t dim, int64_t start, int64_t length) const
    {
        return kcast::ask(".narrow", {*this, dim, start, length});
    }
    Tensor slice(int64_t dim = 0, optional<int64_t> start = nullopt, optional<int64_t> end = nullopt,
                 int64_t step = 1) const
    {
        return kcast::ask("ops.aten.slice.Tensor", {*this, dim, start, end, step});
    }
    Tensor to(ScalarType type) const { return kcast::ask(".to", {*this, type}); }
    Tensor to(Device device, ScalarType type) const
    {
        return kcast::ask(".to", {*this, device, type});
    }
    Tensor to(const Tensor &other) const { return kcast::ask(".to", {*this, other}); }
    Tensor to(const TensorOptions &options, bool non_blocking = false, bool copy = false) const
    {
        return kcast::ask(".to", {*this, kcast::named("device", options.device_opt()),
                                  kcast::named("dtype", options.dtype_opt()),
                                  kcast::named("non_blocking", non_blocking),
                                  kcast::named("copy", copy)});
    }
    Tensor toType(ScalarType type) const { return to(type); }
    Tensor view_as(const Tensor &other) const { return view(other.sizes()); }
    Tensor reshape_as(const Tensor &other) const { return reshape(other.sizes()); }
    Tensor expand_as(const Tensor &other) const { return expand(other.sizes()); }
    Tensor sum(optional<ScalarType> type = nullopt) const
    {
        return kcast::ask(".sum", {*this, kcast::named("dtype", type)});
    }
    Tensor mean(optional<ScalarType> type = nullopt) const
    {
        return kcast::ask(".mean", {*this, kcast::named("dtype", type)});
    }
    Tensor softmax(int64_t dim) const { return kcast::ask(".softmax", {*this, dim}); }
    Tensor log_softmax(int64_t dim) const { return kcast::ask(".log_softmax", {*this, dim}); }
    Tensor cumsum(int64_t dim) const { return kcast::ask(".cumsum", {*this, dim}); }
    Tensor argmax(int64_t dim, bool keepdim = false) const
    {
        return kcast::ask(".argmax", {*this, dim, keepdim});
    }
    std::tuple<Tensor, Tensor> max(int64_t dim, bool keepdim = false) const;
    std::tuple<Tensor, Tensor> min(int64_t dim, bool keepdim = false) const;
    Tensor clamp(const optional<Scalar> &least, const optional<Scalar> &most = nullopt) const
    {
        return kcast::ask(".clamp", {*this, least, most});
    }
    Tensor new_empty(IntArrayRef size) const { return kcast::ask(".new_empty", {*this, size}); }
    Tensor new_zeros(IntArrayRef size) const { return kcast::ask(".new_zeros", {*this, size}); }
    KCAST_REDUCTION(sum)
    KCAST_REDUCTION(mean)
    KCAST_REDUCTION(amax)
    KCAST_REDUCTION(amin)
    KCAST_UNARY(max)
    KCAST_UNARY(min)
    KCAST_UNARY(argmax)
    KCAST_UNARY(t)
    KCAST_UNARY(clone)
    KCAST_UNARY(detach)
    KCAST_UNARY(squeeze)
    KCAST_UNARY(cpu)
    KCAST_UNARY(cuda)
    KCAST_UNARY(abs)
    KCAST_UNARY(exp)
    KCAST_UNARY(log)
    KCAST_UNARY(sqrt)
    KCAST_UNARY(rsqrt)
    KCAST_UNARY(relu)
    KCAST_UNARY(sigmoid)
    KCAST_UNARY(tanh)
    KCAST_UNARY(neg)
    KCAST_UNARY(square)
    KCAST_UNARY(reciprocal)
    KCAST_BINARY(add)
    KCAST_BINARY(sub)
    KCAST_BINARY(mul)
    KCAST_BINARY(div)
    KCAST_BINARY(pow)
    Tensor matmul(const Tensor &other) const { return kcast::ask(".matmul", {*this, other}); }
    Tensor mm(const Tensor &other) const { return kcast::ask(".mm", {*this, other}); }
    Tensor bmm(const Tensor &other) const { return kcast::ask(".bmm", {*this, other}); }
    Tensor mv(const Tensor &other) const { return kcast::ask(".mv", {*this, other}); }
    KCAST_PLACE(zero_, ())
    KCAST_PLACE(fill_, (const Scalar &value), value)
    KCAST_PLACE(copy_, (const Tensor &from, bool = false), from)
    KCAST_PLACE(relu_, ())
    KCAST_PLACE(add_, (const Tensor &other), other)
    KCAST_PLACE(add_, (const Scalar &other), other)
    KCAST_PLACE(sub_, (const Tensor &other), other)
    KCAST_PLACE(mul_, (const Tensor &other), other)
    KCAST_PLACE(mul_, (const Scalar &other), other)
    KCAST_PLACE(div_, (const Tensor &other), other)
    KCAST_PLACE(div_, (const Scalar &other), other)
};

#undef KCAST_UNARY
#undef KCAST_BINARY
#undef KCAST_PLACE
#undef KCAST_REDUCTION

using TensorBase = Tensor;

inline std::tuple<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const
{
    return kcast::ask(".max", {*this, dim, keepdim}).pair();
}

inline std::tuple<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const
{
    return kcast::ask(".min", {*this, dim, keepdim}).pair();
}

} // namespace at

namespace kcast {

inline Argument::Argument(const at::Tensor &tensor) : Value()
{
    kind = tensor.defined() ? TENSOR : NONE;
    p = tensor.described();
}

inline Argument::Argument(const std::vector<at::Tensor> &from) : Value()
{
    static_assert(sizeof(at::Tensor) == sizeof(Described *), "tensors are an array of addresses");
    for (const at::Tensor &each : from) {
        TORCH_CHECK(each.defined(), "Expected a proper Tensor but got None in a list of tensors");
    }
    kind = TENSORS;
    p = from.data();
    count = static_cast<int64_t>(from.size());
}

inline at::Tensor tensor_of(const Value &value)
{
    return at::Tensor(static_cast<Described *>(const_cast<void *>(value.p)));
}

inline Answer::operator at::Tensor() const
{
    check(value.kind == TENSOR);
    return tensor_of(value);
}

inline std::tuple<at::Tensor, at::Tensor> Answer::pair() const
{
    const Value *part = static_cast<const Value *>(value.p);

    check(value.kind == LIST && value.count == 2 && part[0].kind == TENSOR &&
          part[1].kind == TENSOR);
    return {tensor_of(part[0]), tensor_of(part[1])};
}

} // namespace kcast

#include "kcast/function.hpp"

namespace torch {
using namespace at;
using Dtype = at::ScalarType;
constexpr Dtype kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64;
constexpr Dtype kU16 = kUInt16, kU32 = kUInt32, kU64 = kUInt64;
constexpr Dtype kF16 = kFloat16, kF32 = kFloat32, kF64 = kFloat64;
} // namespace torch

#include "kcast/dispatch.hpp"
#ifdef KCAST_PYBIND
#include "kcast/pybind.hpp"
#endif
