// Whether the static engine's forecasts should be recalibrated by their own record, as those of
// language models are. Searches over the made-up space of tests/worker/space.h measure what is not
// trusted at 0.9: once with the forecasts as they are, once recalibrated
// (worker/calibration/recalibrate.h). Printed are how many candidates are measured, how much speed
// is lost, how good the forecasts are, and how often confident calls are right.
//  bench_recalibration [SEARCHES]     default 12
#include "common/mem.h"
#include "common/parse.h"
#include "proto/bins.h"
#include "tests/worker/space.h"
#include "worker/calibration/decisions.h"
#include "worker/calibration/recalibrate.h"
#include "worker/model/group.h"
#include <stdio.h>
#include <stdlib.h>

#define THRESHOLD 0.9
#define AUDIT 0.1
#define CONSIDERED 400

static const struct recal_scope scope = {"static", "cpu x", "sgemm"};

struct variant {
    bool recalibrated;
    size_t considered, measured, scored, calls, right;
    double shortfall, confidence;
    // The raw ones are of the same forecasts before recalibration.
    double brier, log_score, raw_brier, raw_log_score;
};

struct search {
    struct variant *variant;
    struct group *group;
    struct recalibration *recalibration;
    struct decisions *calls; // record of calls by the recalibrated forecast
    double incumbent, best;
};

static void fail(const struct err *err)
{
    fprintf(stderr, "bench_recalibration: %s\n", err->text);
    exit(1);
}

static void forecast_one(struct search *search, struct space_point *point, struct forecast *ret)
{
    struct candidate_facts candidate = space_candidate(point, 0);
    struct forecast_request request;
    message_init(&forecast_request_message, &request);
    request.incumbent_log2 = search->incumbent;
    request.candidates = &candidate;
    request.candidates_count = 1;
    struct forecast_reply reply;
    struct err err = ERR_INIT;
    if (group_fit(search->group, false, &err) < 0 ||
        group_forecast(search->group, &request, &reply, &err) < 0) {
        fail(&err);
    }
    *ret = reply.forecasts[0];
    free(reply.forecasts);
}

static struct recal_forecast raw_of(const struct forecast *forecast)
{
    struct recal_forecast raw = {.p_correct = forecast->p_correct,
                                 .p_improves = forecast->p_improves};
    memcpy(raw.bins, forecast->bins, sizeof(raw.bins));
    return raw;
}

// Scores a forecast. It counts only when the model had learnt from something, since only then it
// made a call.
static void score_forecast(struct variant *variant, const struct forecast *forecast,
                           const struct recal_forecast *raw, const struct space_point *point,
                           bool improves)
{
    bool right = (forecast->p_improves >= 0.5) == improves;
    if (forecast->trained_rows == 0) {
        return;
    }
    variant->scored++;
    variant->brier += (forecast->p_improves - improves) * (forecast->p_improves - improves);
    variant->raw_brier += (raw->p_improves - improves) * (raw->p_improves - improves);
    if (point->correct) {
        variant->log_score -= log(fmax(forecast->bins[bin_of(point->log2)], 1e-4));
        variant->raw_log_score -= log(fmax(raw->bins[bin_of(point->log2)], 1e-4));
    }
    variant->calls++;
    variant->right += right;
    variant->confidence += forecast->confidence;
}

static void consider(struct search *search, size_t index, uint64_t seed)
{
    struct space_point point = space_point_at(index, seed);
    struct candidate_facts candidate = space_candidate(&point, index);
    struct outcome outcome = space_outcome(&point, &candidate);
    struct observe context;
    message_init(&observe_message, &context);
    struct forecast forecast;
    forecast_one(search, &point, &forecast);
    struct recal_forecast raw = raw_of(&forecast);
    struct recal_answer answer;
    if (search->variant->recalibrated) {
        recal_apply(search->recalibration, &scope, &raw, RECAL_FOLD_ALL, &answer);
        memcpy(forecast.bins, answer.bins, sizeof(answer.bins));
        forecast.p_improves = answer.p_improves;
        forecast.p_correct = answer.p_correct;
        if (!forecast.reason) {
            forecast.confidence =
                decisions_confidence(search->calls, forecast.p_improves, search->incumbent);
        }
    }
    bool improves = point.correct && point.log2 > search->incumbent;
    bool trusted = forecast.p_improves < 0.5 && forecast.confidence >= THRESHOLD;
    double coin = (double)(stats_philox(seed, 9, index) >> 11) * 0x1p-53;
    score_forecast(search->variant, &forecast, &raw, &point, improves);
    outcome.p_improves = forecast.p_improves;
    outcome.incumbent_log2 = search->incumbent;
    outcome.propensity = trusted ? AUDIT : 1;
    search->variant->considered++;
    if (point.correct) {
        search->best = fmax(search->best, point.log2);
    }
    if (!trusted || coin < AUDIT) {
        struct recal_outcome known = {.correct = point.correct,
                                      .improved = improves,
                                      .log2 = point.log2,
                                      .propensity = outcome.propensity,
                                      .key = index};
        (void)recal_add(search->recalibration, &scope, &raw, &known);
        recal_refit(search->recalibration);
        if (forecast.trained_rows > 0) {
            decisions_add(search->calls, forecast.p_improves, improves, outcome.propensity,
                          search->incumbent);
        }
        group_add(search->group, &context, &outcome);
        search->variant->measured++;
        if (improves) {
            search->incumbent = point.log2;
        }
    }
    message_clear(&forecast_message, &forecast);
}

static void run(struct variant *variant, uint64_t searches)
{
    for (uint64_t seed = 1; seed <= searches; seed++) {
        size_t order[SPACE_POINTS];
        struct search search = {.variant = variant,
                                .group = group_create("sgemm", "cpu x"),
                                .recalibration = recal_create(NULL),
                                .calls = decisions_create()};
        space_order(order, seed);
        for (size_t i = 0; i < CONSIDERED; i++) {
            consider(&search, order[i], seed);
        }
        variant->shortfall += (search.best - search.incumbent) / (double)searches;
        group_free(search.group);
        recal_free(search.recalibration);
        decisions_free(search.calls);
    }
    printf(
        "%s: %zu of %zu measured, best found below the best considered by %.3f log2; Brier score of"
        " P(improves) %.5f (raw %.5f), log score of bins %.4f (raw %.4f); calls: confidence %.3f "
        "on average, right %.3f\n",
        variant->recalibrated ? "recalibrated" : "as they are", variant->measured,
        variant->considered, variant->shortfall, variant->brier / (double)variant->scored,
        variant->raw_brier / (double)variant->scored, variant->log_score / (double)variant->scored,
        variant->raw_log_score / (double)variant->scored,
        variant->confidence / (double)variant->calls,
        (double)variant->right / (double)variant->calls);
}

int main(int argc, char **argv)
{
    struct variant unchanged = {.recalibrated = false}, recalibrated = {.recalibrated = true};

    setvbuf(stdout, NULL, _IOLBF, 0);
    struct err err = ERR_INIT;
    uint64_t searches = 12;
    if (argc > 1 && parse_u64(&searches, argv[1], 1, 1000, "SEARCHES", &err) < 0) {
        fail(&err);
    }
    run(&unchanged, searches);
    run(&recalibrated, searches);
    return 0;
}
