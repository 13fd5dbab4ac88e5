#include "common/wrap.h"

#include "common/parse.h"
#include "common/printable.h"
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define WIDTH_MIN 20
#define WIDTH_MAX 1000000
#define RIGHT_MIN 24    // columns of the right one of two columns, or it is no column
#define NARROW_INDENT 6 // of what stands below the left one then

size_t wrap_width(FILE *out)
{
    const char *columns = getenv("COLUMNS");
    struct winsize window;
    uint64_t width;

    if (columns && parse_u64(&width, columns, WIDTH_MIN, WIDTH_MAX, "COLUMNS", NULL) == 0) {
        return (size_t)width;
    }
    if (ioctl(fileno(out), TIOCGWINSZ, &window) == 0 && window.ws_col >= WIDTH_MIN) {
        return window.ws_col;
    }
    return WRAP_WIDTH_DEFAULT;
}

static size_t columns_of(const char *text, size_t len)
{
    size_t columns = 0;

    for (size_t i = 0; i < len; i++) {
        columns += ((unsigned char)text[i] & 0xc0) != 0x80; // not the later bytes of a character
    }
    return columns;
}

size_t wrap_columns(const char *text)
{
    return columns_of(text, strlen(text));
}

static void add_blanks(struct strbuf *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_addc(out, ' ');
    }
}

void wrap_add(struct strbuf *out, const char *text, size_t at, size_t indent, size_t width)
{
    size_t blanks = 0; // that stand before the next word if it comes into this line
    bool first = true; // nothing of the text stands in this line yet

    while (*text != '\0') {
        if (*text == '\n') {
            strbuf_addc(out, '\n');
            at = blanks = 0;
            first = true;
            text++;
            if (*text != '\0' && *text != '\n') {
                add_blanks(out, indent);
                at = indent;
            }
            continue;
        }
        if (*text == ' ') {
            blanks++;
            text++;
            continue;
        }
        size_t len = strcspn(text, " \n");
        size_t columns = columns_of(text, len);
        if (!first && at + blanks + columns > width) {
            strbuf_addc(out, '\n');
            add_blanks(out, indent);
            at = indent;
            blanks = 0;
        }
        add_blanks(out, blanks);
        strbuf_add(out, text, len);
        at += blanks + columns;
        blanks = 0;
        first = false;
        text += len;
    }
}

void wrap_print(FILE *out, const char *text)
{
    struct strbuf wrapped = STRBUF_INIT;

    wrap_add(&wrapped, text, 0, 0, wrap_width(out));
    printable_print_lines(out, strbuf_text(&wrapped));
    strbuf_release(&wrapped);
}

void wrap_print_columns(FILE *out, const char *left, size_t indent, const char *right, size_t width)
{
    struct strbuf line = STRBUF_INIT;
    size_t columns = wrap_columns(left);

    if (width < indent + RIGHT_MIN) {
        indent = NARROW_INDENT;
    }
    strbuf_adds(&line, left);
    if (columns + 2 > indent) {
        strbuf_addc(&line, '\n');
        columns = 0;
    }
    add_blanks(&line, indent - columns);
    wrap_add(&line, right, indent, indent, width);
    strbuf_addc(&line, '\n');
    printable_print_lines(out, strbuf_text(&line));
    strbuf_release(&line);
}
