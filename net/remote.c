// Actors: the loop thread, which starts calls and runs callbacks, and nng's threads. A call owns an nng context and an aio and goes
// SENDING → RECEIVING → its callback, or ends at any point with an error. After a send the nng callback starts the receive
// itself (it owns the aio at that moment); whatever ends the call posts its mail. Finished calls are kept for reuse: opening a
// context costs more than a round trip.
//
// nng queues a send while there is no connection and reconnects by itself, so a call made while the server restarts waits for it until its
// deadline. Resending is off (NNG_OPT_REQ_RESENDTIME): with it one request can arrive several times. A lost connection ends the
// call at once.
#include "net/remote.h"

#include "common/clock.h"
#include "common/mailbox.h"
#include "common/version.h"
#include "net/close.h"
#include "net/url.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REMOTE_MESSAGE_MAX ((size_t)17 << 20)
#define CONNECT_TIMEOUT_MS 3000
#define HELLO_TIMEOUT_MS 5000

struct call {
    struct mail mail;        // first: cast back in on_mail
    struct call *next, *previous; // in remote->pending, or next in remote->idle
    struct remote *remote;
    nng_ctx context;
    nng_aio *aio;
    bool receiving;          // SENDING otherwise
    bool ended;              // its mail is posted
    uint64_t deadline_ns;    // uv_hrtime
    uint64_t id;
    const struct message *answer; // what the reply's body is
    remote_callback *callback;
    void *owner;
    struct err early;        // failed before anything was sent
};

struct remote {
    struct mailbox *mailbox;
    uv_loop_t *loop;
    nng_socket socket;
    nng_dialer dialer;
    bool dialing;
    bool closing;
    char *url;
    struct url address;
    uint64_t next_id;
    struct call *pending, *idle;
};

