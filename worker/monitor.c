// Design note. The engine answers every question on the loop thread; when it is closed first, the
// answer is ERR_STOPPED. One question at most is open. The monitor therefore lives until its timer
// is closed and no question is open.
#include "worker/monitor.h"
#include "net/http/http_server.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct worker_monitor {
    struct worker_monitor_config config;
    struct http_server *server;
    uv_timer_t timer;
    struct worker_status last; // the engine's last answer
    bool known;                // the engine has answered at least once
    bool asking;               // a question is open
    bool closed;               // worker_monitor_close was called
    bool timer_closed;
    uint64_t heard_ms; // loop time of the last answer; at first, of the start
};

static void free_when_done(struct worker_monitor *monitor)
{
    if (monitor->timer_closed && !monitor->asking) {
        message_clear(&worker_status_message, &monitor->last);
        free(monitor);
    }
}

static void on_status(void *owner, const struct err *error, const void *reply)
{
    struct worker_monitor *monitor = owner;

    monitor->asking = false;
    if (!error && !monitor->closed) {
        message_clear(&worker_status_message, &monitor->last);
        message_copy(&worker_status_message, &monitor->last, reply);
        monitor->known = true;
        monitor->heard_ms = uv_now(monitor->config.loop);
    }
    free_when_done(monitor);
}

static void on_timer(uv_timer_t *timer)
{
    struct worker_monitor *monitor = timer->data;

    if (!monitor->asking) {
        monitor->asking = true;
        monitor->config.ops->status(monitor->config.engine, on_status, monitor);
    }
}

// Adds one metric with one sample; NaN means without a sample.
static void number(struct strbuf *out, const char *name, const char *type, const char *help,
                   double value)
{
    strbuf_addf(out, "# HELP kcast_worker_%s %s\n# TYPE kcast_worker_%s %s\n", name, help, name,
                type);
    if (!isnan(value)) {
        strbuf_addf(out, "kcast_worker_%s %.15g\n", name, value);
    }
}

// Adds one metric with one sample per endpoint. offset is that of the uint64_t in struct
// endpoint_info. The administrator writes the URLs, so only quotes and backslashes need escaping.
static void endpoints(struct strbuf *out, const struct worker_status *status, const char *name,
                      const char *type, const char *help, size_t offset)
{
    strbuf_addf(out, "# HELP kcast_worker_%s %s\n# TYPE kcast_worker_%s %s\n", name, help, name,
                type);
    for (size_t i = 0; i < status->endpoints_count; i++) {
        const struct endpoint_info *endpoint = &status->endpoints[i];
        uint64_t value;

        memcpy(&value, (const char *)endpoint + offset, sizeof(value));
        strbuf_addf(out, "kcast_worker_%s{endpoint=\"", name);
        for (const char *c = endpoint->url; *c != '\0'; c++) {
            strbuf_addf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
        }
        strbuf_addf(out, "\"} %llu\n", (unsigned long long)value);
    }
}

static void write_metrics(struct strbuf *out, const struct worker_status *status)
{
    number(out, "uptime_seconds", "gauge", "Seconds since the start.", status->uptime_seconds);
    number(out, "requests_total", "counter", "Requests.", (double)status->requests);
    number(out, "forecasts_total", "counter", "Candidates that were forecast.",
           (double)status->forecasts);
    number(out, "outcomes", "gauge", "Measurements that the models are learnt from.",
           (double)status->outcomes);
    number(out, "models", "gauge", "Models, one for each problem and device class.",
           (double)status->models_count);
    number(out, "input_tokens_total", "counter", "Tokens sent to language models.",
           (double)status->input_tokens);
    number(out, "output_tokens_total", "counter", "Tokens that language models wrote.",
           (double)status->output_tokens);
    number(out, "cost_total", "counter", "What these tokens cost.", status->cost);
    number(out, "cache_hits_total", "counter", "Answers of language models that were known.",
           (double)status->cache_hits);
    endpoints(out, status, "endpoint_requests_total", "counter", "Requests to an endpoint.",
              offsetof(struct endpoint_info, requests));
    endpoints(out, status, "endpoint_failures_total", "counter", "Requests that failed.",
              offsetof(struct endpoint_info, failures));
    endpoints(out, status, "endpoint_in_flight", "gauge", "Requests under way.",
              offsetof(struct endpoint_info, in_flight));
}

static bool on_get(void *owner, const char *path, struct http_answer *answer)
{
    const struct worker_monitor *monitor = owner;
    struct worker_status status = monitor->last; // borrows what last owns
    uint64_t silent_ms = uv_now(monitor->config.loop) - monitor->heard_ms;

    monitor->config.complete(monitor->config.owner, &status);
    if (strcmp(path, "/metrics") == 0) {
        write_metrics(&answer->body, &status);
        answer->type = "text/plain; version=0.0.4; charset=utf-8";
    } else if (strcmp(path, "/status.json") == 0) {
        message_json(&worker_status_message, &status, &answer->body);
        strbuf_addc(&answer->body, '\n');
        answer->type = "application/json";
    } else if (strcmp(path, "/healthz") == 0 && monitor->known && silent_ms < MONITOR_SILENCE_MS) {
        strbuf_adds(&answer->body, "ok\n");
    } else if (strcmp(path, "/healthz") == 0) {
        answer->status = 503;
        strbuf_addf(&answer->body, "the engine has not answered for %llu s\n",
                    (unsigned long long)(silent_ms / 1000));
    } else {
        return false;
    }
    return true;
}

int worker_monitor_create(struct worker_monitor **ret, const struct worker_monitor_config *config,
                          struct err *err)
{
    struct worker_monitor *monitor = xcalloc(1, sizeof(*monitor));
    struct http_server_config http = {
        .address = config->address, .on_get = on_get, .owner = monitor};
    int rc = http_server_create(&monitor->server, config->loop, &http, err);

    if (rc != 0) {
        free(monitor);
        return err_wrap(err, "--http");
    }
    monitor->config = *config;
    monitor->config.address = NULL; // the caller's
    message_init(&worker_status_message, &monitor->last);
    monitor->heard_ms = uv_now(config->loop);
    (void)uv_timer_init(config->loop, &monitor->timer);
    monitor->timer.data = monitor;
    (void)uv_timer_start(&monitor->timer, on_timer, 0, MONITOR_ASK_MS);
    *ret = monitor;
    return 0;
}

const char *worker_monitor_url(const struct worker_monitor *monitor)
{
    return http_server_url(monitor->server);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct worker_monitor *monitor = handle->data;

    monitor->timer_closed = true;
    free_when_done(monitor);
}

void worker_monitor_close(struct worker_monitor *monitor)
{
    if (monitor) {
        monitor->closed = true;
        http_server_close(monitor->server);
        uv_close((uv_handle_t *)&monitor->timer, on_timer_closed);
    }
}
