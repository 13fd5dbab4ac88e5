// How many candidates a search had under way at a time, and for what this was chosen
// (client/search/pipeline_width.h), for the summary and the report of a search.
#ifndef CLIENT_REPORT_RUN_WIDTH_H
#define CLIENT_REPORT_RUN_WIDTH_H

#include "client/run/run_state.h"
#include <jansson.h>

// {batch, wide, widest, lag, devices, compile_slots, worker_seconds}. What the run does not say is
// null, as devices and all behind it in runs of before they were recorded. A new reference.
json_t *run_width_json(const struct run_started *started);

// The same as half a sentence, such as "batches of 4, later 8, from the 65th on 20, decided from
// outcomes at most 10 batches behind; there were 4 devices with 64 compile slots". malloc'd.
char *run_width_text(const struct run_started *started);

#endif
