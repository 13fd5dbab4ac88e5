// The way of candidates through a search, in batches: propose, compile, forecast, decide, measure,
// replicate, tell the worker. Writes every step to the run file before anything follows from it.
// client/search/search.c drives it; it does no waiting itself.
#ifndef CLIENT_SEARCH_PIPELINE_H
#define CLIENT_SEARCH_PIPELINE_H

#include "client/forecast/forecast_service.h"
#include "client/forecast/proposer.h"
#include "client/pool/job_service.h"
#include "client/propose/generator.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A batch is proposed and decided from the outcomes of batches up to this many before it.
#define PIPELINE_LAG 2
// So many batches at the beginning have the smaller size, since little is known yet.
#define PIPELINE_EARLY 4

struct pipeline;

// All arguments stay the caller's and must outlive the pipeline; the array of generators
// (generator_count of them, 1 to GENERATOR_LIST_MAX, by their numbers) alone is copied. proposer is
// for a generator that asks, and NULL without one. run state is that of run, which has its RUN_STARTED,
// RUN_SESSION and RUN_BASELINE. Submits what the log says is under way.
MUST_CHECK int pipeline_create(struct pipeline **ret, struct run *run, struct run_state *run_state,
                               struct job_service *jobs, struct forecast_service *forecasts,
                               struct proposer *proposer, const struct generator *const *generators,
                               size_t generator_count, struct err *err);
// Whether the worker is being asked for candidates.
bool pipeline_asking(const struct pipeline *pipeline);
void pipeline_free(struct pipeline *pipeline); // NULL is fine

// Does everything that is possible now. Afterwards nothing happens before an answer arrives.
// Fails when the run file cannot be written or a job cannot be submitted; what is recorded stays
// right.
MUST_CHECK int pipeline_advance(struct pipeline *pipeline, struct err *err);
// No new decisions; what was decided is measured to its end. reason is for RUN_FINISHED.
void pipeline_stop(struct pipeline *pipeline, const char *reason);
// Everything is measured, replicated and told. *ret_reason says why there is no more; valid until
// pipeline_free.
bool pipeline_done(const struct pipeline *pipeline, const char **ret_reason);

// Appends to the run file and applies to the run state. Clears body, whatever happens.
MUST_CHECK int pipeline_record(struct run *run, struct run_state *run_state,
                               enum run_event_kind kind, void *body, struct err *err);

#endif
