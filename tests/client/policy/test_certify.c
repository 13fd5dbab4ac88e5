// Thresholds with a guarantee: small sets whose results were computed by hand, and what is refused.
// test_certify_risk.c tests whether the guarantees hold.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/certify.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance)) {
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
    }
}

static void row_of(struct certify_row *row, double score, bool improves)
{
    *row = (struct certify_row){
        .score = score, .forecast = NAN, .propensity = 1, .measured = true, .improves = improves};
}

// ---- computed by hand ----

static void recall_takes_the_kth_smallest_improver(void **state)
{
    (void)state;
    struct certify_row rows[40];
    for (size_t i = 0; i < 20; i++) {
        row_of(&rows[i], 0.05 * (double)(20 - i), true);
        // Rows that do not improve do not count for recall.
        row_of(&rows[20 + i], 0.001 * (double)i, false);
    }
    struct certificate certificate = certify_recall(rows + 1, 39, 0.1); // 19 improvers: k = 2
    assert_true(certificate.certified);
    assert_near(certificate.tau, 0.1, 1e-12);
    assert_int_equal(certificate.rows, 19);
    assert_int_equal(certificate.improvers_below, 1);
    assert_non_null(strstr(certificate.text, "at most 10 % are discarded on average"));
    assert_non_null(strstr(certificate.text, "like the 19 that were measured"));
    certificate = certify_recall(rows + 12, 8, 0.1);
    assert_false(certificate.certified);
    assert_true(certificate.tau == -INFINITY);
    assert_non_null(strstr(certificate.text, "8 improvers were measured"));
    assert_non_null(strstr(certificate.text, "needs 9"));
    assert_true(certify_recall(rows + 11, 9, 0.1).certified);
    assert_false(certify_recall(rows + 17, 3, 0.2).certified);
    assert_true(certify_recall(rows + 16, 4, 0.2).certified);
}

static void joint_allows_what_the_correction_leaves(void **state)
{
    (void)state;
    struct certify_row rows[49];
    for (size_t i = 0; i < 49; i++) {
        row_of(&rows[i], (double)i, i % 7 == 3); // improvers are 3, 10, 17, 24 and so on
    }
    struct certificate certificate = certify_joint(rows, 49, 0.05); // floor(2.5) - 1 = 1 is allowed
    assert_true(certificate.certified && certificate.tau == 10);
    assert_int_equal(certificate.below, 10);
    assert_int_equal(certificate.improvers_below, 1);
    assert_int_equal(certificate.improvers, 7);
    assert_true(certify_joint(rows, 49, 0.02).tau == 3); // feasible from 49 on
    certificate = certify_joint(rows, 48, 0.02);
    assert_false(certificate.certified);
    assert_non_null(strstr(certificate.text, "needs 49"));
    assert_true(certify_joint(rows, 49, 0.5).tau == 48); // never above what was seen
}

