// What an engine has been told about candidates that it forecast, on the disk and in memory: the
// outcomes, the recalibration made of them, and how often its calls were right. One thread. Telling
// takes as long as the disk needs to have it.
#ifndef WORKER_TRACK_RECORD_H
#define WORKER_TRACK_RECORD_H

#include "common/err.h"
#include "proto/messages.h"

#define HISTORY_ROWS_MAX                                                                           \
    4000 // outcomes of one problem on one class that are read back at the start
#define HISTORY_GROUPS_MAX 1024

struct history;

// Opens or creates the file (worker/store.h) and learns from what is in it. Errors are store_open's.
MUST_CHECK int history_open(struct history **ret, const char *path, struct err *err);
void history_close(struct history *history); // NULL is fine

// Stores and learns. Outcomes without a raw forecast are stored, and teach nothing yet. *ret as the
// reply to OBSERVE. ERR_INVALID when an outcome cannot be one.
MUST_CHECK int history_tell(struct history *history, const struct observe *observe,
                            struct observed *ret, struct err *err);

// Turns a raw forecast into one that its record bears out: probabilities, mean, P(improves), expected
// improvement, confidence, reason and versions of *forecast; id and accounts are the caller's.
// forecast->raw must be set.
void history_judge(const struct history *history, const struct forecast_request *request,
                   struct forecast *forecast);

// Adds outcomes and models.
void history_status(const struct history *history, struct worker_status *status);

#endif
