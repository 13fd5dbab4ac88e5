// The static model taught from some of a recorded space's candidates, drawn at random, to be asked
// about the others: shared by the benchmarks on recorded candidates. Whatever goes wrong ends the
// program with a sentence (tally.h: die).
#ifndef TESTS_BENCH_TAUGHT_H
#define TESTS_BENCH_TAUGHT_H

#include "client/space/space.h"
#include "proto/messages.h"
#include "worker/model/group.h"
#include <stddef.h>
#include <stdint.h>

struct taught {
    const struct space *space;
    struct group *group;
    size_t *order; // candidates that compile and have an outcome: first those it learnt from
    size_t count, trained;
    double target; // log2, the upper quartile of what it learnt: what an improvement has to beat
};

// Draws with stream, of seed, and teaches; at least others more candidates must be left. Release with
// taught_release; the space stays the caller's.
void taught_init(struct taught *ret, const struct space *space, size_t trained, size_t others,
                 uint64_t seed, uint64_t stream);
void taught_release(struct taught *taught);

// The i-th of those that it has not learnt from.
const struct space_candidate *taught_other(const struct taught *taught, size_t i);
// Measured, log2; NaN: it is wrong.
double taught_log2(const struct space_candidate *candidate);
// What the model says of it against the bar: one forecast; message_clear it.
void taught_ask(const struct taught *taught, const struct space_candidate *candidate,
                struct forecast_reply *ret);

#endif