static void selective_needs_the_counts_of_the_binomial(void **state)
{
    static const struct {
        double alpha, delta;
        size_t least;
    } zero[] = {{0.1, 0.1, 22},  {0.1, 0.05, 29},  {0.2, 0.1, 11},   {0.2, 0.05, 14},
                {0.05, 0.1, 45}, {0.05, 0.05, 59}, {0.02, 0.1, 114}, {0.02, 0.05, 149}};
    static const struct {
        unsigned rows, tenth, fifth; // improvers that alpha .1 and .2 allow at delta .1
    } most[] = {{22, 0, 1},   {30, 0, 2},    {50, 1, 5},    {75, 3, 10},  {100, 5, 14},
                {150, 9, 23}, {200, 14, 32}, {300, 22, 50}, {424, 34, 73}};
    (void)state;
    struct certify_row rows[200];
    for (size_t i = 0; i < 200; i++) {
        row_of(&rows[i], (double)i, false);
    }
    for (size_t i = 0; i < ARRAY_LEN(zero); i++) {
        size_t least = zero[i].least;
        struct certificate certificate =
            certify_selective(rows, least + 1, zero[i].alpha, zero[i].delta);
        assert_true(certificate.certified && certificate.tau == (double)least);
        assert_int_equal(certificate.below, least);
        certificate = certify_selective(rows, least, zero[i].alpha, zero[i].delta);
        assert_false(certificate.certified);
    }
    for (size_t i = 0; i < ARRAY_LEN(most); i++) {
        assert_true(stats_binomial_cdf(most[i].tenth, most[i].rows, 0.1) <= 0.1);
        assert_true(stats_binomial_cdf(most[i].tenth + 1, most[i].rows, 0.1) > 0.1);
        assert_true(stats_binomial_cdf(most[i].fifth, most[i].rows, 0.2) <= 0.1);
        assert_true(stats_binomial_cdf(most[i].fifth + 1, most[i].rows, 0.2) > 0.1);
    }
    rows[30].improves = true; // at 31 rows none is allowed, so the sequence ends there
    assert_true(certify_selective(rows, 200, 0.1, 0.1).tau == 30);
    rows[5].improves = true;
    assert_non_null(strstr(certify_selective(rows, 200, 0.1, 0.1).text, "too many improve"));
}

static void equal_scores_are_on_one_side(void **state)
{
    (void)state;
    struct certify_row rows[60];
    for (size_t i = 0; i < 60; i++) {
        row_of(&rows[i], i < 10 ? 0 : i < 40 ? 1 : 2, false);
    }
    assert_false(certify_selective(rows, 40, 0.1, 0.1).certified); // only 10 rows are below 1
    struct certificate certificate = certify_selective(rows, 60, 0.1, 0.1);
    assert_true(certificate.tau == 2);
    assert_int_equal(certificate.below, 40);
}

static void rows_of_one_cluster_count_once(void **state)
{
    (void)state;
    struct certify_row rows[115];
    for (size_t i = 0; i < 115; i++) {
        row_of(&rows[i], (double)(i / 5), false);
        rows[i].cluster = 1 + i / 5;
    }
    // 23 clusters: 22 below the highest.
    struct certificate certificate = certify_selective(rows, 115, 0.1, 0.1);
    assert_true(certificate.certified);
    assert_int_equal(certificate.rows, 23);
    assert_false(certify_selective(rows, 110, 0.1, 0.1).certified);
    for (size_t i = 0; i < 110; i++) {
        rows[i].cluster = 0;
    }
    assert_int_equal(certify_selective(rows, 110, 0.1, 0.1).rows, 110);
}

static void online_needs_as_many_as_the_binomial_at_full_bet(void **state)
{
    static const struct {
        double alpha, delta;
        size_t least;
    } cases[] = {{0.1, 0.1, 22}, {0.1, 0.05, 29}, {0.2, 0.1, 11}, {0.05, 0.05, 59}};
    (void)state;
    struct certify_row row;
    row_of(&row, 0, false);
    const double grid[] = {1};
    struct certify_online online;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        certify_online_init(&online, cases[i].alpha, cases[i].delta, 0.1, grid, 1);
        for (size_t b = 0; b < CERTIFY_BETS; b++) {
            online.bet[b] = 1;
        }
        for (size_t n = 1; n <= cases[i].least; n++) {
            assert_false(certify_online_now(&online).certified);
            certify_online_add(&online, &row, 1);
        }
        assert_true(certify_online_now(&online).certified);
        assert_true(certify_online_now(&online).tau == 1);
    }
    certify_online_init(&online, 0.1, 0.1, 0.1, grid, 1); // with three bets it takes some more rows
    for (size_t n = 0; n < 33; n++) {
        certify_online_add(&online, &row, 1);
    }
    assert_true(certify_online_now(&online).certified);
    assert_int_equal(certify_online_now(&online).below, 33);
    certify_online_restart(&online, NULL, 0); // as after a change of device or forecaster
    assert_false(certify_online_now(&online).certified);
    assert_int_equal(certify_online_now(&online).rows, 0);
}

