// Functions of PyTorch's namespaces, each done by the interpreter's function of the same name.
#pragma once
#include "kcast/tensor.hpp"

namespace at {

// Asks for a new tensor.
template <class... A> Tensor make(const char *name, const TensorOptions &options, const A &...of)
{
    return kcast::ask(name, {kcast::Argument(of)..., kcast::named("dtype", options.dtype_opt()),
                              kcast::named("device", options.device_opt()),
                              kcast::named("requires_grad", options.requires_grad())});
}

#define KCAST_MAKE(name)                                                                           \
    inline Tensor name(IntArrayRef size, const TensorOptions &options = {})                        \
    {                                                                                              \
        return make(#name, options, size);                                                         \
    }                                                                                              \
    inline Tensor name##_like(const Tensor &self, const TensorOptions &options = {})               \
    {                                                                                              \
        return make(#name "_like", options, self);                                                 \
    }
KCAST_MAKE(empty)
KCAST_MAKE(zeros)
KCAST_MAKE(ones)
KCAST_MAKE(rand)
KCAST_MAKE(randn)
#undef KCAST_MAKE

inline Tensor empty_like(const Tensor &self, const TensorOptions &options, MemoryFormat format)
{
    return make("empty_like", options, self, kcast::named("memory_format", format));
}
inline Tensor full(IntArrayRef size, const Scalar &value, const TensorOptions &options = {})
{
    return make("full", options, size, value);
}
inline Tensor full_like(const Tensor &self, const Scalar &value, const TensorOptions &options = {})
{
    return make("full_like", options, self, value);
}
inline Tensor arange(const Scalar &end, const TensorOptions &options = {})
{
    return make("arange", options, end);
}
inline Tensor arange(const Scalar &start, const Scalar &end, const TensorOptions &options = {})
{
    return make("arange", options, start, end);
}
inline Tensor arange(const Scalar &start, const Scalar &end, const Scalar &step,
                     const TensorOptions &options = {})
{
    return make("arange", options, start, end, step);
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions &options = {})
{
    return make("empty_strided", options, size, stride);
}
inline Tensor cat(const std::vector<Tensor> &list, int64_t dim = 0)
{
    return kcast::ask("cat", {list, dim});
}
inline Tensor stack(const std::vector<Tensor> &list, int64_t dim = 0)
{
    return kcast::ask("stack", {list, dim});
}
inline Tensor where(const Tensor &condition, const Tensor &self, const Tensor &other)
{
    return kcast::ask("where", {condition, self, other});
}
inline Tensor addmm(const Tensor &self, const Tensor &a, const Tensor &b)
{
    return kcast::ask("addmm", {self, a, b});
}
inline Tensor softmax(const Tensor &self, int64_t dim) { return self.softmax(dim); }
inline Tensor log_softmax(const Tensor &self, int64_t dim) { return self.log_softmax(dim); }
inline Tensor transpose(const Tensor &self, int64_t a, int64_t b) { return self.transpose(a, b); }
inline Tensor linear(const Tensor &input, const Tensor &weight,
                     const optional<Tensor> &bias = nullopt)
{
    return kcast::ask("nn.functional.linear", {input, weight, bias});
}

inline Tensor einsum(const std::string &equation, const std::vector<Tensor> &operands)
{
    return kcast::ask("einsum", {equation.c_str(), operands});
}
inline Tensor gelu(const Tensor &self, const char *approximate = "none")
{
    return kcast::ask("nn.functional.gelu", {self, kcast::named("approximate", approximate)});
}
inline Tensor silu(const Tensor &self) { return kcast::ask("nn.functional.silu", {self}); }
inline Tensor pow(const Tensor &self, const Scalar &exponent) { return self.pow(exponent); }
inline Tensor clamp(const Tensor &self, const optional<Scalar> &least,
                    const optional<Scalar> &most = nullopt)
{
    return self.clamp(least, most);
}

#define KCAST_CONVOLUTION(name)                                                                    \
    inline Tensor name(const Tensor &input, const Tensor &weight,                                  \
                       const optional<Tensor> &bias = nullopt, IntArrayRef stride = 1,             \
                       IntArrayRef padding = 0, IntArrayRef dilation = 1, int64_t groups = 1)      \
    {                                                                                              \
        return kcast::ask(#name, {input, weight, bias, stride, padding, dilation, groups});        \
    }
KCAST_CONVOLUTION(conv1d)
KCAST_CONVOLUTION(conv2d)
KCAST_CONVOLUTION(conv3d)
#undef KCAST_CONVOLUTION

// No gradients are recorded until this goes.
class NoGradGuard {
    bool before = kcast::ask("is_grad_enabled", {});

  public:
    NoGradGuard() { (void)kcast::ask("_C._set_grad_enabled", {false}); }
    NoGradGuard(const NoGradGuard &) = delete;
    NoGradGuard &operator=(const NoGradGuard &) = delete;
    ~NoGradGuard()
    {
        if (before) {
            try {
                (void)kcast::ask("_C._set_grad_enabled", {true});
            } catch (const kcast::Raised &) { // which the interpreter keeps, and raises no more
            }
        }
    }
};

#define KCAST_FUNCTION(name)                                                                       \
    inline Tensor name(const Tensor &self) { return kcast::ask(#name, {self}); }
KCAST_FUNCTION(abs)
KCAST_FUNCTION(exp)
KCAST_FUNCTION(log)
KCAST_FUNCTION(sqrt)
KCAST_FUNCTION(rsqrt)
KCAST_FUNCTION(relu)
KCAST_FUNCTION(sigmoid)
KCAST_FUNCTION(tanh)
KCAST_FUNCTION(neg)
KCAST_FUNCTION(square)
KCAST_FUNCTION(sum)
KCAST_FUNCTION(mean)
KCAST_FUNCTION(max)
KCAST_FUNCTION(min)
#undef KCAST_FUNCTION

#define KCAST_FUNCTION(name)                                                                       \
    inline Tensor name(const Tensor &self, const Tensor &other)                                    \
    {                                                                                              \
        return kcast::ask(#name, {self, other});                                             \
    }
KCAST_FUNCTION(add)
KCAST_FUNCTION(sub)
KCAST_FUNCTION(mul)
KCAST_FUNCTION(div)
KCAST_FUNCTION(matmul)
KCAST_FUNCTION(mm)
KCAST_FUNCTION(bmm)
KCAST_FUNCTION(mv)
KCAST_FUNCTION(maximum)
KCAST_FUNCTION(minimum)
#undef KCAST_FUNCTION

#define KCAST_SIGN(sign, name)                                                                     \
    inline Tensor operator sign(const Tensor &a, const Tensor &b) { return a.name(b); }            \
    inline Tensor operator sign(const Tensor &a, const Scalar &b) { return a.name(b); }
KCAST_SIGN(+, add)
KCAST_SIGN(-, sub)
KCAST_SIGN(*, mul)
KCAST_SIGN(/, div)
#undef KCAST_SIGN
inline Tensor operator+(const Scalar &a, const Tensor &b) { return b.add(a); }
inline Tensor operator*(const Scalar &a, const Tensor &b) { return b.mul(a); }
inline Tensor operator-(const Scalar &a, const Tensor &b) { return kcast::ask("rsub", {b, a}); }
inline Tensor operator/(const Scalar &a, const Tensor &b) { return b.reciprocal().mul(a); }
inline Tensor operator-(const Tensor &a) { return a.neg(); }

inline optional<Device> device_of(const Tensor &tensor)
{
    return tensor.defined() ? optional<Device>(tensor.device()) : nullopt;
}

} // namespace at
