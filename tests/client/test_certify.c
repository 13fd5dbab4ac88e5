// Thresholds with a guarantee: by hand on small sets, and over 500 resamples of made-up forecasters
// whose risk at any threshold is known exactly. Each guarantee is held against the rule that only
// looks at the data at hand, which must break it, so that these tests can fail.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/certify.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RESAMPLES 500
#define ROWS_MAX 1600

static void assert_near(double value, double expected, double tolerance)
{
    if (!(fabs(value - expected) <= tolerance)) {
        fail_msg("%.17g is not %.17g within %g", value, expected, tolerance);
    }
}

// Three standard deviations above p, of a share among RESAMPLES.
static double above(double p)
{
    return p + 3 * sqrt(p * (1 - p) / RESAMPLES);
}

// ---- made-up forecasters: scores N(0,1), of improvers N(shift,1) ----

struct world {
    double auc, base; // P(an improver scores higher); share of improvers
};

static const struct world worlds[] = {{0.58, 0.2}, {0.8, 0.1}, {0.8, 0.3}, {0.9, 0.2}};

static double shift_of(const struct world *world)
{
    return stats_normal_quantile(world->auc) * M_SQRT2;
}

static struct certify_row draw(const struct world *world, struct stats_rng *rng)
{
    bool bad = stats_rng_unit(rng) < world->base;
    return (struct certify_row){.score = stats_rng_normal(rng) + (bad ? shift_of(world) : 0),
                                .forecast = NAN,
                                .propensity = 1,
                                .measured = true,
                                .bad = bad};
}

static double miss_of(const struct world *world, double tau)
{
    return stats_normal_cdf(tau - shift_of(world));
}

static double joint_of(const struct world *world, double tau)
{
    return world->base * miss_of(world, tau);
}

static double selective_of(const struct world *world, double tau)
{
    double all = joint_of(world, tau) + (1 - world->base) * stats_normal_cdf(tau);
    return all > 0 ? joint_of(world, tau) / all : 0;
}

