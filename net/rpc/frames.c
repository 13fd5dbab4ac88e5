// Design note. Bytes are received straight into the buffer, and frames are read in place. The
// buffer grows to what its first frame takes, but to no more than GROWTH times what has arrived. So
// whoever announces much has to send it, and a frame of 256 KiB is moved once while it arrives.
// When everything was taken, a buffer that has grown is freed, so an idle connection costs little.
#include "net/rpc/frames.h"

#include "net/rpc/old_framing.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MIN ((size_t)8 << 10) // the buffer grows when less room is left
#define GROWTH 8

// "SP" between zeros, which tells the version, then the pattern and the side in 16 bits, then
// zeros.
#define PATTERN_AT 5 // index of the byte that tells pattern and side

static const unsigned char greeting[][FRAMES_GREETING_LEN] = {
    [FRAMES_CALLER] = {0, 'S', 'P', 0, 0, 0x30, 0, 0},
    [FRAMES_SERVER] = {0, 'S', 'P', 0, 0, 0x31, 0, 0},
};

const unsigned char *frames_greeting(enum frames_side side)
{
    return greeting[side];
}

void frames_init(struct frames *frames, enum frames_side from, size_t message_max)
{
    *frames = (struct frames){.from = from, .message_max = message_max};
}

void frames_release(struct frames *frames)
{
    if (frames->wipe && frames->data) {
        explicit_bzero(frames->data, frames->size);
    }
    free(frames->data);
    frames_init(frames, frames->from, frames->message_max);
}

