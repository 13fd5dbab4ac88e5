// Actors: nng's threads, which finish receives and sends, and the loop thread, which does everything else. Each REP context
// has one aio and belongs to one exchange; the exchange goes round RECEIVING → ARRIVED → (PARKED →) SENDING → RECEIVING, and its
// aio is in one operation at a time (nng 1.5.2 crashes otherwise). An nng callback does nothing but post the exchange's mail.
//
// Limits: message_max is given to nng (it drops larger ones at the transport), contexts bounds what is in the house, and
// parked_max keeps enough contexts free for requests that are answered at once: when all contexts hold a request, nng reads
// nobody's next message.
#include "net/service.h"

#include "common/mailbox.h"
#include "common/version.h"
#include "net/close.h"
#include "net/url.h"
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum exchange_state { EXCHANGE_RECEIVING, EXCHANGE_ARRIVED, EXCHANGE_PARKED, EXCHANGE_SENDING };

struct exchange {
    struct mail mail;       // first: cast back in on_mail
    struct service *service;
    nng_ctx context;
    nng_aio *aio;
    enum exchange_state state;
    uint64_t request_id;
    uint64_t arrived_ns;    // loop-independent uv_hrtime, set by the nng callback
    uint64_t deadline_ms;   // relative to arrived_ns; 0: none
    void (*on_drop)(void *waiter);
    void *waiter;
};

struct service {
    struct mailbox *mailbox;
    nng_socket socket;
    nng_listener listener;
    struct exchange *exchange; // [config.contexts]
    struct service_config config;
    size_t parked;
    uint64_t requests;
    bool closing;
    char url[URL_HOST_MAX + 32];
};

static int nng_failed(struct err *err, int code, const char *what)
{
    return err_set(err, code == NNG_EADDRINUSE ? ERR_BUSY : ERR_SYSTEM, "%s: %s", what, nng_strerror(code));
}

static void receive(struct exchange *exchange)
{
    exchange->state = EXCHANGE_RECEIVING;
    nng_ctx_recv(exchange->context, exchange->aio);
}

static void send_packed(struct exchange *exchange, const struct strbuf *packed)
{
    nng_msg *msg = NULL;
    if (exchange->state == EXCHANGE_PARKED)
        exchange->service->parked--;
    if (nng_msg_alloc(&msg, 0) != 0 || nng_msg_append(msg, strbuf_text(packed), packed->len) != 0) {
        nng_msg_free(msg);
        receive(exchange); // no memory for a reply: the caller's deadline tells it
        return;
    }
    exchange->state = EXCHANGE_SENDING;
    nng_aio_set_msg(exchange->aio, msg);
    nng_ctx_send(exchange->context, exchange->aio);
}

void exchange_fail_busy(struct exchange *exchange, const struct err *error, uint64_t retry_after_ms)
{
    struct strbuf packed = STRBUF_INIT;
    reply_pack_error(&packed, exchange->request_id, exchange->service->config.epoch, error, retry_after_ms);
    send_packed(exchange, &packed);
    strbuf_release(&packed);
}

void exchange_fail(struct exchange *exchange, const struct err *error)
{
    exchange_fail_busy(exchange, error, 0);
}

void exchange_reply(struct exchange *exchange, const struct message *message, const void *body)
{
    struct err err = ERR_INIT;
    struct strbuf packed = STRBUF_INIT;
    if (reply_pack(&packed, exchange->request_id, exchange->service->config.epoch, message, body, &err) == 0)
        send_packed(exchange, &packed);
    else
        exchange_fail(exchange, &err);
    strbuf_release(&packed);
}

bool exchange_park(struct exchange *exchange, void (*on_drop)(void *waiter), void *waiter)
{
    struct service *service = exchange->service;
    if (service->parked >= service->config.parked_max)
        return false;
    service->parked++;
    exchange->state = EXCHANGE_PARKED;
    exchange->on_drop = on_drop;
    exchange->waiter = waiter;
    return true;
}

uint64_t exchange_remaining_ms(const struct exchange *exchange)
{
    if (exchange->deadline_ms == 0)
        return UINT64_MAX;
    uint64_t passed_ms = (uv_hrtime() - exchange->arrived_ns) / 1000000;
    return passed_ms >= exchange->deadline_ms ? 0 : exchange->deadline_ms - passed_ms;
}

