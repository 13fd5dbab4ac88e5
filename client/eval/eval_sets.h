// Internal to client/eval: how its readers add rows to the sets. Only client/eval/eval*.c include
// this.
#ifndef CLIENT_EVAL_EVAL_SETS_H
#define CLIENT_EVAL_EVAL_SETS_H

#include "client/eval/eval.h"
#include <stdbool.h>

// Finds the set of this engine and makes it when it is new. *ret is valid until the next call.
// ERR_LIMIT when there are too many engines or the name is too long.
MUST_CHECK int eval_set_of(struct eval *eval, const char *engine, struct eval_set **ret,
                           struct err *err);
// Appends a row. ERR_LIMIT when the set has SCORE_ROWS_MAX rows.
MUST_CHECK int eval_add(struct eval_set *set, const struct score_row *row, struct err *err);
// Stores the bins in the row, normalised to the sum 1, and sets has_bins. Returns false and clears
// has_bins when they are not probabilities over BIN_COUNT bins.
bool eval_set_bins(struct score_row *row, const double *bins, size_t count);

#endif
