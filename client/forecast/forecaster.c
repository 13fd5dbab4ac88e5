// One call to the worker at a time.
//
// client/forecast/worker_link.c knows whether there is a worker and looks for one that is away.
// Until it has been found, questions are answered without forecasts and outcomes stay untold, which
// costs the search no time. The search counts which outcomes were told, so they are told later.
// When there is nobody to call, the callback comes from a zero-length timer, so that callers see
// the same order of events either way.
#include "client/forecast/forecaster_state.h"

#include "client/forecast/forecast_request.h"
#include "common/clock.h"
#include "common/mem.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORECAST_MS 30000 // deadline of a request for forecasts
#define OBSERVE_MS 30000  // deadline of a message of outcomes
#define OBSERVE_MAX 256   // outcomes of one message

static void tell_more(struct forecaster *forecaster);
static void finish_telling(struct forecaster *forecaster, bool ok);

struct forecaster *forecaster_of(const struct forecast_service *service)
{
    return (struct forecaster *)((uintptr_t)service - offsetof(struct forecaster, service));
}

static uint64_t now_ns(void)
{
    return clock_now_ns(&clock_system);
}

static void say(const struct forecaster *forecaster, const char *sentence)
{
    if (forecaster->notice) {
        forecaster->notice(forecaster->notice_owner, sentence);
    }
}

static void fail(struct forecaster *forecaster, const struct err *error)
{
    free(forecaster->reason);
    forecaster->reason = xasprintf("the worker gave none: %.900s", error->text);
    if (!forecaster->said) {
        char *sentence = xasprintf("no forecasts, so everything is measured: %s", error->text);
        say(forecaster, sentence);
        free(sentence);
    }
    forecaster->said = true;
}

// A call failed. The time that was spent waiting counts against the worker only when it ran out: a
// worker whose connection broke may be there again at once.
void forecaster_lose(struct forecaster *forecaster, const struct err *error)
{
    uint64_t waited_ms = (now_ns() - forecaster->called_ns) / NS_PER_MS;
    worker_link_lost(forecaster->link, error->code == ERR_TIMED_OUT ? waited_ms : 0);
    fail(forecaster, error);
}

void forecaster_succeed(struct forecaster *forecaster)
{
    if (forecaster->said) {
        say(forecaster, forecaster->answered ? "the worker answers again" : "the worker answers");
    }
    forecaster->said = false;
    forecaster->answered = true;
    worker_link_answered(forecaster->link);
}

static const struct worker_abilities *abilities(const struct forecaster *forecaster)
{
    return forecaster->link ? worker_link_abilities(forecaster->link) : NULL;
}

bool forecaster_asks_models(const struct forecaster *forecaster)
{
    return forecaster->read && abilities(forecaster) && abilities(forecaster)->reads_sources;
}

const char *forecaster_engine(const struct forecaster *forecaster)
{
    return abilities(forecaster) ? abilities(forecaster)->engine : NULL;
}

// ---- asking ----

static void clear_screened(struct forecaster *forecaster)
{
    for (size_t i = 0; i < forecaster->screened_count; i++) {
        message_clear(&candidate_facts_message, &forecaster->screened[i]);
    }
    free(forecaster->screened);
    free(forecaster->again);
    forecaster->again = NULL;
    forecaster->screened = NULL;
    forecaster->screened_count = 0;
    forecaster->beyond_log2 = NULL;
    forecaster->margins = 0;
}

static void finish(struct forecaster *forecaster, struct forecast_reply *reply, const char *reason)
{
    forecast_service_callback *callback = forecaster->callback;
    forecaster->callback = NULL;
    forecaster->service.busy = false;
    clear_screened(forecaster);
    callback(forecaster->owner, reply, reason);
}

static void on_forecasts(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct forecaster *forecaster = owner;
    (void)retry_after_ms;
    if (forecaster->closing) {
        return;
    }
    if (error) {
        forecaster_lose(forecaster, error);
        finish(forecaster, NULL, forecaster->reason);
    } else {
        forecaster_succeed(forecaster);
        finish(forecaster, reply, NULL);
    }
}

static void on_nobody_asked(uv_timer_t *timer)
{
    struct forecaster *forecaster = timer->data;
    uv_stop(timer->loop); // so that whoever runs the loop looks at the answer
    if (forecaster->ranked) {
        forecaster_rank_nothing(forecaster);
    } else {
        finish(forecaster, NULL, forecaster->reason ? forecaster->reason : "there is no worker");
    }
}

static void on_asked_once(uv_timer_t *timer)
{
    uv_stop(timer->loop);
    finish(timer->data, NULL, "language models are asked about a candidate once");
}

static void on_cannot_screen(uv_timer_t *timer)
{
    uv_stop(timer->loop);
    finish(timer->data, NULL, "the worker's engine does not screen");
}

