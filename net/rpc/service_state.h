// The structs that the files of the server's side share: net/rpc/service.c (begin and end),
// net/rpc/connection.c (connections), net/rpc/serving.c (whose turn it is), net/rpc/party.c (who
// has how much) and net/rpc/exchange.c (requests and answers). Only these files and tests include
// it.
#ifndef NET_RPC_SERVICE_STATE_H
#define NET_RPC_SERVICE_STATE_H

#include "common/log.h"
#include "net/rpc/listener.h"
#include "net/rpc/service.h"
#include "net/rpc/stream.h"
#include "net/rpc/turns.h"
#include "net/url.h"
#include <uthash.h>

// One of those between whom the service is shared: a tenant, or where no tokens are asked for, a
// connection. Connections without a token yet are a party for each host. It exists as long as it
// has connections or exchanges.
struct party {
    struct turns_party turns;
    char name[TENANT_MAX + 1]; // of the tenant; "@" and the host of strangers; "" otherwise
    size_t connections;
    size_t exchanges; // open ones
    size_t parked;    // how many of these are parked
    size_t incoming;  // bytes of large frames that arrive, and that open requests hold
    size_t unsent;    // bytes of replies
    size_t uses;      // what else keeps it alive: connections also when they have ended, and later
                      // work that runs
    bool shared;      // in service->parties; else a connection's own
    UT_hash_handle hh;
};

// What waits for its turn: a connection with a frame, or an exchange with more to do.
struct work {
    struct turns_member turn;
    void (*run)(struct service *service, struct work *work);
};

// As what a connection counts.
enum connection_rank {
    RANK_STRANGER, // not identified
    RANK_ORDINARY,
    RANK_ADMIN, // an administrator's, by its last request
};

struct connection {
    struct work work; // the first member; serves one frame
    struct service *service;
    struct stream *stream;
    struct party *party;
    bool greeted; // the caller's greeting has arrived
    enum connection_rank rank;
    bool ended;           // it is being closed, and counts no more
    bool granted;         // its next frame is to be served now
    struct holder holder; // the token that it has shown
    uint64_t greet_by_ms; // when it is closed unless it has greeted (the loop's clock)
    uint64_t served_ms;   // when a request of it was read last, or when it was accepted
    size_t exchanges;     // open ones
    size_t unsent;        // bytes of replies, as counted in the party
    size_t incoming;      // bytes of a large frame that arrives, as counted in the party
    uint64_t room_ms;     // since when it has held these
    bool wants_room;      // a frame that arrives needs more memory than may be used
    bool blocked;         // something is used up that its frame needs; in service->blocked
    struct connection *prev;
    struct connection *next;
    struct connection *blocked_prev;
    struct connection *blocked_next;
};

struct exchange {
    struct work work; // the first member; runs `later`
    struct service *service;
    struct connection *connection; // NULL once it has ended
    struct party *party;
    struct caller caller; // points to tenant
    char tenant[TENANT_MAX + 1];
    unsigned char header[FRAMES_HEADER_MAX]; // of the request, and of its reply
    size_t header_len;
    uint64_t arrived_ns;  // uv_hrtime
    uint64_t deadline_ms; // relative to arrived_ns; 0: none
    size_t held;          // bytes counted in party->incoming
    bool parked;
    void (*on_drop)(void *waiter); // of a parked exchange; may be NULL
    void *waiter;
    void (*later)(void *owner); // what its turn is for
    void *later_owner;
    struct exchange *prev;
    struct exchange *next;
    size_t bucket; // of service->by_request
    struct exchange *bucket_prev;
    struct exchange *bucket_next;
};

#define SERVICE_BUCKETS 1024 // of open exchanges, by their requests' numbers

