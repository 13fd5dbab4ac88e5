// The inside of the forecaster. Only client/forecast/forecaster*.c include this: forecaster.c asks
// for forecasts and tells outcomes, forecaster_rank.c asks which candidates go first.
#ifndef CLIENT_FORECAST_FORECASTER_STATE_H
#define CLIENT_FORECAST_FORECASTER_STATE_H

#include "client/forecast/forecaster.h"
#include "client/forecast/neighbours.h"
#include "client/forecast/worker_link.h"
#include <uv.h>

#define MODELS_MS 600000 // deadline of a request that language models answer

struct forecaster {
    struct forecast_service service;
    struct worker_link *link; // NULL with --no-worker
    search_text_reader *read;
    void *read_owner;
    struct neighbours *neighbours; // NULL without a reader
    void (*notice)(void *owner, const char *sentence);
    void *notice_owner;
    bool answered; // the worker has answered at least once
    bool said;     // it was said that there are no forecasts
    char *reason;  // why there are no forecasts now; NULL: there are
    bool closing;
    uint64_t called_ns; // when the call under way began, monotonic
    uv_timer_t *timer;  // answers calls that nobody receives; freed by its close callback
    forecast_service_callback *callback;
    forecast_service_told *told;
    void *owner;                       // of the callback
    const struct run_state *run_state; // while a call is under way
    uint64_t first, last, visible;     // candidates that are asked about
    uint64_t *again;                   // or these, once more, copied; NULL: none are
    size_t again_count;
    struct candidate_facts *screened; // or points that are screened, copied; NULL: none are
    size_t screened_count;
    struct rank_request *ranked; // or the order of candidates, without what the run state has
    forecast_service_ranked *on_order;
    const double *beyond_log2;     // margins of a survey; borrowed; NULL: it is none
    size_t margins;                // of beyond_log2
    uint64_t tell_next, tell_last; // candidates whose outcomes are still to be told
    uint64_t rows;                 // outcomes that the worker has learnt from
};

struct forecaster *forecaster_of(const struct forecast_service *service);
// The connection for a call that begins now. The worker must not be away.
struct remote *forecaster_begin_call(struct forecaster *forecaster);
// Begins what was set up: asks, greets first, or has the timer answer when there is nobody to ask.
void forecaster_begin(struct forecaster *forecaster, const struct run_state *run_state,
                      uint64_t visible, void *owner);
// A call failed, or was answered.
void forecaster_lose(struct forecaster *forecaster, const struct err *error);
void forecaster_succeed(struct forecaster *forecaster);
// Whether language models make the forecasts. Sources are sent only to a worker that reads them.
bool forecaster_asks_models(const struct forecaster *forecaster);

// ---- forecaster_rank.c ----

// The operations ranks() and rank() of the service.
bool forecaster_ranks(const struct forecast_service *service);
void forecaster_rank(struct forecast_service *service, const struct run_state *run_state,
                     const struct candidate_facts *facts, size_t count, uint64_t take,
                     uint64_t visible, uint64_t seed, forecast_service_ranked *callback,
                     void *owner);
// Asks what is to be ranked, now that the worker has been greeted.
void forecaster_rank_now(struct forecaster *forecaster);
// Answers what is to be ranked with forecaster->reason.
void forecaster_rank_nothing(struct forecaster *forecaster);
// Frees what is to be ranked, if anything.
void forecaster_clear_ranked(struct forecaster *forecaster);

#endif
