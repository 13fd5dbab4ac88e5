// An allocation that fails ends the program at once with a line on stderr. Only mem_try_alloc, for
// sizes that somebody else chose, returns an error.
#include "common/mem.h"
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_BUFFER (1 << 20) // bytes, from which on a buffer has pages of its own
#define KEPT_MAX (8 << 20)     // bytes at the top of the heap that are kept

// Writes without stdio, which may need memory itself.
__attribute__((noreturn)) static void out_of_memory(void)
{
    static const char text[] = "out of memory\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);

    (void)ignored;
    abort();
}

// count * size. Ends the program when that overflows.
static size_t product(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total)) {
        out_of_memory();
    }
    return total;
}

void *xmalloc(size_t size)
{
    void *pointer = malloc(size ? size : 1);

    if (!pointer) {
        out_of_memory();
    }
    return pointer;
}

void *xcalloc(size_t count, size_t size)
{
    size_t total = product(count, size);
    void *pointer = calloc(1, total ? total : 1);

    if (!pointer) {
        out_of_memory();
    }
    return pointer;
}

void *xrealloc(void *pointer, size_t count, size_t size)
{
    size_t total = product(count, size);
    void *moved = realloc(pointer, total ? total : 1);

    if (!moved) {
        out_of_memory();
    }
    return moved;
}

void *xgrow(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) { // an array of 0 or a power of two elements is full
        return array;
    }
    return xrealloc(array, count > 0 ? product(count, 2) : 1, size);
}

char *xstrdup(const char *text)
{
    return xmemdup(text, strlen(text) + 1);
}

char *xstrndup(const char *text, size_t max)
{
    size_t len = strnlen(text, max);
    char *copy = xmalloc(len + 1);

    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

void *xmemdup(const void *data, size_t len)
{
    void *copy = xmalloc(len);

    if (len > 0) {
        memcpy(copy, data, len);
    }
    return copy;
}

char *xasprintf(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = NULL;
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) {
        out_of_memory();
    }
    return text;
}

int mem_try_alloc(void **ret, size_t count, size_t size, size_t limit, const char *what,
                  struct err *err)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total) || total > limit) {
        return err_set(err, ERR_LIMIT, "%s: %zu times %zu bytes is more than the %zu bytes allowed",
                       what, count, size, limit);
    }
    if (total == 0) {
        *ret = NULL;
        return 0;
    }
    void *pointer = calloc(1, total);
    if (!pointer) {
        return err_set_errno(err, ERR_SYSTEM, ENOMEM, "%s: %zu bytes", what, total);
    }
    *ret = pointer;
    return 0;
}

struct bytes bytes_copy(const void *data, size_t len)
{
    struct bytes copy = {0};

    if (len > 0) {
        copy.data = xmemdup(data, len);
        copy.len = len;
    }
    return copy;
}

struct bytes bytes_take(struct bytes *bytes)
{
    struct bytes taken = *bytes;

    *bytes = (struct bytes){0};
    return taken;
}

void bytes_clear(struct bytes *bytes)
{
    if (bytes) {
        free(bytes->data);
        *bytes = (struct bytes){0};
    }
}

void mem_reuse_buffers(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BUFFER);
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_MAX);
}
