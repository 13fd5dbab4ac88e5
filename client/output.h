// What becomes of stdout: results are flushed as they come, and whoever stops reading them ends the
// program, silently, as a pipe ends others. kcast ignores SIGPIPE, because a connection that breaks
// is to be an error, so it looks for itself. Called by client/main.c, by replay/main.c and by
// commands that print more than one result.
#ifndef CLIENT_OUTPUT_H
#define CLIENT_OUTPUT_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

// Flushes stdout. False, with errno, when something was not or could not be written; once that was
// so it stays so, with the errno of the first failure.
bool output_flush(void);
// Writes to stdout, behind what was printed before, and flushes it.
MUST_CHECK int output_write(const void *data, size_t len, struct err *err);
// Writes a page to the file that the user has named, "-" for stdout, and says so on stderr unless
// it is to be quiet.
MUST_CHECK int output_page(const char *path, const void *data, size_t len, bool quiet,
                           struct err *err);
// Whether something could not be written because nobody reads stdout any more.
bool output_is_closed(void);
// Whether a command line asks for JSON, also when it cannot be parsed.
bool output_wants_json(int argc, char *const *argv);
// The last that a program says: the error, if there is one, as an object on stdout where JSON is
// wanted, and as a sentence on stderr behind "<program>: ". Returns exit_code, or that of an output
// that could not be written when there is no other error. Ends the process by SIGPIPE when nobody
// reads stdout any more.
int output_end(const char *program, bool json, int exit_code, struct err *err);

#endif