bool exchange_read_body(struct exchange *exchange, const struct request *request, const struct message *message, void *body)
{
    struct err err = ERR_INIT;
    static const unsigned char empty_map = 0x80; // an absent body is an empty message
    const void *data = request->body.len > 0 ? (const void *)request->body.data : &empty_map;
    size_t len = request->body.len > 0 ? request->body.len : 1;
    if (message_read(message, body, data, len, &err) == 0)
        return true;
    err_wrap(&err, "%s", op_name(request->op));
    exchange_fail(exchange, &err);
    return false;
}

void exchange_hello(struct exchange *exchange, const struct request *request, const char *program,
                    const char *const *features, size_t feature_count, uint64_t wait_max_ms)
{
    struct hello_request hello;
    if (!exchange_read_body(exchange, request, &hello_request_message, &hello))
        return;
    uint64_t version = hello.version_max < KCAST_PROTOCOL_MAX ? hello.version_max : KCAST_PROTOCOL_MAX;
    if (version < hello.version_min || version < KCAST_PROTOCOL_MIN) {
        struct err err = ERR_INIT;
        err_set(&err, ERR_VERSION, "%s %s speaks protocol %d to %d, the caller %llu to %llu; bring both to the same release",
                program, KCAST_VERSION, KCAST_PROTOCOL_MIN, KCAST_PROTOCOL_MAX, (unsigned long long)hello.version_min,
                (unsigned long long)hello.version_max);
        exchange_fail(exchange, &err);
    } else {
        struct hello_reply reply;
        message_init(&hello_reply_message, &reply);
        reply.version = version;
        reply.program = (char *)(uintptr_t)program; // only packed, never freed
        reply.release = (char *)(uintptr_t)KCAST_VERSION;
        reply.features = (char **)(uintptr_t)features;
        reply.features_count = feature_count;
        reply.message_max = exchange->service->config.message_max;
        reply.wait_max_ms = wait_max_ms;
        reply.pid = (uint64_t)getpid();
        exchange_reply(exchange, &hello_reply_message, &reply);
    }
    message_clear(&hello_request_message, &hello);
}

static void handle_request(struct exchange *exchange, const struct request *request)
{
    struct service *service = exchange->service;
    struct err err = ERR_INIT;
    exchange->request_id = request->id;
    exchange->deadline_ms = request->deadline_ms;
    service->requests++;
    if (request->version < KCAST_PROTOCOL_MIN || request->version > KCAST_PROTOCOL_MAX) {
        err_set(&err, ERR_VERSION, "protocol version %llu is not known here; this is %s", (unsigned long long)request->version,
                KCAST_VERSION);
        exchange_fail(exchange, &err);
    } else if (request->deadline_ms > 0 && exchange_remaining_ms(exchange) == 0) {
        err_set(&err, ERR_TIMED_OUT, "the deadline had passed when the request was read");
        exchange_fail(exchange, &err);
    } else {
        service->config.on_request(service->config.owner, exchange, request);
    }
}

static void on_arrival(struct exchange *exchange)
{
    struct err err = ERR_INIT;
    struct request request;
    nng_msg *msg = nng_aio_get_msg(exchange->aio);
    nng_aio_set_msg(exchange->aio, NULL);
    exchange->state = EXCHANGE_ARRIVED;
    exchange->request_id = 0;
    exchange->deadline_ms = 0;
    if (message_read(&request_message, &request, nng_msg_body(msg), nng_msg_len(msg), &err) == 0) {
        handle_request(exchange, &request);
        message_clear(&request_message, &request);
    } else {
        exchange_fail(exchange, &err);
    }
    nng_msg_free(msg);
}

// Runs on the loop thread after an operation of the exchange's aio has ended.
static void on_mail(struct mail *mail)
{
    struct exchange *exchange = (struct exchange *)mail;
    int result = nng_aio_result(exchange->aio);
    if (exchange->service->closing) {
        if (exchange->state == EXCHANGE_RECEIVING && result == 0) {
            nng_msg_free(nng_aio_get_msg(exchange->aio));
            nng_aio_set_msg(exchange->aio, NULL);
        }
    } else if (exchange->state == EXCHANGE_RECEIVING && result == 0) {
        on_arrival(exchange);
    } else if (result != NNG_ECLOSED) {
        if (exchange->state == EXCHANGE_SENDING && result != 0) {
            nng_msg_free(nng_aio_get_msg(exchange->aio)); // a failed send leaves the message with us
            nng_aio_set_msg(exchange->aio, NULL);
        }
        receive(exchange);
    }
}

