// Who forecasts for a search: an operations table that a search calls without knowing whether the
// worker (client/forecast/forecaster.h) or a simulated one (replay/sim_worker.h) is behind it.
// Implementations embed struct forecast_service and find themselves from its address.
#ifndef CLIENT_FORECAST_FORECAST_SERVICE_H
#define CLIENT_FORECAST_FORECAST_SERVICE_H

#include "client/run/run_state.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stdint.h>

// The answer to ask. forecasts holds one forecast per candidate in any order, to be matched by id;
// the callee may take them out. It is NULL when there are none, and reason says why.
typedef void forecast_service_callback(void *owner, struct forecast_reply *forecasts,
                                       const char *reason);
// The answer to tell. ok is false when the worker could not be told. rows is the number of outcomes
// that the worker has learnt from afterwards.
typedef void forecast_service_told(void *owner, bool ok, uint64_t rows);

// The answer to rank: *reply has an order of the candidates' ids, the most promising first, and
// what it cost; or a reason why there is none. It may be NULL, and reason then says why.
typedef void forecast_service_ranked(void *owner, const struct rank_reply *reply,
                                     const char *reason);

// Either function may be called only while busy is false. Each callback runs once, never from
// inside the call, unless the service is freed before.
struct forecast_service {
    bool busy;   // set by the service while a call is under way
    bool absent; // nobody will ever forecast for this search
    // Asks for forecasts of those of candidates first … last for which forecast_wants
    // (client/forecast/forecast_request.h) is true. The forecaster sees the outcomes of candidates
    // 1 … visible only.
    void (*ask)(struct forecast_service *service, const struct run_state *run_state, uint64_t first,
                uint64_t last, uint64_t visible, forecast_service_callback *callback, void *owner);
    // Asks for new forecasts of these candidates, which compiled. They are borrowed for the call.
    // NULL: the service forecasts nothing twice. As ask() otherwise.
    void (*ask_again)(struct forecast_service *service, const struct run_state *run_state,
                      const uint64_t *candidate, size_t count, uint64_t visible,
                      forecast_service_callback *callback, void *owner);
    // Asks for forecasts of candidates that are not compiled yet, by their parameters. facts are
    // borrowed for the call. Each forecast also says the probabilities of lying beyond the
    // incumbent by so many margins; beyond_log2, NULL with none, must live until the callback. As
    // ask() otherwise.
    void (*screen)(struct forecast_service *service, const struct run_state *run_state,
                   struct candidate_facts *facts, size_t count, uint64_t visible,
                   const double *beyond_log2, size_t margins, forecast_service_callback *callback,
                   void *owner);
    // Whether candidates that are not compiled yet can be forecast. NULL: always.
    bool (*screens)(const struct forecast_service *service);
    // Whether a language model can be asked which of several candidates go first. NULL: never.
    bool (*ranks)(const struct forecast_service *service);
    // Asks it, of candidates that are not compiled yet: `take` of them go first. facts have their
    // ids and sources and are borrowed for the call. The order in which they are shown follows from
    // the seed. Called where ranks() is true. As ask() otherwise.
    void (*rank)(struct forecast_service *service, const struct run_state *run_state,
                 const struct candidate_facts *facts, size_t count, uint64_t take, uint64_t visible,
                 uint64_t seed, forecast_service_ranked *callback, void *owner);
    // Tells the outcomes of candidates after + 1 … last.
    void (*tell)(struct forecast_service *service, const struct run_state *run_state,
                 uint64_t after, uint64_t last, forecast_service_told *callback, void *owner);
};

#endif
