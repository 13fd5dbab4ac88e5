// Design note. One command is under way at a time. The answer is waited for without sleeping at
// first, because the time of a run ends with it. Limits are of wall time: what the candidate does
// before its runs has one for all together, each run has its own. Numbers that the process gets to
// see come from the system: from one of the measurement's it could learn what its next inputs are.
#include "executor/gpu/unsealed/unsealed.h"
#include "common/clock.h"
#include "common/stats.h"
#include "executor/compile_result.h"
#include "executor/gpu/unsealed/wire.h"
#include "proto/messages.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SPIN_NS (20 * NS_PER_MS) // for so long an answer is waited for without sleeping
#define EMPTY_NS (60 * NS_PER_S) // for an empty command; the first one makes the context
#define END_SECONDS 20           // until the process has ended
#define CPU_FACTOR 2             // more than one thread may work

static int fail(struct unsealed_failure *ret, enum verdict verdict, char *reason_take)
{
    compile_result_clean(reason_take, strlen(reason_take));
    *ret = (struct unsealed_failure){.verdict = verdict, .reason = reason_take};
    return UNSEALED_FAILED;
}

// ---- begin and end ----

int unsealed_open(struct unsealed *u, struct recorder *recorder, const struct unsealed_plan *plan,
                  struct record_request *request, int memory, struct err *err)
{
    struct bytes packed = {.data = NULL};
    struct err why = ERR_INIT;
    bool is_text;

    *u = (struct unsealed){.recorder = recorder,
                           .socket = -1,
                           .host_seconds = plan->host_seconds,
                           .left_ns = (uint64_t)(plan->host_seconds * 1e9),
                           .answer = xmalloc(UNSEALED_ANSWER_MAX)};
    request->cpu_seconds = CPU_FACTOR * (plan->host_seconds + plan->run_seconds);
    if (recorder_start(recorder, plan->python ? plan->python : "python3", plan->sandbox_off,
                       &why) != 0) {
        return err_set(err, ERR_UNSUPPORTED,
                       "this host runs no candidates that have host code of their own: %.700s",
                       why.text);
    }
    int rc = record_request_make(request, &packed, &is_text, err);
    if (rc == 0 && !is_text) { // which was found when it was recorded
        rc = err_set(err, ERR_INVALID, "the candidate is no UTF-8 text");
    }
    rc = rc == 0 ? recorder_begin_unsealed(recorder, &packed, memory, &u->socket, err) : rc;
    bytes_clear(&packed);
    return rc;
}

// Closes the socket and waits for the end of the process.
static void end(struct unsealed *u, double seconds)
{
    if (u->socket >= 0) {
        close(u->socket);
        u->socket = -1;
        u->lost = !recorder_end_unsealed(u->recorder, seconds, &u->ended) || u->lost;
    }
}

bool unsealed_close(struct unsealed *u)
{
    bool lost;

    end(u, END_SECONDS);
    free(u->answer);
    lost = u->lost;
    *u = (struct unsealed){.socket = -1};
    return !lost;
}

// ---- one command ----

// Waits for a message. Returns its length, 0 when the process has ended, -1 when the time is over.
static ssize_t await(const struct unsealed *u, uint64_t limit_ns)
{
    uint64_t begin = clock_now_ns(&clock_system), now = begin;

    while (now - begin <= limit_ns) {
        ssize_t n = recv(u->socket, u->answer, UNSEALED_ANSWER_MAX, MSG_DONTWAIT | MSG_TRUNC);

        if (n >= 0) {
            return n;
        }
        if (errno != EAGAIN && errno != EINTR) {
            return 0;
        }
        now = clock_now_ns(&clock_system);
        if (now - begin > SPIN_NS) {
            (void)poll(&(struct pollfd){.fd = u->socket, .events = POLLIN}, 1, 1);
        }
    }
    return -1;
}

static int died(struct unsealed *u, struct unsealed_failure *ret)
{
    char *how;

    end(u, END_SECONDS);
    if (u->lost) {
        return fail(ret, VERDICT_CRASH, xstrdup("its process went away and left others running"));
    }
    how = compile_result_end(u->ended.status);
    char *reason = xasprintf("its process %s", how);
    free(how);
    return fail(ret, VERDICT_CRASH, reason);
}

