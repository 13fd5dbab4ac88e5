// Candidates that the worker or programs write, for a batch or for what other generators leave of
// it. A round is several requests at once, from parents that the strategy chooses. Of the answers,
// in the order of the requests, candidates with a new source are kept, until there are as many as
// the search wants for a batch (surplus of run_started) or FRUITLESS_MAX rounds in a row brought
// nothing new. The log has them with each round, so that a search that was killed goes on behind
// the last round that was answered.
//
// What is kept beyond the batch's room waits for later ones: nothing that was paid for is thrown
// away, up to WAITING_MAX. Where the worker can compare sources the best go first
// (pipeline_rank.c), and what waits is compared again, with new proposals, for each batch; where it
// cannot they go in their turn, before anybody is asked again. Searches that began without
// RUN_RULE_WAITING drop what a batch has no room for.
#include "client/search/pipeline_state.h"

#include "common/mem.h"
#include "problem/candidate_form.h"
#include "problem/normalised_source.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRUITLESS_MAX 3 // rounds without a new candidate that end the asking
// Slots by which a round is beyond the one before. Strategies name the same parent for up to four
// slots in a row, or for slots that are apart by up to six.
#define ROUND_SLOTS 7
#define WAITING_MAX 256 // proposals of a generator that are kept
#define NAME_MAX_LEN 80 // characters of a source's first comment

static int next_round(struct pipeline *p, struct err *err);

void pipeline_remember_source(struct pipeline *p, const void *source, size_t len,
                              uint64_t candidate)
{
    struct digest digest = source_normalised_digest(source, len);
    pipeline_add_first(&p->normal, &digest, candidate);
    if (candidate != UINT64_MAX) {
        novelty_add(p->novelty, candidate, source, len);
    }
}

static int remember_blob(struct pipeline *p, const struct digest *source, uint64_t candidate,
                         struct err *err)
{
    struct bytes text;
    int rc = run_get_blob(p->run, source, &text, err);
    if (rc == 0) {
        pipeline_remember_source(p, text.data, text.len, candidate);
        bytes_clear(&text);
    }
    return rc;
}

// The baseline, like what waits, is remembered as a candidate with an impossible number, as it is
// only looked for.
int pipeline_remember_sources(struct pipeline *p, struct err *err)
{
    int rc = remember_blob(p, &p->run_state->started.baseline, UINT64_MAX, err);
    for (uint64_t id = 1; id <= p->run_state->candidate_count && rc == 0; id++) {
        rc = remember_blob(p, &candidate_of(p, id)->proposed.source, id, err);
    }
    for (size_t i = 0; i < p->run_state->waiting_count && rc == 0; i++) {
        rc = remember_blob(p, &p->run_state->waiting[i].answer.source, UINT64_MAX, err);
    }
    return rc;
}

void pipeline_clear_asked(struct pipeline *p)
{
    for (size_t i = 0; i < p->asked.count; i++) {
        bytes_clear(&p->asked.proposal[i].source);
        free(p->asked.proposal[i].name);
        free(p->asked.proposal[i].model);
    }
    free(p->asked.proposal);
    free(p->asked.reason);
    p->asked = (struct asked_batch){0};
}

// ---- answers ----

// Takes over the candidates with new sources. Returns how many sources were known.
static uint64_t take(struct pipeline *p, struct propose_reply *reply, uint64_t parent)
{
    struct asked_batch *asked = &p->asked;
    uint64_t known = 0;
    for (size_t i = 0; i < reply->proposals_count; i++) {
        struct bytes *source = &reply->proposals[i].source;
        struct digest digest = source_normalised_digest(source->data, source->len);
        if (pipeline_find_first(p->normal, &digest) != 0 ||
            novelty_is_spent(p->novelty, p->run_state, asked->visible, source->data, source->len)) {
            known++;
        } else if (asked->count < asked->room) {
            pipeline_add_first(&p->normal, &digest, UINT64_MAX);
            asked->proposal[asked->count++] = (struct asked_proposal){
                .source = *source,
                .parent = parent,
                .name = reply->proposals[i].name,
                .model = reply->model ? xstrdup(reply->model) : NULL,
                .promise = NAN,
            };
            asked->fresh++;
            *source = (struct bytes){0};
            reply->proposals[i].name = NULL;
        }
    }
    return known;
}

