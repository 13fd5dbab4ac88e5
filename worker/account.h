// What language models cost: tokens and money, in all and of each search, against caps.
#ifndef WORKER_ACCOUNT_H
#define WORKER_ACCOUNT_H

#include "common/err.h"
#include "worker/answer.h"
#include "worker/endpoint.h"

struct account; // of one search

struct account_book {
    double tokens_per_search, cost_per_search; // caps; 0: none
    uint64_t input_tokens, output_tokens;
    double cost;
    struct account *accounts; // a hash; NULL: nobody has spent anything
};

// ERR_LIMIT when the search has used up one of its caps.
MUST_CHECK int account_may_spend(struct account_book *book, const char *search, struct err *err);
// Adds what an attempt used, at the endpoint's prices; returns its cost.
double account_charge(struct account_book *book, const char *search,
                      const struct endpoint_config *endpoint, const struct answer_usage *usage);
void account_book_release(struct account_book *book);

#endif
