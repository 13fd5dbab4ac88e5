// Design note. A connection's life:
//
//   accepted ─▶ reading ─▶ answering ─▶ lingering ─▶ closed
//
// Answers are made one after the other from an idle callback, for ANSWERS_NS in a turn of the loop
// and as long as less than HTTP_UNSENT_MAX bytes of them wait to be read. So many GETs at once keep
// the loop's other users waiting only shortly, and take little memory.
//
// One timer limits all of it. Reading ends with a whole head or with a head that is refused. The
// answer says "Connection: close". Lingering means that our side is shut and what the caller still
// sends is thrown away until it closes its side. Closing at once would reset the connection, and
// the caller might lose the answer.
#include "net/http/http_server.h"
#include "net/http/http_request.h"
#include "net/rpc/listener.h"
#include "net/url.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#define BODY_MAX ((size_t)16 << 20)  // bytes
#define ANSWERS_NS UINT64_C(2000000) // of making answers in one turn of the loop

struct http_connection {
    struct http_server *server; // NULL once the connection is being closed
    uv_tcp_t tcp;
    uv_timer_t timer;
    uv_write_t write;
    uv_shutdown_t shutdown;
    int handles;          // handles that are not closed yet; freed when there are none
    unsigned status;      // of the request that was read; 0: it has not arrived
    bool waiting;         // for its answer to be made; in server->waiting
    bool answered;        // the answer is being sent or was sent
    bool shut;            // our side is shut
    bool finished;        // the caller's side is shut
    struct strbuf answer; // head and body
    size_t len;           // bytes in head
    char head[HTTP_HEAD_MAX];
    struct http_request request;
    size_t unsent; // bytes of the answer that count in server->unsent
    struct http_connection *prev;
    struct http_connection *next;
    struct http_connection *waiting_prev;
    struct http_connection *waiting_next;
};

struct http_server {
    uv_loop_t *loop;
    uv_idle_t answering;             // runs while an answer can be made
    struct http_connection *waiting; // list of those whose answer is to be made, oldest first
    size_t unsent;                   // bytes of answers that are being sent
    struct http_server_config config;
    struct listener *listener;
    struct http_connection *connections; // list of the open ones
    size_t count;
    char url[URL_HOST_MAX + 32];
};

// --- the end of a connection

static void on_closed(uv_handle_t *handle)
{
    struct http_connection *connection = handle->data;

    if (--connection->handles == 0) {
        strbuf_release(&connection->answer);
        free(connection);
    }
}

static void begin_answering(struct http_server *server);

// The bytes of its answer wait no more.
static void release_answer(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    server->unsent -= connection->unsent;
    connection->unsent = 0;
    if (server->waiting) {
        begin_answering(server);
    }
}

static void close_connection(struct http_connection *connection)
{
    struct http_server *server = connection->server;

    if (!server) {
        return;
    }
    if (connection->waiting) {
        DL_DELETE2(server->waiting, connection, waiting_prev, waiting_next);
    }
    release_answer(connection);
    connection->server = NULL;
    DL_DELETE(server->connections, connection);
    server->count--;
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
    uv_close((uv_handle_t *)&connection->timer, on_closed);
}

static void on_timeout(uv_timer_t *timer)
{
    close_connection(timer->data);
}

// --- answering

static void on_shutdown(uv_shutdown_t *request, int status)
{
    struct http_connection *connection = request->data;

    connection->shut = true;
    if (status < 0 || connection->finished) {
        close_connection(connection);
    }
}

static void on_written(uv_write_t *request, int status)
{
    struct http_connection *connection = request->data;

    if (status < 0 || !connection->server) {
        close_connection(connection);
        return;
    }
    release_answer(connection);
    connection->shutdown.data = connection;
    if (uv_shutdown(&connection->shutdown, (uv_stream_t *)&connection->tcp, on_shutdown) != 0) {
        close_connection(connection);
    }
}

// Returns whether the Host field names loopback, with or without a port.
static bool is_for_us(const char *host)
{
    if (!host[0]) {
        return true; // HTTP/1.0, which no browser sends
    }
    char *text = xasprintf("tcp://%s", host);
    struct url url;
    bool ours = url_parse(&url, text, NULL) == 0 && url_is_loopback(&url);
    free(text);
    if (!ours) {
        text = xasprintf("tcp://%s:80", host);
        ours = url_parse(&url, text, NULL) == 0 && url_is_loopback(&url);
        free(text);
    }
    return ours;
}

static void make_answer(struct http_connection *connection, unsigned status,
                        const struct http_request *request)
{
    const struct http_server_config *config = &connection->server->config;
    struct http_answer answer = {.status = status, .type = "text/plain; charset=utf-8"};
    struct strbuf *out = &connection->answer;

    strbuf_init(&answer.body, BODY_MAX);
    if (status == 200 && !is_for_us(request->host)) {
        answer.status = 421;
    }
    if (answer.status == 200 && !config->on_get(config->owner, request->path, &answer)) {
        answer.status = 404;
    }
    if (answer.status != 200 && answer.body.len == 0) {
        strbuf_addf(&answer.body, "%u %s\n", answer.status, http_status_text(answer.status));
    }
    strbuf_addf(out,
                "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s"
                "Connection: close\r\n\r\n",
                answer.status, http_status_text(answer.status), answer.type, answer.body.len,
                answer.status == 405 ? "Allow: GET\r\n" : "");
    strbuf_add(out, strbuf_text(&answer.body), answer.body.len);
    strbuf_release(&answer.body);
}

