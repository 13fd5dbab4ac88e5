// A tensor in memory that the harness shares with runners: a sealed memfd with guard zones.
//
//   | unused | guard (4 KiB) | tensor, 64-byte aligned | guard (at least 4 KiB, to the end) |
//
// Runners have unmapped pages beyond both ends. The tensor lies near the end of the memory, so that
// an overrun in a small case runs into a guard and then into unmapped pages, as in the largest
// case. The harness calls this. It must not know what the values mean.
//
// A processor takes a load for one of an earlier store's value when both are at the same place
// within 4 KiB, until it has compared the whole addresses (4 KiB aliasing: Intel 64 and IA-32
// Architectures Optimization Reference Manual), and some for longer where the physical addresses
// agree in more bits, which they do by chance. So tensors of the same size that all ended at the
// same place would make a kernel that goes through them in step slower than one that works in
// memory of its own, in some measurements by a factor of two. The skew keeps them apart.
#ifndef EXECUTOR_CPU_BUFFER_H
#define EXECUTOR_CPU_BUFFER_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_GUARD ((size_t)4096)
#define BUFFER_SKEW_MAX ((size_t)4096) // bytes; every skew is smaller

struct buffer {
    int fd;             // -1: none
    size_t size;        // mapped bytes
    unsigned char *map; // the harness's own mapping, read and write
    bool sealed;        // the kernel guarantees that no later mapping is writable
    size_t offset;      // where the current case's tensor begins
    size_t bytes;       // length of the current case's tensor
};

// Makes room for tensors of up to capacity bytes. A read_only buffer is for inputs and is sealed
// where the kernel can do that (Linux 5.1). Release the buffer after a failure too.
MUST_CHECK int buffer_create(struct buffer *buffer, size_t capacity, bool read_only,
                             struct err *err);
void buffer_release(struct buffer *buffer);

// Returns the skew of one of count tensors, a multiple of 64: evenly spaced over 4 KiB.
size_t buffer_skew(size_t index, size_t count);
// Places a tensor of this many bytes, so many more bytes before the end as skew says: sets offset
// and bytes, and fills the guards with a pattern of words that are NaN for either float type and
// depend on a key. Code that reads them computes NaN, and code that writes them cannot guess what
// to restore.
void buffer_place(struct buffer *buffer, size_t bytes, size_t skew, uint64_t key);
// Fills what lies before the guards with the same pattern.
void buffer_fill_unused(const struct buffer *buffer, uint64_t key);
unsigned char *buffer_tensor(const struct buffer *buffer);
// Whether the guards on both sides of the tensor, or those and everything before them, are as they
// were filled.
bool buffer_guard_intact(const struct buffer *buffer, uint64_t key);
bool buffer_pattern_intact(const struct buffer *buffer, uint64_t key);

// Fills count bytes with NaN words that depend on the key: NaN as f32 and as f64, arbitrary values
// as integers.
void buffer_fill_nan(unsigned char *out, size_t count, uint64_t key);

#endif