static int by_score(const void *a, const void *b)
{
    const struct certify_row *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

// The boldest threshold that looks good enough on the rows themselves; improvers below it are
// counted against all rows, or against those below it.
static double sweep(struct certify_row *rows, size_t n, double alpha, bool selective)
{
    double tau = -INFINITY, bad = 0;
    qsort(rows, n, sizeof(*rows), by_score);
    for (size_t m = 1; m < n; m++) {
        bad += rows[m - 1].bad;
        tau = bad <= alpha * (double)(selective ? m : n) + 1e-9 ? rows[m].score : tau;
    }
    return tau;
}

static void row_of(struct certify_row *row, double score, bool bad)
{
    *row = (struct certify_row){
        .score = score, .forecast = NAN, .propensity = 1, .measured = true, .bad = bad};
}

// ---- by hand ----

static void recall_takes_the_kth_smallest_improver(void **state)
{
    struct certify_row rows[40];
    struct certificate certificate;
    (void)state;
    for (size_t i = 0; i < 20; i++) {
        row_of(&rows[i], 0.05 * (double)(20 - i), true);
        row_of(&rows[20 + i], 0.001 * (double)i, false); // the others say nothing about recall
    }
    certificate = certify_recall(rows + 1, 39, 0.1); // 19 improvers: k = 2
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
    struct certify_row rows[49];
    struct certificate certificate;
    (void)state;
    for (size_t i = 0; i < 49; i++) {
        row_of(&rows[i], (double)i, i % 7 == 3); // improvers 3, 10, 17, 24 …
    }
    certificate = certify_joint(rows, 49, 0.05); // floor(2.5) - 1 = 1 is allowed
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
    struct certify_row rows[200];
    (void)state;
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
    rows[30].bad = true; // at 31 rows 0 are allowed: the sequence ends there, for good
    assert_true(certify_selective(rows, 200, 0.1, 0.1).tau == 30);
    rows[5].bad = true;
    assert_non_null(strstr(certify_selective(rows, 200, 0.1, 0.1).text, "too many improve"));
}

static void rows_of_one_cluster_count_once(void **state)
{
    struct certify_row rows[115];
    struct certificate certificate;
    (void)state;
    for (size_t i = 0; i < 115; i++) {
        row_of(&rows[i], (double)(i / 5), false);
        rows[i].cluster = 1 + i / 5;
    }
    certificate = certify_selective(rows, 115, 0.1, 0.1); // 23 clusters: 22 below the highest
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
    const double grid[] = {1};
    struct certify_online online;
    struct certify_row row;
    (void)state;
    row_of(&row, 0, false);
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
    certify_online_init(&online, 0.1, 0.1, 0.1, grid, 1); // spread over bets it takes some more
    for (size_t n = 0; n < 33; n++) {
        certify_online_add(&online, &row, 1);
    }
    assert_true(certify_online_now(&online).certified);
    assert_int_equal(certify_online_now(&online).below, 33);
    certify_online_restart(&online, NULL, 0); // a new device, a new forecaster
    assert_false(certify_online_now(&online).certified);
    assert_int_equal(certify_online_now(&online).rows, 0);
}

static void online_wealth_is_the_formula(void **state)
{
    const double grid[] = {0.5, 2};
    struct certify_online online;
    struct certify_row row = {.score = 1, .propensity = 0.5, .measured = true};
    (void)state;
    certify_online_init(&online, 0.2, 0.1, 0.1, grid, 2);
    certify_online_add(&online, &row, 0.25);
    row.bad = true;
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
    struct certify_row rows[8];
    struct certify_missed missed;
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        row_of(&rows[i], 0, i == 0);
        rows[i].measured = i < 3;
        rows[i].propensity = i == 0 ? 0.25 : 0.5;
        rows[i].forecast = i < 4 ? 0.5 : 0.25;
    }
    missed = certify_missed(rows, 8, 0.95); // weights 4, 2, 2; residuals .5, -.5, -.5
    assert_true(missed.estimated);
    assert_near(missed.hajek, 0.5, 1e-12);
    assert_near(missed.share, 0.375 + 0.0, 1e-12);
    assert_true(missed.upper > missed.share && missed.upper <= 1);
    assert_int_equal(missed.audited, 3);
    assert_non_null(strstr(missed.text, "of the 8 discarded"));
    for (size_t i = 0; i < 8; i++) { // all are known: the bound is not below what is known
        rows[i].measured = rows[i].bad = true;
        rows[i].propensity = 1;
    }
    assert_near(certify_missed(rows, 8, 0.95).share, 1, 1e-12);
    assert_true(certify_missed(rows, 8, 0.95).upper == 1);
}

// ---- guarantees over resamples ----

static void recall_holds_on_average(void **state)
{
    struct certify_row rows[60];
    (void)state;
    for (size_t w = 0; w < ARRAY_LEN(worlds); w++) {
        // 10 improvers: one of 11 places, while a sweep would call two of ten a tenth.
        double sum = 0, swept = 0, error = sqrt(1.0 / 11 * 10 / 11 / 12 / RESAMPLES);
        for (size_t r = 0; r < RESAMPLES; r++) {
            struct stats_rng rng;
            stats_rng_init(&rng, 11 + w, r);
            for (size_t n = 0; n < 10;) {
                rows[n] = draw(&worlds[w], &rng);
                n += rows[n].bad;
            }
            sum += miss_of(&worlds[w], certify_recall(rows, 10, 0.1).tau) / RESAMPLES;
            swept += miss_of(&worlds[w], sweep(rows, 10, 0.1, false)) / RESAMPLES;
        }
        print_message("recall AUC %.2f: missed %.4f, by a sweep %.4f\n", worlds[w].auc, sum, swept);
        assert_true(fabs(sum - 1.0 / 11) < 4 * error);
        assert_true(swept > 0.15);
    }
}

