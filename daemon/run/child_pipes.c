// The three pipes of a child: its stdin is written, its stdout goes to the owner, and the last
// bytes of its stderr are kept for the reason of its end.
#include "daemon/run/child_inside.h"
#include <string.h>

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct child *child = handle->data;

    (void)suggested;
    *buf = uv_buf_init(child->children->chunk, CHILD_CHUNK);
}

static void on_output(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct child *child = stream->data;

    if (count > 0 && child->on_end) {
        child->on_output(child->owner, buf->base, (size_t)count);
    }
    // The output of a child that has been killed means nothing, and may have no end.
    if (count < 0 || child->state == CHILD_KILLED) {
        child->output_ended = true;
        (void)uv_read_stop(stream);
        child_maybe_finish(child);
    }
}

static void on_errors(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct child *child = stream->data;

    if (count < 0) {
        child->errors_ended = true;
        (void)uv_read_stop(stream);
        child_maybe_finish(child);
        return;
    }
    tail_add(&child->tail, buf->base, (size_t)count);
}

// A failed write is not looked at: a child that has not read its plan answers wrongly or not at
// all.
static void on_written(uv_write_t *write, int status)
{
    struct child *child = write->data;

    (void)status;
    child->writing = false;
    bytes_clear(&child->body);
    if (child->last_write && !child->closing) {
        child_close_handle((uv_handle_t *)&child->input);
    }
}

void child_write(struct child *child, const void *head, size_t head_len, struct bytes *body_taken,
                 bool last)
{
    bytes_clear(&child->body);
    child->body = *body_taken;
    *body_taken = (struct bytes){0};
    child->last_write = last;
    memcpy(child->head, head, head_len);
    uv_buf_t buf[2];
    buf[0] = uv_buf_init(child->head, (unsigned)head_len);
    buf[1] = uv_buf_init((char *)child->body.data, (unsigned)child->body.len);
    if (head_len + child->body.len > 0 && !uv_is_closing((uv_handle_t *)&child->input)) {
        child->writing = uv_write(&child->write, (uv_stream_t *)&child->input, buf, ARRAY_LEN(buf),
                                  on_written) == 0;
    }
    if (last && !child->writing) {
        child_close_handle((uv_handle_t *)&child->input);
    }
}

bool child_is_writing(const struct child *child)
{
    return child->writing;
}

void child_close_input(struct child *child)
{
    child_close_handle((uv_handle_t *)&child->input);
}

void child_read_pipes(struct child *child)
{
    (void)uv_read_start((uv_stream_t *)&child->output, on_alloc, on_output);
    (void)uv_read_start((uv_stream_t *)&child->errors, on_alloc, on_errors);
}
