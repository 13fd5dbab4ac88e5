// Talking to the worker.
//
// One call at a time. A failure opens a breaker: the next 1, 2, 4, … 64 batches are not asked
// about, so that a worker that hangs costs its deadline rarely; an answer closes it. After a
// failure a HELLO finds out first whether there is a worker at all, which answers it however much
// it has to think about: a forecast that finds no connection would wait for one as long as it may
// think. What could not be told is told later, since the search counts what was told. A callback
// that is due without a call (no worker, breaker open) comes from a zero-length timer, so that
// callers see the same order of things either way.
#include "client/pool/forecaster.h"

#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORECAST_MS 30000 // deadlines
#define MODELS_MS 600000  // of a forecast by language models
#define OBSERVE_MS 30000
#define OBSERVE_MAX 256 // outcomes of one message
#define SKIP_MAX 64

struct forecaster {
    struct session *session;
    struct remote *worker; // NULL: none
    char *engine;
    search_text_reader *read;
    void *read_owner;
    void (*notice)(void *owner, const char *sentence);
    void *notice_owner;
    bool said;                // the failure
    char *reason;             // why there are no forecasts now
    unsigned skip, skip_next; // batches that are not asked about
    bool busy;
    struct call *call; // in submission
    uv_timer_t *timer;
    forecaster_callback *callback;
    forecaster_told *told;
    void *owner;
    const struct run_state *run_state; // while asking or telling
    uint64_t first, last, visible;     // what is asked
    uint64_t tell_next, tell_last;     // candidates still to be told
    uint64_t rows;
};

// In submission; outlives the forecaster.
struct call {
    struct forecaster *forecaster; // NULL once that is gone
};

static void tell_more(struct forecaster *forecaster);
static void finish_telling(struct forecaster *forecaster, bool ok);

static void fail(struct forecaster *forecaster, const struct err *error)
{
    free(forecaster->reason);
    forecaster->reason = xasprintf("the worker gave none: %.900s", error->text);
    forecaster->skip = forecaster->skip_next;
    forecaster->skip_next =
        forecaster->skip_next * 2 < SKIP_MAX ? forecaster->skip_next * 2 : SKIP_MAX;
    if (!forecaster->said && forecaster->notice) {
        char *sentence = xasprintf("no forecasts, so everything is measured: %s", error->text);
        forecaster->notice(forecaster->notice_owner, sentence);
        free(sentence);
    }
    forecaster->said = true;
}

static void succeed(struct forecaster *forecaster)
{
    if (forecaster->said && forecaster->notice) {
        forecaster->notice(forecaster->notice_owner, "the worker answers again");
    }
    forecaster->said = false;
    forecaster->skip_next = 1;
}

