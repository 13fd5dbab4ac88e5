#include "client/run/improvement.h"

#include <math.h>

bool improvement_measured(const struct run_state_candidate *candidate)
{
    const struct result *result = candidate->result;
    double incumbent = candidate->decided.incumbent_log2;
    return result && !candidate->barred && verdict_is_ratio(result->verdict) && result->speedup &&
           isfinite(result->speedup->log2) &&
           result->speedup->log2 > (isfinite(incumbent) ? incumbent : 0) + IMPROVEMENT_MARGIN_LOG2;
}

double improvement_gain(const struct run_state *run_state, uint64_t candidate)
{
    double before = 0;
    for (size_t i = 0; i < run_state->incumbent_count; i++) {
        const struct run_incumbent *event = &run_state->incumbent[i].event;
        if (event->candidate == candidate) {
            return event->speedup->log2 - before;
        }
        before = event->speedup->log2;
    }
    return NAN;
}
