// Bounds a packed message before it is decoded: every length and count must fit into the bytes that
// are there, and nesting is limited. Nothing is allocated. Peers can send anything, and msgpack-c
// allocates by the counts that it reads.
#include "proto/message.h"

struct walk {
    const unsigned char *at;  // next byte
    const unsigned char *end; // behind the last byte
};

static uint64_t big_endian(const unsigned char *at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = 0; i < width; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

// What follows the leading byte of a value.
struct lead {
    size_t width;    // bytes of a length or count that come next, 0: `length` is known already
    size_t children; // values per counted element; 0: the length counts payload bytes
    uint64_t length; // payload bytes or elements, when width is 0
    bool valid;      // false: no message uses this type
};

static struct lead lead_of(unsigned char c)
{
    if (c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3) {
        return (struct lead){.valid = true};
    }
    if (c <= 0x8f) {
        return (struct lead){.children = 2, .length = c & 0x0f, .valid = true};
    }
    if (c <= 0x9f) {
        return (struct lead){.children = 1, .length = c & 0x0f, .valid = true};
    }
    if (c <= 0xbf) {
        return (struct lead){.length = c & 0x1f, .valid = true};
    }
    static const struct lead table[] = {
        [0xc4 - 0xc0] = {.width = 1, .valid = true},
        [0xc5 - 0xc0] = {.width = 2, .valid = true},
        [0xc6 - 0xc0] = {.width = 4, .valid = true},
        [0xca - 0xc0] = {.length = 4, .valid = true},
        [0xcb - 0xc0] = {.length = 8, .valid = true},
        [0xcc - 0xc0] = {.length = 1, .valid = true},
        [0xcd - 0xc0] = {.length = 2, .valid = true},
        [0xce - 0xc0] = {.length = 4, .valid = true},
        [0xcf - 0xc0] = {.length = 8, .valid = true},
        [0xd0 - 0xc0] = {.length = 1, .valid = true},
        [0xd1 - 0xc0] = {.length = 2, .valid = true},
        [0xd2 - 0xc0] = {.length = 4, .valid = true},
        [0xd3 - 0xc0] = {.length = 8, .valid = true},
        [0xd9 - 0xc0] = {.width = 1, .valid = true},
        [0xda - 0xc0] = {.width = 2, .valid = true},
        [0xdb - 0xc0] = {.width = 4, .valid = true},
        [0xdc - 0xc0] = {.width = 2, .children = 1, .valid = true},
        [0xdd - 0xc0] = {.width = 4, .children = 1, .valid = true},
        [0xde - 0xc0] = {.width = 2, .children = 2, .valid = true},
        [0xdf - 0xc0] = {.width = 4, .children = 2, .valid = true},
    };
    return table[c - 0xc0]; // extension types and 0xc1 are not valid
}

// Moves behind one value and all that it contains.
static int walk_value(struct walk *walk, int depth, struct err *err)
{
    if (depth > MESSAGE_DEPTH_MAX) {
        return err_set(err, ERR_PROTOCOL, "a message nests deeper than %d levels",
                       MESSAGE_DEPTH_MAX);
    }
    if (walk->at == walk->end) {
        return err_set(err, ERR_PROTOCOL, "a message ends in the middle");
    }
    struct lead lead = lead_of(*walk->at);
    if (!lead.valid) {
        return err_set(err, ERR_PROTOCOL, "a message has a value of an unknown type (0x%02x)",
                       *walk->at);
    }
    walk->at++;
    size_t left = (size_t)(walk->end - walk->at);
    if (lead.width > left) {
        return err_set(err, ERR_PROTOCOL, "a message ends in the middle");
    }
    uint64_t length = lead.width > 0 ? big_endian(walk->at, lead.width) : lead.length;
    walk->at += lead.width;
    left -= lead.width;
    // Each child has at least one byte.
    if (length * (lead.children > 0 ? lead.children : 1) > left) {
        return err_set(err, ERR_PROTOCOL,
                       "a message claims %llu elements or bytes where %zu bytes are left",
                       (unsigned long long)length, left);
    }
    if (lead.children == 0) {
        walk->at += length;
        return 0;
    }
    for (uint64_t i = 0; i < length * lead.children; i++) {
        int rc = walk_value(walk, depth + 1, err);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int message_precheck(const void *data, size_t len, size_t *ret_size, struct err *err)
{
    struct walk walk = {.at = data, .end = (const unsigned char *)data + len};
    int rc = walk_value(&walk, 0, err);
    if (rc == 0) {
        *ret_size = (size_t)(walk.at - (const unsigned char *)data);
    }
    return rc;
}
