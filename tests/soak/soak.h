// The soak test's driver: one daemon that is killed and started again on the same state, clients
// and executors that are killed, and what is seen of the daemon meanwhile.
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
    bool ended; // well, by itself
};

// A process that was stopped, until it goes on.
struct soak_stopped {
    pid_t pid;
    uint64_t until_ns;
};
#define SOAK_STOPPED_MAX 32

// What is seen of the daemon once a second.
struct soak_sample {
    unsigned epoch; // how often the daemon was started before
    double at_s;    // since its start
    double resident_kib;
    double descriptors; // without those of its children
};

struct soak {
    double seconds;
    unsigned clients;
    uint64_t seed;
    bool tls;       // encrypted, with tenants; else everybody is the same one
    bool real;      // there are jobs for the real kcast-exec
    bool sanitized; // memory is the sanitizer's, not the daemon's
    struct stats_rng rng;
    char *dir; // journals
    char *url;
    char *state;
    struct program daemon;
    uv_loop_t loop;
    struct remote *remote;
    struct soak_client *client;
    struct soak_stopped stopped[SOAK_STOPPED_MAX];
    size_t stopped_count;
    uint64_t started_ns;
    uint64_t epoch_ns; // the daemon's start
    unsigned epoch;
    // counted
    unsigned client_kills;
    unsigned executor_kills;
    unsigned daemon_kills;
    unsigned daemon_stops; // in good order
    unsigned freezes;
    unsigned probes; // of devices that had been quarantined
    // seen
    struct soak_sample *sample;
    size_t sample_count;
    uint64_t wal_max;
    uint64_t zombie_since_ns[SOAK_CHILDREN_MAX];
    pid_t zombie[SOAK_CHILDREN_MAX];
    size_t zombie_count;
    struct soak_stopped orphan[SOAK_CHILDREN_MAX]; // since when it is there
    size_t orphan_count;
    unsigned violations;
};

// Prints the sentence and counts it.
void soak_violation(struct soak *soak, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
double soak_elapsed(const struct soak *soak);

// processes.c: starts, ends and freezes them.
void soak_start_daemon(struct soak *soak);
void soak_end_daemon(struct soak *soak, bool well); // SIGTERM, or SIGKILL
void soak_start_client(struct soak *soak, unsigned number);
void soak_reap(struct soak *soak); // clients and orphans that have ended
void soak_kill_client(struct soak *soak);
void soak_kill_executor(struct soak *soak);
void soak_freeze_one(struct soak *soak);
void soak_thaw(struct soak *soak, bool all);
// Processes that should not be there any more: executors of a daemon that has gone.
void soak_find_orphans(struct soak *soak);

// secure.c: certificates and tokens of an administrator and SOAK_TENANTS in DIR/pool, made by
// kcast.
void soak_make_pool(struct soak *soak);

// watch.c: what is seen from outside.
void soak_sample(struct soak *soak);
void soak_heal_devices(struct soak *soak);
double soak_descriptors(const struct soak *soak); // of the daemon, without those of its children
// Memory and descriptors of the longest life of the daemon: the medians of its second and its last
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

// judge.c: from journals and the executors' log.
struct soak_account {
    uint64_t submitted, accepted, refused, delivered, acknowledged;
    uint64_t done, cancelled, buried, buried_innocent;
    uint64_t real; // measured by the real kcast-exec
    uint64_t runs, runs_again;
};
void soak_judge(struct soak *soak, struct soak_account *account);

#endif
