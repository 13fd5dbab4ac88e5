// A candidate as one line of JSON: {"source": "…", "name": "…"}, in files of candidates and from
// programs. Other keys are ignored, so that files that other tools wrote can be used as they are.
#ifndef CLIENT_PROPOSE_CANDIDATE_LINE_H
#define CLIENT_PROPOSE_CANDIDATE_LINE_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct candidate_line {
    char *source; // not empty
    char *name;   // NULL: none was given
    char *model;  // language model that wrote it; NULL: none was given
    uint64_t input_tokens, output_tokens;
    double cost; // NaN: none was given
};

// Whether there is nothing in the line. It is given without its newline, as below.
bool candidate_line_is_blank(const char *line, size_t len);
// Parses a line. The caller releases *ret. The sentences of ERR_INVALID and ERR_LIMIT say what is
// wrong and do not name the line.
MUST_CHECK int candidate_line_parse(struct candidate_line *ret, const char *line, size_t len,
                                    struct err *err);
void candidate_line_release(struct candidate_line *line);

#endif
