// What cannot be told for sure stays as it is: from there on the text is copied (copy_rest).
#include "problem/normalised_python.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define NESTED_MAX 16 // f-strings and their fields inside of each other

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

// How many brackets are open behind this character.
static size_t depth_behind(size_t depth, char c)
{
    bool opens = c == '(' || c == '[' || c == '{', closes = c == ')' || c == ']' || c == '}';

    return depth + opens - (closes && depth > 0);
}

static void put(struct scan *scan, char c)
{
    strbuf_add(scan->out, &c, 1);
    scan->last = c;
}

// Whether two characters are an operator, or the beginning of one.
static bool is_operator(char a, char c)
{
    static const char pairs[] = "**//<<>><=>===!=->:=+=-=*=/=%=@=&=|=^=..";

    for (size_t i = 0; i + 1 < sizeof(pairs); i += 2) {
        if (pairs[i] == a && pairs[i + 1] == c) {
            return true;
        }
    }
    return false;
}

// Whether a character that follows a blank would become part of what was written last without it:
// of a word, of a literal with a prefix, of a number, of a literal in three quotes, of an operator.
static bool binds(const struct scan *scan, char c)
{
    return (is_word(scan->last) && (is_word(c) || is_quote(c) || c == '.')) ||
           (scan->last == '.' && is_word(c)) || (is_quote(scan->last) && c == scan->last) ||
           is_operator(scan->last, c);
}

// Writes what stands between what was written last and this character.
static void separate(struct scan *scan, char c)
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
}

// Copies the rest of the text as it is.
static void copy_rest(struct scan *scan)
{
    if (scan->at < scan->end) {
        separate(scan, *scan->at);
    }
    strbuf_add(scan->out, scan->at, (size_t)(scan->end - scan->at));
    scan->at = scan->end;
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
    if (scan->depth > 0) {
        scan->blank = true;
    } else {
        begin_line(scan);
    }
}

// ---- literals ----

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

// Copies a backslash and what it escapes: one character, or a line end. Braces of an f-string it
// does not escape.
static void copy_escaped(struct scan *scan, bool formatted)
{
    put(scan, *scan->at++);
    if (formatted && scan->at < scan->end && (*scan->at == '{' || *scan->at == '}')) {
        return;
    }
    if (starts(scan, "\r\n", 2)) {
        put(scan, *scan->at++);
    }
    if (scan->at < scan->end) {
        put(scan, *scan->at++);
    }
}

static bool copy_field(struct scan *scan, const char *quotes, size_t len, unsigned nested);

// Copies a literal whose quote is next. An f-string has fields in braces, in which there may be
// literals with the same quotes (PEP 701). Returns whether it ends.
static bool copy_literal(struct scan *scan, unsigned nested)
{
    char quotes[] = {*scan->at, *scan->at, *scan->at};
    size_t len = starts(scan, quotes, 3) ? 3 : 1;
    bool formatted = is_formatted(scan), ends = nested < NESTED_MAX;

    for (size_t i = 0; i < len; i++) {
        put(scan, *scan->at++);
    }
    while (ends && !starts(scan, quotes, len)) {
        char c = scan->at < scan->end ? *scan->at : '\0';

        if (scan->at == scan->end || (len == 1 && c == '\n')) {
            ends = false;
        } else if (c == '\\') {
            copy_escaped(scan, formatted);
        } else if (formatted && starts(scan, "{{", 2)) {
            put(scan, *scan->at++);
            put(scan, *scan->at++);
        } else if (formatted && c == '{') {
            ends = copy_field(scan, quotes, len, nested + 1);
        } else {
            put(scan, *scan->at++);
        }
    }
    for (size_t i = 0; i < len && ends; i++) {
        put(scan, *scan->at++);
    }
    return ends;
}

// Copies how a field is to be written, up to the brace that ends it: text, with fields in it.
static bool copy_format(struct scan *scan, const char *quotes, size_t len, unsigned nested)
{
    while (scan->at < scan->end && *scan->at != '}') {
        if (starts(scan, quotes, len) || (len == 1 && *scan->at == '\n')) {
            return false;
        }
        if (*scan->at != '{') {
            put(scan, *scan->at++);
        } else if (!copy_field(scan, quotes, len, nested + 1)) {
            return false;
        }
    }
    return scan->at < scan->end;
}

// Copies a field of an f-string with these quotes, from its brace to the one that ends it: an
// expression, and after a colon how it is to be written.
static bool copy_field(struct scan *scan, const char *quotes, size_t len, unsigned nested)
{
    size_t depth = 0;

    put(scan, *scan->at++);
    while (nested < NESTED_MAX && scan->at < scan->end) {
        char c = *scan->at;

        if (c == '#' || c == '\\') { // a comment, or a line that goes on: seldom, and hard to tell
            return false;
        }
        if (is_quote(c)) {
            if (!copy_literal(scan, nested + 1)) {
                return false;
            }
            continue;
        }
        if (depth == 0 && c == ':' && !copy_format(scan, quotes, len, nested)) {
            return false;
        }
        c = *scan->at;
        put(scan, *scan->at++);
        if (depth == 0 && c == '}') {
            return true;
        }
        depth = depth_behind(depth, c);
    }
    return false;
}

// ---- the whole ----

static void skip_comment(struct scan *scan)
{
    while (scan->at < scan->end && *scan->at != '\n') {
        scan->at++;
    }
    scan->blank = true;
}

// The byte behind the line end that this backslash continues; NULL when it continues none.
static const char *continued(const struct scan *scan)
{
    return starts(scan, "\\\n", 2) ? scan->at + 2 : starts(scan, "\\\r\n", 3) ? scan->at + 3 : NULL;
}

// Whether a text has what changes the meaning of blanks or of bytes: carriage returns that end a
// line by themselves, form feeds, which begin columns anew, or the name of an encoding.
static bool is_odd(const char *source, size_t len)
{
    size_t lines = 0;

    for (size_t i = 0; i < len; i++) {
        bool alone = source[i] == '\r' && (i + 1 == len || source[i + 1] != '\n');

        if (alone || source[i] == '\f' || source[i] == '\v' || source[i] == '\0') {
            return true;
        }
        lines += source[i] == '\n';
        if (lines < 2 && len - i >= 6 && memcmp(source + i, "coding", 6) == 0) {
            return true;
        }
    }
    return false;
}

static void scan_token(struct scan *scan)
{
    char c = *scan->at;
    const char *after = continued(scan);

    if (c == '\n') {
        end_line(scan);
    } else if (after && scan->line && scan->depth == 0) {
        copy_rest(scan); // the indentation may be that of the next line
    } else if (after) {
        scan->at = after;
        scan->blank = true;
    } else if (isspace((unsigned char)c)) {
        scan->at++;
        scan->blank = true;
    } else if (c == '#') {
        skip_comment(scan);
    } else if (is_quote(c)) {
        separate(scan, c);
        if (!copy_literal(scan, 0)) {
            copy_rest(scan);
        }
    } else {
        separate(scan, c);
        put(scan, c);
        scan->depth = depth_behind(scan->depth, c);
        scan->at++;
    }
}

void python_normalise(struct strbuf *out, const char *source, size_t len)
{
    struct scan scan = {.out = out, .begin = source, .at = source, .end = source + len};

    if (is_odd(source, len)) {
        strbuf_add(out, source, len);
        return;
    }
    begin_line(&scan);
    while (scan.at < scan.end) {
        scan_token(&scan);
    }
}
