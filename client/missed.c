#include "client/missed.h"
#include "client/forecast_request.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>

struct certify_missed missed_of(const struct fold *fold)
{
    struct certify_row *row = xcalloc(fold->candidate_count + 1, sizeof(*row));
    struct certify_missed missed;
    size_t count = 0;

    for (size_t i = 0; i < fold->candidate_count; i++) {
        const struct fold_candidate *candidate = &fold->candidate[i];
        uint64_t decision = candidate->decided.decision;

        if (decision == DECISION_TRUST || decision == DECISION_AUDIT) {
            row[count++] = (struct certify_row){
                .score = candidate->decided.confidence,
                .forecast = candidate->forecast != NULL ? candidate->forecast->p_improves : NAN,
                .propensity = candidate->decided.propensity,
                .measured = decision == DECISION_AUDIT && candidate->result != NULL,
                .bad = forecast_improved(candidate)};
        }
    }
    missed = certify_missed(row, count, MISSED_CONFIDENCE);
    free(row);
    return missed;
}
