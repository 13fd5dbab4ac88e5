// What a source says of itself before anybody compiles it, as numbers for a model: how long it is,
// how often it uses the words that matter for speed, the integers that it defines, and how it is
// launched. Called by the client for candidates that have no parameters. Facts of equal programs
// are equal: they are taken from the normalised source (problem/normalised_source.h).
#ifndef PROBLEM_SOURCE_FACTS_H
#define PROBLEM_SOURCE_FACTS_H

#include "problem/problem.h"
#include "proto/messages.h"
#include <stddef.h>

#define SOURCE_FACTS_MAX 128

// Returns how many facts there are, at most SOURCE_FACTS_MAX with different names. *ret and the
// names in it are malloc'd; the caller frees them. Never fails: of text that is no program, less is
// known.
//   bytes, words, numbers  of the normalised source
//   word:CLASS             how many words belong to a class, such as loops, atomics, vectors
//   hash:0 … hash:15       how many other words have this hash: programs that differ in their words
//                          differ in these
//   define:NAME            the integer of a line "#define NAME 123", in Python of "NAME = 123" or of
//                          an argument, a default or a key of that name; the first of a name counts
//   launch:FACT            of a CUDA source and its problem, for the first benchmark case: launches,
//                          blocks and threads (sums over the launches), block_x, block_y, block_z,
//                          grid_x, grid_y, grid_z, smem (of the first launch). problem may be NULL.
size_t source_facts(const void *source, size_t len, const struct problem *problem,
                    struct fact **ret);

#endif