// Adds what the answer cost when it was given for the first time, which is the same after a resume.
static void add_first_cost(struct run_asked *event, const struct propose_reply *reply)
{
    double cost = reply->cached ? reply->first_cost : reply->cost;
    event->first_tokens +=
        reply->cached ? reply->first_tokens : reply->input_tokens + reply->output_tokens;
    event->first_cost += isnan(cost) ? 0 : cost;
}

// Adds the candidates that the round brought to its event, and their sources to the run file.
static int keep_answers(struct pipeline *p, size_t before, struct run_asked *event, struct err *err)
{
    const struct asked_batch *asked = &p->asked;
    int rc = 0;
    event->kept = true;
    event->answers = xcalloc(asked->count - before + 1, sizeof(*event->answers));
    for (size_t i = before; i < asked->count && rc == 0; i++) {
        const struct asked_proposal *proposal = &asked->proposal[i];
        struct run_answer *answer = &event->answers[event->answers_count++];
        answer->parent = proposal->parent;
        answer->name = proposal->name ? xstrdup(proposal->name) : NULL;
        answer->model = proposal->model ? xstrdup(proposal->model) : NULL;
        rc =
            run_put_blob(p->run, proposal->source.data, proposal->source.len, &answer->source, err);
    }
    return rc;
}

// Records a round with what it brought, in one transaction. Clears the event.
static int record_round(struct pipeline *p, size_t before, struct run_asked *event, struct err *err)
{
    int rc = run_begin(p->run, err);
    if (rc == 0) {
        rc = keep_answers(p, before, event, err);
    }
    if (rc == 0) {
        rc = pipeline_append(p, RUN_ASKED, event, err);
    } else {
        message_clear(&run_asked_message, event);
    }
    return pipeline_commit(p, rc, err);
}

// Whether nobody need be asked any more for the batch.
static bool has_enough(const struct asked_batch *asked)
{
    uint64_t count = asked->anew ? asked->fresh : asked->count;
    return count >= asked->target || asked->count >= asked->room;
}

// Counts a round that is answered, and has brought a new candidate or none. Returns whether it was
// the last one of the batch.
static bool count_round(struct asked_batch *asked, bool brought)
{
    asked->round++;
    asked->fruitless = brought ? 0 : asked->fruitless + 1;
    return has_enough(asked) || asked->fruitless == FRUITLESS_MAX;
}

static void on_proposals(void *owner, struct propose_reply *reply, size_t count)
{
    struct pipeline *p = owner;
    struct asked_batch *asked = &p->asked;
    struct run_asked event = {
        .batch = asked->batch, .generator = asked->generator, .round = asked->round + 1};
    size_t before = asked->count;
    free(asked->reason);
    asked->reason = NULL;
    for (size_t i = 0; i < count; i++) {
        event.wanted += asked->request[i].count;
        event.got += reply[i].proposals_count;
        event.known += take(p, &reply[i], asked->request[i].parent);
        event.input_tokens += reply[i].input_tokens;
        event.output_tokens += reply[i].output_tokens;
        event.cost += isnan(reply[i].cost) ? 0 : reply[i].cost;
        add_first_cost(&event, &reply[i]);
        event.seconds = fmax(event.seconds, isnan(reply[i].seconds) ? 0 : reply[i].seconds);
        if (!event.model && reply[i].model) {
            event.model = xstrdup(reply[i].model);
        }
        if (reply[i].reason) {
            free(asked->reason);
            asked->reason = xstrdup(reply[i].reason);
        }
    }
    event.reason = asked->reason ? xstrdup(asked->reason) : NULL;
    bool over = count_round(asked, asked->count > before);
    event.over = over && asked->count == 0 && p->generator_count > 1;
    if (record_round(p, before, &event, &p->failure) != 0) {
        return;
    }
    if (over) {
        asked->complete = true;
    } else if (next_round(p, &p->failure) != 0) {
        return; // pipeline_advance returns the failure
    }
}

// ---- requests ----

