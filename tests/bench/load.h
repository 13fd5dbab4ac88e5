// Round trips over many connections, as fast as a daemon answers them. The benchmarks of the
// daemon's requests share this. An error ends the program with a sentence (die in samples.h).
#ifndef TESTS_BENCH_LOAD_H
#define TESTS_BENCH_LOAD_H

#include "client/session.h"
#include "net/rpc/remote.h"
#include "proto/messages.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOAD_CONNECTIONS_MAX 256

// Connections to the session's daemon that have exchanged HELLO.
struct connections {
    struct remote *remote[LOAD_CONNECTIONS_MAX];
    size_t count;
};
void connections_open(struct connections *ret, struct session *session, size_t count);
void connections_close(struct connections *connections);

struct load;
// One round trip in flight. When a load has fewer connections than rounds, several rounds use the
// same connection.
struct round {
    struct load *load;
    struct remote *remote;
    uint64_t start_ns;
    uint64_t job; // for the owner of the load
};

struct load {
    const char *name;
    // Starts a round on its remote. load_round_done() ends it.
    void (*begin)(struct round *round);
    void *owner; // passed on to `begin`
    // load_run fills these.
    uint64_t done;
    double *latency_us; // of each round
    uint64_t stop_ns;
    size_t in_flight;
};

// Keeps `flight` rounds in flight for `seconds`, over the first `wide` connections. Then prints one
// line: rounds per second and their latencies. Nothing is in flight when it returns.
void load_run(struct session *session, const struct connections *connections, size_t wide,
              struct load *load, size_t flight, double seconds);
void load_round_done(struct round *round);

// A load whose rounds are one call each. `body` is borrowed.
struct plain {
    enum op op;
    const struct message *message, *answer;
    const void *body;
};
void load_begin_plain(struct round *round); // load->owner is a struct plain

#endif
