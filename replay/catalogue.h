// A space made ready for searching: its candidates as the points of a generator, found again by the
// digest of what the generator gives as their source, which is their name.
#ifndef REPLAY_CATALOGUE_H
#define REPLAY_CATALOGUE_H

#include "client/propose/generator.h"
#include "client/space/space.h"
#include "common/err.h"
#include <stdbool.h>

struct catalogue;

// Takes the space over; on failure, too. name (of the file) is for errors and summaries. ERR_INVALID
// for a space without a correct candidate.
MUST_CHECK int catalogue_create(struct catalogue **ret, struct space *space_take, const char *name,
                                struct err *err);
void catalogue_free(struct catalogue *catalogue);

const char *catalogue_name(const struct catalogue *catalogue);
const struct space *catalogue_space(const struct catalogue *catalogue);
// Its points are the candidates in order; neighbours differ in one parameter, from which no value lies
// between them on that line. Lives as long as the catalogue.
const struct generator *catalogue_generator(const struct catalogue *catalogue);
// The candidate whose source has this digest; NULL when there is none.
const struct space_candidate *catalogue_find(const struct catalogue *catalogue,
                                             const struct digest *source);
double catalogue_best_log2(const struct catalogue *catalogue);
// Device-seconds that measuring every candidate once took. Where a measurement's cost is not known it is
// the mean of the others, and CATALOGUE_COST_S where none is.
double catalogue_seconds(const struct catalogue *catalogue);
bool catalogue_has_costs(const struct catalogue *catalogue); // any
#define CATALOGUE_COST_S 1.0

#endif
