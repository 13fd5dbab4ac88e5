// Recalibration on made-up forecasters, thirty seeds each: a shifted, over-confident one becomes
// honest, a perfect one loses no more than the noise of its map, and the alarm tells a broken one.
#include "client/eval/score.h"
#include "common/mem.h"
#include "common/stats.h"
#include "tests/worker/spoilt.h"
#include "worker/calibration/drift.h"
#include "worker/calibration/pit_map.h"
#include "worker/calibration/recalibrate.h"
#include "worker/calibration/venn_abers.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 30
#define BAR 0.5    // log2 speedup that an improvement has to beat
#define FRESH 2000 // forecasts that a map is judged by, none of which it has seen

static const struct recal_scope scope = {"llm", "gpu: H200", "softmax"};

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

// What is said of one candidate, and what it turns out to be.
struct made {
    struct recal_forecast forecast;
    struct recal_outcome outcome;
};

// The truth of a candidate: bins of a normal about a mean of its own, and P(correct).
static void make_truth(struct stats_rng *rng, struct made *to)
{
    double mean = 4 * stats_rng_unit(rng) - 1, spread = 0.3 + 0.5 * stats_rng_unit(rng), sum = 0;
    double *p = to->forecast.bins;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        sum += p[i] = stats_normal_cdf((bin_edge[i + 1] - mean) / spread) -
                      stats_normal_cdf((bin_edge[i] - mean) / spread) + 1e-6;
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        p[i] /= sum;
    }
    to->forecast.p_correct = 0.4 + 0.55 * stats_rng_unit(rng);
    to->forecast.p_improves = to->forecast.p_correct * (1 - bins_cdf(p, BAR));
    to->outcome = (struct recal_outcome){.propensity = 1, .key = stats_rng_u64(rng)};
    to->outcome.correct = stats_rng_unit(rng) < to->forecast.p_correct;
    to->outcome.log2 = bins_quantile(p, 1e-6 + (1 - 2e-6) * stats_rng_unit(rng));
    to->outcome.improved = to->outcome.correct && to->outcome.log2 > BAR;
}

// Says everything 0.6 octaves too slow, and normal with half the spread.
static void slip(struct recal_forecast *forecast)
{
    double *p = forecast->bins, mean = bins_mean(p) - 0.6, sum = 0;
    double spread = (bins_quantile(p, 0.84) - bins_quantile(p, 0.16)) / 4;
    for (size_t i = 0; i < BIN_COUNT; i++) {
        sum += p[i] = stats_normal_cdf((bin_edge[i + 1] - mean) / spread) -
                      stats_normal_cdf((bin_edge[i] - mean) / spread) + 1e-6;
    }
    for (size_t i = 0; i < BIN_COUNT; i++) {
        p[i] /= sum;
    }
}

enum kind { PERFECT, SPOILT, SLIPPED };

static struct made make(struct stats_rng *rng, enum kind kind)
{
    struct made made;
    make_truth(rng, &made);
    if (kind == SPOILT) {
        spoil(&made.forecast, BAR);
    }
    if (kind == SLIPPED) {
        slip(&made.forecast);
    }
    return made;
}

static struct recalibration *learnt(struct stats_rng *rng, size_t outcomes, enum kind kind)
{
    struct recalibration *recal = recal_create(NULL);
    for (size_t i = 0; i < outcomes; i++) {
        struct made made = make(rng, kind);
        recal_add(recal, &scope, &made.forecast, &made.outcome);
    }
    recal_refit(recal);
    return recal;
}

struct judged {
    struct score_value raw[SCORE_COUNT], mapped[SCORE_COUNT];
};

// Fresh forecasts of the same forecaster, as they are said and as they are corrected.
static void judge_scope(struct judged *ret, const struct recalibration *recal,
                        const struct recal_scope *of, struct stats_rng *rng, enum kind kind)
{
    struct score_row *raw = xcalloc(FRESH, sizeof *raw), *mapped = xcalloc(FRESH, sizeof *mapped);
    for (size_t i = 0; i < FRESH; i++) {
        struct made made = make(rng, kind);
        struct recal_answer answer = as_said(&made.forecast);
        raw[i] = score_row_of(&made.outcome, &answer);
        recal_apply(recal, of, &made.forecast, RECAL_FOLD_ALL, &answer);
        mapped[i] = score_row_of(&made.outcome, &answer);
    }
    const struct score_options options = {.risk = 0.1};
    score_compute(ret->raw, raw, FRESH, &options);
    score_compute(ret->mapped, mapped, FRESH, &options);
    free(raw);
    free(mapped);
}

