// Design note. Calls are in a table by id, sent or not, until they end; net/rpc/link.c makes the
// connection on which they are sent, and net/rpc/hello.c calls HELLO. One timer serves the earliest
// deadline and what the link waits for. It may fire too early but never too late, and everything is
// checked when it fires.
//
// The timer only wakes the poll of the loop. A call that ends without a reply goes to the list
// `ended` and wakes the poll too. on_wake then checks the time and runs the callbacks. This has two
// reasons. A reply that has arrived while the program was busy elsewhere is read before the
// deadline of its call is checked. And because all callbacks run from the poll, uv_run(UV_RUN_ONCE)
// returns after one has run; after a timer that is due when it begins, it would go on to wait.
//
// A callback may do anything, even close the remote: the memory stays until the loop has closed the
// handles.
#include "net/rpc/remote_state.h"

#include "common/clock.h"
#include "common/version.h"
#include "net/rpc/frames.h"
#include "net/tls/tls.h"
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define REQUEST_MAX ((size_t)16 << 20) // bytes, until HELLO tells what the other side takes

static void on_timer(uv_timer_t *timer);

// --- the end of calls

static void free_call(struct call *call)
{
    strbuf_release(&call->frame);
    free(call);
}

static void unlink_call(struct call *call)
{
    struct remote *remote = call->remote;

    HASH_DEL(remote->calls, call);
    remote->unsent -= !call->sent;
}

static void end_call(struct call *call, const struct err *why)
{
    unlink_call(call);
    if (call->err.code == ERR_NONE) {
        call->err = *why;
    }
    DL_APPEND(call->remote->ended, call);
    if (!call->remote->closing) {
        (void)uv_async_send(&call->remote->wake);
    }
}

void remote_end_calls(struct remote *remote, const struct err *why, bool sent_only)
{
    struct call *call;
    struct call *next;

    HASH_ITER (hh, remote->calls, call, next) {
        if (call->sent || !sent_only) {
            end_call(call, why);
        }
    }
}

static void finish_calls(struct remote *remote)
{
    struct call *call;

    while ((call = remote->ended)) {
        DL_DELETE(remote->ended, call);
        call->callback(call->owner, &call->err, 0, NULL);
        free_call(call);
    }
}

// --- the timer

void remote_arm(struct remote *remote, uint64_t at_ns)
{
    uint64_t now_ns = uv_hrtime();

    if (at_ns < remote->timer_ns && !remote->closing) {
        remote->timer_ns = at_ns;
        (void)uv_timer_start(&remote->timer, on_timer,
                             at_ns > now_ns ? (at_ns - now_ns) / NS_PER_MS + 1 : 0, 0);
    }
}

// --- replies

// Whether an error is about the other side's own files and machine, whose sentence would read as if
// it were about this one's.
static bool is_of_its_machine(enum err_code code)
{
    return code == ERR_SYSTEM || code == ERR_NO_SPACE || code == ERR_CORRUPT ||
           code == ERR_INTERNAL;
}

// Returns 0 with *body filled, or the error that the reply carries. An absent body is an empty
// message.
static int read_body(const struct call *call, const struct reply *reply, void *body,
                     struct err *err)
{
    static const unsigned char empty_map = 0x80;
    bool empty = reply->body.len == 0;

    if (reply->error) {
        enum err_code code = err_from_name(reply->error);
        int rc = err_set(err, code, "%s", reply->text ? reply->text : reply->error);

        return is_of_its_machine(code) ? err_wrap(err, "%s", call->remote->url) : rc;
    }
    return message_read(call->answer, body, empty ? (const void *)&empty_map : reply->body.data,
                        empty ? 1 : reply->body.len, err);
}

static void finish_by_reply(struct call *call, const struct reply *reply)
{
    struct err err = ERR_INIT;
    void *body = xcalloc(1, call->answer->size);
    int rc = read_body(call, reply, body, &err);

    unlink_call(call);
    call->callback(call->owner, rc == 0 ? NULL : &err, reply->retry_after_ms,
                   rc == 0 ? body : NULL);
    if (rc == 0) {
        message_clear(call->answer, body);
    }
    free(body);
    free_call(call);
}

// A reply whose call has ended before, by its deadline, is ignored.
bool remote_on_frame(void *owner, const struct frames_view *frame)
{
    struct remote *remote = owner;
    struct err err = ERR_INIT;
    struct reply reply;
    struct call *call;
    uint32_t id = frames_request(frame);

    if (frame->header_len != FRAMES_WORD_LEN) {
        stream_end(remote->stream, ERR_PROTOCOL, "a reply with a header that no request had");
        return true;
    }
    if (message_read(&reply_message, &reply, frame->data, frame->len, &err) != 0) {
        stream_end(remote->stream, ERR_PROTOCOL, err.text);
        return true;
    }
    HASH_FIND(hh, remote->calls, &id, sizeof(id), call);
    if (call && call->sent) {
        finish_by_reply(call, &reply);
    } else if (id == remote->token_id && reply.error) {
        (void)err_set(&err, err_from_name(reply.error), "%s: %s", remote->url,
                      reply.text ? reply.text : reply.error);
        // The calls that were sent would be refused too, with a less helpful sentence.
        remote_end_calls(remote, &err, true);
    }
    message_clear(&reply_message, &reply);
    return true;
}

