#include "client/diagnostics.h"

#include "client/show.h"
#include "common/mem.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define COMMAND_LINE "<command-line>"
#define NUMBER_DIGITS 9 // more digits are no number of a line

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Reads a number without a sign and returns how many digits it has; 0: there is none.
static size_t read_number(const char *text, size_t *ret)
{
    size_t len = 0, value = 0;
    for (; len < NUMBER_DIGITS && is_digit(text[len]); len++) {
        value = value * 10 + (size_t)(text[len] - '0');
    }
    *ret = value;
    return is_digit(text[len]) ? 0 : len;
}

// The length of the daemon's name of a file at text, which must end there; 0: another word.
static size_t name_length(const char *text, size_t before)
{
    static const char *const name[] = {"candidate.cubin", "candidate.cu", "candidate.c",
                                       "candidate.ptx", "candidate.py"};
    if (before > 0 && (is_word(text[-1]) || text[-1] == '/' || text[-1] == '.')) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(name); i++) {
        size_t len = strlen(name[i]);
        if (strncmp(text, name[i], len) == 0) {
            return is_word(text[len]) ? 0 : len;
        }
    }
    return 0;
}

// Appends the name and, where one follows, the number of a line. Returns how much of text that was.
static size_t add_place(struct strbuf *out, const char *text, size_t name, const char *path,
                        size_t header_lines)
{
    size_t number, digits = 0;
    if (text[name] == ':' || text[name] == '(') {
        digits = read_number(text + name + 1, &number);
    }
    if (digits == 0 || header_lines == 0) { // there is no number to lower
        strbuf_adds(out, path);
        return name;
    }
    bool own = number > header_lines;
    strbuf_addf(out, "%s%c%zu", own ? path : COMMAND_LINE, text[name],
                own ? number - header_lines : number);
    return name + 1 + digits;
}

// Appends the margin of a quoted line, "   12 | ", with the number lowered. Returns how much of text
// that was; 0: it is no such line.
static size_t add_margin(struct strbuf *out, const char *text, size_t header_lines)
{
    size_t blanks = strspn(text, " "), number;
    size_t digits = read_number(text + blanks, &number);
    if (header_lines == 0 || digits == 0 || strncmp(text + blanks + digits, " |", 2) != 0 ||
        number <= header_lines) {
        return 0;
    }
    strbuf_addf(out, "%*zu", (int)(blanks + digits), number - header_lines);
    return blanks + digits;
}

void diagnostics_rename(struct strbuf *out, const char *text, const char *path, size_t header_lines)
{
    const char *begin = text;
    while (*text != '\0') {
        size_t used = text == begin || text[-1] == '\n' ? add_margin(out, text, header_lines) : 0;
        size_t name = used == 0 ? name_length(text, (size_t)(text - begin)) : 0;
        if (name > 0) {
            used = add_place(out, text, name, path, header_lines);
        }
        if (used == 0) {
            strbuf_addc(out, *text);
            used = 1;
        }
        text += used;
    }
}

// The severity at text, and how long it is with what follows up to the message.
static const char *read_severity(const char *text, size_t *ret_len)
{
    static const struct {
        const char *word, *severity;
    } row[] = {{"fatal error", "error"}, {"catastrophic error", "error"},      {"error", "error"},
               {"warning", "warning"},   {"internal compiler error", "error"}, {"note", "note"},
               {"remark", "note"}};
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        size_t len = strlen(row[i].word);
        if (strncmp(text, row[i].word, len) != 0) {
            continue;
        }
        if (text[len] == ' ' && text[len + 1] == '#') { // NVRTC: "warning #177-D: …"
            len += strcspn(text + len, ":\n");
        }
        if (text[len] == ':' && text[len + 1] == ' ') {
            *ret_len = len + 2;
            return row[i].severity;
        }
    }
    return NULL;
}

// Finds ":LINE:", ":LINE:COLUMN:" or "(LINE):" in a line of len bytes, with a severity behind it.
static json_t *read_message(const char *line, size_t len)
{
    for (size_t at = 1; at < len; at++) {
        size_t number, column = 0;
        if (line[at] != ':' && line[at] != '(') {
            continue;
        }
        size_t digits = read_number(line + at + 1, &number);
        const char *after = line + at + 1 + digits;
        if (digits == 0 || (line[at] == ':' ? *after != ':' : strncmp(after, "):", 2) != 0)) {
            continue;
        }
        after += line[at] == ':' ? 1 : 2;
        size_t column_digits = line[at] == ':' ? read_number(after, &column) : 0;
        after += column_digits > 0 && after[column_digits] == ':' ? column_digits + 1 : 0;
        size_t skipped;
        const char *severity = *after == ' ' ? read_severity(after + 1, &skipped) : NULL;
        if (severity) {
            const char *message = after + 1 + skipped;
            char *file = xstrndup(line, at);
            char *text = xstrndup(message, (size_t)(line + len - message));
            json_t *object = json_pack("{s:o, s:I, s:o, s:s, s:o}", "file", show_text(file), "line",
                                       (json_int_t)number, "column",
                                       column > 0 ? json_integer((json_int_t)column) : json_null(),
                                       "severity", severity, "message", show_text(text));
            free(file);
            free(text);
            return object;
        }
    }
    return NULL;
}

json_t *diagnostics_json(const char *text)
{
    json_t *array = json_array();
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        json_t *message = read_message(text, len);
        if (message) {
            json_array_append_new(array, message);
        }
        text += len + (text[len] == '\n');
    }
    return array;
}

char *diagnostics_undeclared(const char **text)
{
    // gcc: 'WIDTH' undeclared. NVRTC: identifier "WIDTH" is undefined.
    static const struct {
        const char *before, *after;
    } row[] = {{"'", "' undeclared"}, {"identifier \"", "\" is undefined"}};
    for (const char *at = *text; *at != '\0'; at++) {
        for (size_t i = 0; i < ARRAY_LEN(row); i++) {
            size_t len = strlen(row[i].before), name = 0;
            if (strncmp(at, row[i].before, len) != 0) {
                continue;
            }
            while (is_word(at[len + name])) {
                name++;
            }
            if (name > 0 && strncmp(at + len + name, row[i].after, strlen(row[i].after)) == 0) {
                *text = at + len + name;
                return xstrndup(at + len, name);
            }
        }
    }
    return NULL;
}