// Runs on an nng thread.
static void on_aio(void *data)
{
    struct exchange *exchange = data;
    exchange->arrived_ns = uv_hrtime();
    mailbox_post(exchange->service->mailbox, &exchange->mail);
}

static int open_exchanges(struct service *service, struct err *err)
{
    service->exchange = xcalloc(service->config.contexts, sizeof *service->exchange);
    for (size_t i = 0; i < service->config.contexts; i++) {
        struct exchange *exchange = &service->exchange[i];
        exchange->mail.deliver = on_mail;
        exchange->service = service;
        int code = nng_ctx_open(&exchange->context, service->socket);
        if (code == 0)
            code = nng_aio_alloc(&exchange->aio, on_aio, exchange);
        if (code != 0)
            return nng_failed(err, code, "cannot open a request context");
    }
    return 0;
}

static int open_listener(struct service *service, struct err *err)
{
    int port = 0;
    struct url url = {0};
    int status = url_parse(&url, service->config.url, err);
    if (status < 0)
        return status;
    if (!url_is_loopback(&url))
        return err_set(err, ERR_DENIED, "%s is not on loopback, and without TLS and tokens everyone who reaches it could run code; "
                       "listen on tcp://127.0.0.1:PORT", service->config.url);
    int code = nng_listener_create(&service->listener, service->socket, service->config.url);
    if (code == 0)
        code = nng_listener_setopt_size(service->listener, NNG_OPT_RECVMAXSZ, service->config.message_max);
    if (code == 0)
        code = nng_listener_start(service->listener, 0);
    if (code == 0)
        code = nng_listener_getopt_int(service->listener, NNG_OPT_TCP_BOUND_PORT, &port);
    if (code != 0) {
        char what[sizeof service->url + 64];
        snprintf(what, sizeof what, "cannot listen on %s", service->config.url);
        return nng_failed(err, code, what);
    }
    bool v6 = strchr(url.host, ':') != NULL;
    snprintf(service->url, sizeof service->url, "tcp://%s%s%s:%d", v6 ? "[" : "", url.host, v6 ? "]" : "", port);
    return 0;
}

int service_create(struct service **ret, uv_loop_t *loop, const struct service_config *config, struct err *err)
{
    struct service *service = xcalloc(1, sizeof *service);
    service->config = *config;
    int status = mailbox_create(&service->mailbox, loop, err);
    if (status < 0) {
        free(service);
        return status;
    }
    int code = nng_rep0_open(&service->socket);
    status = code != 0 ? nng_failed(err, code, "cannot open a socket") : open_exchanges(service, err);
    if (status == 0)
        status = open_listener(service, err);
    if (status < 0) {
        service_close(service);
        return status;
    }
    for (size_t i = 0; i < config->contexts; i++)
        receive(&service->exchange[i]);
    *ret = service;
    return 0;
}

const char *service_url(const struct service *service)
{
    return service->url;
}

uint64_t service_request_count(const struct service *service)
{
    return service->requests;
}

// Order matters: no new connections, then no operation in flight, then no mail under way, then memory.
void service_close(struct service *service)
{
    if (service == NULL)
        return;
    service->closing = true;
    (void)net_close(service->socket);
    for (size_t i = 0; i < service->config.contexts && service->exchange != NULL; i++)
        if (service->exchange[i].aio != NULL)
            nng_aio_stop(service->exchange[i].aio);
    mailbox_close(service->mailbox);
    for (size_t i = 0; i < service->config.contexts && service->exchange != NULL; i++) {
        struct exchange *exchange = &service->exchange[i];
        if (exchange->state == EXCHANGE_PARKED && exchange->on_drop != NULL)
            exchange->on_drop(exchange->waiter);
        if (exchange->aio != NULL)
            nng_aio_free(exchange->aio);
    }
    free(service->exchange);
    free(service);
}
