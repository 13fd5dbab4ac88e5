// Formatting of struct err and lookups in ERR_CODES. Nothing here allocates, so that errors can be
// reported when memory is short. All formatting goes through a local buffer first, because callers
// may pass err->text itself as an argument: err_wrap does, and so does code that quotes an earlier
// error.
#include "common/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct err_row {
    const char *name;    // on the wire and in --json
    const char *meaning; // for people
    int exit;            // exit code of a program
};

static const struct err_row table[] = {
#define X(id, name, exit, text) [ERR_INDEX_##id] = {name, text, exit},
    ERR_CODES(X)
#undef X
};

// The row of an error code, NULL when it is none.
static const struct err_row *find(int code)
{
    if (code >= 0 || code < -(int)ERR_COUNT) {
        return NULL;
    }
    return &table[-1 - code];
}

// The largest length up to max at which text can be cut without splitting a UTF-8 sequence.
static size_t cut_at_character(const char *text, size_t max)
{
    size_t len = max;

    while (len > 0 && max - len < 3 && ((unsigned char)text[len] & 0xC0) == 0x80) {
        len--;
    }
    // A run of continuation bytes without a leading byte is not UTF-8: cut anywhere.
    return ((unsigned char)text[len] & 0xC0) == 0x80 ? max : len;
}

// Appends text to out, a buffer of ERR_TEXT_MAX bytes of which *len are used. Cuts at a character
// what does not fit. Newlines become spaces, because the text of an error is one line, whatever a
// compiler or a peer wrote.
static void append(char *out, size_t *len, const char *text)
{
    size_t room = ERR_TEXT_MAX - 1 - *len;
    size_t n = strlen(text);

    if (n > room) {
        n = cut_at_character(text, room);
    }
    for (size_t i = 0; i < n; i++) {
        out[*len + i] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    }
    *len += n;
    out[*len] = '\0';
}

__attribute__((format(printf, 3, 0))) static void append_format(char *out, size_t *len,
                                                                const char *format, va_list args)
{
    // Four bytes more than err holds, so that append() sees the byte after the cut.
    char piece[ERR_TEXT_MAX + 4];

    if (vsnprintf(piece, sizeof(piece), format, args) < 0) {
        append(out, len, "(an error that cannot be formatted)");
        return;
    }
    append(out, len, piece);
}

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
    if (!err || err->code != ERR_NONE) {
        return code;
    }
    va_list args;
    va_start(args, format);
    char text[ERR_TEXT_MAX] = "";
    size_t len = 0;
    append_format(text, &len, format, args);
    va_end(args);
    memcpy(err->text, text, len + 1);
    err->code = code;
    return code;
}

int err_set_errno(struct err *err, enum err_code code, int errnum, const char *format, ...)
{
    if (errnum == ENOSPC || errnum == EDQUOT) {
        code = ERR_NO_SPACE;
    }
    if (!err || err->code != ERR_NONE) {
        return code;
    }
    va_list args;
    va_start(args, format);
    char text[ERR_TEXT_MAX] = "";
    size_t len = 0;
    append_format(text, &len, format, args);
    va_end(args);
    append(text, &len, ": ");
    char reason[128];
    append(text, &len, strerror_r(errnum, reason, sizeof(reason)));
    memcpy(err->text, text, len + 1);
    err->code = code;
    return code;
}

int err_wrap(struct err *err, const char *format, ...)
{
    if (!err) {
        return ERR_INTERNAL;
    }
    if (err->code == ERR_NONE) {
        return ERR_NONE;
    }
    va_list args;
    va_start(args, format);
    char text[ERR_TEXT_MAX] = "";
    size_t len = 0;
    append_format(text, &len, format, args);
    va_end(args);
    append(text, &len, ": ");
    append(text, &len, err->text);
    memcpy(err->text, text, len + 1);
    return err->code;
}

void err_clear(struct err *err)
{
    if (err) {
        err->code = ERR_NONE;
        err->text[0] = '\0';
    }
}

const char *err_name(int code)
{
    const struct err_row *row = find(code);

    if (code == ERR_NONE) {
        return "none";
    }
    return row ? row->name : "unknown";
}

const char *err_meaning(int code)
{
    const struct err_row *row = find(code);

    if (code == ERR_NONE) {
        return "no error";
    }
    return row ? row->meaning : "an error of unknown kind";
}

enum err_code err_from_name(const char *name)
{
    for (int i = 0; i < ERR_COUNT; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return (enum err_code)(-1 - i);
        }
    }
    return ERR_INTERNAL;
}

int err_exit(int code)
{
    const struct err_row *row = find(code);

    if (code == ERR_NONE) {
        return EXIT_OK;
    }
    return row ? row->exit : EXIT_INTERNAL;
}
