#include "problem/candidate_form.h"

#include <string.h>

static bool begins(const char *line, size_t len, const char *word)
{
    size_t n = strlen(word);

    return len >= n && memcmp(line, word, n) == 0;
}

static bool is_python(const char *line, size_t len)
{
    static const char *const word[] = {"import ", "from ", "def ", "class ", "async def "};

    for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
        if (begins(line, len, word[i])) {
            // C++ has classes as well, and they end with a brace or a semicolon.
            return strcmp(word[i], "class ") != 0 || memchr(line, ':', len);
        }
    }
    return begins(line, len, "@");
}

static bool has(const char *source, size_t len, const char *word)
{
    return memmem(source, len, word, strlen(word));
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