static int next_round(struct pipeline *p, struct err *err)
{
    struct asked_batch *asked = &p->asked;
    struct proposer *proposer = p->proposer[asked->generator];
    struct strategy_view view = pipeline_view(p, asked->visible, asked->generator);
    uint64_t missing = asked->target - (asked->anew ? asked->fresh : asked->count),
             next = p->run_state->candidate_count + asked->count;
    uint64_t most = proposer->per_request > 0
                        ? proposer->per_request
                        : (missing + proposer->round_max - 1) / proposer->round_max;
    size_t count = 0;
    while (missing > 0 && count < proposer->round_max) {
        uint64_t some = missing < most ? missing : most;
        // A round that brought nothing new is followed by one from other parents.
        asked->request[count] = (struct proposer_request){
            .parent = p->strategy->parent(&view, next + asked->round * ROUND_SLOTS + 1),
            .count = some,
            .draw = (asked->batch * 1000 + asked->round) * PROPOSER_ROUND_MAX + count,
        };
        missing -= some;
        next += some;
        count++;
    }
    return proposer->ask(proposer, p->run_state, asked->visible, asked->request, count,
                         on_proposals, p, err);
}

// Takes over a candidate of the log.
static int take_answer(struct pipeline *p, const struct run_answer *answer, struct err *err)
{
    struct asked_proposal *proposal = &p->asked.proposal[p->asked.count];
    *proposal = (struct asked_proposal){.parent = answer->parent, .promise = NAN};
    int rc = run_get_blob(p->run, &answer->source, &proposal->source, err);
    if (rc == 0) {
        proposal->name = answer->name ? xstrdup(answer->name) : NULL;
        proposal->model = answer->model ? xstrdup(answer->model) : NULL;
        p->asked.count++;
    }
    return rc;
}

// Takes over what waits for this generator's batches.
static int take_waiting(struct pipeline *p, struct err *err)
{
    struct asked_batch *asked = &p->asked;
    int rc = 0;
    for (size_t i = 0; i < p->run_state->waiting_count && rc == 0 && asked->count < asked->room;
         i++) {
        const struct run_state_waiting *waiting = &p->run_state->waiting[i];
        rc = waiting->generator == asked->generator ? take_answer(p, &waiting->answer, err) : 0;
    }
    return rc;
}

// Settles how many proposals the batch wants to choose from, and how many are kept. Where they are
// ranked new ones are asked for although others wait, so that what is made from the best so far
// competes with what was left before; unless the batch before got nothing new.
static void settle_room(const struct pipeline *p, struct asked_batch *asked)
{
    const struct run_started *started = &p->run_state->started;
    uint64_t target = asked->want * (started->surplus > 1 ? started->surplus : 1);
    asked->target = asked->room = asked->want;
    if (started->rules & RUN_RULE_WAITING) {
        asked->target = target < WAITING_MAX ? target : WAITING_MAX;
        asked->room = WAITING_MAX;
        asked->anew = pipeline_can_rank(p, asked->visible) &&
                      p->run_state->asking[asked->generator].fruitless_before < FRUITLESS_MAX;
    }
    asked->proposal = xcalloc((size_t)asked->room, sizeof(*asked->proposal));
}

// Takes over what a round of an earlier session brought.
static int take_round(struct pipeline *p, const struct run_asked *round, struct err *err)
{
    struct asked_batch *asked = &p->asked;
    int rc = 0;
    bool waits = p->run_state->started.rules & RUN_RULE_WAITING; // its answers are there already
    for (size_t i = 0; !waits && i < round->answers_count && rc == 0 && asked->count < asked->room;
         i++) {
        rc = take_answer(p, &round->answers[i], err);
        if (rc == 0) {
            const struct bytes *source = &asked->proposal[asked->count - 1].source;
            pipeline_remember_source(p, source->data, source->len,
                                     p->run_state->candidate_count + asked->count);
        }
    }
    if (round->reason) {
        free(asked->reason);
        asked->reason = xstrdup(round->reason);
    }
    asked->fresh += round->answers_count;
    asked->complete = count_round(asked, round->answers_count > 0);
    return rc;
}