static void joint_holds_on_average(void **state)
{
    struct certify_row rows[10];
    static const struct world even[] = {{0.58, 0.5}, {0.8, 0.4}, {0.9, 0.6}, {0.8, 0.05}};
    (void)state;
    for (size_t w = 0; w < ARRAY_LEN(even); w++) {
        double sum = 0, swept = 0;
        for (size_t r = 0; r < RESAMPLES; r++) {
            struct stats_rng rng;
            stats_rng_init(&rng, 21 + w, r);
            for (size_t n = 0; n < 10; n++) {
                rows[n] = draw(&even[w], &rng);
            }
            sum += joint_of(&even[w], certify_joint(rows, 10, 0.1).tau) / RESAMPLES;
            swept += joint_of(&even[w], sweep(rows, 10, 0.1, false)) / RESAMPLES;
        }
        print_message("joint AUC %.2f base %.2f: lost %.4f, by a sweep %.4f\n", even[w].auc,
                      even[w].base, sum, swept);
        assert_true(sum <= 0.1 + 4 * 0.09 / sqrt(RESAMPLES));
        assert_true(even[w].base < 0.1 || (swept > 0.13 && sum > 0.06));
    }
}

// Shares of resamples whose realised risk is above alpha: by the certificate and by a sweep.
static void selective_violations(const struct world *world, uint64_t seed, size_t n, double step,
                                 double *ret_certified, double *ret_swept, double *ret_discarded)
{
    static struct certify_row rows[ROWS_MAX];
    *ret_certified = *ret_swept = *ret_discarded = 0;
    for (size_t r = 0; r < RESAMPLES; r++) {
        struct stats_rng rng;
        double tau;
        stats_rng_init(&rng, seed, r);
        for (size_t i = 0; i < n; i++) {
            rows[i] = draw(world, &rng);
            // Rounded down to steps: whatever is below a multiple of them was below it before.
            rows[i].score = step > 0 ? floor(rows[i].score / step) * step : rows[i].score;
        }
        tau = certify_selective(rows, n, 0.1, 0.1).tau;
        *ret_certified += selective_of(world, tau) > 0.1 ? 1.0 / RESAMPLES : 0;
        *ret_discarded += stats_normal_cdf(tau) / RESAMPLES;
        *ret_swept += selective_of(world, sweep(rows, n, 0.1, true)) > 0.1 ? 1.0 / RESAMPLES : 0;
    }
}

static void selective_holds_with_confidence(void **state)
{
    (void)state;
    for (size_t w = 0; w < ARRAY_LEN(worlds); w++) {
        for (unsigned ties = 0; ties < 2; ties++) {
            double certified, swept, discarded;
            if (worlds[w].base <= 0.1) {
                continue; // discarding everything would be right
            }
            selective_violations(&worlds[w], 31 + w, 200, ties ? 0.5 : 0, &certified, &swept,
                                 &discarded);
            print_message("selective AUC %.2f base %.2f%s: above alpha %.3f, by a sweep %.3f; of "
                          "the others %.2f discarded\n",
                          worlds[w].auc, worlds[w].base, ties ? " with ties" : "", certified, swept,
                          discarded);
            assert_true(certified <= above(0.1));
            assert_true(ties || swept > 0.3);
            assert_true(worlds[w].auc < 0.9 || discarded > 0.3);
        }
    }
}

