// SHA-256, which names everything that is stored by its content: sources, objects, blobs. Used by
// every program. Nothing here fails: a broken hash implementation ends the program.
#ifndef COMMON_DIGEST_H
#define COMMON_DIGEST_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

#define DIGEST_LEN 32     // bytes
#define DIGEST_HEX_LEN 64 // hexadecimal digits

struct digest {
    unsigned char byte[DIGEST_LEN]; // all zero means "absent"
};

// The digest of len bytes. data may be NULL when len is 0.
struct digest digest_of(const void *data, size_t len);

// The digest of several pieces. The length of each piece is hashed before it, so that moving bytes
// from one piece to the next changes the result.
struct digest_state;
struct digest_state *digest_begin(void);
void digest_add(struct digest_state *state, const void *data, size_t len);
// Adds a NUL-terminated text, without the NUL.
void digest_add_text(struct digest_state *state, const char *text);
// The digest of what was added. Frees state.
struct digest digest_end(struct digest_state *state);

bool digest_equal(const struct digest *a, const struct digest *b);
// Whether the digest is the absent one.
bool digest_is_zero(const struct digest *a);
// Writes 64 lower-case hexadecimal digits and a NUL.
void digest_hex(const struct digest *a, char out[static DIGEST_HEX_LEN + 1]);
// Reads exactly 64 hexadecimal digits of either case. ERR_INVALID otherwise, and *ret is unchanged.
MUST_CHECK int digest_parse(struct digest *ret, const char *hex, struct err *err);

#endif
