// The executor's device code, compiled for the processor: number formats, values of inputs,
// patterns and digests.
#include "executor/gpu/device/kernels_host.h"
#include "problem/problem.h"
#include "tests/executor/inverse_hash.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 100001 // odd: the last element has no pair
#define ZONES 120    // of struct gpu_zones

static void run(const char *name, void **parameters)
{
    static const unsigned one[3] = {1, 1, 1};

    for (unsigned i = 0; i < kc_host_kernel_count; i++) {
        if (strcmp(kc_host_kernels[i].name, name) == 0) {
            kc_host_kernels[i].run(parameters, one, one);
            return;
        }
    }
    fail_msg("no kernel %s", name);
}

// Makes inputs, or returns how many places of them differ from what they must be.
static uint64_t inputs(void *out, enum dtype of, enum distribution distribution, double a, double b,
                       uint64_t count, bool compare)
{
    uint64_t found = 0, *differ = compare ? &found : NULL, key = 77, last = count;
    int dtype = (int)of, kind = (int)distribution;

    bool narrow = of != DTYPE_F64 && dtype_roundoff(of) < 1;
    if (narrow && distribution != VALUES_INTEGERS && distribution != VALUES_ZIPF &&
        distribution != VALUES_SORTED && distribution != VALUES_ONE_HOT) {
        bool wide = distribution == VALUES_WIDE;
        float low = (float)(wide ? log2(a) : a), high = (float)(wide ? log2(b) : b);

        run("kc_inputs_quick", (void *[]){&out, &dtype, &kind, &low, &high, &key, &count, &differ});
    } else {
        run("kc_inputs", (void *[]){&out, &dtype, &kind, &a, &b, &key, &count, &last, &differ});
    }
    return found;
}

// ---- number formats ----

struct format {
    enum dtype dtype;
    int bits, mantissa, bias;
    bool has_infinity;
};

static const struct format formats[] = {{DTYPE_F16, 16, 10, 15, true},
                                        {DTYPE_BF16, 16, 7, 127, true},
                                        {DTYPE_E4M3, 8, 3, 7, false},
                                        {DTYPE_E5M2, 8, 2, 15, true}};

// The value of a code without sign; NaN when it is none.
static double value_of(const struct format *f, unsigned code)
{
    unsigned m = code & ((1u << f->mantissa) - 1), e = code >> f->mantissa;
    unsigned top = (1u << (f->bits - 1 - f->mantissa)) - 1;

    if (e == top && (f->has_infinity || m == (1u << f->mantissa) - 1)) {
        return NAN;
    }
    return e == 0 ? ldexp(m, 1 - f->bias - f->mantissa)
                  : ldexp(m | 1u << f->mantissa, (int)e - f->bias - f->mantissa);
}

static unsigned code_of(const struct format *f, double x)
{
    uint16_t wide = 0;
    unsigned char narrow = 0;

    // A uniform distribution whose ends are equal.
    (void)inputs(f->bits == 16 ? (void *)&wide : &narrow, f->dtype, VALUES_UNIFORM, x, x, 1, false);
    return f->bits == 16 ? wide : narrow;
}

static void values_are_rounded_to_the_nearest_even(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const struct format *f = &formats[i];
        unsigned codes = 1u << (f->bits - 1), sign = codes, greatest = 0;

        for (unsigned code = 0; code + 1 < codes; code++) {
            double x = value_of(f, code), next = value_of(f, code + 1);

            if (isnan(x) || (float)x < 1e-37f) { // floats below that are not normal
                continue;
            }
            assert_int_equal(code_of(f, x), code);
            assert_int_equal(code_of(f, -x), code | sign);
            if (isnan(next)) {
                greatest = greatest ? greatest : code;
                continue;
            }
            double middle = (x + next) / 2;
            assert_int_equal(code_of(f, middle), code % 2 == 0 ? code : code + 1);
            assert_int_equal(code_of(f, nextafterf((float)middle, 0)), code);
            assert_int_equal(code_of(f, nextafterf((float)middle, INFINITY)), code + 1);
        }
        assert_int_equal(code_of(f, 3.4028234663852886e38), greatest);
        assert_int_equal(code_of(f, 0), 0);
    }
}

// ---- inputs ----

