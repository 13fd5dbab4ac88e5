#include "client/pool/pool_size.h"

#include "client/pool/daemons.h"
#include "client/pool/device_choice.h"
#include "common/mem.h"
#include <stdlib.h>

#define STATUS_MS 10000 // deadline of STATUS

// A STATUS under way.
struct question {
    size_t *pending;
    bool asked; // the daemon is there
    bool answered;
    struct status status; // if answered
    struct err why;       // if asked and not answered
};

static void on_status(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct question *question = owner;
    (void)retry_after_ms;
    --*question->pending;
    if (error) {
        question->why = *error;
        return;
    }
    question->answered = true;
    question->status = *(struct status *)reply;
    message_init(&status_message, reply);
}

// Asks all daemons and waits for their answers, also after an interruption: each call has a
// deadline, and the questions must outlive the calls.
static void ask_all(const struct daemons *daemons, struct session *session,
                    struct question *question)
{
    size_t pending = 0;
    struct status_request request = {0};
    for (size_t i = 0; i < daemons->count; i++) {
        question[i].pending = &pending;
        question[i].asked = daemons->link[i].remote;
        if (question[i].asked) {
            pending++;
            remote_call(daemons->link[i].remote, OP_STATUS, &status_request_message, &request,
                        &status_message, STATUS_MS, on_status, &question[i]);
        }
    }
    while (pending > 0) {
        uv_run(session_loop(session), UV_RUN_ONCE);
    }
}

// Finds the first device that suits. Without one, *err is about the first daemon that is there.
static int choose(const struct question *question, size_t count, const struct problem *problem,
                  struct device_info *ret, struct err *err)
{
    struct err first = ERR_INIT;
    for (size_t i = 0; i < count; i++) {
        struct err why = question[i].why;
        if (question[i].answered &&
            device_choose(&question[i].status, NULL, problem, ret, &why) == 0) {
            return 0;
        }
        if (first.code == ERR_NONE && question[i].asked) {
            first = why;
        }
    }
    return err_set(err, first.code, "%s", first.text);
}

int pool_size_ask(struct session *session, const struct problem *problem,
                  struct device_info *ret_device, struct pool_size *ret, struct err *err)
{
    struct daemons daemons;
    int rc = daemons_connect(&daemons, session, err);
    if (rc != 0) {
        return rc;
    }
    struct question *question = xcalloc(daemons.count + 1, sizeof(*question));
    ask_all(&daemons, session, question);
    rc = choose(question, daemons.count, problem, ret_device, err);
    *ret = (struct pool_size){0};
    for (size_t i = 0; i < daemons.count; i++) {
        const struct status *status = &question[i].status;
        size_t devices = rc == 0 && question[i].answered
                             ? device_count(status, ret_device->device_class, NULL)
                             : 0;
        ret->devices += devices;
        ret->compile_slots += devices > 0 ? status->compile_slots : 0;
        if (question[i].answered) {
            message_clear(&status_message, &question[i].status);
        }
    }
    free(question);
    daemons_release(&daemons);
    return rc;
}
