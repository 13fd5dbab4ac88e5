// Design note. Bytes are received straight into the buffer, and frames are read in place. The
// buffer doubles when it is nearly full, so it never takes more than about twice what has arrived,
// and not more than the frame at its front takes.
// When everything was taken, a buffer that has grown is freed, so an idle connection costs little.
#include "net/rpc/frames.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN ((size_t)8 << 10) // the buffer grows when less room is left

const unsigned char frames_greeting[FRAMES_GREETING_LEN] = {'K', 'C', 'A', 'S', 'T', 0, 0, 1};

void frames_init(struct frames *frames, size_t frame_max)
{
    *frames = (struct frames){.frame_max = frame_max};
}

void frames_release(struct frames *frames)
{
    if (frames->wipe && frames->data) {
        explicit_bzero(frames->data, frames->size);
    }
    free(frames->data);
    *frames = (struct frames){.frame_max = frames->frame_max};
}

static size_t read_len(const unsigned char *head)
{
    return (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
}

size_t frames_size_wanted(const struct frames *frames)
{
    size_t have = frames->end - frames->start;

    if (frames->size > 0 && frames->size - have >= ROOM_MIN) {
        return frames->size;
    }
    size_t size = frames->size ? frames->size * 2 : FRAMES_SIZE_FIRST;
    size_t len = frames->greeted && have >= FRAMES_HEAD_LEN
                     ? read_len(frames->data + frames->start) + FRAMES_HEAD_LEN
                     : 0;
    // The frame, and so much of the next one that the buffer need not grow at once.
    return len > have && len + ROOM_MIN < size ? len + ROOM_MIN : size;
}

int frames_room(struct frames *frames, char **ret, size_t *ret_len, struct err *err)
{
    size_t size = frames_size_wanted(frames);

    if (frames->start > 0) {
        frames->end -= frames->start;
        memmove(frames->data, frames->data + frames->start, frames->end);
        frames->start = 0;
    }
    unsigned char *data;
    if (size > frames->size) {
        data = realloc(frames->data, size);
        if (!data) {
            return err_set(err, ERR_SYSTEM, "no memory for %zu bytes that arrive", size);
        }
        frames->data = data;
        frames->size = size;
    }
    *ret = (char *)frames->data + frames->end;
    *ret_len = frames->size - frames->end;
    return 0;
}

void frames_filled(struct frames *frames, size_t len)
{
    frames->end += len;
}

static int peek_greeting(const struct frames *frames, struct frames_view *ret, struct err *err)
{
    const unsigned char *data = frames->data + frames->start;
    size_t have = frames->end - frames->start;
    size_t version = FRAMES_GREETING_LEN - 1;

    if (have == 0) {
        return 0;
    }
    if (memcmp(data, frames_greeting, have < version ? have : version) != 0) {
        return err_set(err, ERR_PROTOCOL, "what came first is not kernelcast's greeting");
    }
    if (have >= FRAMES_GREETING_LEN) {
        if (data[version] != frames_greeting[version]) {
            return err_set(err, ERR_PROTOCOL, "it frames messages by version %u, here it is %u",
                           data[version], frames_greeting[version]);
        }
        ret->item = FRAMES_GREETING;
    }
    return 0;
}

int frames_peek(const struct frames *frames, struct frames_view *ret, struct err *err)
{
    size_t have = frames->end - frames->start;

    *ret = (struct frames_view){.item = FRAMES_MORE};
    if (!frames->greeted) {
        return peek_greeting(frames, ret, err);
    }
    if (have < FRAMES_HEAD_LEN) {
        return 0;
    }
    const unsigned char *head = frames->data + frames->start;
    size_t len = read_len(head);
    if (len == 0) {
        return err_set(err, ERR_PROTOCOL, "a frame of no bytes");
    }
    if (len > frames->frame_max) {
        return err_set(err, ERR_PROTOCOL, "a frame of %zu bytes, and %zu are allowed", len,
                       frames->frame_max);
    }
    if (have - FRAMES_HEAD_LEN >= len) {
        *ret =
            (struct frames_view){.item = FRAMES_FRAME, .data = head + FRAMES_HEAD_LEN, .len = len};
    }
    return 0;
}

void frames_take(struct frames *frames, const struct frames_view *view)
{
    if (view->item == FRAMES_GREETING) {
        frames->greeted = true;
        frames->start += FRAMES_GREETING_LEN;
    } else if (view->item == FRAMES_FRAME) {
        if (frames->wipe) {
            explicit_bzero(frames->data + frames->start + FRAMES_HEAD_LEN, view->len);
        }
        frames->start += FRAMES_HEAD_LEN + view->len;
    }
    if (frames->start == frames->end) {
        frames->start = frames->end = 0;
        if (frames->size > FRAMES_SIZE_FIRST) {
            free(frames->data);
            frames->data = NULL;
            frames->size = 0;
        }
    }
}

void frame_begin(struct strbuf *buf)
{
    static const unsigned char head[FRAMES_HEAD_LEN];

    strbuf_add(buf, head, sizeof(head));
}

void frame_end(struct strbuf *buf)
{
    size_t len = buf->len - FRAMES_HEAD_LEN;

    for (size_t i = 0; i < FRAMES_HEAD_LEN; i++) {
        buf->data[i] = (char)(unsigned char)(len >> 8 * i);
    }
}
