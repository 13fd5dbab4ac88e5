// SHA-256 by mbedcrypto. No other file includes mbedcrypto's SHA-256. Its functions can fail only
// with hardware accelerators, which these programs do not use. A failure therefore ends the
// program: going on would store things under a wrong name.
#include "common/digest.h"
#include "common/mbedtls.h"
#include "common/mem.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct digest_state {
    mbedtls_sha256_context sha; // the running hash
};

// Ends the program when a function of mbedcrypto failed.
static void must(int rc)
{
    if (rc != 0) {
        abort();
    }
}

struct digest digest_of(const void *data, size_t len)
{
    static const unsigned char nothing[1];
    struct digest digest;

    must(mbedtls_sha256(len > 0 ? data : nothing, len, digest.byte, 0));
    return digest;
}

struct digest_state *digest_begin(void)
{
    struct digest_state *state = xmalloc(sizeof(*state));

    mbedtls_sha256_init(&state->sha);
    must(mbedtls_sha256_starts(&state->sha, 0));
    return state;
}

void digest_add(struct digest_state *state, const void *data, size_t len)
{
    unsigned char prefix[8];

    // Little-endian on every machine: the digest is stored and compared elsewhere.
    for (int i = 0; i < 8; i++) {
        prefix[i] = (unsigned char)((uint64_t)len >> (8 * i));
    }
    must(mbedtls_sha256_update(&state->sha, prefix, sizeof(prefix)));
    if (len > 0) {
        must(mbedtls_sha256_update(&state->sha, data, len));
    }
}

void digest_add_text(struct digest_state *state, const char *text)
{
    digest_add(state, text, strlen(text));
}

struct digest digest_end(struct digest_state *state)
{
    struct digest digest;

    must(mbedtls_sha256_finish(&state->sha, digest.byte));
    mbedtls_sha256_free(&state->sha);
    free(state);
    return digest;
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
    return memcmp(a->byte, b->byte, DIGEST_LEN) == 0;
}

bool digest_is_zero(const struct digest *a)
{
    static const struct digest zero;

    return digest_equal(a, &zero);
}

void digest_hex(const struct digest *a, char out[static DIGEST_HEX_LEN + 1])
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < DIGEST_LEN; i++) {
        out[2 * i] = hex[a->byte[i] >> 4];
        out[2 * i + 1] = hex[a->byte[i] & 15];
    }
    out[DIGEST_HEX_LEN] = '\0';
}

// The value of a hexadecimal digit, -1 when c is none.
static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

int digest_parse(struct digest *ret, const char *hex, struct err *err)
{
    if (strnlen(hex, DIGEST_HEX_LEN + 1) != DIGEST_HEX_LEN) {
        return err_set(err, ERR_INVALID, "a digest has %d hexadecimal digits, not as in '%.80s'",
                       DIGEST_HEX_LEN, hex);
    }
    struct digest digest;
    for (size_t i = 0; i < DIGEST_LEN; i++) {
        int high = hex_value(hex[2 * i]);
        int low = hex_value(hex[2 * i + 1]);

        if (high < 0 || low < 0) {
            return err_set(err, ERR_INVALID, "'%s' is no digest: not all of it is hexadecimal",
                           hex);
        }
        digest.byte[i] = (unsigned char)(high * 16 + low);
    }
    *ret = digest;
    return 0;
}
