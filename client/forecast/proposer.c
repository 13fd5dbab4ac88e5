#include "client/forecast/proposer.h"

#include "client/forecast/neighbours.h"
#include "client/forecast/search_notes.h"
#include "common/mem.h"
#include "net/rpc/remote.h"
#include "proto/verdict.h"
#include <stdlib.h>
#include <string.h>

#define PER_REQUEST 4     // candidates of one request
#define PROPOSE_MS 900000 // deadline of a request; language models take minutes
#define INSPIRATIONS 2    // candidates beside the parent whose sources are sent

struct round;

// One request under way and its place in the round.
struct call {
    struct round *round;
    size_t index;
};

struct round {
    struct worker_proposer *proposer; // NULL when nobody waits for the answers any more
    struct call call[PROPOSER_ROUND_MAX];
    struct propose_reply reply[PROPOSER_ROUND_MAX];
    size_t count; // requests
    size_t open;  // requests without an answer yet
    proposer_callback *callback;
    void *owner;
};

struct worker_proposer {
    struct proposer proposer; // must be first
    struct remote *worker;
    search_text_reader *read;
    void *read_owner;
    struct neighbours *neighbours;
    struct round *round; // the one under way; NULL: none
};

void proposer_free(struct proposer *proposer)
{
    if (proposer) {
        proposer->free(proposer);
    }
}

static void free_proposer(struct proposer *base)
{
    struct worker_proposer *proposer = (struct worker_proposer *)base;

    if (proposer->round) {
        proposer->round->proposer = NULL;
    }
    neighbours_free(proposer->neighbours);
    free(proposer);
}

static void free_round(struct round *round)
{
    for (size_t i = 0; i < round->count; i++) {
        message_clear(&propose_reply_message, &round->reply[i]);
    }
    free(round);
}

static void on_proposals(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct call *call = owner;
    struct round *round = call->round;
    struct propose_reply *to = &round->reply[call->index];

    (void)retry_after_ms;
    if (error) {
        to->reason = xasprintf("%.500s", error->text);
    } else {
        message_clear(&propose_reply_message, to);
        *to = *(struct propose_reply *)reply; // takes its parts over
        message_init(&propose_reply_message, reply);
    }
    if (--round->open > 0) {
        return;
    }
    if (round->proposer) {
        round->proposer->round = NULL;
        round->callback(round->owner, round->reply, round->count);
    }
    free_round(round);
}

// Adds other good candidates beside the parent, to take ideas from.
static int add_inspirations(struct worker_proposer *proposer, const struct run_state *run_state,
                            uint64_t visible, uint64_t parent, struct propose_request *request,
                            struct err *err)
{
    uint64_t id[INSPIRATIONS];
    size_t count = 0;
    int rc = neighbours_inspirations(proposer->neighbours, run_state, visible, parent, id,
                                     INSPIRATIONS, &count, err);

    request->inspirations = xcalloc(INSPIRATIONS, sizeof(*request->inspirations));
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = search_known_source(&request->inspirations[request->inspirations_count++], run_state,
                                 id[i], visible, request->context, proposer->read,
                                 proposer->read_owner, err);
    }
    return rc;
}

static void clear_sources(struct propose_request *request)
{
    for (size_t i = 0; i < request->inspirations_count; i++) {
        message_clear(&known_source_message, &request->inspirations[i]);
    }
    free(request->inspirations);
    request->inspirations = NULL;
    request->inspirations_count = 0;
    request->parent = NULL;
}

static int send_one(struct worker_proposer *proposer, struct round *round,
                    const struct run_state *run_state, uint64_t visible,
                    struct propose_request *request, const struct proposer_request *wanted,
                    struct err *err)
{
    struct call *call = &round->call[round->open];

    request->count = wanted->count;
    request->draw = wanted->draw;
    request->parent = NULL;
    struct known_source parent;
    message_init(&known_source_message, &parent);
    int rc = 0;
    if (wanted->parent != 0) {
        rc = search_known_source(&parent, run_state, wanted->parent, visible, request->context,
                                 proposer->read, proposer->read_owner, err);
        request->parent = &parent;
    }
    if (rc == 0) {
        rc = add_inspirations(proposer, run_state, visible, wanted->parent, request, err);
    }
    if (rc == 0) {
        *call = (struct call){.round = round, .index = round->open};
        round->open++;
        remote_call(proposer->worker, OP_PROPOSE, &propose_request_message, request,
                    &propose_reply_message, PROPOSE_MS, on_proposals, call);
    }
    message_clear(&known_source_message, &parent);
    clear_sources(request);
    return rc;
}

static int ask(struct proposer *base, const struct run_state *run_state, uint64_t visible,
               const struct proposer_request *request, size_t count, proposer_callback *callback,
               void *owner, struct err *err)
{
    struct worker_proposer *proposer = (struct worker_proposer *)base;
    struct search_context context;
    struct round *round = xcalloc(1, sizeof(*round));
    int rc =
        search_text_make(&context, run_state, visible, proposer->read, proposer->read_owner, err);
    if (rc == 0) {
        search_notes_add(&context, run_state, visible);
    }
    struct propose_request body = {
        .problem = run_state->started.problem,
        .device_class = run_state->session.device_class,
        .device_facts = run_state->session.device_facts,
        .device_facts_count = run_state->session.device_facts_count,
        .incumbent_log2 = run_state_incumbent_before(run_state, visible),
        .context = &context,
        .search = run_state->started.search,
    };

    if (run_state->baseline) {
        body.baseline_features = run_state->baseline->features;
        body.baseline_features_count = run_state->baseline->features_count;
    }
    *round =
        (struct round){.proposer = proposer, .count = count, .callback = callback, .owner = owner};
    for (size_t i = 0; i < count; i++) {
        message_init(&propose_reply_message, &round->reply[i]);
    }
    for (size_t i = 0; i < count && rc == 0; i++) {
        rc = send_one(proposer, round, run_state, visible, &body, &request[i], err);
    }
    message_clear(&search_context_message, &context);
    if (rc == 0) {
        proposer->round = round;
    } else if (round->open == 0) {
        free_round(round);
    } else { // some requests were sent: their answers are dropped
        round->proposer = NULL;
        round->count = round->open;
    }
    return rc;
}

int proposer_create(struct proposer **ret, struct session *session, search_text_reader *read,
                    void *owner, struct err *err)
{
    if (session_options(session)->no_worker) {
        return err_set(err, ERR_USAGE,
                       "--generator llm needs a worker, which writes the candidates; leave "
                       "--no-worker out");
    }
    struct remote *worker;
    int rc = session_worker(session, &worker, err);
    if (rc == 0) {
        struct worker_proposer *made = xcalloc(1, sizeof(*made));

        *made = (struct worker_proposer){.proposer = {.round_max = PROPOSER_ROUND_MAX,
                                                      .per_request = PER_REQUEST,
                                                      .ask = ask,
                                                      .free = free_proposer},
                                         .worker = worker,
                                         .read = read,
                                         .read_owner = owner,
                                         .neighbours = neighbours_create(read, owner)};
        *ret = &made->proposer;
    }
    return rc;
}
