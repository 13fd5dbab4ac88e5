// Design note. While the engine works on a request its exchange is parked, and a waiter stands for
// it until the engine's callback. When the client disconnects or the service closes first, the
// waiter loses its exchange and the reply is thrown away. The engine's work goes on all the same,
// so the waiter counts towards PARKED_MAX until the callback.
#include "worker/worker.h"
#include "common/printable.h"
#include "worker/monitor.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/stats.h"
#include "net/rpc/service.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define EXCHANGES_MAX 64
#define PARKED_MAX 56
#define REQUEST_BYTES_MAX ((size_t)16 << 20)
#define RETRY_MS 50
#define FORECAST_WEIGHT 0.2 // of the latest request in the smoothed time of one

struct worker {
    struct service *service;
    struct worker_monitor *monitor; // NULL: no monitoring
    bool has_tokens;                // there are certificates and tokens to read again
    const struct engine_ops *ops;
    void *engine;
    const struct clock *clock;
    uint64_t started_ns;
    char *state_dir;
    struct waiter *waiters; // list of requests that the engine has not answered yet
    size_t waiter_count;
    double forecast_seconds; // what requests for forecasts took, smoothed; NaN: none was answered
};

struct waiter {
    struct worker *worker;        // NULL: the worker was closed
    struct exchange *exchange;    // NULL: nobody waits for the answer any more
    const struct message *answer; // descriptor of the reply
    const char *what;             // for the log
    uint64_t began_ns;            // when the request came
    struct waiter *prev;
    struct waiter *next;
};

static void on_drop(void *opaque)
{
    struct waiter *waiter = opaque;
    waiter->exchange = NULL;
}

// Parks the exchange. When too many are parked, answers it as busy and returns NULL.
static struct waiter *wait_for_engine(struct worker *worker, struct exchange *exchange,
                                      const char *what, const struct message *answer)
{
    struct waiter *waiter = xcalloc(1, sizeof(*waiter));
    *waiter = (struct waiter){.worker = worker,
                              .exchange = exchange,
                              .answer = answer,
                              .what = what,
                              .began_ns = clock_now_ns(worker->clock)};
    if (worker->waiter_count < PARKED_MAX && exchange_park(exchange, 0, on_drop, waiter)) {
        DL_APPEND(worker->waiters, waiter);
        worker->waiter_count++;
        return waiter;
    }
    struct err err = ERR_INIT;
    err_set(&err, ERR_BUSY, "%d requests are waiting for this worker already", PARKED_MAX);
    exchange_fail_busy(exchange, &err, RETRY_MS);
    free(waiter);
    return NULL;
}

static void on_engine_done(void *opaque, const struct err *error, const void *reply)
{
    struct waiter *waiter = opaque;
    if (error && error->code != ERR_STOPPED) {
        log_event(LOG_WARNING, "request-failed op=%s error=%s text=\"%s\"", waiter->what,
                  err_name(error->code), error->text);
    }
    if (waiter->exchange && error) {
        exchange_fail(waiter->exchange, error);
    } else if (waiter->exchange) {
        exchange_reply(waiter->exchange, waiter->answer, reply);
    }
    if (waiter->worker) {
        DL_DELETE(waiter->worker->waiters, waiter);
        waiter->worker->waiter_count--;
    }
    free(waiter);
}

// Learns how long forecasts take, the time in the engine's queue included.
static void on_forecasts_done(void *opaque, const struct err *error, const void *reply)
{
    const struct waiter *waiter = opaque;
    struct worker *worker = waiter->worker;
    if (worker && !error) {
        double seconds = clock_seconds(clock_now_ns(worker->clock) - waiter->began_ns);
        double before = isnan(worker->forecast_seconds) ? seconds : worker->forecast_seconds;
        worker->forecast_seconds = before + FORECAST_WEIGHT * (seconds - before);
    }
    on_engine_done(opaque, error, reply);
}