static void judge(struct judged *ret, const struct recalibration *recal, struct stats_rng *rng,
                  enum kind kind)
{
    judge_scope(ret, recal, &scope, rng, kind);
}

static void a_shifted_and_overconfident_forecaster_becomes_honest(void **state)
{
    (void)state;
    static const struct {
        enum score_metric metric;
        double before, after; // mean over the seeds: above, below
    } ece[] = {{SCORE_ECE_BIN, 0.2, 0.05},
               {SCORE_ECE_CORRECT, 0.2, 0.05}, // mean here 0.047, over 300 seeds 0.043
               {SCORE_ECE_IMPROVES, 0.2, 0.05}};
    double raw[3] = {0}, mapped[3] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stats_rng rng;
        stats_rng_init(&rng, seed, 1);
        struct recalibration *recal = learnt(&rng, 100, SPOILT);
        struct judged judged;
        judge(&judged, recal, &rng, SPOILT);
        for (size_t i = 0; i < 3; i++) {
            raw[i] += judged.raw[ece[i].metric].value / SEEDS;
            mapped[i] += judged.mapped[ece[i].metric].value / SEEDS;
        }
        assert_true(judged.mapped[SCORE_CRPS].value < judged.raw[SCORE_CRPS].value);
        assert_true(judged.mapped[SCORE_NLL].value < judged.raw[SCORE_NLL].value);
        recal_free(recal);
    }
    for (size_t i = 0; i < 3; i++) {
        if (!(raw[i] > ece[i].before && mapped[i] < ece[i].after)) {
            fail_msg("%s: %.4f became %.4f", score_name(ece[i].metric), raw[i], mapped[i]);
        }
    }
}

// The fault is none of those that worker/calibration/temperature_scaling.c has a hypothesis for.
static void a_fault_that_nobody_thought_of_is_corrected_too(void **state)
{
    (void)state;
    double raw = 0, mapped = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stats_rng rng;
        stats_rng_init(&rng, seed, 4);
        struct recalibration *recal = learnt(&rng, 100, SLIPPED);
        struct judged judged;
        judge(&judged, recal, &rng, SLIPPED);
        raw += judged.raw[SCORE_ECE_BIN].value / SEEDS;
        mapped += judged.mapped[SCORE_ECE_BIN].value / SEEDS;
        assert_true(judged.mapped[SCORE_CRPS].value < judged.raw[SCORE_CRPS].value);
        recal_free(recal);
    }
    if (!(raw > 0.2 && mapped < 0.08)) {
        fail_msg("%.4f became %.4f", raw, mapped);
    }
}

// One problem's outcomes are also those of its model and of everything: the three levels' maps are
// the same then, since nothing else is known at any of them.
static void outcomes_count_once_on_their_way_down_the_levels(void **state)
{
    (void)state;
    const struct recal_scope stranger = {"static", scope.device_class, "gemm"};
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 9);
    struct recalibration *recal = learnt(&rng, 100, SPOILT);
    for (size_t i = 0; i < 50; i++) {
        struct made made = make(&rng, SPOILT);
        struct recal_answer own, above;
        recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &own);
        recal_apply(recal, &stranger, &made.forecast, RECAL_FOLD_ALL, &above);
        assert_near(own.p_correct, above.p_correct, 1e-9);
        assert_near(own.p_improves, above.p_improves, 1e-9);
    }
    recal_free(recal);
}

// A perfect forecaster's CRPS rises by n / (n + κ)² in the mean (recalibrate.c derives it), n being
// its correct outcomes, about two of three here. The mean over the seeds has a standard error of
// about a fifth of that. One seed's rise is a quadratic form of noise, like the Cramér-von Mises
// statistic, whose 99.9 % point is 7 times its mean: 7 / (4 κ) is a bound for all thirty.
static void a_perfect_forecaster_loses_no_more_than_the_noise_of_its_map(void **state)
{
    (void)state;
    static const size_t sizes[] = {6, 30, 100, 600};
    const double kappa = recal_defaults.kappa[RECAL_PROBLEM];
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        double rise = 0, n = 0.675 * (double)sizes[k];
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            struct stats_rng rng;
            stats_rng_init(&rng, seed, 2);
            struct recalibration *recal = learnt(&rng, sizes[k], PERFECT);
            struct judged judged;
            judge(&judged, recal, &rng, PERFECT);
            double one = judged.mapped[SCORE_CRPS].value / judged.raw[SCORE_CRPS].value - 1;
            rise += one / SEEDS;
            assert_true(one < 7 / (4 * kappa));
            recal_free(recal);
        }
        if (!(rise < 1.6 * n / ((n + kappa) * (n + kappa)) + 0.001)) {
            fail_msg("after %zu outcomes the CRPS is higher by the factor %.4f", sizes[k], rise);
        }
    }
}

