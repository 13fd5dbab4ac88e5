// Design note. An exchange lives from the arrival of its request to its answer. It is in one list
// of the service, where the two events that concern many exchanges find it: a connection ends, or
// the service closes. An answer is packed straight into the frame that is sent.
//
// The header of a request is kept for its answer. A REQ socket of nng sends a request again under
// the same number when it has waited for long (a minute, by default). While the first one is open,
// that is no further request: it is found by connection and header, and not served.
//
// parked_max is below exchanges_max, so parked exchanges alone can never fill the service: there is
// always room for requests that are answered at once. The same holds for the bytes of requests.
#include "net/rpc/service_state.h"

#include "common/clock.h"
#include "common/mem.h"
#include "common/version.h"
#include "net/rpc/frames.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

// --- begin and end

static void run_later(struct service *service, struct work *work);

// Callers number their requests one by one, from anywhere.
static size_t bucket_of(const struct frames_view *frame)
{
    return frames_request(frame) % SERVICE_BUCKETS;
}

bool exchange_is_open(const struct connection *connection, const struct frames_view *frame)
{
    const struct exchange *exchange;

    DL_FOREACH2(connection->service->by_request[bucket_of(frame)], exchange, bucket_next)
    {
        if (exchange->connection == connection && exchange->header_len == frame->header_len &&
            memcmp(exchange->header, frame->header, frame->header_len) == 0) {
            return true;
        }
    }
    return false;
}

struct exchange *exchange_create(struct connection *connection, const struct frames_view *frame)
{
    struct exchange *exchange = xcalloc(1, sizeof(*exchange));
    struct service *service = connection->service;

    exchange->service = service;
    exchange->connection = connection;
    exchange->party = connection->party;
    memcpy(exchange->header, frame->header, frame->header_len);
    exchange->header_len = frame->header_len;
    exchange->bucket = bucket_of(frame);
    DL_APPEND2(service->by_request[exchange->bucket], exchange, bucket_prev, bucket_next);
    exchange->arrived_ns = uv_hrtime();
    turns_member_init(&exchange->work.turn, &exchange->party->turns);
    exchange->work.run = run_later;
    DL_APPEND(service->exchanges, exchange);
    service->exchange_count++;
    exchange->party->exchanges++;
    connection->exchanges++;
    party_count_incoming(service, exchange->party, &exchange->held, frame->len);
    return exchange;
}

// Moves it to the party that its connection has by now.
static void follow_connection(struct exchange *exchange)
{
    struct service *service = exchange->service;
    struct party *old = exchange->party;
    struct party *party = exchange->connection->party;
    size_t held = exchange->held;

    if (old == party) {
        return;
    }
    party_count_incoming(service, old, &exchange->held, 0);
    old->exchanges--;
    party->exchanges++;
    exchange->party = party;
    turns_move(&exchange->work.turn, &party->turns);
    party_count_incoming(service, party, &exchange->held, held);
    party_release(service, old);
}

void exchange_free(struct exchange *exchange)
{
    struct service *service = exchange->service;
    struct party *party = exchange->party;

    DL_DELETE(service->exchanges, exchange);
    DL_DELETE2(service->by_request[exchange->bucket], exchange, bucket_prev, bucket_next);
    service->exchange_count--;
    party->exchanges--;
    turns_leave(&exchange->work.turn);
    if (exchange->parked) {
        service->parked--;
        party->parked--;
        service->parked_held -= exchange->held;
    }
    party_count_incoming(service, party, &exchange->held, 0);
    if (exchange->connection) {
        exchange->connection->exchanges--;
        exchange->connection->served_ms = uv_now(service->loop);
    }
    if (service->running == exchange) {
        service->running = NULL;
    }
    free(exchange);
    party_release(service, party);
    serving_released(service);
}

// --- more of it later

// Runs in the turn of the exchange, which may end in it.
static void run_later(struct service *service, struct work *work)
{
    struct exchange *exchange = (struct exchange *)work;
    struct party *party = exchange->party;
    void (*later)(void *owner) = exchange->later;
    uint64_t start_ns = uv_hrtime();

    exchange->later = NULL;
    party->uses++;
    service->running = exchange;
    later(exchange->later_owner);
    uint64_t work_ns = uv_hrtime() - start_ns;
    if (service->running) {
        turns_charge(&exchange->work.turn, work_ns);
        service->running = NULL;
    } else {
        turns_charge_party(&party->turns, work_ns);
    }
    party->uses--;
    party_release(service, party);
}

