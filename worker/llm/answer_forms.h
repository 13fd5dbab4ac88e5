// Turns the answers of the interfaces that endpoints have into one shape, that of a choice of
// OpenAI's chat completions: {"message": {"content", "tool_calls", "reasoning_content", "refusal"},
// "finish_reason", "logprobs": {"content"}}. Which interface an answer is of is seen from the
// answer itself. Called by answer.c. Trusts nothing in the answer.
#ifndef WORKER_LLM_ANSWER_FORMS_H
#define WORKER_LLM_ANSWER_FORMS_H

#include "worker/llm/answer.h"
#include <jansson.h>

// The choice as a new reference; NULL when the object is no answer of any interface.
json_t *answer_forms_choice(const json_t *root);

// Reads the tokens that the answer says it took. Anthropic counts what its prompt cache had, and
// what was written to it, beside the input tokens; in *ret both are a part of the input.
void answer_forms_usage(const json_t *root, struct answer_usage *ret);

// How a text of an end ("finish_reason", "stop_reason") is to be understood.
enum answer_end answer_forms_end(const char *finish);

#endif
