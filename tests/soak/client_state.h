// Shared by client.c (steps, journal) and client_calls.c (calls and checks of their answers).
// Nobody else includes it.
#ifndef TESTS_SOAK_CLIENT_STATE_H
#define TESTS_SOAK_CLIENT_STATE_H

#include "common/stats.h"
#include "net/rpc/remote.h"
#include "tests/soak/client.h"
#include "tests/soak/content.h"

#define OPEN_MAX_JOBS 6 // most jobs of one client that are not acknowledged

struct item {
    unsigned index;
    struct content content;
    bool accepted;
    uint64_t job;
    bool cancelled; // CANCEL was sent at least once
    bool cancel_answered;
    uint64_t cancel_state; // in the answer of CANCEL
    bool delivered;
    uint64_t state;
    uint64_t hash;
    bool acking; // ACK was sent at least once
    bool closed; // ACK was answered, or the job was refused
};

struct client {
    struct client_plan plan;
    struct stats_rng rng;
    uv_loop_t loop;
    struct remote *remote;
    int journal;
    int log;
    struct item *item; // owned; indices 0 … count - 1
    size_t count;
};

// A random number in [0, n), uniform, from this client's own generator.
uint64_t client_below(struct client *client, uint64_t n);
// Marks the job as finished and releases its content.
void client_close_item(struct item *item);

// Calls about one job. Each ends with the expected answer, or with an error that is expected while
// processes are killed (then it pauses a moment). Any other answer ends the client, with a sentence
// in the journal.
void client_put_source(struct client *client, const struct item *item);
// Submits the job. It may have been accepted already.
void client_submit(struct client *client, struct item *item);
// Submits another job with the same key, which must be refused.
void client_reuse_key(struct client *client, struct item *item);
void client_cancel(struct client *client, struct item *item);
void client_acknowledge(struct client *client, struct item *item);
void client_expect_gone(struct client *client, struct item *item); // the job was acknowledged
// WAIT for these jobs, which must be accepted; at most OPEN_MAX_JOBS.
void client_wait(struct client *client, struct item *const *item, size_t count, uint64_t max_ms);

#endif
