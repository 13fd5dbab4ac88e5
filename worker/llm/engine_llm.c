// Design note. Everything runs on the loop thread. A FORECAST is a batch of questions, one per
// candidate, and is answered when all of them are. Each forecast is that of the endpoint that
// answered, with its model, the prompt and the way in which it is asked: recalibration, calls and
// trust are kept by that name, so that of two endpoints in one worker each stands for itself. A
// question without an answer becomes a forecast with confidence 0 and a reason, so that its
// candidate is measured and not lost. OBSERVE blocks the loop until the disk has the outcomes,
// which takes milliseconds.
#include "worker/llm/engine_llm.h"

#include "common/later.h"
#include "common/mem.h"
#include "worker/llm/llm.h"
#include "worker/outcomes/history.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENGINE_NAME "llm"

struct engine {
    uv_loop_t *loop;
    struct llm *llm;
    struct history *history;
    uint64_t forecasts;
};

// One FORECAST.
struct batch {
    struct engine *engine;
    struct forecast_request request;
    struct forecast_reply reply;
    size_t open; // questions without an answer
    struct question {
        struct batch *batch;
        size_t index;
    } * question;
    engine_done *done;
    void *owner;
};

// A call whose reply is known at once. It is answered from the loop, never inside itself.
struct later {
    struct err err;
    const struct message *message;
    union {
        struct observed observed;
        struct worker_status status;
        struct forecast_reply nothing;
    } reply;
    engine_done *done;
    void *owner;
};

// ---- replies that are known at once ----

static void finish_later(void *owner)
{
    struct later *later = owner;

    later->done(later->owner, later->err.code != ERR_NONE ? &later->err : NULL,
                later->err.code != ERR_NONE ? NULL : &later->reply);
    message_clear(later->message, &later->reply);
    free(later);
}

// Answers the call in the loop's next round. The caller fills reply or err before.
static struct later *begin_later(struct engine *engine, const struct message *message,
                                 engine_done *done, void *owner)
{
    struct later *later = xcalloc(1, sizeof(*later));

    later->err = (struct err)ERR_INIT;
    later->message = message;
    later->done = done;
    later->owner = owner;
    message_init(message, &later->reply);
    later_run(engine->loop, finish_later, later);
    return later;
}

// ---- FORECAST ----

static void finish_if_done(struct batch *batch)
{
    if (batch->open > 0) {
        return;
    }
    batch->done(batch->owner, NULL, &batch->reply);
    message_clear(&forecast_request_message, &batch->request);
    message_clear(&forecast_reply_message, &batch->reply);
    free(batch->question);
    free(batch);
}

// Turns the answer about one candidate into its forecast.
static void fill(struct batch *batch, size_t index, const struct llm_answer *answer)
{
    struct forecast *forecast = &batch->reply.forecasts[index];

    forecast->seconds = answer->seconds;
    forecast->input_tokens = answer->input_tokens;
    forecast->output_tokens = answer->output_tokens;
    forecast->cost = answer->cost;
    forecast->cached_tokens = answer->cached_tokens;
    forecast->requests = answer->requests;
    forecast->endpoint = answer->endpoint ? xasprintf("%.250s", answer->endpoint) : NULL;
    forecast->way = answer->way ? xasprintf("%.250s", answer->way) : NULL;
    if (answer->reason) {
        forecast->confidence = 0;
        forecast->reason = xasprintf("%.500s", answer->reason);
        return;
    }
    forecast->raw = xcalloc(1, sizeof(*forecast->raw));
    message_init(&raw_forecast_message, forecast->raw);
    forecast->raw->model = xasprintf(ENGINE_NAME " %.250s", answer->forecaster);
    forecast->raw->p_correct = answer->p_correct;
    forecast->raw->bins = xcalloc(BIN_COUNT, sizeof(double));
    forecast->raw->bins_count = BIN_COUNT;
    memcpy(forecast->raw->bins, answer->bins, sizeof(answer->bins));
    if (!isnan(answer->p_better)) {
        double correct = isnan(answer->p_correct) ? HISTORY_P_CORRECT_DEFAULT : answer->p_correct;

        forecast->raw->p_improves = correct * answer->p_better;
    }
    forecast->rung = xstrdup(answer->format);
    history_recalibrate(batch->engine->history, &batch->request, forecast);
    batch->engine->forecasts++;
}

static void on_answer(void *owner, const struct llm_answer *answer)
{
    struct question *question = owner;
    struct batch *batch = question->batch;

    fill(batch, question->index, answer);
    batch->open--;
    finish_if_done(batch);
}

