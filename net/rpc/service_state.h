// What net/rpc/service.c (connections) and net/rpc/exchange.c (answers) share. Nobody else includes it.
#ifndef NET_RPC_SERVICE_STATE_H
#define NET_RPC_SERVICE_STATE_H

#include "common/log.h"
#include "net/rpc/listener.h"
#include "net/rpc/service.h"
#include "net/rpc/stream.h"
#include "net/rpc/url.h"

struct connection {
    struct service *service;
    struct stream *stream;
    bool greeted;
    struct holder holder;
    uint64_t greet_by_ms; // on the loop's clock
    bool starved;         // in the service's list: a frame waits for room in the service
    bool choked;          // a frame waits until replies have left
    struct connection *prev;
    struct connection *next;
    struct connection *starved_prev;
    struct connection *starved_next;
};

struct exchange {
    struct service *service;
    struct connection *connection; // NULL: it has gone
    struct caller caller;          // his tenant is below
    char tenant[TENANT_MAX + 1];
    uint64_t request_id;
    uint64_t arrived_ns;  // uv_hrtime
    uint64_t deadline_ms; // relative to arrived_ns; 0: none
    bool parked;
    void (*on_drop)(void *waiter);
    void *waiter;
    struct exchange *prev;
    struct exchange *next;
};

struct service {
    uv_loop_t *loop;
    struct listener *listener;
    uv_timer_t greeting; // for the first of those that have not greeted
    uv_timer_t room;     // of 0 ms: reads on from those that are starved
    int handles;         // not closed yet
    struct service_config config;
    struct connection *connections; // list
    struct connection *starved;     // list, who waits longest first
    size_t connection_count;
    struct exchange *exchanges; // list of those that are open
    size_t exchange_count;
    size_t parked;
    uint64_t requests;
    uint64_t failures[ERR_COUNT]; // requests by the error that they were answered with
    struct log_limit told;        // on_refusal
    uint64_t refusals;
    struct identity identity;
    bool closing;
    struct url address; // as it was asked for
    char url[URL_HOST_MAX + 32];
};

// Something was refused: on_refusal is told, or told later how many there were.
void service_tell(struct service *service, const char *peer, const char *reason);

// For a request that has arrived.
struct exchange *exchange_create(struct service *service, struct connection *connection);
// Decodes the request and gives it to the handler, or answers with an error.
void exchange_serve(struct exchange *exchange, const void *data, size_t len);
// Takes it out of the service and frees it, unanswered.
void exchange_free(struct exchange *exchange);
// The connection ends: parked exchanges are dropped, the others are answered into nothing.
void exchanges_leave(struct service *service, const struct connection *connection);
// The service closes: none is left.
void exchanges_drop(struct service *service);
// There is room in the service for one more.
void service_has_room(struct service *service);

#endif
