// One question which candidates go first (OP_RANK). It is a call like those of forecaster.c, one at
// a time with them.
#include "client/forecast/forecaster_state.h"

#include "client/forecast/search_text.h"
#include "common/mem.h"
#include <stdlib.h>

// Whether the worker can be asked which candidates go first.
static bool can_rank(const struct forecaster *forecaster)
{
    return forecaster_asks_models(forecaster) && worker_link_abilities(forecaster->link)->ranks;
}

void forecaster_clear_ranked(struct forecaster *forecaster)
{
    if (forecaster->ranked) {
        message_clear(&rank_request_message, forecaster->ranked);
        free(forecaster->ranked);
        forecaster->ranked = NULL;
    }
}

static void finish_ranking(struct forecaster *forecaster, const struct rank_reply *reply,
                           const char *reason)
{
    forecast_service_ranked *callback = forecaster->on_order;
    forecaster->on_order = NULL;
    forecaster->service.busy = false;
    forecaster_clear_ranked(forecaster);
    callback(forecaster->owner, reply, reason);
}

static void on_order(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct forecaster *forecaster = owner;
    (void)retry_after_ms;
    if (forecaster->closing) {
        return;
    }
    if (error) {
        forecaster_lose(forecaster, error);
        finish_ranking(forecaster, NULL, forecaster->reason);
    } else {
        forecaster_succeed(forecaster);
        finish_ranking(forecaster, reply, NULL);
    }
}

// Answers a question that nobody receives: whose it is decides how.
static void on_nobody_ranks(uv_timer_t *timer)
{
    uv_stop(timer->loop);
    forecaster_rank_nothing(timer->data);
}

static void ask_order(struct forecaster *forecaster)
{
    const struct run_state *run_state = forecaster->run_state;
    struct rank_request *ranked = forecaster->ranked;
    struct rank_request request = *ranked; // borrows the candidates
    struct err err = ERR_INIT;
    struct search_context context;
    if (search_text_make(&context, run_state, forecaster->visible, forecaster->read,
                         forecaster->read_owner, &err) != 0) {
        message_clear(&search_context_message, &context);
        uv_timer_start(forecaster->timer, on_nobody_ranks, 0, 0);
        return;
    }
    request.context = &context;
    request.problem = run_state->started.problem;
    request.device_class = run_state->session.device_class;
    request.device_facts = run_state->session.device_facts;
    request.device_facts_count = run_state->session.device_facts_count;
    if (run_state->baseline) {
        request.baseline_features = run_state->baseline->features;
        request.baseline_features_count = run_state->baseline->features_count;
    }
    request.incumbent_log2 = run_state_incumbent_before(run_state, forecaster->visible);
    request.search = run_state->started.search;
    remote_call(forecaster_begin_call(forecaster), OP_RANK, &rank_request_message, &request,
                &rank_reply_message, MODELS_MS, on_order, forecaster);
    message_clear(&search_context_message, &context);
}

void forecaster_rank_now(struct forecaster *forecaster)
{
    if (can_rank(forecaster)) {
        ask_order(forecaster);
    } else {
        uv_timer_start(forecaster->timer, on_nobody_ranks, 0, 0);
    }
}

void forecaster_rank_nothing(struct forecaster *forecaster)
{
    finish_ranking(forecaster, NULL,
                   forecaster->reason ? forecaster->reason : "there is no worker that ranks");
}

bool forecaster_ranks(const struct forecast_service *service)
{
    return can_rank(forecaster_of(service));
}

void forecaster_rank(struct forecast_service *service, const struct run_state *run_state,
                     const struct candidate_facts *facts, size_t count, uint64_t take,
                     uint64_t visible, uint64_t seed, forecast_service_ranked *callback,
                     void *owner)
{
    struct forecaster *forecaster = forecaster_of(service);
    struct rank_request *ranked = xcalloc(1, sizeof(*ranked));
    message_init(&rank_request_message, ranked);
    ranked->candidates = message_copy_all(&candidate_facts_message, facts, count);
    ranked->candidates_count = count;
    ranked->take = take;
    ranked->seed = seed;
    forecaster->ranked = ranked;
    forecaster->on_order = callback;
    forecaster_begin(forecaster, run_state, visible, owner);
}
