#include "worker/account.h"
#include "common/mem.h"
#include <stdio.h>
#include <stdlib.h>
#include <uthash.h>

struct account {
    char search[129];
    double tokens, cost;
    UT_hash_handle hh;
};

static struct account *account_of(struct account_book *book, const char *search)
{
    struct account *account = NULL;

    HASH_FIND_STR(book->accounts, search, account);
    if (!account) {
        account = xcalloc(1, sizeof(*account));
        (void)snprintf(account->search, sizeof(account->search), "%s", search);
        HASH_ADD_STR(book->accounts, search, account);
    }
    return account;
}

int account_may_spend(struct account_book *book, const char *search, struct err *err)
{
    const struct account *account = account_of(book, search);

    if (book->tokens_per_search > 0 && account->tokens >= book->tokens_per_search) {
        return err_set(err, ERR_LIMIT, "the search has used up its %.0f tokens",
                       book->tokens_per_search);
    }
    if (book->cost_per_search > 0 && account->cost >= book->cost_per_search) {
        return err_set(err, ERR_LIMIT, "the search has used up its budget of %g",
                       book->cost_per_search);
    }
    return 0;
}

double account_charge(struct account_book *book, const char *search,
                      const struct endpoint_config *endpoint, const struct answer_usage *usage)
{
    struct account *account = account_of(book, search);
    uint64_t cached = usage->cached < usage->input ? usage->cached : usage->input;
    double cost = ((double)(usage->input - cached) * endpoint->price_input +
                   (double)cached * endpoint->price_cached +
                   (double)usage->output * endpoint->price_output) /
                  1e6;

    account->tokens += (double)(usage->input + usage->output);
    account->cost += cost;
    book->input_tokens += usage->input;
    book->output_tokens += usage->output;
    book->cost += cost;
    return cost;
}

void account_book_release(struct account_book *book)
{
    struct account *account, *next;

    HASH_ITER (hh, book->accounts, account, next) {
        HASH_DEL(book->accounts, account);
        free(account);
    }
}
