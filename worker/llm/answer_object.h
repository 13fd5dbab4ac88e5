// Reads one JSON object as a forecast. Called by the reader of answers, which finds the objects.
// Trusts nothing in them.
#ifndef WORKER_LLM_ANSWER_OBJECT_H
#define WORKER_LLM_ANSWER_OBJECT_H

#include "worker/llm/answer.h"
#include <jansson.h>

// A list of bins and the letters that name them, in their order.
struct answer_alphabet {
    char first;
    size_t count;
};
extern const struct answer_alphabet answer_bins_of_s, answer_bins_of_r;

// The value of a number or of a text that is one, with or without a per cent sign. NaN: it is
// neither.
double answer_object_number(const json_t *value);
// The bin that a letter, perhaps in blanks and quotes, names; -1: none.
int answer_object_bin(const char *text, const struct answer_alphabet *alphabet);
// Reads an object that has a "p" or a "bin", or defers. Returns whether it is a forecast; *why (may
// be NULL) says why not. A second answer that cannot be used is left out.
bool answer_object_read(const json_t *object, struct answer_forecast *ret, struct err *why);

#endif
