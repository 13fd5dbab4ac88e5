// Thresholds with a guarantee, over 500 resamples of simulated forecasters whose risk at any
// threshold is known exactly. Each guarantee is compared with the naive rule that only looks at the
// data at hand. The naive rule must violate the guarantee, which shows that these tests can fail.
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

#define RESAMPLES 500
#define ROWS_MAX 1600

// p plus three standard deviations of a share among RESAMPLES.
static double above(double p)
{
    return p + 3 * sqrt(p * (1 - p) / RESAMPLES);
}

// ---- simulated forecasters: scores are N(0,1), those of improvers N(shift,1) ----

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
    bool improves = stats_rng_unit(rng) < world->base;
    return (struct certify_row){.score = stats_rng_normal(rng) + (improves ? shift_of(world) : 0),
                                .forecast = NAN,
                                .propensity = 1,
                                .measured = true,
                                .improves = improves};
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

// The naive rule: the highest threshold that satisfies the limit on the rows themselves. Improvers
// below it are counted against all rows, or, if selective, against the rows below it.
static double sweep(struct certify_row *rows, size_t n, double alpha, bool selective)
{
    double tau = -INFINITY, improvers = 0;
    qsort(rows, n, sizeof(*rows), by_score);
    for (size_t m = 1; m < n; m++) {
        improvers += rows[m - 1].improves;
        tau = improvers <= alpha * (double)(selective ? m : n) + 1e-9 ? rows[m].score : tau;
    }
    return tau;
}

static void row_of(struct certify_row *row, double score, bool improves)
{
    *row = (struct certify_row){
        .score = score, .forecast = NAN, .propensity = 1, .measured = true, .improves = improves};
}

// ---- guarantees over resamples ----

