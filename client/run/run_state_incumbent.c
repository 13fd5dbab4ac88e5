#include "client/run/run_state.h"

#include <math.h>

double run_state_incumbent_log2(const struct run_state *run_state)
{
    return run_state->incumbent_count == 0
               ? 0
               : run_state->incumbent[run_state->incumbent_count - 1].event.speedup->log2;
}

bool run_state_reached(const struct run_state *run_state, double target)
{
    return target > 0 && run_state->incumbent_count > 0 &&
           run_state_incumbent_log2(run_state) >= log2(target);
}

static const struct run_incumbent *incumbent_before(const struct run_state *run_state,
                                                    uint64_t last)
{
    for (size_t i = run_state->incumbent_count; i > 0; i--) {
        if (run_state->incumbent[i - 1].event.candidate <= last) {
            return &run_state->incumbent[i - 1].event;
        }
    }
    return NULL;
}

double run_state_incumbent_before(const struct run_state *run_state, uint64_t last)
{
    const struct run_incumbent *incumbent = incumbent_before(run_state, last);
    return incumbent ? incumbent->speedup->log2 : 0;
}

const struct run_state_candidate *run_state_best_before(const struct run_state *run_state,
                                                        uint64_t last)
{
    const struct run_incumbent *incumbent = incumbent_before(run_state, last);
    return incumbent ? &run_state->candidate[incumbent->candidate - 1] : NULL;
}

const struct run_state_candidate *run_state_best(const struct run_state *run_state)
{
    return run_state->incumbent_count == 0
               ? NULL
               : &run_state->candidate
                      [run_state->incumbent[run_state->incumbent_count - 1].event.candidate - 1];
}
