// How `kcast measure` prints the answer to one candidate, for people and as JSON, with all that the
// compiler said, told of the user's file.
#ifndef CLIENT_CMD_CANDIDATES_MEASURE_SHOW_H
#define CLIENT_CMD_CANDIDATES_MEASURE_SHOW_H

#include "client/cmd/candidates/candidates.h"

// Prints the result of a file that has one, to stdout. problem is its name or path.
void measure_show_text(const struct candidate_file *file, const char *problem);
// Prints one object: the result, or {"candidate", "problem", "error"}.
void measure_show_json(const struct candidate_file *file, const char *problem);

#endif
