// What only this daemon knows, kept beside its ledger: the shapes that a candidate is checked on
// without being told follow from it, so that they are the same when a job is done again and cannot
// be known from outside.
#ifndef DAEMON_STORE_SECRET_H
#define DAEMON_STORE_SECRET_H

#include "common/digest.h"
#include "common/err.h"
#include <stdint.h>

#define SECRET_LEN 32

struct secret {
    unsigned char byte[SECRET_LEN];
};

// Reads path, or draws a secret and writes it there (mode 0600, on the disk before this returns).
// ERR_CORRUPT when the file is none, ERR_SYSTEM.
MUST_CHECK int secret_open(struct secret *ret, const char *path, struct err *err);

// The first 8 bytes, little-endian, of SHA-256(secret, problem, source).
uint64_t secret_hidden_seed(const struct secret *secret, const struct digest *problem,
                            const struct digest *source);

#endif