// Says that forecasts have stopped to fit what comes true.
static void on_observed(void *opaque, const struct err *error, const void *reply)
{
    const struct observed *observed = reply;
    if (!error && observed->alarms > 0) {
        log_event(
            LOG_WARNING,
            "forecasts-drifted alarms=%llu rows=%llu text=\"forecasts no longer fit what comes "
            "true: the calls before count no more\"",
            (unsigned long long)observed->alarms, (unsigned long long)observed->rows);
    }
    on_engine_done(opaque, error, reply);
}

// Adds the fields that only the service knows. They borrow from the worker.
static void complete_status(void *owner, struct worker_status *status)
{
    const struct worker *worker = owner;
    status->uptime_seconds = clock_seconds(clock_now_ns(worker->clock) - worker->started_ns);
    status->state_dir = worker->state_dir;
    status->requests = service_request_count(worker->service);
}

static void on_status_done(void *opaque, const struct err *error, const void *reply)
{
    struct waiter *waiter = opaque;
    if (error || !waiter->exchange) {
        on_engine_done(opaque, error, reply);
        return;
    }
    struct worker_status status = *(const struct worker_status *)reply; // borrows its insides
    complete_status(waiter->worker, &status);
    on_engine_done(opaque, NULL, &status);
}

static void serve_hello(struct worker *worker, struct exchange *exchange,
                        const struct request *request)
{
    const struct worker_abilities abilities = {
        .engine = (char *)(uintptr_t)worker->ops->name, // only packed
        .reads_sources = worker->ops->reads_sources,
        .screens = worker->ops->screens,
        .proposes = worker->ops->propose,
        .recalls = worker->ops->recall,
        .ranks = worker->ops->rank,
        .forecast_seconds = worker->forecast_seconds,
    };
    // The engine as a feature is for callers that do not know worker_abilities.
    const char *const features[] = {worker->ops->name};
    exchange_hello(exchange, request, "kcast-worker", features, ARRAY_LEN(features), 0, &abilities);
}

// Returns whether the names of a request, of which NULL are absent, can be shown. Otherwise the
// exchange has been answered. They are kept in the worker's state, and in its status and its log.
static bool are_names(struct exchange *exchange, const char *problem, const char *device_class,
                      const char *search)
{
    struct err err = ERR_INIT;

    if (printable_check("the problem's name", problem, &err) == 0 &&
        printable_check("the device class", device_class, &err) == 0 &&
        (!search || printable_check("the name of a search", search, &err) == 0)) {
        return true;
    }
    exchange_fail(exchange, &err);
    return false;
}

static bool are_outcome_names(struct exchange *exchange, const struct observe *body)
{
    struct err err = ERR_INIT;

    for (size_t i = 0; i < body->outcomes_count; i++) {
        const struct outcome *outcome = &body->outcomes[i];

        if ((outcome->key && printable_check("the key of an outcome", outcome->key, &err) != 0) ||
            (outcome->model && printable_check("a model's name", outcome->model, &err) != 0)) {
            exchange_fail(exchange, &err);
            return false;
        }
    }
    return true;
}

// Returns whether the engine can answer. Otherwise the exchange has been answered.
static bool can_forecast(const struct worker *worker, struct exchange *exchange,
                         const struct forecast_request *body)
{
    struct err err = ERR_INIT;
    if (!are_names(exchange, body->problem, body->device_class, body->search)) {
        return false;
    }
    if (body->screening && !worker->ops->screens) {
        err_set(&err, ERR_UNSUPPORTED,
                "engine %s makes no forecasts of candidates that are not compiled; start "
                "kcast-worker with --engine static or both",
                worker->ops->name);
        exchange_fail(exchange, &err);
        return false;
    }
    return true;
}

