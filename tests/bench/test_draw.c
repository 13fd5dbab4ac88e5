// Data for the benchmarks that stream: it has the documented distribution, which is the one that
// the executor times with, and each fill gives new data.
#include "executor/inputs.h"
#include "tests/bench/draw.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 200000
#define RANKS 256
#define KS_LIMIT (1.95 / 316.0) // of two samples of COUNT; a right pair exceeds it once in 1000

static struct tensor tensor_of(enum dtype dtype, enum distribution distribution, double a, double b)
{
    return (struct tensor){.name = (char *)(uintptr_t) "x",
                           .direction = DIRECTION_IN,
                           .dtype = dtype,
                           .values = {distribution, a, b}};
}

static struct draw *open_draw(const struct tensor *tensor, uint64_t seed)
{
    struct draw *draw = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(draw_create(&draw, tensor, seed, &err), 0);
    return draw;
}

static double *drawn(const struct tensor *tensor, size_t last)
{
    struct draw *draw = open_draw(tensor, 7);
    double *out = malloc(COUNT * sizeof(*out));

    draw_fill(draw, COUNT, last, out);
    draw_free(draw);
    return out;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

// The largest difference between the distribution functions of two samples, which it sorts.
static double distance(double *x, double *y)
{
    double most = 0;

    qsort(x, COUNT, sizeof(*x), by_value);
    qsort(y, COUNT, sizeof(*y), by_value);
    for (size_t i = 0, j = 0; i < COUNT && j < COUNT;) {
        double at = fmin(x[i], y[j]);
        while (i < COUNT && x[i] == at) {
            i++;
        }
        while (j < COUNT && y[j] == at) {
            j++;
        }
        most = fmax(most, fabs((double)i - (double)j) / COUNT);
    }
    return most;
}

static void follows_the_executors_distributions(void **state)
{
    const struct tensor tensors[] = {
        tensor_of(DTYPE_F64, VALUES_NORMAL, 100, 2),   tensor_of(DTYPE_F64, VALUES_UNIFORM, -3, 5),
        tensor_of(DTYPE_F64, VALUES_INTEGERS, -4, 9),  tensor_of(DTYPE_F64, VALUES_ZIPF, 256, 1.3),
        tensor_of(DTYPE_F64, VALUES_ZIPF, 5000, 0.9),  tensor_of(DTYPE_F64, VALUES_WIDE, 1e-3, 1e4),
        tensor_of(DTYPE_F64, VALUES_SORTED, 2, 70000), tensor_of(DTYPE_F64, VALUES_ONE_HOT, 0, 0),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(tensors) / sizeof(*tensors); i++) {
        double *mine = drawn(&tensors[i], 50), *theirs = malloc(COUNT * sizeof(*theirs));

        inputs_fill(tensors[i].dtype, &tensors[i].values, 12345 + i, COUNT, 50, theirs);
        assert_true(distance(mine, theirs) < KS_LIMIT);
        free(mine);
        free(theirs);
    }
}

static void normal_values_have_their_moments_and_tails(void **state)
{
    const struct tensor tensor = tensor_of(DTYPE_F64, VALUES_NORMAL, 0, 1);
    double *x = drawn(&tensor, 1), sum[5] = {0};
    size_t tail[2] = {0, 0};

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        for (int k = 1; k < 5; k++) {
            sum[k] += pow(x[i], k);
        }
        tail[0] += x[i] < -3.5;
        tail[1] += x[i] > 3.5;
    }
    assert_true(fabs(sum[1] / COUNT) < 0.01);
    assert_true(fabs(sum[2] / COUNT - 1) < 0.015);
    assert_true(fabs(sum[3] / COUNT) < 0.03);
    assert_true(fabs(sum[4] / COUNT - 3) < 0.12);
    for (size_t side = 0; side < 2; side++) { // 46.5 are expected beyond the ziggurat's edge
        assert_in_range(tail[side], 20, 80);
    }
    free(x);
}

static void ranks_have_their_shares(void **state)
{
    const struct tensor tensor = tensor_of(DTYPE_F64, VALUES_ZIPF, RANKS, 1.3);
    double *x = drawn(&tensor, 1), sum = 0;
    size_t seen[RANKS] = {0};

    (void)state;
    for (size_t k = 0; k < RANKS; k++) {
        sum += pow((double)k + 1, -1.3);
    }
    for (size_t i = 0; i < COUNT; i++) {
        assert_true(x[i] >= 0 && x[i] < RANKS && x[i] == floor(x[i]));
        seen[(size_t)x[i]]++;
    }
    for (size_t k = 0; k < RANKS; k++) {
        double expected = COUNT * pow((double)k + 1, -1.3) / sum;
        assert_true(fabs((double)seen[k] - expected) < 5 * sqrt(expected));
    }
    free(x);
}

