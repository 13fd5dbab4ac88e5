// What is said of a candidate that has been tried: its outcome, how it did in each benchmark case,
// and, where they are wanted, its source, its compile facts and the compiler's words. Used for the
// texts that language models read (client/forecast/search_text.h). Pure but for reading sources.
#ifndef CLIENT_FORECAST_SEARCH_TRIED_H
#define CLIENT_FORECAST_SEARCH_TRIED_H

#include "client/run/run_state.h"
#include "common/err.h"

// Reads a blob of the run; *ret is the caller's.
typedef int search_text_reader(void *owner, const struct digest *digest, struct bytes *ret,
                               struct err *err);

// The first at most max bytes of a text, cut between characters, since messages take UTF-8 alone.
// malloc'd; NULL for NULL.
char *search_cut(const char *text, size_t max);

// The result that counts: of the repeated measurement where there is one. NULL without any.
const struct result *search_result(const struct run_state_candidate *candidate);

// Describes candidate `id` of the run. False, and *ret is as message_init left it, when it has no
// outcome yet. *ret owns its parts.
bool search_tried(struct tried *ret, const struct run_state *run_state, uint64_t id,
                  const struct search_context *context);
// The same with its source, which is read; an outcome need not be there, and of a candidate beyond
// `visible` none is told. *ret owns its parts, also after an error.
MUST_CHECK int search_known_source(struct known_source *ret, const struct run_state *run_state,
                                   uint64_t id, uint64_t visible,
                                   const struct search_context *context, search_text_reader *read,
                                   void *owner, struct err *err);

// The log2 speedups of a result in context->cases, by the names of the cases; NaN where the result
// does not have one. malloc'd, *ret_count long; NULL and 0 when there are fewer than two cases.
double *search_case_speedups(const struct result *result, const struct search_context *context,
                             size_t *ret_count);

#endif
