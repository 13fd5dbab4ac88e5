// Sending. What is sent goes to the kernel at once, except while the stream is corked: while frames
// are delivered to the owner, its answers are gathered and leave in one write. With TLS the
// gathered frames are encrypted together. Frames in the clear are overwritten after encryption,
// because tokens travel in them.
#include "net/rpc/stream_state.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

// A write that the kernel has not taken wholly.
struct write {
    uv_write_t request;
    size_t len; // bytes of frames in it
    size_t count;
    uv_buf_t buf[]; // count elements, whose memory belongs to the write
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
        stream_end_by_uv(stream, status);
    } else if (stream->config.on_sent && stream->open) {
        stream->config.on_sent(stream->config.owner);
    }
}

// Begins a write and takes its memory.
static void start(struct stream *stream, struct write *write)
{
    int code = uv_write(&write->request, (uv_stream_t *)&stream->tcp, write->buf,
                        (unsigned)write->count, on_written);

    if (code != 0) { // on_written does not run then
        stream->unsent -= write->len;
        free_buffers(write->buf, write->count, false);
        free(write);
        stream_end_by_uv(stream, code);
    }
}

void stream_send_tls_output(struct stream *stream, size_t plain_len)
{
    char *base;
    size_t len;

    if (!stream->ending && tls_session_take_output(stream->tls, &base, &len)) {
        struct write *write = xcalloc(1, sizeof(*write) + sizeof(*write->buf));

        write->len = plain_len;
        write->count = 1;
        write->buf[0] = uv_buf_init(base, (unsigned)len);
        start(stream, write);
    }
}

// Encrypts what is gathered and writes it.
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
        stream_send_tls_output(stream, len);
    } else {
        stream->unsent -= len;
        stream_end(stream, err.code, err.text);
    }
}

void stream_flush(struct stream *stream)
{
    size_t count = stream->gathered_count;

    if (count == 0 || stream->ending) {
        return;
    }
    if (stream->tls) {
        encrypt(stream);
        return;
    }
    struct write *write = xcalloc(1, sizeof(*write) + count * sizeof(*write->buf));
    write->count = count;
    for (size_t i = 0; i < count; i++) {
        write->buf[i] = stream->gathered[i];
        write->len += write->buf[i].len;
    }
    stream->gathered_count = 0;
    start(stream, write);
}

void stream_gather(struct stream *stream, char *base, size_t len)
{
    if (stream->gathered_count == stream->gathered_size) {
        stream->gathered_size = stream->gathered_size ? 2 * stream->gathered_size : 4;
        stream->gathered =
            xrealloc(stream->gathered, stream->gathered_size, sizeof(*stream->gathered));
    }
    stream->gathered[stream->gathered_count++] = uv_buf_init(base, (unsigned)len);
    stream->unsent += len;
    if (!stream->corked) {
        stream_flush(stream);
    }
}

void stream_send(struct stream *stream, struct strbuf *frame_taken)
{
    size_t len = frame_taken->len;

    if (stream_is_open(stream)) {
        stream_gather(stream, strbuf_detach(frame_taken), len);
    } else {
        strbuf_release(frame_taken);
    }
}

size_t stream_unsent(const struct stream *stream)
{
    return stream->unsent;
}

void stream_drop_gathered(struct stream *stream)
{
    free_buffers(stream->gathered, stream->gathered_count, stream->tls);
    free(stream->gathered);
}
