// Who works for a pipeline: one that compiles and measures, and one that forecasts. Each has two kinds,
// which embed the struct here: daemons (client/daemon pool.h) and the simulated one (replay/sim_daemon.h), the worker
// (client/forecast/forecaster.h) and the simulated one (replay/sim_worker.h). Callbacks never run inside a call.
#ifndef CLIENT_POOL_PEERS_H
#define CLIENT_POOL_PEERS_H

#include "client/run/run_state.h"
#include "common/err.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A job, and who has it.
struct job_ref {
    size_t member; // of the daemons; 0 where there is one only
    uint64_t job;  // its number there; 0: no job
};

// A job is over, as job_client_callback (client/pool/job_client.h) says; info->job is ref.job. ref is of no job when
// error says why it could not be submitted.
typedef void job_peer_callback(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                               const struct err *error);

struct job_peer {
    // The same key with the same spec is the same job. spec is copied. priority: lower goes first.
    void (*submit)(struct job_peer *peer, const char *key, const struct job_spec *spec,
                   uint64_t priority, job_peer_callback *callback, void *owner, uint64_t tag);
    // The job's answer is safe here; whoever has it may forget it.
    void (*ack)(struct job_peer *peer, struct job_ref ref);
    // The url of the daemon that has it, which stays the peer's, when there are several; else NULL.
    const char *(*where)(const struct job_peer *peer, struct job_ref ref);
};

// forecasts: one per candidate in any order, found by id; the callee may take them. NULL when there
// are none; reason says why then.
typedef void forecast_peer_callback(void *owner, struct forecast_reply *forecasts,
                                    const char *reason);
// rows: what the peer knows afterwards. ok: false when it could not be told.
typedef void forecast_peer_told(void *owner, bool ok, uint64_t rows);

// One question or one telling at a time: neither function is called while busy. Each callback runs once,
// unless the peer is freed before.
struct forecast_peer {
    bool busy; // the peer's to set
    // Asks about those of candidates first … last for which forecast_wants
    // (client/forecast/forecast_request.h), with what came of candidates 1 … visible.
    void (*ask)(struct forecast_peer *peer, const struct run_state *run_state, uint64_t first,
                uint64_t last, uint64_t visible, forecast_peer_callback *callback, void *owner);
    // Tells the outcomes of candidates after + 1 … last.
    void (*tell)(struct forecast_peer *peer, const struct run_state *run_state, uint64_t after,
                 uint64_t last, forecast_peer_told *callback, void *owner);
};

#endif
