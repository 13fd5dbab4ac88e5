// What the first lines of a sealed candidate of the battery say about it (tests/cheats/cuda):
//   // expect: VERDICT        // problem: NAME        // says: PART OF THE REASON
// The battery on a GPU and the test that compiles all candidates read it.
#ifndef TESTS_SUPPORT_CANDIDATE_HEAD_H
#define TESTS_SUPPORT_CANDIDATE_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#define CANDIDATE_HEAD_MAX 128

struct candidate_head {
    char expect[CANDIDATE_HEAD_MAX];  // "cheat", "ratio" or the name of a verdict
    char problem[CANDIDATE_HEAD_MAX]; // name of its problem; "rowsum" when it does not say
    char says[CANDIDATE_HEAD_MAX];    // part of the reason of a refusal; "" when it does not say
};

// Reads the comment lines at the beginning of source[0 .. len). Returns whether there is an
// "expect" among them and no value is too long.
bool candidate_head_read(struct candidate_head *ret, const char *source, size_t len);

#endif
