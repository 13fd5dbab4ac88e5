// What a search says of its candidates that ran unsealed: how many there were, and whether they
// count. For summaries and reports. Pure.
#ifndef CLIENT_REPORT_RUN_UNSEALED_H
#define CLIENT_REPORT_RUN_UNSEALED_H

#include "client/run/run_state.h"
#include <jansson.h>

// A sentence without its full stop, malloc'd; NULL when no candidate ran unsealed.
char *run_unsealed_sentence(const struct run_state *run_state);
// How many were measured unsealed, and whether they may become records.
json_t *run_unsealed_json(const struct run_state *run_state);

#endif
