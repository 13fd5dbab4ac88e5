// A service and somebody who calls it, on one loop of one process: for unit tests of what answers
// exchanges. Calls that must succeed and do not end the test with the error's sentence.
#ifndef TESTS_SUPPORT_SERVICE_PAIR_H
#define TESTS_SUPPORT_SERVICE_PAIR_H

#include "net/rpc/remote.h"
#include "net/rpc/service.h"

struct service_pair {
    uv_loop_t loop; // also of what is tested
    struct service *service;
    struct remote *remote;
};

// The loop is there afterwards; nothing listens yet.
void service_pair_init(struct service_pair *pair);
// Listens on a free port of 127.0.0.1, where every caller is an administrator, and makes the
// caller.
void service_pair_open(struct service_pair *pair,
                       void (*on_request)(void *owner, struct exchange *exchange,
                                          const struct request *request),
                       void *owner);
// Runs the loop until the answer is there: 0 or the error's code. *reply is the caller's.
int service_pair_call(struct service_pair *pair, enum op op, const struct message *body_message,
                      const void *body, const struct message *answer_message, void *reply,
                      struct err *err);
// Closes both and runs the loop until nothing is left in it; then the loop is closed, too.
void service_pair_close(struct service_pair *pair);

#endif
