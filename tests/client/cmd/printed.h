// What a function prints to stdout or stderr, for tests of functions that print.
#ifndef TESTS_CLIENT_CMD_PRINTED_H
#define TESTS_CLIENT_CMD_PRINTED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/mem.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct printed {
    FILE *stream;    // stdout or stderr
    int saved, into; // descriptors: of the stream before, and of a file in memory
};

// Assertions wait until printed_end, because they would be caught as well.
static inline struct printed printed_begin(FILE *stream)
{
    struct printed ret = {.stream = stream};
    fflush(stream);
    ret.saved = dup(fileno(stream));
    ret.into = memfd_create("printed", MFD_CLOEXEC);
    assert_true(ret.saved >= 0 && ret.into >= 0);
    assert_true(dup2(ret.into, fileno(stream)) >= 0);
    return ret;
}

// What was printed since, malloc'd.
static inline char *printed_end(struct printed *printed)
{
    fflush(printed->stream);
    dup2(printed->saved, fileno(printed->stream));
    close(printed->saved);
    off_t len = lseek(printed->into, 0, SEEK_END);
    assert_true(len >= 0);
    char *ret = xcalloc((size_t)len + 1, 1);
    assert_int_equal(pread(printed->into, ret, (size_t)len, 0), len);
    close(printed->into);
    return ret;
}

// How often the words stand in the text.
static inline size_t printed_count(const char *text, const char *words)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, words)); at += strlen(words)) {
        count++;
    }
    return count;
}

// Fails with the whole text unless the words stand in it.
static inline void printed_has(const char *text, const char *words)
{
    if (!strstr(text, words)) {
        fail_msg("\"%s\" does not say \"%s\"", text, words);
    }
}

#endif
