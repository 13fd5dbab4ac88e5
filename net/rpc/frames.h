// A connection's bytes as frames: a greeting, then frames of 4 bytes length (little-endian) and so
// many bytes. Knows nothing of sockets and nothing of what the frames mean.
#ifndef NET_RPC_FRAMES_H
#define NET_RPC_FRAMES_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>

#define FRAMES_GREETING_LEN 8
#define FRAMES_HEAD_LEN 4 // the length before each frame
// What each side sends first: "KCAST", two zeros, the version of the framing.
extern const unsigned char frames_greeting[FRAMES_GREETING_LEN];

// Bytes that arrived and were not taken yet. Holds as much as arrived, never what was announced.
struct frames {
    unsigned char *data; // what arrived is at [start, end)
    size_t start;
    size_t end;
    size_t size;      // bytes allocated
    size_t frame_max; // a longer frame is an error
    bool greeted;     // the greeting was taken
    bool wipe;        // leave nothing in memory of what was taken
};

enum frames_item {
    FRAMES_MORE,     // nothing whole is there yet
    FRAMES_GREETING, // the greeting, whole and right; data and len mean nothing
    FRAMES_FRAME,    // a frame, without its length
};

struct frames_view {
    enum frames_item item;
    const unsigned char *data; // valid until frames_take or frames_room
    size_t len;                // at least 1
};

void frames_init(struct frames *frames, size_t frame_max);
void frames_release(struct frames *frames);

// Where the next bytes may be written, at least 1. ERR_SYSTEM when there is no memory.
MUST_CHECK int frames_room(struct frames *frames, char **ret, size_t *ret_len, struct err *err);
// So many bytes were written there.
void frames_filled(struct frames *frames, size_t len);

// What is at the front; the same again until it is taken. ERR_PROTOCOL when it is no greeting (told
// by the first wrong byte), or the length is 0 or above frame_max: nothing can be read after that.
MUST_CHECK int frames_peek(const struct frames *frames, struct frames_view *ret, struct err *err);
void frames_take(struct frames *frames, const struct frames_view *view);

// Writing: frame_begin leaves room for the length at the end of an empty buffer, frame_end fills it
// in when the rest is there.
void frame_begin(struct strbuf *buf);
void frame_end(struct strbuf *buf);

#endif
