#include "replay/learner.h"
#include "client/forecast_request.h"
#include "common/mem.h"
#include "worker/group.h"
#include <stdlib.h>

#define OBSERVE_MAX 256

struct learner {
    struct sim *sim;
    bool model;
    struct group *group; // made at the first outcome
    bool busy;
    struct forecast_reply reply; // while asked
    bool replies;
    forecaster_callback *callback;
    forecaster_told *told;
    void *owner;
    struct err failure;
};

struct learner *learner_create(struct sim *sim, bool model)
{
    struct learner *learner = xcalloc(1, sizeof(*learner));

    learner->sim = sim;
    learner->model = model;
    return learner;
}

void learner_free(struct learner *learner)
{
    if (learner != NULL) {
        if (learner->replies) {
            message_clear(&forecast_reply_message, &learner->reply);
        }
        group_free(learner->group);
        free(learner);
    }
}

bool learner_busy(const struct learner *learner)
{
    return learner->busy;
}

const char *learner_failure(const struct learner *learner)
{
    return learner->failure.code != ERR_NONE ? learner->failure.text : NULL;
}

static struct group *demand_group(struct learner *learner, const struct fold *fold)
{
    if (learner->group == NULL) {
        learner->group = group_create(fold->started.problem, fold->session.device_class);
    }
    return learner->group;
}

static void on_asked(void *owner, uint64_t tag)
{
    struct learner *learner = owner;
    bool replies = learner->replies;
    struct forecast_reply reply = learner->reply;

    (void)tag;
    learner->busy = learner->replies = false;
    learner->callback(learner->owner, replies ? &reply : NULL,
                      replies ? NULL : "there is no surrogate");
    if (replies) {
        message_clear(&forecast_reply_message, &reply);
    }
}

void learner_ask(struct learner *learner, const struct fold *fold, uint64_t first, uint64_t last,
                 uint64_t visible, forecaster_callback *callback, void *owner)
{
    learner->busy = true;
    learner->callback = callback;
    learner->owner = owner;
    if (learner->model) {
        struct group *group = demand_group(learner, fold);
        struct forecast_request request;

        forecast_questions(fold, first, last, visible, &request);
        learner->replies = group_fit(group, &learner->failure) == 0 &&
                           group_forecast(group, &request, &learner->reply, &learner->failure) == 0;
        forecast_questions_free(&request);
    }
    for (size_t i = 0; learner->replies && i < learner->reply.forecasts_count; i++) {
        learner->reply.forecasts[i].engine = xstrdup("static");
    }
    sim_after(learner->sim, learner->model ? LEARNER_FORECAST_S : 0, on_asked, learner, 0);
}

static void on_told(void *owner, uint64_t rows)
{
    struct learner *learner = owner;

    learner->busy = false;
    learner->told(learner->owner, true, rows);
}

void learner_tell(struct learner *learner, const struct fold *fold, uint64_t after, uint64_t last,
                  forecaster_told *callback, void *owner)
{
    uint64_t next = after + 1;

    learner->busy = true;
    learner->told = callback;
    learner->owner = owner;
    while (learner->model && next <= last) {
        struct group *group = demand_group(learner, fold);
        struct observe observe;

        forecast_outcomes(fold, &next, last, OBSERVE_MAX, &observe);
        for (size_t i = 0; i < observe.outcomes_count; i++) {
            if (group_takes(&observe.outcomes[i])) {
                group_add(group, &observe, &observe.outcomes[i]);
            }
        }
        forecast_outcomes_free(&observe);
    }
    sim_after(learner->sim, learner->model ? LEARNER_OBSERVE_S : 0, on_told, learner,
              learner->group != NULL ? group_rows(learner->group) : 0);
}
