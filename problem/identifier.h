// Names that people choose and that end up in C text: parameters, tensors, entries, tunable macros.
#ifndef PROBLEM_IDENTIFIER_H
#define PROBLEM_IDENTIFIER_H

#include <stdbool.h>
#include <stddef.h>

#define IDENTIFIER_MAX 63

// Length of the run of [A-Za-z_][A-Za-z0-9_]* at text; 0 when there is none. May exceed
// IDENTIFIER_MAX.
size_t identifier_span(const char *text);

// NULL when name may be used in generated C; otherwise why not: "is a C keyword".
const char *identifier_refusal(const char *name);

#endif
