// What the sources of the candidates of a request have in common: points of a template differ in
// their first lines only. The common end is shown once, in the part of the prompt that is the same
// for all of them, and every program that ends with it is shown by its beginning. So an endpoint
// reads it once and keeps it, and prompts are short. Called by prompt.c. Pure.
#ifndef WORKER_PROMPT_PROMPT_COMMON_H
#define WORKER_PROMPT_PROMPT_COMMON_H

#include "proto/messages.h"
#include <stdbool.h>

#define PROMPT_COMMON_MIN ((size_t)512) // bytes of a common end that is worth showing apart

// The longest text of whole lines that all candidates of the request end with, and the best so far
// and the neighbours, too, where they have most of it. Borrowed from the first candidate. Empty
// with fewer than two candidates, and when it is shorter than PROMPT_COMMON_MIN.
struct bytes prompt_common_end(const struct forecast_request *request);
// Whether a source ends with it; false for an empty one.
bool prompt_ends_with(const struct bytes *source, const struct bytes *common);

#endif
