// The static model, trained on some of a recorded space's candidates, drawn at random; it is then
// asked about the others. The benchmarks on recorded candidates share this. An error ends the
// program with a sentence (die in samples.h).
#ifndef TESTS_BENCH_TRAINED_MODEL_H
#define TESTS_BENCH_TRAINED_MODEL_H

#include "client/space/space.h"
#include "proto/messages.h"
#include "worker/model/group.h"
#include <stddef.h>
#include <stdint.h>

struct trained_model {
    const struct space *space;
    struct group *group;
    // Owned; candidates that compile and have an outcome: first those of the training.
    size_t *order;
    size_t count, trained;
    // Log2; upper quartile of the training outcomes, which an improvement must exceed.
    double target;
};

// Draws `trained` candidates by this seed and stream, and trains the model. At least `others` more
// candidates must be left. trained_model_release() frees it; the space is borrowed.
void trained_model_init(struct trained_model *ret, const struct space *space, size_t trained,
                        size_t others, uint64_t seed, uint64_t stream);
void trained_model_release(struct trained_model *model);

// The i-th of the candidates that the model has not learnt from.
const struct space_candidate *trained_model_candidate(const struct trained_model *model, size_t i);
// The measured log2 speedup; NaN when the candidate is wrong.
double trained_model_outcome(const struct space_candidate *candidate);
// Asks the model for one forecast against the target. message_clear(&forecast_reply_message, ret)
// frees it.
void trained_model_forecast(const struct trained_model *model,
                            const struct space_candidate *candidate, struct forecast_reply *ret);

#endif
