// In which order other programs measured the candidates of spaces: a text file with one line for each
// search, "ARM SPACE SEED N N N …", where SPACE is the name of the space's file without its ending and N
// numbers of candidates from 1. scripts/kernel-tuner-orders.py writes such lines.
#ifndef REPLAY_ORDERS_H
#define REPLAY_ORDERS_H

#include "common/err.h"
#include <stddef.h>
#include <stdint.h>

#define ORDERS_FILE_MAX ((size_t)256 << 20) // bytes
#define ORDERS_VARIANT_MAX 63               // bytes of an variant's name

struct orders;

struct order {
    const char *variant, *space;
    uint64_t seed;
    uint64_t *candidate; // from 1
    size_t count;
};

// ERR_NOT_FOUND, ERR_LIMIT or ERR_SYSTEM for a file that cannot be read; ERR_INVALID names the line that is
// no such line, or tells of a search that an earlier line has told of.
MUST_CHECK int orders_read(struct orders **ret, const char *path, struct err *err);
void orders_free(struct orders *orders); // NULL is fine

// The names of variants, in order of first appearance; NULL from the last on.
const char *orders_arm(const struct orders *orders, size_t i);
// NULL when there is none.
const struct order *orders_find(const struct orders *orders, const char *variant, const char *space,
                                uint64_t seed);

#endif
