#include "client/search/novelty.h"

#include "client/run/improvement.h"
#include "common/mem.h"
#include "problem/source_shingles.h"
#include "proto/verdict.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct novelty {
    struct source_shingles *of; // entry i is of candidate i + 1; without a hash: not added
    size_t count;
};

struct novelty *novelty_create(void)
{
    return xcalloc(1, sizeof(struct novelty));
}

void novelty_free(struct novelty *novelty)
{
    for (size_t i = 0; novelty && i < novelty->count; i++) {
        source_shingles_release(&novelty->of[i]);
    }
    if (novelty) {
        free(novelty->of);
    }
    free(novelty);
}

void novelty_add(struct novelty *novelty, uint64_t candidate, const void *source, size_t len)
{
    if (candidate > novelty->count) {
        novelty->of = xrealloc(novelty->of, (size_t)candidate, sizeof(*novelty->of));
        memset(novelty->of + novelty->count, 0,
               ((size_t)candidate - novelty->count) * sizeof(*novelty->of));
        novelty->count = (size_t)candidate;
    }
    source_shingles_release(&novelty->of[candidate - 1]);
    source_shingles_make(&novelty->of[candidate - 1], source, len);
}

bool novelty_is_spent(const struct novelty *novelty, const struct run_state *run_state,
                      uint64_t visible, const void *source, size_t len)
{
    struct source_shingles shingles;
    size_t found = 0;
    double newest = -INFINITY, before = -INFINITY; // log2 speedups

    source_shingles_make(&shingles, source, len);
    for (uint64_t id = visible < novelty->count ? visible : novelty->count; id > 0; id--) {
        const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
        const struct result *result = candidate->record ? candidate->record : candidate->result;

        if (!novelty->of[id - 1].hash || !result || !verdict_is_ratio(result->verdict) ||
            !result->speedup ||
            source_shingles_similarity(&shingles, &novelty->of[id - 1]) < NOVELTY_ALIKE) {
            continue;
        }
        if (found++ < NOVELTY_TRIES) {
            newest = fmax(newest, result->speedup->log2);
        } else {
            before = fmax(before, result->speedup->log2);
        }
    }
    source_shingles_release(&shingles);
    return found > NOVELTY_TRIES && newest < before + IMPROVEMENT_MARGIN_LOG2;
}