void exchange_later(struct exchange *exchange, void (*later)(void *owner), void *owner)
{
    exchange->later = later;
    exchange->later_owner = owner;
    serving_wait(exchange->service, &exchange->work);
}

static void drop(struct exchange *exchange)
{
    void (*on_drop)(void *waiter) = exchange->on_drop;
    void *waiter = exchange->waiter;

    exchange_free(exchange);
    if (on_drop) {
        on_drop(waiter);
    }
}

void exchanges_leave(struct service *service, struct connection *connection)
{
    struct exchange *exchange;
    struct exchange *next;

    // on_drop ends no other exchange, so `next` stays valid.
    DL_FOREACH_SAFE (service->exchanges, exchange, next) {
        if (exchange->connection == connection) {
            exchange->connection = NULL;
            if (exchange->parked && exchange->on_drop) {
                drop(exchange);
            }
        }
    }
}

void exchanges_drop(struct service *service)
{
    while (service->exchanges) {
        drop(service->exchanges);
    }
}

// --- answers

static void send_frame(struct exchange *exchange, struct strbuf *frame)
{
    frame_end(frame);
    if (exchange->connection) {
        stream_send(exchange->connection->stream, frame);
        connection_count_unsent(exchange->connection);
    }
    exchange_free(exchange);
}

void exchange_fail_busy(struct exchange *exchange, const struct err *error, uint64_t retry_after_ms)
{
    exchange->service->failures[err_index(error->code)]++;
    struct strbuf frame = STRBUF_INIT;
    frame_begin(&frame, exchange->header, exchange->header_len);
    reply_pack_error(&frame, exchange->service->config.epoch, error, retry_after_ms);
    send_frame(exchange, &frame);
    strbuf_release(&frame);
}

void exchange_fail(struct exchange *exchange, const struct err *error)
{
    exchange_fail_busy(exchange, error, 0);
}

void exchange_reply(struct exchange *exchange, const struct message *message, const void *body)
{
    struct strbuf frame = STRBUF_INIT;

    frame_begin(&frame, exchange->header, exchange->header_len);
    struct err err = ERR_INIT;
    if (reply_pack(&frame, exchange->service->config.epoch, message, body, &err) == 0) {
        send_frame(exchange, &frame);
    } else {
        exchange_fail(exchange, &err);
    }
    strbuf_release(&frame);
}

bool exchange_park(struct exchange *exchange, size_t held, void (*on_drop)(void *waiter),
                   void *waiter)
{
    struct service *service = exchange->service;
    struct party *party = exchange->party;

    if (!party_may_have(party->parked, service->parked, service->config.parked_max) ||
        !party_may_have(party->incoming - exchange->held, service->parked_held + held,
                        SERVICE_PARKED_HELD_MAX)) {
        return false;
    }
    party_count_incoming(service, party, &exchange->held, held);
    service->parked_held += held;
    service->parked++;
    party->parked++;
    exchange->parked = true;
    exchange->on_drop = on_drop;
    exchange->waiter = waiter;
    return true;
}

uint64_t exchange_remaining_ms(const struct exchange *exchange)
{
    uint64_t passed_ms = (uv_hrtime() - exchange->arrived_ns) / NS_PER_MS;

    if (exchange->deadline_ms == 0) {
        return UINT64_MAX;
    }
    return passed_ms >= exchange->deadline_ms ? 0 : exchange->deadline_ms - passed_ms;
}

// --- requests

bool exchange_read_body(struct exchange *exchange, const struct request *request,
                        const struct message *message, void *body)
{
    static const unsigned char empty_map = 0x80; // stands for an absent body
    struct err err = ERR_INIT;
    const void *data = request->body.len > 0 ? (const void *)request->body.data : &empty_map;
    size_t len = request->body.len > 0 ? request->body.len : 1;

    if (message_read(message, body, data, len, &err) == 0) {
        return true;
    }
    (void)err_wrap(&err, "%s", op_name(request->op));
    exchange_fail(exchange, &err);
    return false;
}

