// Design note. A connection greets; then each of its frames becomes an exchange
// (net/rpc/exchange.c).
//
// Two limits stop the reading from a connection, and in both cases the frame stays in the
// connection's buffer. Nothing is dropped, and TCP slows the sender down. A connection is starved
// when the service has exchanges_max open exchanges, and choked when more than SERVICE_UNSENT_MAX
// bytes of replies to it are unsent because its caller does not read them. Starved connections
// stand in a list and are read on one after the other. That happens from a timer of 0 ms and never
// inside an answer, so a handler is not entered while another one answers.
//
// A caller is identified when it has greeted and, where tokens are asked for, shown a valid one. A
// connection that is not identified within greeting_ms is closed, and it is the first to go when
// there are too many connections.
//
// A connection ends in on_end, which the stream calls from the loop after all other callbacks; its
// exchanges lose it there.
#include "net/rpc/service_state.h"

#include "common/clock.h"
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

// --- connections

// Returns whether the caller has greeted and shown the token that is asked for.
static bool is_identified(const struct connection *connection)
{
    return connection->greeted &&
           (connection->holder.known || !connection->service->identity.tokens);
}

static void on_greeting(void *owner)
{
    ((struct connection *)owner)->greeted = true;
}

static bool on_frame(void *owner, const void *data, size_t len)
{
    struct connection *connection = owner;
    struct service *service = connection->service;

    if (service->closing) {
        return true;
    }
    if (service->exchange_count >= service->config.exchanges_max) {
        connection->starved = true;
        DL_APPEND2(service->starved, connection, starved_prev, starved_next);
        return false;
    }
    if (stream_unsent(connection->stream) > SERVICE_UNSENT_MAX) {
        connection->choked = true;
        return false;
    }
    exchange_serve(exchange_create(service, connection), data, len);
    if (service->identity.tokens && connection->holder.known) {
        stream_allow(connection->stream, service->config.message_max);
    }
    return true;
}

static void on_sent(void *owner)
{
    struct connection *connection = owner;

    if (connection->choked && stream_unsent(connection->stream) <= SERVICE_UNSENT_MAX / 2) {
        connection->choked = false;
        stream_resume(connection->stream);
    }
}

static void remove_connection(struct connection *connection)
{
    struct service *service = connection->service;

    DL_DELETE(service->connections, connection);
    service->connection_count--;
    if (connection->starved) {
        DL_DELETE2(service->starved, connection, starved_prev, starved_next);
    }
    exchanges_leave(service, connection);
    free(connection);
}

static void on_end(void *owner, const struct err *why)
{
    struct connection *connection = owner;

    if (why->code != ERR_UNREACHABLE) { // a caller that closes its connection is not refused
        service_note_refusal(connection->service, stream_peer(connection->stream), why->text);
    }
    remove_connection(connection);
}

static void on_room(uv_timer_t *timer)
{
    struct service *service = timer->data;

    while (!service->closing && service->starved &&
           service->exchange_count < service->config.exchanges_max) {
        struct connection *connection = service->starved;

        DL_DELETE2(service->starved, connection, starved_prev, starved_next);
        connection->starved = false;
        stream_resume(connection->stream);
    }
}

void service_has_room(struct service *service)
{
    if (service->starved && !service->closing && !uv_is_active((uv_handle_t *)&service->room)) {
        (void)uv_timer_start(&service->room, on_room, 0, 0);
    }
}

// --- callers that do not identify themselves

static void on_greeting_due(uv_timer_t *timer)
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
        if (is_identified(connection)) {
            continue;
        }
        if (connection->greet_by_ms <= now_ms) {
            stream_end(connection->stream, ERR_TIMED_OUT, reason); // on_end runs later
        } else if (connection->greet_by_ms < next_ms) {
            next_ms = connection->greet_by_ms;
        }
    }
    if (next_ms != UINT64_MAX) {
        (void)uv_timer_start(timer, on_greeting_due, next_ms - now_ms, 0);
    }
}

// --- accepting

// Makes room for one more connection, if necessary by closing the oldest one that is not
// identified. Returns false when all are identified.
static bool make_room(struct service *service)
{
    struct connection *connection;

    if (service->connection_count < service->config.connections_max) {
        return true;
    }
    DL_FOREACH (service->connections, connection) {
        if (!is_identified(connection)) {
            service_note_refusal(service, stream_peer(connection->stream),
                                 "too many connections, and it has not greeted");
            stream_close(connection->stream);
            remove_connection(connection);
            return true;
        }
    }
    return false;
}

static void on_accept(void *owner, int fd)
{
    struct service *service = owner;
    struct stream_config config = {
        .frame_max = service->identity.tokens ? SERVICE_STRANGER_MAX : service->config.message_max,
        .tls = service->identity.tls,
        .on_greeting = on_greeting,
        .on_frame = on_frame,
        .on_sent = on_sent,
        .on_end = on_end,
    };

    if (!make_room(service)) {
        close(fd); // without a greeting, so the caller tries again later
        service_note_refusal(service, "?", "too many connections");
        return;
    }
    struct connection *connection = xcalloc(1, sizeof(*connection));
    config.owner = connection;
    struct err err = ERR_INIT;
    if (stream_accept(&connection->stream, service->loop, fd, &config, &err) != 0) {
        service_note_refusal(service, "?", err.text);
        free(connection);
        return;
    }
    connection->service = service;
    connection->greet_by_ms = uv_now(service->loop) + service->config.greeting_ms;
    DL_APPEND(service->connections, connection);
    service->connection_count++;
    if (!uv_is_active((uv_handle_t *)&service->greeting)) {
        (void)uv_timer_start(&service->greeting, on_greeting_due, service->config.greeting_ms, 0);
    }
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
    uv_timer_t *timers[] = {&service->greeting, &service->room};

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
            stream_end(connection->stream, ERR_DENIED,
                       "its token was revoked"); // on_end runs later
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
        remove_connection(service->connections);
    }
    exchanges_drop(service);
    uv_close((uv_handle_t *)&service->greeting, on_closed);
    uv_close((uv_handle_t *)&service->room, on_closed);
}
