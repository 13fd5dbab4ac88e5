// What language models cost: tokens and money, in total and of each search, and the limits on a
// search. Owned by struct llm. Kept in memory only.
#ifndef WORKER_LLM_SPEND_H
#define WORKER_LLM_SPEND_H

#include "common/err.h"
#include "worker/llm/answer.h"
#include "worker/llm/endpoint.h"

struct spend; // of one search

// Embedded by value; zeroed memory has no limits.
struct spend_book {
    double tokens_per_search, cost_per_search; // limits; 0: none
    uint64_t input_tokens, output_tokens;      // in total
    double cost;                               // in total
    struct spend *spends;                      // hash table by search
};

// ERR_LIMIT when the search has used up one of its limits.
MUST_CHECK int spend_may_spend(struct spend_book *book, const char *search, struct err *err);
// Adds the tokens of one request, at the endpoint's prices. Returns its cost.
double spend_charge(struct spend_book *book, const char *search,
                    const struct endpoint_config *endpoint, const struct answer_usage *usage);
void spend_book_release(struct spend_book *book);

#endif
