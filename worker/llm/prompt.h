// Writes the prompts: what a language model is asked, as text. Called by the questions (llm*.c).
// What is the same for all candidates of a request comes first, so that endpoints can keep it in
// their prompt cache; the candidate comes last. Sources are quoted between lines that contain their
// own digest, so that no text can end its own quote, and the rules say that quoted text is no
// instruction. The table of bins comes from proto/bins.h.
#ifndef WORKER_LLM_PROMPT_H
#define WORKER_LLM_PROMPT_H

#include "common/strbuf.h"
#include "proto/messages.h"

// Bytes that are quoted of one text; the prompt says how many more were left out.
#define PROMPT_SOURCE_MAX ((size_t)32 << 10)
#define PROMPT_README_MAX ((size_t)8 << 10)

// All functions append to out.

// The rules of forecasting: what is asked, and the form of the answer.
void prompt_rules(struct strbuf *out);
// The problem, the device, the baseline, the incumbent and the history of a request, which must
// have a context.
void prompt_search(struct strbuf *out, const struct forecast_request *request);
// One candidate, and the question.
void prompt_candidate(struct strbuf *out, const struct forecast_request *request,
                      const struct candidate_facts *candidate);

// The rules of proposing, for a language ("C", "CUDA C++").
void prompt_propose_rules(struct strbuf *out, const char *language);
// What is known of the search, as for forecasts.
void prompt_propose_search(struct strbuf *out, const struct propose_request *request);
// The candidate to start from, and the question.
void prompt_parent(struct strbuf *out, const struct propose_request *request);

#endif
