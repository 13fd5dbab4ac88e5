// A tensor in memory that harness and runners share: a sealed memfd with guard zones.
//
//   | … | guard (4 KiB) | tensor, 64-byte aligned | guard (at least 4 KiB, to the end) |   and
//   unmapped pages beyond both ends
//
// The tensor lies at the end, so that a smaller case than the largest overruns into a guard and
// then into nothing.
#ifndef EXECUTOR_CPU_BUFFER_H
#define EXECUTOR_CPU_BUFFER_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_GUARD ((size_t)4096)

struct buffer {
    int fd;             // -1: none
    size_t size;        // mapped bytes
    unsigned char *map; // the harness's mapping, read and write
    bool sealed;        // no later mapping of it can be writable: the kernel vouches for it
    size_t offset;      // of the tensor of the current case
    size_t bytes;       // of the tensor of the current case
};

// Room for tensors of up to capacity bytes. read_only: for inputs, sealed where the kernel can
// (5.1).
MUST_CHECK int buffer_create(struct buffer *buffer, size_t capacity, bool read_only,
                             struct err *err);
void buffer_release(struct buffer *buffer);

// Places a tensor of this many bytes; sets offset and bytes and fills both guards.
void buffer_place(struct buffer *buffer, size_t bytes, uint64_t key);
unsigned char *buffer_tensor(const struct buffer *buffer);

// Guards are words of NaN for either float type, keyed, so that what reads them shows and what
// writes them is seen.
void buffer_guard_fill(const struct buffer *buffer, uint64_t key);
bool buffer_guard_intact(const struct buffer *buffer, uint64_t key);

// Fills count bytes with keyed NaN words (NaN as f32 and as f64, garbage as integers).
void buffer_fill_nan(unsigned char *out, size_t count, uint64_t key);

#endif