struct forecaster *forecaster_create(struct session *session,
                                     void (*notice)(void *owner, const char *sentence), void *owner)
{
    struct forecaster *forecaster = xcalloc(1, sizeof(*forecaster));
    forecaster->session = session;
    forecaster->notice = notice;
    forecaster->notice_owner = owner;
    forecaster->skip_next = 1;
    forecaster->timer = xcalloc(1, sizeof(*forecaster->timer));
    uv_timer_init(session_loop(session), forecaster->timer);
    forecaster->timer->data = forecaster;
    struct err error = ERR_INIT;
    struct worker_status status;
    if (session_options(session)->no_worker) {
        forecaster->reason = xstrdup("--no-worker was given");
    } else if (session_worker(session, &forecaster->worker, &error) != 0) {
        forecaster->worker = NULL;
        fail(forecaster, &error);
    } else if (remote_call_sync(forecaster->worker, OP_WORKER_STATUS, NULL, NULL,
                                &worker_status_message, &status, 5000, &error) == 0) {
        forecaster->engine = status.engine;
        status.engine = NULL;
        message_clear(&worker_status_message, &status);
    }
    return forecaster;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

void forecaster_free(struct forecaster *forecaster)
{
    if (!forecaster) {
        return;
    }
    if (forecaster->call) {
        forecaster->call->forecaster = NULL;
    }
    uv_close((uv_handle_t *)forecaster->timer, free_handle);
    free(forecaster->engine);
    free(forecaster->reason);
    free(forecaster);
}

void forecaster_set_reader(struct forecaster *forecaster, search_text_reader *read, void *owner)
{
    forecaster->read = read;
    forecaster->read_owner = owner;
}

// Sources are only sent to who reads them.
static bool asks_models(const struct forecaster *forecaster)
{
    return forecaster->read && forecaster->engine && strcmp(forecaster->engine, "static") != 0;
}

const char *forecaster_engine(const struct forecaster *forecaster)
{
    return forecaster->engine;
}

bool forecaster_busy(const struct forecaster *forecaster)
{
    return forecaster->busy;
}

// ---- asking ----

static void finish(struct forecaster *forecaster, struct forecast_reply *reply, const char *reason)
{
    forecaster_callback *callback = forecaster->callback;
    forecaster->callback = NULL;
    forecaster->busy = false;
    callback(forecaster->owner, reply, reason);
}

static void on_forecasts(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct call *call = owner;
    struct forecaster *forecaster = call->forecaster;
    (void)retry_after_ms;
    free(call);
    if (!forecaster) {
        return;
    }
    forecaster->call = NULL;
    if (error) {
        fail(forecaster, error);
        finish(forecaster, NULL, forecaster->reason);
    } else {
        succeed(forecaster);
        finish(forecaster, reply, NULL);
    }
}

static void on_nobody_asked(uv_timer_t *timer)
{
    struct forecaster *forecaster = timer->data;
    uv_stop(timer->loop); // whoever runs the loop looks at what follows
    finish(forecaster, NULL, forecaster->reason ? forecaster->reason : "there is no worker");
}

static struct call *begin_call(struct forecaster *forecaster)
{
    forecaster->call = xcalloc(1, sizeof(*forecaster->call));
    forecaster->call->forecaster = forecaster;
    return forecaster->call;
}

// The sources, and what there is to know about the search. A blob that cannot be read leaves its
// candidate without a source, and so without a forecast by a language model.
static void add_texts(struct forecaster *forecaster, const struct run_state *run_state,
                      uint64_t visible, struct forecast_request *request)
{
    request->context = xcalloc(1, sizeof(*request->context));
    struct err err = ERR_INIT;
    if (search_text_make(request->context, run_state, visible, forecaster->read,
                         forecaster->read_owner, &err) != 0) {
        message_clear(&search_context_message, request->context);
        free(request->context);
        request->context = NULL;
        return;
    }
    for (size_t i = 0; i < request->candidates_count; i++) {
        struct candidate_facts *candidate = &request->candidates[i];
        if (forecaster->read(forecaster->read_owner, &candidate->digest, &candidate->source,
                             &err) != 0) {
            candidate->source = (struct bytes){0};
        }
    }
}

static void release_texts(struct forecast_request *request)
{
    for (size_t i = 0; i < request->candidates_count; i++) {
        bytes_clear(&request->candidates[i].source);
    }
    if (request->context) {
        message_clear(&search_context_message, request->context);
        free(request->context);
        request->context = NULL;
    }
}

static void ask_now(struct forecaster *forecaster)
{
    struct forecast_request request;
    forecast_questions(forecaster->run_state, forecaster->first, forecaster->last,
                       forecaster->visible, &request);
    if (asks_models(forecaster)) {
        add_texts(forecaster, forecaster->run_state, forecaster->visible, &request);
    }
    remote_call(forecaster->worker, OP_FORECAST, &forecast_request_message, &request,
                &forecast_reply_message, asks_models(forecaster) ? MODELS_MS : FORECAST_MS,
                on_forecasts, begin_call(forecaster));
    release_texts(&request);
    forecast_questions_free(&request);
}

static void on_there(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct call *call = owner;
    struct forecaster *forecaster = call->forecaster;
    (void)retry_after_ms;
    (void)reply;
    free(call);
    if (!forecaster) {
        return;
    }
    forecaster->call = NULL;
    bool telling = forecaster->told;
    if (error) {
        fail(forecaster, error);
    }
    if (telling && error) {
        finish_telling(forecaster, false);
    } else if (telling) {
        tell_more(forecaster);
    } else if (error) {
        finish(forecaster, NULL, forecaster->reason);
    } else {
        ask_now(forecaster);
    }
}

static void look_whether_there(struct forecaster *forecaster)
{
    remote_hello(forecaster->worker, "kcast-worker", on_there, begin_call(forecaster));
}

void forecaster_ask(struct forecaster *forecaster, const struct run_state *run_state,
                    uint64_t first, uint64_t last, uint64_t visible, forecaster_callback *callback,
                    void *owner)
{
    forecaster->busy = true;
    forecaster->run_state = run_state;
    forecaster->first = first;
    forecaster->last = last;
    forecaster->visible = visible;
    forecaster->callback = callback;
    forecaster->owner = owner;
    if (!forecaster->worker || forecaster->skip > 0) {
        forecaster->skip -= forecaster->skip > 0;
        uv_timer_start(forecaster->timer, on_nobody_asked, 0, 0);
    } else if (forecaster->said) {
        look_whether_there(forecaster);
    } else {
        ask_now(forecaster);
    }
}

// ---- telling ----

static void finish_telling(struct forecaster *forecaster, bool ok)
{
    forecaster_told *told = forecaster->told;
    forecaster->told = NULL;
    forecaster->busy = false;
    told(forecaster->owner, ok, forecaster->rows);
}

static void on_observed(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct call *call = owner;
    struct forecaster *forecaster = call->forecaster;
    (void)retry_after_ms;
    free(call);
    if (!forecaster) {
        return;
    }
    forecaster->call = NULL;
    if (error) {
        fail(forecaster, error);
        finish_telling(forecaster, false);
        return;
    }
    succeed(forecaster);
    forecaster->rows = ((const struct observed *)reply)->rows;
    tell_more(forecaster);
}

static void on_nobody_told(uv_timer_t *timer)
{
    struct forecaster *forecaster = timer->data;
    uv_stop(timer->loop);
    finish_telling(forecaster, forecaster->tell_next > forecaster->tell_last);
}

// Sends the next message, or ends.
static void tell_more(struct forecaster *forecaster)
{
    const struct run_state *run_state = forecaster->run_state;
    struct observe observe;
    forecast_outcomes(run_state, &forecaster->tell_next, forecaster->tell_last, OBSERVE_MAX,
                      &observe);
    if (observe.outcomes_count == 0) {
        uv_timer_start(forecaster->timer, on_nobody_told, 0, 0);
    } else {
        remote_call(forecaster->worker, OP_OBSERVE, &observe_message, &observe, &observed_message,
                    OBSERVE_MS, on_observed, begin_call(forecaster));
    }
    forecast_outcomes_free(&observe);
}

void forecaster_tell(struct forecaster *forecaster, const struct run_state *run_state,
                     uint64_t after, uint64_t last, forecaster_told *callback, void *owner)
{
    forecaster->busy = true;
    forecaster->told = callback;
    forecaster->owner = owner;
    forecaster->run_state = run_state;
    forecaster->tell_next = after + 1;
    forecaster->tell_last = last;
    if (!forecaster->worker || forecaster->skip > 0) {
        uv_timer_start(forecaster->timer, on_nobody_told, 0, 0);
    } else if (forecaster->said) {
        look_whether_there(forecaster);
    } else {
        tell_more(forecaster);
    }
}
