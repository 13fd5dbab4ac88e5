// Memory for small control objects: an allocation succeeds or ends the program, because no caller
// of a small allocation can do anything better. Sizes that come from the wire, from disk or from a
// child process go through mem_try_alloc with an explicit limit instead.
#ifndef COMMON_MEM_H
#define COMMON_MEM_H

#include "common/err.h"
#include <stddef.h>

// These end the program when there is no memory. The caller frees what they return.
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *pointer, size_t count, size_t size); // to count * size bytes, overflow checked
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t max);
void *xmemdup(const void *data, size_t len);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Makes room for one more element in an array of count elements. The array must have been grown by
// this function alone: its room is the next power of two. Returns the array, which may have moved.
// The new room is not zeroed.
void *xgrow(void *array, size_t count, size_t size);

// Has the allocator keep freed buffers of up to a MiB for the next ones, some MiB in all, and give
// larger ones back to the system at once. By default it gives back what lies at its top with almost
// every message of 200 kB, so that each finds its pages missing, and keeps what is larger for good.
// To be called once, by main.
void mem_reuse_buffers(void);

// Allocates count * size zeroed bytes into *ret. ERR_LIMIT when that is more than limit bytes;
// `what` names the thing in the sentence. ERR_SYSTEM when there is no memory. *ret is NULL for no
// bytes.
MUST_CHECK int mem_try_alloc(void **ret, size_t count, size_t size, size_t limit, const char *what,
                             struct err *err);

// A block of bytes that its holder owns. data may be NULL only when len is 0.
struct bytes {
    unsigned char *data; // malloc'd
    size_t len;          // in bytes
};

struct bytes bytes_copy(const void *data, size_t len);
// Frees the data and zeroes *bytes. NULL is allowed.
void bytes_clear(struct bytes *bytes);
// Gives *bytes away: returns them and leaves it empty.
struct bytes bytes_take(struct bytes *bytes);

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
