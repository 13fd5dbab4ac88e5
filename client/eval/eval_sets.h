// Inside of client/eval: how its readers add rows. Only client/eval*.c include this.
#ifndef CLIENT_EVAL_EVAL_SETS_H
#define CLIENT_EVAL_EVAL_SETS_H

#include "client/eval/eval.h"
#include <stdbool.h>

// The set of this engine, made when it is new; valid until the next call.
MUST_CHECK int eval_set_of(struct eval *eval, const char *engine, struct eval_set **ret,
                           struct err *err);
MUST_CHECK int eval_add(struct eval_set *set, const struct score_row *row, struct err *err);
// Normalises. False, and has_bins is false, when these are no probabilities over the bins.
bool eval_set_bins(struct score_row *row, const double *bins, size_t count);

#endif
