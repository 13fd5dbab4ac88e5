#include "replay/perfect_forecaster.h"

#include "common/mem.h"
#include "proto/bins.h"
#include "proto/verdict.h"
#include <math.h>

#define ENGINE "perfect"

static double number_or(double value, double otherwise)
{
    return isfinite(value) ? value : otherwise;
}

// A candidate that is not correct has no speed. Its distribution, which has no weight then, lies at
// the baseline.
static void fill_speed(const struct forecast_request *request, double log2, struct forecast *ret)
{
    bool correct = !isnan(log2);
    double incumbent = number_or(request->incumbent_log2, 0);
    double beyond = log2 - incumbent - number_or(request->margin_log2, 0);

    ret->bins = xcalloc(BIN_COUNT, sizeof(*ret->bins));
    ret->bins_count = BIN_COUNT;
    ret->bins[bin_of(correct ? log2 : 0)] = 1;
    ret->mean_log2 = correct ? log2 : 0;
    ret->p_improves = correct && beyond > 0 ? 1 : 0;
    ret->expected_improvement = correct ? fmax(beyond, 0) : 0;
    if (request->beyond_log2_count > 0) {
        ret->p_beyond = xcalloc(request->beyond_log2_count, sizeof(*ret->p_beyond));
        ret->p_beyond_count = request->beyond_log2_count;
    }
    for (size_t i = 0; i < ret->p_beyond_count; i++) {
        ret->p_beyond[i] = correct && log2 > incumbent + request->beyond_log2[i] ? 1 : 0;
    }
}

static void fill_forecast(const struct recorded_space *recorded,
                          const struct forecast_request *request,
                          const struct candidate_facts *facts, struct forecast *ret)
{
    const struct space_candidate *truth = recorded_space_of_facts(recorded, facts);

    message_init(&forecast_message, ret);
    ret->id = facts->id;
    ret->engine = xstrdup(ENGINE);
    ret->seconds = NAN;
    if (!truth) {
        ret->p_improves = ret->confidence = NAN;
        ret->reason = xstrdup("the recorded space does not have this candidate");
        return;
    }
    double log2 = space_log2(truth);
    ret->p_compiles = truth->compiled && truth->compiled->verdict != VERDICT_NONE ? 0 : 1;
    ret->p_correct = isnan(log2) ? 0 : 1;
    ret->confidence = 1;
    ret->model_version = 1;
    // It knows as many outcomes as there are candidates.
    ret->trained_rows = recorded_space_data(recorded)->head.candidates;
    fill_speed(request, log2, ret);
}

void perfect_forecast(const struct recorded_space *recorded, const struct forecast_request *request,
                      struct forecast_reply *ret)
{
    size_t count = request->candidates_count;

    *ret = (struct forecast_reply){.forecasts = xcalloc(count + 1, sizeof(*ret->forecasts)),
                                   .forecasts_count = count};
    for (size_t i = 0; i < count; i++) {
        fill_forecast(recorded, request, &request->candidates[i], &ret->forecasts[i]);
    }
}
