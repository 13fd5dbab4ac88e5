// Cuts the bytes of a connection into frames, as nng does over TCP: Scalability Protocols, the
// pattern REQ/REP. First comes a greeting of 8 bytes, which names the pattern's side, then frames.
// A frame is a length of 8 bytes, big-endian, then so many bytes: a header of 32-bit words, then
// the message. The last word of the header has its highest bit set and is the request's number,
// which its caller chose; words before it are of devices between the two. The server returns the
// header as it came. net/rpc/stream.c feeds this. It knows no sockets and does not know what
// messages mean.
#ifndef NET_RPC_FRAMES_H
#define NET_RPC_FRAMES_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAMES_GREETING_LEN 8                   // bytes
#define FRAMES_SIZE_FIRST ((size_t)32 << 10)    // bytes of a new buffer
#define FRAMES_LENGTH_LEN 8                     // bytes of the length before each frame
#define FRAMES_WORD_LEN 4                       // bytes of a word of the header
#define FRAMES_HEADER_MAX (8 * FRAMES_WORD_LEN) // bytes; nng lets as many devices stand between
#define FRAMES_START_MAX ((size_t)1024) // bytes of a frame that is too long, to be looked at
#define FRAMES_REQUEST 0x80000000u      // set in the word that is a request's number

enum frames_side {
    FRAMES_CALLER, // a REQ socket
    FRAMES_SERVER, // a REP socket
};

// Returns what this side sends first, FRAMES_GREETING_LEN bytes.
const unsigned char *frames_greeting(enum frames_side side);

// A buffer of bytes that arrived and were not taken yet. Its memory follows what has arrived, never
// a length that the other side announced.
struct frames {
    unsigned char *data; // the bytes are at [start, end)
    size_t start;
    size_t end;
    size_t size;           // bytes allocated
    size_t message_max;    // bytes of a frame without its header; a longer one is an error
    enum frames_side from; // the other side
    bool greeted;          // the greeting was taken
    bool old;              // the greeting was that of old_framing.h, and so are the frames
    size_t start_max;      // bytes of a message that may be allowed when its start was shown
    bool looked;           // the start of the frame at the front was shown
    bool wipe;             // overwrite taken frames and freed memory, because tokens may be in them
};

enum frames_item {
    FRAMES_MORE,         // nothing is complete yet
    FRAMES_GREETING,     // the greeting, complete and right; only this is set
    FRAMES_GREETING_OLD, // that of old_framing.h
    FRAMES_FRAME,        // a frame
    FRAMES_FRAME_OLD,    // a frame of old_framing.h, without a header
    FRAMES_START,        // the start of a frame whose message is longer than message_max, but not
                         // than start_max. When this was taken, message_max must allow the frame.
};

struct frames_view {
    enum frames_item item;
    const unsigned char *header; // what this and data point to is valid until frames_take or
                                 // frames_room is called
    size_t header_len;           // bytes, at least one word, at most FRAMES_HEADER_MAX
    const unsigned char *data;   // the message
    size_t len;                  // bytes
};

// from is the side that is going to send the bytes. start_max is 0 at first.
void frames_init(struct frames *frames, enum frames_side from, size_t message_max);
void frames_release(struct frames *frames);

// Returns how many bytes the buffer is to have so that frames_room returns some.
size_t frames_size_wanted(const struct frames *frames);
// Received bytes go in two steps: write them to *ret, where there is room for *ret_len bytes, at
// least 1; then tell frames_filled how many they were. ERR_SYSTEM when there is no memory.
MUST_CHECK int frames_room(struct frames *frames, char **ret, size_t *ret_len, struct err *err);
void frames_filled(struct frames *frames, size_t len);

// Shows what is at the front; it stays there until frames_take removes it. ERR_PROTOCOL when the
// bytes are no greeting, which the first wrong byte shows, when a message is longer than
// message_max, or when a header does not end within FRAMES_HEADER_MAX bytes or within the frame.
// Nothing more can be read after that.
MUST_CHECK int frames_peek(const struct frames *frames, struct frames_view *ret, struct err *err);
void frames_take(struct frames *frames, const struct frames_view *view);

// Returns the request's number, with FRAMES_REQUEST, that a header ends with.
uint32_t frames_request(const struct frames_view *view);

// Writing a frame: frame_begin reserves the length at the front of an empty buffer and puts the
// header behind it, and frame_end fills in the length when the message has been appended.
void frame_begin(struct strbuf *buf, const unsigned char *header, size_t header_len);
// The same with a header of one word, a request's number, of which the lowest 31 bits count.
void frame_begin_request(struct strbuf *buf, uint32_t request);
void frame_end(struct strbuf *buf);

#endif
