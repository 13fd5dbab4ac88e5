// The normalised text of a source: without comments, and without blanks and line ends that separate
// nothing. Sources with the same normalised text are the same program to a compiler. The client
// uses it to recognise candidates that it has seen before.
#ifndef PROBLEM_NORMALISED_SOURCE_H
#define PROBLEM_NORMALISED_SOURCE_H

#include "common/digest.h"
#include "common/strbuf.h"

// Appends the normalised source to out. Manifest lines (//@) are text and not comments. Literals
// stay as they are, and so does a cubin in base64 but for its line ends. Of Python, lines and their
// indentation stay. Never fails: text that is no program becomes shorter, too.
void source_normalise(struct strbuf *out, const void *source, size_t len);
// The digest of the normalised source.
struct digest source_normalised_digest(const void *source, size_t len);

#endif
