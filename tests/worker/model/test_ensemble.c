// Cross-fitted ensembles: the member that predicts a row has not seen it, and fitting row by row
// gives the same as fitting once.
#include "worker/model/ensemble.h"

#include "worker/model/columns.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 120
#define COLUMNS 3
#define FOLDS 5

static const struct boost_config config = {.rounds = 20,
                                           .depth = 3,
                                           .rate = 0.3,
                                           .min_child_weight = 1,
                                           .row_share = 1,
                                           .column_share = 1,
                                           .penalty = 1};
static const bool param[COLUMNS] = {false, true, false};
static float x[ROWS * COLUMNS], label[ROWS];

// Column 2 repeats column 1.
static struct ensemble_data data_of(size_t from, size_t to)
{
    for (size_t i = 0; i < ROWS; i++) {
        struct stats_rng rng;
        stats_rng_init(&rng, 3, i);
        x[i * COLUMNS] = (float)stats_rng_unit(&rng);
        x[i * COLUMNS + 1] = (float)stats_rng_below(&rng, 4);
        x[i * COLUMNS + 2] = 2 * x[i * COLUMNS + 1] + 1;
        label[i] = 10 + x[i * COLUMNS] + 3 * x[i * COLUMNS + 1];
    }
    return (struct ensemble_data){.x = x + from * COLUMNS,
                                  .rows = to - from,
                                  .columns = COLUMNS,
                                  .first = from,
                                  .param = param,
                                  .label = label + from,
                                  .schedule = {.each = 100, .rows_max = 100}};
}

static void fit(struct ensemble **ensemble, const struct ensemble *old,
                const struct ensemble_data *data)
{
    assert_int_equal(ensemble_fit(ensemble, old, &config, FOLDS, data, NULL), 0);
}

static void columns_that_repeat_or_do_not_vary_are_left_out(void **state)
{
    struct ensemble_data data = data_of(0, ROWS);
    size_t count, *chosen = columns_informative(x, ROWS, COLUMNS, param, NULL, &count);
    (void)state;
    (void)data;
    assert_int_equal(count, 2);
    assert_int_equal(chosen[0], 1); // the parameter comes first
    assert_int_equal(chosen[1], 0);
    free(chosen);
}

static void in_turn_or_at_once_is_the_same(void **state)
{
    struct ensemble *ensemble = NULL, *next = NULL, *whole = NULL;
    float a[ROWS], b[ROWS];
    (void)state;
    for (size_t rows = 20; rows <= ROWS; rows += 1 + rows % 3) {
        // From row 100 on the oldest rows are dropped. One fit from scratch uses all rows that are
        // left.
        struct ensemble_data data = data_of(rows > 100 ? rows - 100 : 0, rows);
        fit(&next, ensemble, &data);
        ensemble_free(ensemble);
        ensemble = next;
        fit(&whole, NULL, &data);
        assert_int_equal(ensemble_predict(ensemble, x, ROWS, a, NULL), 0);
        assert_int_equal(ensemble_predict(whole, x, ROWS, b, NULL), 0);
        assert_memory_equal(a, b, sizeof(a));
        ensemble_free(whole);
    }
    assert_true(fabsf(a[3] - label[3]) < 0.5f);
    ensemble_free(ensemble);
}

static void a_row_is_left_out_of_its_own_prediction(void **state)
{
    struct ensemble_data data = data_of(0, 60);
    struct ensemble *ensemble = NULL, *wrong = NULL;
    float a[ROWS], b[ROWS];
    (void)state;
    fit(&ensemble, NULL, &data);
    assert_int_equal(ensemble_out_of_fold(ensemble, &data, a, NULL), 0);
    label[7] += 100;
    fit(&wrong, NULL, &data);
    assert_int_equal(ensemble_out_of_fold(wrong, &data, b, NULL), 0);
    assert_true(a[7] == b[7]);
    assert_true(memcmp(a, b, 60 * sizeof(*a)) != 0); // other members have learnt it
    ensemble_free(ensemble);
    ensemble_free(wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_that_repeat_or_do_not_vary_are_left_out),
        cmocka_unit_test(in_turn_or_at_once_is_the_same),
        cmocka_unit_test(a_row_is_left_out_of_its_own_prediction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
