// Code for each type of elements, with scalar_t as its name.
#pragma once
#include "kcast/tensor.hpp"

namespace detail {
inline at::ScalarType scalar_type(at::ScalarType type) { return type; }
inline at::ScalarType scalar_type(caffe2::TypeMeta type) { return type.toScalarType(); }
inline at::ScalarType scalar_type(const at::DeprecatedTypeProperties &type)
{
    return type.scalarType();
}
} // namespace detail

namespace at {
// The type in which sums of another one are kept.
template <class T, bool is_cuda> struct AccumulateType {
    using type = std::conditional_t<std::is_same_v<T, bool>, bool,
                                    std::conditional_t<std::is_integral_v<T>, int64_t, T>>;
};
template <bool is_cuda> struct AccumulateType<c10::Half, is_cuda> {
    using type = float;
};
template <bool is_cuda> struct AccumulateType<c10::BFloat16, is_cuda> {
    using type = float;
};
template <> struct AccumulateType<float, false> {
    using type = double;
};
template <class T, bool is_cuda> using acc_type = typename AccumulateType<T, is_cuda>::type;

template <class T> struct OpMathType {
    using type = T;
};
template <> struct OpMathType<c10::Half> {
    using type = float;
};
template <> struct OpMathType<c10::BFloat16> {
    using type = float;
};
template <class T> using opmath_type = typename OpMathType<T>::type;
} // namespace at

#define AT_PRIVATE_CASE_TYPE_USING_HINT(kind, hint, ...)                                           \
    case kind: {                                                                                   \
        using hint [[maybe_unused]] = ::c10::impl::ScalarTypeToCPPTypeT<kind>;                     \
        return __VA_ARGS__();                                                                      \
    }
#define AT_DISPATCH_CASE(kind, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(kind, scalar_t, __VA_ARGS__)

#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                                        \
    [&] {                                                                                          \
        const auto &the_type = TYPE;                                                               \
        const char *at_dispatch_name = NAME;                                                       \
        at::ScalarType kcast_type = ::detail::scalar_type(the_type);                               \
        switch (kcast_type) {                                                                      \
            __VA_ARGS__                                                                            \
        default:                                                                                   \
            throw ::c10::NotImplementedError(::kcast::text_of('"', at_dispatch_name,               \
                                                              "\" not implemented for '",          \
                                                              kcast_type, "'"));                   \
        }                                                                                          \
    }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)                                                       \
    AT_DISPATCH_CASE(at::ScalarType::Double, __VA_ARGS__)                                          \
    AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...)                                               \
    AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__)                                            \
    AT_DISPATCH_CASE(at::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)                                                       \
    AT_DISPATCH_CASE(at::ScalarType::Byte, __VA_ARGS__)                                            \
    AT_DISPATCH_CASE(at::ScalarType::Char, __VA_ARGS__)                                            \
    AT_DISPATCH_CASE(at::ScalarType::Int, __VA_ARGS__)                                             \
    AT_DISPATCH_CASE(at::ScalarType::Long, __VA_ARGS__)                                            \
    AT_DISPATCH_CASE(at::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)                                                            \
    AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...)                                                \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...)                                       \
    AT_DISPATCH_FLOATING_TYPES_AND(at::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...)                                         \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                    \
                                       AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                                     \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)                    \
                                       AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...)                                        \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...)                                                \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...)                                                     \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_HALF(TYPE, NAME, ...)                                            \
    AT_DISPATCH_ALL_TYPES_AND(at::ScalarType::Half, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...)                                              \
    AT_DISPATCH_SWITCH(TYPE, NAME,                                                                 \
                       AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...)                                          \
    AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__)                         \
                                       AT_DISPATCH_CASE(A, __VA_ARGS__) AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                   \
    AT_DISPATCH_SWITCH(                                                                            \
        TYPE, NAME,                                                                                \
        AT_PRIVATE_CASE_TYPE_USING_HINT(at::ScalarType::Int, index_t, __VA_ARGS__)                 \
            AT_PRIVATE_CASE_TYPE_USING_HINT(at::ScalarType::Long, index_t, __VA_ARGS__))
