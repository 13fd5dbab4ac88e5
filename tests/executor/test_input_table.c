// Quick inputs: they follow the distribution, and another key changes every element.
#include "common/stats.h"
#include "executor/input_table.h"
#include "executor/inputs.h"
#include "tests/executor/inverse_hash.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 200000

struct drawn {
    struct tensor tensor;
    struct input_table *table;
};

static struct drawn open_table(enum dtype dtype, enum distribution distribution, double a, double b)
{
    return (struct drawn){
        .tensor = {.direction = DIRECTION_IN, .dtype = dtype, .values = {distribution, a, b}}};
}

// Returns the values of one content as doubles, and checks that it is made the same way twice, that
// a shorter one is its beginning, and that another key gives another one.
static double *draw(struct drawn *d, uint64_t key)
{
    size_t size = dtype_size(d->tensor.dtype);
    unsigned char *bytes = malloc(COUNT * size), *again = malloc(COUNT * size);
    double *ret = malloc(COUNT * sizeof(*ret));

    d->table = input_table_create(&d->tensor, 99);
    input_table_fill(d->table, key, COUNT, 10, bytes);
    input_table_fill(d->table, key, COUNT, 10, again);
    assert_memory_equal(bytes, again, COUNT * size);
    if (d->tensor.values.distribution != VALUES_SORTED) {
        memset(again, 0, COUNT * size);
        input_table_fill(d->table, key, 1001, 10, again);
        assert_memory_equal(bytes, again, 1001 * size);
        assert_int_equal(again[1001 * size], 0); // nothing is written behind the end
    }
    input_table_fill(d->table, key + 1, COUNT, 10, again);
    assert_memory_not_equal(bytes, again, COUNT * size);
    for (size_t i = 0; i < COUNT; i++) {
        switch (d->tensor.dtype) {
        case DTYPE_F32:
            ret[i] = (double)((float *)(void *)bytes)[i];
            break;
        case DTYPE_F64:
            ret[i] = ((double *)(void *)bytes)[i];
            break;
        case DTYPE_I32:
            ret[i] = ((int32_t *)(void *)bytes)[i];
            break;
        case DTYPE_I64:
            ret[i] = (double)((int64_t *)(void *)bytes)[i];
            break;
        default:
            ret[i] = bytes[i];
            break;
        }
    }
    free(bytes);
    free(again);
    input_table_free(d->table);
    return ret;
}

static void normal_has_its_moments_and_tails(void **state)
{
    static const enum dtype dtype[] = {DTYPE_F32, DTYPE_F64};

    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(dtype); n++) {
        struct drawn d = open_table(dtype[n], VALUES_NORMAL, 3, 2);
        double *x = draw(&d, 5);
        size_t one = 0, three = 0, zero = 0;

        assert_true(fabs(stats_mean(x, COUNT) - 3) < 0.02);
        assert_true(fabs(stats_variance(x, COUNT) - 4) < 0.06);
        for (size_t i = 0; i < COUNT; i++) {
            double z = fabs(x[i] - 3) / 2;
            one += z > 1;
            three += z > 3;
            zero += z < 0.01;
        }
        assert_true(fabs((double)one / COUNT - 0.3173) < 0.005);
        assert_true(fabs((double)three / COUNT - 0.0027) < 0.0005);
        assert_true(fabs((double)zero / COUNT - 0.00798) < 0.001);
        free(x);
    }
}

static void another_key_changes_every_element_of_a_real_tensor(void **state)
{
    struct drawn d = open_table(DTYPE_F32, VALUES_NORMAL, 0, 1);
    float *a = malloc(COUNT * sizeof(*a)), *b = malloc(COUNT * sizeof(*b));
    double product = 0;
    size_t equal = 0;

    (void)state;
    d.table = input_table_create(&d.tensor, 1);
    input_table_fill(d.table, inputs_key(1, 2, 3, 0), COUNT, 1, a);
    input_table_fill(d.table, inputs_key(1, 2, 4, 0), COUNT, 1, b);
    for (size_t i = 0; i < COUNT; i++) {
        equal += memcmp(&a[i], &b[i], sizeof(*a)) == 0;
        product += (double)a[i] * (double)b[i];
    }
    assert_true(equal <= 2); // by chance
    assert_true(fabs(product / COUNT) < 0.01);
    // Neighbours, which share a hash, are independent too.
    product = 0;
    for (size_t i = 0; i + 1 < COUNT; i += 2) {
        product += (double)a[i] * (double)a[i + 1];
    }
    assert_true(fabs(product / COUNT * 2) < 0.012);
    input_table_free(d.table);
    free(a);
    free(b);
}