// Each outcome five times over: who counts them as five is sure of what nobody knows.
static void selective_holds_for_clusters(void **state)
{
    static struct certify_row rows[500];
    double counted_once = 0, counted_all = 0;
    const struct world world = {0.8, 0.25};
    (void)state;
    for (size_t r = 0; r < RESAMPLES; r++) {
        struct stats_rng rng;
        stats_rng_init(&rng, 41, r);
        for (size_t i = 0; i < 500; i++) {
            rows[i] = i % 5 == 0 ? draw(&world, &rng) : rows[i - 1];
            rows[i].cluster = 1 + i / 5;
            rows[i].score += i % 5 == 0 ? 0 : 1e-9;
        }
        counted_once += selective_of(&world, certify_selective(rows, 500, 0.1, 0.1).tau) > 0.1;
        for (size_t i = 0; i < 500; i++) {
            rows[i].cluster = 0;
        }
        counted_all += selective_of(&world, certify_selective(rows, 500, 0.1, 0.1).tau) > 0.1;
    }
    print_message("selective, clusters: above alpha %.3f, counted row by row %.3f\n",
                  counted_once / RESAMPLES, counted_all / RESAMPLES);
    assert_true(counted_once / RESAMPLES <= above(0.1));
    assert_true(counted_all / RESAMPLES > above(0.1));
}

// ---- along a stream ----

// What a policy does with the current threshold: all is measured above it, a tenth below.
static double route(struct certify_row *row, double tau, struct stats_rng *rng)
{
    row->propensity = row->score < tau ? 0.1 : 1;
    row->measured = stats_rng_unit(rng) < row->propensity;
    return tau > -INFINITY ? 0.1 : 1;
}

struct stream {
    bool violated, peeked; // discarded at more than alpha; would have, by the share seen so far
    bool alarm;
    size_t first; // measured when the first certificate came; 0: none came
};

static struct stream run_stream(const struct world *world, double alpha, size_t rows, uint64_t seed,
                                uint64_t index)
{
    struct stream stream = {0};
    struct certify_online online;
    double scores[100], grid[CERTIFY_GRID_MAX], tau = -INFINITY;
    double seen[CERTIFY_GRID_MAX] = {0}, bad[CERTIFY_GRID_MAX] = {0};
    struct stats_rng rng;
    size_t len;
    stats_rng_init(&rng, seed, index);
    for (size_t i = 0; i < 100; i++) {
        scores[i] = draw(world, &rng).score;
    }
    len = certify_grid(scores, 100, grid);
    assert_int_equal(len, 8);
    certify_online_init(&online, alpha, 0.1, 0.1, grid, len);
    for (size_t i = 0; i < rows; i++) {
        struct certify_row row = draw(world, &rng);
        double smallest = route(&row, tau, &rng);
        stream.alarm |= certify_online_add(&online, &row, smallest);
        tau = online.level > 0 ? grid[online.level - 1] : -INFINITY;
        stream.violated |= selective_of(world, tau) > alpha;
        stream.first = stream.first == 0 && online.level > 0 ? online.measured : stream.first;
        for (size_t j = 0; j < len && row.measured; j++) {
            seen[j] += row.score < grid[j] ? 1 / row.propensity : 0;
            bad[j] += row.score < grid[j] && row.bad ? 1 / row.propensity : 0;
            stream.peeked |=
                seen[j] >= 22 && bad[j] <= alpha * seen[j] && selective_of(world, grid[j]) > alpha;
        }
    }
    return stream;
}

static void online_holds_at_any_time(void **state)
{
    static const struct {
        struct world world;
        double alpha;
    } cases[] = {{{0.5, 0.105}, 0.1}, {{0.58, 0.2}, 0.1}, {{0.8, 0.2}, 0.1}, {{0.9, 0.1}, 0.05}};
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        double violated = 0, peeked = 0, alarms = 0, certified = 0, first = 0;
        for (size_t r = 0; r < RESAMPLES; r++) {
            struct stream stream = run_stream(&cases[c].world, cases[c].alpha, 800, 51 + c, r);
            violated += stream.violated;
            peeked += stream.peeked;
            alarms += stream.alarm && !stream.violated;
            certified += stream.first > 0;
            first += (double)stream.first;
        }
        print_message("online AUC %.2f base %.3f alpha %.2f: above alpha %.3f, by peeking %.3f; "
                      "certified %.2f, after %.0f measured; false alarms %.3f\n",
                      cases[c].world.auc, cases[c].world.base, cases[c].alpha, violated / RESAMPLES,
                      peeked / RESAMPLES, certified / RESAMPLES,
                      certified > 0 ? first / certified : 0, alarms / RESAMPLES);
        assert_true(violated / RESAMPLES <= above(0.1));
        assert_true(alarms / RESAMPLES <= above(0.1));
        assert_true(peeked / RESAMPLES > 0.3);
        assert_true(c < 3 || certified / RESAMPLES > 0.8);
    }
}

