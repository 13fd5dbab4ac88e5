// Round trips over many connections, as fast as a daemon answers: shared by the benchmarks of the
// daemon's requests. Whatever goes wrong ends the program with a sentence (tally.h: die).
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include "client/session.h"
#include "net/rpc/remote.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_CONNECTIONS_MAX 256

// The connections of one load: of the session's daemon, each greeted.
struct connections {
    struct remote *remote[LOAD_CONNECTIONS_MAX];
    size_t count;
};
void connections_open(struct connections *ret, struct session *session, size_t count);
void connections_close(struct connections *connections);

struct load;
// One round trip under way; several of a load use the same connection when it has fewer.
struct round {
    struct load *load;
    struct remote *remote;
    uint64_t start_ns;
    uint64_t job; // the callee's
};

struct load {
    const char *name;
    // Starts a round on its remote; ends it with load_round_done.
    void (*begin)(struct round *round);
    void *owner; // begin's
    // Filled by load_run.
    uint64_t done;
    double *latency_us; // of each round
    uint64_t stop_ns;
    size_t in_flight;
};

// Keeps `flight` rounds going for so long, over the first `wide` connections, and prints one line:
// rounds a second and their latencies. Nothing is in flight when it returns.
void load_run(struct session *session, const struct connections *connections, size_t wide,
              struct load *load, size_t flight, double seconds);
void load_round_done(struct round *round);

// A load whose rounds are one call; body is not copied.
struct plain {
    enum op op;
    const struct message *message, *answer;
    const void *body;
};
void load_begin_plain(struct round *round); // load->owner: a struct plain

#endif
