// Edits of a program as language models write them: blocks that name the lines to be searched and
// the lines to put in their place, in the form that is common for this (Gauthier, aider). Called by
// the finder of programs. Trusts nothing in the text.
#ifndef WORKER_LLM_ANSWER_EDITS_H
#define WORKER_LLM_ANSWER_EDITS_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>

#define ANSWER_EDITS_MAX 64 // in one block

// Whether a block holds edits: a line of it is like PROMPT_EDIT_SEARCH.
bool answer_edits_are(const char *text, size_t len);

// Makes the edits of a block in their order. The searched lines have to occur once in the program
// as it is then; blanks at the ends of lines do not count, and where nothing is found so, those at
// their beginnings do not count either: what is put there gets those that the edit leaves out.
// Comments before the first edit become the program's first, in place of one that it begins with.
// *ret is malloc'd. ERR_INVALID says which edit cannot be made and why; ERR_LIMIT when the program
// grows beyond max bytes, or there are more than ANSWER_EDITS_MAX edits.
MUST_CHECK int answer_edits_apply(char **ret, const char *program, size_t program_len,
                                  const char *text, size_t len, size_t max, struct err *err);

#endif
