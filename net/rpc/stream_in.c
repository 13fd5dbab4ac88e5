// Receiving. Bytes in the clear go straight into the frames' buffer. With TLS they go through the
// session first, and only as far as the owner takes frames: while the stream is paused the rest
// stays encrypted in the session, whose buffer is bounded.
//
// A step of the TLS handshake runs in another thread (net/tls/handshake.c), and the session must
// not be touched until it has ended. So nothing is read during a step.
#include "net/rpc/stream_state.h"

#include "common/mem.h"
#include "net/rpc/old_framing.h"
#include <stdlib.h>

void stream_allow(struct stream *stream, size_t message_max)
{
    stream->frames.message_max = message_max;
}

bool stream_is_working(const struct stream *stream)
{
    return stream->handshake.busy;
}

size_t stream_unread(const struct stream *stream)
{
    return stream->frames.end - stream->frames.start;
}

// Asks the owner before the buffer grows. Pauses the stream when it may not.
static bool may_grow(struct stream *stream)
{
    size_t size = frames_size_wanted(&stream->frames);

    if (size > FRAMES_SIZE_FIRST && size > stream->frames.size && stream->config.on_memory) {
        if (!stream->config.on_memory(stream->config.owner, size)) {
            stream->paused = true;
            return false;
        }
        stream->large = true;
    }
    return true;
}

// Tells the owner when a large buffer was freed.
static void tell_shrunk(struct stream *stream)
{
    if (stream->large && stream->frames.size <= FRAMES_SIZE_FIRST) {
        stream->large = false;
        (void)stream->config.on_memory(stream->config.owner, 0);
    }
}

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
    *ret = may_grow(stream) && frames_room(&stream->frames, &base, &len, NULL) == 0
               ? uv_buf_init(base, (unsigned)len)
               : uv_buf_init(NULL, 0);
}

// Answers a greeting of the framing of before by the same, if the owner has words for such a caller
// and nothing else was sent.
static void greet_old(struct stream *stream)
{
    if (!stream->config.on_old_frame || stream->greeted) {
        stream_end(stream, ERR_VERSION, old_framing_reason);
        return;
    }
    stream->greeted = true;
    stream_gather(stream, xmemdup(old_framing_greeting, sizeof(old_framing_greeting)),
                  sizeof(old_framing_greeting));
}

// Delivers what is at the front to the owner. Returns whether it may be followed by another.
static bool deliver_one(struct stream *stream, const struct frames_view *view)
{
    const struct stream_config *config = &stream->config;
    bool taken = true;

    switch (view->item) {
    case FRAMES_GREETING:
        stream_greet(stream);
        if (config->on_greeting) {
            config->on_greeting(config->owner);
        }
        break;
    case FRAMES_GREETING_OLD:
        greet_old(stream);
        break;
    case FRAMES_FRAME_OLD:
        config->on_old_frame(config->owner, view->data, view->len);
        stream_flush(stream); // the kernel takes an answer as short as this at once
        stream_end(stream, ERR_VERSION, old_framing_reason);
        break;
    case FRAMES_START:
        config->on_start(config->owner, view->data, view->len);
        break;
    default:
        taken = config->on_frame(config->owner, view);
        break;
    }
    if (taken) {
        frames_take(&stream->frames, view);
        tell_shrunk(stream);
    } else {
        stream->paused = true;
    }
    return taken && !stream->ending;
}

// Ends a time in which what is sent was gathered, writes that, and tells the owner.
static void uncork(struct stream *stream)
{
    bool any = stream->gathered_count > 0;

    stream->corked = false;
    stream_flush(stream);
    if (any && stream->config.on_sent && stream_is_open(stream)) {
        stream->config.on_sent(stream->config.owner);
    }
}

