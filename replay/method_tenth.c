// The search method "tenth". It measures a tenth of the candidates of a space, in two halves. The
// first half is chosen at random, and an empty model of the static engine learns from it. Then the
// model forecasts all other candidates once, and the second half are those that promise most beyond
// the best so far (policy_expected_improvement: P(correct) times the expected excess). Candidates
// that do not compile are never chosen.
#include "client/policy/policy.h"
#include "client/run/improvement.h"
#include "common/mem.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "replay/budget.h"
#include "replay/search_methods.h"
#include "worker/model/group.h"
#include "worker/outcomes/outcome.h"
#include <math.h>
#include <stdlib.h>

#define STREAM_TENTH 0x74656e7468ULL
#define ASK_MAX 256 // candidates in one request for forecasts

struct tenth {
    const struct space *space;
    struct budget budget;
    struct group *group;
    size_t *shuffled; // candidates that compile, in random order
    size_t count;     // of shuffled
};

static struct candidate_facts facts_of(const struct tenth *t, size_t candidate)
{
    const struct space_candidate *c = &t->space->candidate[candidate];
    struct candidate_facts facts = {.id = candidate + 1,
                                    .digest = c->digest,
                                    .params = c->params,
                                    .params_count = c->params_count};

    if (c->compiled) {
        facts.features = c->compiled->features;
        facts.features_count = c->compiled->features_count;
    }
    return facts;
}

static void shuffle(struct tenth *t, uint64_t seed)
{
    struct stats_rng rng;

    stats_rng_init(&rng, seed, STREAM_TENTH);
    t->shuffled = xcalloc((size_t)t->space->head.candidates, sizeof(*t->shuffled));
    for (size_t i = 0; i < t->space->head.candidates; i++) {
        if (t->space->candidate[i].result) {
            t->shuffled[t->count++] = i;
        }
    }
    for (size_t i = t->count; i > 1; i--) {
        size_t other = (size_t)stats_rng_below(&rng, i), last = t->shuffled[i - 1];

        t->shuffled[i - 1] = t->shuffled[other];
        t->shuffled[other] = last;
    }
}

// Adds the recorded outcome of a candidate to the data of the model.
static void learn(struct tenth *t, size_t candidate)
{
    const struct space_head *head = &t->space->head;
    const struct result *result = t->space->candidate[candidate].result;
    struct candidate_facts facts = facts_of(t, candidate);
    struct observe observe = {.problem = head->problem,
                              .device_class = head->device_class,
                              .device_facts = head->device_facts,
                              .device_facts_count = head->device_facts_count};
    struct outcome outcome = {.candidate = &facts,
                              .verdict = result->verdict,
                              .log2 = NAN,
                              .lo = NAN,
                              .hi = NAN,
                              .propensity = 1,
                              .margin_log2 = IMPROVEMENT_MARGIN_LOG2,
                              .p_improves = NAN};

    if (head->baseline) {
        observe.baseline_features = head->baseline->features;
        observe.baseline_features_count = head->baseline->features_count;
    }
    if (verdict_is_ratio(result->verdict) && result->speedup) {
        outcome.log2 = result->speedup->log2;
        outcome.lo = result->speedup->lo;
        outcome.hi = result->speedup->hi;
    }
    if (outcome_is_usable(&outcome)) {
        group_add(t->group, &observe, &outcome);
    }
}

struct promise {
    double promise, mean;
    size_t candidate;
    size_t place; // in shuffled; decides between equal promises
};

static int downwards(const void *a, const void *b)
{
    const struct promise *left = a, *right = b;

    if (left->promise != right->promise) {
        return left->promise > right->promise ? -1 : 1;
    }
    if (left->mean != right->mean) {
        return left->mean > right->mean ? -1 : 1;
    }
    return left->place < right->place ? -1 : left->place > right->place;
}

// Writes what `count` candidates, from shuffled[first] on, promise.
static int ask(struct tenth *t, size_t first, size_t count, struct promise *out, struct err *err)
{
    const struct space_head *head = &t->space->head;
    struct candidate_facts facts[ASK_MAX];
    struct forecast_request request = {.problem = head->problem,
                                       .device_class = head->device_class,
                                       .device_facts = head->device_facts,
                                       .device_facts_count = head->device_facts_count,
                                       .incumbent_log2 = t->budget.outcome.best_log2,
                                       .candidates = facts,
                                       .candidates_count = count,
                                       .margin_log2 = IMPROVEMENT_MARGIN_LOG2};

    if (head->baseline) {
        request.baseline_features = head->baseline->features;
        request.baseline_features_count = head->baseline->features_count;
    }
    for (size_t i = 0; i < count; i++) {
        facts[i] = facts_of(t, t->shuffled[first + i]);
    }
    struct forecast_reply reply;
    int rc = group_forecast(t->group, &request, &reply, err);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < count && i < reply.forecasts_count; i++) {
        out[i] = (struct promise){
            .promise = policy_expected_improvement(&reply.forecasts[i], request.incumbent_log2),
            .mean = reply.forecasts[i].mean_log2,
            .candidate = t->shuffled[first + i],
            .place = first + i};
    }
    message_clear(&forecast_reply_message, &reply);
    return 0;
}

static int measure_second_half(struct tenth *t, size_t first, size_t all, struct err *err)
{
    size_t rest = t->count - first;
    struct promise *promise = xcalloc(rest + 1, sizeof(*promise));
    int rc = group_fit(t->group, false, err);

    for (size_t i = 0; i < rest && rc == 0; i += ASK_MAX) {
        rc = ask(t, first + i, rest - i < ASK_MAX ? rest - i : ASK_MAX, promise + i, err);
    }
    if (rc == 0) {
        qsort(promise, rest, sizeof(*promise), downwards);
        for (size_t i = 0; i < rest && first + i < all; i++) {
            (void)budget_measure(&t->budget, promise[i].candidate);
        }
    }
    free(promise);
    return rc;
}

static int run(const struct method_search *search, struct search_outcome *ret, struct err *err)
{
    struct tenth t = {.space = recorded_space_data(search->recorded)};
    size_t all = (size_t)(t.space->head.candidates + 9) / 10;

    t.group = group_create(t.space->head.problem, t.space->head.device_class);
    budget_init(&t.budget, search->recorded, NAN);
    shuffle(&t, search->seed);
    all = all < t.count ? all : t.count;
    size_t first = (all + 1) / 2;
    for (size_t i = 0; i < first; i++) {
        (void)budget_measure(&t.budget, t.shuffled[i]);
        learn(&t, t.shuffled[i]);
    }
    int rc = measure_second_half(&t, first, all, err);
    if (rc == 0) {
        *ret = t.budget.outcome;
        ret->considered = t.count;
    }
    free(t.shuffled);
    budget_release(&t.budget);
    group_free(t.group);
    return rc;
}

const struct search_method method_tenth = {
    .name = "tenth",
    .help = "a tenth of the candidates: half at random, half by forecast; knows no --budget",
    .run = run};
