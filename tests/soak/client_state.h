// What client.c (steps, journal) and client_calls.c (what is asked and what must be answered)
// share. Nobody else includes it.
#ifndef TESTS_SOAK_CLIENT_STATE_H
#define TESTS_SOAK_CLIENT_STATE_H

#include "common/stats.h"
#include "net/rpc/remote.h"
#include "tests/soak/client.h"
#include "tests/soak/content.h"

#define OPEN_MAX_JOBS 6 // not acknowledged, of one client

struct item {
    unsigned index;
    struct content content;
    bool accepted;
    uint64_t job;
    bool cancelled; // CANCEL was sent at least once
    bool told;      // what its answer told:
    uint64_t told_state;
    bool delivered;
    uint64_t state;
    uint64_t hash;
    bool acking; // ACK was sent at least once
    bool closed; // it was answered, or the job was refused
};

struct client {
    struct client_plan plan;
    struct stats_rng rng;
    uv_loop_t loop;
    struct remote *remote;
    int journal;
    int log;
    struct item *item; // of indices first … first + count - 1
    size_t count;
};

// Uniform in [0,n), of this client's own numbers.
uint64_t client_below(struct client *client, uint64_t n);
// Nothing of it is needed any more.
void client_close_item(struct item *item);

// Calls about one job, which end well, or with an answer that may come while things are killed
// (they wait a moment then), or the client: the journal has a sentence then.
void client_put_source(struct client *client, const struct item *item);
void client_submit(struct client *client, struct item *item);  // also again
void client_provoke(struct client *client, struct item *item); // the same key for something else
void client_cancel(struct client *client, struct item *item);
void client_acknowledge(struct client *client, struct item *item);
void client_expect_gone(struct client *client, struct item *item); // it was acknowledged
// WAIT for these, which are accepted; at most OPEN_MAX_JOBS.
void client_wait(struct client *client, struct item *const *item, size_t count, uint64_t max_ms);

#endif