static void serve_forecast(struct worker *worker, struct exchange *exchange,
                           const struct request *request)
{
    struct forecast_request body;
    if (!exchange_read_body(exchange, request, &forecast_request_message, &body)) {
        return;
    }
    struct waiter *waiter =
        can_forecast(worker, exchange, &body)
            ? wait_for_engine(worker, exchange, "forecast", &forecast_reply_message)
            : NULL;
    if (waiter) {
        // A screening is not of one batch's size: its time says nothing about a batch's.
        engine_done *done = body.screening ? on_engine_done : on_forecasts_done;
        worker->ops->forecast(worker->engine, &body, done, waiter);
    }
    message_clear(&forecast_request_message, &body);
}

static void serve_observe(struct worker *worker, struct exchange *exchange,
                          const struct request *request)
{
    struct observe body;
    if (!exchange_read_body(exchange, request, &observe_message, &body)) {
        return;
    }
    struct waiter *waiter = are_names(exchange, body.problem, body.device_class, NULL) &&
                                    are_outcome_names(exchange, &body)
                                ? wait_for_engine(worker, exchange, "observe", &observed_message)
                                : NULL;
    if (waiter) {
        worker->ops->observe(worker->engine, &body, on_observed, waiter);
    }
    message_clear(&observe_message, &body);
}

static void serve_propose(struct worker *worker, struct exchange *exchange,
                          const struct request *request)
{
    struct err err = ERR_INIT;
    if (!worker->ops->propose) {
        err_set(&err, ERR_UNSUPPORTED,
                "the engine %s writes no candidates; start kcast-worker with --engine llm or both",
                worker->ops->name);
        exchange_fail(exchange, &err);
        return;
    }
    struct propose_request body;
    if (!exchange_read_body(exchange, request, &propose_request_message, &body)) {
        return;
    }
    struct waiter *waiter =
        are_names(exchange, body.problem, body.device_class, body.search)
            ? wait_for_engine(worker, exchange, "propose", &propose_reply_message)
            : NULL;
    if (waiter) {
        worker->ops->propose(worker->engine, &body, on_engine_done, waiter);
    }
    message_clear(&propose_request_message, &body);
}

static void serve_recall(struct worker *worker, struct exchange *exchange,
                         const struct request *request)
{
    struct err err = ERR_INIT;
    if (!worker->ops->recall) {
        err_set(&err, ERR_UNSUPPORTED,
                "the engine %s keeps no parameters of candidates; start kcast-worker with --engine "
                "static or both",
                worker->ops->name);
        exchange_fail(exchange, &err);
        return;
    }
    struct recall_request body;
    if (!exchange_read_body(exchange, request, &recall_request_message, &body)) {
        return;
    }
    struct waiter *waiter = are_names(exchange, body.problem, body.device_class, NULL)
                                ? wait_for_engine(worker, exchange, "recall", &recall_reply_message)
                                : NULL;
    if (waiter) {
        worker->ops->recall(worker->engine, &body, on_engine_done, waiter);
    }
    message_clear(&recall_request_message, &body);
}

static void serve_rank(struct worker *worker, struct exchange *exchange,
                       const struct request *request)
{
    struct err err = ERR_INIT;
    if (!worker->ops->rank) {
        err_set(&err, ERR_UNSUPPORTED,
                "the engine %s ranks no candidates; start kcast-worker with --engine llm or both",
                worker->ops->name);
        exchange_fail(exchange, &err);
        return;
    }
    struct rank_request body;
    if (!exchange_read_body(exchange, request, &rank_request_message, &body)) {
        return;
    }
    struct waiter *waiter = are_names(exchange, body.problem, body.device_class, body.search)
                                ? wait_for_engine(worker, exchange, "rank", &rank_reply_message)
                                : NULL;
    if (waiter) {
        worker->ops->rank(worker->engine, &body, on_engine_done, waiter);
    }
    message_clear(&rank_request_message, &body);
}

static void serve_status(struct worker *worker, struct exchange *exchange)
{
    struct waiter *waiter =
        wait_for_engine(worker, exchange, "worker-status", &worker_status_message);
    if (waiter) {
        worker->ops->status(worker->engine, on_status_done, waiter);
    }
}

