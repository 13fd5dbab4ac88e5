// The structs that net/rpc/service.c (connections) and net/rpc/exchange.c (requests and answers)
// share. Only these two files and tests include it.
#ifndef NET_RPC_SERVICE_STATE_H
#define NET_RPC_SERVICE_STATE_H

#include "common/log.h"
#include "net/rpc/listener.h"
#include "net/rpc/service.h"
#include "net/rpc/stream.h"
#include "net/url.h"

struct connection {
    struct service *service;
    struct stream *stream;
    bool greeted;         // the caller's greeting has arrived
    struct holder holder; // the token that it has shown
    uint64_t greet_by_ms; // when it is closed unless it has greeted (the loop's clock)
    bool starved;         // a frame waits for room in the service; in service->starved
    bool choked;          // a frame waits until unsent replies have left
    struct connection *prev;
    struct connection *next;
    struct connection *starved_prev;
    struct connection *starved_next;
};

struct exchange {
    struct service *service;
    struct connection *connection; // NULL once it has ended
    struct caller caller;          // points to tenant
    char tenant[TENANT_MAX + 1];
    uint64_t request_id;
    uint64_t arrived_ns;  // uv_hrtime
    uint64_t deadline_ms; // relative to arrived_ns; 0: none
    bool parked;
    void (*on_drop)(void *waiter); // of a parked exchange; may be NULL
    void *waiter;
    struct exchange *prev;
    struct exchange *next;
};

struct service {
    uv_loop_t *loop;
    struct listener *listener;
    uv_timer_t greeting; // fires when the next connection that has not greeted is to be closed
    uv_timer_t room;     // of 0 ms: reads on from starved connections
    int handles;         // handles that are not closed yet
    struct service_config config;
    struct connection *connections; // list of all, the oldest first
    struct connection *starved;     // list, the one that has waited longest first
    size_t connection_count;
    struct exchange *exchanges; // list of the open ones
    size_t exchange_count;
    size_t parked; // how many of these are parked
    uint64_t requests;
    uint64_t failures[ERR_COUNT];   // requests by the error that answered them
    struct log_limit refusal_limit; // how often on_refusal is called
    uint64_t refusals;
    struct identity identity;
    bool closing;
    struct url address; // as configured, perhaps with port 0
    char url[URL_HOST_MAX + 32];
};

// Counts a refusal and calls on_refusal, unless that was called within the last second.
void service_note_refusal(struct service *service, const char *peer, const char *reason);

// Makes the exchange of a request that has arrived.
struct exchange *exchange_create(struct service *service, struct connection *connection);
// Decodes the request and gives it to the handler, or answers it with an error.
void exchange_serve(struct exchange *exchange, const void *data, size_t len);
// Takes the exchange out of the service and frees it without an answer.
void exchange_free(struct exchange *exchange);
// Handles the end of a connection: parked exchanges with on_drop are dropped, and the answers of
// the others will go nowhere.
void exchanges_leave(struct service *service, const struct connection *connection);
// Drops all exchanges, because the service closes.
void exchanges_drop(struct service *service);
// Tells that the service has room for one more exchange.
void service_has_room(struct service *service);

#endif
