// Says why measurements wait. Of several daemons the status is known anyway; a single one is asked
// for it when somebody wants to know.
#include "client/pool/daemon_pool_state.h"

#include "client/pool/device_choice.h"
#include "common/clock.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include <stdlib.h>

#define STATUS_MS 10000

// A question that is under way. It may outlast the pool, because a single connection is the
// session's.
struct status_question {
    struct member *member; // NULL when nobody wants the answer any more
};

static void on_status(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct status_question *question = owner;
    struct member *member = question->member;
    (void)retry_after_ms;
    free(question);
    if (!member) {
        return;
    }
    struct daemon_pool *daemon_pool = member->daemon_pool;
    daemon_pool->question = NULL;
    if (!error && !daemon_pool->closing) {
        daemon_pool_set_status(member, reply);
    } else { // the job client tells what is wrong with the daemon
        member->poll_ns =
            clock_now_ns(daemon_pool->times.clock) + daemon_pool->times.poll * NS_PER_MS;
    }
}

static void ask(struct daemon_pool *daemon_pool)
{
    struct member *member = daemon_pool->member[0];
    struct status_request request = {0};
    if (daemon_pool->several || daemon_pool->question ||
        clock_now_ns(daemon_pool->times.clock) < member->poll_ns) {
        return;
    }
    daemon_pool->question = xcalloc(1, sizeof(*daemon_pool->question));
    daemon_pool->question->member = member;
    remote_call(member->remote, OP_STATUS, &status_request_message, &request, &status_message,
                STATUS_MS, on_status, daemon_pool->question);
}

void daemon_pool_forget_question(struct daemon_pool *daemon_pool)
{
    if (daemon_pool->question) {
        daemon_pool->question->member = NULL;
        daemon_pool->question = NULL;
    }
}

static bool needs_device(const struct daemon_pool *daemon_pool)
{
    const struct daemon_pool_job *job;
    DL_FOREACH (daemon_pool->job, job) {
        if (job->spec.kind == JOB_MEASURE) {
            return true;
        }
    }
    return false;
}

char *daemon_pool_waiting(struct daemon_pool *daemon_pool)
{
    char *first = NULL;
    if (!daemon_pool->chosen_class || daemon_pool->closing || !needs_device(daemon_pool)) {
        return NULL;
    }
    ask(daemon_pool);
    for (size_t i = 0; i < daemon_pool->count; i++) {
        const struct member *member = daemon_pool->member[i];
        if (member->state != MEMBER_ACTIVE || !member->has_status) {
            continue;
        }
        char *why = device_waiting(&member->status, daemon_pool->chosen_class, daemon_pool->search);
        if (!why) {
            free(first);
            return NULL;
        }
        if (!first) {
            first = daemon_pool->several ? xasprintf("waiting: %s: %s", member->url, why)
                                         : xasprintf("waiting: %s", why);
        }
        free(why);
    }
    return first;
}
