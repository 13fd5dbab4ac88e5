// Design note. HELLO is the first call of a connection, and the one call that may be repeated
// without harm. When packets are lost, its answer may take several connections. So HELLO is called
// again, for at most HELLO_TOTAL_MS in all, as long as the other side accepts connections and
// neither refuses nor ends them soon. A host that is not there differs from a slow one in that it
// accepts none.
#include "common/clock.h"
#include "common/mem.h"
#include "common/version.h"
#include "net/rpc/remote_state.h"
#include <stdlib.h>
#include <string.h>

#define HELLO_MS 10000       // deadline of one call
#define HELLO_TOTAL_MS 30000 // no call begins that could end later than this

struct hello_call {
    struct remote *remote;
    const char *program;
    uint64_t end_ns; // no call may end after this (uv_hrtime)
    remote_callback *callback;
    void *owner;
};

static int check_hello(struct remote *remote, const char *program, const struct hello_reply *hello,
                       struct err *err)
{
    if (!hello->program || strcmp(hello->program, program) != 0) {
        return err_set(err, ERR_PROTOCOL,
                       "%s is a %s where a %s is needed; check --pool and --worker", remote->url,
                       hello->program ? hello->program : "program without a name", program);
    }
    if (hello->message_max > 0) {
        remote->request_max = (size_t)hello->message_max;
    }
    return 0;
}

static void call_hello(struct hello_call *call);

static void on_hello(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct hello_call call = *(struct hello_call *)owner;

    if (error && (error->code == ERR_TIMED_OUT || error->code == ERR_UNREACHABLE) &&
        link_is_slow(call.remote) && uv_hrtime() + HELLO_MS * NS_PER_MS <= call.end_ns) {
        call_hello(owner);
        return;
    }
    free(owner);
    call.remote->wanted = NULL;
    struct err err = ERR_INIT;
    if (!error && check_hello(call.remote, call.program, reply, &err) != 0) {
        error = &err;
        reply = NULL;
    }
    call.callback(call.owner, error, retry_after_ms, reply);
}

static void call_hello(struct hello_call *call)
{
    call->remote->was_slow = false;
    struct hello_request hello = {.version_min = KCAST_PROTOCOL_MIN,
                                  .version_max = KCAST_PROTOCOL_MAX,
                                  .program = (char *)(uintptr_t) "kcast",
                                  .release = (char *)(uintptr_t)KCAST_VERSION};
    remote_call(call->remote, OP_HELLO, &hello_request_message, &hello, &hello_reply_message,
                HELLO_MS, on_hello, call);
}

void remote_hello(struct remote *remote, const char *program, remote_callback *callback,
                  void *owner)
{
    struct hello_call *call = xcalloc(1, sizeof(*call));

    *call = (struct hello_call){.remote = remote,
                                .program = program,
                                .end_ns = uv_hrtime() + HELLO_TOTAL_MS * NS_PER_MS,
                                .callback = callback,
                                .owner = owner};
    remote->wanted = program;
    remote->retry_ns = 0;
    call_hello(call);
}
