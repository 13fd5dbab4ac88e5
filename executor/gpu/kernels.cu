// The executor's own device code: inputs, poison, guard zones, hashes, comparison, clocks. NVRTC
// compiles it when a process opens a GPU (executor/gpu/gpu.c). With KC_HOST the C compiler compiles
// it for the tests' fake driver, as one thread; so it is written in the common part of C and CUDA
// C++. Every kernel strides over its data, so that any grid is right. The value of an element
// depends on key and index only: whoever has the seed of an outcome can make the same inputs again.

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

// ---- atomics and reductions ----

#ifdef KC_HOST
KC_DEVICE void kc_add(kc_u64 *to, kc_u64 value) { *to += value; }
KC_DEVICE void kc_min(kc_u64 *to, kc_u64 value) { *to = value < *to ? value : *to; }
KC_DEVICE void kc_max(kc_u64 *to, kc_u64 value) { *to = value > *to ? value : *to; }
// Adds the sum of the warp's values, by one thread of the warp.
KC_DEVICE void kc_warp_add(kc_u64 *to, kc_u64 value) { *to += value; }
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
#else
KC_DEVICE void kc_add(kc_u64 *to, kc_u64 value) { atomicAdd(to, value); }
KC_DEVICE void kc_min(kc_u64 *to, kc_u64 value) { atomicMin(to, value); }
KC_DEVICE void kc_max(kc_u64 *to, kc_u64 value) { atomicMax(to, value); }
KC_DEVICE void kc_warp_add(kc_u64 *to, kc_u64 value)
{
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(0xffffffffu, value, step);
    }
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(to, value);
    }
}
KC_DEVICE kc_u64 kc_bits(double x) { return (kc_u64)__double_as_longlong(x); }
KC_DEVICE float kc_float(unsigned bits) { return __uint_as_float(bits); }
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

// Uniform in (0, 1).
KC_DEVICE double kc_unit(kc_u64 key, kc_u64 counter)
{
    return ((double)(kc_random(key, counter) >> 12) + 0.5) * (1.0 / 4503599627370496.0);
}

// ---- number formats: the numbers of enum dtype (problem/problem.h) ----

enum { KC_F32, KC_F64, KC_I32, KC_I64, KC_U8, KC_F16, KC_BF16, KC_E4M3, KC_E5M2, KC_I8 };

// Rounds to nearest, ties to even, in a format with `mantissa` bits and exponents from `least` on.
// A value beyond the greatest finite one becomes that.
KC_DEVICE double kc_round_to(double x, int mantissa, int least, double greatest)
{
    int exponent;
    double scale;

    if (x == 0.0) {
        return x;
    }
    (void)frexp(x, &exponent);
    exponent -= 1;
    if (exponent < least) {
        exponent = least;
    }
    scale = ldexp(1.0, mantissa - exponent);
    x = rint(x * scale) / scale;
    return x > greatest ? greatest : x < -greatest ? -greatest : x;
}

// The bits of a value that the format can hold exactly.
KC_DEVICE unsigned kc_encode(double x, int mantissa, int bits, int bias)
{
    int sign = x < 0.0, exponent;
    double m;
    unsigned out;

    x = fabs(x);
    if (x == 0.0) {
        return 0;
    }
    m = frexp(x, &exponent); // x = m 2^exponent, 0.5 <= m < 1
    exponent -= 1;
    if (exponent < 1 - bias) {
        out = (unsigned)ldexp(x, mantissa + bias - 1); // subnormal
    } else {
        out = ((unsigned)(exponent + bias) << mantissa) +
              (unsigned)((m * 2.0 - 1.0) * ldexp(1.0, mantissa));
    }
    return out | ((unsigned)sign << (bits - 1));
}

KC_DEVICE double kc_decode(unsigned code, int mantissa, int bits, int bias, int has_infinity)
{
    unsigned exponent_bits = (unsigned)(bits - 1 - mantissa), top = (1u << exponent_bits) - 1u;
    unsigned m = code & ((1u << mantissa) - 1u), e = (code >> mantissa) & top;
    int negative = (int)(code >> (bits - 1)) & 1;
    double x;

    if (has_infinity && e == top) {
        x = m != 0 ? (double)NAN : (double)INFINITY;
    } else if (!has_infinity && e == top && m == (1u << mantissa) - 1u) {
        x = (double)NAN;
    } else if (e == 0) {
        x = ldexp((double)m, 1 - bias - mantissa);
    } else {
        x = ldexp((double)(m | (1u << mantissa)), (int)e - bias - mantissa);
    }
    return negative ? -x : x;
}

