// Mutants and honest variants. A mutant is a candidate that looks like an implementation and is
// wrong: it contains the problem's own baseline and spoils its inputs or outputs in one particular
// way. A problem is fit for use only if it catches all mutants (mutation testing) and takes all
// honest variants for correct. Called by problem_check.c. This module only makes source texts; it
// knows nothing of daemons.
#ifndef CLIENT_PROBLEM_MUTANT_H
#define CLIENT_PROBLEM_MUTANT_H

#include "common/strbuf.h"
#include "problem/problem.h"
#include <stdbool.h>

// id, name, what the mutant does, what is wrong with a problem that takes it for correct
#define MUTANTS(X)                                                                                 \
    X(NOTHING, "nothing", "does nothing at all", "outputs are not looked at")                      \
    X(ZEROS, "zeros", "writes zeros",                                                              \
      "the error scale or the tolerance is so large that 0 passes")                                \
    X(CONSTANT, "constant", "writes the mean of the output everywhere",                            \
      "the tolerance is as large as the output varies")                                            \
    X(INPUT_COPY, "input-copy", "copies an input to the output",                                   \
      "the operation does next to nothing")                                                        \
    X(PREVIOUS, "previous", "gives the answer of the call before",                                 \
      "the inputs of two calls are the same, or the output hardly depends on them")                \
    X(FIRST, "first", "gives its first answer for ever",                                           \
      "the inputs of two calls are the same, or the output hardly depends on them")                \
    X(OTHER_INPUTS, "other-inputs", "computes with other values from the same inputs",             \
      "the output hardly depends on the inputs")                                                   \
    X(LAST_ROW_POISON, "last-row-skipped", "leaves the last row as it was",                        \
      "the end of the first axis is not checked")                                                  \
    X(LAST_ROW_ZERO, "last-row-zero", "writes zeros to the last row",                              \
      "the end of the first axis is not checked")                                                  \
    X(LAST_COLUMN_POISON, "last-column-skipped", "leaves the last column as it was",               \
      "the end of the last axis is not checked")                                                   \
    X(LAST_COLUMN_ZERO, "last-column-zero", "writes zeros to the last column",                     \
      "the end of the last axis is not checked")                                                   \
    X(LAST_TILE_POISON, "last-tile-skipped", "leaves the last 16 of the last axis as they were",   \
      "the end of the last axis is not checked")                                                   \
    X(LAST_TILE_ZERO, "last-tile-zero", "writes zeros to the last 16 of the last axis",            \
      "the end of the last axis is not checked")                                                   \
    X(REMAINDER, "remainder-skipped",                                                              \
      "skips what is left of the last axis after full tiles of 16",                                \
      "no case has a last axis that is not a multiple of 16")                                      \
    X(SHIFTED, "shifted", "moves the output by one element",                                       \
      "the tolerance is as large as neighbours differ")                                            \
    X(BF16_INPUTS, "bf16-inputs", "rounds the inputs to bfloat16",                                 \
      "the tolerance admits bfloat16 arithmetic")                                                  \
    X(TF32_INPUTS, "tf32-inputs", "rounds the inputs to 10 bits, like fp16 and tf32",              \
      "the tolerance admits half precision arithmetic")                                            \
    X(BF16_OUTPUT, "bf16-output", "rounds the output to bfloat16",                                 \
      "the tolerance admits bfloat16 results")                                                     \
    X(F32_OUTPUT, "f32-output", "rounds the output to single precision",                           \
      "the tolerance admits single precision results")                                             \
    X(ONE_PERCENT, "one-percent", "changes 1 % of the elements by 1 %",                            \
      "single wrong elements are not noticed")                                                     \
    X(SWAPPED, "swapped", "swaps the two halves of the first axis",                                \
      "rows can be exchanged for each other")                                                      \
    X(WRITES_INPUT, "writes-input", "is correct, and writes to an input",                          \
      "inputs are not watched")                                                                    \
    X(OVERRUN, "overrun", "is correct, and writes behind the output", "guard zones are not watched")

enum mutant {
#define X(id, name, what, meaning) MUTANT_##id,
    MUTANTS(X)
#undef X
        MUTANT_COUNT
};

const char *mutant_name(enum mutant mutant);
const char *mutant_what(enum mutant mutant);
const char *mutant_meaning(enum mutant mutant);

// Whether the mutant can differ from an honest implementation of this problem. If not, the sentence
// that says why is appended to reason.
bool mutant_applicable(enum mutant mutant, const struct problem *problem, struct strbuf *reason);
// Appends the mutant's source. The mutant must be applicable. baseline is the text of the problem's
// baseline.
void mutant_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                   struct strbuf *out);

// Honest variants are the baseline with other orders of arithmetic.
// id, name, what the variant is, pragma before the baseline or NULL
#define HONEST_VARIANTS(X)                                                                         \
    X(BASELINE, "baseline", "the baseline itself", NULL)                                           \
    X(REORDERED, "reordered", "the baseline with sums in any order (-Ofast)",                      \
      "#pragma GCC optimize (\"Ofast\", \"no-finite-math-only\")")                                 \
    X(PLAIN, "plain", "the baseline without vectors and fused operations",                         \
      "#pragma GCC optimize (\"no-tree-vectorize\", \"fp-contract=off\")")

enum honest {
#define X(id, name, what, pragma) HONEST_##id,
    HONEST_VARIANTS(X)
#undef X
        HONEST_COUNT
};

const char *honest_name(enum honest honest);
const char *honest_what(enum honest honest);
// As mutant_applicable. For a cuda problem only the baseline itself is applicable.
bool honest_applicable(enum honest honest, const struct problem *problem, struct strbuf *reason);
// Appends the variant's source.
void honest_source(enum honest honest, const char *baseline, struct strbuf *out);

#endif
