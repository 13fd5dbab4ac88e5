// Candidates of a space as JSON objects, one a line: for scripts, and as rows of GPU Forecasters'
// evaluation set. Pure. docs/spaces.md has the fields.
#ifndef CLIENT_SPACE_SPACE_JSON_H
#define CLIENT_SPACE_SPACE_JSON_H

#include "client/space/space.h"
#include "common/strbuf.h"

// Everything that is known about candidate i (from 0) but its source. What is unknown is null.
void space_json_candidate(struct strbuf *out, const struct space *space, size_t i);

// A row of a correct candidate; anchor and source are texts, cut to what is UTF-8.
void space_json_pair(struct strbuf *out, const struct space *space, size_t i,
                     const struct bytes *anchor, const struct strbuf *source);

// The bin that GPU Forecasters' label function gives a speedup: 1 to 8, edges at log2 speedups of
// -1, -1/2, 0, 1/2, 1, 3/2 and 2, an edge belonging to the bin above it.
int space_json_label(double log2_speedup);

#endif
