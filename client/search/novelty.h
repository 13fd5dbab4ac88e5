// Whether a new source is one more small variation of a program whose small variations have brought
// nothing: the generator `llm` is then asked for another one. Sources that are the same but for
// blanks and comments are found before that, by their normalised text. Owned by the pipeline. What
// is decided follows from the sources and the visible outcomes alone.
#ifndef CLIENT_SEARCH_NOVELTY_H
#define CLIENT_SEARCH_NOVELTY_H

#include "client/run/run_state.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOVELTY_ALIKE 0.9 // part of their token shingles that small variations share
#define NOVELTY_TRIES 4   // the newest variations, none of which beat what was there before them

struct novelty;

struct novelty *novelty_create(void);
void novelty_free(struct novelty *novelty); // NULL is fine
// Adds the source of a candidate.
void novelty_add(struct novelty *novelty, uint64_t candidate, const void *source, size_t len);
// Of candidates 1 … visible, those whose sources are like this one and that were measured and
// correct: true when there are more than NOVELTY_TRIES of them, and none of the newest
// NOVELTY_TRIES is faster by the margin of an improvement than the best of the older ones. Those
// that failed do not count: a repair is a small variation too.
bool novelty_is_spent(const struct novelty *novelty, const struct run_state *run_state,
                      uint64_t visible, const void *source, size_t len);

#endif
