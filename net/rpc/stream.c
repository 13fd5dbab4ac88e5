// Design note. A stream is connecting, then, with TLS, in its handshake, then open, then ending.
// This file makes and ends it; net/rpc/stream_in.c receives and net/rpc/stream_out.c sends.
//
// stream_end sets `ending` and closes the handle at once. Everything that happens after that finds
// `ending` and does nothing. The close callback runs when nothing of libuv refers to the stream any
// more; it tells the owner and frees the stream. Only a handshake step that is running in another
// thread delays that until the step has ended.
//
// Frames in the clear are overwritten after they were taken or encrypted, because tokens travel in
// them.
//
// A caller greets as soon as it can. A server waits for the caller's greeting, since one of the
// framing of before is answered in that framing; but no longer than until liveness looks at the
// connection for the first time, for those who read before they write.
#include "net/rpc/stream_state.h"

#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// --- the end

void stream_finish(struct stream *stream)
{
    if (!stream->end_untold) {
        stream->config.on_end(stream->config.owner, &stream->why);
    }
    stream_drop_gathered(stream);
    frames_release(&stream->frames);
    tls_session_free(stream->tls);
    free(stream);
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;

    stream->closed = true;
    if (!stream->handshake.busy || handshake_cancel(&stream->handshake)) {
        stream_finish(stream);
    } // otherwise the end of the handshake step finishes it
}

void stream_end(struct stream *stream, enum err_code code, const char *reason)
{
    if (!stream->ending) {
        stream->ending = true;
        (void)err_set(&stream->why, code, "%s", reason);
        liveness_end(stream->liveness);
        uv_close((uv_handle_t *)&stream->tcp, on_closed);
    }
}

void stream_end_by_uv(struct stream *stream, int code)
{
    stream_end(stream, ERR_UNREACHABLE,
               code == UV_EOF ? "the other side closed it" : strerror(-code));
}

void stream_close(struct stream *stream)
{
    if (stream) {
        stream->end_untold = true;
        stream_end(stream, ERR_STOPPED, "closed");
    }
}

// --- the beginning

// Sets the text of the other side's address.
static void set_peer(struct stream *stream)
{
    struct sockaddr_storage address = {0};
    int len = sizeof(address);

    (void)snprintf(stream->peer, sizeof(stream->peer), "?");
    if (uv_tcp_getpeername(&stream->tcp, (struct sockaddr *)&address, &len) != 0) {
        return;
    }
    char host[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address;

        (void)uv_ip4_name(in, host, sizeof(host));
        (void)snprintf(stream->peer, sizeof(stream->peer), "%s:%u", host, ntohs(in->sin_port));
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address;

        (void)uv_ip6_name(in6, host, sizeof(host));
        (void)snprintf(stream->peer, sizeof(stream->peer), "[%s]:%u", host, ntohs(in6->sin6_port));
    }
}

size_t stream_host_len(const struct stream *stream)
{
    const char *port = strrchr(stream->peer, ':');

    return port ? (size_t)(port - stream->peer) : strlen(stream->peer);
}

// The 64-bit FNV-1a hash of the host.
static uint64_t number_host(const struct stream *stream)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < stream_host_len(stream); i++) {
        hash = (hash ^ (unsigned char)stream->peer[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

void stream_greet(struct stream *stream)
{
    if (!stream->greeted) {
        stream->greeted = true;
        stream_gather(stream, xmemdup(frames_greeting(stream->side), FRAMES_GREETING_LEN),
                      FRAMES_GREETING_LEN);
    }
}

void stream_open(struct stream *stream)
{
    stream->open = true;
    if (stream->side == FRAMES_CALLER) {
        stream_greet(stream);
    }
}

static void on_look(void *owner)
{
    struct stream *stream = owner;

    if (stream_is_open(stream)) {
        stream_greet(stream);
    }
}

static void on_dead(void *owner)
{
    stream_end_by_uv(owner, UV_ETIMEDOUT);
}

// Goes on when the socket is connected.
static void begin(struct stream *stream)
{
    stream->connected = true;
    set_peer(stream);
    stream->host = number_host(stream);
    (void)uv_tcp_nodelay(&stream->tcp, 1); // a failure only makes it slower
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&stream->tcp, &fd) == 0) {
        stream->liveness = liveness_watch(stream->tcp.loop, fd, on_look, on_dead, stream);
    }
    if (stream->tls &&
        stream->side == FRAMES_CALLER) { // the server waits for the caller's first message
        stream_step_handshake(stream);
        return;
    }
    if (!stream->tls) {
        stream_open(stream);
    }
    if (!stream->ending) {
        stream_read_on(stream);
    }
}

static void on_connected(uv_connect_t *request, int status)
{
    struct stream *stream = request->handle->data;

    if (status == 0 && !stream->ending) {
        begin(stream);
    } else {
        stream_end_by_uv(stream, status);
    }
}

static struct stream *create(uv_loop_t *loop, enum frames_side side,
                             const struct stream_config *config)
{
    struct stream *stream = xcalloc(1, sizeof(*stream));

    stream->config = *config;
    stream->side = side;
    frames_init(&stream->frames, side == FRAMES_CALLER ? FRAMES_SERVER : FRAMES_CALLER,
                config->message_max);
    stream->frames.start_max = config->start_max;
    if (config->tls) {
        stream->tls = tls_session_create(config->tls, config->tls_host);
        stream->frames.wipe = true;
    }
    stream->config.tls = NULL; // held by the session
    stream->config.tls_host = NULL;
    (void)snprintf(stream->peer, sizeof(stream->peer), "?");
    (void)uv_tcp_init(loop, &stream->tcp); // makes no socket yet
    stream->tcp.data = stream;
    return stream;
}

struct stream *stream_connect(uv_loop_t *loop, const struct sockaddr *address,
                              const struct stream_config *config)
{
    struct stream *stream = create(loop, FRAMES_CALLER, config);
    int code = uv_tcp_connect(&stream->connect, &stream->tcp, address, on_connected);

    if (code != 0) {
        stream_end_by_uv(stream, code);
    }
    return stream;
}

int stream_accept(struct stream **ret, uv_loop_t *loop, int fd_taken,
                  const struct stream_config *config, struct err *err)
{
    struct stream *stream = create(loop, FRAMES_SERVER, config);
    int rc = uv_tcp_open(&stream->tcp, fd_taken);

    if (rc != 0) {
        close(fd_taken);
        stream_close(stream);
        return err_set_errno(err, ERR_SYSTEM, -rc, "cannot use an accepted connection");
    }
    *ret = stream;
    begin(stream);
    return 0;
}

bool stream_is_open(const struct stream *stream)
{
    return stream->open && !stream->ending;
}

bool stream_was_connected(const struct stream *stream)
{
    return stream->connected;
}

const char *stream_peer(const struct stream *stream)
{
    return stream->peer;
}
