// What the first lines of a sealed candidate of the battery say about it (tests/cheats/cuda):
//   // expect: VERDICT    // problem: NAME    // twin: FILE    // says: PART OF THE REASON
// The battery on a GPU and the test that compiles all candidates read it.
#ifndef TESTS_CHEATS_CANDIDATE_HEAD_H
#define TESTS_CHEATS_CANDIDATE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define CANDIDATE_HEAD_MAX 128

struct candidate_head {
    char expect[CANDIDATE_HEAD_MAX];  // "cheat", "ratio" or the name of a verdict
    char problem[CANDIDATE_HEAD_MAX]; // name of its problem; "rowsum" when it does not say
    char twin[CANDIDATE_HEAD_MAX]; // file of the same code without the cheat; "": honest-PROBLEM.cu
    char says[CANDIDATE_HEAD_MAX]; // part of the reason of a refusal; "" when it does not say
};

// Takes the value of a line that begins with mark.
static inline bool candidate_head_take(char out[static CANDIDATE_HEAD_MAX], const char *mark,
                                       const char *line, size_t len)
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

// Reads the comment lines at the beginning of source[0 .. len). Returns whether there is an
// "expect" among them and no value is too long.
static inline bool candidate_head_read(struct candidate_head *ret, const char *source, size_t len)
{
    *ret = (struct candidate_head){.problem = "rowsum"};
    const char *line = source, *end = source + len;
    while (end - line >= 3 && strncmp(line, "// ", 3) == 0) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t line_len = (size_t)((stop ? stop : end) - line);

        if (!candidate_head_take(ret->expect, "// expect: ", line, line_len) ||
            !candidate_head_take(ret->problem, "// problem: ", line, line_len) ||
            !candidate_head_take(ret->twin, "// twin: ", line, line_len) ||
            !candidate_head_take(ret->says, "// says: ", line, line_len)) {
            return false;
        }
        line = stop ? stop + 1 : end;
    }
    return ret->expect[0] != '\0';
}

#endif
