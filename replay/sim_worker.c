#include "replay/sim_worker.h"

#include "client/forecast/forecast_request.h"
#include "common/mem.h"
#include "replay/perfect_forecaster.h"
#include "worker/model/group.h"
#include "worker/outcomes/outcome.h"
#include <stdlib.h>

#define OBSERVE_MAX 256

struct sim_worker {
    struct forecast_service peer; // for the pipeline
    struct sim *sim;
    enum sim_forecaster forecaster;
    const struct recorded_space *recorded;
    struct looks *looks;
    struct group *group;         // the static model and its data, made when first needed
    struct forecast_reply reply; // the answer to the present question, if `replies`
    bool replies;                // there is an answer
    forecast_service_callback *callback;
    forecast_service_told *told;
    void *owner;
    struct err failure;
};

const char *sim_forecaster_name(enum sim_forecaster forecaster)
{
    return forecaster == SIM_FORECASTER_PERFECT  ? "perfect"
           : forecaster == SIM_FORECASTER_STATIC ? "static"
                                                 : "none";
}

static struct sim_worker *sim_worker_of(struct forecast_service *peer)
{
    return (struct sim_worker *)((uintptr_t)peer - offsetof(struct sim_worker, peer));
}

static struct group *demand_group(struct sim_worker *sim_worker, const struct run_state *run_state)
{
    if (!sim_worker->group) {
        sim_worker->group =
            group_create(run_state->started.problem, run_state->session.device_class);
    }
    return sim_worker->group;
}

static void on_asked(void *owner, uint64_t tag)
{
    struct sim_worker *sim_worker = owner;
    bool replies = sim_worker->replies;
    struct forecast_reply reply = sim_worker->reply;

    (void)tag;
    sim_worker->peer.busy = sim_worker->replies = false;
    sim_worker->callback(sim_worker->owner, replies ? &reply : NULL,
                         replies ? NULL : "there is no surrogate");
    if (replies) {
        message_clear(&forecast_reply_message, &reply);
    }
}

// Whether the static model has answered. It has not without one, and after a failure.
static bool answer_by_model(struct sim_worker *sim_worker, const struct run_state *run_state,
                            const struct forecast_request *request)
{
    struct group *group = demand_group(sim_worker, run_state);

    if (group_fit(group, request->screening, &sim_worker->failure) != 0 ||
        group_forecast(group, request, &sim_worker->reply, &sim_worker->failure) != 0) {
        return false;
    }
    for (size_t i = 0; i < sim_worker->reply.forecasts_count; i++) {
        sim_worker->reply.forecasts[i].engine = xstrdup("static");
    }
    return true;
}

// Makes the answer to the request, and answers after the simulated time that this takes.
static void answer(struct forecast_service *peer, const struct run_state *run_state,
                   const struct forecast_request *request, forecast_service_callback *callback,
                   void *owner)
{
    struct sim_worker *sim_worker = sim_worker_of(peer);

    looks_add(sim_worker->looks, request);
    sim_worker->peer.busy = true;
    sim_worker->callback = callback;
    sim_worker->owner = owner;
    if (sim_worker->forecaster == SIM_FORECASTER_PERFECT) {
        perfect_forecast(sim_worker->recorded, request, &sim_worker->reply);
        sim_worker->replies = true;
    } else {
        sim_worker->replies = sim_worker->forecaster == SIM_FORECASTER_STATIC &&
                              answer_by_model(sim_worker, run_state, request);
    }
    sim_after(sim_worker->sim,
              sim_worker->forecaster != SIM_FORECASTER_NONE ? SIM_WORKER_FORECAST_S : 0, on_asked,
              sim_worker, 0);
}

static void ask(struct forecast_service *peer, const struct run_state *run_state, uint64_t first,
                uint64_t last, uint64_t visible, forecast_service_callback *callback, void *owner)
{
    struct forecast_request request;

    forecast_questions(run_state, first, last, visible, &request);
    answer(peer, run_state, &request, callback, owner);
    forecast_questions_free(&request);
}

static void ask_again(struct forecast_service *peer, const struct run_state *run_state,
                      const uint64_t *candidate, size_t count, uint64_t visible,
                      forecast_service_callback *callback, void *owner)
{
    struct forecast_request request;

    forecast_questions_again(run_state, candidate, count, visible, &request);
    answer(peer, run_state, &request, callback, owner);
    forecast_questions_free(&request);
}

static void screen(struct forecast_service *peer, const struct run_state *run_state,
                   struct candidate_facts *facts, size_t count, uint64_t visible,
                   const double *beyond_log2, size_t margins, forecast_service_callback *callback,
                   void *owner)
{
    struct forecast_request request;

    forecast_screening(run_state, facts, count, visible, &request);
    request.beyond_log2 = (double *)(uintptr_t)beyond_log2; // the request is not cleared
    request.beyond_log2_count = margins;
    answer(peer, run_state, &request, callback, owner);
}

static void on_told(void *owner, uint64_t rows)
{
    struct sim_worker *sim_worker = owner;

    sim_worker->peer.busy = false;
    sim_worker->told(sim_worker->owner, true, rows);
}

static void tell(struct forecast_service *peer, const struct run_state *run_state, uint64_t after,
                 uint64_t last, forecast_service_told *callback, void *owner)
{
    struct sim_worker *sim_worker = sim_worker_of(peer);
    uint64_t next = after + 1;

    sim_worker->peer.busy = true;
    sim_worker->told = callback;
    sim_worker->owner = owner;
    while (sim_worker->forecaster == SIM_FORECASTER_STATIC && next <= last) {
        struct group *group = demand_group(sim_worker, run_state);
        struct observe observe;

        forecast_outcomes(run_state, &next, last, OBSERVE_MAX, &observe);
        for (size_t i = 0; i < observe.outcomes_count; i++) {
            if (outcome_is_usable(&observe.outcomes[i]) ||
                outcome_is_compile_failure(&observe.outcomes[i])) {
                group_add(group, &observe, &observe.outcomes[i]);
            }
        }
        forecast_outcomes_free(&observe);
    }
    sim_after(sim_worker->sim,
              sim_worker->forecaster != SIM_FORECASTER_NONE ? SIM_WORKER_OBSERVE_S : 0, on_told,
              sim_worker, sim_worker->group ? group_rows(sim_worker->group) : 0);
}

struct sim_worker *sim_worker_create(struct sim *sim, enum sim_forecaster forecaster,
                                     const struct recorded_space *recorded)
{
    struct sim_worker *sim_worker = xcalloc(1, sizeof(*sim_worker));

    sim_worker->peer = (struct forecast_service){
        .ask = ask, .ask_again = ask_again, .screen = screen, .tell = tell};
    sim_worker->sim = sim;
    sim_worker->forecaster = forecaster;
    sim_worker->recorded = recorded;
    sim_worker->looks = looks_create(recorded);
    return sim_worker;
}

void sim_worker_free(struct sim_worker *sim_worker)
{
    if (sim_worker) {
        if (sim_worker->replies) {
            message_clear(&forecast_reply_message, &sim_worker->reply);
        }
        group_free(sim_worker->group);
        looks_free(sim_worker->looks);
        free(sim_worker);
    }
}

const struct looks *sim_worker_looks(const struct sim_worker *sim_worker)
{
    return sim_worker->looks;
}

const char *sim_worker_failure(const struct sim_worker *sim_worker)
{
    return sim_worker->failure.code != ERR_NONE ? sim_worker->failure.text : NULL;
}

struct forecast_service *sim_worker_service(struct sim_worker *sim_worker)
{
    return &sim_worker->peer;
}
