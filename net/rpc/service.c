// Design note. A connection greets; then each of its frames becomes an exchange
// (net/rpc/exchange.c), at once or in its turn (net/rpc/serving.c). A frame whose turn has not come
// stays in the connection's buffer. Nothing is dropped, and TCP slows the sender down.
//
// A caller is identified when it has greeted and, where tokens are asked for, shown a valid one. A
// connection that is not identified within greeting_ms is closed. net/rpc/connection.c has how many
// connections there may be and which one goes when there are too many.
//
// A connection ends in on_end, which the stream calls from the loop after all other callbacks; its
// exchanges lose it there.
#include "net/rpc/service_state.h"

#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utlist.h>

void service_note_refusal(struct service *service, const char *peer, const char *reason)
{
    service->refusals++;
    uint64_t untold;
    if (service->config.on_refusal && !service->closing &&
        log_limit_passes(&service->refusal_limit, uv_hrtime(), &untold)) {
        service->config.on_refusal(service->config.owner, peer, reason, untold);
    }
}

// --- callers that do not identify themselves

void service_on_greeting_due(uv_timer_t *timer)
{
    struct service *service = timer->data;
    uint64_t now_ms = uv_now(service->loop);
    uint64_t next_ms = UINT64_MAX;
    struct connection *connection;
    char reason[64];

    (void)snprintf(reason, sizeof(reason), "no greeting%s within %llu ms",
                   service->identity.tokens ? " and no valid token" : "",
                   (unsigned long long)service->config.greeting_ms);
    DL_FOREACH (service->connections, connection) {
        if (connection->ended || connection_is_identified(connection)) {
            continue;
        }
        if (connection->greet_by_ms <= now_ms) {
            connection_end(connection, ERR_TIMED_OUT, reason);
        } else if (connection->greet_by_ms < next_ms) {
            next_ms = connection->greet_by_ms;
        }
    }
    if (next_ms != UINT64_MAX) {
        (void)uv_timer_start(timer, service_on_greeting_due, next_ms - now_ms, 0);
    }
}

// --- listening

static void on_accept(void *owner, int fd)
{
    connection_accept(owner, fd);
}

static void on_accept_failed(void *owner, const char *reason)
{
    service_note_refusal(owner, "?", reason);
}

static int open_listener(struct service *service, struct err *err)
{
    const char *text = service->config.url;
    struct listener_config config = {
        .on_accept = on_accept, .on_accept_failed = on_accept_failed, .owner = service};
    struct url *url = &service->address;
    int rc = url_parse(url, text, err);

    rc = rc == 0 ? identity_load(&service->identity, &service->config.files, url, text, err) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = listener_create(&service->listener, service->loop, url, text, &config, err);
    if (rc != 0) {
        return rc;
    }
    bool v6 = strchr(url->host, ':');
    (void)snprintf(service->url, sizeof(service->url), "%s://%s%s%s:%d", url->tls ? "tls" : "tcp",
                   v6 ? "[" : "", url->host, v6 ? "]" : "", listener_port(service->listener));
    return 0;
}

// --- the service

int service_create(struct service **ret, uv_loop_t *loop, const struct service_config *config,
                   struct err *err)
{
    struct service *service = xcalloc(1, sizeof(*service));
    uv_timer_t *timers[] = {&service->greeting, &service->stalled};

    service->loop = loop;
    service->config = *config;
    if (config->connections_max == 0) {
        service->config.connections_max = SERVICE_CONNECTIONS_MAX;
    }
    if (config->greeting_ms == 0) {
        service->config.greeting_ms = SERVICE_GREETING_MS;
    }
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        (void)uv_timer_init(loop, timers[i]);
        timers[i]->data = service;
        service->handles++;
    }
    (void)uv_idle_init(loop, &service->serving);
    service->serving.data = service;
    service->handles++;
    turns_init(&service->turns);
    int rc = open_listener(service, err);
    service->config.url = NULL; // borrowed during this call only
    if (rc != 0) {
        service_close(service);
        return rc;
    }
    *ret = service;
    return 0;
}

const char *service_url(const struct service *service)
{
    return service->url;
}

uint64_t service_request_count(const struct service *service)
{
    return service->requests;
}

uint64_t service_refusal_count(const struct service *service)
{
    return service->refusals;
}

int service_reload(struct service *service, struct err *err)
{
    struct identity identity;
    struct connection *connection;
    int rc = identity_load(&identity, &service->config.files, &service->address, service->url, err);

    if (rc != 0) {
        return rc;
    }
    identity_release(&service->identity);
    service->identity = identity;
    DL_FOREACH (service->connections, connection) {
        if (!identity_token_is_listed(&service->identity, &connection->holder)) {
            connection_end(connection, ERR_DENIED, "its token was revoked");
        }
    }
    return 0;
}

void service_raise_file_limit(void)
{
    const rlim_t enough = 4 * SERVICE_CONNECTIONS_MAX;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < enough) {
        limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : enough;
        (void)setrlimit(RLIMIT_NOFILE, &limit); // a soft limit below the hard one cannot fail
    }
}

uint64_t service_failure_count(const struct service *service, enum err_code code)
{
    return service->failures[err_index(code)];
}

static void on_closed(uv_handle_t *handle)
{
    struct service *service = handle->data;

    if (--service->handles == 0) {
        identity_release(&service->identity);
        turns_release(&service->turns);
        free(service);
    }
}

void service_close(struct service *service)
{
    if (!service || service->closing) {
        return;
    }
    service->closing = true;
    listener_close(service->listener);
    while (service->connections) {
        stream_close(service->connections->stream);
        connection_free(service->connections);
    }
    exchanges_drop(service);
    uv_close((uv_handle_t *)&service->greeting, on_closed);
    uv_close((uv_handle_t *)&service->stalled, on_closed);
    uv_close((uv_handle_t *)&service->serving, on_closed);
}
