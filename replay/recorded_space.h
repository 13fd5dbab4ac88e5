// A recorded space, made ready to be searched again: its candidates are the points of a generator
// and are found by the digest of their source. Their source is not recorded, so the generator gives
// their name as their source. Immutable after it was made. It does not know who searches.
#ifndef REPLAY_RECORDED_SPACE_H
#define REPLAY_RECORDED_SPACE_H

#include "client/propose/generator.h"
#include "client/space/space.h"
#include "common/err.h"
#include <stdbool.h>

#define RECORDED_SPACE_COST_S 1.0 // device seconds of a measurement when no cost was recorded

struct recorded_space;

// Takes *space_take over, on failure too. name is the name of the space's file, for errors and
// summaries; it is copied. ERR_INVALID when no candidate of the space is correct.
MUST_CHECK int recorded_space_create(struct recorded_space **ret, struct space *space_take,
                                     const char *name, struct err *err);
void recorded_space_free(struct recorded_space *recorded); // NULL is fine

const char *recorded_space_name(const struct recorded_space *recorded);
const struct space *recorded_space_data(const struct recorded_space *recorded);
// Returns a generator whose points are the candidates in their order; it lives as long as the
// recorded space. Two candidates are neighbours when they differ in one parameter and no candidate
// lies between them.
const struct generator *recorded_space_generator(const struct recorded_space *recorded);
// Returns the candidate whose source has this digest; NULL when there is none.
const struct space_candidate *recorded_space_find(const struct recorded_space *recorded,
                                                  const struct digest *source);
// Returns the candidate that these facts are about: by the digest of the source where they have
// one, else by the parameters, the first of several that have the same ones. NULL when there is
// none.
const struct space_candidate *recorded_space_of_facts(const struct recorded_space *recorded,
                                                      const struct candidate_facts *facts);
// Returns the log2 speedup of the best candidate.
double recorded_space_best_log2(const struct recorded_space *recorded);
// Returns the device seconds of measuring every candidate once. A measurement whose cost was not
// recorded counts with the mean of the others, or with RECORDED_SPACE_COST_S when there are none.
double recorded_space_seconds(const struct recorded_space *recorded);
// Returns whether the cost of any measurement was recorded.
bool recorded_space_has_costs(const struct recorded_space *recorded);

#endif
