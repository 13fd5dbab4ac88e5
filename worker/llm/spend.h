// What language models cost: tokens and money, in all and of each search, against caps.
#ifndef WORKER_LLM_SPEND_H
#define WORKER_LLM_SPEND_H

#include "common/err.h"
#include "worker/llm/answer.h"
#include "worker/llm/endpoint.h"

struct spend; // of one search

struct spend_book {
    double tokens_per_search, cost_per_search; // caps; 0: none
    uint64_t input_tokens, output_tokens;
    double cost;
    struct spend *spends; // a hash; NULL: nobody has spent anything
};

// ERR_LIMIT when the search has used up one of its caps.
MUST_CHECK int spend_may_spend(struct spend_book *book, const char *search, struct err *err);
// Adds what an attempt used, at the endpoint's prices; returns its cost.
double spend_charge(struct spend_book *book, const char *search,
                    const struct endpoint_config *endpoint, const struct answer_usage *usage);
void spend_book_release(struct spend_book *book);

#endif
