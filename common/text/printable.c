#include "common/printable.h"

#include "common/utf8.h"
#include <stdarg.h>
#include <string.h>

// The number of the valid UTF-8 character of this length.
static unsigned code_point(const unsigned char *text, size_t len)
{
    unsigned code = len == 1 ? text[0] : text[0] & (0xFFu >> (len + 1));

    for (size_t i = 1; i < len; i++) {
        code = code << 6 | (text[i] & 0x3Fu);
    }
    return code;
}

static bool is_obeyed(unsigned code)
{
    return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x061C || code == 0x200E ||
           code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

size_t printable_length(const unsigned char *text, size_t left)
{
    size_t len = utf8_length(text, left);

    return len > 0 && !is_obeyed(code_point(text, len)) ? len : 0;
}

int printable_check(const char *what, const char *text, struct err *err)
{
    size_t len = strlen(text);

    for (size_t at = 0, step; at < len; at += step) {
        const unsigned char *here = (const unsigned char *)text + at;
        step = printable_length(here, len - at);
        if (step == 0) {
            struct strbuf shown;
            strbuf_init(&shown, 100);
            printable_add(&shown, text, len < 40 ? len : 40);
            int rc = err_set(err, ERR_INVALID,
                             "%s, \"%s\", has a control character or is not UTF-8 (byte %zu is "
                             "0x%02x); use printable characters",
                             what, strbuf_text(&shown), at + 1, *here);
            strbuf_release(&shown);
            return rc;
        }
    }
    return 0;
}

size_t printable_put(char out[static 4], const unsigned char *text, size_t left, size_t *ret_read)
{
    static const char hex[] = "0123456789abcdef";
    size_t len = printable_length(text, left);

    if (len > 0) {
        memcpy(out, text, len);
        *ret_read = len;
        return len;
    }
    *ret_read = 1;
    out[0] = '\\';
    if (text[0] == '\n' || text[0] == '\t' || text[0] == '\r') {
        out[1] = text[0] == '\n' ? 'n' : text[0] == '\t' ? 't' : 'r';
        return 2;
    }
    out[1] = 'x';
    out[2] = hex[text[0] >> 4];
    out[3] = hex[text[0] & 15];
    return 4;
}

void printable_add(struct strbuf *out, const char *text, size_t len)
{
    for (size_t at = 0, read; at < len; at += read) {
        char piece[4];

        strbuf_add(out, piece,
                   printable_put(piece, (const unsigned char *)text + at, len - at, &read));
    }
}

void printable_add_lines(struct strbuf *out, const char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        size_t plain = 0;
        while (at + plain < len && text[at + plain] != '\n' && text[at + plain] != '\t') {
            plain++;
        }
        printable_add(out, text + at, plain);
        at += plain;
        if (at < len) {
            strbuf_addc(out, text[at++]);
        }
    }
}

void printable_add_json(struct strbuf *out, const char *json, size_t len)
{
    for (size_t at = 0; at < len;) {
        const unsigned char *here = (const unsigned char *)json + at;
        size_t valid = utf8_length(here, len - at);

        if (*here == '\n' || printable_length(here, len - at) > 0) {
            strbuf_add(out, here, valid);
        } else if (valid == 0) { // never from a writer of JSON
            strbuf_adds(out, "\\ufffd");
            valid = 1;
        } else { // every character that is obeyed has four hexadecimal digits at most
            strbuf_addf(out, "\\u%04x", code_point(here, valid));
        }
        at += valid;
    }
}

void printable_clean(char *text, size_t len)
{
    for (size_t at = 0; at < len;) {
        const unsigned char *here = (const unsigned char *)text + at;
        size_t step = *here == '\n' || *here == '\t' ? 1 : printable_length(here, len - at);

        if (step == 0) {
            text[at] = '?';
            step = 1;
        }
        at += step;
    }
}

void printable_printf(FILE *file, const char *format, ...)
{
    size_t lines_before = strspn(format, "\n"), lines_after = 0, len = strlen(format);
    struct strbuf text = STRBUF_INIT, shown = STRBUF_INIT;
    va_list args;

    while (lines_after < len - lines_before && format[len - lines_after - 1] == '\n') {
        lines_after++;
    }
    va_start(args, format);
    strbuf_vaddf(&text, format, args);
    va_end(args);
    if (text.len < lines_before + lines_after) { // longer than any buffer, or no format
        strbuf_release(&text);
        strbuf_adds(&text, "(a text that cannot be shown)\n");
        lines_before = 0;
        lines_after = 1;
    }
    strbuf_add(&shown, strbuf_text(&text), lines_before);
    printable_add(&shown, strbuf_text(&text) + lines_before, text.len - lines_before - lines_after);
    strbuf_add(&shown, strbuf_text(&text) + text.len - lines_after, lines_after);
    (void)fwrite(strbuf_text(&shown), 1, shown.len, file);
    strbuf_release(&text);
    strbuf_release(&shown);
}

void printable_print_lines(FILE *file, const char *text)
{
    struct strbuf shown = STRBUF_INIT;

    printable_add_lines(&shown, text, strlen(text));
    (void)fwrite(strbuf_text(&shown), 1, shown.len, file);
    strbuf_release(&shown);
}
