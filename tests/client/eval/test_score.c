// The measures of forecasts: small cases by hand, the properties of weights and order, and
// intervals that have the coverage that they claim. tests/e2e/test_eval.sh compares with SciPy.
#include "client/eval/score.h"
#include "common/mem.h"
#include "common/stats.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four headers above.
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct score_options plain = {.risk = 0.1};

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

// A row whose bins have `p` at `bin`; the rest is spread over the others.
static struct score_row row_of(size_t bin, double p, double outcome)
{
    struct score_row row = {.weight = 1, .correct = true, .has_bins = true};
    static uint64_t cluster;
    row.cluster = ++cluster;
    row.p_correct = row.p_improves = row.confidence = row.mean_log2 = NAN;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        row.bins[i] = i == bin ? p : (1 - p) / (BIN_COUNT - 1);
    }
    row.log2 = outcome;
    return row;
}

static struct score_row call_of(double p_improves, bool improved)
{
    struct score_row row = row_of(3, 1, -0.1);
    row.has_bins = row.correct = false;
    row.p_improves = p_improves;
    row.improved = improved;
    return row;
}

static struct score_row random_row(struct stats_rng *rng)
{
    struct score_row row = {.cluster = stats_rng_below(rng, 25), .has_bins = true};
    row.weight = 1 + (double)stats_rng_below(rng, 3);
    double sum = 0;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        sum += row.bins[i] = stats_rng_below(rng, 3) == 0 ? 0.01 : stats_rng_unit(rng);
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        row.bins[i] /= sum;
    }
    // There are few different values, so that all kinds of ties occur.
    row.mean_log2 = floor(8 * stats_rng_normal(rng)) / 8;
    row.log2 = floor(4 * (row.mean_log2 + stats_rng_normal(rng))) / 4;
    row.correct = stats_rng_unit(rng) < 0.8;
    row.p_correct = floor(10 * stats_rng_unit(rng)) / 10;
    row.p_improves = floor(20 * stats_rng_unit(rng)) / 20;
    row.confidence = floor(6 * stats_rng_unit(rng)) / 6;
    row.improved = row.correct && row.log2 > 0.2;
    return row;
}

static void crps_is_the_integral(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 3, 0);
    for (int round = 0; round < 40; round++) {
        double p[BIN_COUNT], sum = 0, area = 0, step = 1e-3;
        for (size_t i = 0; i < BIN_COUNT; i++) {
            sum += p[i] = pow(stats_rng_unit(&rng), 3);
        }
        for (size_t i = 0; i < BIN_COUNT; i++) {
            p[i] /= sum;
        }
        double y = 16 * stats_rng_unit(&rng) - 6;
        for (double t = -12 + step / 2; t < 18; t += step) {
            double miss = bins_cdf(p, t) - (t >= y);
            area += miss * miss * step;
        }
        assert_near(score_crps(p, y), area, 2e-3);
    }
    // All probability in one bin of width h with the outcome in its middle gives h / 12.
    double one[BIN_COUNT] = {[9] = 1};
    assert_near(score_crps(one, 2.5), 1.0 / 12, 1e-12);
}

static void bins_are_judged_as_by_hand(void **state)
{
    (void)state;
    // Bin 4 holds 0, bin 5 holds 0.1 to 0.3, bin 7 holds 0.7 to 1.3.
    struct score_row row[] = {row_of(4, 0.6, 0), row_of(4, 0.6, 0.1), row_of(4, 0.3, 1)};
    struct score_value v[SCORE_COUNT];
    score_compute(v, row, 3, &plain);
    assert_near(v[SCORE_ACCURACY].value, 1.0 / 3, 1e-12);
    assert_near(v[SCORE_WITHIN_ONE].value, 2.0 / 3, 1e-12);
    double rest = 0.4 / 14, low = 0.7 / 14;
    double brier = (0.16 + 14 * rest * rest + 0.36 + (1 - rest) * (1 - rest) + 13 * rest * rest +
                    0.09 + (1 - low) * (1 - low) + 13 * low * low) /
                   6;
    assert_near(v[SCORE_HALF_BRIER].value, brier, 1e-12);
    assert_near(v[SCORE_NLL].value, -(log(0.6) + log(rest) + log(low)) / 3, 1e-12);
    assert_int_equal(v[SCORE_NLL].rows, 3);
    assert_int_equal(v[SCORE_AUC].rows, 0);
    assert_true(isnan(v[SCORE_AUC].value) && isnan(v[SCORE_ACCURACY].lo));
    // A forecast of the mean alone, and one whose candidate is wrong.
    row[0].has_bins = row[1].correct = false;
    row[0].mean_log2 = 0.5;
    score_compute(v, row, 3, &plain);
    assert_int_equal(v[SCORE_CRPS].rows, 2);
    assert_near(v[SCORE_CRPS].value, (0.5 + score_crps(row[2].bins, 1)) / 2, 1e-12);
    assert_int_equal(v[SCORE_HALF_BRIER].rows, 1);
}

