// The line that a program reads: the problem, the parent, and what is known of the candidates so
// far. docs/generators.md describes it.
#ifndef CLIENT_PROGRAM_REQUEST_H
#define CLIENT_PROGRAM_REQUEST_H

#include "client/forecast/proposer.h"
#include "client/forecast/search_text.h"
#include "client/run/run_state.h"
#include "common/err.h"
#include "common/strbuf.h"

#define REQUEST_RESULTS_MAX 1000 // the newest candidates with an outcome
#define REQUEST_SOURCES_MAX                                                                        \
    ((size_t)4 << 20) // bytes of their sources together; older ones have none

// Appends the line, with its newline. Only outcomes of candidates 1 … visible are in it, so that
// the same log gives the same line. Fails when a blob cannot be read.
MUST_CHECK int request_write(struct strbuf *out, const struct run_state *run_state,
                             uint64_t visible, const struct proposer_request *wanted,
                             search_text_reader *read, void *owner, struct err *err);

#endif
