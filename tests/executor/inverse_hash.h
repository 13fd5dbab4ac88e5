// The inverse of the hash that contents are made by, as a candidate would have it. For tests, so it
// is a header only.
#ifndef TESTS_EXECUTOR_INVERSE_HASH_H
#define TESTS_EXECUTOR_INVERSE_HASH_H

#include <stdint.h>

static inline uint64_t undo_shift(uint64_t z, int shift)
{
    uint64_t x = z;

    for (int known = shift; known < 64; known += shift) {
        x = z ^ x >> shift;
    }
    return x;
}

// Returns x with x * odd == z.
static inline uint64_t divide(uint64_t z, uint64_t odd)
{
    uint64_t inverse = odd;

    for (int bits = 3; bits < 64; bits *= 2) {
        inverse *= 2 - odd * inverse;
    }
    return z * inverse;
}

// Returns the key for which inputs_bits(key, counter), s of docs/problems.md, is bits.
static inline uint64_t key_of(uint64_t bits, uint64_t counter)
{
    uint64_t z = divide(undo_shift(bits, 31), 0x94d049bb133111ebULL);

    z = undo_shift(divide(undo_shift(z, 27), 0xbf58476d1ce4e5b9ULL), 30);
    return z - (counter + 1) * 0x9e3779b97f4a7c15ULL;
}

#endif