// The share that improves below the threshold turns from 0 to risk; how many of those measured pass
// until the alarm, at most most + 1.
static size_t passed_until_alarm(double risk, size_t most, uint64_t seed, uint64_t index)
{
    const double grid[] = {1};
    struct certify_online online;
    struct certify_row row;
    struct stats_rng rng;
    size_t audits = 0;
    stats_rng_init(&rng, seed, index);
    certify_online_init(&online, 0.1, 0.1, 0.1, grid, 1);
    row_of(&row, 0, false);
    while (!certify_online_now(&online).certified) {
        certify_online_add(&online, &row, 1);
    }
    for (size_t good = 0; good < 500; good++) {
        double smallest = route(&row, 1, &rng);
        assert_false(certify_online_add(&online, &row, smallest));
    }
    while (audits <= most) {
        double smallest = route(&row, 1, &rng);
        row.bad = stats_rng_unit(&rng) < risk;
        audits += row.measured;
        if (certify_online_add(&online, &row, smallest)) {
            assert_false(certify_online_now(&online).certified);
            assert_non_null(strstr(certify_online_now(&online).text, "after an alarm"));
            assert_int_equal(online.alarms, 1);
            return audits;
        }
    }
    return most + 1;
}

static void useless_forecasts_raise_the_alarm(void **state)
{
    double late = 0, mean = 0, wrong = 0;
    (void)state;
    for (size_t r = 0; r < RESAMPLES; r++) {
        size_t audits = passed_until_alarm(0.35, 120, 61, r);
        late += audits > 120;
        mean += (double)audits / RESAMPLES;
        wrong += passed_until_alarm(0.1, 400, 62, r) <= 400; // as risky as promised: no reason
    }
    print_message(
        "drift from 0 to .35 at alpha .1: alarm after %.0f audits, later than 120 in %.3f; "
        "at .1 in %.3f\n",
        mean, late / RESAMPLES, wrong / RESAMPLES);
    assert_true(late / RESAMPLES <= 0.05);
    assert_true(wrong / RESAMPLES <= above(0.1));
}

// ---- afterwards ----

// Maurer and Pontil's bound (2009, theorem 4) of the mean of (measured / propensity) bad.
static double bernstein(const struct certify_row *rows, size_t n, double smallest)
{
    double x[ROWS_MAX], size = (double)n, term = log(2 / 0.05);
    for (size_t i = 0; i < n; i++) {
        x[i] = rows[i].measured && rows[i].bad ? smallest / rows[i].propensity : 0;
    }
    return fmin(1, (stats_mean(x, n) + sqrt(2 * stats_variance(x, n) * term / size) +
                    7 * term / (3 * (size - 1))) /
                       smallest);
}