static void without_a_history_forecasts_stay_as_they_are(void **state)
{
    (void)state;
    struct stats_rng rng;
    struct recalibration *recal = recal_create(NULL);
    stats_rng_init(&rng, 1, 5);
    struct recal_answer answer;
    for (size_t i = 0; i < 50; i++) {
        struct made made = make(&rng, i % 2 == 0 ? PERFECT : SPOILT);
        recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &answer);
        assert_near(answer.p_correct, made.forecast.p_correct, 1e-12);
        assert_near(answer.p_correct_width, 1, 1e-12);
        assert_near(bins_mean(answer.bins), bins_mean(made.forecast.bins), 0.05);
        double sum = 0;
        for (size_t b = 0; b < BIN_COUNT; b++) {
            assert_true(answer.bins[b] > 0);
            sum += answer.bins[b];
        }
        assert_near(sum, 1, 1e-9);
        assert_int_equal(answer.version, 0);
    }
    struct recal_forecast nothing = {.p_correct = NAN, .p_improves = NAN};
    struct recal_outcome outcome = {.correct = true, .log2 = 1, .propensity = NAN};
    recal_add(recal, &scope, &nothing, &outcome);
    recal_refit(recal);
    recal_apply(recal, &scope, &nothing, RECAL_FOLD_ALL, &answer);
    assert_true(isnan(answer.p_correct) && isnan(answer.p_improves) && answer.bins[3] == 0);
    assert_int_equal(answer.version, 1);
    recal_free(recal);
}

static void a_new_problem_starts_from_its_model_and_then_speaks_for_itself(void **state)
{
    (void)state;
    const struct recal_scope other = {scope.model, scope.device_class, "gemm"};
    const struct recal_scope stranger = {"static", scope.device_class, "gemm"};
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 6);
    struct recalibration *recal = learnt(&rng, 300, SPOILT);
    struct made made = make(&rng, SPOILT);
    struct recal_answer answer;
    recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &answer);
    assert_true(answer.effective[RECAL_PROBLEM] > 150);
    assert_near(answer.effective[RECAL_MODEL] + answer.effective[RECAL_ALL], 0, 1e-9);
    double known = bins_mean(answer.bins);
    recal_apply(recal, &other, &made.forecast, RECAL_FOLD_ALL, &answer);
    assert_true(answer.effective[RECAL_PROBLEM] == 0 && answer.effective[RECAL_MODEL] > 150);
    assert_near(bins_mean(answer.bins), known, 0.15);
    recal_apply(recal, &stranger, &made.forecast, RECAL_FOLD_ALL, &answer);
    assert_true(answer.effective[RECAL_MODEL] == 0 && answer.effective[RECAL_ALL] > 150);
    // On the other problem the same model is perfect, and says so by outcomes.
    struct judged before, after;
    for (size_t i = 0; i < 150; i++) {
        struct made one = make(&rng, PERFECT);
        recal_add(recal, &other, &one.forecast, &one.outcome);
    }
    recal_refit(recal);
    judge_scope(&after, recal, &other, &rng, PERFECT);
    assert_true(after.mapped[SCORE_CRPS].value < 1.1 * after.raw[SCORE_CRPS].value);
    judge_scope(&before, recal, &scope, &rng, SPOILT);
    assert_true(before.mapped[SCORE_CRPS].value < 0.7 * before.raw[SCORE_CRPS].value);
    recal_free(recal);
}