// Delivers all whole frames that have arrived.
static void deliver(struct stream *stream)
{
    bool corked = stream->corked;

    stream->corked = true;
    struct err err = ERR_INIT;
    struct frames_view view;
    int rc;
    do {
        rc = frames_peek(&stream->frames, &view, &err);
    } while (rc == 0 && view.item != FRAMES_MORE && deliver_one(stream, &view));
    if (rc != 0) {
        stream_greet(stream); // so that the other side sees what is spoken here
        stream_flush(stream);
    }
    if (!corked) {
        uncork(stream);
    }
    if (rc != 0) {
        stream_end(stream, err.code, err.text);
    } else if (stream->paused && !stream->ending) {
        (void)uv_read_stop((uv_stream_t *)&stream->tcp);
    }
}

static void decrypt(struct stream *stream);

// Ends the stream for an error of TLS. The alert that tells the other side is sent if the kernel
// takes it at once.
static void end_by_tls(struct stream *stream, const struct err *why)
{
    char *base;
    size_t len;

    if (!stream->ending && tls_session_take_output(stream->tls, &base, &len)) {
        uv_buf_t last = uv_buf_init(base, (unsigned)len);

        (void)uv_try_write((uv_stream_t *)&stream->tcp, &last, 1);
        free(base);
    }
    stream_end(stream, why->code, why->text);
}

static void on_step(struct handshake *handshake)
{
    struct stream *stream =
        (struct stream *)((char *)handshake - offsetof(struct stream, handshake));

    if (stream->closed) {
        stream_finish(stream);
    } else if (stream->ending) {
        return; // the handle's close callback finishes it
    } else if (handshake->err.code != ERR_NONE) {
        end_by_tls(stream, &handshake->err);
    } else {
        stream_send_tls_output(stream, 0);
        if (handshake->finished && !stream->ending) {
            stream_open(stream);
            decrypt(stream); // frames may have come with the end of the handshake
        }
        if (!stream->ending && !stream->paused) {
            stream_read_on(stream);
        }
    }
}

void stream_step_handshake(struct stream *stream)
{
    (void)uv_read_stop((uv_stream_t *)&stream->tcp);
    handshake_step(&stream->handshake, stream->tcp.loop, stream->tls, stream->host, on_step);
}

// Decrypts what fits into the frames' buffer and delivers it. Returns whether there may be more and
// the owner still takes frames.
static bool decrypt_one(struct stream *stream)
{
    struct err err = ERR_INIT;
    char *base;
    size_t room;
    size_t len = 0;

    if (!may_grow(stream)) {
        (void)uv_read_stop((uv_stream_t *)&stream->tcp);
        return false;
    }
    int rc = frames_room(&stream->frames, &base, &room, &err);

    rc = rc == 0 ? tls_session_read(stream->tls, base, room, &len, &err) : rc;
    if (rc != 0) {
        stream_flush(stream); // the answers to earlier frames
        end_by_tls(stream, &err);
        return false;
    }
    if (len > 0) {
        frames_filled(&stream->frames, len);
        deliver(stream);
    }
    return len > 0 && !stream->paused && !stream->ending;
}

// Decrypts and delivers all that has arrived.
static void decrypt(struct stream *stream)
{
    if (!stream->ending && !stream->paused) {
        stream->corked = true;
        while (decrypt_one(stream)) {
        }
        uncork(stream);
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
            stream_step_handshake(stream);
        }
    } else if (len > 0) {
        frames_filled(&stream->frames, (size_t)len);
        deliver(stream);
    } else if (len == UV_ENOBUFS && stream->paused) {
        (void)uv_read_stop(handle);
    } else if (len < 0) {
        stream_end_by_uv(stream, (int)len);
    }
}

void stream_read_on(struct stream *stream)
{
    int code = uv_read_start((uv_stream_t *)&stream->tcp, on_room, on_read);

    if (code != 0 && code != UV_EALREADY) {
        stream_end_by_uv(stream, code);
    }
}

void stream_resume(struct stream *stream)
{
    if (stream->paused && !stream->ending) {
        stream->paused = false;
        deliver(stream);
        if (stream->tls && !stream->paused && !stream->ending) {
            decrypt(stream);
        }
        if (!stream->paused && !stream->ending) {
            stream_read_on(stream);
        }
    }
}