static void missed_is_bounded(void **state)
{
    static const struct {
        double top; // forecasts are top * u^2, right on average
        double calibrated;
    } cases[] = {{0.1, 1}, {0.4, 1}, {0.9, 1}, {0.4, 0}};
    static struct certify_row rows[400];
    (void)state;
    for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
        double broken = 0, wald = 0, upper = 0, other = 0, error[2] = {0}, square[2] = {0};
        for (size_t r = 0; r < RESAMPLES; r++) {
            struct certify_missed missed;
            struct stats_rng rng;
            double truth = 0, spread;
            stats_rng_init(&rng, 71 + c, r);
            for (size_t i = 0; i < 400; i++) {
                double u = stats_rng_unit(&rng), p = cases[c].top * u * u;
                row_of(&rows[i], p, stats_rng_unit(&rng) < p);
                rows[i].forecast = cases[c].calibrated > 0 ? p : 1 - p;
                rows[i].propensity = 0.05 + 0.15 * u;
                rows[i].measured = stats_rng_unit(&rng) < rows[i].propensity;
                truth += rows[i].bad / 400.0;
            }
            missed = certify_missed(rows, 400, 0.95);
            assert_true(missed.estimated);
            broken += missed.upper < truth;
            spread = sqrt(missed.hajek * (1 - missed.hajek) / (double)missed.audited);
            wald += missed.hajek + 1.645 * spread < truth;
            upper += missed.upper / RESAMPLES;
            other += bernstein(rows, 400, 0.05) / RESAMPLES;
            error[0] += (missed.hajek - truth) / RESAMPLES;
            error[1] += (missed.share - truth) / RESAMPLES;
            square[0] += (missed.hajek - truth) * (missed.hajek - truth) / RESAMPLES;
            square[1] += (missed.share - truth) * (missed.share - truth) / RESAMPLES;
        }
        print_message("missed %.3f%s: above the bound %.3f, above Wald's %.3f; mean bound %.3f, "
                      "Bernstein's %.3f; error %.4f, with the forecasts %.4f\n",
                      cases[c].top / 3, cases[c].calibrated > 0 ? "" : " upside down",
                      broken / RESAMPLES, wald / RESAMPLES, upper, other, sqrt(square[0]),
                      sqrt(square[1]));
        assert_true(broken / RESAMPLES <= above(0.05));
        assert_true(c > 0 || wald / RESAMPLES > above(0.05)); // rare ones are often in no audit
        assert_true(upper < other);
        assert_true(fabs(error[0]) < 4 * sqrt(square[0] / RESAMPLES) + 0.002);
        assert_true(cases[c].calibrated <= 0 || square[1] < square[0]);
    }
}

// ---- what cannot be ----

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
    struct certify_row rows[100];
    struct certify_online online;
    const double grid[] = {0.3, 0.6}, falling[] = {0.6, 0.3}, endless[] = {0.3, INFINITY};
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        row_of(&rows[i], (double)i / 100, i > 50 && i % 3 == 0);
    }
    assert_true(certify_selective(rows, 100, 0.1, 0.1).certified);
    refused(NULL, 0, 0.1, 0.1);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        refused(rows, 100, wrong[i], 0.1);
        assert_false(certify_selective(rows, 100, 0.1, wrong[i]).certified);
        assert_false(certify_missed(rows, 100, wrong[i]).estimated);
        certify_online_init(&online, wrong[i], 0.1, 0.1, grid, 2);
        for (size_t j = 0; j < 100; j++) {
            assert_false(certify_online_add(&online, &rows[j % 50], 1));
        }
        assert_false(certify_online_now(&online).certified);
        if (wrong[i] != 1) { // a propensity of 1 is one
            double kept = rows[7].propensity;
            rows[7].propensity = wrong[i];
            refused(rows, 100, 0.1, 0.1);
            assert_true(certify_missed(rows, 100, 0.95).upper == 1);
            certify_online_init(&online, 0.1, 0.1, 0.1, grid, 2);
            for (size_t j = 0; j < 100; j++) {
                certify_online_add(&online, &rows[j % 50], 1);
            }
            assert_non_null(strstr(certify_online_now(&online).text, "propensity"));
            rows[7].propensity = kept;
        }
    }
    rows[3].propensity = 0.5; // chosen outcomes
    refused(rows, 100, 0.1, 0.1);
    certify_online_init(&online, 0.1, 0.1, 0.1, falling, 2);
    assert_non_null(strstr(certify_online_now(&online).text, "does not rise"));
    certify_online_init(&online, 0.1, 0.1, 0.1, endless, 2);
    assert_false(certify_online_now(&online).certified);
    certify_online_init(&online, 0.1, 0.1, 0.1, NULL, 9);
    assert_non_null(strstr(certify_online_now(&online).text, "no grid"));
    assert_true(certify_missed(NULL, 0, 0.95).upper == 1);
}

