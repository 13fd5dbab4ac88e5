#include "client/policy/false_omission.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>

// The place of a candidate among the audits that were drawn at the end; 0: it is none of them.
static uint64_t draw_of(const struct run_state_candidate *candidate)
{
    if (candidate->drawn_before > 0) {
        return 0; // at an end after which the search was extended
    }
    return candidate->proposed.draw > 0 ? candidate->proposed.draw : candidate->decided.draw;
}

static double probability_of(const struct run_state_candidate *candidate)
{
    return candidate->proposed.draw > 0 ? candidate->proposed.draw_probability
                                        : candidate->decided.propensity;
}

// By the audits that were drawn at the end, against the incumbent of then. One whose outcome is not
// known, such as one that the daemon gave up, ends the draws that count. What does not compile, and
// what has the object of another candidate, does not improve.
static struct false_omission by_draws(const struct run_state *run_state, uint64_t drawn)
{
    struct certify_draw *draw = xcalloc((size_t)drawn + 1, sizeof(*draw));
    bool *known = xcalloc((size_t)drawn + 1, sizeof(*known));
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        uint64_t place = draw_of(candidate);
        if (place == 0 || place > drawn) {
            continue;
        }
        bool refused = candidate->compiled && candidate->compiled->verdict != VERDICT_NONE;
        known[place - 1] = candidate->result || refused || candidate->proposed.duplicate_of != 0 ||
                           candidate->object_duplicate_of != 0;
        draw[place - 1] = (struct certify_draw){.probability = probability_of(candidate),
                                                .improves = improvement_measured(candidate)};
    }
    size_t count = 0;
    while (count < drawn && known[count]) {
        count++;
    }
    struct false_omission omission =
        certify_draws(draw, count, (size_t)run_state->draw_population, run_state->draw_uniform,
                      FALSE_OMISSION_CONFIDENCE);
    free(known);
    free(draw);
    return omission;
}

struct false_omission false_omission_of_run(const struct run_state *run_state)
{
    if (run_state->draws > 0) {
        return by_draws(run_state, run_state->draws);
    }
    struct certify_row *row = xcalloc(run_state->candidate_count + 1, sizeof(*row));
    size_t count = 0;
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        uint64_t decision = candidate->decided.decision;
        bool point = candidate->proposed.draw > 0; // it was never trusted
        if (!point && (decision == DECISION_TRUST || decision == DECISION_AUDIT)) {
            row[count++] = (struct certify_row){
                .score = candidate->decided.confidence,
                .forecast = candidate->forecast ? candidate->forecast->p_improves : NAN,
                .propensity = run_state_propensity(run_state, candidate),
                .measured = decision == DECISION_AUDIT && candidate->result,
                .improves = improvement_measured(candidate)};
        }
    }
    struct false_omission omission = certify_false_omission(row, count, FALSE_OMISSION_CONFIDENCE);
    free(row);
    return omission;
}
