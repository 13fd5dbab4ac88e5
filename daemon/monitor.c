#include "daemon/monitor.h"
#include "daemon/metrics.h"
#include "daemon/status.h"
#include "net/rpc/service.h"
#include "proto/status_json.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct monitor {
    struct http_server *server;
    const struct daemon_parts *parts;
    bool stopping; // monitor_stopping was called
};

static void serve_health(const struct monitor *monitor, struct http_answer *answer)
{
    char illness[STATUS_ILLNESS_MAX];

    if (monitor->stopping) {
        answer->status = 503;
        strbuf_adds(&answer->body, "stopping\n");
    } else if (!status_is_well(monitor->parts, illness)) {
        answer->status = 503;
        strbuf_addf(&answer->body, "%s\n", illness);
    } else {
        strbuf_adds(&answer->body, "ok\n");
    }
}

static void serve_status(const struct monitor *monitor, struct http_answer *answer)
{
    // A caller on loopback may see everything, as on tcp://.
    static const struct caller everybody = {.tenant = TENANT_LOCAL, .role = CALLER_ADMIN};
    struct status status;

    status_fill(&status, monitor->parts, &everybody, true);
    json_t *json =
        status_json(&status, monitor->parts->service ? service_url(monitor->parts->service) : NULL);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(json);
    strbuf_adds(&answer->body, text ? text : "{}");
    strbuf_addc(&answer->body, '\n');
    free(text);
    message_clear(&status_message, &status);
    answer->type = "application/json";
}

static bool on_get(void *owner, const char *path, struct http_answer *answer)
{
    const struct monitor *monitor = owner;

    if (strcmp(path, "/metrics") == 0) {
        metrics_write(&answer->body, monitor->parts);
        answer->type = "text/plain; version=0.0.4; charset=utf-8";
    } else if (strcmp(path, "/healthz") == 0) {
        serve_health(monitor, answer);
    } else if (strcmp(path, "/status.json") == 0) {
        serve_status(monitor, answer);
    } else if (strcmp(path, "/") == 0) {
        strbuf_adds(&answer->body, "kcastd: /metrics /healthz /status.json\n");
    } else {
        return false;
    }
    return true;
}

int monitor_create(struct monitor **ret, uv_loop_t *loop, const char *address,
                   const struct daemon_parts *parts, struct err *err)
{
    struct monitor *monitor = xcalloc(1, sizeof(*monitor));
    struct http_server_config config = {.address = address, .on_get = on_get, .owner = monitor};
    int rc = http_server_create(&monitor->server, loop, &config, err);

    if (rc != 0) {
        free(monitor);
        return err_wrap(err, "--http");
    }
    monitor->parts = parts;
    *ret = monitor;
    return 0;
}

const char *monitor_url(const struct monitor *monitor)
{
    return http_server_url(monitor->server);
}

void monitor_stopping(struct monitor *monitor)
{
    if (monitor) {
        monitor->stopping = true;
    }
}

void monitor_close(struct monitor *monitor)
{
    if (monitor) {
        http_server_close(monitor->server);
        free(monitor);
    }
}
