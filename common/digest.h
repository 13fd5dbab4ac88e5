// SHA-256, the name of everything that is stored by content.
#ifndef COMMON_DIGEST_H
#define COMMON_DIGEST_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

#define DIGEST_LEN 32
#define DIGEST_HEX_LEN 64

struct digest {
    unsigned char byte[DIGEST_LEN]; // all zero means "absent"
};

struct digest digest_of(const void *data, size_t len);

// Digest over several pieces; each piece is preceded by its length, so that pieces cannot be shifted into each other.
struct digest_state;
struct digest_state *digest_begin(void);
void digest_add(struct digest_state *state, const void *data, size_t len);
void digest_add_text(struct digest_state *state, const char *text);
struct digest digest_end(struct digest_state *state); // frees state

bool digest_equal(const struct digest *a, const struct digest *b);
bool digest_is_zero(const struct digest *a);
void digest_hex(const struct digest *a, char out[static DIGEST_HEX_LEN + 1]);
MUST_CHECK int digest_parse(struct digest *ret, const char *hex,
                            struct err *err); // exactly 64 hex digits

#endif
