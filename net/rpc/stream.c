// Design note. A stream is connecting, with TLS shaking hands, then open, then ending: end() closes
// the handle at once, and the close callback, where nothing of libuv's refers to the stream any
// more, tells the owner and frees it. Everything that happens in between finds `ending` and does
// nothing.
//
// What is sent goes to the kernel at once, except while frames are handed out: the answers to all
// frames of one read leave in one write.
//
// Steps of a handshake are done elsewhere (net/tls/handshake.c), and the session is not touched until
// they are. With TLS what arrives goes through the session first, no further than frames are taken:
// while a stream is paused the rest stays encrypted. What was sent in the clear, and the frames
// that were taken, are wiped: tokens travel in them.
#include "net/rpc/stream.h"

#include "common/mem.h"
#include "net/rpc/frames.h"
#include "net/rpc/liveness.h"
#include "net/tls/handshake.h"
#include "net/tls/tls.h"
#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PEER_MAX (INET6_ADDRSTRLEN + 16)

struct stream {
    uv_tcp_t tcp;
    uv_connect_t connect;
    struct stream_config config;
    struct frames frames;
    struct tls_session *tls; // NULL: in the clear
    struct handshake handshake;
    struct liveness *liveness; // NULL before it is connected
    uv_buf_t *gathered;        // to be written together; their memory is ours
    size_t gathered_count;
    size_t gathered_size; // elements allocated
    size_t unsent;        // bytes, gathered or being written
    bool connected;
    bool open;   // connected, and hands are shaken
    bool corked; // gather only
    bool paused; // a frame was not taken
    bool ending;
    bool closed;    // libuv has done with it
    bool silent;    // the owner is not told
    struct err why; // it ends
    char peer[PEER_MAX];
};

struct write {
    uv_write_t request;
    size_t len; // bytes of all
    size_t count;
    uv_buf_t buf[]; // count
};

static void free_buffers(uv_buf_t *buf, size_t count, bool wipe)
{
    for (size_t i = 0; i < count; i++) {
        if (wipe) {
            explicit_bzero(buf[i].base, buf[i].len);
        }
        free(buf[i].base);
    }
}

static void finish(struct stream *stream)
{
    if (!stream->silent) {
        stream->config.on_end(stream->config.owner, &stream->why);
    }
    free_buffers(stream->gathered, stream->gathered_count, stream->tls);
    free(stream->gathered);
    frames_release(&stream->frames);
    tls_session_free(stream->tls);
    free(stream);
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *stream = handle->data;

    stream->closed = true;
    if (!stream->handshake.busy || handshake_cancel(&stream->handshake)) {
        finish(stream);
    } // else when its step has ended
}

static void end(struct stream *stream, enum err_code code, const char *reason)
{
    if (!stream->ending) {
        stream->ending = true;
        (void)err_set(&stream->why, code, "%s", reason);
        liveness_end(stream->liveness);
        uv_close((uv_handle_t *)&stream->tcp, on_closed);
    }
}

static void end_by_uv(struct stream *stream, int code)
{
    end(stream, ERR_UNREACHABLE, code == UV_EOF ? "the other side closed it" : strerror(-code));
}

// --- out

static void on_written(uv_write_t *request, int status)
{
    struct write *write = (struct write *)request;
    struct stream *stream = request->handle->data;

    stream->unsent -= write->len;
    free_buffers(write->buf, write->count, false);
    free(write);
    if (stream->ending) {
        return;
    }
    if (status < 0) {
        end_by_uv(stream, status);
    } else if (stream->config.on_sent && stream->open) {
        stream->config.on_sent(stream->config.owner);
    }
}

// Takes the write.
static void start(struct stream *stream, struct write *write)
{
    int code = uv_write(&write->request, (uv_stream_t *)&stream->tcp, write->buf,
                        (unsigned)write->count, on_written);

    if (code != 0) { // and on_written does not run
        stream->unsent -= write->len;
        free_buffers(write->buf, write->count, false);
        free(write);
        end_by_uv(stream, code);
    }
}

// What the session has to send. plain_len: bytes of frames that are in it.
static void send_encrypted(struct stream *stream, size_t plain_len)
{
    struct write *write;
    char *base;
    size_t len;

    if (!stream->ending && tls_session_take(stream->tls, &base, &len)) {
        write = xcalloc(1, sizeof(*write) + sizeof(*write->buf));
        write->len = plain_len;
        write->count = 1;
        write->buf[0] = uv_buf_init(base, (unsigned)len);
        start(stream, write);
    }
}

static void encrypt(struct stream *stream)
{
    struct err err = ERR_INIT;
    size_t len = 0;
    int rc = 0;

    for (size_t i = 0; i < stream->gathered_count; i++) {
        const uv_buf_t *buf = &stream->gathered[i];

        rc = rc == 0 ? tls_session_write(stream->tls, buf->base, buf->len, &err) : rc;
        len += buf->len;
    }
    free_buffers(stream->gathered, stream->gathered_count, true);
    stream->gathered_count = 0;
    if (rc == 0) {
        send_encrypted(stream, len);
    } else {
        stream->unsent -= len;
        end(stream, err.code, err.text);
    }
}

