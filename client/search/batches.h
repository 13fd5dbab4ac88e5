// The batches of a search: consecutive numbers of candidates, in sizes that are settled beforehand,
// and which batches' outcomes each of them may see (the rule is at the head of pipeline.c). Called
// by the stages of the pipeline. Pure.
#ifndef CLIENT_SEARCH_BATCHES_H
#define CLIENT_SEARCH_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

// So many batches at the beginning have the smaller size, since little is known yet.
#define PIPELINE_EARLY 4
// The lag is at most this part of the batches so far, unless that is less than RUN_LAG_DEFAULT; at
// most the second one in searches that screen, have several devices, and have RUN_RULE_AHEAD.
#define PIPELINE_LAG_PART 3
#define PIPELINE_LAG_PART_SCREENED 2

struct run_started;

// Embedded by value; release with batches_clear.
struct batches {
    uint64_t batch;     // candidates of each of the first PIPELINE_EARLY batches
    uint64_t wide;      // candidates of each later batch, up to batch RUN_BATCHES_NARROW
    uint64_t widest;    // and of each after that
    uint64_t lag;       // the most batches under way at a time; behind the usual ones also no more
                        // than have as many candidates as so many of these, and the next one
    uint64_t lag_part;  // it is at most this part of the batches so far
    uint64_t *past_end; // owned: last candidates of batches 1 … past
    uint64_t past;      // batches before the last extension; the next one begins after them
};

// What a run's first event settles. fast: the lag grows as fast as a search may have it that
// screens. There are no batches of before yet.
struct batches batches_of(const struct run_started *started, bool fast);
void batches_clear(struct batches *batches);
// The batches up to this candidate, the last one of those before an extension, keep their ends, and
// the next one begins behind it.
void batches_extend(struct batches *batches, uint64_t last);

// The last candidate of a batch that is full. Batches of before an extension ended where they ended
// then, audits of that end included.
uint64_t batches_end(const struct batches *batches, uint64_t batch);
// The number of batches that have one of so many candidates.
uint64_t batches_count(const struct batches *batches, uint64_t candidates);
// The last batch whose outcomes the stages of this batch may see; 0: they see none.
uint64_t batches_seen(const struct batches *batches, uint64_t batch);

#endif