static void uniform_and_wide_stay_within_their_bounds(void **state)
{
    struct drawn uniform = open_table(DTYPE_F32, VALUES_UNIFORM, -2, 6);
    double *x = draw(&uniform, 7);

    (void)state;
    assert_true(fabs(stats_mean(x, COUNT) - 2) < 0.03);
    assert_true(fabs(stats_variance(x, COUNT) - 64.0 / 12) < 0.05);
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(x[i] >= -2 && x[i] <= 6);
    }
    free(x);
    struct drawn wide = open_table(DTYPE_F64, VALUES_WIDE, 1e-3, 1e3);
    x = draw(&wide, 7);
    size_t negative = 0, small = 0;
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(fabs(x[i]) >= 0.999e-3 && fabs(x[i]) <= 1.001e3);
        negative += x[i] < 0;
        small += fabs(x[i]) < 1;
    }
    assert_true(fabs((double)negative / COUNT - 0.5) < 0.006);
    assert_true(fabs((double)small / COUNT - 0.5) < 0.006);
    free(x);
}

// Compares the shares of all values with those of the exact generator.
static void discrete_values_have_their_shares(void **state)
{
    static const struct {
        enum dtype dtype;
        enum distribution distribution;
        double a, b;
    } row[] = {
        {DTYPE_U8, VALUES_ZIPF, 256, 1.3},      {DTYPE_I32, VALUES_ZIPF, 256, 1.0},
        {DTYPE_I64, VALUES_INTEGERS, -10, 200}, {DTYPE_U8, VALUES_INTEGERS, 0, 255},
        {DTYPE_I32, VALUES_INTEGERS, 0, 1e6},   {DTYPE_I32, VALUES_ZIPF, 1e6, 1.1},
        {DTYPE_F32, VALUES_INTEGERS, 0, 100},   {DTYPE_F64, VALUES_ZIPF, 100, 1.2},
    };

    (void)state;
    for (size_t n = 0; n < ARRAY_LEN(row); n++) {
        struct drawn d = open_table(row[n].dtype, row[n].distribution, row[n].a, row[n].b);
        struct tensor real = d.tensor;
        double *x = draw(&d, 13), *exact = malloc(COUNT * sizeof(*exact));
        double share[64] = {0}, expected[64] = {0}, low = row[n].a;

        real.dtype = DTYPE_F64;
        inputs_fill(real.dtype, &real.values, 14, COUNT, COUNT, exact);
        if (row[n].distribution == VALUES_ZIPF) {
            low = 0;
        }
        for (size_t i = 0; i < COUNT; i++) {
            share[(size_t)fmin(x[i] - low, 63)] += 1.0 / COUNT;
            expected[(size_t)fmin(exact[i] - low, 63)] += 1.0 / COUNT;
        }
        for (size_t i = 0; i < 64; i++) {
            if (fabs(share[i] - expected[i]) > 0.0055) {
                fail_msg("row %zu: value %zu has %g, not %g", n, i, share[i], expected[i]);
            }
        }
        free(x);
        free(exact);
    }
}

static void elements_that_depend_on_each_other_are_exact(void **state)
{
    struct drawn sorted = open_table(DTYPE_F32, VALUES_SORTED, 0, 1);
    double *x = draw(&sorted, 3);

    (void)state;
    for (size_t i = 1; i < COUNT; i++) {
        assert_true(x[i] >= x[i - 1]);
    }
    free(x);
    struct drawn one_hot = open_table(DTYPE_F32, VALUES_ONE_HOT, 0, 0);
    x = draw(&one_hot, 3);
    for (size_t row = 0; row < COUNT / 10; row++) {
        double sum = 0;
        for (size_t i = 0; i < 10; i++) {
            sum += x[10 * row + i];
        }
        assert_true(sum == 1);
    }
    free(x);
}

// ---- the key ----

// A uniform element between the first two whole quantiles shows all bits that it was made of. A
// candidate that had the key of its inputs from them could do without reading the rest.
static void no_element_betrays_the_key(void **state)
{
    const uint64_t key = 0x123456789abcdef1ULL;
    struct drawn d = open_table(DTYPE_F64, VALUES_UNIFORM, 0, 1);
    double *values = draw(&d, key);
    size_t shown = 0;

    (void)state;
    assert_int_equal(key_of(inputs_bits(key, 5), 5), key);
    for (size_t i = 0; i < COUNT; i++) {
        if (values[i] >= 0x1p-12 && values[i] < 0x1p-11) {
            assert_int_not_equal(key_of((uint64_t)ldexp(values[i], 64), i), key);
            shown++;
        }
    }
    assert_true(shown > 20);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_element_betrays_the_key),
        cmocka_unit_test(normal_has_its_moments_and_tails),
        cmocka_unit_test(another_key_changes_every_element_of_a_real_tensor),
        cmocka_unit_test(uniform_and_wide_stay_within_their_bounds),
        cmocka_unit_test(discrete_values_have_their_shares),
        cmocka_unit_test(elements_that_depend_on_each_other_are_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