static void calls_are_judged_as_by_hand(void **state)
{
    (void)state;
    // In order of confidence: 0.9 right, 0.8 wrong, 0.7 right, 0.6 right.
    struct score_row row[] = {call_of(0.4, false), call_of(0.9, true), call_of(0.2, true),
                              call_of(0.7, true)};
    struct score_value v[SCORE_COUNT];
    struct score_options options = {.risk = 0.25};
    score_compute(v, row, 4, &options);
    assert_near(v[SCORE_COVERAGE].value, 1, 1e-12);
    options.risk = 0.2;
    score_compute(v, row, 4, &options);
    assert_near(v[SCORE_COVERAGE].value, 0.25, 1e-12);
    // The generalised risk is 0, ¼, ¼, ¼ at coverages ¼, ½, ¾, 1.
    assert_near(v[SCORE_AUGRC].value, 0.25 * (0.125 + 0.25 + 0.25), 1e-12);
    // Over the second quarter L = c - ¼, then L = ¼.
    assert_near(v[SCORE_AURC].value, (0.25 - 0.25 * log(2)) + 0.25 * log(2), 1e-12);
    assert_near(v[SCORE_AUC].value, 2.0 / 3, 1e-12);
    struct score_step *step;
    assert_int_equal(score_steps(&step, row, 4), 4);
    assert_near(step[1].coverage, 0.5, 1e-12);
    assert_near(step[1].risk, 0.5, 1e-12);
    assert_near(step[3].risk, 0.25, 1e-12);
    free(step);
}

static void ranks_are_judged_as_by_hand(void **state)
{
    (void)state;
    // Forecasts 1 2 2 3, outcomes 1 3 2 2. Concordant are 1-2, 1-3 and 1-4, discordant is 2-4; 2-3
    // and 3-4 are ties.
    static const double said[] = {1, 2, 2, 3}, was[] = {1, 3, 2, 2};
    struct score_row row[20];
    for (size_t i = 0; i < 4; i++) {
        row[i] = row_of(0, 1, was[i]);
        row[i].mean_log2 = said[i];
    }
    struct score_value v[SCORE_COUNT];
    score_compute(v, row, 4, &plain);
    assert_near(v[SCORE_TAU].value, (3.0 - 1.0) / 5.0, 1e-12);
    // Of 20 candidates the best two by outcome are 18 and 19. By forecast they are 19 and 0.
    for (size_t i = 0; i < 20; i++) {
        row[i] = row_of(0, 1, (double)i / 10);
        row[i].mean_log2 = i == 0 ? 5 : (double)i / 10;
    }
    score_compute(v, row, 20, &plain);
    assert_near(v[SCORE_RECALL].value, 0.5, 1e-12);
    // A wrong candidate is never among the best.
    row[19].correct = false;
    score_compute(v, row, 20, &plain);
    assert_near(v[SCORE_RECALL].value, 0, 1e-12);
}

static void calibration_error_is_free_of_noise(void **state)
{
    (void)state;
    struct stats_rng rng;
    double calibrated = 0, off = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        stats_rng_init(&rng, seed, 1);
        struct score_row row[400];
        for (size_t i = 0; i < 400; i++) {
            row[i] = row_of(3, 1, -0.1);
            row[i].p_correct = 0.1 + 0.7 * stats_rng_unit(&rng);
            row[i].correct = stats_rng_unit(&rng) < row[i].p_correct;
        }
        struct score_value v[SCORE_COUNT];
        score_compute(v, row, 400, &plain);
        calibrated += v[SCORE_ECE_CORRECT].value / 40;
        for (size_t i = 0; i < 400; i++) {
            row[i].p_correct += 0.2;
        }
        score_compute(v, row, 400, &plain);
        off += v[SCORE_ECE_CORRECT].value / 40;
    }
    assert_near(off, 0.2, 0.01);
    // Bands of 40 have standard errors of 0.07; without the correction the mean would be 0.056.
    assert_true(calibrated < 0.045);
    // An exact case: all state 0.8 and 3 of 4 came true; the standard deviation is sqrt(3/16/3) =
    // ¼.
    struct score_row four[4];
    for (size_t i = 0; i < 4; i++) {
        four[i] = row_of(3, 1, -0.1);
        four[i].p_correct = 0.8;
        four[i].correct = i > 0;
    }
    struct score_value v[SCORE_COUNT];
    score_compute(v, four, 4, &plain);
    assert_near(v[SCORE_ECE_CORRECT].value, 0, 1e-12);
    for (size_t i = 0; i < 4; i++) {
        four[i].p_correct = 0.05;
    }
    score_compute(v, four, 4, &plain);
    double z = 2.8,
           noisy = 0.25 * sqrt(M_2_PI) * exp(-z * z / 2) + 0.7 * (1 - 2 * stats_normal_cdf(-z));
    assert_near(v[SCORE_ECE_CORRECT].value, 1.4 - noisy, 1e-12);
}

