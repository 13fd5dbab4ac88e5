// The daemon: owns every object, brings them up in order and down in the reverse. One per process
// in practice, but nothing here is global.
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "common/err.h"
#include "daemon/devices/cores.h"
#include "daemon/devices/device_spec.h"
#include "net/auth/identity.h"
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct daemon;

struct daemon_config {
    const char *listen;             // url; port 0: a free one
    struct identity_files files;    // of tls://
    const char *http;               // address for monitoring; "": not served
    const char *state_dir;          // made when missing
    const char *exec_path;          // kcast-exec
    struct device_spec device_spec; // which devices are wanted
    struct cores cores;             // planned and settled
    uint64_t compile_jobs;          // children at once; 0: as many as there are processors left
    uint64_t compile_seconds;       // of one compilation
    uint64_t queue_max;             // unfinished jobs of one search
    uint64_t jobs_max;              // jobs altogether
    uint64_t cache_max;             // entries of each of the ledger's caches
    uint64_t blobs_max;             // bytes of blobs
    uint64_t slack_ms;              // by which kcast-exec may exceed its plan
    uint64_t grace_ms;              // SIGTERM to SIGKILL
    uint64_t page_max;              // of the ledger, for tests; 0: no limit
    bool sandbox_off;
    bool share_gpus; // other programs may use them too
    // The daemon serves; or it has ended: error is NULL after daemon_stop, else says why it could
    // not start or go on.
    void (*on_ready)(void *owner, const char *url);
    void (*on_end)(void *owner, const struct err *error);
    void *owner;
};

// Takes the state directory, opens the ledger, loads the jobs, starts the probe. config and its
// texts outlive the daemon. Errors here are about the state directory: nothing was started then.
// on_ready or on_end follows from the loop.
MUST_CHECK int daemon_start(struct daemon **ret, uv_loop_t *loop,
                            const struct daemon_config *config, struct err *err);
// Stops in good order; on_end follows. May be called again.
void daemon_stop(struct daemon *daemon);
// Reads certificates and tokens again; what cannot be read is logged, and nothing changes.
void daemon_reload(struct daemon *daemon);
// Takes no more jobs, lets what runs on the devices end, then stops as above; jobs that wait stay
// in the ledger. Before it serves: stops.
void daemon_vacate(struct daemon *daemon);
// The limits of the configuration, changed while it runs.
void daemon_limit(struct daemon *daemon, uint64_t queue_max, uint64_t jobs_max);
// One line about what it is doing, for whoever started it.
void daemon_describe(void *daemon, char *text, size_t size);
// SIGKILL to every child, now. For an exit without good order.
void daemon_kill_children(struct daemon *daemon);
// After on_end; the loop must run once more for its handles.
void daemon_free(struct daemon *daemon);

#endif