static void flush(struct stream *stream)
{
    size_t count = stream->gathered_count;

    if (count == 0 || stream->ending) {
        return;
    }
    if (stream->tls) {
        encrypt(stream);
        return;
    }
    struct write *write;
    write = xcalloc(1, sizeof(*write) + count * sizeof(*write->buf));
    write->count = count;
    for (size_t i = 0; i < count; i++) {
        write->buf[i] = stream->gathered[i];
        write->len += write->buf[i].len;
    }
    stream->gathered_count = 0;
    start(stream, write);
}

// base is malloc'd and ours from now on.
static void gather(struct stream *stream, char *base, size_t len)
{
    if (stream->gathered_count == stream->gathered_size) {
        stream->gathered_size = stream->gathered_size ? 2 * stream->gathered_size : 4;
        stream->gathered =
            xrealloc(stream->gathered, stream->gathered_size, sizeof(*stream->gathered));
    }
    stream->gathered[stream->gathered_count++] = uv_buf_init(base, (unsigned)len);
    stream->unsent += len;
    if (!stream->corked) {
        flush(stream);
    }
}

void stream_send(struct stream *stream, struct strbuf *frame_taken)
{
    size_t len = frame_taken->len;

    if (stream_is_open(stream)) {
        gather(stream, strbuf_detach(frame_taken), len);
    } else {
        strbuf_release(frame_taken);
    }
}

size_t stream_unsent(const struct stream *stream)
{
    return stream->unsent;
}

void stream_allow(struct stream *stream, size_t frame_max)
{
    stream->frames.frame_max = frame_max;
}

// --- in

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct stream *stream = handle->data;

    (void)suggested;
    char *base;
    size_t len;
    if (stream->tls) {
        base = tls_session_room(stream->tls, &len);
        *ret = uv_buf_init(base, (unsigned)len);
        return;
    }
    // An empty buffer makes libuv call on_read with UV_ENOBUFS.
    *ret = frames_room(&stream->frames, &base, &len, NULL) == 0 ? uv_buf_init(base, (unsigned)len)
                                                                : uv_buf_init(NULL, 0);
}

// True when there may be more.
static bool hand_out_one(struct stream *stream, const struct frames_view *view)
{
    if (view->item == FRAMES_GREETING) {
        frames_take(&stream->frames, view);
        if (stream->config.on_greeting) {
            stream->config.on_greeting(stream->config.owner);
        }
    } else if (stream->config.on_frame(stream->config.owner, view->data, view->len)) {
        frames_take(&stream->frames, view);
    } else {
        stream->paused = true;
    }
    return !stream->paused && !stream->ending;
}

static void hand_out(struct stream *stream)
{
    bool corked = stream->corked;

    stream->corked = true;
    struct err err = ERR_INIT;
    struct frames_view view;
    int rc;
    do {
        rc = frames_peek(&stream->frames, &view, &err);
    } while (rc == 0 && view.item != FRAMES_MORE && hand_out_one(stream, &view));
    stream->corked = corked;
    if (!corked) {
        flush(stream);
    }
    if (rc != 0) {
        end(stream, err.code, err.text);
    } else if (stream->paused && !stream->ending) {
        (void)uv_read_stop((uv_stream_t *)&stream->tcp);
    }
}

static void open_up(struct stream *stream);
static void decrypt(struct stream *stream);

// The other side is told why, if it still listens.
static void end_by_tls(struct stream *stream, const struct err *why)
{
    uv_buf_t last;
    char *base;
    size_t len;

    if (!stream->ending && tls_session_take(stream->tls, &base, &len)) {
        last = uv_buf_init(base, (unsigned)len);
        (void)uv_try_write((uv_stream_t *)&stream->tcp, &last, 1);
        free(base);
    }
    end(stream, why->code, why->text);
}

static void read_on(struct stream *stream);

static void on_step(struct handshake *handshake)
{
    struct stream *stream =
        (struct stream *)((char *)handshake - offsetof(struct stream, handshake));

    if (stream->closed) {
        finish(stream);
    } else if (stream->ending) {
        return; // on_closed follows
    } else if (handshake->err.code != ERR_NONE) {
        end_by_tls(stream, &handshake->err);
    } else {
        send_encrypted(stream, 0);
        if (handshake->finished && !stream->ending) {
            open_up(stream);
            decrypt(stream); // what came with the last of it
        }
        if (!stream->ending && !stream->paused) {
            read_on(stream);
        }
    }
}

// The session is the step's until it has ended: nothing is read meanwhile.
static void shake_hands(struct stream *stream)
{
    (void)uv_read_stop((uv_stream_t *)&stream->tcp);
    handshake_step(&stream->handshake, stream->tcp.loop, stream->tls, on_step);
}

