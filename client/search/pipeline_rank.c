// Proposals of programs and language models that are more than the batch takes are compared by
// facts about their sources (problem/source_facts.h) before any is compiled: the best go first, the
// rest waits and is compared again for the next batch. It begins when the search knows enough
// outcomes to screen by. Unlike a screening of points this chooses the order only: what was taken
// is compiled, forecast by its object, or by a language model, and decided about like any other
// candidate.
//
// What a proposal promises is its expected improvement over what compiling and measuring it is
// expected to cost. One place in ten goes to the proposal that has waited longest, so that none
// waits for ever. The run file says of each candidate among how many it was compared and its place
// (run_proposed); a search that was killed compares again what the log has.
//
// Where the worker cannot compare sources so, or does not know enough yet, a language model is
// asked instead, if the worker has one: all proposals in one question, of which it says the order.
// It says who goes first and nothing more, so that it needs no trust; what it costs is in the log
// (run_ordered). It is shown ORDERED_MAX proposals at most, the newest; older ones wait for their
// turn.
#include "client/policy/costs.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include "problem/source_facts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define OLDEST 0.1 // share of places that go to what has waited longest
#define STREAM_OLDEST 0x72616e6bULL
#define ORDERED_MAX 64 // proposals of one question to a language model

// Whether proposals are compared by forecasts of their sources.
static bool ranks_by_facts(const struct pipeline *p, uint64_t visible)
{
    return p->policy->screens && pipeline_knows_enough(p, visible) &&
           (!p->forecasts->screens || p->forecasts->screens(p->forecasts));
}

// Whether a language model is asked instead.
static bool ranks_by_model(const struct pipeline *p, uint64_t visible)
{
    return !p->policy->blind && !ranks_by_facts(p, visible) && p->forecasts->ranks &&
           p->forecasts->ranks(p->forecasts);
}

bool pipeline_can_rank(const struct pipeline *p, uint64_t visible)
{
    return (p->run_state->started.rules & RUN_RULE_WAITING) && !p->forecasts->absent &&
           (ranks_by_facts(p, visible) || ranks_by_model(p, visible));
}

bool pipeline_rank_due(const struct pipeline *p)
{
    const struct asked_batch *asked = &p->asked;
    return asked->complete && !asked->ranking && !asked->ranked && asked->count > asked->want &&
           pipeline_can_rank(p, asked->visible);
}