static void scores_that_are_none_are_never_discarded(void **state)
{
    struct certify_row rows[100];
    double scores[100], grid[CERTIFY_GRID_MAX];
    struct certify_online online;
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        row_of(&rows[i], NAN, i % 2 == 0);
        scores[i] = NAN;
    }
    refused(rows, 100, 0.1, 0.1);
    assert_int_equal(certify_grid(scores, 100, grid), 0);
    assert_int_equal(certify_grid(scores, 0, grid), 0);
    for (size_t i = 0; i < 100; i++) {
        rows[i].score = scores[i] = 0.5; // equal ones: nothing is below the threshold
    }
    assert_int_equal(certify_recall(rows, 100, 0.1).below, 0);
    assert_int_equal(certify_joint(rows, 100, 0.1).below, 0);
    assert_false(certify_selective(rows, 100, 0.1, 0.1).certified);
    assert_int_equal(certify_grid(scores, 100, grid), 1);
    assert_true(grid[0] == 0.5);
    certify_online_init(&online, 0.1, 0.1, 0.1, grid, 1);
    for (size_t i = 0; i < 100; i++) {
        certify_online_add(&online, &rows[i], 1);
        rows[i].score = i % 3 == 0 ? NAN : i % 3 == 1 ? -INFINITY : INFINITY;
        rows[i].bad = i % 3 == 2;
    }
    assert_false(certify_online_now(&online).certified);
    // Without bounds there is nothing between them to name as a threshold.
    assert_false(certify_joint(rows, 100, 0.1).certified);
    assert_false(certify_selective(rows, 100, 0.1, 0.1).certified);
    assert_false(certify_recall(rows, 100, 0.1).certified);
}

// Whatever the rows hold: tau is a number, the counts fit together and there is a sentence.
static void any_rows_have_an_outcome(void **state)
{
    static const double odd[] = {NAN, -INFINITY, INFINITY, 0, -0.0, 1e308, -1e308, 0.5, 1, 2};
    struct certify_row rows[40];
    (void)state;
    for (size_t r = 0; r < 20000; r++) {
        struct stats_rng rng;
        struct certify_online online;
        struct certificate all[4];
        struct certify_missed missed;
        double grid[3];
        size_t n, strange;
        stats_rng_init(&rng, 81, r);
        n = stats_rng_below(&rng, 40);
        strange = stats_rng_below(&rng, 3);
        for (size_t i = 0; i < 3; i++) {
            grid[i] = r % 2 ? (double)i : odd[stats_rng_below(&rng, ARRAY_LEN(odd))];
        }
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
        missed = certify_missed(rows, n, 0.95);
        assert_true(missed.upper >= 0 && missed.upper <= 1);
        assert_true(!missed.estimated || (missed.share >= 0 && missed.share <= 1));
        assert_true(strlen(missed.text) > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recall_takes_the_kth_smallest_improver),
        cmocka_unit_test(joint_allows_what_the_correction_leaves),
        cmocka_unit_test(selective_needs_the_counts_of_the_binomial),
        cmocka_unit_test(rows_of_one_cluster_count_once),
        cmocka_unit_test(online_needs_as_many_as_the_binomial_at_full_bet),
        cmocka_unit_test(online_wealth_is_the_formula),
        cmocka_unit_test(missed_is_the_weighted_share),
        cmocka_unit_test(recall_holds_on_average),
        cmocka_unit_test(joint_holds_on_average),
        cmocka_unit_test(selective_holds_with_confidence),
        cmocka_unit_test(selective_holds_for_clusters),
        cmocka_unit_test(online_holds_at_any_time),
        cmocka_unit_test(useless_forecasts_raise_the_alarm),
        cmocka_unit_test(missed_is_bounded),
        cmocka_unit_test(impossible_arguments_certify_nothing),
        cmocka_unit_test(scores_that_are_none_are_never_discarded),
        cmocka_unit_test(any_rows_have_an_outcome),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
