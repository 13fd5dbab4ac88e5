// The buffer grows by doubling up to its bound. An append happens whole or not at all. After the
// first append that did not fit all later ones are dropped too, so that a truncated text is a
// prefix of the full one.
#include "common/strbuf.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE ((size_t)64)

void strbuf_init(struct strbuf *buf, size_t max)
{
    // The bound leaves room for the NUL in a size_t, whatever the caller asks for.
    *buf = (struct strbuf){.max = max < SIZE_MAX / 4 ? max : SIZE_MAX / 4};
}

void strbuf_release(struct strbuf *buf)
{
    if (buf) {
        free(buf->data);
        *buf = (struct strbuf){.max = buf->max};
    }
}

void strbuf_reset(struct strbuf *buf)
{
    buf->len = 0;
    buf->truncated = false;
    if (buf->data) {
        buf->data[0] = '\0';
    }
}

// Makes room for extra bytes and the NUL. Returns false and sets truncated when that would exceed
// max.
static bool grow(struct strbuf *buf, size_t extra)
{
    if (buf->truncated || extra > buf->max || buf->len > buf->max - extra) {
        buf->truncated = true;
        return false;
    }
    size_t need = buf->len + extra + 1;
    if (need <= buf->size) {
        return true;
    }
    size_t size = buf->size ? buf->size : FIRST_SIZE;
    while (size < need) {
        size *= 2;
    }
    if (size > buf->max + 1) {
        size = buf->max + 1;
    }
    buf->data = xrealloc(buf->data, size, 1);
    buf->size = size;
    return true;
}

void strbuf_add(struct strbuf *buf, const void *data, size_t len)
{
    if (!grow(buf, len)) {
        return;
    }
    if (len > 0) {
        memcpy(buf->data + buf->len, data, len);
    }
    buf->len += len;
    buf->data[buf->len] = '\0';
}

void strbuf_adds(struct strbuf *buf, const char *text)
{
    strbuf_add(buf, text, strlen(text));
}

void strbuf_addc(struct strbuf *buf, char c)
{
    strbuf_add(buf, &c, 1);
}

void strbuf_addf(struct strbuf *buf, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    strbuf_vaddf(buf, format, args);
    va_end(args);
}

void strbuf_vaddf(struct strbuf *buf, const char *format, va_list args)
{
    size_t room = buf->size - buf->len;

    if (buf->truncated) {
        return;
    }
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(buf->data ? buf->data + buf->len : NULL, room, format, args);
    if (len < 0 || !grow(buf, (size_t)len)) {
        // The attempt above may have written a part of the text: cut it off again.
        buf->truncated = true;
        if (buf->data) {
            buf->data[buf->len] = '\0';
        }
    } else {
        if ((size_t)len >= room) {
            (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, again);
        }
        buf->len += (size_t)len;
    }
    va_end(again);
}

const char *strbuf_text(const struct strbuf *buf)
{
    return buf->data ? buf->data : "";
}

char *strbuf_detach(struct strbuf *buf)
{
    char *text = buf->data ? buf->data : xstrdup("");

    *buf = (struct strbuf){.max = buf->max};
    return text;
}

struct bytes strbuf_detach_bytes(struct strbuf *buf)
{
    struct bytes bytes = {.data = (unsigned char *)buf->data, .len = buf->len};

    *buf = (struct strbuf){.max = buf->max};
    return bytes;
}
