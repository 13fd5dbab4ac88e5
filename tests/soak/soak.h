// The soak test's driver: one daemon that is killed and started again on the same state, clients
// and executors that are killed, and what is observed of the daemon meanwhile.
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include "common/stats.h"
#include "common/strbuf.h"
#include "net/rpc/remote.h"
#include "tests/support/program.h"
#include <stdbool.h>
#include <stdint.h>

#define SOAK_CLIENTS_MAX 1000
#define SOAK_GPUS 4
#define SOAK_DEVICES (SOAK_GPUS + 1)
#define SOAK_COMPILERS 2
#define SOAK_CHILDREN_MAX 256

struct soak_client {
    pid_t pid; // 0: not running
    unsigned lives;
    bool ended; // it ended by itself with 0
};

// A process that was stopped, and when it is to continue.
struct soak_stopped {
    pid_t pid;
    uint64_t until_ns;
};
#define SOAK_STOPPED_MAX 32

// What is observed of the daemon once a second.
struct soak_sample {
    unsigned epoch; // how often the daemon was started before
    double at_s;    // since the daemon's start
    double resident_kib;
    double descriptors; // without those of its children
};

struct soak {
    double seconds;
    unsigned clients;
    uint64_t seed;
    bool tls;       // encrypted, with several tenants; else all clients are one tenant
    bool real;      // there are jobs for the real kcast-exec
    bool sanitized; // a sanitizer dominates the memory, so it is not checked
    struct stats_rng rng;
    char *dir; // folder of journals and logs
    char *url;
    char *state;
    struct program daemon;
    uv_loop_t loop;
    struct remote *remote;
    struct soak_client *client;
    struct soak_stopped stopped[SOAK_STOPPED_MAX];
    size_t stopped_count;
    uint64_t started_ns;
    uint64_t epoch_ns; // the daemon's last start
    unsigned epoch;
    // Counters.
    unsigned client_kills;
    unsigned executor_kills;
    unsigned daemon_kills;
    unsigned daemon_stops; // ended by SIGTERM
    unsigned freezes;
    unsigned probes; // probes of quarantined devices
    // Observations.
    struct soak_sample *sample;
    size_t sample_count;
    uint64_t wal_max;
    uint64_t zombie_since_ns[SOAK_CHILDREN_MAX];
    pid_t zombie[SOAK_CHILDREN_MAX];
    size_t zombie_count;
    struct soak_stopped orphan[SOAK_CHILDREN_MAX]; // until_ns: when it was first seen
    size_t orphan_count;
    unsigned violations;
};

// Prints the sentence and counts it.
void soak_violation(struct soak *soak, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
double soak_elapsed(const struct soak *soak);

// processes.c: starts, ends and freezes processes.
void soak_start_daemon(struct soak *soak);
void soak_end_daemon(struct soak *soak, bool well); // well: SIGTERM, else SIGKILL
void soak_start_client(struct soak *soak, unsigned number);
void soak_reap(struct soak *soak); // clients and orphans that have ended
void soak_kill_client(struct soak *soak);
void soak_kill_executor(struct soak *soak);
void soak_freeze_one(struct soak *soak);
void soak_thaw(struct soak *soak, bool all);
// Finds executors of a daemon that has gone and reports those that stay too long.
void soak_find_orphans(struct soak *soak);

// certificates.c: makes certificates and tokens of SOAK_TENANTS tenants and an administrator in
// DIR/pool.
void soak_make_certificates(struct soak *soak);

// watch.c: what is observed from outside.
void soak_sample(struct soak *soak);
void soak_probe_quarantined(struct soak *soak);
double soak_descriptors(const struct soak *soak); // the daemon's, without those of its children
// Memory and descriptors in the daemon's longest life: the medians of its second and its last
// quarter.
struct soak_drift {
    double seconds;
    size_t samples;
    double resident_before_kib, resident_after_kib;
    double descriptors_before, descriptors_after;
};
struct soak_drift soak_drift(const struct soak *soak);
bool soak_wait_idle(struct soak *soak); // until no job is left and no device is held
void soak_check_files(struct soak *soak);

// verify.c: what the journals and the executors' log say.
struct soak_totals {
    uint64_t submitted, accepted, refused, delivered, acknowledged;
    uint64_t done, cancelled, buried, buried_innocent;
    uint64_t real; // measured by the real kcast-exec
    uint64_t runs, runs_again;
};
void soak_verify(struct soak *soak, struct soak_totals *totals);

#endif
