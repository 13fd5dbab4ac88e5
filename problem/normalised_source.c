#include "problem/normalised_source.h"
#include "problem/candidate_form.h"
#include "problem/normalised_python.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

struct scan {
    struct strbuf *out;
    const char *at;  // next byte of the source
    const char *end; // behind its last byte
    char last;       // the character that was written last, 0: none
    bool number;     // the character at hand belongs to a number, such as 0x1'f or 1.5
    bool was_number; // the one that was written last does
    bool blank;      // blanks or a comment were left out since then
    bool line;       // a line has ended since then
    bool directive;  // inside a line that begins with '#' or "//@", whose end must be kept
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool starts(const struct scan *scan, const char *text)
{
    size_t len = strlen(text);

    return (size_t)(scan->end - scan->at) >= len && memcmp(scan->at, text, len) == 0;
}

static void put(struct scan *scan, char c)
{
    strbuf_add(scan->out, &c, 1);
    scan->last = c;
}

// Whether a character that follows a blank would become part of what was written last without it:
// of a word, of a number with its separators, or a quote behind a word such as L.
static bool binds(const struct scan *scan, char c)
{
    bool quote = c == '\'' || c == '"';

    return (is_word(scan->last) && (is_word(c) || quote)) ||
           (scan->was_number && (is_word(c) || quote || c == '.'));
}

// Writes a character of the source. Writes a blank or a line end before it when leaving that out
// would change the meaning: where two characters would bind, between two operators that would
// become another one, in "#define F (x)".
static void write_char(struct scan *scan, char c)
{
    if (scan->directive && scan->line) {
        put(scan, '\n');
        scan->directive = false;
    } else if (scan->blank && (binds(scan, c) || (scan->last == c && strchr("+-&|<>=*/", c)) ||
                               (scan->last == '*' && c == '/') || (scan->last == '/' && c == '*') ||
                               (scan->directive && (c == '(' || is_word(scan->last))))) {
        put(scan, ' ');
    }
    scan->blank = scan->line = false;
    put(scan, c);
}

// The byte behind the line end that this backslash continues. Blanks may stand between them, as
// compilers allow. NULL when the backslash does not end its line.
static const char *line_end(const struct scan *scan)
{
    const char *at = scan->at + 1;

    while (at < scan->end && *at != '\n' && isspace((unsigned char)*at)) {
        at++;
    }
    return at < scan->end && *at == '\n' ? at + 1 : NULL;
}

// Whether "//@" here begins a line of a manifest: only as the first text of its line, as the
// readers of templates and manifests have it.
static bool begins_line(const struct scan *scan)
{
    return scan->line || scan->last == '\0';
}

// Notes whether a number continues or begins with c, which comes next.
static void note_number(struct scan *scan, char c)
{
    scan->was_number = scan->number;
    if (scan->number && !scan->blank) {
        scan->number = is_word(c) || c == '.' || c == '\'';
    } else {
        scan->number = isdigit((unsigned char)c) && (scan->blank || !is_word(scan->last));
    }
}

// Whether the quote here separates digits, as in 1'000, and opens no character.
static bool is_separator(const struct scan *scan)
{
    return scan->number && !scan->blank;
}

// Skips a comment up to the end of its line, or of a later one when backslashes continue it.
static void skip_line_comment(struct scan *scan)
{
    while (scan->at < scan->end && *scan->at != '\n') {
        const char *after = *scan->at == '\\' ? line_end(scan) : NULL;

        scan->at = after ? after : scan->at + 1;
    }
}

static void skip_comment(struct scan *scan)
{
    scan->at += 2;
    while (scan->at < scan->end && !starts(scan, "*/")) {
        scan->at++;
    }
    scan->at += scan->at < scan->end ? 2 : 0;
    scan->blank = true;
}

static void copy_literal(struct scan *scan)
{
    char quote = *scan->at++;

    scan->was_number = scan->number;
    scan->number = false;
    write_char(scan, quote);
    while (scan->at < scan->end && *scan->at != quote && *scan->at != '\n') {
        if (*scan->at == '\\' && scan->at + 1 < scan->end) {
            put(scan, *scan->at++);
        }
        put(scan, *scan->at++);
    }
    if (scan->at < scan->end) {
        put(scan, *scan->at); // the closing quote, or the end of the line in an unclosed literal
        scan->at += *scan->at == quote;
    }
}

// A cubin in base64 has neither comments nor words, though it may look so.
static void add_base64(struct strbuf *out, const char *text, size_t len)
{
    strbuf_adds(out, "\n");
    for (size_t i = 0; i < len; i++) {
        if (!isspace((unsigned char)text[i])) {
            strbuf_add(out, text + i, 1);
        }
    }
}

void source_normalise(struct strbuf *out, const void *source, size_t len)
{
    enum candidate_form form = candidate_form(source, len);
    if (form == FORM_PYTHON) {
        python_normalise(out, source, len);
        return;
    }
    size_t code = form == FORM_CUBIN ? candidate_skip_comments(source, len) : len;
    struct scan scan = {.out = out, .at = source, .end = (const char *)source + code, .line = true};

    while (scan.at < scan.end) {
        const char *after;
        char c = *scan.at;

        if (starts(&scan, "/*")) {
            skip_comment(&scan);
        } else if (starts(&scan, "//") && !(starts(&scan, "//@") && begins_line(&scan))) {
            skip_line_comment(&scan);
        } else if (c == '\\' && (after = line_end(&scan))) {
            scan.at = after;
            scan.blank = true;
        } else if (isspace((unsigned char)c)) {
            scan.blank = true;
            scan.line |= c == '\n';
            scan.at++;
        } else if (c == '"' || (c == '\'' && !is_separator(&scan))) {
            copy_literal(&scan);
        } else {
            bool begins = (c == '#' || starts(&scan, "//@")) && begins_line(&scan);

            if (begins && scan.last != '\0' && scan.last != '\n') {
                put(&scan, '\n');
                scan.blank = scan.line = scan.directive = false;
            }
            note_number(&scan, c);
            write_char(&scan, c);
            scan.directive |= begins;
            scan.at++;
        }
    }
    if (code < len) {
        add_base64(out, (const char *)source + code, len - code);
    }
}

struct digest source_normalised_digest(const void *source, size_t len)
{
    struct strbuf text = STRBUF_INIT;

    source_normalise(&text, source, len);
    struct digest digest = digest_of(strbuf_text(&text), text.len);
    strbuf_release(&text);
    return digest;
}
