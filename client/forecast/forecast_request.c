#include "client/forecast/forecast_request.h"

#include "client/run/improvement.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>

bool forecast_wants(const struct run_state *run_state, uint64_t candidate)
{
    const struct run_state_candidate *c = &run_state->candidate[candidate - 1];

    return c->proposed.duplicate_of == 0 && c->object_duplicate_of == 0 && c->compiled &&
           c->compiled->verdict == VERDICT_NONE && !c->forecast_done && c->decided.decision == 0;
}

static void fill_facts(const struct run_state_candidate *candidate, struct candidate_facts *ret)
{
    *ret = (struct candidate_facts){
        .id = candidate->proposed.candidate,
        .digest = candidate->proposed.source,
        .features = candidate->compiled->features,
        .features_count = candidate->compiled->features_count,
        .params = candidate->proposed.params,
        .params_count = candidate->proposed.params_count,
        .source_facts = candidate->proposed.source_facts,
        .source_facts_count = candidate->proposed.source_facts_count,
    };
}

// Everything but the candidates.
static struct forecast_request request_of(const struct run_state *run_state, uint64_t visible)
{
    struct forecast_request ret = {
        .problem = run_state->started.problem,
        .problem_digest = run_state->started.problem_json,
        .device_class = run_state->session.device_class,
        .device_facts = run_state->session.device_facts,
        .device_facts_count = run_state->session.device_facts_count,
        .incumbent_log2 = run_state_incumbent_before(run_state, visible),
        .search = run_state->started.search,
        .margin_log2 = IMPROVEMENT_MARGIN_LOG2,
    };
    if (run_state->baseline) {
        ret.baseline_features = run_state->baseline->features;
        ret.baseline_features_count = run_state->baseline->features_count;
    }
    return ret;
}

void forecast_questions(const struct run_state *run_state, uint64_t first, uint64_t last,
                        uint64_t visible, struct forecast_request *ret)
{
    *ret = request_of(run_state, visible);
    ret->candidates = xcalloc((size_t)(last - first + 1), sizeof(*ret->candidates));
    for (uint64_t id = first; id <= last; id++) {
        if (forecast_wants(run_state, id)) {
            fill_facts(&run_state->candidate[id - 1], &ret->candidates[ret->candidates_count++]);
        }
    }
}

void forecast_questions_again(const struct run_state *run_state, const uint64_t *candidate,
                              size_t count, uint64_t visible, struct forecast_request *ret)
{
    *ret = request_of(run_state, visible);
    ret->candidates = xcalloc(count + 1, sizeof(*ret->candidates));
    for (size_t i = 0; i < count; i++) {
        fill_facts(&run_state->candidate[candidate[i] - 1],
                   &ret->candidates[ret->candidates_count++]);
    }
}

void forecast_screening(const struct run_state *run_state, struct candidate_facts *facts,
                        size_t count, uint64_t visible, struct forecast_request *ret)
{
    *ret = request_of(run_state, visible);
    ret->candidates = facts;
    ret->candidates_count = count;
    ret->screening = true;
}

void forecast_questions_free(struct forecast_request *request)
{
    free(request->candidates);
    *request = (struct forecast_request){.candidates = NULL};
}

bool forecast_teaches(const struct run_state_candidate *candidate)
{
    // The times of one that ran unsealed are of another clock than those of others.
    return (candidate->result && !candidate->result->unsealed) ||
           (candidate->compiled && candidate->compiled->verdict == VERDICT_COMPILE_ERROR);
}

// Makes the outcome of one candidate. False when it has none.
static bool make_outcome(const struct run_state *run_state, uint64_t id, struct outcome *ret)
{
    const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
    const struct result *result = candidate->result;

    if (!forecast_teaches(candidate)) {
        return false;
    }
    *ret = (struct outcome){
        .candidate = xcalloc(1, sizeof(*ret->candidate)),
        .verdict = result ? result->verdict : VERDICT_COMPILE_ERROR,
        .log2 = NAN,
        .lo = NAN,
        .hi = NAN,
        .audit = candidate->decided.decision == DECISION_AUDIT,
        .propensity = result ? run_state_propensity(run_state, candidate) : 1,
        .margin_log2 = IMPROVEMENT_MARGIN_LOG2,
        .incumbent_log2 = candidate->decided.incumbent_log2,
        .p_improves = candidate->forecast ? candidate->forecast->p_improves : NAN,
        .raw = candidate->forecast ? candidate->forecast->raw : NULL,
        .model = candidate->proposed.model,
        .gain_log2 = candidate->proposed.model ? improvement_gain(run_state, id) : NAN,
        .key = xasprintf("%s/%llu", run_state->started.search, (unsigned long long)id),
    };
    fill_facts(candidate, ret->candidate);
    if (result && verdict_is_ratio(result->verdict) && result->speedup) {
        ret->log2 = result->speedup->log2;
        ret->lo = result->speedup->lo;
        ret->hi = result->speedup->hi;
    }
    return true;
}

void forecast_outcomes(const struct run_state *run_state, uint64_t *next, uint64_t last, size_t max,
                       struct observe *ret)
{
    *ret = (struct observe){
        .problem = run_state->started.problem,
        .problem_digest = run_state->started.problem_json,
        .device_class = run_state->session.device_class,
        .device_facts = run_state->session.device_facts,
        .device_facts_count = run_state->session.device_facts_count,
        .outcomes = xcalloc(max, sizeof(*ret->outcomes)),
    };
    if (run_state->baseline) {
        ret->baseline_features = run_state->baseline->features;
        ret->baseline_features_count = run_state->baseline->features_count;
    }
    while (*next <= last && ret->outcomes_count < max) {
        ret->outcomes_count +=
            make_outcome(run_state, (*next)++, &ret->outcomes[ret->outcomes_count]);
    }
}

void forecast_outcomes_free(struct observe *observe)
{
    for (size_t i = 0; i < observe->outcomes_count; i++) {
        free(observe->outcomes[i].candidate);
        free(observe->outcomes[i].key);
    }
    free(observe->outcomes);
    *observe = (struct observe){.outcomes = NULL};
}
