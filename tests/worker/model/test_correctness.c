// The probability of being correct: the rate where there is little to learn from, and a rule where
// there is one.
#include "worker/model/correctness.h"

#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 200
#define COLUMNS 2

static const bool param[COLUMNS];

struct data {
    float x[ROWS * COLUMNS];
    bool correct[ROWS];
};

// Column 0 decides when there is a rule; column 1 is noise.
static void fill(struct data *data, uint64_t seed, bool rule)
{
    struct stats_rng rng;

    stats_rng_init(&rng, seed, 1);
    for (size_t i = 0; i < ROWS; i++) {
        double u = stats_rng_unit(&rng), v = stats_rng_unit(&rng);

        data->x[i * COLUMNS] = (float)u;
        data->x[i * COLUMNS + 1] = (float)v;
        data->correct[i] = rule ? u < 0.6 : stats_rng_unit(&rng) < 0.6;
    }
}

static struct ensemble_data view(const struct data *data, size_t rows)
{
    return (struct ensemble_data){.x = data->x,
                                  .rows = rows,
                                  .columns = COLUMNS,
                                  .param = param,
                                  .schedule = {.each = 100, .rows_max = ROWS}};
}

static struct correctness fit(const struct data *data, size_t rows, const struct correctness *old,
                              bool classify)
{
    struct ensemble_data seen = view(data, rows);
    struct correctness ret;
    struct err err = ERR_INIT;

    if (correctness_fit(&ret, old, &seen, data->correct, classify, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return ret;
}

static void without_a_classifier_it_is_the_shrunk_share(void **state)
{
    static const struct {
        size_t rows, right; // the first `right` rows are correct
        double rate;        // as if two more rows had been correct at 0.8
    } row[] = {{0, 0, 0.8},         {1, 1, 2.6 / 3},         {1, 0, 1.6 / 3},
               {10, 5, 6.6 / 12},   {100, 100, 101.6 / 102}, {100, 0, 1.6 / 102},
               {100, 2, 3.6 / 102}, {100, 98, 99.6 / 102}};
    struct data *data = xcalloc(1, sizeof(*data));

    (void)state;
    fill(data, 1, true);
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        // With fewer than three rows of either class there is no classifier even when asked for.
        bool classify = row[i].right < 3 || row[i].rows - row[i].right < 3;
        double p[3];

        for (size_t j = 0; j < row[i].rows; j++) {
            data->correct[j] = j < row[i].right;
        }
        struct correctness correctness = fit(data, row[i].rows, NULL, classify);
        assert_null(correctness.ensemble);
        assert_true(fabs(correctness.rate - row[i].rate) < 1e-12);
        assert_int_equal(correctness_predict(&correctness, data->x, 3, p, NULL), 0);
        assert_true(p[0] == p[1] && p[1] == p[2]);
        assert_true(fabs(p[0] - fmin(fmax(row[i].rate, 0.01), 0.99)) < 1e-12);
        correctness_release(&correctness);
    }
    free(data);
}

static void a_rule_is_learnt_for_rows_never_seen(void **state)
{
    struct data *data = xcalloc(2, sizeof(*data));
    double p[ROWS];
    size_t right = 0;

    (void)state;
    fill(&data[0], 1, true);
    fill(&data[1], 2, true);
    struct correctness correctness = fit(&data[0], ROWS, NULL, true);
    assert_non_null(correctness.ensemble);
    assert_true(correctness.slope > 0);
    assert_int_equal(correctness_predict(&correctness, data[1].x, ROWS, p, NULL), 0);
    for (size_t i = 0; i < ROWS; i++) {
        assert_true(p[i] >= 0.01 && p[i] <= 0.99);
        right += (p[i] >= 0.5) == data[1].correct[i];
    }
    assert_true(right >= ROWS * 95 / 100);
    correctness_release(&correctness);
    correctness_release(&correctness); // a second time is harmless
    free(data);
}

// An ensemble that has learnt nothing changes nothing: its curve is flat at the rate.
static void noise_leaves_the_rate(void **state)
{
    struct data *data = xcalloc(2, sizeof(*data));
    double p[ROWS], off = 0;

    (void)state;
    fill(&data[0], 3, false);
    fill(&data[1], 4, false);
    struct correctness correctness = fit(&data[0], ROWS, NULL, true);
    assert_int_equal(correctness_predict(&correctness, data[1].x, ROWS, p, NULL), 0);
    for (size_t i = 0; i < ROWS; i++) {
        off += fabs(p[i] - correctness.rate) / ROWS;
    }
    assert_true(off < 0.12);
    correctness_release(&correctness);
    free(data);
}

static void missing_values_are_predicted_like_any_others(void **state)
{
    static const float missing[COLUMNS] = {NAN, NAN};
    struct data *data = xcalloc(1, sizeof(*data));
    double p = NAN;

    (void)state;
    fill(data, 1, true);
    for (size_t i = 0; i < ROWS; i += 3) {
        data->x[i * COLUMNS + 1] = NAN;
    }
    struct correctness correctness = fit(data, ROWS, NULL, true);
    assert_int_equal(correctness_predict(&correctness, missing, 1, &p, NULL), 0);
    assert_true(p >= 0.01 && p <= 0.99);
    assert_int_equal(correctness_predict(&correctness, missing, 0, NULL, NULL), 0);
    correctness_release(&correctness);
    free(data);
}

static void in_turn_or_at_once_is_the_same_and_either_may_go_first(void **state)
{
    struct data *data = xcalloc(1, sizeof(*data));
    double p[2][ROWS];

    (void)state;
    fill(data, 5, true);
    struct correctness first = fit(data, ROWS / 2, NULL, true);
    struct correctness second = fit(data, ROWS, &first, true);
    correctness_release(&first);
    struct correctness once = fit(data, ROWS, NULL, true);
    assert_int_equal(correctness_predict(&second, data->x, ROWS, p[0], NULL), 0);
    assert_int_equal(correctness_predict(&once, data->x, ROWS, p[1], NULL), 0);
    assert_memory_equal(p[0], p[1], sizeof(p[0]));
    correctness_release(&once);
    correctness_release(&second);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_classifier_it_is_the_shrunk_share),
        cmocka_unit_test(a_rule_is_learnt_for_rows_never_seen),
        cmocka_unit_test(noise_leaves_the_rate),
        cmocka_unit_test(missing_values_are_predicted_like_any_others),
        cmocka_unit_test(in_turn_or_at_once_is_the_same_and_either_may_go_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
