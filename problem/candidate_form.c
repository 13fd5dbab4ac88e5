#include "problem/candidate_form.h"

#include <string.h>

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

enum candidate_form candidate_form(const char *source, size_t len)
{
    bool python = false;

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
        python = python || is_python(line, bytes);
        at += bytes + 1;
    }
    if (python) {
        return FORM_PYTHON;
    }
    return has(source, len, "extern \"C\"") && has(source, len, "<<<") ? FORM_LAUNCHER
                                                                       : FORM_SEALED;
}

const char *candidate_ending(const char *extension, const char *source, size_t len)
{
    bool cuda = strcmp(extension, "cu") == 0;

    return cuda && candidate_form(source, len) == FORM_PYTHON ? "py" : extension;
}

bool candidate_is_file(const char *name, const char *extension)
{
    const char *dot = strrchr(name, '.');

    return dot && dot != name &&
           (strcmp(dot + 1, extension) == 0 ||
            (strcmp(extension, "cu") == 0 && strcmp(dot + 1, "py") == 0));
}