KC_DEVICE double kc_clamp_round(double x, double low, double high)
{
    return x != x ? 0.0 : fmin(fmax(rint(x), low), high);
}

KC_DEVICE void kc_store(void *out, int dtype, kc_u64 at, double x)
{
    switch (dtype) {
    case KC_F32:
        ((float *)out)[at] = (float)fmin(fmax(x, -3.4028234663852886e38), 3.4028234663852886e38);
        break;
    case KC_F64:
        ((double *)out)[at] = x;
        break;
    case KC_I32:
        ((int *)out)[at] = (int)kc_clamp_round(x, -2147483648.0, 2147483647.0);
        break;
    case KC_I64:
        ((kc_i64 *)out)[at] =
            (kc_i64)kc_clamp_round(x, -9223372036854775808.0, 9223372036854774784.0);
        break;
    case KC_U8:
        ((unsigned char *)out)[at] = (unsigned char)kc_clamp_round(x, 0.0, 255.0);
        break;
    case KC_F16:
        ((unsigned short *)out)[at] =
            (unsigned short)kc_encode(kc_round_to(x, 10, -14, 65504.0), 10, 16, 15);
        break;
    case KC_BF16:
        ((unsigned short *)out)[at] =
            (unsigned short)kc_encode(kc_round_to(x, 7, -126, 3.3895313892515355e38), 7, 16, 127);
        break;
    case KC_E4M3:
        ((unsigned char *)out)[at] =
            (unsigned char)kc_encode(kc_round_to(x, 3, -6, 448.0), 3, 8, 7);
        break;
    case KC_E5M2:
        ((unsigned char *)out)[at] =
            (unsigned char)kc_encode(kc_round_to(x, 2, -14, 57344.0), 2, 8, 15);
        break;
    case KC_I8:
        ((signed char *)out)[at] = (signed char)kc_clamp_round(x, -128.0, 127.0);
        break;
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
        return kc_decode(((const unsigned short *)in)[at], 10, 16, 15, 1);
    case KC_BF16:
        return (double)kc_float((unsigned)((const unsigned short *)in)[at] << 16);
    case KC_E4M3:
        return kc_decode(((const unsigned char *)in)[at], 3, 8, 7, 0);
    case KC_E5M2:
        return kc_decode(((const unsigned char *)in)[at], 2, 8, 15, 1);
    default:
        return (double)((const signed char *)in)[at];
    }
}

// ---- inputs: the numbers of enum distribution ----

enum { KC_NORMAL, KC_UNIFORM, KC_INTEGERS, KC_ZIPF, KC_WIDE, KC_SORTED, KC_ONE_HOT };

// Rejection-inversion (Hoermann and Derflinger 1996, ACM TOMACS 6). Ranks start at 0.
KC_DEVICE double kc_zipf_integral(double x, double s)
{
    double log_x = log(x), t = (1.0 - s) * log_x;

    return fabs(t) < 1e-8 ? log_x * (1.0 + t / 2) : expm1(t) / (1.0 - s);
}

KC_DEVICE double kc_zipf_inverse(double y, double s)
{
    double t = fmax(y * (1.0 - s), -1.0);

    return fabs(t) < 1e-8 ? exp(y * (1.0 - t / 2)) : exp(log1p(t) / (1.0 - s));
}

KC_DEVICE double kc_zipf(kc_u64 key, kc_u64 index, double count, double s)
{
    double low = kc_zipf_integral(1.5, s) - 1.0, high = kc_zipf_integral(count + 0.5, s), k = 1.0;

    for (kc_u64 trial = 0; trial < 32; trial++) {
        double u = high + kc_unit(key, index * 32 + trial) * (low - high);
        double x = kc_zipf_inverse(u, s);
        k = fmin(fmax(floor(x + 0.5), 1.0), count);
        if (u >= kc_zipf_integral(k + 0.5, s) - exp(-log(k) * s)) {
            break;
        }
    }
    return k - 1.0;
}

