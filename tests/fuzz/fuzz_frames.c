// Any bytes in pieces of any size as a connection's input. The frames that come out are the same as
// when everything arrives at once, and the memory held stays near what has arrived.
#include "common/mem.h"
#include "net/rpc/frames.h"
#include "net/rpc/old_framing.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FRAME_MAX ((size_t)70000) // that of frames of old_framing.h is less
#define START_MAX ((size_t)100000)

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
        if (view.item == FRAMES_START) { // its length depends on how much has arrived
            frames->message_max = (frames_request(&view) & 1) ? START_MAX : FRAME_MAX;
        } else if (view.item == FRAMES_FRAME_OLD || view.item == FRAMES_FRAME) {
            if (view.len > frames->message_max || view.header_len > FRAMES_HEADER_MAX ||
                (view.item == FRAMES_FRAME && !(frames_request(&view) & FRAMES_REQUEST))) {
                abort();
            }
            for (size_t i = 0; i < view.header_len; i++) {
                seen->hash = (seen->hash ^ view.header[i]) * 0x100000001b3;
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

static struct seen read_by(enum frames_side from, const uint8_t *data, size_t len, size_t step)
{
    struct frames frames;

    frames_init(&frames, from, FRAME_MAX);
    frames.start_max = START_MAX;
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
        if (frames.size > FRAMES_SIZE_FIRST + ((size_t)16 << 10) + 8 * len) {
            abort();
        }
    }
    frames_release(&frames);
    return seen;
}

// The first byte gives the size of the pieces. For two thirds of its values a greeting is put in
// front, of nng's protocol or of before.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len < 1) {
        return 0;
    }
    struct strbuf bytes = STRBUF_INIT;
    enum frames_side from = data[0] & 0x80 ? FRAMES_SERVER : FRAMES_CALLER;
    if (data[0] % 3 == 0) {
        strbuf_add(&bytes, frames_greeting(from), FRAMES_GREETING_LEN);
    } else if (data[0] % 3 == 1) {
        strbuf_add(&bytes, old_framing_greeting, sizeof(old_framing_greeting));
    }
    strbuf_add(&bytes, data + 1, len - 1);
    struct seen whole = read_by(from, (const uint8_t *)bytes.data, bytes.len, SIZE_MAX);
    struct seen pieces = read_by(from, (const uint8_t *)bytes.data, bytes.len, 1 + data[0] / 2);
    if (whole.hash != pieces.hash || whole.frames != pieces.frames || whole.error != pieces.error) {
        abort();
    }
    strbuf_release(&bytes);
    return 0;
}
