// Candidates of a space as JSON objects, one on each line: for scripts, and as rows of GPU
// Forecasters' evaluation set. docs/spaces.md has the fields. client/cmd/cmd_export.c calls this.
// It does no I/O.
#ifndef CLIENT_SPACE_SPACE_JSON_H
#define CLIENT_SPACE_SPACE_JSON_H

#include "client/space/space.h"
#include "common/strbuf.h"

// Appends everything that is known about candidate i (from 0), except its source. What is unknown
// is null.
void space_json_candidate(struct strbuf *out, const struct space *space, size_t i);

// Appends candidate i, which must be correct, as a row. `anchor` and `source` are texts; invalid
// UTF-8 in them is replaced.
void space_json_pair(struct strbuf *out, const struct space *space, size_t i,
                     const struct bytes *anchor, const struct strbuf *source);

// The bin that GPU Forecasters' label function gives a speedup: 1 to 8, with edges at log2 speedups
// of -1, -1/2, 0, 1/2, 1, 3/2 and 2. An edge belongs to the bin above it.
int space_json_label(double log2_speedup);

#endif
