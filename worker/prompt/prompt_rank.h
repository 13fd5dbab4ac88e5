// Writes the prompts of rankings: several candidates that nobody has compiled, in one question, of
// which some are to go first. Called by llm_rank.c. Rules and search come first, as for forecasts;
// the candidates come last, each by what tells it from a program that is shown: its first lines
// where it ends like others do, the lines in which it differs from the best so far, or its source.
#ifndef WORKER_PROMPT_PROMPT_RANK_H
#define WORKER_PROMPT_PROMPT_RANK_H

#include "common/strbuf.h"
#include "proto/messages.h"

#define PROMPT_RANK_MAX 64                     // candidates of a question
#define PROMPT_RANK_BYTES ((size_t)48 << 10)   // of what is shown of all of them together
#define PROMPT_RANK_SHARE_LEAST ((size_t)1024) // of one of them; more candidates than fit show less

// All functions append to out.

// The rules of ranking: what is asked, and the form of the answer.
void prompt_rank_rules(struct strbuf *out);
// What is known of the search, as for forecasts.
void prompt_rank_search(struct strbuf *out, const struct rank_request *request);
// The candidates, and the question. shown: the places of the request's candidates in the order in
// which they are shown and numbered, from 1 on.
void prompt_rank_candidates(struct strbuf *out, const struct rank_request *request,
                            const size_t *shown);

#endif
