// Mutants: candidates that look like an implementation and are none. Each contains a problem's
// own baseline and spoils its inputs or outputs in one particular way: C text with the baseline
// under another name, or a sealed CUDA source with the baseline's launches between its own. What
// `kcast problem check` tries; knows nothing of daemons.
#ifndef CLIENT_PROBLEM_PROBLEM_MUTANT_H
#define CLIENT_PROBLEM_PROBLEM_MUTANT_H

#include "common/strbuf.h"
#include "problem/problem.h"
#include <stdbool.h>

// id, name, what it does, what it means when it is taken for correct
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
const char *mutant_meaning(enum mutant mutant); // why it is bad if it passes

// Whether the mutant makes sense for this problem. If not, the sentence why is appended to
// reason.
bool mutant_applicable(enum mutant mutant, const struct problem *problem, struct strbuf *reason);
// Appends the source. The mutant applies.
void mutant_source(enum mutant mutant, const struct problem *problem, const char *baseline,
                   struct strbuf *out);

// Honest variants: the baseline in other orders of arithmetic. These must be taken for correct.
// id, name, what it is, pragma that stands before it or NULL
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
// As mutant_applicable: a cuda problem has the baseline only.
bool honest_applicable(enum honest honest, const struct problem *problem, struct strbuf *reason);
void honest_source(enum honest honest, const char *baseline, struct strbuf *out);

#endif
