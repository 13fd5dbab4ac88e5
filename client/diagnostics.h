// What a compiler said of a candidate, told of the user's file: a daemon compiles every source
// under one name, because who sends it has no part in what it is. Reads the forms of gcc
// ("candidate.c:3:5: error: …") and of NVRTC ("candidate.cu(3): error: …"). Knows nothing of jobs.
#ifndef CLIENT_DIAGNOSTICS_H
#define CLIENT_DIAGNOSTICS_H

#include "common/strbuf.h"
#include <jansson.h>
#include <stddef.h>

// Appends the text with the user's name of the file instead of the daemon's. header_lines lines
// were put before the file's own; numbers of lines are lowered by that, and what is said of the
// header is said of "<command-line>", as gcc does.
void diagnostics_rename(struct strbuf *out, const char *text, const char *path,
                        size_t header_lines);

// The messages in a renamed text, in order, as an array of {"file", "line", "column", "severity",
// "message"}: severity is "error", "warning" or "note", column null where it is not said. Lines of
// other kinds, such as the quoted source, are left out.
json_t *diagnostics_json(const char *text);

// The next name that a message of the text says is not declared: malloc'd. Moves *text behind it.
// NULL when there is none any more.
char *diagnostics_undeclared(const char **text);

#endif
