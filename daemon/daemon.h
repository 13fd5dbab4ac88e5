// The daemon: owns every part, starts the parts in order and stops them in reverse order. Called by
// main.c, which owns the loop, the signals and the options. Nothing is global, so that one process
// may have several daemons.
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "common/err.h"
#include "daemon/devices/cores.h"
#include "daemon/devices/device_spec.h"
#include "daemon/state/parts.h"
#include "net/auth/identity.h"
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct daemon;

struct daemon_config {
    const char *listen;             // URL to serve; port 0 chooses a free one
    struct identity_files files;    // certificates and tokens for tls://
    const char *http;               // address of the monitoring; "" when it is not served
    const char *state_dir;          // made when it is missing
    const char *exec_path;          // the program kcast-exec
    struct device_spec device_spec; // which devices are wanted
    struct cores cores;             // which cores are devices; this process is off them already
    uint64_t compile_jobs;          // compilations at the same time; 0: cores_for_compiling
    uint64_t compile_seconds;       // processor time of one compilation
    uint64_t queue_max;             // unfinished jobs of one search
    uint64_t jobs_max;              // jobs in the job table
    uint64_t cache_max;             // entries of each cache of the ledger
    uint64_t blobs_max;             // bytes of blobs
    uint64_t blobs_share;           // percent of these that one tenant may send
    uint64_t slack_ms;              // by how much kcast-exec may exceed the time of its plan
    uint64_t grace_ms;              // time from SIGTERM to SIGKILL
    uint64_t page_max;              // limit of the ledger's pages, for tests; 0 for no limit
    const char *python;             // the interpreter that records candidates in Python
    bool sandbox_off;               // for development: child processes are not confined
    bool share_gpus;                // other programs may use the GPUs during a measurement
    bool no_unsealed;               // no candidate runs unsealed
    enum share_processes share_processes; // who may have the same process of a GPU
    // Called when the daemon serves at `url`.
    void (*on_ready)(void *owner, const char *url);
    // Called when the daemon has ended. error is NULL after daemon_stop; otherwise it says why the
    // daemon could not start or go on.
    void (*on_end)(void *owner, const struct err *error);
    void *owner;
};

// Locks the state directory, opens the ledger and starts device discovery. On success on_ready or
// on_end follows from the loop. On failure nothing was started; the error is about the state
// directory or about kcast-exec. The texts of `config` outlive the daemon.
MUST_CHECK int daemon_start(struct daemon **ret, uv_loop_t *loop,
                            const struct daemon_config *config, struct err *err);
// Stops in good order; on_end follows. May be called more than once.
void daemon_stop(struct daemon *daemon);
// Reads certificates and tokens again. If that fails, the failure is logged and nothing changes.
void daemon_reload(struct daemon *daemon);
// Refuses new jobs and drains all devices, and stops when no device is busy. Jobs that wait stay in
// the ledger. Before the daemon serves it stops at once.
void daemon_stop_when_idle(struct daemon *daemon);
// Changes limits of the configuration while the daemon runs.
void daemon_limit(struct daemon *daemon, uint64_t queue_max, uint64_t jobs_max);
// Writes one line about what the daemon is doing, for the service manager. The argument is a struct
// daemon.
void daemon_describe(void *daemon, char *text, size_t size);
// Sends SIGKILL to every child process, for an exit without good order.
void daemon_kill_children(struct daemon *daemon);
// To be called after on_end. The loop must run once more to close its handles. NULL is fine.
void daemon_free(struct daemon *daemon);

#endif
