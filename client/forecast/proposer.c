#include "client/forecast/proposer.h"

#include "common/mem.h"
#include "net/rpc/remote.h"
#include "proto/verdict.h"
#include <stdlib.h>
#include <string.h>

#define PROPOSE_MS 900000 // deadline of a request; language models take minutes

struct round;

// One request under way and its place in the round.
struct call {
    struct round *round;
    size_t index;
};

struct round {
    struct proposer *proposer; // NULL when nobody waits for the answers any more
    struct call call[PROPOSER_ROUND_MAX];
    struct propose_reply reply[PROPOSER_ROUND_MAX];
    size_t count; // requests
    size_t open;  // requests without an answer yet
    proposer_callback *callback;
    void *owner;
};

struct proposer {
    struct remote *worker;
    search_text_reader *read;
    void *read_owner;
    struct round *round; // the one under way; NULL: none
};

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
        *ret = xcalloc(1, sizeof(**ret));
        **ret = (struct proposer){.worker = worker, .read = read, .read_owner = owner};
    }
    return rc;
}

void proposer_free(struct proposer *proposer)
{
    if (!proposer) {
        return;
    }
    if (proposer->round) {
        proposer->round->proposer = NULL;
    }
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

// Describes the parent by its outcome and its source.
static int describe(struct propose_parent *ret, const struct proposer *proposer,
                    const struct run_state *run_state, uint64_t id, struct err *err)
{
    const struct run_state_candidate *candidate = &run_state->candidate[id - 1];
    const struct result *result = candidate->record ? candidate->record : candidate->result;

    message_init(&propose_parent_message, ret);
    ret->name = candidate->proposed.name ? xstrdup(candidate->proposed.name) : NULL;
    if (result) {
        ret->verdict = result->verdict;
        ret->reason = result->reason ? xasprintf("%.8000s", result->reason) : NULL;
        if (verdict_is_ratio(result->verdict) && result->speedup) {
            ret->log2 = result->speedup->log2;
        }
    } else if (candidate->compiled) {
        ret->verdict = candidate->compiled->verdict;
        ret->reason =
            candidate->compiled->reason ? xasprintf("%.8000s", candidate->compiled->reason) : NULL;
    }
    return proposer->read(proposer->read_owner, &candidate->proposed.source, &ret->source, err);
}

static int send_one(struct proposer *proposer, struct round *round,
                    const struct run_state *run_state, struct propose_request *request,
                    const struct proposer_request *wanted, struct err *err)
{
    struct call *call = &round->call[round->open];

    request->count = wanted->count;
    request->draw = wanted->draw;
    request->parent = NULL;
    struct propose_parent parent;
    message_init(&propose_parent_message, &parent);
    int rc = 0;
    if (wanted->parent != 0) {
        rc = describe(&parent, proposer, run_state, wanted->parent, err);
        request->parent = &parent;
    }
    if (rc == 0) {
        *call = (struct call){.round = round, .index = round->open};
        round->open++;
        remote_call(proposer->worker, OP_PROPOSE, &propose_request_message, request,
                    &propose_reply_message, PROPOSE_MS, on_proposals, call);
    }
    message_clear(&propose_parent_message, &parent);
    return rc;
}

int proposer_ask(struct proposer *proposer, const struct run_state *run_state, uint64_t visible,
                 const struct proposer_request *request, size_t count, proposer_callback *callback,
                 void *owner, struct err *err)
{
    struct search_context context;
    struct round *round = xcalloc(1, sizeof(*round));
    int rc =
        search_text_make(&context, run_state, visible, proposer->read, proposer->read_owner, err);
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
        rc = send_one(proposer, round, run_state, &body, &request[i], err);
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