// What compiling one of candidates 1 … visible has taken on average.
static double compile_seconds(const struct pipeline *p, uint64_t visible)
{
    double sum = 0, count = 0;
    for (uint64_t id = 1; id <= visible; id++) {
        const struct compiled *compiled = candidate_of(p, id)->compiled;
        if (compiled && compiled->seconds > 0) {
            sum += compiled->seconds;
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}

static void on_ranked(void *owner, struct forecast_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    struct asked_batch *asked = &p->asked;
    struct measure_cost cost = measure_cost_fit(p->run_state, asked->visible);
    struct cost_weights weights = cost_weights_of(&p->run_state->started);
    double compiling = compile_seconds(p, asked->visible);
    (void)reason; // without forecasts they are taken in their turn
    asked->ranking = false;
    asked->ranked = true;
    for (size_t i = 0; reply && i < reply->forecasts_count; i++) {
        const struct forecast *forecast = &reply->forecasts[i];
        if (forecast->id >= 1 && forecast->id <= asked->count && policy_usable(forecast) &&
            forecast->trained_rows > 0) {
            struct asked_proposal *proposal = &asked->proposal[forecast->id - 1];
            proposal->promise = forecast->expected_improvement /
                                measure_cost_expect(&cost, &weights, forecast, compiling);
            asked->known += isfinite(proposal->promise);
        }
    }
}

// ---- by a language model ----

static void record_order(struct pipeline *p, const struct rank_reply *reply, const char *reason)
{
    const struct asked_batch *asked = &p->asked;
    struct run_ordered event;

    message_init(&run_ordered_message, &event);
    event.batch = asked->batch;
    event.generator = asked->generator;
    event.compared = asked->compared;
    event.asked_at = asked->asked_at;
    if (reply) {
        event.named = reply->order_count > 0 ? reply->named : 0;
        event.model = reply->model ? xstrdup(reply->model) : NULL;
        event.input_tokens = reply->input_tokens;
        event.output_tokens = reply->output_tokens;
        event.cost = reply->cost;
        event.seconds = reply->seconds;
        reason = reply->reason;
    }
    event.reason = reason ? xasprintf("%.500s", reason) : NULL;
    int rc = run_begin(p->run, &p->failure);
    if (rc == 0) {
        rc = pipeline_append(p, RUN_ORDERED, &event, &p->failure);
    } else {
        message_clear(&run_ordered_message, &event);
    }
    if (pipeline_commit(p, rc, &p->failure) != 0) {
        return; // pipeline_advance returns the failure
    }
}

// The first one promises most. What the model has not named goes in its turn.
static void on_ordered(void *owner, const struct rank_reply *reply, const char *reason)
{
    struct pipeline *p = owner;
    struct asked_batch *asked = &p->asked;
    asked->ranking = false;
    asked->ranked = true;
    for (size_t i = 0; reply && i < reply->order_count && i < reply->named; i++) {
        uint64_t id = reply->order[i];
        if (id >= 1 && id <= asked->count && !isfinite(asked->proposal[id - 1].promise)) {
            asked->proposal[id - 1].promise = (double)(reply->order_count - i);
            asked->known++;
        }
    }
    record_order(p, reply, reason);
}

static void ask_order(struct pipeline *p)
{
    struct asked_batch *asked = &p->asked;
    size_t first = asked->count > ORDERED_MAX ? asked->count - ORDERED_MAX : 0;
    struct candidate_facts *facts = xcalloc(asked->count, sizeof(*facts));
    asked->compared = asked->count - first;
    asked->asked_at = pipeline_now(p);
    for (size_t i = 0; i < asked->compared; i++) {
        message_init(&candidate_facts_message, &facts[i]);
        facts[i].id = first + i + 1;
        facts[i].source = asked->proposal[first + i].source; // borrowed
    }
    p->forecasts->rank(p->forecasts, p->run_state, facts, asked->compared, asked->want,
                       asked->visible, p->run_state->started.seed + asked->batch, on_ordered, p);
    free(facts);
}

// ---- by facts ----

static void ask_forecasts(struct pipeline *p)
{
    struct asked_batch *asked = &p->asked;
    struct candidate_facts *facts = xcalloc(asked->count, sizeof(*facts));
    for (size_t i = 0; i < asked->count; i++) {
        const struct bytes *source = &asked->proposal[i].source;
        facts[i].id = i + 1;
        facts[i].source_facts_count =
            source_facts(source->data, source->len, p->problem, &facts[i].source_facts);
    }
    p->forecasts->screen(p->forecasts, p->run_state, facts, asked->count, asked->visible, NULL, 0,
                         on_ranked, p);
    for (size_t i = 0; i < asked->count; i++) {
        message_clear(&candidate_facts_message, &facts[i]);
    }
    free(facts);
}

void pipeline_rank(struct pipeline *p)
{
    p->asked.ranking = true;
    if (ranks_by_facts(p, p->asked.visible)) {
        ask_forecasts(p);
    } else {
        ask_order(p);
    }
}

// ---- choosing ----

// Whether a promises more than b. What has no forecast promises least, and of equal ones the first
// is taken.
static bool promises_more(const struct asked_proposal *a, const struct asked_proposal *b)
{
    return isfinite(a->promise) && (!isfinite(b->promise) || a->promise > b->promise);
}

size_t pipeline_choose_proposals(struct pipeline *p, size_t out[static RUN_BATCH_MAX])
{
    struct asked_batch *asked = &p->asked;
    struct strategy_view view = pipeline_view(p, asked->visible, asked->generator);
    size_t count = 0;
    while (count < asked->want && count < asked->count) {
        uint64_t slot = p->run_state->candidate_count + count + 1;
        bool oldest = strategy_uniform(&view, STREAM_OLDEST, slot) < OLDEST;
        struct asked_proposal *best = NULL;
        for (size_t i = 0; i < asked->count; i++) {
            struct asked_proposal *proposal = &asked->proposal[i];
            if (!proposal->chosen && (!best || (!oldest && promises_more(proposal, best)))) {
                best = proposal;
            }
        }
        best->chosen = true;
        out[count++] = (size_t)(best - asked->proposal);
    }
    return count;
}

uint64_t pipeline_proposal_place(const struct pipeline *p, size_t proposal)
{
    const struct asked_proposal *own = &p->asked.proposal[proposal];
    uint64_t place = 1;
    if (!isfinite(own->promise)) {
        return 0;
    }
    for (size_t i = 0; i < p->asked.count; i++) {
        place += promises_more(&p->asked.proposal[i], own);
    }
    return place;
}