static void answer(struct http_connection *connection)
{
    connection->answered = true;
    make_answer(connection, connection->status, &connection->request);
    connection->unsent = connection->answer.len;
    connection->server->unsent += connection->unsent;
    uv_buf_t buffer = uv_buf_init(connection->answer.data, (unsigned)connection->answer.len);
    connection->write.data = connection;
    if (uv_write(&connection->write, (uv_stream_t *)&connection->tcp, &buffer, 1, on_written) !=
        0) {
        close_connection(connection);
    }
}

static void on_answering(uv_idle_t *idle)
{
    struct http_server *server = idle->data;
    uint64_t start_ns = uv_hrtime();

    while (server->waiting && server->unsent < HTTP_UNSENT_MAX &&
           uv_hrtime() - start_ns < ANSWERS_NS) {
        struct http_connection *connection = server->waiting;

        connection->waiting = false;
        DL_DELETE2(server->waiting, connection, waiting_prev, waiting_next);
        answer(connection);
    }
    if (!server->waiting || server->unsent >= HTTP_UNSENT_MAX) {
        (void)uv_idle_stop(idle); // release_answer starts it again
    }
}

static void begin_answering(struct http_server *server)
{
    (void)uv_idle_start(&server->answering, on_answering);
}

// --- reading

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct http_connection *connection = handle->data;

    (void)suggested;
    if (connection->status != 0) {
        connection->len = 0; // what comes after the request is thrown away
    }
    *ret = uv_buf_init(connection->head + connection->len,
                       (unsigned)(sizeof(connection->head) - connection->len));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct http_connection *connection = stream->data;

    (void)buffer;
    if (count < 0) {
        // A caller that shuts its side right after its request still gets the answer.
        connection->finished = true;
        if (count != UV_EOF || connection->status == 0 || connection->shut) {
            close_connection(connection);
        }
        return;
    }
    if (connection->status != 0) {
        return;
    }
    connection->len += (size_t)count;
    connection->status = http_request_read(&connection->request, connection->head, connection->len);
    if (connection->status != 0) {
        struct http_server *server = connection->server;

        connection->waiting = true;
        DL_APPEND2(server->waiting, connection, waiting_prev, waiting_next);
        begin_answering(server);
    }
}

static void on_accept(void *owner, int fd)
{
    struct http_server *server = owner;

    if (server->count >= HTTP_CONNECTIONS_MAX) {
        close_connection(server->connections); // the oldest one
    }
    struct http_connection *connection = xcalloc(1, sizeof(*connection));
    connection->server = server;
    strbuf_init(&connection->answer, BODY_MAX + HTTP_HEAD_MAX);
    (void)uv_tcp_init(server->loop, &connection->tcp);
    (void)uv_timer_init(server->loop, &connection->timer);
    connection->handles = 2;
    connection->tcp.data = connection;
    connection->timer.data = connection;
    DL_APPEND(server->connections, connection);
    server->count++;
    (void)uv_timer_start(&connection->timer, on_timeout, server->config.timeout_ms, 0);
    if (uv_tcp_open(&connection->tcp, fd) != 0) {
        close(fd);
        close_connection(connection);
    } else if (uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) != 0) {
        close_connection(connection);
    }
}

// Nothing is to be done: callers wait in the kernel's queue until there are descriptors again.
static void on_accept_failed(void *owner, const char *reason)
{
    (void)owner;
    (void)reason;
}

// --- the server

static int open_listener(struct http_server *server, const char *address, struct err *err)
{
    struct listener_config config = {
        .on_accept = on_accept, .on_accept_failed = on_accept_failed, .owner = server};
    char *text = xasprintf("tcp://%s", address);
    struct url url = {0};
    int rc = url_parse(&url, text, NULL);

    free(text);
    if (rc != 0) {
        return err_set(err, ERR_INVALID, "%s is no address; use 127.0.0.1:PORT", address);
    }
    if (!url_is_loopback(&url)) {
        return err_set(err, ERR_DENIED,
                       "%s is not on loopback, and everyone could read what is served there; use "
                       "127.0.0.1:PORT",
                       address);
    }
    rc = listener_create(&server->listener, server->loop, &url, address, &config, err);
    if (rc != 0) {
        return rc;
    }
    bool v6 = strchr(url.host, ':');
    (void)snprintf(server->url, sizeof(server->url), "http://%s%s%s:%d", v6 ? "[" : "", url.host,
                   v6 ? "]" : "", listener_port(server->listener));
    return 0;
}

int http_server_create(struct http_server **ret, uv_loop_t *loop,
                       const struct http_server_config *config, struct err *err)
{
    struct http_server *server = xcalloc(1, sizeof(*server));

    server->loop = loop;
    server->config = *config;
    server->config.address = NULL; // borrowed during this call only
    if (config->timeout_ms == 0) {
        server->config.timeout_ms = HTTP_TIMEOUT_MS;
    }
    int rc = open_listener(server, config->address, err);
    if (rc != 0) {
        free(server);
        return rc;
    }
    (void)uv_idle_init(loop, &server->answering);
    server->answering.data = server;
    *ret = server;
    return 0;
}

const char *http_server_url(const struct http_server *server)
{
    return server->url;
}

static void on_server_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void http_server_close(struct http_server *server)
{
    if (!server) {
        return;
    }
    listener_close(server->listener);
    while (server->connections) {
        close_connection(server->connections);
    }
    uv_close((uv_handle_t *)&server->answering, on_server_closed);
}
