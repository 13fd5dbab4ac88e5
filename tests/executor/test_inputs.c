// Input generators: the same seed gives the same values, and values follow their distribution.
#include "common/stats.h"
#include "executor/inputs.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT 100000

static struct tensor tensor_of(enum dtype dtype, enum distribution distribution, double a, double b)
{
    return (struct tensor){
        .direction = DIRECTION_IN, .dtype = dtype, .values = {distribution, a, b}};
}

static double *draw(enum distribution distribution, double a, double b, size_t last)
{
    struct tensor tensor = tensor_of(DTYPE_F64, distribution, a, b);
    double *x = calloc(COUNT, sizeof(double));

    assert_non_null(x);
    inputs_fill(tensor.dtype, &tensor.values, 77, COUNT, last, x);
    return x;
}

static void same_key_gives_same_values_and_another_others(void **state)
{
    struct tensor tensor = tensor_of(DTYPE_F32, VALUES_NORMAL, 0, 1);
    float a[1000], b[1000], longer[2000];

    (void)state;
    inputs_fill(tensor.dtype, &tensor.values, inputs_key(1, 2, 3, 4), 1000, 1000, a);
    inputs_fill(tensor.dtype, &tensor.values, inputs_key(1, 2, 3, 4), 1000, 10, b);
    inputs_fill(tensor.dtype, &tensor.values, inputs_key(1, 2, 3, 4), 2000, 10, longer);
    assert_memory_equal(a, b, sizeof(a));
    assert_memory_equal(a, longer,
                        sizeof(a)); // an element depends on its index alone, not on their number
    for (uint64_t change = 0; change < 4; change++) {
        uint64_t key =
            inputs_key(1 + (change == 0), 2 + (change == 1), 3 + (change == 2), 4 + (change == 3));
        inputs_fill(tensor.dtype, &tensor.values, key, 1000, 1000, b);
        assert_memory_not_equal(a, b, sizeof(a));
    }
}

static void normal_has_its_moments_and_tails(void **state)
{
    double *x = draw(VALUES_NORMAL, 3, 2, COUNT), skew = 0;

    (void)state;
    assert_true(fabs(stats_mean(x, COUNT) - 3) < 0.03);
    assert_true(fabs(stats_variance(x, COUNT) - 4) < 0.1);
    size_t beyond = 0;
    for (size_t i = 0; i < COUNT; i++) {
        skew += pow((x[i] - 3) / 2, 3) / COUNT;
        beyond += fabs(x[i] - 3) > 2 * 3;
    }
    assert_true(fabs(skew) < 0.05);
    assert_true(beyond > 200 && beyond < 345); // 0.27 %
    stats_sort(x, COUNT);
    for (double p = 0.01; p < 1; p += 0.01) {
        assert_true(fabs(stats_normal_cdf((stats_quantile(x, COUNT, p) - 3) / 2) - p) < 0.008);
    }
    free(x);
}

static void uniform_fills_its_range(void **state)
{
    double *x = draw(VALUES_UNIFORM, -1, 5, COUNT);

    (void)state;
    stats_sort(x, COUNT);
    assert_true(x[0] >= -1 && x[0] < -0.99 && x[COUNT - 1] < 5 && x[COUNT - 1] > 4.99);
    assert_true(fabs(stats_quantile(x, COUNT, 0.25) - 0.5) < 0.05);
    free(x);
}

static void integers_take_every_value_equally_often(void **state)
{
    double *x = draw(VALUES_INTEGERS, -2, 3, COUNT);

    (void)state;
    size_t seen[6] = {0};
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(x[i] == floor(x[i]) && x[i] >= -2 && x[i] <= 3);
        seen[(size_t)(x[i] + 2)]++;
    }
    for (size_t i = 0; i < 6; i++) {
        assert_true(fabs((double)seen[i] - COUNT / 6.0) < 600);
    }
    free(x);
}

