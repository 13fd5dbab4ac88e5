#include "worker/llm/spend.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

struct spend {
    char search[129]; // key
    double tokens, cost;
    UT_hash_handle hh;
};

// The spending of a search, made if it is missing.
static struct spend *spend_of(struct spend_book *book, const char *search)
{
    struct spend *spend = NULL;

    HASH_FIND_STR(book->spends, search, spend);
    if (!spend) {
        spend = xcalloc(1, sizeof(*spend));
        (void)snprintf(spend->search, sizeof(spend->search), "%s", search);
        HASH_ADD_STR(book->spends, search, spend);
    }
    return spend;
}

int spend_may_spend(struct spend_book *book, const char *search, struct err *err)
{
    const struct spend *spend = spend_of(book, search);

    if (book->tokens_per_search > 0 && spend->tokens >= book->tokens_per_search) {
        return err_set(err, ERR_LIMIT, "the search has used up its %.0f tokens",
                       book->tokens_per_search);
    }
    if (book->cost_per_search > 0 && spend->cost >= book->cost_per_search) {
        return err_set(err, ERR_LIMIT, "the search has used up its budget of %g",
                       book->cost_per_search);
    }
    return 0;
}

double spend_charge(struct spend_book *book, const char *search,
                    const struct endpoint_config *endpoint, const struct answer_usage *usage)
{
    struct spend *spend = spend_of(book, search);
    uint64_t cached = usage->cached < usage->input ? usage->cached : usage->input;
    double cost =
        ((double)(usage->input - cached) * endpoint->price_input +
         (double)cached * endpoint->price_cached + (double)usage->output * endpoint->price_output) /
        1e6;

    spend->tokens += (double)(usage->input + usage->output);
    spend->cost += cost;
    book->input_tokens += usage->input;
    book->output_tokens += usage->output;
    book->cost += cost;
    return cost;
}

void spend_book_release(struct spend_book *book)
{
    struct spend *spend, *next;

    HASH_ITER (hh, book->spends, spend, next) {
        HASH_DEL(book->spends, spend);
        free(spend);
    }
}
