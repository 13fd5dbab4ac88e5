// Who is on the other side? HELLO is the first call of a connection, and the one that may be asked
// again without harm. Where packets get lost, its answer may take several connections: it is asked
// again as long as the other side takes connections and does not refuse or end them, but not for
// ever. A host that is not there is told from a slow one by taking none.
#include "common/clock.h"
#include "common/version.h"
#include "net/rpc/remote_state.h"
#include <stdlib.h>
#include <string.h>

#define ASK_MS 10000   // without a sign of the other side
#define GREET_MS 30000 // in all

struct greeting {
    struct remote *remote;
    const char *program;
    uint64_t end_ns; // it is not asked for any longer
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

static void ask_hello(struct greeting *greeting);

static void on_greeted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct greeting greeting = *(struct greeting *)owner;

    if (error && (error->code == ERR_TIMED_OUT || error->code == ERR_UNREACHABLE) &&
        link_is_slow(greeting.remote) && uv_hrtime() + ASK_MS * NS_PER_MS <= greeting.end_ns) {
        ask_hello(owner);
        return;
    }
    free(owner);
    greeting.remote->wanted = NULL;
    struct err err = ERR_INIT;
    if (!error && check_hello(greeting.remote, greeting.program, reply, &err) != 0) {
        error = &err;
        reply = NULL;
    }
    greeting.callback(greeting.owner, error, retry_after_ms, reply);
}

static void ask_hello(struct greeting *greeting)
{
    greeting->remote->was_slow = false;
    struct hello_request hello = {.version_min = KCAST_PROTOCOL_MIN,
                                  .version_max = KCAST_PROTOCOL_MAX,
                                  .program = (char *)(uintptr_t) "kcast",
                                  .release = (char *)(uintptr_t)KCAST_VERSION};
    remote_call(greeting->remote, OP_HELLO, &hello_request_message, &hello, &hello_reply_message,
                ASK_MS, on_greeted, greeting);
}

void remote_greet(struct remote *remote, const char *program, remote_callback *callback,
                  void *owner)
{
    struct greeting *greeting = xcalloc(1, sizeof(*greeting));

    *greeting = (struct greeting){.remote = remote,
                                  .program = program,
                                  .end_ns = uv_hrtime() + GREET_MS * NS_PER_MS,
                                  .callback = callback,
                                  .owner = owner};
    remote->wanted = program;
    remote->retry_ns = 0;
    ask_hello(greeting);
}