// Elements are made some at a time, and the last ones singly.
static void an_element_follows_from_its_index_alone(void **state)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_F16, DTYPE_E4M3};
    static const enum distribution kinds[] = {VALUES_NORMAL, VALUES_UNIFORM, VALUES_WIDE};
    _Alignas(16) unsigned char all[64 * 4], some[64 * 4];

    (void)state;
    for (size_t i = 0; i < 9; i++) {
        enum dtype of = types[i / 3];
        enum distribution kind = kinds[i % 3];

        (void)inputs(all, of, kind, 1, 2, 64, false);
        for (uint64_t count = 1; count < 64; count++) {
            size_t bytes = count * dtype_size(of);

            memset(some, 0x5a, sizeof(some));
            (void)inputs(some, of, kind, 1, 2, count, false);
            assert_memory_equal(some, all, bytes);
            assert_int_equal(some[bytes], 0x5a);
            assert_int_equal(inputs(some, of, kind, 1, 2, count, true), 0);
            for (size_t at = 0; at < bytes; at++) {
                some[at] ^= 1;
                assert_int_equal(inputs(some, of, kind, 1, 2, count, true), 1);
                some[at] ^= 1;
            }
        }
    }
}

static void normal_values_are_normal_and_all_different(void **state)
{
    static float x[COUNT + 1];
    double sum = 0, squares = 0, beyond = 0, products = 0;

    (void)state;
    x[COUNT] = 123;
    (void)inputs(x, DTYPE_F32, VALUES_NORMAL, 3, 2, COUNT, false);
    assert_true(x[COUNT] == 123);
    for (size_t i = 0; i < COUNT; i++) {
        double z = ((double)x[i] - 3) / 2;

        sum += z;
        squares += z * z;
        beyond += fabs(z) > 1.959964;
        products += i > 0 ? z * ((double)x[i - 1] - 3) / 2 : 0;
    }
    assert_true(fabs(sum) < 5 * sqrt(COUNT));
    assert_true(fabs(squares - COUNT) < 5 * sqrt(2.0 * COUNT));
    assert_true(fabs(beyond - 0.05 * COUNT) < 5 * sqrt(0.05 * COUNT));
    assert_true(fabs(products) < 5 * sqrt(COUNT)); // neighbours, of a pair or not
}

static void wide_values_span_their_range(void **state)
{
    static float x[COUNT];
    double negative = 0, small = 0;

    (void)state;
    (void)inputs(x, DTYPE_F32, VALUES_WIDE, 1e-3, 1e3, COUNT, false);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(fabsf(x[i]) > 0.999e-3f && fabsf(x[i]) < 1.001e3f);
        negative += x[i] < 0;
        small += fabsf(x[i]) < 1;
    }
    assert_true(fabs(negative - COUNT / 2.0) < 3 * sqrt(COUNT));
    assert_true(fabs(small - COUNT / 2.0) < 3 * sqrt(COUNT));
}

// A uniform element of 64 bits shows 52 of those that it was made of. A kernel that found the
// others by trying would know all elements without reading them.
static void no_element_betrays_the_key(void **state)
{
    double values[8];

    (void)state;
    assert_int_equal(key_of(0, 3) + 4 * 0x9e3779b97f4a7c15ULL, 0);
    (void)inputs(values, DTYPE_F64, VALUES_UNIFORM, 0, 1, ARRAY_LEN(values), false);
    for (uint64_t i = 0; i < ARRAY_LEN(values); i++) {
        uint64_t shown = (uint64_t)(values[i] * 0x1p52 - 0.5) << 12;
        for (uint64_t rest = 0; rest < 1 << 12; rest++) {
            assert_int_not_equal(key_of(shown | rest, i), 77);
        }
    }
}

