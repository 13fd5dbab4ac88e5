// A tensor in memory that the harness shares with runners: a sealed memfd with guard zones.
//
//   | unused | guard (4 KiB) | tensor, 64-byte aligned | guard (at least 4 KiB, to the end) |
//
// Runners have unmapped pages beyond both ends. The tensor lies at the end of the memory, so that
// an overrun in a small case runs into a guard and then into unmapped pages, as in the largest
// case. The harness calls this. It must not know what the values mean.
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

// Places a tensor of this many bytes: sets offset and bytes, and fills the guards with a pattern of
// words that are NaN for either float type and depend on a key. Code that reads them computes NaN,
// and code that writes them cannot guess what to restore.
void buffer_place(struct buffer *buffer, size_t bytes, uint64_t key);
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
