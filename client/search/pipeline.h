// The way of candidates through a search, in batches: propose, compile, forecast, decide, measure,
// replicate, tell the worker. Writes every step to the run file before anything follows from it.
// client/search/search.c drives it; it does no waiting itself.
#ifndef CLIENT_SEARCH_PIPELINE_H
#define CLIENT_SEARCH_PIPELINE_H

#include "client/pool/daemon_pool.h"
#include "client/pool/forecaster.h"
#include "client/pool/proposer.h"
#include "client/propose/generator.h"
#include "client/run/run.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPELINE_LAG                                                                               \
    2 // a batch is proposed and decided from the outcomes of batches up to this many before it
#define PIPELINE_BATCH_DEFAULT 8 // of run files that do not say
#define PIPELINE_EARLY 4         // batches that are small, since little is known yet
#define PIPELINE_BATCH_MAX 64    // all of a batch fits into one FORECAST

struct pipeline;

// Who measures and who forecasts: daemons and a worker (pipeline_peers_of), or a space that stands
// for both (replay/). Callbacks never run inside a call. See client/daemon pool.h and client/pool/forecaster.h
// for what the functions promise.
struct pipeline_peers {
    void *pool;
    void (*submit)(void *pool, const char *key, const struct job_spec *spec, uint64_t priority,
                   job_client_callback *callback, void *owner, uint64_t tag);
    void (*ack)(void *pool, uint64_t job);
    // *job, as in a job_info, becomes the number at its daemon, whose url is returned when there
    // are several. NULL: numbers are numbers.
    const char *(*where)(void *pool, uint64_t *job);
    void *forecaster;
    void (*ask)(void *forecaster, const struct run_state *run_state, uint64_t first, uint64_t last,
                uint64_t visible, forecaster_callback *callback, void *owner);
    void (*tell)(void *forecaster, const struct run_state *run_state, uint64_t after, uint64_t last,
                 forecaster_told *callback, void *owner);
    bool (*busy)(const void *forecaster);
};
// Both stay the caller's.
struct pipeline_peers pipeline_peers_of(struct daemon_pool *daemon_pool,
                                        struct forecaster *forecaster);

// All arguments stay the caller's and must outlive the pipeline, peers and the array of generators
// (generator_count of them, 1 to GENERATOR_LIST_MAX, by their numbers) alone are copied. proposer is
// for a generator that asks, and NULL without one. run state is that of run, which has its RUN_STARTED,
// RUN_SESSION and RUN_BASELINE. Submits what the log says is under way.
MUST_CHECK int pipeline_create(struct pipeline **ret, struct run *run, struct run_state *run_state,
                               const struct pipeline_peers *peers, struct proposer *proposer,
                               const struct generator *const *generators, size_t generator_count,
                               struct err *err);
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
