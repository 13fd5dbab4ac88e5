// Finds the programs in the text of a language model's answer. Models write programs best as they
// are, in fenced blocks, and worse inside JSON (Gauthier 2024, "LLMs are bad at returning code in
// JSON"). The prompt therefore asks for fenced blocks, and other forms are only understood. Called
// by llm_propose.c.
#ifndef WORKER_LLM_ANSWER_SOURCES_H
#define WORKER_LLM_ANSWER_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#define ANSWER_SOURCE_MAX ((size_t)256 << 10) // bytes of one program; longer ones are left out

// Writes up to max programs to ret, in their order, and returns how many. The caller frees each.
// They are the contents of the fenced blocks (``` or ~~~) that hold a '{'. Where there are no such
// blocks, they are the strings "source" or "code" of JSON objects. A block without an end counts
// only when the answer was not cut off (whole).
size_t answer_sources(const char *text, bool whole, char **ret, size_t max);

#endif
