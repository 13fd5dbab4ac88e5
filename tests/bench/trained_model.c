#include "tests/bench/trained_model.h"

#include "common/mem.h"
#include "common/stats.h"
#include "proto/verdict.h"
#include "tests/bench/samples.h"
#include "worker/outcomes/outcome.h"
#include <math.h>
#include <stdlib.h>

static bool is_usable(const struct space_candidate *c)
{
    return c->compiled && c->compiled->verdict == VERDICT_NONE && c->result;
}

static struct candidate_facts facts_of(const struct space_candidate *c, uint64_t id)
{
    return (struct candidate_facts){.id = id,
                                    .features = c->compiled->features,
                                    .features_count = c->compiled->features_count,
                                    .params = c->params,
                                    .params_count = c->params_count};
}

double trained_model_outcome(const struct space_candidate *candidate)
{
    return verdict_is_ratio(candidate->result->verdict) ? space_log2(candidate) : NAN;
}

static void shuffle(struct trained_model *model, uint64_t seed, uint64_t stream)
{
    const struct space *space = model->space;
    struct stats_rng rng;

    stats_rng_init(&rng, seed, stream);
    model->order = xcalloc((size_t)space->head.candidates, sizeof(*model->order));
    for (size_t i = 0; i < space->head.candidates; i++) {
        if (is_usable(&space->candidate[i])) {
            model->order[model->count++] = i;
        }
    }
    for (size_t i = model->count; i > 1; i--) {
        size_t j = (size_t)stats_rng_below(&rng, i), swap = model->order[i - 1];

        model->order[i - 1] = model->order[j];
        model->order[j] = swap;
    }
}

static void learn(struct trained_model *model)
{
    const struct space *space = model->space;
    double *y = xcalloc(model->trained + 1, sizeof(*y));
    struct observe context;

    message_init(&observe_message, &context);
    context.device_facts = space->head.device_facts;
    context.device_facts_count = space->head.device_facts_count;
    size_t count = 0;
    for (size_t i = 0; i < model->trained; i++) {
        const struct space_candidate *c = &space->candidate[model->order[i]];
        struct candidate_facts facts = facts_of(c, i + 1);
        struct outcome outcome;

        message_init(&outcome_message, &outcome);
        outcome.candidate = &facts;
        outcome.verdict = c->result->verdict;
        outcome.log2 = trained_model_outcome(c);
        if (!isnan(outcome.log2)) {
            y[count++] = outcome.log2;
        }
        if (outcome_is_usable(&outcome)) {
            group_add(model->group, &context, &outcome);
        }
    }
    stats_sort(y, count);
    model->target = count > 0 ? stats_quantile(y, count, 0.75) : 0;
    free(y);
}

void trained_model_init(struct trained_model *ret, const struct space *space, size_t trained,
                        size_t others, uint64_t seed, uint64_t stream)
{
    *ret = (struct trained_model){.space = space, .trained = trained};
    shuffle(ret, seed, stream);
    struct err err = ERR_INIT;
    if (ret->count < trained + others) {
        (void)err_set(&err, ERR_INVALID, "%s has too few candidates", space->head.problem);
        die(&err);
    }
    ret->group = group_create(space->head.problem, space->head.device_class);
    learn(ret);
    if (group_fit(ret->group, false, &err) != 0) {
        die(&err);
    }
}

void trained_model_release(struct trained_model *model)
{
    group_free(model->group);
    free(model->order);
}

const struct space_candidate *trained_model_candidate(const struct trained_model *model, size_t i)
{
    return &model->space->candidate[model->order[model->trained + i]];
}

void trained_model_forecast(const struct trained_model *model,
                            const struct space_candidate *candidate, struct forecast_reply *ret)
{
    const struct space_head *head = &model->space->head;
    struct candidate_facts facts = facts_of(candidate, 1);
    struct forecast_request request;

    message_init(&forecast_request_message, &request);
    request.incumbent_log2 = model->target;
    request.device_facts = head->device_facts;
    request.device_facts_count = head->device_facts_count;
    request.candidates = &facts;
    request.candidates_count = 1;
    struct err err = ERR_INIT;
    if (group_forecast(model->group, &request, ret, &err) != 0) {
        die(&err);
    }
}
