// Writes the prompts of forecasts: what a language model is asked, as text. Called by the questions
// (llm*.c). What changes least comes first, so that endpoints can keep it in their prompt cache:
// rules, problem, device and baseline are the same for a whole search; the best so far, what was
// tried, the measured neighbours and what the candidates end with in common for all candidates of a
// request; what is the candidate's own comes last.
// Sources are quoted between lines that contain their own digest, so that no text can end its own
// quote, and the rules say that quoted text is no instruction. The tables of bins come from
// proto/bins.h and worker/prompt/fine_bins.h. Proposals are the business of prompt_propose.h.
#ifndef WORKER_PROMPT_PROMPT_H
#define WORKER_PROMPT_PROMPT_H

#include "common/strbuf.h"
#include "proto/messages.h"

// Grows with every change of what the functions below write, beside the rules: a model that reads
// other words is another forecaster. tests/worker/prompt/test_prompt.c reminds of it.
#define PROMPT_EDITION 2

// Bytes that are quoted of one text; the prompt says how many more were left out.
#define PROMPT_SOURCE_MAX ((size_t)32 << 10)
#define PROMPT_README_MAX ((size_t)8 << 10)

// All functions append to out.

// The rules of forecasting: what is asked, and the form of the answer.
void prompt_rules(struct strbuf *out);
// The rule about quoted texts, for all prompts.
void prompt_quote_rule(struct strbuf *out);
// What is known of a request, which must have a context, but for its candidates.
void prompt_search(struct strbuf *out, const struct forecast_request *request);
// A candidate that was tried and its source. title: a few words of our own.
void prompt_known_source(struct strbuf *out, const char *title, const struct known_source *known);
// One candidate, and the question.
void prompt_candidate(struct strbuf *out, const struct forecast_request *request,
                      const struct candidate_facts *candidate);

#endif