static void send_call(struct call *call)
{
    call->sent = true;
    call->remote->unsent--;
    stream_send(call->remote->stream, &call->frame);
}

void remote_send_calls(struct remote *remote)
{
    struct call *call;
    struct call *next;

    HASH_ITER (hh, remote->calls, call, next) {
        if (!call->sent && call->err.code == ERR_NONE) {
            send_call(call);
        }
    }
}

// Returns a number that no open call has. The numbers go round.
static uint32_t next_id(struct remote *remote)
{
    const struct call *call;
    uint32_t id;

    do {
        id = remote->last_id = (remote->last_id + 1) | FRAMES_REQUEST;
        HASH_FIND(hh, remote->calls, &id, sizeof(id), call);
    } while (call);
    return id;
}

void remote_send_token(struct remote *remote)
{
    struct request request = {.op = OP_HELLO, .token = remote->token};
    struct hello_request hello = {.version_min = KCAST_PROTOCOL_MIN,
                                  .version_max = KCAST_PROTOCOL_MAX};
    struct strbuf frame = STRBUF_INIT;

    if (!remote->token) {
        return;
    }
    remote->token_id = next_id(remote);
    frame_begin_request(&frame, remote->token_id);
    if (request_pack(&frame, &request, &hello_request_message, &hello, NULL) == 0) {
        frame_end(&frame);
        stream_send(remote->stream, &frame);
    }
    strbuf_release(&frame);
}

// --- deadlines

int remote_no_answer(const struct remote *remote, struct err *err)
{
    return err_set(err, ERR_UNREACHABLE,
                   "no %s answers on %s; start one, name another, or use --local: %s",
                   remote->wanted, remote->url, remote->failure.text);
}

static void end_overdue(struct remote *remote, uint64_t now_ns)
{
    struct err err = ERR_INIT;
    struct call *call;
    struct call *next;

    HASH_ITER (hh, remote->calls, call, next) {
        if (call->deadline_ns <= now_ns) {
            bool waited = !call->sent && remote->failure.code != ERR_NONE;

            err_clear(&err);
            if (waited && remote->wanted) {
                (void)remote_no_answer(remote, &err);
            } else {
                (void)err_set(&err, ERR_TIMED_OUT, "%s gave no answer within the deadline%s%s",
                              remote->url, waited ? ": " : "", waited ? remote->failure.text : "");
            }
            end_call(call, &err);
        }
    }
}

static void on_wake(uv_async_t *wake)
{
    struct remote *remote = wake->data;
    uint64_t now_ns = uv_hrtime();

    end_overdue(remote, now_ns);
    link_on_time(remote, now_ns);
    for (const struct call *call = remote->calls; call; call = call->hh.next) {
        remote_arm(remote, call->deadline_ns);
    }
    finish_calls(remote);
}

static void on_timer(uv_timer_t *timer)
{
    struct remote *remote = timer->data;

    remote->timer_ns = UINT64_MAX;
    (void)uv_async_send(&remote->wake);
}

// --- interface

static int create(struct remote **ret, uv_loop_t *loop, const char *url, const struct url *address,
                  struct err *err)
{
    struct remote *remote = xcalloc(1, sizeof(*remote));
    int rc = uv_async_init(loop, &remote->wake, on_wake);
    if (rc != 0) {
        free(remote);
        return err_set_errno(err, ERR_SYSTEM, -rc, "cannot prepare a connection to %s", url);
    }
    remote->wake.data = remote;
    remote->loop = loop;
    remote->url = xstrdup(url);
    remote->address = *address;
    remote->request_max = REQUEST_MAX;
    remote->timer_ns = UINT64_MAX;
    (void)uv_timer_init(loop, &remote->timer);
    remote->timer.data = remote;
    remote->handles = 2;
    *ret = remote;
    return 0;
}

int remote_create(struct remote **ret, uv_loop_t *loop, const char *url, struct err *err)
{
    struct url address;
    int rc = url_parse(&address, url, err);

    if (rc == 0 && address.tls) {
        rc = err_set(err, ERR_INVALID, "%s needs certificates", url);
    }
    return rc == 0 ? create(ret, loop, url, &address, err) : rc;
}

