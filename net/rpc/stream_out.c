// Sending. What is sent goes to the kernel at once, except while the stream is corked: while frames
// are delivered to the owner, its answers are gathered and leave in one write. With TLS the
// gathered frames are encrypted together. Frames in the clear are overwritten after encryption,
// because tokens travel in them.
//
// Memory that the kernel has taken wholly is freed before anything else happens, so that the next
// frame gets it again while the processor's caches have it. Only what the kernel does not take
// waits for libuv, whose callback comes after up to 32 further reads.
#include "net/rpc/stream_state.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

#define ENCRYPTED_MAX ((size_t)64 << 10) // bytes of frames

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

// Writes count buffers, of whose bytes len are of frames, and takes their memory.
static void start(struct stream *stream, uv_buf_t *buf, size_t count, size_t len)
{
    int taken = uv_try_write((uv_stream_t *)&stream->tcp, buf, (unsigned)count);
    size_t offset = taken > 0 ? (size_t)taken : 0; // uv_write meets an error again
    size_t done = 0;

    for (; done < count && buf[done].len <= offset; done++) {
        offset -= buf[done].len;
        free(buf[done].base);
    }
    if (done == count) {
        stream->unsent -= len;
        return;
    }
    struct write *write = xcalloc(1, sizeof(*write) + (count - done) * sizeof(*write->buf));
    write->len = len;
    write->count = count - done;
    memcpy(write->buf, buf + done, write->count * sizeof(*write->buf));
    uv_buf_t first = write->buf[0]; // libuv has a copy of the array, and this is what is freed
    write->buf[0] = uv_buf_init(first.base + offset, (unsigned)(first.len - offset));
    int code = uv_write(&write->request, (uv_stream_t *)&stream->tcp, write->buf,
                        (unsigned)write->count, on_written);
    write->buf[0] = first;
    if (code != 0) { // on_written does not run then
        stream->unsent -= len;
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
        uv_buf_t buf = uv_buf_init(base, (unsigned)len);

        start(stream, &buf, 1, plain_len);
    }
}

// Encrypts what is gathered and writes it, ENCRYPTED_MAX bytes at a time, so that the other side
// decrypts while the rest is encrypted.
static void encrypt(struct stream *stream)
{
    struct err err = ERR_INIT;
    size_t waiting = 0; // bytes of frames that are encrypted and not written
    int rc = 0;

    for (size_t i = 0; i < stream->gathered_count; i++) {
        const uv_buf_t *buf = &stream->gathered[i];

        for (size_t at = 0, len; at < buf->len && rc == 0; at += len) {
            len = buf->len - at < ENCRYPTED_MAX - waiting ? buf->len - at : ENCRYPTED_MAX - waiting;
            rc = tls_session_write(stream->tls, buf->base + at, len, &err);
            waiting += len;
            if (waiting == ENCRYPTED_MAX && rc == 0) {
                stream_send_tls_output(stream, waiting);
                waiting = 0;
            }
        }
    }
    free_buffers(stream->gathered, stream->gathered_count, true);
    stream->gathered_count = 0;
    if (rc == 0) {
        stream_send_tls_output(stream, waiting);
    } else {
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
    size_t len = 0;
    for (size_t i = 0; i < count; i++) {
        len += stream->gathered[i].len;
    }
    stream->gathered_count = 0;
    start(stream, stream->gathered, count, len);
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