static void a_row_does_not_calibrate_itself(void **state)
{
    (void)state;
    struct recal_answer answer[2], all[2];
    for (int turn = 0; turn < 2; turn++) {
        struct stats_rng rng;
        stats_rng_init(&rng, 1, 7);
        struct recalibration *recal = recal_create(NULL);
        struct made mine = {0};
        size_t even = 0;
        for (size_t i = 0; i < 60; i++) {
            struct made made = make(&rng, SPOILT);
            even += recal_fold_without(made.outcome.key) == RECAL_FOLD_EVEN;
            if (i == 30) {
                made.outcome.correct = turn == 0;
                made.outcome.log2 = 5.5;
                mine = made;
            }
            recal_add(recal, &scope, &made.forecast, &made.outcome);
        }
        assert_in_range(even, 15, 45);
        recal_refit(recal);
        recal_apply(recal, &scope, &mine.forecast, recal_fold_without(mine.outcome.key),
                    &answer[turn]);
        recal_apply(recal, &scope, &mine.forecast, RECAL_FOLD_ALL, &all[turn]);
        recal_free(recal);
    }
    assert_memory_equal(&answer[0], &answer[1], sizeof answer[0]);
    assert_true(all[0].p_correct > all[1].p_correct && all[0].bins[12] > all[1].bins[12]);
}

static void every_refit_is_a_new_version_and_audits_stand_for_many(void **state)
{
    (void)state;
    struct stats_rng rng;
    struct recalibration *recal = recal_create(NULL);
    stats_rng_init(&rng, 1, 8);
    struct made made = make(&rng, PERFECT);
    made.outcome.correct = true;
    for (size_t i = 0; i < 20; i++) {
        recal_add(recal, &scope, &made.forecast, &made.outcome);
    }
    struct recal_answer answer;
    recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &answer);
    assert_near(answer.effective[RECAL_PROBLEM], 0, 0);
    recal_refit(recal);
    recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &answer);
    assert_near(answer.effective[RECAL_PROBLEM], 20, 1e-9);
    double sure = answer.p_correct;
    made.outcome.propensity = 0.01; // capped at RECAL_WEIGHT_MAX
    made.outcome.correct = false;
    recal_add(recal, &scope, &made.forecast, &made.outcome);
    recal_refit(recal);
    assert_int_equal(recal_version(recal), 2);
    recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &answer);
    assert_int_equal(answer.version, 2);
    assert_true(answer.p_correct < sure - 0.02);
    made.outcome.propensity = 1;
    for (size_t i = recal_rows(recal); i <= RECAL_ROWS_MAX; i++) {
        recal_add(recal, &scope, &made.forecast, &made.outcome);
    }
    assert_int_equal(recal_rows(recal), RECAL_ROWS_MAX - RECAL_ROWS_MAX / 4 + 1);
    recal_free(recal);
}

static void the_alarm_tells_a_broken_forecaster_and_is_quiet_otherwise(void **state)
{
    (void)state;
    size_t quiet = 0, outcomes = 0, late = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stats_rng rng;
        bool spoilt = seed % 2 == 1, alarm = false;
        stats_rng_init(&rng, seed, 3);
        struct recalibration *recal = recal_create(NULL);
        for (size_t i = 0; i < 400; i++, outcomes++) {
            struct made made = make(&rng, spoilt ? SPOILT : PERFECT);
            recal_add(recal, &scope, &made.forecast, &made.outcome);
            if (i % 20 == 19) {
                recal_refit(recal);
            }
        }
        quiet += recal_alarms(recal);
        size_t delay = 0;
        for (; delay < 300 && !alarm; delay++) {
            struct made made = make(&rng, spoilt ? PERFECT : SPOILT);
            alarm = recal_add(recal, &scope, &made.forecast, &made.outcome);
        }
        assert_true(alarm);
        late += delay > 100;
        // The problem's level keeps the outcomes from about the break on.
        struct made made = make(&rng, PERFECT);
        recal_refit(recal);
        struct recal_answer answer;
        recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &answer);
        assert_true(answer.effective[RECAL_PROBLEM] <= (double)delay + 60);
        assert_true(answer.effective[RECAL_MODEL] > 150);
        recal_free(recal);
    }
    // 12 000 outcomes at one false alarm in at least DRIFT_RUN.
    assert_true((double)quiet <= (double)outcomes / DRIFT_RUN);
    assert_true(late <= SEEDS / 10);
}

