// Any bytes in pieces of any size as a connection's input. The frames that come out are the same as
// when everything arrives at once, and the memory held stays near what has arrived.
#include "common/mem.h"
#include "net/rpc/frames.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FRAME_MAX ((size_t)100000)

struct seen {
    uint64_t hash; // of lengths and bytes
    size_t frames;
    int error;
};

static void drain(struct frames *frames, struct seen *seen)
{
    struct frames_view view;

    while (seen->error == 0 && (seen->error = frames_peek(frames, &view, NULL)) == 0 &&
           view.item != FRAMES_MORE) {
        if (view.item == FRAMES_FRAME) {
            if (view.len == 0 || view.len > FRAME_MAX) {
                abort();
            }
            for (size_t i = 0; i < view.len; i++) {
                seen->hash = (seen->hash ^ view.data[i]) * 0x100000001b3;
            }
            seen->hash = (seen->hash ^ view.len) * 0x100000001b3;
            seen->frames++;
        }
        frames_take(frames, &view);
    }
}

static struct seen read_by(const uint8_t *data, size_t len, size_t step)
{
    struct frames frames;

    frames_init(&frames, FRAME_MAX);
    struct seen seen = {0};
    for (size_t at = 0; at < len && seen.error == 0;) {
        char *room;
        size_t have;

        if (frames_room(&frames, &room, &have, NULL) != 0 || have == 0) {
            abort();
        }
        have = have < step ? have : step;
        have = have < len - at ? have : len - at;
        memcpy(room, data + at, have);
        frames_filled(&frames, have);
        at += have;
        drain(&frames, &seen);
        if (frames.size > ((size_t)128 << 10) + 4 * len) {
            abort();
        }
    }
    frames_release(&frames);
    return seen;
}

// The first byte gives the size of the pieces. For half of its values the greeting is put in front.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1) {
        return 0;
    }
    struct strbuf bytes = STRBUF_INIT;
    if (data[0] & 1) {
        strbuf_add(&bytes, frames_greeting, sizeof(frames_greeting));
    }
    strbuf_add(&bytes, data + 1, len - 1);
    struct seen whole = read_by((const uint8_t *)bytes.data, bytes.len, SIZE_MAX);
    struct seen pieces = read_by((const uint8_t *)bytes.data, bytes.len, 1 + data[0] / 2);
    if (whole.hash != pieces.hash || whole.frames != pieces.frames || whole.error != pieces.error) {
        abort();
    }
    strbuf_release(&bytes);
    return 0;
}