static int senseless(struct unsealed *u, struct unsealed_failure *ret)
{
    end(u, END_SECONDS);
    return fail(ret, VERDICT_REJECTED,
                xstrdup("its process does not answer as it should; it may not use the descriptors "
                        "of the process that it runs in"));
}

// Takes the packed record_reply of a failure.
static int refused(struct unsealed *u, const unsigned char *data, size_t len,
                   struct unsealed_failure *ret)
{
    struct record_reply reply;
    struct err why = ERR_INIT;

    if (message_read(&record_reply_message, &reply, data, len, &why) != 0) {
        return senseless(u, ret);
    }
    const char *text = reply.reason ? reply.reason : reply.failure ? reply.failure : "it gave up";
    enum verdict verdict = record_reply_verdict(&reply, VERDICT_CRASH);
    int rc = fail(ret, verdict, xasprintf("%.3900s", text));
    message_clear(&record_reply_message, &reply);
    end(u, END_SECONDS);
    return rc;
}

static int command(struct unsealed *u, enum unsealed_what what, uint32_t number, uint64_t limit_ns,
                   struct unsealed_failure *ret, struct err *err)
{
    struct unsealed_command message = {.what = what, .number = number, .nonce = stats_entropy()};
    uint64_t nonce = 0;

    if (u->socket < 0) {
        return err_set(err, ERR_INTERNAL, "an unsealed candidate without a process was to run");
    }
    if (send(u->socket, &message, sizeof(message), MSG_NOSIGNAL) != (ssize_t)sizeof(message)) {
        return died(u, ret);
    }
    ssize_t len = await(u, limit_ns);
    if (len < 0) {
        end(u, 0);
        return fail(ret, VERDICT_TIMEOUT,
                    xasprintf("it did not end within %.3g seconds", clock_seconds(limit_ns)));
    }
    if (len == 0) {
        return died(u, ret);
    }
    if ((size_t)len < sizeof(nonce) || (size_t)len > UNSEALED_ANSWER_MAX) {
        return senseless(u, ret);
    }
    memcpy(&nonce, u->answer, sizeof(nonce));
    if (nonce != message.nonce) {
        return senseless(u, ret);
    }
    return (size_t)len == sizeof(nonce)
               ? 0
               : refused(u, u->answer + sizeof(nonce), (size_t)len - sizeof(nonce), ret);
}

int unsealed_empty(struct unsealed *u, struct err *err)
{
    struct unsealed_failure why = {.reason = NULL};
    int rc = command(u, UNSEALED_EMPTY, 0, EMPTY_NS, &why, err);

    if (rc == UNSEALED_FAILED) {
        rc = err_set(err, ERR_SYSTEM, "the process for an unsealed candidate has failed: %.700s",
                     why.reason);
        free(why.reason);
    }
    return rc;
}

// A command outside of the clock, whose time all such commands share.
static int prepare(struct unsealed *u, enum unsealed_what what, uint32_t number,
                   struct unsealed_failure *ret, struct err *err)
{
    uint64_t begin = clock_now_ns(&clock_system);
    int rc = command(u, what, number, u->left_ns, ret, err);
    uint64_t took = clock_now_ns(&clock_system) - begin;

    u->left_ns -= took < u->left_ns ? took : u->left_ns;
    if (rc == UNSEALED_FAILED && ret->verdict == VERDICT_TIMEOUT) {
        free(ret->reason);
        return fail(ret, VERDICT_TIMEOUT,
                    xasprintf("its host code was not ready for all cases within %g seconds",
                              u->host_seconds));
    }
    return rc;
}

int unsealed_begin(struct unsealed *u, struct unsealed_failure *ret, struct err *err)
{
    return prepare(u, UNSEALED_BEGIN, 0, ret, err);
}

int unsealed_case(struct unsealed *u, uint32_t number, struct unsealed_failure *ret,
                  struct err *err)
{
    return prepare(u, UNSEALED_CASE, number, ret, err);
}

int unsealed_run(struct unsealed *u, uint64_t limit_ns, struct unsealed_failure *ret,
                 struct err *err)
{
    return command(u, UNSEALED_RUN, 0, limit_ns, ret, err);
}