int remote_create_tls(struct remote **ret, uv_loop_t *loop, const char *url, struct tls *tls,
                      const char *token, struct err *err)
{
    struct url address;
    int rc = url_parse(&address, url, err);

    if (rc == 0 && !address.tls) {
        rc = err_set(err, ERR_INVALID, "%s is not encrypted; write tls://HOST:PORT", url);
    }
    rc = rc == 0 ? create(ret, loop, url, &address, err) : rc;
    if (rc == 0) {
        (*ret)->tls = tls_hold(tls);
        (*ret)->token = token ? xstrdup(token) : NULL;
    }
    return rc;
}

void remote_expect(struct remote *remote, const char *name)
{
    free(remote->expected_name);
    remote->expected_name = xstrdup(name);
}

const char *remote_url(const struct remote *remote)
{
    return remote->url;
}

uint64_t remote_connection(const struct remote *remote)
{
    return remote->state == LINK_UP && stream_is_open(remote->stream) ? remote->connections : 0;
}

static int pack(struct call *call, enum op op, const struct message *message, const void *body,
                uint64_t deadline_ms, struct err *err)
{
    size_t max = call->remote->request_max;

    struct request request = {.op = op, .deadline_ms = deadline_ms};

    frame_begin_request(&call->frame, call->id);
    size_t head = call->frame.len;
    int rc = request_pack(&call->frame, &request, message, body, err);
    if (rc != 0) {
        return rc;
    }
    frame_end(&call->frame);
    size_t len = call->frame.len - head;
    return len <= max ? 0
                      : err_set(err, ERR_LIMIT, "a request %s of %zu bytes, and %s takes %zu",
                                op_name(op), len, call->remote->url, max);
}

void remote_call(struct remote *remote, enum op op, const struct message *body_message,
                 const void *body, const struct message *answer, uint64_t deadline_ms,
                 remote_callback *callback, void *owner)
{
    struct call *call = xcalloc(1, sizeof(*call));

    *call = (struct call){
        .remote = remote,
        .id = next_id(remote),
        .frame = STRBUF_INIT,
        .deadline_ns = uv_hrtime() + deadline_ms * NS_PER_MS,
        .answer = answer,
        .callback = callback,
        .owner = owner,
    };
    HASH_ADD(hh, remote->calls, id, sizeof(call->id), call);
    remote->unsent++;
    if (pack(call, op, body_message, body, deadline_ms, &call->err) != 0) {
        call->deadline_ns = 0; // makes the timer end it with this error
    } else if (remote->state == LINK_UP && stream_is_open(remote->stream)) {
        send_call(call);
    }
    remote_arm(remote, call->deadline_ns);
    link_arm(remote);
}

static void on_closed(uv_handle_t *handle)
{
    struct remote *remote = handle->data;

    if (--remote->handles == 0) {
        if (remote->token) {
            explicit_bzero(remote->token, strlen(remote->token));
        }
        tls_release(remote->tls);
        free(remote->token);
        free(remote->expected_name);
        free(remote->url);
        free(remote);
    }
}

void remote_close(struct remote *remote)
{
    if (!remote || remote->closing) {
        return;
    }
    remote->closing = true;
    link_close(remote);
    struct err err = ERR_INIT;
    (void)err_set(&err, ERR_STOPPED, "the connection to %s was closed", remote->url);
    remote_end_calls(remote, &err, false);
    finish_calls(remote);
    uv_close((uv_handle_t *)&remote->timer, on_closed);
    uv_close((uv_handle_t *)&remote->wake, on_closed);
}

// --- waiting calls

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
    if (error) {
        wait->err = *error;
    } else {
        memcpy(wait->reply, reply, wait->size);
        memset(reply, 0, wait->size);
    }
}

static int wait_for(struct remote *remote, struct wait_for *wait, struct err *err)
{
    while (!wait->done) {
        (void)uv_run(remote->loop, UV_RUN_ONCE);
    }
    return wait->err.code == ERR_NONE ? 0 : err_set(err, wait->err.code, "%s", wait->err.text);
}

int remote_call_sync(struct remote *remote, enum op op, const struct message *body_message,
                     const void *body, const struct message *answer, void *reply,
                     uint64_t deadline_ms, struct err *err)
{
    struct wait_for wait = {.reply = reply, .size = answer->size};

    remote_call(remote, op, body_message, body, answer, deadline_ms, on_answer, &wait);
    return wait_for(remote, &wait, err);
}

int remote_hello_sync(struct remote *remote, const char *program, struct hello_reply *ret,
                      struct err *err)
{
    struct wait_for wait = {.reply = ret, .size = sizeof(*ret)};

    remote_hello(remote, program, on_answer, &wait);
    return wait_for(remote, &wait, err);
}