int remote_create(struct remote **ret, uv_loop_t *loop, const char *url, struct err *err)
{
    struct url address;
    int status = url_parse(&address, url, err);
    if (status < 0)
        return status;
    struct remote *remote = xcalloc(1, sizeof *remote);
    status = mailbox_create(&remote->mailbox, loop, err);
    if (status < 0) {
        free(remote);
        return status;
    }
    remote->loop = loop;
    remote->url = xstrdup(url);
    remote->address = address;
    int code = nng_req0_open(&remote->socket);
    if (code == 0)
        code = nng_setopt_ms(remote->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
    if (code == 0)
        code = nng_dialer_create(&remote->dialer, remote->socket, url);
    if (code == 0)
        code = nng_dialer_setopt_size(remote->dialer, NNG_OPT_RECVMAXSZ, REMOTE_MESSAGE_MAX);
    if (code == 0)
        code = nng_dialer_setopt_ms(remote->dialer, NNG_OPT_RECONNMINT, 50);
    if (code == 0)
        code = nng_dialer_setopt_ms(remote->dialer, NNG_OPT_RECONNMAXT, 1000);
    if (code != 0) {
        remote_close(remote);
        return err_set(err, ERR_SYSTEM, "cannot prepare a connection to %s: %s", url, nng_strerror(code));
    }
    *ret = remote;
    return 0;
}

const char *remote_url(const struct remote *remote)
{
    return remote->url;
}

// ---- the end of a call, on the loop thread ----

static void unlink_call(struct call *call)
{
    struct remote *remote = call->remote;
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        remote->pending = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    call->previous = NULL;
    call->next = remote->idle;
    remote->idle = call;
}

static void set_transport_error(const struct call *call, int code, struct err *err)
{
    const char *url = call->remote->url;
    if (call->remote->closing)
        err_set(err, ERR_STOPPED, "the connection to %s was closed", url);
    else if (code == NNG_ETIMEDOUT)
        err_set(err, ERR_TIMED_OUT, "%s gave no answer within the deadline", url);
    else
        err_set(err, ERR_UNREACHABLE, "the connection to %s broke: %s", url, nng_strerror(code));
}

// Reads the envelope and the body. Returns 0 with *body filled, or the error that the reply carries.
static int read_reply(const struct call *call, nng_msg *msg, void *body, uint64_t *ret_retry_ms, struct err *err)
{
    struct reply reply;
    static const unsigned char empty_map = 0x80;
    int status = message_read(&reply_message, &reply, nng_msg_body(msg), nng_msg_len(msg), err);
    if (status < 0)
        return err_wrap(err, "%s sent no valid reply", call->remote->url);
    *ret_retry_ms = reply.retry_after_ms;
    if (reply.error != NULL)
        status = err_set(err, err_from_name(reply.error), "%s", reply.text != NULL ? reply.text : reply.error);
    else if (reply.id != call->id)
        status = err_set(err, ERR_PROTOCOL, "%s answered another request than the one that was asked", call->remote->url);
    else
        status = message_read(call->answer, body, reply.body.len > 0 ? (const void *)reply.body.data : &empty_map,
                              reply.body.len > 0 ? reply.body.len : 1, err);
    message_clear(&reply_message, &reply);
    return status;
}

static void finish_call(struct call *call)
{
    struct err err = call->early;
    uint64_t retry_ms = 0;
    void *body = NULL;
    if (err.code == ERR_NONE) {
        int code = nng_aio_result(call->aio);
        nng_msg *msg = nng_aio_get_msg(call->aio);
        nng_aio_set_msg(call->aio, NULL);
        if (code != 0) {
            set_transport_error(call, code, &err);
        } else {
            body = xcalloc(1, call->answer->size);
            if (read_reply(call, msg, body, &retry_ms, &err) < 0) {
                free(body);
                body = NULL;
            }
        }
        if (msg != NULL && (code == 0 || !call->receiving))
            nng_msg_free(msg);
    }
    const struct message *answer = call->answer;
    remote_callback *callback = call->callback;
    void *owner = call->owner;
    unlink_call(call);
    callback(owner, err.code != ERR_NONE ? &err : NULL, retry_ms, body);
    if (body != NULL)
        message_clear(answer, body);
    free(body);
}

static void on_mail(struct mail *mail)
{
    finish_call((struct call *)mail);
}

static void end_call(struct call *call)
{
    call->ended = true;
    mailbox_post(call->remote->mailbox, &call->mail);
}

// Runs on an nng thread, which owns the aio at this moment.
static void on_aio(void *data)
{
    struct call *call = data;
    if (!call->receiving && nng_aio_result(call->aio) == 0) {
        uint64_t now = uv_hrtime();
        call->receiving = true;
        nng_aio_set_timeout(call->aio, now >= call->deadline_ns ? 1 : (nng_duration)((call->deadline_ns - now) / NS_PER_MS + 1));
        nng_ctx_recv(call->context, call->aio);
        return;
    }
    end_call(call);
}

// ---- starting a call ----

static int new_call(struct remote *remote, struct call **ret, struct err *err)
{
    struct call *call = remote->idle;
    if (call != NULL) {
        remote->idle = call->next;
    } else {
        call = xcalloc(1, sizeof *call);
        call->remote = remote;
        call->mail.deliver = on_mail;
        int code = nng_ctx_open(&call->context, remote->socket);
        if (code == 0)
            code = nng_aio_alloc(&call->aio, on_aio, call);
        if (code != 0) {
            free(call);
            return err_set(err, ERR_SYSTEM, "cannot open a request context: %s", nng_strerror(code));
        }
    }
    call->early = (struct err)ERR_INIT;
    call->receiving = call->ended = false;
    call->previous = NULL;
    call->next = remote->pending;
    if (remote->pending != NULL)
        remote->pending->previous = call;
    remote->pending = call;
    *ret = call;
    return 0;
}

static int start_dialing(struct remote *remote, struct err *err)
{
    if (remote->dialing)
        return 0;
    int code = nng_dialer_start(remote->dialer, NNG_FLAG_NONBLOCK);
    if (code != 0)
        return err_set(err, ERR_UNREACHABLE, "cannot connect to %s: %s", remote->url, nng_strerror(code));
    remote->dialing = true;
    return 0;
}

static int pack_request(struct call *call, enum op op, const struct message *message, const void *body, uint64_t deadline_ms,
                        struct err *err)
{
    struct strbuf packed = STRBUF_INIT;
    nng_msg *msg = NULL;
    int status = request_pack(&packed, op, call->id, deadline_ms, message, body, err);
    if (status == 0 && (nng_msg_alloc(&msg, 0) != 0 || nng_msg_append(msg, strbuf_text(&packed), packed.len) != 0)) {
        nng_msg_free(msg);
        status = err_set(err, ERR_SYSTEM, "no memory for a request");
    }
    if (status == 0)
        nng_aio_set_msg(call->aio, msg);
    strbuf_release(&packed);
    return status;
}

void remote_call(struct remote *remote, enum op op, const struct message *body_message, const void *body,
                 const struct message *answer, uint64_t deadline_ms, remote_callback *callback, void *owner)
{
    struct call *call = NULL;
    struct err err = ERR_INIT;
    if (new_call(remote, &call, &err) < 0) { // no descriptors or memory left: nothing can be promised any more
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    call->answer = answer;
    call->callback = callback;
    call->owner = owner;
    call->id = ++remote->next_id;
    call->deadline_ns = uv_hrtime() + deadline_ms * NS_PER_MS;
    int status = start_dialing(remote, &call->early);
    if (status == 0)
        status = pack_request(call, op, body_message, body, deadline_ms, &call->early);
    if (status < 0) {
        end_call(call);
        return;
    }
    nng_aio_set_timeout(call->aio, (nng_duration)deadline_ms);
    nng_ctx_send(call->context, call->aio);
}

// Ends pending calls with ERR_STOPPED. From the inside out: nng 1.5.2 may wait for ever in nng_close of a socket that still has
// contexts with operations.
void remote_close(struct remote *remote)
{
    if (remote == NULL)
        return;
    remote->closing = true;
    for (struct call *call = remote->pending; call != NULL; call = call->next) {
        nng_aio_stop(call->aio); // and its callback has run
        if (!call->ended)
            end_call(call); // it wanted to receive just then, and nng says nothing to an aio that is stopped
        nng_ctx_close(call->context);
    }
    for (struct call *call = remote->idle; call != NULL; call = call->next)
        nng_ctx_close(call->context);
    nng_dialer_close(remote->dialer);
    (void)net_close(remote->socket);
    mailbox_close(remote->mailbox);
    while (remote->idle != NULL) {
        struct call *call = remote->idle;
        remote->idle = call->next;
        nng_aio_free(call->aio);
        free(call);
    }
    free(remote->url);
    free(remote);
}

// ---- waiting calls ----

struct wait_for {
    bool done;
    struct err err;
    void *reply;
    size_t size;
};

static void on_answer(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct wait_for *wait = owner;
    (void)retry_after_ms;
    wait->done = true;
    if (error != NULL) {
        wait->err = *error;
    } else {
        memcpy(wait->reply, reply, wait->size);
        memset(reply, 0, wait->size);
    }
}

int remote_call_sync(struct remote *remote, enum op op, const struct message *body_message, const void *body,
                     const struct message *answer, void *reply, uint64_t deadline_ms, struct err *err)
{
    struct wait_for wait = {.reply = reply, .size = answer->size};
    remote_call(remote, op, body_message, body, answer, deadline_ms, on_answer, &wait);
    while (!wait.done)
        uv_run(remote->loop, UV_RUN_ONCE);
    return wait.err.code == ERR_NONE ? 0 : err_set(err, wait.err.code, "%s", wait.err.text);
}

// Connects and closes again, to learn at once and precisely why nobody answers (nng only knows "not yet").
static int try_address(const struct addrinfo *info)
{
    int error = 0;
    socklen_t len = sizeof error;
    int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol);
    if (fd < 0)
        return errno;
    if (connect(fd, info->ai_addr, info->ai_addrlen) < 0) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
        if (errno != EINPROGRESS)
            error = errno;
        else if (poll(&poll_fd, 1, CONNECT_TIMEOUT_MS) <= 0)
            error = ETIMEDOUT;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    }
    close(fd);
    return error;
}