static void online_wealth_is_the_formula(void **state)
{
    (void)state;
    const double grid[] = {0.5, 2};
    struct certify_online online;
    certify_online_init(&online, 0.2, 0.1, 0.1, grid, 2);
    struct certify_row row = {.score = 1, .propensity = 0.5, .measured = true};
    certify_online_add(&online, &row, 0.25);
    row.improves = true;
    certify_online_add(&online, &row, 0.25);
    row.measured = false;
    certify_online_add(&online, &row, 0.25);
    for (size_t b = 0; b < CERTIFY_BETS; b++) {
        double lambda = online.bet[b] * 0.25 / 0.8;
        assert_near(exp(online.at[1].log_wealth[b]),
                    (1 + lambda / 0.5 * 0.2) * (1 - lambda / 0.5 * 0.8), 1e-12);
        assert_true(online.at[0].log_wealth[b] == 0); // the row is not below it
    }
}

static void missed_is_the_weighted_share(void **state)
{
    (void)state;
    struct certify_row rows[10];
    for (size_t i = 0; i < 10; i++) {
        row_of(&rows[i], 0, i == 0);
        rows[i].measured = i < 3;
        rows[i].propensity = i == 0 ? 0.25 : 0.5;
        rows[i].forecast = i < 4 ? 0.2 : 0.5;
    }
    // Weights 4, 2, 2; residuals .8, -.2, -.2.
    struct false_omission omission = certify_false_omission(rows, 10, 0.95);
    assert_true(omission.estimated);
    assert_near(omission.hajek, 0.5, 1e-12);
    assert_near(omission.share, 0.38 + 2.4 / 8, 1e-12);
    assert_true(omission.upper > omission.share && omission.upper <= 1);
    assert_int_equal(omission.audited, 3);
    assert_non_null(strstr(omission.text, "of the 10 discarded"));
    assert_false(omission.shown);
}

static void the_bound_is_where_the_bets_reach_the_confidence(void **state)
{
    // The bets, and their shares of the wealth. Where everything was audited those with the control
    // variate win as much as the others.
    static const double bet[][2] = {{1, 0.5},    {0.75, 0.1}, {0.5, 0.1},  {0.25, 0.1},
                                    {0.9, 0.06}, {0.5, 0.07}, {0.25, 0.07}};
    double odds, wealth = 0;
    (void)state;
    struct certify_row rows[60];
    for (size_t i = 0; i < 60; i++) {
        row_of(&rows[i], 0, false);
    }
    odds = certify_false_omission(rows, 60, 0.95).upper;
    assert_true(odds > 0.049 && odds < 0.059); // one bet of 1 would give 1 - .05^(1/60) = .049
    odds /= 1 - odds;
    for (size_t i = 0; i < ARRAY_LEN(bet); i++) {
        wealth += bet[i][1] * pow(1 + bet[i][0] * odds, 60);
    }
    assert_near(wealth, 20, 1e-6);
    // With all outcomes known, the bound is not below the known share.
    for (size_t i = 0; i < 60; i++) {
        rows[i].improves = true;
    }
    assert_near(certify_false_omission(rows, 60, 0.95).share, 1, 1e-12);
    assert_true(certify_false_omission(rows, 60, 0.95).upper == 1);
}

// ---- what is refused ----

static void refused(const struct certify_row *rows, size_t n, double alpha, double delta)
{
    const struct certificate all[] = {certify_recall(rows, n, alpha), certify_joint(rows, n, alpha),
                                      certify_selective(rows, n, alpha, delta)};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        assert_false(all[i].certified);
        assert_true(all[i].tau == -INFINITY);
        assert_non_null(strstr(all[i].text, "nothing is discarded: "));
        assert_true(strlen(all[i].text) + 1 < sizeof(all[i].text));
    }
}

