// The integers that a program in Python gives names to. Called by problem/source_facts.c.
#ifndef PROBLEM_PYTHON_DEFINITIONS_H
#define PROBLEM_PYTHON_DEFINITIONS_H

#include <stddef.h>

// Calls found for each, in the order of the text, which is normalised
// (problem/normalised_source.h): of statements as "tall, wide = 128, 64", arguments and defaults as
// "num_warps=4" and "BLOCK: tl.constexpr = 128", and keys as {"BLOCK_M": 128}. The name, of `len`
// characters, is part of the text.
void python_definitions(const char *text,
                        void (*found)(void *owner, const char *name, size_t len, long long value),
                        void *owner);

#endif
