#include "client/search/batches.h"

#include "client/run/run.h"
#include "common/mem.h"
#include <stddef.h>
#include <stdlib.h>

// A size of batches as the run says it.
static uint64_t size_of(uint64_t said, uint64_t otherwise)
{
    return said < 1 ? otherwise : said < RUN_BATCH_MAX ? said : RUN_BATCH_MAX;
}

struct batches batches_of(const struct run_started *started, bool fast)
{
    struct batches b = {.batch = size_of(started->batch, RUN_BATCH_DEFAULT),
                        .lag_part = fast ? PIPELINE_LAG_PART_SCREENED : PIPELINE_LAG_PART};
    b.wide = size_of(started->wide, b.batch);
    b.widest = size_of(started->widest, b.wide);
    b.lag = started->lag < 1             ? RUN_LAG_DEFAULT
            : started->lag < RUN_LAG_MAX ? started->lag
                                         : RUN_LAG_MAX;
    return b;
}

void batches_clear(struct batches *b)
{
    free(b->past_end);
    *b = (struct batches){0};
}

void batches_extend(struct batches *b, uint64_t last)
{
    while (batches_end(b, b->past) < last) {
        uint64_t end = batches_end(b, b->past + 1);
        b->past_end = xrealloc(b->past_end, b->past + 1, sizeof(*b->past_end));
        b->past_end[b->past++] = end < last ? end : last;
    }
}

// Candidates of so many batches, if none was of before an extension.
static uint64_t size_of_first(const struct batches *b, uint64_t batches)
{
    uint64_t early = batches < PIPELINE_EARLY ? batches : PIPELINE_EARLY;
    uint64_t narrow = batches < RUN_BATCHES_NARROW ? batches : RUN_BATCHES_NARROW;
    return early * b->batch + (narrow - early) * b->wide + (batches - narrow) * b->widest;
}

uint64_t batches_end(const struct batches *b, uint64_t batch)
{
    if (batch <= b->past) {
        return batch > 0 ? b->past_end[batch - 1] : 0;
    }
    uint64_t from = b->past > 0 ? b->past_end[b->past - 1] : 0;
    return from + size_of_first(b, batch) - size_of_first(b, b->past);
}

uint64_t batches_count(const struct batches *b, uint64_t candidates)
{
    const uint64_t end[] = {PIPELINE_EARLY, RUN_BATCHES_NARROW}, size[] = {b->batch, b->wide};
    uint64_t from = b->past;
    for (size_t i = 0; i < ARRAY_LEN(end); i++) {
        if (from < end[i] && candidates <= batches_end(b, end[i])) {
            return from + (candidates - batches_end(b, from) + size[i] - 1) / size[i];
        }
        from = from < end[i] ? end[i] : from;
    }
    return from + (candidates - batches_end(b, from) + b->widest - 1) / b->widest;
}

// The least that leaves no more candidates of the batches before this one unseen than the lag has
// of the usual ones.
static uint64_t seen_by_widest(const struct batches *b, uint64_t batch)
{
    uint64_t seen = batch - 1, last = batches_end(b, batch - 1);
    while (seen > 0 && last - batches_end(b, seen - 1) <= b->lag * b->wide) {
        seen--;
    }
    return seen;
}

uint64_t batches_seen(const struct batches *b, uint64_t batch)
{
    uint64_t grown = batch / b->lag_part;
    uint64_t lag = grown > RUN_LAG_DEFAULT ? grown : RUN_LAG_DEFAULT;
    lag = lag < b->lag ? lag : b->lag;
    if (batch > RUN_BATCHES_NARROW && b->widest > b->wide) {
        uint64_t seen = seen_by_widest(b, batch);
        return seen > batch - lag ? seen : batch - lag;
    }
    return batch > lag ? batch - lag : 0;
}
