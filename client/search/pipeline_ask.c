// Candidates that the worker writes, for a batch or for what other generators leave of it. A round is
// some requests at once, PER_REQUEST candidates each, from parents of the strategy's choice; what is
// new of their answers, in the order of the requests, goes into the batch, until it is full or BARREN
// rounds in a row brought nothing new.
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include "problem/normalised_source.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_REQUEST 4
#define BARREN 3
#define NAME_MAX_LEN 80 // characters of a source's first comment

static int next_round(struct pipeline *p, struct err *err);

void pipeline_know_source(struct pipeline *p, const void *source, size_t len, uint64_t candidate)
{
    struct digest digest = source_normalised_digest(source, len);
    pipeline_add_first(&p->normal, &digest, candidate);
}

static int know(struct pipeline *p, const struct digest *source, uint64_t candidate,
                struct err *err)
{
    struct bytes text;
    int rc = run_get_blob(p->run, source, &text, err);
    if (rc == 0) {
        pipeline_know_source(p, text.data, text.len, candidate);
        bytes_clear(&text);
    }
    return rc;
}

// The baseline counts as a candidate beyond all: all that matters is that it is there.
int pipeline_know_sources(struct pipeline *p, struct err *err)
{
    int rc = know(p, &p->run_state->started.baseline, UINT64_MAX, err);
    for (uint64_t id = 1; id <= p->run_state->candidate_count && rc == 0; id++) {
        rc = know(p, &candidate_of(p, id)->proposed.source, id, err);
    }
    return rc;
}

void pipeline_forget_asked(struct pipeline *p)
{
    for (size_t i = 0; i < p->writing.count; i++) {
        bytes_clear(&p->writing.got[i].source);
        free(p->writing.got[i].model);
    }
    free(p->writing.reason);
    p->writing = (struct writing){0};
}

// ---- answers ----

// Takes over what is new; the same request with the same draw is never made twice in a batch.
static uint64_t take(struct pipeline *p, struct propose_reply *reply, uint64_t parent)
{
    struct writing *writing = &p->writing;
    uint64_t known = 0;
    for (size_t i = 0; i < reply->proposals_count; i++) {
        struct bytes *source = &reply->proposals[i].source;
        struct digest digest = source_normalised_digest(source->data, source->len);
        if (pipeline_find_first(p->normal, &digest) != 0) {
            known++;
        } else if (writing->count < writing->want) {
            pipeline_add_first(&p->normal, &digest,
                               p->run_state->candidate_count + writing->count + 1);
            writing->got[writing->count++] = (struct written){
                .source = *source,
                .parent = parent,
                .model = reply->model ? xstrdup(reply->model) : NULL,
            };
            *source = (struct bytes){0};
        }
    }
    return known;
}

// What the answer took when it was given for the first time: after a resume it is the same.
static void add_first_cost(struct run_asked *event, const struct propose_reply *reply)
{
    double cost = reply->cached ? reply->first_cost : reply->cost;
    event->first_tokens +=
        reply->cached ? reply->first_tokens : reply->input_tokens + reply->output_tokens;
    event->first_cost += isnan(cost) ? 0 : cost;
}

static void on_proposals(void *owner, struct propose_reply *reply, size_t count)
{
    struct pipeline *p = owner;
    struct writing *writing = &p->writing;
    struct run_asked event = {
        .batch = writing->batch, .generator = p->asker, .round = writing->round + 1};
    size_t before = writing->count;
    free(writing->reason);
    writing->reason = NULL;
    for (size_t i = 0; i < count; i++) {
        event.wanted += writing->request[i].count;
        event.got += reply[i].proposals_count;
        event.known += take(p, &reply[i], writing->request[i].parent);
        event.input_tokens += reply[i].input_tokens;
        event.output_tokens += reply[i].output_tokens;
        event.cost += isnan(reply[i].cost) ? 0 : reply[i].cost;
        add_first_cost(&event, &reply[i]);
        event.seconds = fmax(event.seconds, isnan(reply[i].seconds) ? 0 : reply[i].seconds);
        if (!event.model && reply[i].model) {
            event.model = xstrdup(reply[i].model);
        }
        if (reply[i].reason) {
            free(writing->reason);
            writing->reason = xstrdup(reply[i].reason);
        }
    }
    event.reason = writing->reason ? xstrdup(writing->reason) : NULL;
    writing->round++;
    writing->barren = writing->count > before ? 0 : writing->barren + 1;
    bool over = writing->count == writing->want || writing->barren == BARREN;
    event.over = over && writing->count == 0 && p->generator_count > 1;
    if (pipeline_append(p, RUN_ASKED, &event, &p->failure) != 0) {
        return;
    }
    if (over) {
        writing->over = true;
    } else if (next_round(p, &p->failure) != 0) {
        return; // pipeline_advance looks at it
    }
}

