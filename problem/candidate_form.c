#include "problem/candidate_form.h"
#include "common/mem.h"
#include <string.h>

#define CUBIN_IN_BASE64 "f0VMR" // "\177ELF", whatever comes then

static bool begins(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len >= n && memcmp(line, word, n) == 0;
}

static bool has(const char *source, size_t len, const char *word)
{
    return len > 0 && memmem(source, len, word, strlen(word)); // an empty source may be NULL
}

// Whether a line is one that Python has and C++ has not, outside its comments at least: C++ has
// imports, too, which end with a semicolon, and classes, which do not end with a colon.
static bool is_python(const char *line, size_t len)
{
    while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t' || line[len - 1] == '\r')) {
        len--;
    }
    char last = len > 0 ? line[len - 1] : '\0';
    return (begins(line, len, "import ") && last != ';' && last != '.') ||
           (begins(line, len, "from ") && has(line, len, " import ")) ||
           begins(line, len, "def ") || begins(line, len, "async def ") ||
           (begins(line, len, "class ") && last == ':') || begins(line, len, "@");
}

size_t candidate_skip_comments(const char *source, size_t len)
{
    size_t at = 0;

    while (at < len) {
        size_t begin = at;

        while (begin < len && strchr(" \t\r\n", source[begin]) && source[begin] != '\0') {
            begin++;
        }
        if (!begins(source + begin, len - begin, "//")) {
            return begin;
        }
        const char *end = memchr(source + begin, '\n', len - begin);
        at = end ? (size_t)(end - source) + 1 : len;
    }
    return len;
}

enum candidate_form candidate_form(const char *source, size_t len)
{
    size_t code = candidate_skip_comments(source, len);
    bool python = false, comment = false; // inside of a comment of C that began with its line

    if (code < len && begins(source + code, len - code, ".version")) {
        return FORM_PTX;
    }
    if (code < len && (begins(source + code, len - code, CUBIN_IN_BASE64) ||
                       begins(source + code, len - code, "\177ELF"))) {
        return FORM_CUBIN;
    }
    for (size_t at = 0; at < len;) {
        const char *line = source + at;
        const char *end = memchr(line, '\n', len - at);
        size_t bytes = end ? (size_t)(end - line) : len - at;
        size_t blanks = 0;

        while (blanks < bytes && (line[blanks] == ' ' || line[blanks] == '\t')) {
            blanks++;
        }
        if (begins(line + blanks, bytes - blanks, "//@")) {
            return FORM_SEALED;
        }
        comment = comment || begins(line + blanks, bytes - blanks, "/*");
        python = python || (!comment && is_python(line, bytes));
        comment = comment && !has(line, bytes, "*/");
        at += bytes + 1;
    }
    if (python) {
        return FORM_PYTHON;
    }
    return has(source, len, "extern \"C\"") && has(source, len, "<<<") ? FORM_LAUNCHER
                                                                       : FORM_SEALED;
}

bool candidate_is_sealed(enum candidate_form form)
{
    return form == FORM_SEALED || form == FORM_PTX || form == FORM_CUBIN;
}

const char *candidate_ending(const char *extension, const char *source, size_t len)
{
    if (strcmp(extension, "cu") != 0) {
        return extension;
    }
    switch (candidate_form(source, len)) {
    case FORM_PYTHON:
        return "py";
    case FORM_PTX:
        return "ptx";
    case FORM_CUBIN:
        return "cubin";
    case FORM_SEALED:
    case FORM_LAUNCHER:
        break;
    }
    return extension;
}

bool candidate_is_file(const char *name, const char *extension)
{
    static const char *const cuda[] = {"py", "ptx", "cubin"};
    const char *dot = strrchr(name, '.');
    bool is = dot && dot != name && strcmp(dot + 1, extension) == 0;

    for (size_t i = 0; i < ARRAY_LEN(cuda) && strcmp(extension, "cu") == 0; i++) {
        is = is || (dot && dot != name && strcmp(dot + 1, cuda[i]) == 0);
    }
    return is;
}
