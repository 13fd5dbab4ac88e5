// The programs in a language model's answer. Models write programs best as they stand, in fenced
// blocks; inside JSON they get worse (Gauthier 2024, "LLMs are bad at returning code in JSON"), so
// that is what is asked for, and the other forms are only understood.
#ifndef WORKER_LLM_ANSWER_SOURCES_H
#define WORKER_LLM_ANSWER_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#define ANSWER_SOURCE_MAX ((size_t)256 << 10) // bytes of one; longer ones are left out

// Writes up to max programs to ret, in their order, each to be freed, and returns how many. Those are
// the contents of fenced blocks (``` or ~~~) that hold a '{'; where there are none, the strings "source"
// or "code" of JSON objects. A block that the text ends in counts only when the answer was not cut
// off (`whole`).
size_t answer_sources(const char *text, bool whole, char **ret, size_t max);

#endif
