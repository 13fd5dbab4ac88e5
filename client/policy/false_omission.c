#include "client/policy/false_omission.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

struct false_omission false_omission_of_run(const struct run_state *run_state)
{
    struct certify_row *row = xcalloc(run_state->candidate_count + 1, sizeof(*row));
    size_t count = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        uint64_t decision = candidate->decided.decision;
        if (decision == DECISION_TRUST || decision == DECISION_AUDIT) {
            row[count++] = (struct certify_row){
                .score = candidate->decided.confidence,
                .forecast = candidate->forecast ? candidate->forecast->p_improves : NAN,
                .propensity = candidate->decided.propensity,
                .measured = decision == DECISION_AUDIT && candidate->result,
                .improves = improvement_measured(candidate)};
        }
    }
    struct false_omission omission = certify_false_omission(row, count, FALSE_OMISSION_CONFIDENCE);
    free(row);
    return omission;
}
