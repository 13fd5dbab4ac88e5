// The first part of the executor's own device code: sums over threads, random bits, number formats.
// NVRTC compiles the three parts as one text, in the order kernels_base.cu, kernels_inputs.cu,
// kernels.cu, when a process opens a GPU (executor/gpu/gpu.c). With KC_HOST the C compiler compiles
// them for the tests' fake driver, as one thread; so they are written in the common part of C and
// CUDA C++. Every kernel strides over its data, so that any grid is right.

#ifdef KC_HOST
#include <math.h>
#define KC_KERNEL static void
#define KC_DEVICE static
#define KC_INDEX 0ULL
#define KC_STRIDE 1ULL
#else
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#define KC_KERNEL extern "C" __global__ void
#define KC_DEVICE static __device__
#define KC_INDEX (blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x)
#define KC_STRIDE (gridDim.x * (unsigned long long)blockDim.x)
#endif

typedef unsigned long long kc_u64;
typedef long long kc_i64;

// 16 bytes, which a thread loads or stores at once where they lie at a multiple of 16.
#ifdef KC_HOST
typedef struct {
    kc_u64 x, y;
} kc_two;
#else
typedef ulonglong2 kc_two;
#endif

// ---- atomics and reductions ----

#ifdef KC_HOST
KC_DEVICE void kc_add(kc_u64 *to, kc_u64 value) { *to += value; }
KC_DEVICE void kc_max(kc_u64 *to, kc_u64 value) { *to = value > *to ? value : *to; }
KC_DEVICE void kc_block_add_double(double *to, double value) { *to += value; }
KC_DEVICE void kc_block_add(kc_u64 *to, kc_u64 value) { *to += value; }
KC_DEVICE void kc_block_max(kc_u64 *to, kc_u64 value) { kc_max(to, value); }
KC_DEVICE kc_u64 kc_bits(double x)
{
    union {
        double x;
        kc_u64 bits;
    } pun;
    pun.x = x;
    return pun.bits;
}
KC_DEVICE float kc_float(unsigned bits)
{
    union {
        float x;
        unsigned bits;
    } pun;
    pun.bits = bits;
    return pun.x;
}
KC_DEVICE unsigned kc_float_bits(float x)
{
    union {
        float x;
        unsigned bits;
    } pun;
    pun.x = x;
    return pun.bits;
}
KC_DEVICE float kc_log2(float x) { return log2f(x); }
KC_DEVICE float kc_root(float x) { return sqrtf(x); }
// Sine and cosine of pi x, for x from 0 to 2.
KC_DEVICE void kc_sincospi(float x, float *sine, float *cosine)
{
    *sine = sinf(3.14159265358979f * x);
    *cosine = cosf(3.14159265358979f * x);
}
#else
KC_DEVICE void kc_add(kc_u64 *to, kc_u64 value) { atomicAdd(to, value); }
KC_DEVICE void kc_max(kc_u64 *to, kc_u64 value) { atomicMax(to, value); }
// One atomic of a block, because those on one address follow one another: for each thread or warp
// they would take longer than what they collect. All threads of the block call these.
#define KC_BLOCK(name, type, combine, atomic)                                                      \
    KC_DEVICE void name(type *to, type value)                                                      \
    {                                                                                              \
        __shared__ type of_warp[32];                                                               \
        for (int step = 16; step > 0; step /= 2) {                                                 \
            type other = __shfl_xor_sync(0xffffffffu, value, step);                                \
            value = combine;                                                                       \
        }                                                                                          \
        if (threadIdx.x % 32 == 0) {                                                               \
            of_warp[threadIdx.x / 32] = value;                                                     \
        }                                                                                          \
        __syncthreads();                                                                           \
        if (threadIdx.x == 0) {                                                                    \
            for (unsigned i = 1; i < blockDim.x / 32; i++) {                                       \
                type other = of_warp[i];                                                           \
                value = combine;                                                                   \
            }                                                                                      \
            if (value != 0) {                                                                      \
                atomic(to, value);                                                                 \
            }                                                                                      \
        }                                                                                          \
        __syncthreads();                                                                           \
    }
