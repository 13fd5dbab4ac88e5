// The way of candidates through a search, in batches: propose, compile, forecast, decide, measure,
// replicate, tell the worker. Every step is written to the run file before anything follows from
// it. client/search/search.c drives the pipeline, and so do simulations; it does no waiting itself
// and does not know whether daemon and worker are real.
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

struct pipeline;

// Creates a pipeline and submits the jobs that are under way by the log. All arguments stay the
// caller's and must outlive the pipeline, but for the array of generators, which is copied. There
// are 1 to GENERATOR_LIST_MAX generators, in the order of their numbers. There
// is a proposer for each that asks, and NULL for the others; proposers NULL: none asks. run_state
// is the state of run, which has its RUN_STARTED and RUN_SESSION.
MUST_CHECK int pipeline_create(struct pipeline **ret, struct run *run, struct run_state *run_state,
                               struct job_service *jobs, struct forecast_service *forecasts,
                               struct proposer *const *proposers,
                               const struct generator *const *generators, size_t generator_count,
                               struct err *err);
// Whether somebody is being asked for candidates.
bool pipeline_asking(const struct pipeline *pipeline);
void pipeline_free(struct pipeline *pipeline); // NULL is fine

// Proposes the batches of a new search that follow from nothing else, so that they are compiled
// beside the baseline. They are what pipeline_advance would propose first.
MUST_CHECK int pipeline_begin(struct pipeline *pipeline, struct err *err);
// Does everything that is possible now; the run must have its RUN_BASELINE. After that nothing
// happens until an answer arrives. Fails when the run file cannot be written or a job cannot be
// submitted; what is recorded stays valid.
MUST_CHECK int pipeline_advance(struct pipeline *pipeline, struct err *err);
// Makes no new decisions. What was decided is still measured. reason is for RUN_FINISHED.
void pipeline_stop(struct pipeline *pipeline, const char *reason);
// Whether everything is measured, replicated and told. *ret_reason then says why there is no more;
// it is valid until pipeline_free.
bool pipeline_done(const struct pipeline *pipeline, const char **ret_reason);

// Appends an event to the run file and applies it to the state. Clears body, also after a failure.
MUST_CHECK int pipeline_record(struct run *run, struct run_state *run_state,
                               enum run_event_kind kind, void *body, struct err *err);

#endif
