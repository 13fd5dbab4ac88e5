// What becomes of stdout: results are flushed as they come, and whoever stops reading them ends the
// program, silently, as a pipe ends others. kcast ignores SIGPIPE, because a connection that breaks
// is to be an error, so it looks for itself. Called by client/main.c and by commands that print
// more than one result.
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
// Whether something could not be written because nobody reads stdout any more.
bool output_is_closed(void);
// Ends the process by SIGPIPE.
void output_end_by_signal(void) __attribute__((noreturn));

#endif
