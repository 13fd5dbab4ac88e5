#include "tests/support/candidate_head.h"
#include <string.h>

static bool take(char out[static CANDIDATE_HEAD_MAX], const char *mark, const char *line,
                 size_t len)
{
    size_t skip = strlen(mark);

    if (len < skip || strncmp(line, mark, skip) != 0) {
        return true;
    }
    if (len - skip >= CANDIDATE_HEAD_MAX) {
        return false;
    }
    memcpy(out, line + skip, len - skip);
    out[len - skip] = '\0';
    return true;
}

bool candidate_head_read(struct candidate_head *ret, const char *source, size_t len)
{
    *ret = (struct candidate_head){.problem = "rowsum"};
    const char *line = source, *end = source + len;
    while (end - line >= 3 && strncmp(line, "// ", 3) == 0) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t line_len = (size_t)((stop ? stop : end) - line);

        if (!take(ret->expect, "// expect: ", line, line_len) ||
            !take(ret->problem, "// problem: ", line, line_len) ||
            !take(ret->says, "// says: ", line, line_len)) {
            return false;
        }
        line = stop ? stop + 1 : end;
    }
    return ret->expect[0] != '\0';
}
