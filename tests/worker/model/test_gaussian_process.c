// The Gaussian process: it fits smooth functions from few rows, is uncertain far from them, and its
// left-out predictions are exact.
#include "worker/model/gaussian_process.h"

#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COLUMNS 3

static double truth(const float *x)
{
    return sin(x[0]) + 0.3 * x[1];
}

static void fill(float *x, double *y, size_t rows, uint64_t seed)
{
    struct stats_rng rng;
    stats_rng_init(&rng, seed, 0);
    for (size_t i = 0; i < rows; i++) {
        for (size_t c = 0; c < COLUMNS; c++) {
            x[i * COLUMNS + c] = (float)(4 * stats_rng_unit(&rng) - 2);
        }
        y[i] = truth(x + i * COLUMNS);
    }
}

static const bool own[COLUMNS] = {true, true, false};

static void a_smooth_function_is_learnt_from_few_rows(void **state)
{
    (void)state;
    float x[30 * COLUMNS], t[100 * COLUMNS];
    double y[30], z[100], square = 0;
    fill(x, y, 30, 1);
    fill(t, z, 100, 2);
    struct gaussian_process *process = gaussian_process_fit(x, 30, COLUMNS, own, y);
    for (size_t i = 0; i < 100; i++) {
        double mean, sd;
        gaussian_process_predict(process, t + i * COLUMNS, &mean, &sd);
        square += (mean - z[i]) * (mean - z[i]) / 100;
    }
    assert_true(sqrt(square) < 0.1);
    gaussian_process_free(process);
}

static void distance_is_doubt(void **state)
{
    (void)state;
    float x[20 * COLUMNS], far[COLUMNS] = {15, -15, 15};
    double y[20], mean, near_sd, far_sd;
    fill(x, y, 20, 1);
    struct gaussian_process *process = gaussian_process_fit(x, 20, COLUMNS, own, y);
    gaussian_process_predict(process, x, &mean, &near_sd);
    gaussian_process_predict(process, far, &mean, &far_sd);
    assert_true(far_sd > 2 * near_sd);
    gaussian_process_free(process);
}

static void missing_values_and_constant_columns_are_harmless(void **state)
{
    (void)state;
    float x[20 * COLUMNS];
    double y[20], mean, sd;
    fill(x, y, 20, 1);
    for (size_t i = 0; i < 20; i++) {
        x[i * COLUMNS + 2] = i % 2 ? NAN : 1;
    }
    x[4] = NAN;
    struct gaussian_process *process = gaussian_process_fit(x, 20, COLUMNS, own, y);
    for (size_t i = 0; i < 20; i++) {
        gaussian_process_predict(process, x + i * COLUMNS, &mean, &sd);
        assert_true(isfinite(mean) && isfinite(sd) && sd > 0);
        gaussian_process_left_out(process, i, &mean, &sd);
        assert_true(isfinite(mean) && isfinite(sd) && sd > 0);
    }
    gaussian_process_free(process);
}

static void equal_rows_do_not_break_the_factor(void **state)
{
    (void)state;
    float x[40 * COLUMNS];
    double y[40], mean, sd;
    fill(x, y, 1, 1);
    for (size_t i = 1; i < 40; i++) {
        memcpy(x + i * COLUMNS, x, COLUMNS * sizeof(*x));
        y[i] = (double)(i % 3) - 1;
    }
    struct gaussian_process *process = gaussian_process_fit(x, 40, COLUMNS, own, y);
    gaussian_process_predict(process, x, &mean, &sd);
    assert_true(isfinite(mean) && isfinite(sd));
    gaussian_process_free(process);
}

static void a_left_out_row_is_predicted_worse_than_a_seen_one(void **state)
{
    (void)state;
    float x[25 * COLUMNS];
    double y[25], seen = 0, unseen = 0;
    fill(x, y, 25, 4);
    struct gaussian_process *process = gaussian_process_fit(x, 25, COLUMNS, own, y);
    for (size_t i = 0; i < 25; i++) {
        double mean, sd;
        gaussian_process_predict(process, x + i * COLUMNS, &mean, &sd);
        seen += fabs(mean - y[i]);
        gaussian_process_left_out(process, i, &mean, &sd);
        unseen += fabs(mean - y[i]);
    }
    assert_true(unseen > seen);
    gaussian_process_free(process);
}