static void order_does_not_matter_and_weight_two_is_two_rows(void **state)
{
    (void)state;
    struct stats_rng rng;
    for (uint64_t seed = 0; seed < 30; seed++) {
        struct score_row row[60], twice[240];
        struct score_value v[SCORE_COUNT], w[SCORE_COUNT];
        stats_rng_init(&rng, seed, 2);
        size_t n = 0;
        for (size_t i = 0; i < 60; i++) {
            row[i] = random_row(&rng);
            for (double k = 0; k < row[i].weight; k++) {
                twice[n] = row[i];
                twice[n++].weight = 1;
            }
        }
        score_compute(v, row, 60, &plain);
        score_compute(w, twice, n, &plain);
        for (size_t m = 0; m < SCORE_COUNT; m++) {
            bool error = m >= SCORE_ECE_BIN && m <= SCORE_ECE_CALL;
            if (!error) { // their correction for noise tells one row of weight 2 from two rows
                assert_near(v[m].value, w[m].value, 1e-9);
            }
        }
        for (size_t i = 59; i > 0; i--) {
            size_t j = stats_rng_below(&rng, i + 1);
            struct score_row swap = row[i];
            row[i] = row[j];
            row[j] = swap;
        }
        score_compute(w, row, 60, &plain);
        for (size_t m = 0; m < SCORE_COUNT; m++) {
            assert_near(v[m].value, w[m].value, 1e-9);
        }
    }
}

static void intervals_hold_what_they_promise(void **state)
{
    (void)state;
    struct stats_rng rng;
    const struct score_options options = {.risk = 0.1, .draws = 200, .seed = 5};
    size_t inside = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        // 40 clusters of 5 rows that all hit or all miss: only the clusters are independent.
        struct score_row row[200];
        struct score_value v[SCORE_COUNT], again[SCORE_COUNT];
        stats_rng_init(&rng, seed, 3);
        bool hit = false;
        for (size_t i = 0; i < 200; i++) {
            if (i % 5 == 0) {
                hit = stats_rng_unit(&rng) < 0.7;
            }
            row[i] = row_of(hit ? 4 : 9, 0.9, 0);
            row[i].cluster = i / 5;
        }
        score_compute(v, row, 200, &options);
        inside += v[SCORE_ACCURACY].lo <= 0.7 && 0.7 <= v[SCORE_ACCURACY].hi;
        assert_true(v[SCORE_ACCURACY].lo <= v[SCORE_ACCURACY].value &&
                    v[SCORE_ACCURACY].value <= v[SCORE_ACCURACY].hi);
        if (seed == 0) {
            score_compute(again, row, 200, &options);
            assert_memory_equal(v, again, sizeof v);
        }
    }
    assert_in_range(inside, 178, 198); // 95 % of 200, and three standard errors
}

static bool stop_at_third(void *owner)
{
    return ++*(size_t *)owner == 3;
}

static void without_clusters_or_time_there_are_no_intervals(void **state)
{
    (void)state;
    struct score_row row[] = {row_of(4, 0.6, 0), row_of(4, 0.6, 0.1)};
    struct score_value v[SCORE_COUNT];
    struct score_options options = {.risk = 0.1, .draws = 10};
    score_compute(v, row, 2, &options);
    assert_false(isnan(v[SCORE_ACCURACY].lo));
    options.stop = stop_at_third;
    size_t asked = 0;
    options.owner = &asked;
    score_compute(v, row, 2, &options);
    assert_true(isnan(v[SCORE_ACCURACY].lo) && v[SCORE_ACCURACY].value == 0.5 && asked == 3);
    row[1].cluster = row[0].cluster;
    options.stop = NULL;
    score_compute(v, row, 2, &options);
    assert_true(isnan(v[SCORE_ACCURACY].lo));
    assert_int_equal(score_clusters(row, 2), 1);
    score_compute(v, NULL, 0, &options);
    for (size_t m = 0; m < SCORE_COUNT; m++) {
        assert_true(isnan(v[m].value) && v[m].rows == 0);
    }
    row[1].weight = 3;
    assert_near(score_effective(row, 2), 1.6, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crps_is_the_integral),
        cmocka_unit_test(bins_are_judged_as_by_hand),
        cmocka_unit_test(calls_are_judged_as_by_hand),
        cmocka_unit_test(ranks_are_judged_as_by_hand),
        cmocka_unit_test(calibration_error_is_free_of_noise),
        cmocka_unit_test(order_does_not_matter_and_weight_two_is_two_rows),
        cmocka_unit_test(intervals_hold_what_they_promise),
        cmocka_unit_test(without_clusters_or_time_there_are_no_intervals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