KC_DEVICE double kc_value(int distribution, double a, double b, kc_u64 key, kc_u64 index,
                          kc_u64 count, kc_u64 last)
{
    double u = kc_unit(key, index);

    switch (distribution) {
    case KC_NORMAL: // Box and Muller 1958
        return a + b * sqrt(-2.0 * log(u)) * cos(6.283185307179586 * kc_unit(~key, index));
    case KC_UNIFORM:
        return a + u * (b - a);
    case KC_INTEGERS:
        return fmin(ceil(a) + floor(u * (floor(b) - ceil(a) + 1.0)), floor(b));
    case KC_ZIPF:
        return kc_zipf(key, index, a < 1.0 ? 1.0 : floor(a), b);
    case KC_WIDE: {
        double magnitude = exp(log(a) + u * (log(b) - log(a)));
        return (kc_random(~key, index) & 1) != 0 ? -magnitude : magnitude;
    }
    case KC_SORTED: // one value in each of `count` equal intervals
        return a + (b - a) * (((double)index + u) / (double)count);
    default: // one-hot
        return kc_random(key, index / last) % last == index % last ? 1.0 : 0.0;
    }
}

KC_KERNEL kc_fill(void *out, int dtype, int distribution, double a, double b, kc_u64 key,
                  kc_u64 count, kc_u64 last)
{
    for (kc_u64 i = KC_INDEX; i < count; i += KC_STRIDE) {
        kc_store(out, dtype, i, kc_value(distribution, a, b, key, i, count, last));
    }
}

// ---- poison and guards ----

// Each half of the word is a NaN of f16 and bf16, the word is one of f32, two words are one of f64.
KC_DEVICE unsigned kc_poison_word(kc_u64 key, kc_u64 index)
{
    return 0xfff0fff0u | ((unsigned)kc_random(key, index) & 0x000f000fu);
}

KC_KERNEL kc_poison(unsigned char *out, kc_u64 bytes, kc_u64 key)
{
    kc_u64 words = bytes / 4;

    for (kc_u64 i = KC_INDEX; i < words; i += KC_STRIDE) {
        ((unsigned *)out)[i] = kc_poison_word(key, i);
    }
    for (kc_u64 i = words * 4 + KC_INDEX; i < bytes; i += KC_STRIDE) {
        out[i] = (unsigned char)0xff;
    }
}

// Zones of memory that nothing may write to, at multiples of 4 (struct gpu_zones of the host).
#define KC_ZONES 128
struct kc_zones {
    kc_u64 count;
    unsigned *at[KC_ZONES];
    kc_u64 words[KC_ZONES];
};

KC_KERNEL kc_guard_fill(struct kc_zones zones, kc_u64 key)
{
    for (kc_u64 zone = 0; zone < zones.count; zone++) {
        for (kc_u64 i = KC_INDEX; i < zones.words[zone]; i += KC_STRIDE) {
            zones.at[zone][i] = kc_poison_word(key + zone, i);
        }
    }
}

// differ[0] += the number of changed words; differ[1] becomes the least zone that has one.
KC_KERNEL kc_guard_check(struct kc_zones zones, kc_u64 key, kc_u64 *differ)
{
    for (kc_u64 zone = 0; zone < zones.count; zone++) {
        for (kc_u64 i = KC_INDEX; i < zones.words[zone]; i += KC_STRIDE) {
            if (zones.at[zone][i] != kc_poison_word(key + zone, i)) {
                kc_add(&differ[0], 1);
                kc_min(&differ[1], zone);
            }
        }
    }
}

#ifndef KC_HOST
// Overwrites the shared memory of the multiprocessor that runs the block.
extern "C" __global__ void kc_shared_poison(unsigned bytes, kc_u64 key)
{
    extern __shared__ unsigned shared[];

    for (unsigned i = threadIdx.x; i < bytes / 4; i += blockDim.x) {
        ((volatile unsigned *)shared)[i] = kc_poison_word(key, i);
    }
}
#else
KC_KERNEL kc_shared_poison(unsigned bytes, kc_u64 key)
{
    (void)bytes;
    (void)key;
}
#endif

// ---- copies ----

// Copies bytes, also across several variables of a module, which the driver refuses to do.
KC_KERNEL kc_copy(unsigned char *to, const unsigned char *from, kc_u64 bytes)
{
    for (kc_u64 i = KC_INDEX; i < bytes; i += KC_STRIDE) {
        to[i] = from[i];
    }
}

// ---- hash: out[0 .. 2) += a keyed sum over words and their positions ----