static void of_many_rows_the_newest_are_taken(void **state)
{
    (void)state;
    size_t rows = GAUSSIAN_PROCESS_FIT_ROWS + 3;
    float *x = calloc(rows * COLUMNS, sizeof(*x));
    double *y = calloc(rows, sizeof(*y)), mean, sd;
    fill(x, y, rows, 5);
    struct gaussian_process *process = gaussian_process_fit(x, rows, COLUMNS, own, y);
    assert_int_equal(gaussian_process_rows(process), GAUSSIAN_PROCESS_FIT_ROWS);
    for (size_t i = 0; i < GAUSSIAN_PROCESS_FIT_ROWS; i++) {
        gaussian_process_left_out(process, i, &mean, &sd);
        assert_true(fabs(mean - y[i + 3]) < 0.2);
    }
    gaussian_process_free(process);
    free(x);
    free(y);
}

static void a_row_left_out_is_a_row_never_seen(void **state)
{
    (void)state;
    float x[30 * COLUMNS];
    double y[30], mean[2], sd[2];
    fill(x, y, 30, 6);
    struct gaussian_process *most = gaussian_process_fit(x, 29, COLUMNS, own, y);
    struct gaussian_process *all = gaussian_process_extend(most, x + 29 * COLUMNS, 1, y + 29);
    gaussian_process_predict(most, x + 29 * COLUMNS, &mean[0], &sd[0]);
    gaussian_process_left_out(all, 29, &mean[1], &sd[1]);
    assert_float_equal(mean[0], mean[1], 1e-9);
    gaussian_process_free(most);
    gaussian_process_free(all);
}

static void rows_one_by_one_or_at_once_are_the_same(void **state)
{
    (void)state;
    float x[60 * COLUMNS], t[20 * COLUMNS];
    double y[60], z[20];
    fill(x, y, 60, 7);
    fill(t, z, 20, 8);
    struct gaussian_process *first = gaussian_process_fit(x, 40, COLUMNS, own, y),
                            *step = gaussian_process_extend(first, x, 0, y);
    struct gaussian_process *whole = gaussian_process_extend(first, x + 40 * COLUMNS, 20, y + 40);
    for (size_t i = 40; i < 60; i++) {
        struct gaussian_process *next = gaussian_process_extend(step, x + i * COLUMNS, 1, y + i);
        gaussian_process_free(step);
        step = next;
    }
    assert_int_equal(gaussian_process_rows(step), 60);
    double before = 0, after = 0;
    for (size_t i = 0; i < 20; i++) {
        double mean[3], sd[3];
        gaussian_process_predict(step, t + i * COLUMNS, &mean[0], &sd[0]);
        gaussian_process_predict(whole, t + i * COLUMNS, &mean[1], &sd[1]);
        gaussian_process_predict(first, t + i * COLUMNS, &mean[2], &sd[2]);
        assert_true(mean[0] == mean[1] && sd[0] == sd[1]);
        after += fabs(mean[0] - z[i]);
        before += fabs(mean[2] - z[i]);
    }
    assert_true(after < before); // the added rows were learnt
    for (size_t i = 0; i < 60; i++) {
        double mean[2], sd[2];
        gaussian_process_left_out(step, i, &mean[0], &sd[0]);
        gaussian_process_left_out(whole, i, &mean[1], &sd[1]);
        assert_true(mean[0] == mean[1] && sd[0] == sd[1]);
    }
    gaussian_process_free(first);
    gaussian_process_free(step);
    gaussian_process_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_smooth_function_is_learnt_from_few_rows),
        cmocka_unit_test(distance_is_doubt),
        cmocka_unit_test(missing_values_and_constant_columns_are_harmless),
        cmocka_unit_test(equal_rows_do_not_break_the_factor),
        cmocka_unit_test(a_left_out_row_is_predicted_worse_than_a_seen_one),
        cmocka_unit_test(of_many_rows_the_newest_are_taken),
        cmocka_unit_test(a_row_left_out_is_a_row_never_seen),
        cmocka_unit_test(rows_one_by_one_or_at_once_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