static void impossible_arguments_certify_nothing(void **state)
{
    static const double wrong[] = {0, 1, -0.1, 1.5, NAN, INFINITY};
    const double grid[] = {0.3, 0.6}, falling[] = {0.6, 0.3}, endless[] = {0.3, INFINITY};
    (void)state;
    struct certify_row rows[100];
    for (size_t i = 0; i < 100; i++) {
        row_of(&rows[i], (double)i / 100, i > 50 && i % 3 == 0);
    }
    assert_true(certify_selective(rows, 100, 0.1, 0.1).certified);
    refused(NULL, 0, 0.1, 0.1);
    struct certify_online online;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        refused(rows, 100, wrong[i], 0.1);
        assert_false(certify_selective(rows, 100, 0.1, wrong[i]).certified);
        assert_false(certify_false_omission(rows, 100, wrong[i]).estimated);
        certify_online_init(&online, wrong[i], 0.1, 0.1, grid, 2);
        for (size_t j = 0; j < 100; j++) {
            assert_false(certify_online_add(&online, &rows[j % 50], 1));
        }
        assert_false(certify_online_now(&online).certified);
        if (wrong[i] != 1) { // 1 is a valid propensity
            double kept = rows[7].propensity;
            rows[7].propensity = wrong[i];
            refused(rows, 100, 0.1, 0.1);
            assert_true(certify_false_omission(rows, 100, 0.95).upper == 1);
            certify_online_init(&online, 0.1, 0.1, 0.1, grid, 2);
            for (size_t j = 0; j < 100; j++) {
                certify_online_add(&online, &rows[j % 50], 1);
            }
            assert_non_null(strstr(certify_online_now(&online).text, "propensity"));
            rows[7].propensity = kept;
        }
    }
    rows[3].propensity = 0.5; // the outcomes were selected
    refused(rows, 100, 0.1, 0.1);
    certify_online_init(&online, 0.1, 0.1, 0.1, falling, 2);
    assert_non_null(strstr(certify_online_now(&online).text, "does not rise"));
    certify_online_init(&online, 0.1, 0.1, 0.1, endless, 2);
    assert_false(certify_online_now(&online).certified);
    certify_online_init(&online, 0.1, 0.1, 0.1, NULL, 9);
    assert_non_null(strstr(certify_online_now(&online).text, "no grid"));
    assert_true(certify_false_omission(NULL, 0, 0.95).upper == 1);
}

static void scores_that_are_none_are_never_discarded(void **state)
{
    double scores[100], grid[CERTIFY_GRID_MAX];
    (void)state;
    struct certify_row rows[100];
    for (size_t i = 0; i < 100; i++) {
        row_of(&rows[i], NAN, i % 2 == 0);
        scores[i] = NAN;
    }
    refused(rows, 100, 0.1, 0.1);
    assert_int_equal(certify_grid(scores, 100, grid), 0);
    assert_int_equal(certify_grid(scores, 0, grid), 0);
    for (size_t i = 0; i < 100; i++) {
        rows[i].score = scores[i] = 0.5; // equal scores: none is below the threshold
    }
    assert_int_equal(certify_recall(rows, 100, 0.1).below, 0);
    assert_int_equal(certify_joint(rows, 100, 0.1).below, 0);
    assert_false(certify_selective(rows, 100, 0.1, 0.1).certified);
    assert_int_equal(certify_grid(scores, 100, grid), 1);
    assert_true(grid[0] == 0.5);
    struct certify_online online;
    certify_online_init(&online, 0.1, 0.1, 0.1, grid, 1);
    for (size_t i = 0; i < 100; i++) {
        certify_online_add(&online, &rows[i], 1);
        rows[i].score = i % 3 == 0 ? NAN : i % 3 == 1 ? -INFINITY : INFINITY;
        rows[i].improves = i % 3 == 2;
    }
    assert_false(certify_online_now(&online).certified);
    // Infinite scores leave no number that could be a threshold.
    assert_false(certify_joint(rows, 100, 0.1).certified);
    assert_false(certify_selective(rows, 100, 0.1, 0.1).certified);
    assert_false(certify_recall(rows, 100, 0.1).certified);
}