static void bets_do_not_pay_against_calibrated_forecasts(void **state)
{
    (void)state;
    // The mean of every factor over what was forecast is 1: by quadrature over u and both outcomes.
    const size_t steps = 20000;
    double mean[DRIFT_BETS] = {0};
    for (size_t i = 0; i < steps; i++) {
        for (int correct = 0; correct < 2; correct++) {
            struct drift drift;
            drift_init(&drift, 0);
            for (size_t b = 0; b < DRIFT_BETS; b++) {
                drift.wealth[b] = 100; // so that no loss is cut off at 1
            }
            double u = ((double)i + 0.5) / (double)steps, p = 0.7;
            uint64_t since;
            drift_add(&drift, 0, p, correct, u, &since);
            for (size_t b = 0; b < DRIFT_BETS; b++) {
                mean[b] += drift.wealth[b] / 100 * (correct ? p : 1 - p) / (double)steps;
            }
        }
    }
    for (size_t b = 0; b < DRIFT_BETS; b++) {
        assert_near(mean[b], 1, 0.01);
    }
}

// The least-squares fit that does not fall, at one place: the largest mean over what begins at or
// before it of the smallest mean over what ends at or after it.
static double isotonic(const double *y, const double *w, size_t n, size_t at)
{
    double best = -INFINITY;
    for (size_t a = 0; a <= at; a++) {
        double least = INFINITY, sum = 0, weight = 0;
        for (size_t b = a; b < n; b++) {
            sum += w[b] * y[b];
            weight += w[b];
            if (b >= at) {
                least = fmin(least, sum / weight);
            }
        }
        best = fmax(best, least);
    }
    return best;
}

static void venn_abers_is_two_isotonic_fits(void **state)
{
    (void)state;
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 9);
    struct venn_abers predictor = {0};
    for (size_t round = 0; round < 300; round++) {
        double score[30], weight[30], y[31], w[31], sum = 0, square = 0;
        bool event[30];
        size_t n = 1 + stats_rng_below(&rng, 30), groups = 0, at = 0;
        double asked = 1 + (double)stats_rng_below(&rng, 41) / 2; // between scores, too
        for (size_t i = 0; i < n; i++) {
            score[i] = (i > 0 ? score[i - 1] : 1) + (double)stats_rng_below(&rng, 2);
            weight[i] = 1 + (double)stats_rng_below(&rng, 3);
            event[i] = stats_rng_unit(&rng) < score[i] / 20;
            sum += weight[i];
            square += weight[i] * weight[i];
        }
        venn_abers_fit(&predictor, score, weight, event, n);
        struct venn_abers_answer answer = venn_abers_ask(&predictor, asked);
        for (int as = 0; as < 2; as++) { // the asked point goes in, equal scores become one
            double own = square / sum, last = -1;
            groups = 0;
            bool in = false;
            for (size_t i = 0; i <= n; i++) {
                if (!in && (i == n || score[i] >= asked)) {
                    at = groups++;
                    w[at] = own;
                    y[at] = as;
                    in = true;
                    last = asked;
                }
                if (i == n) {
                    break;
                }
                if (groups == 0 || score[i] > last || score[i] < last) {
                    w[groups] = y[groups] = 0;
                    groups++;
                    last = score[i];
                }
                size_t g = groups - 1;
                y[g] = (y[g] * w[g] + weight[i] * event[i]) / (w[g] + weight[i]);
                w[g] += weight[i];
            }
            assert_near(as == 0 ? answer.p0 : answer.p1, isotonic(y, w, groups, at), 1e-12);
        }
        assert_true(answer.p >= answer.p0 - 1e-12 && answer.p <= answer.p1 + 1e-12);
    }
    venn_abers_release(&predictor);
    struct venn_abers_answer empty = venn_abers_ask(&predictor, 0.3);
    assert_true(empty.p0 == 0 && empty.p1 == 1 && empty.p == 0.5 && empty.width == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shifted_and_overconfident_forecaster_becomes_honest),
        cmocka_unit_test(a_fault_that_nobody_thought_of_is_corrected_too),
        cmocka_unit_test(outcomes_count_once_on_their_way_down_the_levels),
        cmocka_unit_test(a_perfect_forecaster_loses_no_more_than_the_noise_of_its_map),
        cmocka_unit_test(without_a_history_forecasts_stay_as_they_are),
        cmocka_unit_test(a_new_problem_starts_from_its_model_and_then_speaks_for_itself),
        cmocka_unit_test(a_row_does_not_calibrate_itself),
        cmocka_unit_test(every_refit_is_a_new_version_and_audits_stand_for_many),
        cmocka_unit_test(the_alarm_tells_a_broken_forecaster_and_is_quiet_otherwise),
        cmocka_unit_test(bets_do_not_pay_against_calibrated_forecasts),
        cmocka_unit_test(venn_abers_is_two_isotonic_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