struct remote *forecaster_begin_call(struct forecaster *forecaster)
{
    forecaster->called_ns = now_ns();
    return worker_link_remote(forecaster->link);
}

// Adds the sources and what is known about the search. A blob that cannot be read leaves its
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
    if (neighbours_add(forecaster->neighbours, run_state, visible, request, &err) != 0) {
        err_clear(&err); // with fewer neighbours, or none, the question is the same but knows less
    }
}

static void release_texts(struct forecast_request *request)
{
    for (size_t i = 0; i < request->candidates_count; i++) {
        bytes_clear(&request->candidates[i].source);
        free(request->candidates[i].nearest);
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
    if (forecaster->again) {
        forecast_questions_again(forecaster->run_state, forecaster->again, forecaster->again_count,
                                 forecaster->visible, &request);
    } else {
        forecast_questions(forecaster->run_state, forecaster->first, forecaster->last,
                           forecaster->visible, &request);
    }
    if (forecaster_asks_models(forecaster)) {
        add_texts(forecaster, forecaster->run_state, forecaster->visible, &request);
    }
    remote_call(forecaster_begin_call(forecaster), OP_FORECAST, &forecast_request_message, &request,
                &forecast_reply_message,
                forecaster_asks_models(forecaster) ? MODELS_MS : FORECAST_MS, on_forecasts,
                forecaster);
    release_texts(&request);
    forecast_questions_free(&request);
}

static void screen_now(struct forecaster *forecaster)
{
    struct forecast_request request;
    forecast_screening(forecaster->run_state, forecaster->screened, forecaster->screened_count,
                       forecaster->visible, &request);
    request.beyond_log2 =
        (double *)(uintptr_t)forecaster->beyond_log2; // the request is not cleared
    request.beyond_log2_count = forecaster->margins;
    remote_call(forecaster_begin_call(forecaster), OP_FORECAST, &forecast_request_message, &request,
                &forecast_reply_message, FORECAST_MS, on_forecasts, forecaster);
}

// Asks what was to be asked, now that the worker has been greeted.
static void ask_greeted(struct forecaster *forecaster)
{
    if (forecaster->ranked) {
        forecaster_rank_now(forecaster);
    } else if (forecaster->again && forecaster_asks_models(forecaster)) {
        uv_timer_start(forecaster->timer, on_asked_once, 0, 0);
    } else if (!forecaster->screened) {
        ask_now(forecaster);
    } else if (abilities(forecaster)->screens) {
        screen_now(forecaster);
    } else {
        uv_timer_start(forecaster->timer, on_cannot_screen, 0, 0);
    }
}

static void on_greeted(void *owner, const struct err *error)
{
    struct forecaster *forecaster = owner;
    bool telling = forecaster->told;
    if (error) {
        fail(forecaster, error);
    }
    if (telling && error) {
        finish_telling(forecaster, false);
    } else if (telling) {
        tell_more(forecaster);
    } else if (error && forecaster->ranked) {
        forecaster_rank_nothing(forecaster);
    } else if (error) {
        finish(forecaster, NULL, forecaster->reason);
    } else {
        ask_greeted(forecaster);
    }
}

static bool is_away(const struct forecaster *forecaster)
{
    return !forecaster->link || !worker_link_remote(forecaster->link);
}

void forecaster_begin(struct forecaster *forecaster, const struct run_state *run_state,
                      uint64_t visible, void *owner)
{
    forecaster->service.busy = true;
    forecaster->run_state = run_state;
    forecaster->visible = visible;
    forecaster->owner = owner;
    if (is_away(forecaster)) {
        uv_timer_start(forecaster->timer, on_nobody_asked, 0, 0);
    } else if (worker_link_is_greeted(forecaster->link)) {
        ask_greeted(forecaster);
    } else {
        worker_link_greet(forecaster->link, on_greeted, forecaster);
    }
}

static void begin_asking(struct forecaster *forecaster, const struct run_state *run_state,
                         uint64_t visible, forecast_service_callback *callback, void *owner)
{
    forecaster->callback = callback;
    forecaster_begin(forecaster, run_state, visible, owner);
}

static void ask(struct forecast_service *service, const struct run_state *run_state, uint64_t first,
                uint64_t last, uint64_t visible, forecast_service_callback *callback, void *owner)
{
    struct forecaster *forecaster = forecaster_of(service);
    forecaster->first = first;
    forecaster->last = last;
    begin_asking(forecaster, run_state, visible, callback, owner);
}

static void ask_again(struct forecast_service *service, const struct run_state *run_state,
                      const uint64_t *candidate, size_t count, uint64_t visible,
                      forecast_service_callback *callback, void *owner)
{
    struct forecaster *forecaster = forecaster_of(service);
    forecaster->again = xmemdup(candidate, count * sizeof(*candidate));
    forecaster->again_count = count;
    begin_asking(forecaster, run_state, visible, callback, owner);
}

static void screen(struct forecast_service *service, const struct run_state *run_state,
                   struct candidate_facts *facts, size_t count, uint64_t visible,
                   const double *beyond_log2, size_t margins, forecast_service_callback *callback,
                   void *owner)
{
    struct forecaster *forecaster = forecaster_of(service);
    forecaster->screened = message_copy_all(&candidate_facts_message, facts, count);
    forecaster->screened_count = count;
    forecaster->beyond_log2 = beyond_log2;
    forecaster->margins = margins;
    begin_asking(forecaster, run_state, visible, callback, owner);
}

static bool screens(const struct forecast_service *service)
{
    const struct worker_abilities *known = abilities(forecaster_of(service));
    return !known || known->screens;
}

// ---- telling ----

static void finish_telling(struct forecaster *forecaster, bool ok)
{
    forecast_service_told *told = forecaster->told;
    forecaster->told = NULL;
    forecaster->service.busy = false;
    told(forecaster->owner, ok, forecaster->rows);
}

static void on_observed(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct forecaster *forecaster = owner;
    (void)retry_after_ms;
    if (forecaster->closing) {
        return;
    }
    if (error) {
        forecaster_lose(forecaster, error);
        finish_telling(forecaster, false);
        return;
    }
    forecaster_succeed(forecaster);
    forecaster->rows = ((const struct observed *)reply)->rows;
    tell_more(forecaster);
}

static void on_nobody_told(uv_timer_t *timer)
{
    struct forecaster *forecaster = timer->data;
    uv_stop(timer->loop);
    finish_telling(forecaster, forecaster->tell_next > forecaster->tell_last);
}

// Sends the next message of outcomes, or reports the end when there are no more.
static void tell_more(struct forecaster *forecaster)
{
    const struct run_state *run_state = forecaster->run_state;
    struct observe observe;
    forecast_outcomes(run_state, &forecaster->tell_next, forecaster->tell_last, OBSERVE_MAX,
                      &observe);
    if (observe.outcomes_count == 0) {
        uv_timer_start(forecaster->timer, on_nobody_told, 0, 0);
    } else {
        remote_call(forecaster_begin_call(forecaster), OP_OBSERVE, &observe_message, &observe,
                    &observed_message, OBSERVE_MS, on_observed, forecaster);
    }
    forecast_outcomes_free(&observe);
}

static void tell(struct forecast_service *service, const struct run_state *run_state,
                 uint64_t after, uint64_t last, forecast_service_told *callback, void *owner)
{
    struct forecaster *forecaster = forecaster_of(service);
    forecaster->service.busy = true;
    forecaster->told = callback;
    forecaster->owner = owner;
    forecaster->run_state = run_state;
    forecaster->tell_next = after + 1;
    forecaster->tell_last = last;
    if (is_away(forecaster)) {
        uv_timer_start(forecaster->timer, on_nobody_told, 0, 0);
    } else if (worker_link_is_greeted(forecaster->link)) {
        tell_more(forecaster);
    } else {
        worker_link_greet(forecaster->link, on_greeted, forecaster);
    }
}

// ---- interface ----

struct forecaster *forecaster_create(struct session *session,
                                     void (*notice)(void *owner, const char *sentence), void *owner)
{
    struct forecaster *forecaster = xcalloc(1, sizeof(*forecaster));
    forecaster->service = (struct forecast_service){.ask = ask,
                                                    .ask_again = ask_again,
                                                    .screen = screen,
                                                    .screens = screens,
                                                    .ranks = forecaster_ranks,
                                                    .rank = forecaster_rank,
                                                    .tell = tell};
    forecaster->notice = notice;
    forecaster->notice_owner = owner;
    forecaster->timer = xcalloc(1, sizeof(*forecaster->timer));
    uv_timer_init(session_loop(session), forecaster->timer);
    forecaster->timer->data = forecaster;
    if (session_options(session)->no_worker) {
        forecaster->service.absent = true;
        forecaster->reason = xstrdup("--no-worker was given");
        return forecaster;
    }
    struct err why = ERR_INIT;
    forecaster->link = worker_link_create(session, &why);
    if (why.code != ERR_NONE) {
        fail(forecaster, &why);
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
    forecaster->closing = true;
    worker_link_free(forecaster->link);
    uv_close((uv_handle_t *)forecaster->timer, free_handle);
    clear_screened(forecaster);
    forecaster_clear_ranked(forecaster);
    neighbours_free(forecaster->neighbours);
    free(forecaster->reason);
    free(forecaster);
}

void forecaster_set_reader(struct forecaster *forecaster, search_text_reader *read, void *owner)
{
    forecaster->read = read;
    forecaster->read_owner = owner;
    neighbours_free(forecaster->neighbours);
    forecaster->neighbours = neighbours_create(read, owner);
}

struct forecast_service *forecaster_service(struct forecaster *forecaster)
{
    return &forecaster->service;
}