// Decrypts one piece and hands out what is in it; false when there is no more, or no wish for it.
static bool decrypt_one(struct stream *stream)
{
    struct err err = ERR_INIT;
    char *base;
    size_t room;
    size_t len = 0;
    int rc = frames_room(&stream->frames, &base, &room, &err);

    rc = rc == 0 ? tls_session_read(stream->tls, base, room, &len, &err) : rc;
    if (rc != 0) {
        flush(stream); // answers to what came before
        end_by_tls(stream, &err);
        return false;
    }
    if (len > 0) {
        frames_filled(&stream->frames, len);
        hand_out(stream);
    }
    return len > 0 && !stream->paused && !stream->ending;
}

static void decrypt(struct stream *stream)
{
    if (!stream->ending && !stream->paused) {
        stream->corked = true;
        while (decrypt_one(stream)) {
        }
        stream->corked = false;
        flush(stream);
    }
}

static void on_read(uv_stream_t *handle, ssize_t len, const uv_buf_t *buf)
{
    struct stream *stream = handle->data;

    (void)buf;
    if (len > 0 && stream->tls) {
        tls_session_filled(stream->tls, (size_t)len);
        if (stream->open) {
            decrypt(stream);
        } else {
            shake_hands(stream);
        }
    } else if (len > 0) {
        frames_filled(&stream->frames, (size_t)len);
        hand_out(stream);
    } else if (len < 0) {
        end_by_uv(stream, (int)len);
    }
}

static void read_on(struct stream *stream)
{
    int code = uv_read_start((uv_stream_t *)&stream->tcp, on_room, on_read);

    if (code != 0 && code != UV_EALREADY) {
        end_by_uv(stream, code);
    }
}

void stream_resume(struct stream *stream)
{
    if (stream->paused && !stream->ending) {
        stream->paused = false;
        hand_out(stream);
        if (stream->tls && !stream->paused && !stream->ending) {
            decrypt(stream);
        }
        if (!stream->paused && !stream->ending) {
            read_on(stream);
        }
    }
}

// --- begin and end

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

// Frames may go both ways.
static void open_up(struct stream *stream)
{
    stream->open = true;
    gather(stream, xmemdup(frames_greeting, sizeof(frames_greeting)), sizeof(frames_greeting));
}

static void on_silence(void *owner)
{
    end_by_uv(owner, UV_ETIMEDOUT);
}

static void begin(struct stream *stream, bool calling)
{
    stream->connected = true;
    set_peer(stream);
    (void)uv_tcp_nodelay(&stream->tcp, 1); // else it is slower: no reason to fail
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&stream->tcp, &fd) == 0) {
        stream->liveness = liveness_watch(stream->tcp.loop, fd, on_silence, stream);
    }
    if (stream->tls && calling) { // who was called waits for the other's hand
        shake_hands(stream);
        return;
    }
    if (!stream->tls) {
        open_up(stream);
    }
    if (!stream->ending) {
        read_on(stream);
    }
}

static void on_connected(uv_connect_t *request, int status)
{
    struct stream *stream = request->handle->data;

    if (status == 0 && !stream->ending) {
        begin(stream, true);
    } else {
        end_by_uv(stream, status);
    }
}

static struct stream *create(uv_loop_t *loop, const struct stream_config *config)
{
    struct stream *stream = xcalloc(1, sizeof(*stream));

    stream->config = *config;
    frames_init(&stream->frames, config->frame_max);
    if (config->tls) {
        stream->tls = tls_session_create(config->tls, config->tls_host);
        stream->frames.wipe = true;
    }
    stream->config.tls = NULL; // the session holds it
    stream->config.tls_host = NULL;
    (void)snprintf(stream->peer, sizeof(stream->peer), "?");
    (void)uv_tcp_init(loop, &stream->tcp); // makes no socket yet
    stream->tcp.data = stream;
    return stream;
}

struct stream *stream_connect(uv_loop_t *loop, const struct sockaddr *address,
                              const struct stream_config *config)
{
    struct stream *stream = create(loop, config);
    int code = uv_tcp_connect(&stream->connect, &stream->tcp, address, on_connected);

    if (code != 0) {
        end_by_uv(stream, code);
    }
    return stream;
}

int stream_accept(struct stream **ret, uv_loop_t *loop, int fd_taken,
                  const struct stream_config *config, struct err *err)
{
    struct stream *stream = create(loop, config);
    int rc = uv_tcp_open(&stream->tcp, fd_taken);

    if (rc != 0) {
        close(fd_taken);
        stream_close(stream);
        return err_set_errno(err, ERR_SYSTEM, -rc, "cannot use an accepted connection");
    }
    *ret = stream;
    begin(stream, false);
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

void stream_end(struct stream *stream, enum err_code code, const char *reason)
{
    end(stream, code, reason);
}

void stream_close(struct stream *stream)
{
    if (stream) {
        stream->silent = true;
        end(stream, ERR_STOPPED, "closed");
    }
}
