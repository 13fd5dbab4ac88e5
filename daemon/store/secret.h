// A secret that only this daemon knows, kept beside its ledger. The hidden cases on which a
// candidate is checked follow from it, so that they are the same when a job is done again and
// cannot be known from outside. Opened by daemon.c, used by setup.c.
#ifndef DAEMON_STORE_SECRET_H
#define DAEMON_STORE_SECRET_H

#include "common/digest.h"
#include "common/err.h"
#include <stdint.h>

#define SECRET_LEN 32 // bytes

struct secret {
    unsigned char byte[SECRET_LEN];
};

// Reads the secret from path, or draws one and writes it there with mode 0600; it is on the disk
// before this returns. ERR_CORRUPT when the file holds no secret, ERR_DENIED when others may read
// or write it or it belongs to another user than root and the daemon's, ERR_SYSTEM.
MUST_CHECK int secret_open(struct secret *ret, const char *path, struct err *err);

// The seed of the hidden cases of a source: the first 8 bytes, little-endian, of SHA-256(secret,
// problem, source).
uint64_t secret_hidden_seed(const struct secret *secret, const struct digest *problem,
                            const struct digest *source);

#endif
