// Names that people choose and that occur in generated C: parameters, tensors, entries, macros of
// templates. Readers of problems, templates and manifests call these functions.
#ifndef PROBLEM_IDENTIFIER_H
#define PROBLEM_IDENTIFIER_H

#include <stdbool.h>
#include <stddef.h>

#define IDENTIFIER_MAX 63 // characters

// The length of the C identifier at the beginning of text, 0 when there is none. It may exceed
// IDENTIFIER_MAX.
size_t identifier_span(const char *text);

// Why the name may not be used in generated C, such as "is a C keyword". NULL when it may.
const char *identifier_refusal(const char *name);

#endif
