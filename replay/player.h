// One search of a space in simulated time: the pipeline of a live search, its run in memory, with a simulated daemon
// for daemon and a simulated worker for worker.
#ifndef REPLAY_PLAYER_H
#define REPLAY_PLAYER_H

#include "common/err.h"
#include "replay/catalogue.h"
#include "replay/sim.h"
#include "replay/sim_daemon.h"
#include <stdbool.h>
#include <stdint.h>

struct player;

struct player_config {
    const struct catalogue *catalogue;
    const char *strategy, *policy;
    bool surrogate; // whether a model makes forecasts
    double confidence, audit, share;
    const char *guarantee; // of policies that certify; NULL: the default
    double alpha, delta;
    uint64_t seed;
    double budget_seconds; // NaN: no limit
    uint64_t measurements; // 0: no limit
    uint64_t candidates;   // 0: no limit
    uint64_t batch, wide;  // as in run_started
};

#define PLAYER_STEPS_MAX 64

// Plain numbers, to be passed between processes.
struct player_outcome {
    uint64_t considered, measured, audited, trusted, records;
    uint64_t improvers,
        missed; // considered candidates that beat the incumbent of their decision, and
                // those of them that were not measured
    double device_seconds, compile_seconds;
    double given_seconds; // its budget; what it used, where it had none
    double seconds;       // simulated
    double best_log2;     // of the incumbent; 0: the baseline
    // Incumbents, in order; beyond PLAYER_STEPS_MAX the last takes the place of the one before.
    struct player_step {
        double device_seconds, log2;
        uint64_t considered, measured; // until then
    } step[PLAYER_STEPS_MAX];
    uint64_t steps;
};

MUST_CHECK int player_create(struct player **ret, struct sim *sim, struct sim_daemon *sim_daemon,
                             const struct player_config *config, struct err *err);
void player_free(struct player *player); // NULL is fine
// Does what is possible now; to be called after every step of the simulation.
MUST_CHECK int player_advance(struct player *player, struct err *err);
bool player_done(const struct player *player);
void player_outcome(const struct player *player, struct player_outcome *ret);
// Device-seconds that were used when the incumbent first was at least this; 0 where the baseline is;
// infinite: never.
double player_reached(const struct player_outcome *outcome, double log2);
// The step by which it was; NULL where player_reached is 0 or infinite.
const struct player_step *player_step_to(const struct player_outcome *outcome, double log2);

#endif
