#include "client/report/run_unsealed.h"

#include "client/show.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct unsealed {
    uint64_t count;                            // measured
    const struct run_state_candidate *fastest; // of those that are correct; NULL: none is
};

static struct unsealed find(const struct run_state *run_state)
{
    struct unsealed found = {.count = 0};
    for (size_t i = 0; i < run_state->candidate_count; i++) {
        const struct run_state_candidate *candidate = &run_state->candidate[i];
        const struct result *result = candidate->result;
        if (!result || !result->unsealed) {
            continue;
        }
        found.count++;
        if (verdict_is_ratio(result->verdict) && result->speedup &&
            (!found.fastest || result->speedup->log2 > found.fastest->result->speedup->log2)) {
            found.fastest = candidate;
        }
    }
    return found;
}

char *run_unsealed_sentence(const struct run_state *run_state)
{
    struct unsealed found = find(run_state);
    char speedup[64], fastest[128] = "none of them correct";
    if (found.count == 0) {
        return NULL;
    }
    if (found.fastest) {
        show_speedup(found.fastest->result->speedup, speedup, sizeof(speedup));
        snprintf(fastest, sizeof(fastest), "the fastest, candidate %llu, %s the baseline",
                 (unsigned long long)found.fastest->proposed.candidate, speedup);
    }
    return xasprintf("%llu candidate%s timed with host code in %s process, %s; %s",
                     (unsigned long long)found.count, found.count == 1 ? " was" : "s were",
                     found.count == 1 ? "its" : "their", fastest,
                     run_state->started.accept_unsealed
                         ? "--accept-unsealed lets such candidates become records"
                         : "such candidates become no records without --accept-unsealed");
}

json_t *run_unsealed_json(const struct run_state *run_state)
{
    struct unsealed found = find(run_state);
    char *sentence = run_unsealed_sentence(run_state);
    json_t *object = json_pack("{s:b, s:b, s:I, s:o}", "allowed", (int)run_state->started.unsealed,
                               "accepted", (int)run_state->started.accept_unsealed, "measured",
                               (json_int_t)found.count, "text", show_text(sentence));
    free(sentence);
    return object;
}