KC_BLOCK(kc_block_add, kc_u64, value + other, atomicAdd)
KC_BLOCK(kc_block_add_double, double, value + other, atomicAdd)
KC_BLOCK(kc_block_max, kc_u64, value > other ? value : other, atomicMax)
KC_DEVICE kc_u64 kc_bits(double x) { return (kc_u64)__double_as_longlong(x); }
KC_DEVICE float kc_float(unsigned bits) { return __uint_as_float(bits); }
KC_DEVICE unsigned kc_float_bits(float x) { return __float_as_uint(x); }
// The GPU's quick functions, which are good to 2^-21 of 1 or of their value.
KC_DEVICE float kc_log2(float x)
{
    float y;

    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
KC_DEVICE float kc_root(float x)
{
    float y;

    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
KC_DEVICE void kc_sincospi(float x, float *sine, float *cosine)
{
    float minus_sine, minus_cosine;

    __sincosf(3.14159265358979f * (x - 1.0f), &minus_sine, &minus_cosine);
    *sine = -minus_sine;
    *cosine = -minus_cosine;
}
#endif

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
KC_DEVICE kc_u64 kc_mix(kc_u64 z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

KC_DEVICE kc_u64 kc_random(kc_u64 key, kc_u64 counter)
{
    return kc_mix(key + (counter + 1) * 0x9e3779b97f4a7c15ULL);
}

// What inputs are made of. kc_random can be inverted, and elements show most bits of what they were
// made of: without the second secret a kernel would have the key after some thousand tries, and
// could compute its inputs instead of reading them.
KC_DEVICE kc_u64 kc_input_bits(kc_u64 key, kc_u64 counter)
{
    return kc_random(key, counter) ^ kc_random(kc_random(~key, 0), 1);
}

// Uniform in (0, 1).
KC_DEVICE double kc_unit(kc_u64 key, kc_u64 counter)
{
    return ((double)(kc_input_bits(key, counter) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

// ---- number formats: the numbers of enum dtype (problem/problem.h) ----

enum { KC_F32, KC_F64, KC_I32, KC_I64, KC_U8, KC_F16, KC_BF16, KC_E4M3, KC_E5M2, KC_I8 };

KC_DEVICE int kc_size(int dtype)
{
    switch (dtype) {
    case KC_F64:
    case KC_I64:
        return 8;
    case KC_F32:
    case KC_I32:
        return 4;
    case KC_F16:
    case KC_BF16:
        return 2;
    default:
        return 1;
    }
}

// The bits of x in a narrower format, with `bits` bits of which `mantissa` are the mantissa: to
// nearest, ties to even. A value beyond the greatest finite one, and NaN, become that.
KC_DEVICE unsigned kc_narrow(float x, int mantissa, int bits, int bias, float greatest)
{
    unsigned code = kc_float_bits(x), sign = code >> 31 << (bits - 1), field, m, rounded;
    int exponent, shift;

    code &= 0x7fffffffu;
    if (code > kc_float_bits(greatest)) {
        code = kc_float_bits(greatest);
    }
    field = code >> 23;
    m = (code & 0x7fffffu) | (field > 0 ? 0x800000u : 0);
    exponent = (int)(field > 0 ? field : 1) - 127;
    shift = 23 - mantissa + (exponent < 1 - bias ? 1 - bias - exponent : 0);
    if (shift > 25) {
        return sign;
    }
    rounded = (m + (1u << (shift - 1)) - 1 + (m >> shift & 1)) >> shift;
    if (exponent >= 1 - bias) { // the hidden bit adds one to the exponent, as does a carry
        rounded += (unsigned)(exponent + bias - 1) << mantissa;
    }
    return sign | rounded;
}

KC_DEVICE float kc_widen(unsigned code, int mantissa, int bits, int bias, int has_infinity)
{
    unsigned top = (1u << (bits - 1 - mantissa)) - 1u, all = (1u << mantissa) - 1u;
    unsigned m = code & all, e = (code >> mantissa) & top;
    float x;

    if (has_infinity && e == top) {
        x = kc_float(0x7f800000u | m << (23 - mantissa));
    } else if (!has_infinity && e == top && m == all) {
        x = NAN;
    } else if (e == 0) {
        x = (float)m * kc_float((unsigned)(128 - bias - mantissa) << 23);
    } else {
        x = kc_float((e + 127u - (unsigned)bias) << 23 | m << (23 - mantissa));
    }
    return (code >> (bits - 1) & 1) != 0 ? -x : x;
}

// The bits of x in a float format of at most 32 bits.
KC_DEVICE unsigned kc_float_code(int dtype, float x)
{
    switch (dtype) {
    case KC_F32:
        return kc_float_bits(fminf(fmaxf(x, -3.4028234663852886e38f), 3.4028234663852886e38f));
    case KC_F16:
        return kc_narrow(x, 10, 16, 15, 65504.0f);
    case KC_BF16:
        return kc_narrow(x, 7, 16, 127, 3.3895313892515355e38f);
    case KC_E4M3:
        return kc_narrow(x, 3, 8, 7, 448.0f);
    default:
        return kc_narrow(x, 2, 8, 15, 57344.0f);
    }
}

KC_DEVICE double kc_clamp_round(double x, double low, double high)
{
    return x != x ? 0.0 : fmin(fmax(rint(x), low), high);
}

// The bits of x as an element of this type, which is the nearest that the type has.
KC_DEVICE kc_u64 kc_code(int dtype, double x)
{
    switch (dtype) {
    case KC_F64:
        return kc_bits(x);
    case KC_I32:
        return (unsigned)(int)kc_clamp_round(x, -2147483648.0, 2147483647.0);
    case KC_I64:
        return (kc_u64)(kc_i64)kc_clamp_round(x, -9223372036854775808.0, 9223372036854774784.0);
    case KC_U8:
        return (unsigned char)kc_clamp_round(x, 0.0, 255.0);
    case KC_I8:
        return (unsigned char)(signed char)kc_clamp_round(x, -128.0, 127.0);
    default:
        return kc_float_code(dtype, (float)fmin(fmax(x, -3.4028234663852886e38),
                                                3.4028234663852886e38));
    }
}

// Stores, or compares with what is there, `size` bytes at a multiple of `size`. Returns whether
// they differ.
KC_DEVICE int kc_put(void *out, int size, kc_u64 at, kc_u64 code, int compare)
{
    switch (size) {
    case 8:
        if (compare) {
            return ((const kc_u64 *)out)[at] != code;
        }
        ((kc_u64 *)out)[at] = code;
        return 0;
    case 4:
        if (compare) {
            return ((const unsigned *)out)[at] != (unsigned)code;
        }
        ((unsigned *)out)[at] = (unsigned)code;
        return 0;
    case 2:
        if (compare) {
            return ((const unsigned short *)out)[at] != (unsigned short)code;
        }
        ((unsigned short *)out)[at] = (unsigned short)code;
        return 0;
    default:
        if (compare) {
            return ((const unsigned char *)out)[at] != (unsigned char)code;
        }
        ((unsigned char *)out)[at] = (unsigned char)code;
        return 0;
    }
}

KC_DEVICE double kc_load(const void *in, int dtype, kc_u64 at)
{
    switch (dtype) {
    case KC_F32:
        return (double)((const float *)in)[at];
    case KC_F64:
        return ((const double *)in)[at];
    case KC_I32:
        return (double)((const int *)in)[at];
    case KC_I64:
        return (double)((const kc_i64 *)in)[at];
    case KC_U8:
        return (double)((const unsigned char *)in)[at];
    case KC_F16:
        return (double)kc_widen(((const unsigned short *)in)[at], 10, 16, 15, 1);
    case KC_BF16:
        return (double)kc_float((unsigned)((const unsigned short *)in)[at] << 16);
    case KC_E4M3:
        return (double)kc_widen(((const unsigned char *)in)[at], 3, 8, 7, 0);
    case KC_E5M2:
        return (double)kc_widen(((const unsigned char *)in)[at], 2, 8, 15, 1);
    default:
        return (double)((const signed char *)in)[at];
    }
}
