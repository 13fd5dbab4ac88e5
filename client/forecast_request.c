#include "client/forecast_request.h"
#include "client/allot.h"
#include "common/mem.h"
#include "contract/verdict.h"
#include <math.h>
#include <stdlib.h>

bool forecast_wants(const struct fold *fold, uint64_t candidate)
{
    const struct fold_candidate *c = &fold->candidate[candidate - 1];

    return c->proposed.duplicate_of == 0 && c->object_duplicate_of == 0 && c->compiled != NULL &&
           c->compiled->verdict == VERDICT_NONE && !c->forecast_done;
}

bool forecast_improved(const struct fold_candidate *candidate)
{
    const struct result *result = candidate->result;
    double incumbent = candidate->decided.incumbent_log2;

    return result != NULL && verdict_is_ratio(result->verdict) && result->speedup != NULL &&
           isfinite(result->speedup->log2) &&
           result->speedup->log2 > (isfinite(incumbent) ? incumbent : 0) + FORECAST_MARGIN_LOG2;
}

static void fill_facts(const struct fold_candidate *candidate, struct candidate_facts *ret)
{
    *ret = (struct candidate_facts){
        .id = candidate->proposed.candidate,
        .digest = candidate->proposed.source,
        .features = candidate->compiled->features,
        .features_count = candidate->compiled->features_count,
        .params = candidate->proposed.params,
        .params_count = candidate->proposed.params_count,
    };
}

void forecast_questions(const struct fold *fold, uint64_t first, uint64_t last, uint64_t visible,
                        struct forecast_request *ret)
{
    *ret = (struct forecast_request){
        .problem = fold->started.problem,
        .problem_digest = fold->started.problem_json,
        .device_class = fold->session.device_class,
        .device_facts = fold->session.device_facts,
        .device_facts_count = fold->session.device_facts_count,
        .incumbent_log2 = fold_incumbent_before(fold, visible),
        .candidates = xcalloc((size_t)(last - first + 1), sizeof(*ret->candidates)),
        .search = fold->started.search,
        .margin_log2 = FORECAST_MARGIN_LOG2,
    };
    if (fold->baseline != NULL) {
        ret->baseline_features = fold->baseline->features;
        ret->baseline_features_count = fold->baseline->features_count;
    }
    for (uint64_t id = first; id <= last; id++) {
        if (forecast_wants(fold, id)) {
            fill_facts(&fold->candidate[id - 1], &ret->candidates[ret->candidates_count++]);
        }
    }
}

void forecast_questions_free(struct forecast_request *request)
{
    free(request->candidates);
    *request = (struct forecast_request){.candidates = NULL};
}

// Of a measured candidate, with facts of its own and a key.
static bool make_outcome(const struct fold *fold, uint64_t id, struct outcome *ret)
{
    const struct fold_candidate *candidate = &fold->candidate[id - 1];
    const struct result *result = candidate->result;

    if (result == NULL) {
        return false;
    }
    *ret = (struct outcome){
        .candidate = xcalloc(1, sizeof(*ret->candidate)),
        .verdict = result->verdict,
        .log2 = NAN,
        .lo = NAN,
        .hi = NAN,
        .audit = candidate->decided.decision == DECISION_AUDIT,
        .propensity = candidate->decided.propensity,
        .margin_log2 = FORECAST_MARGIN_LOG2,
        .incumbent_log2 = candidate->decided.incumbent_log2,
        .p_improves = candidate->forecast != NULL ? candidate->forecast->p_improves : NAN,
        .raw = candidate->forecast != NULL ? candidate->forecast->raw : NULL,
        .model = candidate->proposed.model,
        .gain_log2 = candidate->proposed.model != NULL ? allot_gain(fold, id) : NAN,
        .key = xasprintf("%s/%llu", fold->started.search, (unsigned long long)id),
    };
    fill_facts(candidate, ret->candidate);
    if (verdict_is_ratio(result->verdict) && result->speedup != NULL) {
        ret->log2 = result->speedup->log2;
        ret->lo = result->speedup->lo;
        ret->hi = result->speedup->hi;
    }
    return true;
}

void forecast_outcomes(const struct fold *fold, uint64_t *next, uint64_t last, size_t max,
                       struct observe *ret)
{
    *ret = (struct observe){
        .problem = fold->started.problem,
        .problem_digest = fold->started.problem_json,
        .device_class = fold->session.device_class,
        .device_facts = fold->session.device_facts,
        .device_facts_count = fold->session.device_facts_count,
        .outcomes = xcalloc(max, sizeof(*ret->outcomes)),
    };
    if (fold->baseline != NULL) {
        ret->baseline_features = fold->baseline->features;
        ret->baseline_features_count = fold->baseline->features_count;
    }
    while (*next <= last && ret->outcomes_count < max) {
        ret->outcomes_count += make_outcome(fold, (*next)++, &ret->outcomes[ret->outcomes_count]);
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
