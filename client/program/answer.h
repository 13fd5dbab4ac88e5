// The lines that a program writes: a candidate each. Pure; fuzzed.
#ifndef CLIENT_PROGRAM_ANSWER_H
#define CLIENT_PROGRAM_ANSWER_H

#include "common/err.h"
#include "proto/messages.h"
#include <stddef.h>

#define ANSWER_CANDIDATES_MAX 64 // as a reply may have

// Adds the candidates of the lines to *ret, which was initialised, up to the first line that is
// none: ERR_INVALID or ERR_LIMIT then name the line. Of a last line without a newline nothing is
// known to be missing, so it counts. Empty lines do not.
MUST_CHECK int program_answer_read(struct propose_reply *ret, const char *text, size_t len,
                                   struct err *err);

#endif
