#include "worker/llm/spend.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uthash.h>

#define NAME_MAX_LEN 160 // bytes of an account's name: "s:" and the search, which has at most 128

struct spend_account {
    char name[NAME_MAX_LEN]; // key
    const struct endpoint_amount *limit;
    struct endpoint_amount spent, reserved;
    size_t open, unbounded; // requests that are open
    UT_hash_handle hh;
};

// The account of this name, made if it is missing.
static struct spend_account *account_of(struct spend_book *book, const char *name,
                                        const struct endpoint_amount *limit)
{
    struct spend_account *account = NULL;

    HASH_FIND_STR(book->accounts, name, account);
    if (!account) {
        account = xcalloc(1, sizeof(*account));
        (void)snprintf(account->name, sizeof(account->name), "%s", name);
        account->limit = limit;
        if (book->store) {
            account->spent = endpoint_store_spent(book->store, name);
        }
        HASH_ADD_STR(book->accounts, name, account);
    }
    return account;
}

// The accounts that a request of the search is paid from.
static void accounts_of(struct spend_book *book, const char *search,
                        struct spend_account *ret[static SPEND_ACCOUNTS])
{
    const struct clock *clock = book->clock ? book->clock : &clock_system;
    time_t now = (time_t)(clock_wall_ns(clock) / 1000000000);
    char name[NAME_MAX_LEN], day[32];
    struct tm tm;

    (void)snprintf(name, sizeof(name), "s:%s", search);
    ret[0] = account_of(book, name, &book->limits.search);
    (void)strftime(day, sizeof(day), "d:%Y-%m-%d", gmtime_r(&now, &tm));
    ret[1] = account_of(book, day, &book->limits.day);
    ret[2] = account_of(book, "w", &book->limits.worker);
}

// ERR_LIMIT when the account's limit is reached.
static int check_spent(const struct spend_account *account, struct err *err)
{
    const char *who = account->name[0] == 's'   ? "the search has"
                      : account->name[0] == 'd' ? "today's searches have"
                                                : "the worker has";

    if (account->limit->tokens > 0 && account->spent.tokens >= account->limit->tokens) {
        return err_set(err, ERR_LIMIT, "%s used up %s %.0f tokens", who,
                       account->name[0] == 'd' ? "their" : "its", account->limit->tokens);
    }
    if (account->limit->cost > 0 && account->spent.cost >= account->limit->cost) {
        return err_set(err, ERR_LIMIT, "%s used up %s budget of %g", who,
                       account->name[0] == 'd' ? "their" : "its", account->limit->cost);
    }
    return 0;
}

// Whether a request must wait for the ones that are open.
static bool must_wait(const struct spend_account *account, struct endpoint_amount most,
                      bool unbounded)
{
    const struct endpoint_amount *limit = account->limit;

    if (account->open == 0 || (limit->tokens <= 0 && limit->cost <= 0)) {
        return false;
    }
    return unbounded || account->unbounded > 0 ||
           (limit->tokens > 0 &&
            account->spent.tokens + account->reserved.tokens + most.tokens > limit->tokens) ||
           (limit->cost > 0 &&
            account->spent.cost + account->reserved.cost + most.cost > limit->cost);
}

// The names of the accounts as the store wants them. The caller frees them.
static char *names_of(struct spend_account *const account[static SPEND_ACCOUNTS])
{
    struct strbuf names = STRBUF_INIT;

    for (size_t i = 0; i < SPEND_ACCOUNTS; i++) {
        strbuf_addf(&names, "%s%s", i > 0 ? "\n" : "", account[i]->name);
    }
    return strbuf_detach(&names);
}

enum spend_answer spend_reserve(struct spend_book *book, const char *search,
                                struct endpoint_amount most, bool unbounded,
                                struct spend_reservation *ret, struct err *err)
{
    struct spend_reservation reservation = {.open = true, .most = most, .unbounded = unbounded};
    bool wait = false;

    accounts_of(book, search, reservation.account);
    for (size_t i = 0; i < SPEND_ACCOUNTS; i++) {
        if (check_spent(reservation.account[i], err) != 0) {
            return SPEND_NEVER;
        }
        wait |= must_wait(reservation.account[i], most, unbounded);
    }
    if (wait) {
        return SPEND_LATER;
    }
    if (book->store) {
        char *names = names_of(reservation.account);

        reservation.id = endpoint_store_reserve(book->store, names, most);
        free(names);
        if (reservation.id == 0) {
            (void)err_set(err, ERR_SYSTEM, "what a question costs cannot be kept in the state");
            return SPEND_NEVER;
        }
    }
    for (size_t i = 0; i < SPEND_ACCOUNTS; i++) {
        struct spend_account *account = reservation.account[i];

        account->open++;
        account->unbounded += unbounded;
        account->reserved.tokens += most.tokens;
        account->reserved.cost += most.cost;
    }
    *ret = reservation;
    return SPEND_GO;
}

double spend_price(const struct endpoint_config *endpoint, const struct answer_usage *usage)
{
    uint64_t cached = usage->cached < usage->input ? usage->cached : usage->input;
    uint64_t rest = usage->input - cached;
    uint64_t written = usage->written < rest ? usage->written : rest;
    double price_written =
        endpoint->price_cache_write > 0 ? endpoint->price_cache_write : endpoint->price_input;

    return ((double)(rest - written) * endpoint->price_input + (double)written * price_written +
            (double)cached * endpoint->price_cached +
            (double)usage->output * endpoint->price_output) /
           1e6;
}

double spend_settle(struct spend_book *book, struct spend_reservation *reservation,
                    const struct endpoint_config *endpoint, const struct answer_usage *usage)
{
    struct endpoint_amount spent = {.tokens = 0};

    if (!reservation->open) {
        return 0;
    }
    if (usage) {
        spent.tokens = (double)usage->input + (double)usage->output;
        spent.cost = spend_price(endpoint, usage);
        book->input_tokens += usage->input;
        book->output_tokens += usage->output;
        book->cost += spent.cost;
    }
    for (size_t i = 0; i < SPEND_ACCOUNTS; i++) {
        struct spend_account *account = reservation->account[i];

        account->open--;
        account->unbounded -= reservation->unbounded;
        account->reserved.tokens -= reservation->most.tokens;
        account->reserved.cost -= reservation->most.cost;
        account->spent.tokens += spent.tokens;
        account->spent.cost += spent.cost;
        if (account->open == 0) { // no rounding is left over
            account->reserved = (struct endpoint_amount){.tokens = 0};
        }
    }
    if (book->store) {
        char *names = names_of(reservation->account);

        endpoint_store_settle(book->store, reservation->id, names, spent);
        free(names);
    }
    *reservation = (struct spend_reservation){.open = false};
    return spent.cost;
}

void spend_book_release(struct spend_book *book)
{
    struct spend_account *account, *next;

    HASH_ITER (hh, book->accounts, account, next) {
        HASH_DEL(book->accounts, account);
        free(account);
    }
}
