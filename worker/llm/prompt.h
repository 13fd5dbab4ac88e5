// What a language model is asked, as text. One renderer; the bin table comes from proto/bins.h. What
// is the same for all candidates of a request comes first, so that endpoints can keep it; the candidate
// comes last. Sources stand between marks that contain their own digest: no text can end its own quote,
// and the rules say that what stands there is no instruction.
#ifndef WORKER_LLM_PROMPT_H
#define WORKER_LLM_PROMPT_H

#include "common/strbuf.h"
#include "proto/messages.h"

#define PROMPT_SOURCE_MAX                                                                          \
    ((size_t)32 << 10) // bytes of one source; the rest is left out, and said so
#define PROMPT_README_MAX ((size_t)8 << 10)

// The rules: who is asked, for what, in which form.
void prompt_rules(struct strbuf *out);
// Problem, device, baseline, incumbent and history of a request that has a context.
void prompt_search(struct strbuf *out, const struct forecast_request *request);
// One candidate, and the question.
void prompt_candidate(struct strbuf *out, const struct forecast_request *request,
                      const struct candidate_facts *candidate);

// The rules of proposing, for a language ("C", "CUDA C++").
void prompt_propose_rules(struct strbuf *out, const char *language);
// What is known of the search, as for forecasts.
void prompt_propose_search(struct strbuf *out, const struct propose_request *request);
// The parent, and the question.
void prompt_parent(struct strbuf *out, const struct propose_request *request);

#endif