static uint64_t big_endian(const unsigned char *at, size_t width)
{
    uint64_t value = 0;

    for (size_t i = 0; i < width; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

// --- memory

// Returns the bytes that the frame at the front takes in all, 0 when that is not known yet. A
// length that is too large counts as the largest one; frames_peek refuses it.
static size_t front_size(const struct frames *frames)
{
    size_t have = frames->end - frames->start;
    size_t most = frames->message_max + FRAMES_HEADER_MAX;

    if (!frames->greeted || frames->old || have < FRAMES_LENGTH_LEN) {
        return 0;
    }
    uint64_t len = big_endian(frames->data + frames->start, FRAMES_LENGTH_LEN);
    return FRAMES_LENGTH_LEN + (len < most ? (size_t)len : most);
}

size_t frames_size_wanted(const struct frames *frames)
{
    size_t have = frames->end - frames->start;

    if (frames->size > 0 && frames->size - have >= ROOM_MIN) {
        return frames->size;
    }
    size_t front = front_size(frames);
    // The frame, and so much of the next one that the buffer need not grow at once.
    size_t wanted = front > have ? front + ROOM_MIN : 2 * frames->size;
    size_t size = wanted < GROWTH * have ? wanted : GROWTH * have;
    size_t least = frames->size ? frames->size + ROOM_MIN : FRAMES_SIZE_FIRST;
    return size > least ? size : least;
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

// --- greetings

// Sets the error for a greeting of nng of which another pattern or side was to be read.
static int wrong_pattern(const struct frames *frames, const unsigned char *data, struct err *err)
{
    static const char *const name[] = {
        [0x10] = "PAIR",     [0x11] = "PAIR",       [0x20] = "PUB",  [0x21] = "SUB",
        [0x30] = "REQ",      [0x31] = "REP",        [0x50] = "PUSH", [0x51] = "PULL",
        [0x62] = "SURVEYOR", [0x63] = "RESPONDENT", [0x70] = "BUS",
    };
    unsigned pattern = (unsigned)big_endian(data + PATTERN_AT - 1, 2);
    bool known = pattern < sizeof(name) / sizeof(*name) && name[pattern];

    if (pattern == greeting[frames->from][PATTERN_AT]) {
        return err_set(err, ERR_PROTOCOL, "its greeting does not end with two zeros");
    }
    return err_set(err, ERR_PROTOCOL, "it is a socket of nng's of the kind %s (0x%x), and %s",
                   known ? name[pattern] : "unknown here", pattern,
                   frames->from == FRAMES_CALLER ? "only REQ is answered" : "only REP is called");
}

static int peek_greeting(const struct frames *frames, struct frames_view *ret, struct err *err)
{
    const unsigned char *right = greeting[frames->from];
    size_t have = frames->end - frames->start;

    have = have < FRAMES_GREETING_LEN ? have : FRAMES_GREETING_LEN;
    if (have == 0) {
        return 0;
    }
    const unsigned char *data = frames->data + frames->start;
    if (memcmp(data, right, have) == 0) {
        ret->item = have == FRAMES_GREETING_LEN ? FRAMES_GREETING : FRAMES_MORE;
    } else if (memcmp(data, old_framing_greeting, have) == 0) {
        ret->item = have == FRAMES_GREETING_LEN ? FRAMES_GREETING_OLD : FRAMES_MORE;
    } else if (memcmp(data, right, have < PATTERN_AT ? have : PATTERN_AT - 1) == 0) {
        return have < FRAMES_GREETING_LEN ? 0 : wrong_pattern(frames, data, err);
    } else {
        return err_set(err, ERR_PROTOCOL, "what came first is no greeting of nng's protocol");
    }
    return 0;
}

// --- frames

// Looks for the end of the header in the bytes of a frame of len bytes that have arrived.
static int peek_header(const unsigned char *frame, size_t have, uint64_t len,
                       struct frames_view *ret, struct err *err)
{
    size_t max = len < FRAMES_HEADER_MAX ? (size_t)len : FRAMES_HEADER_MAX;

    for (size_t at = 0; at + FRAMES_WORD_LEN <= max; at += FRAMES_WORD_LEN) {
        if (have < at + FRAMES_WORD_LEN) {
            return 0;
        }
        if (frame[at] & 0x80) {
            ret->header = frame;
            ret->header_len = at + FRAMES_WORD_LEN;
            return 0;
        }
    }
    return max < FRAMES_HEADER_MAX
               ? err_set(err, ERR_PROTOCOL, "a frame of %zu bytes without a request's number", max)
               : err_set(err, ERR_PROTOCOL, "a header of more than %d words",
                         FRAMES_HEADER_MAX / FRAMES_WORD_LEN);
}

static int too_long(uint64_t len, size_t max, struct err *err)
{
    return err_set(err, ERR_PROTOCOL, "a frame of %llu bytes, and %zu are allowed",
                   (unsigned long long)len, max);
}

static int peek_old_frame(const struct frames *frames, struct frames_view *ret, struct err *err)
{
    size_t have = frames->end - frames->start;

    if (have < OLD_FRAMING_LENGTH_LEN) {
        return 0;
    }
    const unsigned char *head = frames->data + frames->start;
    size_t len = old_framing_length(head);
    if (len > OLD_FRAMING_MAX) {
        return too_long(len, OLD_FRAMING_MAX, err);
    }
    if (have - OLD_FRAMING_LENGTH_LEN >= len) {
        ret->item = FRAMES_FRAME_OLD;
        ret->data = head + OLD_FRAMING_LENGTH_LEN;
        ret->len = len;
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
    if (frames->old) {
        return peek_old_frame(frames, ret, err);
    }
    if (have < FRAMES_LENGTH_LEN) {
        return 0;
    }
    const unsigned char *frame = frames->data + frames->start + FRAMES_LENGTH_LEN;
    uint64_t len = big_endian(frames->data + frames->start, FRAMES_LENGTH_LEN);
    have -= FRAMES_LENGTH_LEN;
    int rc = peek_header(frame, have, len, ret, err);
    if (rc != 0 || ret->header_len == 0) {
        return rc;
    }
    ret->data = frame + ret->header_len;
    ret->len = have - ret->header_len;
    if (len - ret->header_len > frames->message_max) {
        if (frames->looked || len - ret->header_len > frames->start_max) {
            return too_long(len - ret->header_len, frames->message_max, err);
        }
        ret->item = have >= FRAMES_START_MAX || have >= len ? FRAMES_START : FRAMES_MORE;
    } else if (have >= len) {
        ret->item = FRAMES_FRAME;
        ret->len = (size_t)len - ret->header_len;
    }
    return 0;
}

// Returns the bytes that the item takes.
static size_t view_size(const struct frames_view *view)
{
    switch (view->item) {
    case FRAMES_GREETING:
    case FRAMES_GREETING_OLD:
        return FRAMES_GREETING_LEN;
    case FRAMES_FRAME:
        return FRAMES_LENGTH_LEN + view->header_len + view->len;
    case FRAMES_FRAME_OLD:
        return OLD_FRAMING_LENGTH_LEN + view->len;
    default:
        return 0;
    }
}

void frames_take(struct frames *frames, const struct frames_view *view)
{
    frames->greeted |= view->item == FRAMES_GREETING || view->item == FRAMES_GREETING_OLD;
    frames->old |= view->item == FRAMES_GREETING_OLD;
    frames->looked = view->item == FRAMES_START;
    if (frames->wipe) {
        explicit_bzero(frames->data + frames->start, view_size(view));
    }
    frames->start += view_size(view);
    if (frames->start == frames->end) {
        frames->start = frames->end = 0;
        if (frames->size > FRAMES_SIZE_FIRST) {
            free(frames->data);
            frames->data = NULL;
            frames->size = 0;
        }
    }
}

uint32_t frames_request(const struct frames_view *view)
{
    return (uint32_t)big_endian(view->header + view->header_len - FRAMES_WORD_LEN, FRAMES_WORD_LEN);
}

// --- writing

static void write_big_endian(unsigned char *to, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        to[i] = (unsigned char)(value >> 8 * (width - 1 - i));
    }
}

void frame_begin(struct strbuf *buf, const unsigned char *header, size_t header_len)
{
    static const unsigned char length[FRAMES_LENGTH_LEN];

    strbuf_add(buf, length, sizeof(length));
    strbuf_add(buf, header, header_len);
}

void frame_begin_request(struct strbuf *buf, uint32_t request)
{
    unsigned char word[FRAMES_WORD_LEN];

    write_big_endian(word, request | FRAMES_REQUEST, sizeof(word));
    frame_begin(buf, word, sizeof(word));
}

void frame_end(struct strbuf *buf)
{
    write_big_endian((unsigned char *)buf->data, buf->len - FRAMES_LENGTH_LEN, FRAMES_LENGTH_LEN);
}
