// Design note. A frame is served at once while nobody else waits and the loop has not spent
// TURN_NS on requests within this millisecond. Otherwise it stays in its connection's buffer, and
// the connection waits for its turn (net/rpc/turns.h). Turns are taken for at most about TURN_NS
// in each turn of the loop, so that sockets, timers and other threads are served between.
//
// A connection whose turn it is may find that something is used up: open exchanges, bytes of
// requests, or its own unsent replies. It is blocked then, nothing is read from it, and TCP slows
// the sender down. All blocked connections wait for a turn again when something was released.
//
// A frame that does not fit into the first buffer of its connection needs room of the service's.
// Whoever holds such room for ROOM_MS and is not served, because its frame does not arrive or its
// replies are not read, is closed when another connection wants room.
#include "net/rpc/service_state.h"

#include <utlist.h>

#define TURN_NS UINT64_C(2000000) // of requests in one turn of the loop
#define ROOM_MS 30000             // for a large frame to arrive and be served, if others wait
#define STALLED_MS 1000           // between looks for those who take longer

// --- what may be used up

// Returns whether the service can take one more request of this connection.
static bool has_room(const struct connection *connection)
{
    const struct service *service = connection->service;
    const struct party *party = connection->party;

    return party_may_have(party->exchanges, service->exchange_count,
                          service->config.exchanges_max) &&
           (party_may_have(party->incoming, service->incoming, SERVICE_INCOMING_MAX) ||
            connection->incoming > 0) &&
           connection->unsent <= SERVICE_UNSENT_MAX && party->unsent <= SERVICE_PARTY_UNSENT_MAX;
}

static void block(struct connection *connection)
{
    if (!connection->blocked) {
        connection->blocked = true;
        DL_APPEND2(connection->service->blocked, connection, blocked_prev, blocked_next);
    }
}

static void unblock(struct connection *connection)
{
    if (connection->blocked) {
        connection->blocked = false;
        DL_DELETE2(connection->service->blocked, connection, blocked_prev, blocked_next);
    }
}

void serving_forget(struct connection *connection)
{
    turns_leave(&connection->work.turn);
    unblock(connection);
}

// --- turns

static void on_serving(uv_idle_t *idle);

static void begin_serving(struct service *service)
{
    if (!service->closing && !uv_is_active((uv_handle_t *)&service->serving)) {
        (void)uv_idle_start(&service->serving, on_serving);
    }
}

void serving_wait(struct service *service, struct work *work)
{
    turns_wait(&work->turn);
    begin_serving(service);
}

void serving_released(struct service *service)
{
    if (service->blocked && !service->released) {
        service->released = true;
        begin_serving(service);
    }
}

// Serves a frame, and charges the connection for the time that it takes.
static void serve(struct connection *connection, const struct frames_view *frame)
{
    struct service *service = connection->service;
    uint64_t start_ns = uv_hrtime();

    connection->served_ms = uv_now(service->loop);
    DL_DELETE(service->connections, connection);
    DL_APPEND(service->connections, connection);
    if (!exchange_is_open(connection, frame)) {
        exchange_serve(exchange_create(connection, frame), frame->data, frame->len);
    }
    if (service->identity.tokens && connection->holder.known) {
        stream_allow(connection->stream, service->config.message_max);
    }
    uint64_t work_ns = uv_hrtime() - start_ns;
    turns_charge(&connection->work.turn, work_ns);
    service->spent_ns += work_ns;
}

// Returns whether a frame that arrives now may be served before the next turn of the loop.
static bool is_free(struct service *service)
{
    uint64_t now_ms = uv_now(service->loop);

    if (service->spent_ms != now_ms) {
        service->spent_ms = now_ms;
        service->spent_ns = 0;
    }
    return !service->in_turn && !turns_any(&service->turns) && service->spent_ns < TURN_NS;
}

bool serving_offer(struct connection *connection, const struct frames_view *frame)
{
    struct service *service = connection->service;

    if (!connection->granted && is_free(service) && !connection->blocked && has_room(connection)) {
        turns_wait(&connection->work.turn);
        (void)turns_next(&service->turns); // this one, since nobody else waits
        connection->granted = true;
    }
    if (!connection->granted) {
        if (!connection->blocked) {
            serving_wait(service, &connection->work);
        }
        return false;
    }
    connection->granted = false;
    serve(connection, frame);
    return true;
}

void serving_run_connection(struct service *service, struct work *work)
{
    struct connection *connection = (struct connection *)work;

    (void)service;
    if (!has_room(connection)) {
        block(connection);
        return;
    }
    connection->granted = true;
    stream_resume(connection->stream);
    connection->granted = false;
}

// Lets every connection that is blocked now ask again; some will be blocked again.
static void offer_released(struct service *service)
{
    struct connection *connection;
    size_t count;

    service->released = false;
    DL_COUNT2(service->blocked, connection, count, blocked_next);
    for (; count > 0 && (connection = service->blocked); count--) {
        unblock(connection);
        if (connection->wants_room) {
            connection->wants_room = false;
            stream_resume(connection->stream);
        } else {
            turns_wait(&connection->work.turn);
        }
    }
}

static void on_serving(uv_idle_t *idle)
{
    struct service *service = idle->data;
    uint64_t start_ns = uv_hrtime();
    struct turns_member *next;

    service->in_turn = true;
    if (service->released) {
        offer_released(service);
    }
    while (!service->closing && uv_hrtime() - start_ns < TURN_NS &&
           (next = turns_next(&service->turns))) {
        struct work *work = (struct work *)next;

        work->run(service, work);
    }
    service->in_turn = false;
    if (!turns_any(&service->turns) && !service->released) {
        (void)uv_idle_stop(idle);
    }
}

// --- room for large frames

bool serving_grow(struct connection *connection, size_t size)
{
    struct service *service = connection->service;
    struct party *party = connection->party;
    size_t more = size > connection->incoming ? size - connection->incoming : 0;

    if (more > 0 && !service->closing &&
        (service->incoming + more > SERVICE_INCOMING_MAX ||
         !party_may_have(party->incoming, service->incoming, SERVICE_INCOMING_MAX))) {
        connection->wants_room = true;
        block(connection);
        if (!uv_is_active((uv_handle_t *)&service->stalled)) {
            (void)uv_timer_start(&service->stalled, serving_on_stalled, STALLED_MS, STALLED_MS);
        }
        return false;
    }
    if (connection->incoming == 0) {
        connection->room_ms = uv_now(service->loop);
    }
    party_count_incoming(service, party, &connection->incoming, size);
    return true;
}

void serving_on_stalled(uv_timer_t *timer)
{
    struct service *service = timer->data;
    uint64_t now_ms = uv_now(service->loop);
    bool wanted = false;
    struct connection *connection;

    DL_FOREACH2(service->blocked, connection, blocked_next)
    {
        wanted |= connection->wants_room;
    }
    if (!wanted) {
        (void)uv_timer_stop(timer);
        return;
    }
    DL_FOREACH (service->connections, connection) {
        if (!connection->ended && connection->incoming > 0 &&
            connection->room_ms + ROOM_MS <= now_ms) {
            connection_end(connection, ERR_TIMED_OUT,
                           "it holds room for a request that others wait for");
        }
    }
}
