// The normalised text of a program in Python, for problem/normalised_source.c, its only caller.
#ifndef PROBLEM_NORMALISED_PYTHON_H
#define PROBLEM_NORMALISED_PYTHON_H

#include "common/strbuf.h"

// Appends it to out: without comments, empty lines, and blanks that separate nothing; inside of
// brackets without line ends, too. Indentation and literals stay as they are, and so does all that
// follows where it cannot be told for sure what is what.
void python_normalise(struct strbuf *out, const char *source, size_t len);

#endif
