#include "tests/support/endpoint_stub.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUEST_MAX ((size_t)16 << 20)

struct stub {
    uv_tcp_t server;
    uv_loop_t *loop;
    stub_answer *answer;
    void *owner;
    char url[64];
    size_t requests, connections;
    struct peer *peers;
};

struct peer {
    struct stub *stub;
    struct peer *next, **before;
    uv_tcp_t tcp;
    uv_timer_t timer;
    unsigned handles;
    struct strbuf in, out;
    size_t sent; // of out
    struct stub_reply reply;
    bool closing;
};

static void on_closed(uv_handle_t *handle)
{
    struct peer *peer = handle->data;

    if (--peer->handles > 0) {
        return;
    }
    strbuf_release(&peer->in);
    strbuf_release(&peer->out);
    free(peer);
}

static void close_peer(struct peer *peer)
{
    if (peer->closing) {
        return;
    }
    peer->closing = true;
    *peer->before = peer->next;
    if (peer->next) {
        peer->next->before = peer->before;
    }
    if (peer->reply.reset) {
        struct linger linger = {.l_onoff = 1};
        uv_os_fd_t fd;

        if (uv_fileno((uv_handle_t *)&peer->tcp, &fd) == 0) {
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        }
    }
    uv_close((uv_handle_t *)&peer->tcp, on_closed);
    uv_close((uv_handle_t *)&peer->timer, on_closed);
}

struct writing {
    uv_write_t write;
    struct peer *peer;
    char *data;
};

static void go_on(struct peer *peer);

static void on_written(uv_write_t *write, int status)
{
    struct writing *writing = write->data;
    struct peer *peer = writing->peer;

    free(writing->data);
    free(writing);
    if (status != 0) {
        close_peer(peer);
    } else if (!peer->closing) {
        go_on(peer);
    }
}

static void send_bytes(struct peer *peer, size_t len)
{
    struct writing *writing = xcalloc(1, sizeof(*writing));

    writing->peer = peer;
    writing->write.data = writing;
    writing->data = xmalloc(len + 1);
    memcpy(writing->data, peer->out.data + peer->sent, len);
    peer->sent += len;
    uv_buf_t buf = uv_buf_init(writing->data, (unsigned)len);
    (void)uv_write(&writing->write, (uv_stream_t *)&peer->tcp, &buf, 1, on_written);
}

static void on_drip(uv_timer_t *timer)
{
    struct peer *peer = timer->data;

    send_bytes(peer, 1);
}

static void take_requests(struct peer *peer);

static void go_on(struct peer *peer)
{
    size_t left = peer->out.len - peer->sent;

    if (left == 0 && peer->reply.endless) {
        peer->sent = 0;
        strbuf_reset(&peer->out);
        strbuf_adds(&peer->out, "1000\r\n");
        for (size_t i = 0; i < 0x1000; i++) {
            strbuf_adds(&peer->out, "x");
        }
        strbuf_adds(&peer->out, "\r\n");
        left = peer->out.len;
    }
    if (left == 0) {
        if (peer->reply.cut) {
            close_peer(peer);
            return;
        }
        strbuf_reset(&peer->out);
        peer->sent = 0;
        take_requests(peer); // another one may have come meanwhile
    } else if (peer->reply.drip_ms > 0) {
        (void)uv_timer_start(&peer->timer, on_drip, peer->reply.drip_ms, 0);
    } else {
        send_bytes(peer, left);
    }
}

static void on_delay(uv_timer_t *timer)
{
    struct peer *peer = timer->data;

    if (peer->reply.reset) {
        close_peer(peer);
    } else if (!peer->reply.silent) {
        go_on(peer);
    }
}

static void write_reply(struct peer *peer)
{
    const struct stub_reply *reply = &peer->reply;
    size_t len = reply->body ? strlen(reply->body) : 0;

    if (reply->raw) {
        strbuf_add(&peer->out, reply->raw, reply->raw_len);
        return;
    }
    strbuf_addf(&peer->out, "HTTP/1.1 %d X\r\nContent-Type: application/json\r\n%s", reply->status,
                reply->headers ? reply->headers : "");
    if (reply->endless) {
        strbuf_adds(&peer->out, "Transfer-Encoding: chunked\r\n\r\n");
        return;
    }
    strbuf_addf(&peer->out, "Content-Length: %zu\r\n\r\n", len + (reply->cut ? 100 : 0));
    strbuf_adds(&peer->out, reply->body ? reply->body : "");
}