// ---- questions ----

static int next_round(struct pipeline *p, struct err *err)
{
    struct writing *writing = &p->writing;
    struct strategy_view view = {.run_state = p->run_state,
                                 .visible = writing->visible,
                                 .generator = p->generator[p->asker],
                                 .number = p->asker,
                                 .seed = p->run_state->started.seed};
    uint64_t missing = writing->want - writing->count,
             slot = p->run_state->candidate_count + writing->count;
    size_t count = 0;
    while (missing > 0 && count < PROPOSER_ROUND_MAX) {
        uint64_t some = missing < PER_REQUEST ? missing : PER_REQUEST;
        writing->request[count] = (struct proposer_request){
            .parent = p->strategy->parent(&view, slot + 1),
            .count = some,
            .draw = (writing->batch * 1000 + writing->round) * PROPOSER_ROUND_MAX + count,
        };
        missing -= some;
        slot += some;
        count++;
    }
    return proposer_ask(p->proposer, p->run_state, writing->visible, writing->request, count,
                        on_proposals, p, err);
}

int pipeline_ask(struct pipeline *p, uint64_t batch, const struct plan *plan, struct err *err)
{
    pipeline_forget_asked(p);
    p->writing.on = true;
    p->writing.plan = *plan;
    p->writing.batch = batch;
    p->writing.want = plan->part[plan->parts - 1].count;
    p->writing.visible = visible_from(p, batch);
    return next_round(p, err);
}

// ---- the log ----

// The comment that the source begins with, "two rows per block", or "proposal 12".
static char *name_of(uint64_t id, const struct bytes *source)
{
    size_t len = 0, at = 0;
    while (at < source->len && isspace(source->data[at])) {
        at++;
    }
    char comment[NAME_MAX_LEN + 1];
    if (at + 2 < source->len && source->data[at] == '/' &&
        (source->data[at + 1] == '/' || source->data[at + 1] == '*') &&
        source->data[at + 2] != '@') {
        for (at += 2; at < source->len && source->data[at] != '\n' && source->data[at] != '*' &&
                      len < NAME_MAX_LEN;
             at++) {
            unsigned char c = source->data[at];
            comment[len] = c > ' ' && c < 127 ? (char)c : ' ';
            len += comment[len] != ' ' || (len > 0 && comment[len - 1] != ' ');
        }
    }
    comment[len] = '\0';
    return len > 0 ? xstrdup(comment) : xasprintf("proposal %llu", (unsigned long long)id);
}

// In the middle of a transaction.
static int record_written(struct pipeline *p, struct err *err)
{
    struct writing *writing = &p->writing;
    int rc = 0;
    for (size_t i = 0; i < writing->count && rc == 0; i++) {
        struct written *written = &writing->got[i];
        struct run_proposed event = {
            .candidate = p->run_state->candidate_count + 1,
            .parent = written->parent,
            .name = name_of(p->run_state->candidate_count + 1, &written->source),
            .generator = p->asker,
            .model = written->model,
        };
        written->model = NULL;
        rc = pipeline_record_proposal(p, &event, written->source.data, written->source.len, err);
    }
    return rc;
}

int pipeline_record_asked(struct pipeline *p, struct err *err)
{
    struct writing *writing = &p->writing;
    struct plan rest;
    if (writing->count == 0 && p->generator_count == 1) {
        const char *reason = writing->reason ? writing->reason : "all were there already";
        if (p->run_state->candidate_count == 0) {
            return err_set(err, ERR_UNREACHABLE, "the generator llm got no candidate: %.800s",
                           reason);
        }
        p->exhausted = xasprintf("no more new candidates came: %.400s", reason);
        writing->on = false;
        return 0;
    }
    uint64_t before = p->run_state->candidate_count;
    int rc = run_begin(p->run, err);
    if (rc != 0) {
        goto out;
    }
    rc = pipeline_record_plan(p, writing->batch, &writing->plan, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_written(p, err);
    if (rc != 0) {
        goto out;
    }
    pipeline_plan(p, writing->batch, writing->want - writing->count, false, &rest);
    rc = pipeline_record_plan(p, writing->batch, &rest, err);
out:
    rc = pipeline_commit(p, rc, err);
    pipeline_forget_asked(p);
    if (rc == 0 && p->run_state->candidate_count == before) {
        p->exhausted = pipeline_no_more(p);
    }
    return rc;
}