static void refuse_version(struct exchange *exchange, const struct hello_request *hello,
                           const char *program)
{
    struct err err = ERR_INIT;

    (void)err_set(&err, ERR_VERSION,
                  "%s %s speaks protocol %d to %d, the caller %llu to %llu; bring both to the same "
                  "release",
                  program, KCAST_VERSION, KCAST_PROTOCOL_MIN, KCAST_PROTOCOL_MAX,
                  (unsigned long long)hello->version_min, (unsigned long long)hello->version_max);
    exchange_fail(exchange, &err);
}

void exchange_hello(struct exchange *exchange, const struct request *request, const char *program,
                    const char *const *features, size_t feature_count, uint64_t wait_max_ms,
                    const struct worker_abilities *worker)
{
    struct hello_request hello;

    if (!exchange_read_body(exchange, request, &hello_request_message, &hello)) {
        return;
    }
    uint64_t version =
        hello.version_max < KCAST_PROTOCOL_MAX ? hello.version_max : KCAST_PROTOCOL_MAX;
    struct hello_reply reply;
    if (version < hello.version_min || version < KCAST_PROTOCOL_MIN) {
        refuse_version(exchange, &hello, program);
    } else {
        message_init(&hello_reply_message, &reply);
        reply.version = version;
        reply.program = (char *)(uintptr_t)program; // packed, never freed or changed
        reply.release = (char *)(uintptr_t)KCAST_VERSION;
        reply.features = (char **)(uintptr_t)features;
        reply.features_count = feature_count;
        reply.message_max = exchange->service->config.message_max;
        reply.wait_max_ms = wait_max_ms;
        reply.pid = (uint64_t)getpid();
        reply.worker = (struct worker_abilities *)(uintptr_t)worker;
        exchange_reply(exchange, &hello_reply_message, &reply);
    }
    message_clear(&hello_request_message, &hello);
}

const struct caller *exchange_caller(const struct exchange *exchange)
{
    return &exchange->caller;
}

const char *exchange_turn_name(const struct exchange *exchange)
{
    return exchange->service->identity.tokens ? exchange->caller.tenant
           : exchange->connection             ? stream_peer(exchange->connection->stream)
                                              : "?";
}

static bool admit(struct exchange *exchange, const struct request *request, struct err *err)
{
    struct service *service = exchange->service;
    struct connection *connection = exchange->connection;
    struct caller caller;

    if (identity_admit(&service->identity, &connection->holder, request->token, request->op,
                       (int64_t)time(NULL), &caller, err) != 0) {
        if (connection->holder.known) {
            connection_settle(connection, connection->holder.tenant, false);
        }
        service_note_refusal(service, stream_peer(connection->stream), err->text);
        return false;
    }
    connection_settle(connection, caller.tenant, caller.role == CALLER_ADMIN);
    follow_connection(exchange);
    (void)snprintf(exchange->tenant, sizeof(exchange->tenant), "%s", caller.tenant);
    exchange->caller = (struct caller){.tenant = exchange->tenant, .role = caller.role};
    return true;
}

static void handle(struct exchange *exchange, const struct request *request)
{
    struct service *service = exchange->service;

    exchange->deadline_ms = request->deadline_ms;
    service->requests++;
    struct err err = ERR_INIT;
    if (request->version < KCAST_PROTOCOL_MIN || request->version > KCAST_PROTOCOL_MAX) {
        (void)err_set(&err, ERR_VERSION, "protocol version %llu is not known here; this is %s",
                      (unsigned long long)request->version, KCAST_VERSION);
        exchange_fail(exchange, &err);
    } else if (request->deadline_ms > 0 && exchange_remaining_ms(exchange) == 0) {
        (void)err_set(&err, ERR_TIMED_OUT, "the deadline had passed when the request was read");
        exchange_fail(exchange, &err);
    } else if (!admit(exchange, request, &err)) {
        exchange_fail(exchange, &err);
    } else {
        service->config.on_request(service->config.owner, exchange, request);
    }
}

void exchange_serve(struct exchange *exchange, const void *data, size_t len)
{
    struct err err = ERR_INIT;
    struct request request;

    if (message_read(&request_message, &request, data, len, &err) != 0) {
        exchange_fail(exchange, &err);
        return;
    }
    handle(exchange, &request);
    if (request.token) {
        explicit_bzero(request.token, strlen(request.token));
    }
    message_clear(&request_message, &request);
}
