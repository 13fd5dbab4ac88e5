// Reads the order of candidates that a language model has answered with. Called by llm_rank.c.
// Takes what models write: a list of objects, of numbers or of texts, or an object of numbers, and
// what they leave out or name twice. Trusts nothing in it.
#ifndef WORKER_LLM_RANK_ANSWER_H
#define WORKER_LLM_RANK_ANSWER_H

#include "common/err.h"
#include <jansson.h>
#include <stddef.h>

// Reads the value of the field "ranking" about `count` candidates with the numbers 1 to count.
// Writes the candidates' places (number - 1) to order[0 .. count), the most promising first: those
// that are named, in their order, then the others in order of their numbers. p[place] is the
// probability that was stated, or NaN. Of a candidate that is named twice the first place counts;
// numbers of no candidate are left out. *ret_named is how many were named. ERR_INVALID, with what
// was there instead, when none is; nothing is written then.
MUST_CHECK int rank_answer_read(const json_t *ranking, size_t count, size_t *order, double *p,
                                size_t *ret_named, struct err *err);

#endif
