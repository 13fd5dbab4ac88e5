// What language models cost: tokens and money, in total, and the limits of a search, a day and the
// worker. What a request may cost at most is reserved before it is made and kept in the state
// (worker/endpoint/endpoint_store.h), so that neither requests at once nor a worker that is killed
// spend more than the limit and one answer. Owned by struct llm.
#ifndef WORKER_LLM_SPEND_H
#define WORKER_LLM_SPEND_H

#include "common/clock.h"
#include "common/err.h"
#include "worker/endpoint/endpoint.h"
#include "worker/endpoint/endpoint_store.h"
#include "worker/llm/answer.h"

struct spend_total; // of a search, a day or the worker

// 0: no limit. A day is one of UTC; the worker is its state directory, over restarts.
struct spend_limits {
    struct endpoint_amount search, day, worker;
};

// Embedded by value; zeroed memory has no limits and keeps nothing.
struct spend_book {
    struct spend_limits limits;
    struct endpoint_store *store;         // NULL: nothing is kept
    const struct clock *clock;            // for the date; NULL: the system's
    uint64_t input_tokens, output_tokens; // in total, since the process started
    double cost;                          // likewise
    struct spend_total *totals;           // hash table by name
};

#define SPEND_TOTALS 3 // that a request counts in: its search's, its day's and the worker's

// What is reserved for one open request. Zeroed memory is none.
struct spend_reservation {
    bool open;
    int64_t id; // in the store
    struct spend_total *total[SPEND_TOTALS];
    struct endpoint_amount most;
    bool unbounded;
};

enum spend_answer {
    SPEND_GO,    // it is reserved
    SPEND_LATER, // not while other requests are open: they may leave too little
    SPEND_NEVER, // the limit is reached
};

// Reserves what a request may cost at most. unbounded: nothing is known of how much the endpoint
// counts, so that under a limit the request goes alone. A request that may go beyond the limit is
// made when no other one is open that counts in the same total, and the limit is not reached:
// it is the one answer. SPEND_NEVER sets *err to which limit is reached (ERR_LIMIT), or to why it
// could not be kept (ERR_SYSTEM).
enum spend_answer spend_reserve(struct spend_book *book, const char *search,
                                struct endpoint_amount most, bool unbounded,
                                struct spend_reservation *ret, struct err *err);
// What the tokens of a request cost at the endpoint's prices.
double spend_price(const struct endpoint_config *endpoint, const struct answer_usage *usage);
// Replaces a reservation by what the request took; NULL: nothing. Returns its cost.
double spend_settle(struct spend_book *book, struct spend_reservation *reservation,
                    const struct endpoint_config *endpoint, const struct answer_usage *usage);
void spend_book_release(struct spend_book *book);

#endif