static void llm_engine_forecast(void *opaque, struct forecast_request *request_take,
                                engine_done *done, void *owner)
{
    struct engine *engine = opaque;
    struct batch *batch = xcalloc(1, sizeof(*batch));
    size_t count = request_take->candidates_count;

    batch->engine = engine;
    batch->request = *request_take;
    memset(request_take, 0, sizeof(*request_take));
    batch->done = done;
    batch->owner = owner;
    batch->question = xcalloc(count + 1, sizeof(*batch->question));
    message_init(&forecast_reply_message, &batch->reply);
    batch->reply.forecasts = xcalloc(count + 1, sizeof(*batch->reply.forecasts));
    batch->reply.forecasts_count = count;
    for (size_t i = 0; i < count; i++) {
        message_init(&forecast_message, &batch->reply.forecasts[i]);
        batch->reply.forecasts[i].id = batch->request.candidates[i].id;
        batch->reply.forecasts[i].engine = xstrdup(ENGINE_NAME);
    }
    batch->open = count; // no question ends inside llm_forecast
    for (size_t i = 0; i < count; i++) {
        batch->question[i] = (struct question){.batch = batch, .index = i};
        llm_forecast(engine->llm, &batch->request, i, on_answer, &batch->question[i]);
    }
    if (count == 0) { // no question would end the batch
        (void)begin_later(engine, &forecast_reply_message, done, owner);
        message_clear(&forecast_request_message, &batch->request);
        message_clear(&forecast_reply_message, &batch->reply);
        free(batch->question);
        free(batch);
    }
}

// ---- PROPOSE ----

// Whom a PROPOSE or a RANK is to be answered.
struct proposing {
    engine_done *done;
    void *owner;
};

static void on_proposed(void *owner, const struct propose_reply *reply)
{
    struct proposing proposing = *(struct proposing *)owner;

    free(owner);
    proposing.done(proposing.owner, NULL, reply);
}

static void llm_engine_propose(void *opaque, struct propose_request *request_take,
                               engine_done *done, void *owner)
{
    struct engine *engine = opaque;
    struct proposing *proposing = xcalloc(1, sizeof(*proposing));

    *proposing = (struct proposing){.done = done, .owner = owner};
    llm_propose(engine->llm, request_take, on_proposed, proposing);
}

// ---- RANK ----

static void on_ranked(void *owner, const struct rank_reply *reply)
{
    struct proposing ranking = *(struct proposing *)owner;

    free(owner);
    ranking.done(ranking.owner, NULL, reply);
}

static void llm_engine_rank(void *opaque, struct rank_request *request_take, engine_done *done,
                            void *owner)
{
    struct engine *engine = opaque;
    struct proposing *ranking = xcalloc(1, sizeof(*ranking));

    *ranking = (struct proposing){.done = done, .owner = owner};
    llm_rank(engine->llm, request_take, on_ranked, ranking);
}

// ---- OBSERVE and status ----

static void llm_engine_observe(void *opaque, struct observe *request_take, engine_done *done,
                               void *owner)
{
    struct engine *engine = opaque;
    struct observe request = *request_take;
    struct later *later = begin_later(engine, &observed_message, done, owner);

    memset(request_take, 0, sizeof(*request_take));
    if (history_add(engine->history, &request, &later->reply.observed, &later->err) != 0) {
        later->reply.observed = (struct observed){.added = 0}; // later->err is the error
    } else {
        llm_observe(engine->llm, &request);
    }
    message_clear(&observe_message, &request);
}

static void llm_engine_status(void *opaque, engine_done *done, void *owner)
{
    struct engine *engine = opaque;
    struct worker_status *status =
        &begin_later(engine, &worker_status_message, done, owner)->reply.status;

    status->engine = xstrdup(ENGINE_NAME);
    status->forecasts = engine->forecasts;
    history_status(engine->history, status);
    llm_status(engine->llm, status);
}

// ---- opening and closing ----

static void free_engine(struct engine *engine)
{
    history_close(engine->history);
    free(engine);
}

static int llm_engine_open(void **ret, const struct engine_config *config, struct err *err)
{
    if (!config->llm || config->llm->count == 0) {
        return err_set(err, ERR_USAGE,
                       "--engine llm needs --endpoint and --model, or a section [endpoint NAME] of "
                       "the configuration"
                       " file: there is no language model to ask");
    }
    struct engine *engine = xcalloc(1, sizeof(*engine));
    char *path = xasprintf("%s/llm.db", config->state_dir);
    engine->loop = config->loop;
    int rc = history_open(&engine->history, path, err);
    free(path);
    if (rc == 0) {
        rc = llm_create(&engine->llm, config->loop, config->llm, config->state_dir, err);
    }
    if (rc != 0) {
        free_engine(engine);
        return rc;
    }
    *ret = engine;
    return 0;
}

// llm_close ends the open questions and so the open calls. Replies that wait for the loop own what
// they need.
static void llm_engine_close(void *opaque)
{
    struct engine *engine = opaque;

    llm_close(engine->llm);
    free_engine(engine);
}

const struct engine_ops engine_llm = {
    .name = ENGINE_NAME,
    .help = "asks language models, and corrects them by what was measured",
    .reads_sources = true,
    .open = llm_engine_open,
    .forecast = llm_engine_forecast,
    .observe = llm_engine_observe,
    .propose = llm_engine_propose,
    .rank = llm_engine_rank,
    .status = llm_engine_status,
    .close = llm_engine_close,
};
