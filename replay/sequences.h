// The sequences in which other programs measured the candidates of spaces, from a text file. Each
// line of the file is one search: "VARIANT SPACE SEED N N N …", where SPACE is the name of the
// space's file without its ending and each N is the number of a candidate, counted from 1.
// scripts/kernel-tuner-orders.py writes such files. It knows nothing of the spaces themselves.
#ifndef REPLAY_SEQUENCES_H
#define REPLAY_SEQUENCES_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

#define SEQUENCES_FILE_MAX ((size_t)256 << 20) // bytes
#define SEQUENCES_VARIANT_MAX 63               // bytes of a variant's name

struct sequences;

struct sequence {
    const char *variant, *space;
    uint64_t seed;
    uint64_t *candidate; // numbers, counted from 1
    size_t count;
};

// Reads a file; the caller frees *ret. ERR_NOT_FOUND, ERR_LIMIT or ERR_SYSTEM when it cannot be
// read. ERR_INVALID names the line that cannot be parsed or that repeats the search of an earlier
// line.
MUST_CHECK int sequences_read(struct sequences **ret, const char *path, struct err *err);
void sequences_free(struct sequences *sequences); // NULL is fine

// Returns the name of variant i, in the order of their first appearance; NULL after the last one.
const char *sequences_variant(const struct sequences *sequences, size_t i);
// Returns the sequence of a search; NULL when the file has none.
const struct sequence *sequences_find(const struct sequences *sequences, const char *variant,
                                      const char *space, uint64_t seed);

#endif