static void a_row_has_one_one(void **state)
{
    const struct tensor tensor = tensor_of(DTYPE_F64, VALUES_ONE_HOT, 0, 0);
    double *x = drawn(&tensor, 50);
    size_t seen[50] = {0};

    (void)state;
    for (size_t row = 0; row < COUNT / 50; row++) {
        size_t ones = 0;
        for (size_t i = 0; i < 50; i++) {
            ones += x[row * 50 + i] == 1;
            seen[i] += x[row * 50 + i] == 1;
        }
        assert_int_equal(ones, 1);
    }
    for (size_t i = 0; i < 50; i++) { // 80 are expected
        assert_in_range(seen[i], 30, 130);
    }
    free(x);
}

static void types_hold_the_rounded_values(void **state)
{
    static const uint16_t half[] = {0x3c00, 0xc000, 0x0001, 0x03ff, 0x7bff};
    static const double value[] = {1, -2, 0x1p-24, 0x1.ff8p-15, 65504};
    const struct tensor bf16 = tensor_of(DTYPE_BF16, VALUES_UNIFORM, 3, 3),
                        u8 = tensor_of(DTYPE_U8, VALUES_NORMAL, 300, 1),
                        i8 = tensor_of(DTYPE_I8, VALUES_INTEGERS, -128, -128),
                        f32 = tensor_of(DTYPE_F32, VALUES_UNIFORM, 1e300, 1e300);
    unsigned char byte[4];
    uint16_t code;
    float single;

    (void)state;
    for (size_t i = 0; i < sizeof(half) / sizeof(*half); i++) {
        const struct tensor f16 = tensor_of(DTYPE_F16, VALUES_UNIFORM, value[i], value[i]);
        struct draw *draw = open_draw(&f16, 1);
        draw_fill(draw, 1, 1, &code);
        assert_int_equal(code, half[i]);
        draw_free(draw);
    }
    struct draw *draw = open_draw(&bf16, 1);
    draw_fill(draw, 1, 1, &code);
    assert_int_equal(code, 0x4040);
    draw_free(draw);
    draw = open_draw(&u8, 1);
    draw_fill(draw, 4, 4, byte);
    assert_int_equal(byte[3], 255);
    draw_free(draw);
    draw = open_draw(&i8, 1);
    draw_fill(draw, 1, 1, byte);
    assert_int_equal((int8_t)byte[0], -128);
    draw_free(draw);
    draw = open_draw(&f32, 1);
    draw_fill(draw, 1, 1, &single);
    assert_true(isfinite(single));
    draw_free(draw);
}

static void each_fill_is_new_and_ends_where_it_shall(void **state)
{
    const struct tensor tensor = tensor_of(DTYPE_F32, VALUES_NORMAL, 0, 1);
    struct draw *draw = open_draw(&tensor, 3), *same = open_draw(&tensor, 3);
    float first[1000], second[1000] = {0}, again[1000];

    (void)state;
    draw_fill(draw, 1000, 10, first);
    draw_fill(draw, 999, 10, second);
    draw_fill(same, 1000, 10, again);
    assert_memory_equal(first, again, sizeof(first));
    size_t equal = 0;
    for (size_t i = 0; i < 999; i++) {
        equal += first[i] == second[i];
    }
    assert_true(equal < 5);
    assert_true(second[999] == 0);
    draw_free(draw);
    draw_free(same);
}

static void what_it_cannot_draw_is_refused_by_name(void **state)
{
    const struct tensor fp8 = tensor_of(DTYPE_E4M3, VALUES_NORMAL, 0, 1),
                        ranks = tensor_of(DTYPE_I32, VALUES_ZIPF, 1e9, 1.1);
    struct draw *draw = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(draw_create(&draw, &fp8, 1, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "x: e4m3"));
    err = (struct err)ERR_INIT;
    assert_int_equal(draw_create(&draw, &ranks, 1, &err), ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "zipf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_the_executors_distributions),
        cmocka_unit_test(normal_values_have_their_moments_and_tails),
        cmocka_unit_test(ranks_have_their_shares),
        cmocka_unit_test(a_row_has_one_one),
        cmocka_unit_test(types_hold_the_rounded_values),
        cmocka_unit_test(each_fill_is_new_and_ends_where_it_shall),
        cmocka_unit_test(what_it_cannot_draw_is_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