int pipeline_ask(struct pipeline *p, uint64_t batch, const struct plan *plan, struct err *err)
{
    struct asked_batch *asked = &p->asked;
    pipeline_clear_asked(p);
    asked->under_way = true;
    asked->plan = *plan;
    asked->batch = batch;
    asked->generator = plan->part[plan->parts - 1].generator;
    asked->want = plan->part[plan->parts - 1].count;
    asked->visible = visible_from(p, batch);
    settle_room(p, asked);
    int rc = take_waiting(p, err);
    asked->complete = has_enough(asked);
    for (size_t i = 0; i < p->run_state->round_count && rc == 0 && !asked->complete; i++) {
        const struct run_asked *round = &p->run_state->round[i];
        if (round->batch == batch && round->generator == asked->generator) {
            rc = take_round(p, round, err);
        }
    }
    return rc == 0 && !asked->complete ? next_round(p, err) : rc;
}

// ---- the log ----

// How many characters begin the comment here that is none of a manifest; 0: none begins here.
static size_t begins_comment(const struct bytes *source, size_t at)
{
    const char *text = (const char *)source->data;
    if (at + 1 < source->len && text[at] == '#') {
        return text[at + 1] != '!' && candidate_form(text, source->len) == FORM_PYTHON;
    }
    bool comment = at + 2 < source->len && text[at] == '/' &&
                   (text[at + 1] == '/' || text[at + 1] == '*') && text[at + 2] != '@';
    return comment ? 2 : 0;
}

// The name of a candidate, malloc'd: the comment that its source begins with, or "proposal 12".
static char *name_of(uint64_t id, const struct bytes *source)
{
    size_t len = 0, at = 0;
    while (at < source->len && isspace(source->data[at])) {
        at++;
    }
    char comment[NAME_MAX_LEN + 1];
    size_t begin = begins_comment(source, at);
    if (begin > 0) {
        int end = source->data[at + begin - 1] == '*' ? '*' : '\n';
        for (at += begin; at < source->len && source->data[at] != '\n' && source->data[at] != end &&
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

// Records the candidates that were written, as many as the batch has room for. Within a
// transaction.
static int record_proposals(struct pipeline *p, size_t *ret, struct err *err)
{
    struct asked_batch *asked = &p->asked;
    size_t chosen[RUN_BATCH_MAX], count = pipeline_choose_proposals(p, chosen);
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct asked_proposal *proposal = &asked->proposal[chosen[i]];
        struct run_proposed event = {
            .candidate = p->run_state->candidate_count + 1,
            .parent = proposal->parent,
            .name = proposal->name ? proposal->name
                                   : name_of(p->run_state->candidate_count + 1, &proposal->source),
            .generator = asked->generator,
            .model = proposal->model,
            .ranked = asked->known,
            .place = pipeline_proposal_place(p, chosen[i]),
        };
        proposal->name = proposal->model = NULL;
        rc = pipeline_record_proposal(p, &event, proposal->source.data, proposal->source.len, err);
    }
    *ret = count;
    return rc;
}

int pipeline_record_asked(struct pipeline *p, struct err *err)
{
    struct asked_batch *asked = &p->asked;
    struct plan rest;
    if (asked->count == 0 && p->generator_count == 1) {
        const char *reason = asked->reason ? asked->reason : "all were there already";
        if (p->run_state->candidate_count == 0) {
            // Of a worker that is not there or a program that fails; not of this search's input.
            return err_set(err, ERR_UNREACHABLE, "the generator %.300s got no candidate: %.800s",
                           p->run_state->started.generator, reason);
        }
        p->exhausted = xasprintf("no more new candidates came: %.400s", reason);
        asked->under_way = false;
        return 0;
    }
    uint64_t before = p->run_state->candidate_count;
    size_t given;
    int rc = run_begin(p->run, err);
    if (rc != 0) {
        goto out;
    }
    rc = pipeline_record_plan(p, asked->batch, &asked->plan, err);
    if (rc != 0) {
        goto out;
    }
    rc = record_proposals(p, &given, err);
    if (rc != 0) {
        goto out;
    }
    pipeline_plan(p, asked->batch, asked->want - given, false, &rest);
    rc = pipeline_record_plan(p, asked->batch, &rest, err);
out:
    rc = pipeline_commit(p, rc, err);
    pipeline_clear_asked(p);
    if (rc == 0 && p->run_state->candidate_count == before) {
        p->exhausted = pipeline_exhausted_reason(p);
    }
    return rc;
}
