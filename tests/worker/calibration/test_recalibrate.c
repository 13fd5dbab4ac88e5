// Recalibration of made-up forecasters, thirty seeds each. A shifted, overconfident one becomes
// calibrated, a perfect one loses no more than the noise of its map, and the alarm notices one that
// breaks.
#include "client/eval/score.h"
#include "common/mem.h"
#include "common/stats.h"
#include "tests/worker/calibration/miscalibrated.h"
#include "worker/calibration/drift.h"
#include "worker/calibration/recalibrate.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four headers above.
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS 30
#define BAR 0.5    // log2 speedup that an improvement must exceed
#define FRESH 2000 // forecasts for scoring a map, none of which it has seen

static const struct recal_scope scope = {"llm", "gpu: H200", "softmax"};

static void assert_near(double a, double b, double tolerance)
{
    if (!(fabs(a - b) <= tolerance)) {
        fail_msg("%.17g is not %.17g", a, b);
    }
}

// A forecast of one candidate, and its outcome.
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

// Forecasts everything 0.6 octaves too slow, as a normal distribution with half the spread.
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

enum kind { PERFECT, MISCALIBRATED, SLIPPED };

static struct made make(struct stats_rng *rng, enum kind kind)
{
    struct made made;
    make_truth(rng, &made);
    if (kind == MISCALIBRATED) {
        miscalibrate(&made.forecast, BAR);
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

// Scores fresh forecasts of the same forecaster, as they are stated and as they are recalibrated.
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
        double before, after; // the mean over the seeds is above this, then below that
    } ece[] = {{SCORE_ECE_BIN, 0.2, 0.05},
               {SCORE_ECE_CORRECT, 0.2, 0.05}, // mean here 0.047, over 300 seeds 0.043
               {SCORE_ECE_IMPROVES, 0.2, 0.05}};
    double raw[3] = {0}, mapped[3] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct stats_rng rng;
        stats_rng_init(&rng, seed, 1);
        struct recalibration *recal = learnt(&rng, 100, MISCALIBRATED);
        struct judged judged;
        judge(&judged, recal, &rng, MISCALIBRATED);
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

// The fault is not among those that worker/calibration/temperature_scaling.c has a hypothesis for.
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

// With the outcomes of one problem only, they are also all outcomes of its model and all outcomes.
// The maps of the three levels are then the same.
static void outcomes_count_once_on_their_way_down_the_levels(void **state)
{
    (void)state;
    const struct recal_scope stranger = {"static", scope.device_class, "gemm"};
    struct stats_rng rng;
    stats_rng_init(&rng, 1, 9);
    struct recalibration *recal = learnt(&rng, 100, MISCALIBRATED);
    for (size_t i = 0; i < 50; i++) {
        struct made made = make(&rng, MISCALIBRATED);
        struct recal_answer own, above;
        recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &own);
        recal_apply(recal, &stranger, &made.forecast, RECAL_FOLD_ALL, &above);
        assert_near(own.p_correct, above.p_correct, 1e-9);
        assert_near(own.p_improves, above.p_improves, 1e-9);
    }
    recal_free(recal);
}

// The mean CRPS of a perfect forecaster rises by the factor n / (n + kappa)^2 (recalibrate.c
// derives it), where n are its correct outcomes, about two of three here. The mean over the seeds
// has a standard error of about a fifth of that. The rise with one seed is a quadratic form of
// noise, like the Cramér-von Mises statistic, whose 99.9 % point is 7 times its mean. 7 / (4 kappa)
// therefore bounds all thirty.
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
        struct made made = make(&rng, i % 2 == 0 ? PERFECT : MISCALIBRATED);
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
    struct recalibration *recal = learnt(&rng, 300, MISCALIBRATED);
    struct made made = make(&rng, MISCALIBRATED);
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
    // On the other problem the same model is perfect, as its outcomes show.
    struct judged before, after;
    for (size_t i = 0; i < 150; i++) {
        struct made one = make(&rng, PERFECT);
        recal_add(recal, &other, &one.forecast, &one.outcome);
    }
    recal_refit(recal);
    judge_scope(&after, recal, &other, &rng, PERFECT);
    assert_true(after.mapped[SCORE_CRPS].value < 1.1 * after.raw[SCORE_CRPS].value);
    judge_scope(&before, recal, &scope, &rng, MISCALIBRATED);
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
            struct made made = make(&rng, MISCALIBRATED);
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
        bool miscalibrated = seed % 2 == 1, alarm = false;
        stats_rng_init(&rng, seed, 3);
        struct recalibration *recal = recal_create(NULL);
        for (size_t i = 0; i < 400; i++, outcomes++) {
            struct made made = make(&rng, miscalibrated ? MISCALIBRATED : PERFECT);
            recal_add(recal, &scope, &made.forecast, &made.outcome);
            if (i % 20 == 19) {
                recal_refit(recal);
            }
        }
        quiet += recal_alarms(recal);
        size_t delay = 0;
        for (; delay < 300 && !alarm; delay++) {
            struct made made = make(&rng, miscalibrated ? PERFECT : MISCALIBRATED);
            alarm = recal_add(recal, &scope, &made.forecast, &made.outcome);
        }
        assert_true(alarm);
        late += delay > 100;
        // The problem's level keeps the outcomes from about the change on.
        struct made made = make(&rng, PERFECT);
        recal_refit(recal);
        struct recal_answer answer;
        recal_apply(recal, &scope, &made.forecast, RECAL_FOLD_ALL, &answer);
        assert_true(answer.effective[RECAL_PROBLEM] <= (double)delay + 60);
        assert_true(answer.effective[RECAL_MODEL] > 150);
        recal_free(recal);
    }
    // One false alarm in at least DRIFT_RUN outcomes is allowed, of 12 000.
    assert_true((double)quiet <= (double)outcomes / DRIFT_RUN);
    assert_true(late <= SEEDS / 10);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