// Whatever the type and the distribution, one changed byte is found, the last one too.
static void a_changed_input_is_found(void **state)
{
    static unsigned char memory[8 * 1001];

    (void)state;
    for (enum dtype dtype = 0; dtype <= DTYPE_I8; dtype++) {
        for (enum distribution kind = VALUES_NORMAL; kind <= VALUES_ONE_HOT; kind++) {
            double a = kind == VALUES_ZIPF ? 100 : 1, b = kind == VALUES_ZIPF ? 1.1 : 9;
            size_t bytes = 1001 * dtype_size(dtype);

            (void)inputs(memory, dtype, kind, a, b, 1001, false);
            assert_int_equal(inputs(memory, dtype, kind, a, b, 1001, true), 0);
            for (size_t at = 0; at < bytes; at += bytes / 7) {
                memory[at] ^= 1;
                assert_int_equal(inputs(memory, dtype, kind, a, b, 1001, true), 1);
                memory[at] ^= 1;
            }
            memory[bytes - 1] ^= 0x80;
            assert_int_equal(inputs(memory, dtype, kind, a, b, 1001, true), 1);
        }
    }
}

// ---- patterns ----

struct zones {
    uint64_t count, at[ZONES], bytes[ZONES];
};

static void every_byte_of_a_zone_is_looked_at(void **state)
{
    static _Alignas(16) unsigned char memory[256];
    uint64_t key = 3, differ[2] = {0, 0}, *out = differ;
    uint64_t base = (uint64_t)(uintptr_t)memory;
    struct zones zones = {.count = 2, .at = {base + 5, base + 101}, .bytes = {61, 90}};

    (void)state;
    run("kc_pattern_fill", (void *[]){&zones, &key});
    for (size_t i = 0; i < sizeof(memory); i++) {
        bool first = i >= 5 && i < 66, second = i >= 101 && i < 191;

        if (!first && !second) {
            assert_int_equal(memory[i], 0);
        }
        memory[i] ^= 4;
        memset(differ, 0, sizeof(differ));
        run("kc_pattern_check", (void *[]){&zones, &key, &out});
        assert_int_equal(differ[0], first || second);
        assert_int_equal(differ[1], first ? 2 : second ? 1 : 0);
        memory[i] ^= 4;
    }
    key = 4;
    run("kc_pattern_check", (void *[]){&zones, &key, &out});
    assert_true(differ[0] > 2);
}

// ---- digests ----

struct digest_words {
    uint64_t hash[2];
    double sum;
    uint64_t not_finite;
};

static struct digest_words digest_of_output(void *in, enum dtype of, uint64_t bytes)
{
    struct digest_words words = {.not_finite = 0};
    uint64_t *out = (uint64_t *)&words, hash_key = 5, sign_key = 6;
    int dtype = (int)of;

    run("kc_digest", (void *[]){&in, &dtype, &bytes, &hash_key, &sign_key, &out});
    return words;
}

static void a_digest_shows_each_element(void **state)
{
    float x[101];

    (void)state;
    for (size_t i = 0; i < 101; i++) {
        x[i] = (float)i;
    }
    struct digest_words before = digest_of_output(x, DTYPE_F32, sizeof(x));
    size_t added = 0;
    for (size_t i = 0; i < 101; i++) { // the last one is beyond the last word of 8 bytes
        x[i] += 0.5f;
        struct digest_words after = digest_of_output(x, DTYPE_F32, sizeof(x));
        assert_true(after.hash[0] != before.hash[0] && after.hash[1] != before.hash[1]);
        assert_true(fabs(after.sum - before.sum) == 0.5);
        added += after.sum > before.sum;
        x[i] = i % 2 == 0 ? NAN : -INFINITY;
        assert_int_equal(digest_of_output(x, DTYPE_F32, sizeof(x)).not_finite, 1);
        x[i] = (float)i;
    }
    assert_in_range(added, 30, 71);                              // signs are drawn
    uint16_t half[5] = {0x3c00, 0x4000, 0x4200, 0x7c00, 0xbc00}; // 1, 2, 3, infinity, -1
    struct digest_words words = digest_of_output(half, DTYPE_F16, sizeof(half));
    assert_int_equal(words.not_finite, 1);
    assert_true(fabs(words.sum) <= 7 && fmod(words.sum, 2) != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_rounded_to_the_nearest_even),
        cmocka_unit_test(an_element_follows_from_its_index_alone),
        cmocka_unit_test(normal_values_are_normal_and_all_different),
        cmocka_unit_test(wide_values_span_their_range),
        cmocka_unit_test(no_element_betrays_the_key),
        cmocka_unit_test(a_changed_input_is_found),
        cmocka_unit_test(every_byte_of_a_zone_is_looked_at),
        cmocka_unit_test(a_digest_shows_each_element),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