struct service {
    uv_loop_t *loop;
    struct listener *listener;
    uv_timer_t greeting; // fires when the next connection that has not greeted is to be closed
    uv_timer_t stalled;  // looks for connections that hold room which others want
    uv_idle_t serving;   // runs while somebody waits for a turn
    int handles;         // handles that are not closed yet
    struct service_config config;
    struct connection *connections; // list of all; the one that was served longest ago first
    struct connection *blocked;     // list, in any order
    size_t connection_count;        // without those that have ended
    size_t stranger_count;          // how many of these are not identified
    size_t ordinary_count;          // how many are identified and no administrator's
    struct turns turns;
    bool in_turn;               // a turn is being taken
    bool released;              // something was released that blocked connections may need
    uint64_t spent_ms;          // the loop's time at which spent_ns began
    uint64_t spent_ns;          // work done outside of turns since then
    struct party *parties;      // tenants, by name
    struct exchange *exchanges; // list of the open ones
    struct exchange *by_request[SERVICE_BUCKETS]; // the same, each in the list of its bucket
    struct exchange *running;                     // whose later work runs
    size_t exchange_count;
    size_t parked;      // how many of these are parked
    size_t parked_held; // bytes that these hold
    size_t incoming;    // sum of the parties'
    size_t unsent;      // sum of the parties'
    uint64_t requests;
    uint64_t failures[ERR_COUNT];   // requests by the error that answered them
    struct log_limit refusal_limit; // how often on_refusal is called
    uint64_t refusals;
    struct identity identity;
    bool closing;
    struct url address; // as configured, perhaps with port 0
    char url[URL_HOST_MAX + 32];
};

// --- service.c

// Counts a refusal and calls on_refusal, unless that was called within the last second.
void service_note_refusal(struct service *service, const char *peer, const char *reason);
// Closes connections that have not greeted in time: the timer service->greeting.
void service_on_greeting_due(uv_timer_t *timer);

// --- connection.c

// Makes a connection of fd, a connected socket, if there is or can be made room for it.
void connection_accept(struct service *service, int fd_taken);
// Returns whether the caller has greeted and shown the token that is asked for.
bool connection_is_identified(const struct connection *connection);
// To be called when a token was shown: the connection belongs to the party of this tenant from now
// on. When the party or the service has too many connections, another one is closed. No-op where
// no tokens are asked for.
void connection_settle(struct connection *connection, const char *tenant, bool admin);
// Closes it for this reason. It counts no more, and the stream's on_end follows.
void connection_end(struct connection *connection, enum err_code code, const char *reason);
// Counts its replies that are unsent now. Closes those connections that have most when there are
// too many altogether.
void connection_count_unsent(struct connection *connection);
// Frees a connection whose stream is closed.
void connection_free(struct connection *connection);

// --- party.c

// Returns the party of a new connection: that of the strangers of its host, or its own where there
// are no tokens.
struct party *party_of_new(struct service *service, const struct stream *stream);
// Returns the tenant's party, which is made when it is missing.
struct party *party_of_tenant(struct service *service, const char *tenant);
// Frees the party when it has nothing any more.
void party_release(struct service *service, struct party *party);
// Returns whether a party that uses `used` of `max`, of which `total` is used, may use more.
bool party_may_have(size_t used, size_t total, size_t max);
// Adds to the bytes that arrive for the party and are unsent to it, or takes away from them.
void party_count_incoming(struct service *service, struct party *party, size_t *counted,
                          size_t now);
void party_count_unsent(struct service *service, struct party *party, size_t *counted, size_t now);

// --- serving.c

// A frame of the connection has arrived. Serves it now if nobody else waits. Returns false when it
// is to stay, because somebody else goes first or something is used up that it needs.
bool serving_offer(struct connection *connection, const struct frames_view *frame);
// The frame that arrives needs so many bytes. Returns false when the connection has to wait.
bool serving_grow(struct connection *connection, size_t size);
// What the turn of a connection is for: serves one frame, after which it may wait again.
void serving_run_connection(struct service *service, struct work *work);
// The work is to be done in a later turn of the loop.
void serving_wait(struct service *service, struct work *work);
// The connection is closed: it waits for nothing any more.
void serving_forget(struct connection *connection);
// Something was released that others may wait for.
void serving_released(struct service *service);
// Closes connections that hold room which others want: the timer service->stalled.
void serving_on_stalled(uv_timer_t *timer);

// --- exchange.c

// Returns whether a request with this header is open on the connection: then this one is that
// request, sent again.
bool exchange_is_open(const struct connection *connection, const struct frames_view *frame);
// Makes the exchange of a request that has arrived.
struct exchange *exchange_create(struct connection *connection, const struct frames_view *frame);
// Decodes the request and gives it to the handler, or answers it with an error.
void exchange_serve(struct exchange *exchange, const void *data, size_t len);
// Takes the exchange out of the service and frees it without an answer.
void exchange_free(struct exchange *exchange);
// Handles the end of a connection: parked exchanges with on_drop are dropped, and the answers of
// the others will go nowhere.
void exchanges_leave(struct service *service, struct connection *connection);
// Drops all exchanges, because the service closes.
void exchanges_drop(struct service *service);

#endif
