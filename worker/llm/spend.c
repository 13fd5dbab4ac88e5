#include "worker/llm/spend.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uthash.h>

#define NAME_MAX_LEN 160 // bytes of a total's name: "s:" and the search, which has at most 128

struct spend_total {
    char name[NAME_MAX_LEN]; // key
    const struct endpoint_amount *limit;
    struct endpoint_amount spent, reserved;
    size_t open, unbounded; // requests that are open
    UT_hash_handle hh;
};

// The total of this name, made if it is missing.
static struct spend_total *total_of(struct spend_book *book, const char *name,
                                    const struct endpoint_amount *limit)
{
    struct spend_total *total = NULL;

    HASH_FIND_STR(book->totals, name, total);
    if (!total) {
        total = xcalloc(1, sizeof(*total));
        (void)snprintf(total->name, sizeof(total->name), "%s", name);
        total->limit = limit;
        if (book->store) {
            total->spent = endpoint_store_spent(book->store, name);
        }
        HASH_ADD_STR(book->totals, name, total);
    }
    return total;
}

// The totals that a request of the search counts in.
static void totals_of(struct spend_book *book, const char *search,
                      struct spend_total *ret[static SPEND_TOTALS])
{
    const struct clock *clock = book->clock ? book->clock : &clock_system;
    time_t now = (time_t)(clock_wall_ns(clock) / 1000000000);
    char name[NAME_MAX_LEN], day[32];
    struct tm tm;

    (void)snprintf(name, sizeof(name), "s:%s", search);
    ret[0] = total_of(book, name, &book->limits.search);
    (void)strftime(day, sizeof(day), "d:%Y-%m-%d", gmtime_r(&now, &tm));
    ret[1] = total_of(book, day, &book->limits.day);
    ret[2] = total_of(book, "w", &book->limits.worker);
}

// ERR_LIMIT when the total's limit is reached.
static int check_spent(const struct spend_total *total, struct err *err)
{
    const char *who = total->name[0] == 's'   ? "the search has"
                      : total->name[0] == 'd' ? "today's searches have"
                                              : "the worker has";

    if (total->limit->tokens > 0 && total->spent.tokens >= total->limit->tokens) {
        return err_set(err, ERR_LIMIT, "%s used up %s %.0f tokens", who,
                       total->name[0] == 'd' ? "their" : "its", total->limit->tokens);
    }
    if (total->limit->cost > 0 && total->spent.cost >= total->limit->cost) {
        return err_set(err, ERR_LIMIT, "%s used up %s budget of %g", who,
                       total->name[0] == 'd' ? "their" : "its", total->limit->cost);
    }
    return 0;
}

// Whether a request must wait for the ones that are open.
static bool must_wait(const struct spend_total *total, struct endpoint_amount most, bool unbounded)
{
    const struct endpoint_amount *limit = total->limit;

    if (total->open == 0 || (limit->tokens <= 0 && limit->cost <= 0)) {
        return false;
    }
    return unbounded || total->unbounded > 0 ||
           (limit->tokens > 0 &&
            total->spent.tokens + total->reserved.tokens + most.tokens > limit->tokens) ||
           (limit->cost > 0 && total->spent.cost + total->reserved.cost + most.cost > limit->cost);
}

// The names of the totals as the store wants them. The caller frees them.
static char *names_of(struct spend_total *const total[static SPEND_TOTALS])
{
    struct strbuf names = STRBUF_INIT;

    for (size_t i = 0; i < SPEND_TOTALS; i++) {
        strbuf_addf(&names, "%s%s", i > 0 ? "\n" : "", total[i]->name);
    }
    return strbuf_detach(&names);
}

enum spend_answer spend_reserve(struct spend_book *book, const char *search,
                                struct endpoint_amount most, bool unbounded,
                                struct spend_reservation *ret, struct err *err)
{
    struct spend_reservation reservation = {.open = true, .most = most, .unbounded = unbounded};
    bool wait = false;

    totals_of(book, search, reservation.total);
    for (size_t i = 0; i < SPEND_TOTALS; i++) {
        if (check_spent(reservation.total[i], err) != 0) {
            return SPEND_NEVER;
        }
        wait |= must_wait(reservation.total[i], most, unbounded);
    }
    if (wait) {
        return SPEND_LATER;
    }
    if (book->store) {
        char *names = names_of(reservation.total);

        reservation.id = endpoint_store_reserve(book->store, names, most);
        free(names);
        if (reservation.id == 0) {
            (void)err_set(err, ERR_SYSTEM, "what a question costs cannot be kept in the state");
            return SPEND_NEVER;
        }
    }
    for (size_t i = 0; i < SPEND_TOTALS; i++) {
        struct spend_total *total = reservation.total[i];

        total->open++;
        total->unbounded += unbounded;
        total->reserved.tokens += most.tokens;
        total->reserved.cost += most.cost;
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
    for (size_t i = 0; i < SPEND_TOTALS; i++) {
        struct spend_total *total = reservation->total[i];

        total->open--;
        total->unbounded -= reservation->unbounded;
        total->reserved.tokens -= reservation->most.tokens;
        total->reserved.cost -= reservation->most.cost;
        total->spent.tokens += spent.tokens;
        total->spent.cost += spent.cost;
        if (total->open == 0) { // no rounding is left over
            total->reserved = (struct endpoint_amount){.tokens = 0};
        }
    }
    if (book->store) {
        char *names = names_of(reservation->total);

        endpoint_store_settle(book->store, reservation->id, names, spent);
        free(names);
    }
    *reservation = (struct spend_reservation){.open = false};
    return spent.cost;
}

void spend_book_release(struct spend_book *book)
{
    struct spend_total *total, *next;

    HASH_ITER (hh, book->totals, total, next) {
        HASH_DEL(book->totals, total);
        free(total);
    }
}