static void recall_holds_on_average(void **state)
{
    (void)state;
    struct certify_row rows[60];
    for (size_t w = 0; w < ARRAY_LEN(worlds); w++) {
        // With 10 improvers the certificate allows one of 11 ranks. The naive rule takes more.
        double sum = 0, swept = 0, error = sqrt(1.0 / 11 * 10 / 11 / 12 / RESAMPLES);
        for (size_t r = 0; r < RESAMPLES; r++) {
            struct stats_rng rng;
            stats_rng_init(&rng, 11 + w, r);
            for (size_t n = 0; n < 10;) {
                rows[n] = draw(&worlds[w], &rng);
                n += rows[n].improves;
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
    static const struct world even[] = {{0.58, 0.5}, {0.8, 0.4}, {0.9, 0.6}, {0.8, 0.05}};
    (void)state;
    struct certify_row rows[10];
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

// Shares of resamples whose realised risk is above alpha: by the certificate and by the naive rule.
static void selective_violations(const struct world *world, uint64_t seed, size_t n, double step,
                                 double *ret_certified, double *ret_swept, double *ret_discarded)
{
    static struct certify_row rows[ROWS_MAX];
    *ret_certified = *ret_swept = *ret_discarded = 0;
    for (size_t r = 0; r < RESAMPLES; r++) {
        struct stats_rng rng;
        stats_rng_init(&rng, seed, r);
        for (size_t i = 0; i < n; i++) {
            rows[i] = draw(world, &rng);
            // Rounding down to steps changes nothing about which scores are below a multiple of a
            // step.
            rows[i].score = step > 0 ? floor(rows[i].score / step) * step : rows[i].score;
        }
        double tau = certify_selective(rows, n, 0.1, 0.1).tau;
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
                continue; // it would be right to discard everything
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

// Each outcome is there five times. A rule that counts it as five outcomes is too sure.
static void selective_holds_for_clusters(void **state)
{
    static struct certify_row rows[500];
    double counted_once = 0, counted_all = 0;
    (void)state;
    const struct world world = {0.8, 0.25};
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

// Decides as a policy does with the current threshold: above it everything is measured, below it a
// tenth.
static double route(struct certify_row *row, double tau, struct stats_rng *rng)
{
    row->propensity = row->score < tau ? 0.1 : 1;
    row->measured = stats_rng_unit(rng) < row->propensity;
    return tau > -INFINITY ? 0.1 : 1;
}

struct stream {
    bool violated; // discarded with a risk above alpha
    bool peeked;   // would have, by a rule that looks at the share seen so far
    bool alarm;
    size_t first; // measured when the first certificate came; 0: none came
};

static struct stream run_stream(const struct world *world, double alpha, size_t rows, uint64_t seed,
                                uint64_t index)
{
    double scores[100], grid[CERTIFY_GRID_MAX], tau = -INFINITY;
    double seen[CERTIFY_GRID_MAX] = {0}, improvers[CERTIFY_GRID_MAX] = {0};
    struct stats_rng rng;
    stats_rng_init(&rng, seed, index);
    for (size_t i = 0; i < 100; i++) {
        scores[i] = draw(world, &rng).score;
    }
    size_t len = certify_grid(scores, 100, grid);
    assert_int_equal(len, 8);
    struct certify_online online;
    certify_online_init(&online, alpha, 0.1, 0.1, grid, len);
    struct stream stream = {0};
    for (size_t i = 0; i < rows; i++) {
        struct certify_row row = draw(world, &rng);
        double smallest = route(&row, tau, &rng);
        stream.alarm |= certify_online_add(&online, &row, smallest);
        tau = online.level > 0 ? grid[online.level - 1] : -INFINITY;
        stream.violated |= selective_of(world, tau) > alpha;
        stream.first = stream.first == 0 && online.level > 0 ? online.measured : stream.first;
        for (size_t j = 0; j < len && row.measured; j++) {
            seen[j] += row.score < grid[j] ? 1 / row.propensity : 0;
            improvers[j] += row.score < grid[j] && row.improves ? 1 / row.propensity : 0;
            stream.peeked |= seen[j] >= 22 && improvers[j] <= alpha * seen[j] &&
                             selective_of(world, grid[j]) > alpha;
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

// After a number of candidates the share of improvers below the threshold changes from 0 to risk.
// Returns how many measured candidates pass from then on until the alarm, at most most + 1.
static size_t passed_until_alarm(size_t good, double risk, size_t most, uint64_t seed,
                                 uint64_t index)
{
    struct stats_rng rng;
    stats_rng_init(&rng, seed, index);
    const double grid[] = {1};
    struct certify_online online;
    certify_online_init(&online, 0.1, 0.1, 0.1, grid, 1);
    struct certify_row row;
    row_of(&row, 0, false);
    while (!certify_online_now(&online).certified) {
        certify_online_add(&online, &row, 1);
    }
    for (size_t i = 0; i < good; i++) {
        double smallest = route(&row, 1, &rng);
        assert_false(certify_online_add(&online, &row, smallest));
    }
    size_t audits = 0;
    while (audits <= most) {
        double smallest = route(&row, 1, &rng);
        row.improves = stats_rng_unit(&rng) < risk;
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
        size_t audits = passed_until_alarm(5000, 0.35, 120, 61, r);
        late += audits > 120;
        mean += (double)audits / RESAMPLES;
        // The risk is as guaranteed, so an alarm is wrong.
        wrong += passed_until_alarm(0, 0.1, 400, 62, r) <= 400;
    }
    print_message(
        "drift from 0 to .35 at alpha .1: alarm after %.0f audits, later than 120 in %.3f; "
        "at .1 in %.3f\n",
        mean, late / RESAMPLES, wrong / RESAMPLES);
    assert_true(late / RESAMPLES <= 0.05);
    assert_true(wrong / RESAMPLES <= above(0.1));
}

// ---- afterwards ----

// Maurer and Pontil's empirical Bernstein bound (2009, theorem 4) of the mean of y measured /
// propensity, where y is 1 for a row that improves.
static double bernstein(const struct certify_row *rows, size_t n, double smallest)
{
    double x[ROWS_MAX], size = (double)n, term = log(2 / 0.05);
    for (size_t i = 0; i < n; i++) {
        x[i] = rows[i].measured && rows[i].improves ? smallest / rows[i].propensity : 0;
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
            struct stats_rng rng;
            double truth = 0, spread;
            stats_rng_init(&rng, 71 + c, r);
            for (size_t i = 0; i < 400; i++) {
                double u = stats_rng_unit(&rng), p = cases[c].top * u * u;
                row_of(&rows[i], p, stats_rng_unit(&rng) < p);
                rows[i].forecast = cases[c].calibrated > 0 ? p : 1 - p;
                rows[i].propensity = 0.05 + 0.15 * u;
                rows[i].measured = stats_rng_unit(&rng) < rows[i].propensity;
                truth += rows[i].improves / 400.0;
            }
            struct false_omission omission = certify_false_omission(rows, 400, 0.95);
            assert_true(omission.estimated);
            broken += omission.upper < truth;
            spread = sqrt(omission.hajek * (1 - omission.hajek) / (double)omission.audited);
            wald += omission.hajek + 1.645 * spread < truth;
            upper += omission.upper / RESAMPLES;
            other += bernstein(rows, 400, 0.05) / RESAMPLES;
            error[0] += (omission.hajek - truth) / RESAMPLES;
            error[1] += (omission.share - truth) / RESAMPLES;
            square[0] += (omission.hajek - truth) * (omission.hajek - truth) / RESAMPLES;
            square[1] += (omission.share - truth) * (omission.share - truth) / RESAMPLES;
        }
        print_message("missed %.3f%s: above the bound %.3f, above Wald's %.3f; mean bound %.3f, "
                      "Bernstein's %.3f; error %.4f, with the forecasts %.4f\n",
                      cases[c].top / 3, cases[c].calibrated > 0 ? "" : " upside down",
                      broken / RESAMPLES, wald / RESAMPLES, upper, other, sqrt(square[0]),
                      sqrt(square[1]));
        assert_true(broken / RESAMPLES <= above(0.05));
        // Rare improvers are often in no audit.
        assert_true(c > 0 || wald / RESAMPLES > above(0.05));
        assert_true(upper < other);
        assert_true(fabs(error[0]) < 4 * sqrt(square[0] / RESAMPLES) + 0.002);
        assert_true(cases[c].calibrated <= 0 || square[1] < square[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recall_holds_on_average),
        cmocka_unit_test(joint_holds_on_average),
        cmocka_unit_test(selective_holds_with_confidence),
        cmocka_unit_test(selective_holds_for_clusters),
        cmocka_unit_test(online_holds_at_any_time),
        cmocka_unit_test(useless_forecasts_raise_the_alarm),
        cmocka_unit_test(missed_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
