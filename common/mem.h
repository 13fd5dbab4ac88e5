// Memory for small control objects: allocation either succeeds or ends the program. Sizes that come from the wire, from
// disk or from a child go through mem_try_alloc with an explicit limit instead.
#ifndef COMMON_MEM_H
#define COMMON_MEM_H

#include "common/err.h"
#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *pointer, size_t count, size_t size); // checks count * size
// Room for one more element in an array that has grown by this function alone: the array, moved when
// count is a power of two and its room therefore used up. The new room is not zeroed.
void *xgrow(void *array, size_t count, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t max);
void *xmemdup(const void *data, size_t len);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Zeroed memory of count * size bytes into *ret, at most limit bytes; ERR_LIMIT naming `what` otherwise. count 0 gives NULL.
MUST_CHECK int mem_try_alloc(void **ret, size_t count, size_t size, size_t limit, const char *what,
                             struct err *err);

// Owned bytes. data may be NULL only when len is 0.
struct bytes {
    unsigned char *data; // malloc'd
    size_t len;          // in bytes
};

struct bytes bytes_copy(const void *data, size_t len);
void bytes_clear(struct bytes *bytes); // frees and zeroes

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#endif
