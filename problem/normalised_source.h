// What a source is, but for blanks, line ends and comments: two sources with the same digest are the same
// program to a compiler.
#ifndef PROBLEM_NORMALISED_SOURCE_H
#define PROBLEM_NORMALISED_SOURCE_H

#include "common/digest.h"
#include "common/strbuf.h"

// Appends the source without comments and without blanks that separate nothing. Manifest lines (//@) count
// as text, not as comments; literals stay as they are. Never fails: what is no C is only shortened.
void source_normalise(struct strbuf *out, const void *source, size_t len);
struct digest source_normalised_digest(const void *source, size_t len);

#endif
