// The second part of the executor's device code: the values of inputs. They follow from key,
// distribution, type and index alone, and docs/problems.md says how: whoever has the seed of an
// outcome can make the same inputs again, and the oracle, which is another process, does.
//
// An input is made anew before every launch and once more after it, to see whether it was changed,
// so this must be quick. Normal, uniform and wide values of float types up to 32 bits take one draw
// of 64 bits for two elements, arithmetic in float and the GPU's quick functions; a thread
// moves 16 bytes at a time. 32 M normal ones take 45 us to write and 55 to compare on an H200.
// In double, as f64 still has it, logarithm, root and cosine take about 150 instructions an element,
// most of them at half the rate.

// The numbers of enum distribution (problem/problem.h).

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
        return (kc_input_bits(~key, index) & 1) != 0 ? -magnitude : magnitude;
    }
    case KC_SORTED: // one value in each of `count` equal intervals
        return a + (b - a) * (((double)index + u) / (double)count);
    default: // one-hot
        return kc_input_bits(key, index / last) % last == index % last ? 1.0 : 0.0;
    }
}

// ---- two elements at a time ----

// Uniform in (0, 1].
KC_DEVICE float kc_unit_float(unsigned bits)
{
    return ((float)bits + 0.5f) * 2.3283064365386963e-10f;
}

// One value of a uniform or wide distribution from 32 random bits; for wide, a and b are the base-2
// logarithms of the bounds.
KC_DEVICE float kc_single(int distribution, float a, float b, unsigned bits)
{
    float x;

    if (distribution == KC_UNIFORM) {
        return fmaf(kc_unit_float(bits), b - a, a);
    }
    x = exp2f(fmaf(kc_unit_float(bits & ~1u), b - a, a));
    return (bits & 1) != 0 ? -x : x;
}

// The elements 2 pair and 2 pair + 1.
KC_DEVICE void kc_pair(int distribution, float a, float b, kc_u64 key, kc_u64 pair, float *first,
                       float *second)
{
    kc_u64 random = kc_input_bits(key, pair);
    unsigned high = (unsigned)(random >> 32), low = (unsigned)random;

    if (distribution == KC_NORMAL) { // Box and Muller 1958
        float twice_log = -1.386294361119891f * kc_log2(kc_unit_float(high)), sine, cosine;
        float radius = b * kc_root(fmaxf(twice_log, 0.0f));

        kc_sincospi((float)low * 4.656612873077393e-10f, &sine, &cosine);
        *first = fmaf(radius, cosine, a);
        *second = fmaf(radius, sine, a);
    } else {
        *first = kc_single(distribution, a, b, high);
        *second = kc_single(distribution, a, b, low);
    }
}

// Makes the values. When `differ` is not NULL, compares what is there with them instead, and adds the
// number of places that differ. One kernel does both, because compiling it takes long.
KC_KERNEL kc_inputs(void *out, int dtype, int distribution, double a, double b, kc_u64 key,
                    kc_u64 count, kc_u64 last, kc_u64 *differ)
{
    kc_u64 found = 0;

    for (kc_u64 i = KC_INDEX; i < count; i += KC_STRIDE) {
        double x = kc_value(distribution, a, b, key, i, count, last);
        found += (kc_u64)kc_put(out, kc_size(dtype), i, kc_code(dtype, x), differ != 0);
    }
    if (found > 0) {
        kc_add(differ, found);
    }
}

// The bits of the elements 2 pair and 2 pair + 1, side by side.
KC_DEVICE kc_u64 kc_pair_code(int dtype, int distribution, float a, float b, kc_u64 key,
                              kc_u64 pair)
{
    float first, second;

    kc_pair(distribution, a, b, key, pair, &first, &second);
    return kc_float_code(dtype, first) | (kc_u64)kc_float_code(dtype, second)
                                             << (8 * kc_size(dtype));
}

// Those of as many as 8 bytes hold.
KC_DEVICE kc_u64 kc_word_code(int dtype, int distribution, float a, float b, kc_u64 key,
                              kc_u64 word)
{
    int size = kc_size(dtype), pairs = 4 / size;
    kc_u64 code = 0;

    for (int i = 0; i < pairs; i++) {
        code |= kc_pair_code(dtype, distribution, a, b, key, word * (kc_u64)pairs + (kc_u64)i)
                << (16 * size * i);
    }
    return code;
}

// The same as kc_inputs for normal, uniform and wide values of float types up to 32 bits; for wide
// ones a and b are the base-2 logarithms of the bounds. `out` lies at a multiple of 16. A kernel of
// its own, because arithmetic in double needs so many registers that a multiprocessor has room for a
// third of the threads.
KC_KERNEL kc_inputs_quick(void *out, int dtype, int distribution, float a, float b, kc_u64 key,
                          kc_u64 count, kc_u64 *differ)
{
    int size = kc_size(dtype), compare = differ != 0;
    kc_u64 found = 0, twos = count * (kc_u64)size / 16, pairs = twos * (kc_u64)(8 / size);

    for (kc_u64 i = KC_INDEX; i < twos; i += KC_STRIDE) {
        kc_two two;

        two.x = kc_word_code(dtype, distribution, a, b, key, 2 * i);
        two.y = kc_word_code(dtype, distribution, a, b, key, 2 * i + 1);
        if (compare) {
            kc_two there = ((const kc_two *)out)[i];

            found += (kc_u64)(there.x != two.x) + (kc_u64)(there.y != two.y);
        } else {
            ((kc_two *)out)[i] = two;
        }
    }
    for (kc_u64 i = pairs + KC_INDEX; i < (count + 1) / 2; i += KC_STRIDE) {
        kc_u64 code = kc_pair_code(dtype, distribution, a, b, key, i);

        found += (kc_u64)(2 * i + 1 == count ? kc_put(out, size, 2 * i, code, compare)
                                             : kc_put(out, 2 * size, i, code, compare));
    }
    if (found > 0) {
        kc_add(differ, found);
    }
}