static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct worker *worker = owner;
    switch (request->op) {
    case OP_HELLO:
        serve_hello(worker, exchange, request);
        break;
    case OP_FORECAST:
        serve_forecast(worker, exchange, request);
        break;
    case OP_OBSERVE:
        serve_observe(worker, exchange, request);
        break;
    case OP_PROPOSE:
        serve_propose(worker, exchange, request);
        break;
    case OP_RECALL:
        serve_recall(worker, exchange, request);
        break;
    case OP_RANK:
        serve_rank(worker, exchange, request);
        break;
    case OP_WORKER_STATUS:
        serve_status(worker, exchange);
        break;
    default: {
        struct err err = ERR_INIT;
        err_set(&err, ERR_UNSUPPORTED, "kcast-worker has no operation %llu (%s)",
                (unsigned long long)request->op, op_name(request->op));
        exchange_fail(exchange, &err);
    }
    }
}

static void on_refusal(void *owner, const char *peer, const char *reason, uint64_t untold)
{
    (void)owner;
    log_event(LOG_WARNING, "connection-refused peer=%s reason=\"%s\" untold=%llu", peer, reason,
              (unsigned long long)untold);
}

int worker_create(struct worker **ret, const struct worker_config *config, struct err *err)
{
    struct worker *worker = xcalloc(1, sizeof(*worker));
    struct engine_config engine_config = {.loop = config->loop,
                                          .state_dir = config->state_dir,
                                          .llm = config->llm,
                                          .recalibrate_static = config->recalibrate_static,
                                          .threads = config->threads};
    struct service_config service_config = {
        .url = config->url,
        .files = config->files,
        .exchanges_max = EXCHANGES_MAX,
        .parked_max = PARKED_MAX,
        .message_max = REQUEST_BYTES_MAX,
        .epoch = stats_entropy(),
        .on_request = on_request,
        .on_refusal = on_refusal,
        .owner = worker,
    };
    worker->ops = config->ops;
    worker->clock = config->clock;
    worker->has_tokens = config->files.tokens;
    worker->started_ns = clock_now_ns(config->clock);
    worker->state_dir = xstrdup(config->state_dir);
    worker->forecast_seconds = NAN;
    int rc = worker->ops->open(&worker->engine, &engine_config, err);
    if (rc == 0) {
        rc = service_create(&worker->service, config->loop, &service_config, err);
    }
    struct worker_monitor_config monitor_config = {.loop = config->loop,
                                                   .address = config->http,
                                                   .ops = worker->ops,
                                                   .engine = worker->engine,
                                                   .complete = complete_status,
                                                   .owner = worker};
    if (rc == 0 && config->http && config->http[0]) {
        rc = worker_monitor_create(&worker->monitor, &monitor_config, err);
    }
    if (rc < 0) {
        worker_close(worker);
        return rc;
    }
    *ret = worker;
    return 0;
}

const char *worker_http(const struct worker *worker)
{
    return worker->monitor ? worker_monitor_url(worker->monitor) : NULL;
}

const char *worker_url(const struct worker *worker)
{
    return service_url(worker->service);
}

void worker_reload(struct worker *worker)
{
    if (!worker->has_tokens) {
        return;
    }
    struct err err = ERR_INIT;
    if (service_reload(worker->service, &err) == 0) {
        log_event(LOG_NOTICE, "reloaded what=certificates,tokens");
    } else {
        log_event(LOG_ERROR, "reload-failed reason=\"%s\"", err.text);
    }
}

void worker_close(struct worker *worker)
{
    struct waiter *waiter;

    if (!worker) {
        return;
    }
    worker_monitor_close(worker->monitor);
    if (worker->service) {
        service_close(worker->service);
    }
    // The engine may run their callbacks after the worker is freed.
    DL_FOREACH (worker->waiters, waiter) {
        waiter->worker = NULL;
    }
    if (worker->engine) {
        worker->ops->close(worker->engine);
    }
    free(worker->state_dir);
    free(worker);
}
