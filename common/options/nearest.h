// Typing errors: which of the words that could have been meant is nearest to the one that was
// written. Called where options and commands are looked up.
#ifndef COMMON_OPTIONS_NEAREST_H
#define COMMON_OPTIONS_NEAREST_H

#include <stddef.h>

// The best word so far; starts as {0} with `word` set.
struct nearest {
    const char *word; // what was written
    size_t len;       // its length in bytes, since it may go on after that
    const char *best; // the nearest candidate, NULL: none is near; the caller's
    size_t distance;  // of best
};

// Looks at a candidate. It is near when a third of the letters of the longer word, at most three,
// must be inserted, removed, replaced or swapped with their neighbour (the optimal string alignment
// distance), or when it begins with the word. Words of more than 63 bytes are near to nothing.
void nearest_try(struct nearest *nearest, const char *candidate);

#endif