// For all rows tau is a number, the counts are consistent and there is a sentence.
static void any_rows_have_an_outcome(void **state)
{
    static const double odd[] = {NAN, -INFINITY, INFINITY, 0, -0.0, 1e308, -1e308, 0.5, 1, 2};
    (void)state;
    struct certify_row rows[40];
    for (size_t r = 0; r < 20000; r++) {
        struct stats_rng rng;
        size_t n, strange;
        stats_rng_init(&rng, 81, r);
        n = stats_rng_below(&rng, 40);
        strange = stats_rng_below(&rng, 3);
        double grid[3];
        for (size_t i = 0; i < 3; i++) {
            grid[i] = r % 2 ? (double)i : odd[stats_rng_below(&rng, ARRAY_LEN(odd))];
        }
        struct certify_online online;
        certify_online_init(&online, 0.2, 0.3, 0.3, grid, 3);
        for (size_t i = 0; i < n; i++) {
            row_of(&rows[i], stats_rng_unit(&rng), stats_rng_below(&rng, 9) == 0);
            rows[i].cluster = stats_rng_below(&rng, 8) == 0 ? 1 : 0;
            rows[i].measured = stats_rng_below(&rng, 4) > 0;
            if (strange > 0) {
                rows[i].score = odd[stats_rng_below(&rng, ARRAY_LEN(odd))];
                rows[i].forecast = odd[stats_rng_below(&rng, ARRAY_LEN(odd))];
            }
            if (strange > 1) {
                rows[i].propensity = odd[stats_rng_below(&rng, ARRAY_LEN(odd))];
            }
            certify_online_add(&online, &rows[i], strange > 1 ? rows[i].propensity : 1);
        }
        struct certificate all[4];
        all[0] = certify_recall(rows, n, 0.2);
        all[1] = certify_joint(rows, n, 0.2);
        all[2] = certify_selective(rows, n, 0.2, 0.3);
        all[3] = certify_online_now(&online);
        for (size_t i = 0; i < 4; i++) {
            assert_false(isnan(all[i].tau));
            assert_true(all[i].certified == (all[i].tau > -INFINITY) && all[i].tau < INFINITY);
            assert_true(all[i].rows <= n && all[i].improvers <= all[i].rows);
            assert_true(all[i].below <= all[i].rows && all[i].improvers_below <= all[i].below);
            assert_true(strlen(all[i].text) > 20);
        }
        struct false_omission omission = certify_false_omission(rows, n, 0.95);
        assert_true(omission.upper >= 0 && omission.upper <= 1);
        assert_true(!omission.estimated || (omission.share >= 0 && omission.share <= 1));
        assert_true(strlen(omission.text) > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recall_takes_the_kth_smallest_improver),
        cmocka_unit_test(joint_allows_what_the_correction_leaves),
        cmocka_unit_test(selective_needs_the_counts_of_the_binomial),
        cmocka_unit_test(equal_scores_are_on_one_side),
        cmocka_unit_test(rows_of_one_cluster_count_once),
        cmocka_unit_test(online_needs_as_many_as_the_binomial_at_full_bet),
        cmocka_unit_test(online_wealth_is_the_formula),
        cmocka_unit_test(missed_is_the_weighted_share),
        cmocka_unit_test(the_bound_is_where_the_bets_reach_the_confidence),
        cmocka_unit_test(impossible_arguments_certify_nothing),
        cmocka_unit_test(scores_that_are_none_are_never_discarded),
        cmocka_unit_test(any_rows_have_an_outcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
