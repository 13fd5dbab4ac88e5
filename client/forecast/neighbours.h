// The measured candidates that are most like those of a request for forecasts. A language model
// reads their sources: one set for all candidates of the request, so that the beginning of the
// prompt stays common, and for each candidate the numbers of those that are nearest to it. Used by
// the forecaster and, for inspirations, by the proposer.
#ifndef CLIENT_FORECAST_NEIGHBOURS_H
#define CLIENT_FORECAST_NEIGHBOURS_H

#include "client/forecast/search_tried.h"
#include "client/run/run_state.h"
#include "common/err.h"

#define NEIGHBOURS_NEAREST 3                    // named for each candidate
#define NEIGHBOURS_SHOWN 6                      // sources of one request
#define NEIGHBOURS_BYTES_MAX ((size_t)24 << 10) // of these sources together
#define NEIGHBOURS_LOOKED_AT 400                // measured candidates, the newest

struct neighbours;

// read and its owner outlive the object, which keeps what it has read of sources.
struct neighbours *neighbours_create(search_text_reader *read, void *owner);
void neighbours_free(struct neighbours *neighbours); // NULL is fine

// How alike two candidates are, from 0 to 1. Candidates of one template are compared by their
// parameters, where a factor of two in one of n parameters is 1/n; others by the token shingles of
// their sources (problem/source_shingles.h). Fails when a source cannot be read.
MUST_CHECK int neighbours_similarity(struct neighbours *neighbours,
                                     const struct run_state *run_state, uint64_t a, uint64_t b,
                                     double *ret, struct err *err);

// Fills context->neighbours, oldest first, and `nearest` of each candidate, from the measured among
// candidates 1 … visible. Those that are among the nearest of most candidates come first when not
// all can be shown. The incumbent is not shown again, but it may be named. Whatever was filled in
// belongs to the request, also after an error.
MUST_CHECK int neighbours_add(struct neighbours *neighbours, const struct run_state *run_state,
                              uint64_t visible, struct forecast_request *request, struct err *err);

// Writes up to max candidates from which ideas can be taken beside the parent (0: the baseline): of
// the measured and correct among candidates 1 … visible the best one, and then the best of those
// that are unlike it, the parent and each other. Returns how many in *ret_count.
MUST_CHECK int neighbours_inspirations(struct neighbours *neighbours,
                                       const struct run_state *run_state, uint64_t visible,
                                       uint64_t parent, uint64_t *ret, size_t max,
                                       size_t *ret_count, struct err *err);

#endif
