#include "client/forecast/search_tried.h"

#include "common/mem.h"
#include "common/utf8.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct result *search_result(const struct run_state_candidate *candidate)
{
    return candidate->record ? candidate->record : candidate->result;
}

char *search_cut(const char *text, size_t max)
{
    size_t len = 0;

    if (!text) {
        return NULL;
    }
    size_t all = strlen(text);
    for (size_t step = 1; len < all && step > 0; len += step) {
        step = utf8_length((const unsigned char *)text + len, all - len);
        if (step == 0 || len + step > max) {
            break;
        }
    }
    return xstrndup(text, len);
}

double *search_case_speedups(const struct result *result, const struct search_context *context,
                             size_t *ret_count)
{
    *ret_count = 0;
    if (!result || !verdict_is_ratio(result->verdict) || context->cases_count < 2) {
        return NULL;
    }
    double *ret = xcalloc(context->cases_count, sizeof(*ret));
    for (size_t i = 0; i < context->cases_count; i++) {
        ret[i] = NAN;
        for (size_t j = 0; j < result->cases_count; j++) {
            if (strcmp(result->cases[j].params, context->cases[i].params) == 0) {
                ret[i] = result->cases[j].speedup->log2;
            }
        }
    }
    *ret_count = context->cases_count;
    return ret;
}

// What is known about how a candidate came out.
struct candidate_outcome {
    uint64_t verdict; // VERDICT_NONE: nothing yet
    double log2;      // for the verdicts that are a ratio, else NaN
    const char *reason;
    const struct result *result; // NULL when it was not measured
};

static struct candidate_outcome outcome_of(const struct run_state_candidate *candidate)
{
    const struct result *result = search_result(candidate);
    struct candidate_outcome ret = {.verdict = VERDICT_NONE, .log2 = NAN, .result = result};

    if (result) {
        ret.verdict = result->verdict;
        ret.reason = result->reason;
        if (verdict_is_ratio(result->verdict) && result->speedup) {
            ret.log2 = result->speedup->log2;
        }
    } else if (candidate->compiled) {
        ret.verdict = candidate->compiled->verdict;
        ret.reason = candidate->compiled->reason;
    }
    return ret;
}

bool search_tried(struct tried *ret, const struct run_state *run_state, uint64_t id,
                  const struct search_context *context)
{
    const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
    struct candidate_outcome outcome = outcome_of(candidate);

    if (outcome.verdict == VERDICT_NONE) {
        return false;
    }
    ret->candidate = id;
    ret->name = search_cut(candidate->proposed.name, 250);
    ret->verdict = outcome.verdict;
    ret->log2 = outcome.log2;
    ret->cases = search_case_speedups(outcome.result, context, &ret->cases_count);
    if (outcome.reason && !verdict_is_ratio(outcome.verdict)) {
        ret->reason = search_cut(outcome.reason, 1000);
    }
    return true;
}

int search_known_source(struct known_source *ret, const struct run_state *run_state, uint64_t id,
                        uint64_t visible, const struct search_context *context,
                        search_text_reader *read, void *owner, struct err *err)
{
    const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
    const struct compiled *compiled = candidate->compiled;
    struct candidate_outcome outcome = outcome_of(candidate);

    message_init(&known_source_message, ret);
    ret->candidate = id;
    ret->name = search_cut(candidate->proposed.name, 1000);
    if (id > visible) {
        ret->verdict = VERDICT_NONE;
        ret->log2 = NAN;
        return read(owner, &candidate->proposed.source, &ret->source, err);
    }
    ret->verdict = outcome.verdict;
    ret->log2 = outcome.log2;
    ret->reason = search_cut(outcome.reason, 8000);
    ret->cases = search_case_speedups(outcome.result, context, &ret->cases_count);
    if (compiled) {
        ret->features =
            message_copy_all(&fact_message, compiled->features, compiled->features_count);
        ret->features_count = compiled->features_count;
        ret->log = search_cut(compiled->log, 65000);
    }
    return read(owner, &candidate->proposed.source, &ret->source, err);
}
