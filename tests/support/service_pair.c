#include "tests/support/service_pair.h"
#include "tests/support/program.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

void service_pair_init(struct service_pair *pair)
{
    *pair = (struct service_pair){.service = NULL};
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&pair->loop), 0);
}

void service_pair_open(struct service_pair *pair,
                       void (*on_request)(void *owner, struct exchange *exchange,
                                          const struct request *request),
                       void *owner)
{
    struct service_config config = {
        .url = "tcp://127.0.0.1:0",
        .exchanges_max = 64,
        .parked_max = 32,
        .message_max = (size_t)16 << 20,
        .epoch = 1,
        .on_request = on_request,
        .owner = owner,
    };
    struct err err = ERR_INIT;

    if (service_create(&pair->service, &pair->loop, &config, &err) != 0 ||
        remote_create(&pair->remote, &pair->loop, service_url(pair->service), &err) != 0) {
        fail_msg("%s", err.text);
    }
}

int service_pair_call(struct service_pair *pair, enum op op, const struct message *body_message,
                      const void *body, const struct message *answer_message, void *reply,
                      struct err *err)
{
    *err = (struct err)ERR_INIT;
    return remote_call_sync(pair->remote, op, body_message, body, answer_message, reply,
                            PROGRAM_LIMIT_MS, err);
}

void service_pair_close(struct service_pair *pair)
{
    remote_close(pair->remote);
    service_close(pair->service);
    (void)uv_run(&pair->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&pair->loop), 0);
}
