// Writes the prompts of proposals: what a language model is told to write a new candidate. They
// hold everything that this takes, the form of a candidate (worker/prompt/prompt_form.h) included.
// Called by llm_propose.c. Rules and search come first and are the same for the requests of a
// round; the candidate to start from comes last.
#ifndef WORKER_PROMPT_PROMPT_PROPOSE_H
#define WORKER_PROMPT_PROMPT_PROPOSE_H

#include "common/strbuf.h"
#include "proto/messages.h"

// The lines around what an edit searches for and what it puts there (worker/llm/answer_edits.h).
#define PROMPT_EDIT_SEARCH "<<<<<<< SEARCH"
#define PROMPT_EDIT_DIVIDE "======="
#define PROMPT_EDIT_REPLACE ">>>>>>> REPLACE"

// All functions append to out.

// What a new candidate is written in.
enum prompt_language { PROMPT_C, PROMPT_CUDA, PROMPT_PYTHON };

// The rules of proposing.
void prompt_propose_rules(struct strbuf *out, enum prompt_language language);
// What is known of the search, as for forecasts, and what its changes came to.
void prompt_propose_search(struct strbuf *out, const struct propose_request *request);
// The candidate to start from, others to take ideas from, and the question.
void prompt_parent(struct strbuf *out, const struct propose_request *request);

#endif
