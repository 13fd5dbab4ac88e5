// A growing text or byte buffer with an upper bound. Always NUL-terminated (the NUL is not counted in len). Once an
// append would pass `max` the buffer keeps what it has and sets `truncated`, and later appends are dropped too; appends never
// fail otherwise. Arguments must not point into the buffer itself.
#ifndef COMMON_STRBUF_H
#define COMMON_STRBUF_H

#include "common/mem.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct strbuf {
    char *data;     // NULL until something was appended
    size_t len;     // bytes in use, without the NUL
    size_t size;    // bytes allocated
    size_t max;     // upper bound of len
    bool truncated; // something did not fit
};

#define STRBUF_DEFAULT_MAX ((size_t)64 << 20)
#define STRBUF_INIT                                                                                \
    {                                                                                              \
        .max = STRBUF_DEFAULT_MAX                                                                  \
    }

void strbuf_init(struct strbuf *buf, size_t max);
void strbuf_release(struct strbuf *buf);
void strbuf_reset(struct strbuf *buf); // empties, keeps the memory
void strbuf_add(struct strbuf *buf, const void *data, size_t len);
void strbuf_adds(struct strbuf *buf, const char *text);
void strbuf_addc(struct strbuf *buf, char c);
void strbuf_addf(struct strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *buf, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
const char *strbuf_text(const struct strbuf *buf); // "" when empty; valid until the next append
char *strbuf_detach(struct strbuf *buf); // the text, now the caller's; the buffer is empty again
struct bytes strbuf_detach_bytes(struct strbuf *buf); // the same as bytes

#endif
