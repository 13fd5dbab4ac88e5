// Finds the candidates in the text of a language model's answer. Models write programs best as they
// are, in fenced blocks, and worse inside JSON (Gauthier 2024, "LLMs are bad at returning code in
// JSON"). The prompt therefore asks for fenced blocks, and other forms are only understood. What a
// model thinks aloud before it answers, <think> … </think>, holds drafts, and none of it is looked
// at. Called by llm_propose.c.
#ifndef WORKER_LLM_ANSWER_SOURCES_H
#define WORKER_LLM_ANSWER_SOURCES_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

#define ANSWER_SOURCE_MAX ((size_t)256 << 10) // bytes of one program; longer ones are left out

// What a candidate must be.
struct answer_wanted {
    bool launches;     // it is sealed: it has a //@ launch line and a kernel
    bool python;       // it is Python and defines `entry`, custom_kernel or ModelNew
    const char *entry; // it defines this function; NULL: it need not
    // The program that edits (worker/llm/answer_edits.h) begin from; NULL: there are no edits.
    const char *program;
    size_t program_len;
};

// Writes up to max candidates to ret, in their order, and returns how many. The caller frees each.
// They are the contents of the fenced blocks (``` or ~~~) that are what is wanted, or edits that
// make such a program. Where there is none, edits that stand outside of blocks count as one
// candidate, and then the strings "source" or "code" of JSON objects count. A block without an end
// counts only when the answer was not cut off (whole). *why (may be NULL) says of the last block
// that was left out why it is no candidate.
size_t answer_sources(const struct answer_wanted *wanted, const char *text, bool whole, char **ret,
                      size_t max, struct err *why);

#endif
