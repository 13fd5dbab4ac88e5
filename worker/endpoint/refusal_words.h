// Finds phrases in the words of an endpoint's error, and the features of a request that they name.
// All texts are in lower case. Called by refusal.c.
#ifndef WORKER_ENDPOINT_REFUSAL_WORDS_H
#define WORKER_ENDPOINT_REFUSAL_WORDS_H

#include "worker/endpoint/refusal.h"
#include <stdbool.h>

// The place of a phrase in the text that begins and ends at a word's border; a phrase with a '*' at
// its end needs only begin at one. NULL: none.
const char *refusal_find_phrase(const char *text, const char *phrase);
// Whether the text has one of the phrases, a list that ends with NULL.
bool refusal_has_any(const char *text, const char *const *phrases);

// The feature that a line names first (an enum request_feature), and where; 0: none.
unsigned refusal_first_feature(const char *line, const char **ret_at);
// The features that the lines of a text name first, as bits.
unsigned refusal_features(const char *text);

#endif
