// Cuts the bytes of a connection into frames: first a greeting, then frames that each consist of a
// length of 4 bytes, little-endian, and so many bytes. net/rpc/stream.c feeds it. It knows no
// sockets and does not know what frames mean.
#ifndef NET_RPC_FRAMES_H
#define NET_RPC_FRAMES_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>

#define FRAMES_GREETING_LEN 8                // bytes
#define FRAMES_SIZE_FIRST ((size_t)32 << 10) // bytes of a new buffer
#define FRAMES_HEAD_LEN 4                    // bytes of the length before each frame
// What each side sends first: "KCAST", two zero bytes and the version of the framing.
extern const unsigned char frames_greeting[FRAMES_GREETING_LEN];

// A buffer of bytes that arrived and were not taken yet. Its memory follows what has arrived, never
// a length that the other side announced.
struct frames {
    unsigned char *data; // the bytes are at [start, end)
    size_t start;
    size_t end;
    size_t size;      // bytes allocated
    size_t frame_max; // bytes; a longer frame is an error
    bool greeted;     // the greeting was taken
    bool wipe;        // overwrite taken frames and freed memory, because tokens may be in them
};

enum frames_item {
    FRAMES_MORE,     // nothing is complete yet
    FRAMES_GREETING, // the greeting, complete and right; data and len are not set
    FRAMES_FRAME,    // a frame, without its length
};

struct frames_view {
    enum frames_item item;
    const unsigned char *data; // valid until frames_take or frames_room is called
    size_t len;                // bytes, at least 1
};

void frames_init(struct frames *frames, size_t frame_max);
void frames_release(struct frames *frames);

// Returns how many bytes the buffer is to have so that frames_room returns some.
size_t frames_size_wanted(const struct frames *frames);
// Received bytes go in two steps: write them to *ret, where there is room for *ret_len bytes, at
// least 1; then tell frames_filled how many they were. ERR_SYSTEM when there is no memory.
MUST_CHECK int frames_room(struct frames *frames, char **ret, size_t *ret_len, struct err *err);
void frames_filled(struct frames *frames, size_t len);

// Shows what is at the front; it stays there until frames_take removes it. ERR_PROTOCOL when the
// bytes are no greeting, which the first wrong byte shows, or when a length is 0 or above
// frame_max. Nothing more can be read after that.
MUST_CHECK int frames_peek(const struct frames *frames, struct frames_view *ret, struct err *err);
void frames_take(struct frames *frames, const struct frames_view *view);

// Writing a frame: frame_begin reserves the length at the front of an empty buffer, and frame_end
// fills it in when the rest has been appended.
void frame_begin(struct strbuf *buf);
void frame_end(struct strbuf *buf);

#endif
