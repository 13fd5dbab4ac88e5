// The outcomes that the language-model engine was told, on the disk and in memory: the store, the
// recalibration that is learnt from them, and how often its decisions were right. Owned and called
// by that engine, on one thread. Adding blocks until the disk has the outcomes. Knows nothing of
// how the forecasts were made.
#ifndef WORKER_OUTCOMES_HISTORY_H
#define WORKER_OUTCOMES_HISTORY_H

#include "common/err.h"
#include "proto/messages.h"

#define HISTORY_ROWS_MAX 4000   // outcomes of one group that are read back when a file is opened
#define HISTORY_GROUPS_MAX 1024 // groups (problems on device classes)

struct history;

// Opens or creates the file (worker/outcomes/outcome_store.h) and learns from what is in it. Errors
// are outcome_store_open's.
MUST_CHECK int history_open(struct history **ret, const char *path, struct err *err);
void history_close(struct history *history); // NULL is fine

// Stores the outcomes and learns from those that are new. An outcome without a raw forecast is
// stored and teaches nothing. *ret is the reply to OBSERVE. ERR_INVALID when an outcome has no
// candidate, no known verdict or no usable log2; nothing is stored then. ERR_LIMIT beyond
// HISTORY_GROUPS_MAX.
MUST_CHECK int history_add(struct history *history, const struct observe *observe,
                           struct observed *ret, struct err *err);

// P(correct) where a model does not state it.
#define HISTORY_P_CORRECT_DEFAULT 0.8

// Recalibrates forecast->raw, which must be set. Writes the probabilities, the mean, the expected
// improvement, the confidence, the reason and the versions of *forecast. Also fills in the raw
// forecast's p_correct and p_improves, when the model did not state them. Leaves the id and the
// costs alone.
void history_recalibrate(const struct history *history, const struct forecast_request *request,
                         struct forecast *forecast);

// Sets the number of outcomes and the list of models (one per group) in *status, which owns them.
void history_status(const struct history *history, struct worker_status *status);

#endif
