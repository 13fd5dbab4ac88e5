// What the worker keeps of its endpoints, in STATE/endpoints.db: how each is asked, what was spent,
// and what is reserved for requests that are open. All of it is written before a request leaves, so
// that a worker which is killed knows afterwards what it may have to pay for. A file that cannot be
// read is an error and is never made anew: it holds what was spent. Owned by struct llm. One
// thread.
#ifndef WORKER_ENDPOINT_ENDPOINT_STORE_H
#define WORKER_ENDPOINT_ENDPOINT_STORE_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stdint.h>

#define ENDPOINT_STORE_SEARCHES_MAX 10000 // whose spending is kept; the oldest are forgotten

struct endpoint_store;

// ERR_SYSTEM when the file cannot be opened or made. What was reserved when the worker was killed
// counts as spent from now on.
MUST_CHECK int endpoint_store_open(struct endpoint_store **ret, const char *path, struct err *err);
void endpoint_store_close(struct endpoint_store *store); // NULL is fine

// ---- how endpoints are asked ----

// Appends the text that was kept under this key. Returns whether there is one.
bool endpoint_store_style(struct endpoint_store *store, const char *key, struct strbuf *out);
void endpoint_store_set_style(struct endpoint_store *store, const char *key, const char *text);

// ---- what was spent ----

struct endpoint_amount {
    double tokens, cost;
};

// What was spent under a name: a search, a day or the worker. Zero for one that is not known.
struct endpoint_amount endpoint_store_spent(struct endpoint_store *store, const char *name);

// Keeps that a request is about to be made that may cost so much under each of these names
// (separated by '\n'). Returns its number; 0: it could not be written, and the request must not be
// made.
int64_t endpoint_store_reserve(struct endpoint_store *store, const char *names,
                               struct endpoint_amount most);
// Replaces the reservation by what was spent.
void endpoint_store_settle(struct endpoint_store *store, int64_t reservation, const char *names,
                           struct endpoint_amount spent);

#endif