static void zipf_ranks_have_their_frequencies(void **state)
{
    static const double exponent[] = {0.5, 1.0, 1.3, 3.0};

    (void)state;
    for (size_t e = 0; e < 4; e++) {
        double *x = draw(VALUES_ZIPF, 50, exponent[e], COUNT), total = 0;
        size_t seen[50] = {0};

        for (size_t i = 0; i < COUNT; i++) {
            assert_true(x[i] >= 0 && x[i] < 50 && x[i] == floor(x[i]));
            seen[(size_t)x[i]]++;
        }
        for (size_t k = 0; k < 50; k++) {
            total += pow((double)k + 1, -exponent[e]);
        }
        for (size_t k = 0; k < 50; k++) {
            double expected = COUNT * pow((double)k + 1, -exponent[e]) / total;
            assert_true(fabs((double)seen[k] - expected) < 6 * sqrt(expected) + 3);
        }
        free(x);
    }
}

static void wide_is_log_uniform_with_both_signs(void **state)
{
    double *x = draw(VALUES_WIDE, 1e-6, 1e6, COUNT);
    size_t small = 0, negative = 0;

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(fabs(x[i]) >= 0.999e-6 && fabs(x[i]) <= 1.001e6);
        small += fabs(x[i]) < 1e-3;
        negative += x[i] < 0;
    }
    assert_true(fabs((double)small / COUNT - 0.25) < 0.01);
    assert_true(fabs((double)negative / COUNT - 0.5) < 0.01);
    free(x);
}

static void sorted_ascends_within_its_range(void **state)
{
    double *x = draw(VALUES_SORTED, 10, 20, COUNT);

    (void)state;
    assert_true(x[0] >= 10 && x[COUNT - 1] <= 20);
    for (size_t i = 1; i < COUNT; i++) {
        assert_true(x[i] >= x[i - 1]);
    }
    assert_true(fabs(x[COUNT / 2] - 15) < 0.1);
    free(x);
}

static void one_hot_has_one_per_row(void **state)
{
    double *x = draw(VALUES_ONE_HOT, 0, 0, 100);
    size_t column[100] = {0}, used = 0;

    (void)state;
    for (size_t row = 0; row < COUNT / 100; row++) {
        size_t ones = 0;
        for (size_t i = 0; i < 100; i++) {
            assert_true(x[row * 100 + i] == 0 || x[row * 100 + i] == 1);
            ones += x[row * 100 + i] == 1;
            column[i] += x[row * 100 + i] == 1;
        }
        assert_int_equal(ones, 1);
    }
    for (size_t i = 0; i < 100; i++) {
        used += column[i] > 0;
    }
    assert_true(used > 90);
    free(x);
}

static void integer_dtypes_round_and_clamp(void **state)
{
    struct tensor u8 = tensor_of(DTYPE_U8, VALUES_NORMAL, 0, 1e4),
                  i32 = tensor_of(DTYPE_I32, VALUES_NORMAL, 0, 1e12),
                  i64 = tensor_of(DTYPE_I64, VALUES_INTEGERS, -5, 5),
                  f32 = tensor_of(DTYPE_F32, VALUES_UNIFORM, 0, 1e300);

    (void)state;
    uint8_t a[1000];
    inputs_fill(u8.dtype, &u8.values, 5, 1000, 1000, a);
    int32_t b[1000];
    inputs_fill(i32.dtype, &i32.values, 5, 1000, 1000, b);
    int64_t c[1000];
    inputs_fill(i64.dtype, &i64.values, 5, 1000, 1000, c);
    float d[1000];
    inputs_fill(f32.dtype, &f32.values, 5, 1000, 1000, d);
    for (size_t i = 0; i < 1000; i++) {
        assert_true(b[i] == INT32_MIN || b[i] == INT32_MAX || labs(b[i]) < INT32_MAX);
        assert_true(c[i] >= -5 && c[i] <= 5);
        assert_true(isfinite(d[i]));
        assert_true((b[i] < 0) == (a[i] == 0) ||
                    a[i] < 255); // the same values, with negative ones clamped to 0
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_key_gives_same_values_and_another_others),
        cmocka_unit_test(normal_has_its_moments_and_tails),
        cmocka_unit_test(uniform_fills_its_range),
        cmocka_unit_test(integers_take_every_value_equally_often),
        cmocka_unit_test(zipf_ranks_have_their_frequencies),
        cmocka_unit_test(wide_is_log_uniform_with_both_signs),
        cmocka_unit_test(sorted_ascends_within_its_range),
        cmocka_unit_test(one_hot_has_one_per_row),
        cmocka_unit_test(integer_dtypes_round_and_clamp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
