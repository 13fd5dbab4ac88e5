#include "problem/normalised_python.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

struct scan {
    struct strbuf *out;
    const char *begin;  // of the source
    const char *at;     // next byte of the source
    const char *end;    // behind its last byte
    const char *indent; // where the line begins that nothing was written of yet
    size_t indent_len;  // of the blanks that it begins with
    size_t depth;       // of brackets that are open
    char last;          // the character that was written last, 0: none
    bool line;          // a line has begun since then
    bool blank;         // blanks or a comment were left out since then
    bool formatted;     // an f-string has begun on this line
};

// Bytes of other alphabets are parts of words, too.
static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_quote(char c)
{
    return c == '"' || c == '\'';
}

static void put(struct scan *scan, char c)
{
    strbuf_add(scan->out, &c, 1);
    scan->last = c;
}

// Whether a character that follows a blank would become part of what was written last without it:
// of a word, of a literal with a prefix, of a number, or of a literal in three quotes.
static bool binds(const struct scan *scan, char c)
{
    return (is_word(scan->last) && (is_word(c) || is_quote(c) || c == '.')) ||
           (is_quote(scan->last) && c == scan->last);
}

static void write_char(struct scan *scan, char c)
{
    if (scan->line) {
        if (scan->last != '\0') {
            put(scan, '\n');
        }
        strbuf_add(scan->out, scan->indent, scan->indent_len);
    } else if (scan->blank && binds(scan, c)) {
        put(scan, ' ');
    }
    scan->line = scan->blank = false;
    put(scan, c);
}

// Begins the line at hand: its blanks count if it turns out to have anything else.
static void begin_line(struct scan *scan)
{
    scan->indent = scan->at;
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t')) {
        scan->at++;
    }
    scan->indent_len = (size_t)(scan->at - scan->indent);
    scan->line = true;
}

static void end_line(struct scan *scan)
{
    scan->at++;
    scan->formatted = false;
    if (scan->depth > 0) {
        scan->blank = true;
    } else {
        begin_line(scan);
    }
}

static bool starts(const struct scan *scan, const char *text, size_t len)
{
    return (size_t)(scan->end - scan->at) >= len && memcmp(scan->at, text, len) == 0;
}

// Whether the literal whose quote is next has an f in front of it.
static bool is_formatted(const struct scan *scan)
{
    const char *at = scan->at;

    if (at - scan->begin > 1 && (at[-1] == 'r' || at[-1] == 'R')) {
        at--;
    }
    return at > scan->begin && (at[-1] == 'f' || at[-1] == 'F');
}

static void copy_literal(struct scan *scan)
{
    char quotes[] = {*scan->at, *scan->at, *scan->at};
    size_t len = starts(scan, quotes, 3) ? 3 : 1;

    scan->formatted |= is_formatted(scan);
    write_char(scan, *scan->at++);
    for (size_t i = 1; i < len; i++) {
        put(scan, *scan->at++);
    }
    while (scan->at < scan->end && !starts(scan, quotes, len) && (len == 3 || *scan->at != '\n')) {
        if (*scan->at == '\\' && scan->at + 1 < scan->end) {
            put(scan, *scan->at++);
        }
        put(scan, *scan->at++);
    }
    bool closed = starts(scan, quotes, len);
    for (size_t i = 0; i < len && closed; i++) {
        put(scan, *scan->at++);
    }
    scan->depth = closed ? scan->depth : 0; // what comes must not get into it
}

// Leaves a comment out. What seems to be one behind an f-string may be a part of it.
static void skip_comment(struct scan *scan)
{
    while (scan->at < scan->end && *scan->at != '\n') {
        if (scan->formatted) {
            write_char(scan, *scan->at);
        }
        scan->at++;
    }
    scan->blank = true;
    scan->depth = scan->formatted ? 0 : scan->depth; // what comes must not get into it
}

// The byte behind the line end that this backslash continues; NULL when it continues none.
static const char *continued(const struct scan *scan)
{
    return starts(scan, "\\\n", 2) ? scan->at + 2 : starts(scan, "\\\r\n", 3) ? scan->at + 3 : NULL;
}

void python_normalise(struct strbuf *out, const char *source, size_t len)
{
    struct scan scan = {.out = out, .begin = source, .at = source, .end = source + len};

    begin_line(&scan);
    while (scan.at < scan.end) {
        char c = *scan.at;
        const char *after = continued(&scan);

        if (c == '\n') {
            end_line(&scan);
        } else if (after) {
            scan.at = after;
            scan.blank = true;
        } else if (isspace((unsigned char)c)) {
            scan.at++;
            scan.blank = true;
        } else if (c == '#') {
            skip_comment(&scan);
        } else if (is_quote(c)) {
            copy_literal(&scan);
        } else {
            write_char(&scan, c);
            scan.depth += c == '(' || c == '[' || c == '{';
            scan.depth -= (c == ')' || c == ']' || c == '}') && scan.depth > 0;
            scan.at++;
        }
    }
}
