// A growing buffer of text or bytes with an upper bound. Its data always end in a NUL that len does
// not count. An append that would exceed `max` is dropped and sets `truncated`, and so are all
// later ones. Appends never fail otherwise. Their arguments must not point into the buffer itself,
// which may move.
#ifndef COMMON_STRBUF_H
#define COMMON_STRBUF_H

#include "common/mem.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf {
    char *data;     // malloc'd; NULL until something was appended
    size_t len;     // bytes in use, without the NUL
    size_t size;    // bytes allocated
    size_t max;     // upper bound of len
    bool truncated; // an append was dropped
};

#define STRBUF_DEFAULT_MAX ((size_t)64 << 20)
#define STRBUF_INIT                                                                                \
    {                                                                                              \
        .max = STRBUF_DEFAULT_MAX                                                                  \
    }

// Makes an empty buffer of at most max bytes. STRBUF_INIT does the same with the default bound.
void strbuf_init(struct strbuf *buf, size_t max);
// Frees the data. The buffer is empty then and can be used again. NULL is allowed.
void strbuf_release(struct strbuf *buf);
// Empties the buffer and keeps its memory.
void strbuf_reset(struct strbuf *buf);
void strbuf_add(struct strbuf *buf, const void *data, size_t len);
void strbuf_adds(struct strbuf *buf, const char *text);
void strbuf_addc(struct strbuf *buf, char c);
void strbuf_addf(struct strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
// The text, "" when the buffer is empty. Valid until the next append.
const char *strbuf_text(const struct strbuf *buf);
// Hands the text to the caller, who frees it. The buffer is empty afterwards.
char *strbuf_detach(struct strbuf *buf);
struct bytes strbuf_detach_bytes(struct strbuf *buf);

#endif