static int check_listening(const struct remote *remote, const char *program, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", remote->address.port);
    int code = getaddrinfo(remote->address.host, port, &hints, &list);
    if (code != 0)
        return err_set(err, ERR_UNREACHABLE, "%s: host \"%s\" is not known: %s", remote->url, remote->address.host,
                       gai_strerror(code));
    int error = ECONNREFUSED;
    for (const struct addrinfo *info = list; info != NULL && error != 0; info = info->ai_next)
        error = try_address(info);
    freeaddrinfo(list);
    if (error != 0)
        return err_set_errno(err, ERR_UNREACHABLE, error, "no %s answers on %s; start one, name another, or use --local", program,
                             remote->url);
    return 0;
}

int remote_hello(struct remote *remote, const char *program, struct hello_reply *ret, struct err *err)
{
    struct hello_request hello = {.version_min = KCAST_PROTOCOL_MIN,
                                  .version_max = KCAST_PROTOCOL_MAX,
                                  .program = (char *)(uintptr_t)"kcast",
                                  .release = (char *)(uintptr_t)KCAST_VERSION};
    int status = check_listening(remote, program, err);
    if (status < 0)
        return status;
    status = remote_call_sync(remote, OP_HELLO, &hello_request_message, &hello, &hello_reply_message, ret, HELLO_TIMEOUT_MS, err);
    if (status < 0)
        return status;
    if (ret->program == NULL || strcmp(ret->program, program) != 0) {
        err_set(err, ERR_PROTOCOL, "%s is a %s where a %s is needed; check --pool and --worker", remote->url,
                ret->program != NULL ? ret->program : "program without a name", program);
        message_clear(&hello_reply_message, ret);
        return ERR_PROTOCOL;
    }
    return 0;
}
