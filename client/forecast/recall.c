#include "client/forecast/recall.h"

#include "net/rpc/remote.h"

#define RECALL_MS 60000 // deadline: it reads all outcomes of the worker's state

int recall_ask(struct recall_reply *ret, struct session *session,
               const struct recall_request *request, struct err *err)
{
    struct remote *worker = NULL;
    struct hello_reply hello = {0};
    int rc = session_worker(session, &worker, err);
    if (rc != 0) {
        goto out;
    }
    rc = remote_hello_sync(worker, "kcast-worker", &hello, err);
    if (rc != 0) {
        goto out;
    }
    if (!hello.worker || !hello.worker->recalls) {
        rc = err_set(err, ERR_UNSUPPORTED,
                     "the worker's engine %s cannot tell what it knows of other devices; start "
                     "kcast-worker of this release with --engine static or both",
                     hello.worker ? hello.worker->engine : "?");
        goto out;
    }
    rc = remote_call_sync(worker, OP_RECALL, &recall_request_message, request,
                          &recall_reply_message, ret, RECALL_MS, err);
out:
    message_clear(&hello_reply_message, &hello);
    if (rc != 0) {
        err_wrap(err, "--warm worker");
    }
    return rc;
}