// Answers the first whole request of what has come; one at a time.
static void take_requests(struct peer *peer)
{
    char *end = peer->in.len > 0 ? strstr(strbuf_text(&peer->in), "\r\n\r\n") : NULL;
    struct stub_request request = {.number = peer->stub->requests};
    char *head, *length, *body;
    size_t size = 0, all;

    if (!end || peer->out.len > 0) {
        return;
    }
    head = xstrndup(peer->in.data, (size_t)(end - peer->in.data));
    length = strcasestr(head, "\r\ncontent-length:");
    if (length) {
        size = (size_t)strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
    }
    all = (size_t)(end - peer->in.data) + 4 + size;
    if (peer->in.len >= all) {
        body = xstrndup(end + 4, size);
        request.head = head;
        request.body = body;
        peer->stub->requests++;
        peer->reply = (struct stub_reply){.status = 0};
        peer->stub->answer(peer->stub->owner, &request, &peer->reply);
        struct strbuf rest = STRBUF_INIT;
        strbuf_add(&rest, peer->in.data + all, peer->in.len - all);
        strbuf_release(&peer->in);
        peer->in = rest;
        write_reply(peer);
        (void)uv_timer_start(&peer->timer, on_delay, peer->reply.delay_ms, 0);
        free(body);
    }
    free(head);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)handle;
    *buf = uv_buf_init(xmalloc(size), (unsigned)size);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct peer *peer = stream->data;

    if (count > 0) {
        strbuf_add(&peer->in, buf->base, (size_t)count);
        take_requests(peer);
    }
    free(buf->base);
    if (count < 0) {
        close_peer(peer);
    }
}

static void on_connection(uv_stream_t *server, int status)
{
    struct stub *stub = server->data;
    struct peer *peer = xcalloc(1, sizeof(*peer));

    peer->stub = stub;
    stub->connections++;
    strbuf_init(&peer->in, REQUEST_MAX);
    peer->out = (struct strbuf)STRBUF_INIT;
    (void)uv_tcp_init(stub->loop, &peer->tcp);
    (void)uv_timer_init(stub->loop, &peer->timer);
    peer->tcp.data = peer->timer.data = peer;
    peer->handles = 2;
    peer->next = stub->peers;
    peer->before = &stub->peers;
    if (peer->next) {
        peer->next->before = &peer->next;
    }
    stub->peers = peer;
    if (status != 0 || uv_accept(server, (uv_stream_t *)&peer->tcp) != 0 ||
        uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read) != 0) {
        close_peer(peer);
    }
}

struct stub *stub_start(uv_loop_t *loop, stub_answer *answer, void *owner)
{
    struct stub *stub = xcalloc(1, sizeof(*stub));
    struct sockaddr_in address;
    int len = sizeof(address);

    stub->loop = loop;
    stub->answer = answer;
    stub->owner = owner;
    (void)uv_ip4_addr("127.0.0.1", 0, &address);
    (void)uv_tcp_init(loop, &stub->server);
    stub->server.data = stub;
    if (uv_tcp_bind(&stub->server, (struct sockaddr *)&address, 0) != 0 ||
        uv_listen((uv_stream_t *)&stub->server, 1024, on_connection) != 0 ||
        uv_tcp_getsockname(&stub->server, (struct sockaddr *)&address, &len) != 0) {
        fprintf(stderr, "test support: the stub cannot listen\n");
        abort();
    }
    (void)snprintf(stub->url, sizeof(stub->url), "http://127.0.0.1:%d/v1", ntohs(address.sin_port));
    return stub;
}

const char *stub_url(const struct stub *stub)
{
    return stub->url;
}

size_t stub_requests(const struct stub *stub)
{
    return stub->requests;
}

size_t stub_connections(const struct stub *stub)
{
    return stub->connections;
}

static void on_server_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void stub_stop(struct stub *stub)
{
    while (stub->peers) {
        close_peer(stub->peers);
    }
    uv_close((uv_handle_t *)&stub->server, on_server_closed);
}
