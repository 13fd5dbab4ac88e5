// One search of a recorded space in simulated time. It is the pipeline of a live search; its run is
// kept in memory, and a simulated daemon and a simulated worker take the places of the real ones.
// replay/tasks.c is the only caller. It does not know with what other searches it is compared.
#ifndef REPLAY_SIM_SEARCH_H
#define REPLAY_SIM_SEARCH_H

#include "client/forecast/forecast_service.h"
#include "client/policy/costs.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include "replay/recorded_space.h"
#include "replay/search_outcome.h"
#include "replay/sim.h"
#include "replay/sim_daemon.h"
#include "replay/sim_worker.h"
#include <stdbool.h>
#include <stdint.h>

struct sim_search;

// Settings of a search. Pointers are borrowed and must outlive the search. Fields without a comment
// are the options of `kcast search` with that name.
struct sim_search_config {
    const struct recorded_space *recorded;
    const char *strategy, *policy;
    enum sim_forecaster forecaster;     // who makes forecasts
    struct forecast_service *forecasts; // who makes them instead; NULL: nobody else
    double confidence, audit, share;
    bool trust_by_skill;   // as run_started.trust_rule says; false: as searches of earlier releases
                           // did
    uint64_t rules;        // as in run_started; 0: as searches of earlier releases did
    double end_confidence; // as in run_started; NaN: the search uses its limits up
    struct cost_weights weights; // all 0: the defaults
    const struct bytes *warm;    // text of client/propose/warm.h; NULL: the search begins cold
    const char *guarantee;       // for policies that certify; NULL: the default
    double alpha, delta;
    uint64_t seed;
    double budget_seconds;             // device time; NaN: no limit
    uint64_t measurements;             // 0: no limit
    uint64_t candidates;               // 0: no limit
    uint64_t batch, wide, widest, lag; // as in run_started
    uint64_t devices;                  // pool_devices of run_started; 0: not recorded
};

// Begins a search. sim and sim_daemon must outlive it. The caller frees *ret.
MUST_CHECK int sim_search_create(struct sim_search **ret, struct sim *sim,
                                 struct sim_daemon *sim_daemon,
                                 const struct sim_search_config *config, struct err *err);
void sim_search_free(struct sim_search *search); // NULL is fine
// Does what is possible at this simulated time. To be called after every step of the simulation.
MUST_CHECK int sim_search_advance(struct sim_search *search, struct err *err);
bool sim_search_done(const struct sim_search *search);
// The run so far. It belongs to the search.
const struct run_state *sim_search_run_state(const struct sim_search *search);
// Fills *ret except given_seconds. The search is done.
void sim_search_outcome(const struct sim_search *search, struct search_outcome *ret);

#endif