KC_KERNEL kc_hash(const unsigned char *in, kc_u64 bytes, kc_u64 key, kc_u64 *out)
{
    kc_u64 words = bytes / 8, a = 0, b = 0, round = (words + KC_STRIDE - 1) / KC_STRIDE;

    for (kc_u64 n = 0, i = KC_INDEX; n < round; n++, i += KC_STRIDE) {
        if (i < words) {
            kc_u64 word = ((const kc_u64 *)in)[i];
            a += kc_mix(word ^ (key + i * 0x9e3779b97f4a7c15ULL));
            b += kc_mix(word + (~key ^ (i * 0xd1b54a32d192ed03ULL)));
        }
    }
    if (KC_INDEX == 0) {
        for (kc_u64 i = words * 8; i < bytes; i++) {
            a += kc_mix(in[i] ^ (key + i * 0xff51afd7ed558ccdULL));
            b += kc_mix(in[i] + (~key ^ (i * 0xc4ceb9fe1a85ec53ULL)));
        }
    }
    kc_warp_add(&out[0], a);
    kc_warp_add(&out[1], b);
}

// ---- comparison: |got - y| <= tolerance u S; executor/cpu/verify.c is the same for the CPU ----

// result[0]: number of wrong elements; result[1]: index of the first, before that all ones;
// result[2]: largest error / (u S), as the bits of a double.
KC_KERNEL kc_compare(const void *got, int dtype, double tolerance, double u, int exact,
                     const double *y, const double *scale, kc_u64 count, kc_u64 *result)
{
    kc_u64 wrong = 0, first = ~0ULL, round = (count + KC_STRIDE - 1) / KC_STRIDE;
    double worst = 0.0;

    for (kc_u64 n = 0, i = KC_INDEX; n < round; n++, i += KC_STRIDE) {
        if (i < count) {
            double g = kc_load(got, dtype, i), e = y[i], unit = exact ? 1.0 : u * fabs(scale[i]);
            double error = fabs(g - e), ratio;

            if (g != g || e != e || fabs(g) > 1.7e308 || fabs(e) > 1.7e308) {
                // An infinity or a NaN passes only where the expected value is the same.
                ratio = (g != g && e != e) || g == e ? 0.0 : (double)INFINITY;
            } else {
                ratio = error == 0.0 ? 0.0 : unit > 0.0 ? error / unit : (double)INFINITY;
            }
            worst = fmax(worst, ratio);
            if (ratio > tolerance) {
                wrong++;
                first = i < first ? i : first;
            }
        }
    }
    kc_warp_add(&result[0], wrong);
    if (first != ~0ULL) {
        kc_min(&result[1], first);
    }
    if (worst > 0.0) {
        kc_max(&result[2], kc_bits(worst)); // the bits of positive doubles are ordered as they are
    }
}

// ---- clocks ----

#ifndef KC_HOST
// out[0]: nanoseconds of the GPU's timer; [1]: cycles of this multiprocessor; [2]: its number.
extern "C" __global__ void kc_stamp(kc_u64 *out)
{
    kc_u64 ns;
    unsigned sm;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    out[0] = ns;
    out[1] = (kc_u64)clock64();
    out[2] = sm;
}

// Keeps the stream busy for about ns nanoseconds, so that what follows is queued before it begins.
extern "C" __global__ void kc_spin(kc_u64 ns)
{
    kc_u64 start, now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < ns);
}
#else
KC_KERNEL kc_stamp(kc_u64 *out)
{
    out[0] = out[1] = out[2] = 0;
}
KC_KERNEL kc_spin(kc_u64 ns)
{
    (void)ns;
}
#endif

// Reads all bytes, to bring them into the cache or to measure how fast they can be read.
KC_KERNEL kc_read(const unsigned char *in, kc_u64 bytes, kc_u64 *sum)
{
    kc_u64 words = bytes / 16, total = 0;

    for (kc_u64 i = KC_INDEX; i < words; i += KC_STRIDE) {
#ifdef KC_HOST
        total += ((const kc_u64 *)in)[2 * i] ^ ((const kc_u64 *)in)[2 * i + 1];
#else
        ulonglong2 pair = ((const ulonglong2 *)in)[i];
        total += pair.x ^ pair.y;
#endif
    }
    if (total == 0x5a5a5a5a5a5a5a5aULL) { // hardly ever; keeps the reads from being optimised away
        kc_add(sum, total);
    }
}

// For the health check: the host computes the same numbers and compares.
KC_KERNEL kc_health(kc_u64 *out, kc_u64 count, kc_u64 key)
{
    for (kc_u64 i = KC_INDEX; i < count; i += KC_STRIDE) {
        kc_u64 x = key + i;

        for (int step = 0; step < 64; step++) {
            x = kc_mix(x) + (kc_u64)step;
        }
        out[i] = x;
    }
}
