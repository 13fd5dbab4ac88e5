// Numbers of two bytes as PyTorch has them, which convert to float and back by themselves and
// compute in float. Device code of a candidate that says `half` has CUDA's own types beside them.
#pragma once
#include "kcast/value.hpp"
#ifdef KCAST_HALVES // the candidate's text names them
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace kcast {

KCAST_BOTH float float_of(uint32_t bits)
{
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
#endif
}

KCAST_BOTH uint32_t bits_of(float value)
{
#ifdef __CUDA_ARCH__
    return __float_as_uint(value);
#else
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
#endif
}

KCAST_BOTH float half_to_float(uint16_t half)
{
#ifdef __CUDA_ARCH__
    float value;

    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#else
    uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 31, fraction = half & 1023;

    if (exponent == 0) { // zero, and what is below 2^-14: steps of 2^-24
        float value = static_cast<float>(fraction) * 5.9604644775390625e-8f;
        return sign ? -value : value;
    }
    exponent = exponent == 31 ? 255 : exponent + 112;
    return float_of(sign | exponent << 23 | fraction << 13);
#endif
}

// To the nearest; of two that are as near, to the even one.
KCAST_BOTH uint16_t float_to_half(float value)
{
#ifdef __CUDA_ARCH__
    uint16_t half;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    uint32_t bits = bits_of(value);
    uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    uint32_t rest = bits & 0x7fffffff;

    if (rest > 0x7f800000) {
        return static_cast<uint16_t>(sign | 0x7e00);
    }
    if (rest >= 0x477ff000) { // 65520, which is nearer to 2^16 than to the largest
        return static_cast<uint16_t>(sign | 0x7c00);
    }
    if (rest < 0x38800000) { // below 2^-14: the sum has the steps that are wanted
        uint32_t sum = bits_of(float_of(rest) + 0.5f);
        return static_cast<uint16_t>(sign | (sum - 0x3f000000));
    }
    rest += 0xfff + (rest >> 13 & 1);
    return static_cast<uint16_t>(sign | (rest - 0x38000000) >> 13);
#endif
}

KCAST_BOTH uint16_t float_to_bfloat16(float value)
{
    uint32_t bits = bits_of(value);

    if ((bits & 0x7fffffff) > 0x7f800000) {
        return 0x7fc0;
    }
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace kcast

namespace c10 {

struct alignas(2) Half {
    uint16_t x;

    struct from_bits_t {};
    KCAST_HOST_DEVICE static constexpr from_bits_t from_bits() { return from_bits_t(); }

    Half() = default;
    KCAST_HOST_DEVICE constexpr Half(uint16_t bits, from_bits_t) : x(bits) {}
    KCAST_BOTH Half(float value) : x(kcast::float_to_half(value)) {}
    KCAST_BOTH operator float() const { return kcast::half_to_float(x); }
#if defined(KCAST_HALVES) && defined(__CUDACC__)
    KCAST_BOTH Half(const __half &value) : x(__half_raw(value).x) {}
    KCAST_BOTH operator __half() const
    {
        __half_raw raw;

        raw.x = x;
        return __half(raw);
    }
#endif
};

struct alignas(2) BFloat16 {
    uint16_t x;

    struct from_bits_t {};
    KCAST_HOST_DEVICE static constexpr from_bits_t from_bits() { return from_bits_t(); }

    BFloat16() = default;
    KCAST_HOST_DEVICE constexpr BFloat16(uint16_t bits, from_bits_t) : x(bits) {}
    KCAST_BOTH BFloat16(float value) : x(kcast::float_to_bfloat16(value)) {}
    KCAST_BOTH operator float() const { return kcast::float_of(static_cast<uint32_t>(x) << 16); }
#if defined(KCAST_HALVES) && defined(__CUDACC__)
    KCAST_BOTH BFloat16(const __nv_bfloat16 &value) : x(__nv_bfloat16_raw(value).x) {}
    explicit KCAST_BOTH operator __nv_bfloat16() const
    {
        __nv_bfloat16_raw raw;

        raw.x = x;
        return __nv_bfloat16(raw);
    }
#endif
};

// With its own kind and with integers the result is of that kind, with float and double of theirs.
#define KCAST_OPERATOR(type, sign)                                                                 \
    KCAST_BOTH type operator sign(type a, type b)                                                  \
    {                                                                                              \
        return static_cast<float>(a) sign static_cast<float>(b);                                   \
    }                                                                                              \
    KCAST_BOTH float operator sign(type a, float b) { return static_cast<float>(a) sign b; }       \
    KCAST_BOTH float operator sign(float a, type b) { return a sign static_cast<float>(b); }       \
    KCAST_BOTH double operator sign(type a, double b) { return static_cast<float>(a) sign b; }     \
    KCAST_BOTH double operator sign(double a, type b) { return a sign static_cast<float>(b); }     \
    KCAST_BOTH type operator sign(type a, int b) { return a sign type(static_cast<float>(b)); }    \
    KCAST_BOTH type operator sign(int a, type b) { return type(static_cast<float>(a)) sign b; }    \
    KCAST_BOTH type operator sign(type a, int64_t b)                                               \
    {                                                                                              \
        return a sign type(static_cast<float>(b));                                                 \
    }                                                                                              \
    KCAST_BOTH type operator sign(int64_t a, type b)                                               \
    {                                                                                              \
        return type(static_cast<float>(a)) sign b;                                                 \
    }                                                                                              \
    KCAST_BOTH type &operator sign##=(type &a, type b) { return a = a sign b; }                    \
    KCAST_BOTH float &operator sign##=(float &a, type b) { return a = a sign b; }
#define KCAST_OPERATORS(type)                                                                      \
    KCAST_OPERATOR(type, +)                                                                        \
    KCAST_OPERATOR(type, -)                                                                        \
    KCAST_OPERATOR(type, *)                                                                        \
    KCAST_OPERATOR(type, /)                                                                        \
    KCAST_BOTH type operator-(type a) { return -static_cast<float>(a); }
KCAST_OPERATORS(Half)
KCAST_OPERATORS(BFloat16)

} // namespace c10

// The members that kernels use.
#define KCAST_LIMITS(type, most, least, tiny, endless, none)                                       \
    template <> class std::numeric_limits<type> {                                                  \
        static constexpr type of(uint16_t bits) { return type(bits, type::from_bits()); }          \
                                                                                                   \
      public:                                                                                      \
        static constexpr bool is_specialized = true, is_signed = true, is_integer = false;         \
        static constexpr bool has_infinity = true, has_quiet_NaN = true;                           \
        static constexpr type min() { return of(tiny); }                                           \
        static constexpr type max() { return of(most); }                                           \
        static constexpr type lowest() { return of(least); }                                       \
        static constexpr type infinity() { return of(endless); }                                   \
        static constexpr type quiet_NaN() { return of(none); }                                     \
    };
KCAST_LIMITS(c10::Half, 0x7bff, 0xfbff, 0x0400, 0x7c00, 0x7e00)
KCAST_LIMITS(c10::BFloat16, 0x7f7f, 0xff7f, 0x0080, 0x7f80, 0x7fc0)
