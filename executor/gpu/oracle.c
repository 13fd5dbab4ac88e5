// The caller's end of the oracle. A request is one struct, and a request with a reply waits for it.
// When the process has gone, every call returns an error. In verification a request follows the
// other within less time than it takes to put a processor to sleep and to wake it, so both ends
// wait without sleeping at first.
#include "common/clock.h"
#include "common/digest.h"
#include "executor/gpu/oracle_wire.h"
#include "executor/sandbox/fd_message.h"
#include "executor/sandbox/process.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPIN_NS NS_PER_MS // a wait does not sleep before this time has passed

int oracle_send(int socket, const void *data, size_t len, struct err *err)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send(socket, at, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_set_errno(err, ERR_SYSTEM, errno, "talking to the oracle");
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

// Receives what there is, and waits until there is something.
static ssize_t receive_some(int socket, void *data, size_t len)
{
    uint64_t start = clock_now_ns(&clock_system);
    ssize_t n;

    do {
        n = recv(socket, data, len, MSG_DONTWAIT);
    } while (n < 0 && errno == EAGAIN && clock_now_ns(&clock_system) - start < SPIN_NS);
    return n < 0 && errno == EAGAIN ? recv(socket, data, len, 0) : n;
}

int oracle_receive(int socket, void *data, size_t len, struct err *err)
{
    char *at = data;

    while (len > 0) {
        ssize_t n = receive_some(socket, at, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_set(err, ERR_SYSTEM, "the oracle process has gone");
        }
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int oracle_start(struct oracle *oracle, const char *uuid, struct err *err)
{
    *oracle = (struct oracle){.socket = -1};
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "a socket for the oracle");
    }
    oracle->pid = fork();
    if (oracle->pid < 0) {
        oracle->pid = 0;
        close(pair[0]);
        close(pair[1]);
        return err_set_errno(err, ERR_SYSTEM, errno, "starting the oracle");
    }
    if (oracle->pid == 0) {
        close(pair[0]);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        oracle_main(uuid, pair[1]);
    }
    close(pair[1]);
    oracle->socket = pair[0];
    return 0;
}

static int take_reply(struct oracle *oracle, struct oracle_reply *reply, struct err *err)
{
    int rc = oracle_receive(oracle->socket, reply, sizeof(*reply), err);

    if (rc == 0 && reply->code != 0) {
        rc = err_set(err, (enum err_code)reply->code, "%s", reply->text);
    }
    return rc;
}

// Sends the request, with a descriptor unless fd < 0, and waits for the reply.
static int ask(struct oracle *oracle, const struct oracle_request *request, int fd,
               struct oracle_reply *reply, struct err *err)
{
    int rc = oracle_send(oracle->socket, request, sizeof(*request), err);

    if (rc != 0) {
        return rc;
    }
    if (fd >= 0 && fd_message_send(oracle->socket, "", 1, &fd, 1) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "talking to the oracle");
    }
    return take_reply(oracle, reply, err);
}

int oracle_ready(struct oracle *oracle, struct err *err)
{
    struct oracle_request request = {.operation = ORACLE_READY};
    struct oracle_reply reply;

    return ask(oracle, &request, -1, &reply, err);
}

void oracle_stop(struct oracle *oracle)
{
    if (oracle->socket >= 0) {
        close(oracle->socket);
    }
    if (oracle->pid > 0) {
        (void)kill(oracle->pid, SIGKILL);
        process_reap(oracle->pid, NULL);
    }
    *oracle = (struct oracle){.socket = -1};
}

static struct digest setup_name(const struct bytes *problem, const struct bytes *reference)
{
    struct digest_state *state = digest_begin();
    uint64_t problem_len = problem->len;

    digest_add(state, &problem_len, sizeof(problem_len));
    digest_add(state, problem->data, problem->len);
    digest_add(state, reference->data, reference->len);
    return digest_end(state);
}

// Sends what the request names, and waits until it is loaded.
static int send_setup(struct oracle *oracle, const struct oracle_request *request,
                      const struct bytes *problem, const struct bytes *reference, struct err *err)
{
    int rc = oracle_send(oracle->socket, request, sizeof(*request), err);

    rc = rc == 0 ? oracle_send(oracle->socket, problem->data, problem->len, err) : rc;
    rc = rc == 0 ? oracle_send(oracle->socket, reference->data, reference->len, err) : rc;
    struct oracle_reply reply;
    return rc == 0 ? take_reply(oracle, &reply, err) : rc;
}

int oracle_setup(struct oracle *oracle, const struct bytes *problem, const struct bytes *reference,
                 struct err *err)
{
    struct oracle_request request = {.operation = ORACLE_USE,
                                     .setup = setup_name(problem, reference),
                                     .problem_len = problem->len,
                                     .object_len = reference->len};
    struct oracle_reply reply;

    if (digest_equal(&request.setup, &oracle->setup)) {
        return 0;
    }
    oracle->setup = (struct digest){{0}};
    int rc = ask(oracle, &request, -1, &reply, err);
    if (rc == 0 && !reply.loaded) {
        request.operation = ORACLE_SETUP;
        rc = send_setup(oracle, &request, problem, reference, err);
    }
    if (rc == 0) {
        oracle->setup = request.setup;
    }
    return rc;
}

int oracle_drop_trimmed(struct oracle *oracle, const struct gpu *gpu, struct err *err)
{
    const struct arena *arena = &gpu->open;
    size_t same = 0;

    while (same < oracle->shared_count && same < arena->chunk_count &&
           oracle->shared[same] == arena->chunk_serial[same]) {
        same++;
    }
    if (same == oracle->shared_count) {
        return 0;
    }
    struct oracle_request request = {.operation = ORACLE_SHARE, .chunks = same};
    struct oracle_reply reply;
    oracle->shared_count = same;
    return ask(oracle, &request, -1, &reply, err);
}

// Has the oracle map one more chunk of the arena.
static int share_chunk(struct oracle *oracle, const struct gpu *gpu, struct err *err)
{
    const struct arena *arena = &gpu->open;
    size_t number = oracle->shared_count;
    struct oracle_request request = {
        .operation = ORACLE_SHARE, .chunks = number, .bytes = arena->chunk_bytes[number]};
    char buf[256];
    int fd = -1;
    cu_result result = arena_export(arena, number, &fd);

    if (result != CU_OK) {
        return err_set(err, ERR_UNSUPPORTED,
                       "the GPU's memory cannot be shared between two processes (%s): measuring "
                       "needs that",
                       driver_error(&gpu->driver, result, buf));
    }
    struct oracle_reply reply;
    int rc = ask(oracle, &request, fd, &reply, err);
    close(fd);
    if (rc == 0) {
        oracle->shared[oracle->shared_count++] = arena->chunk_serial[number];
    }
    return rc;
}

// Has the oracle map what the arena consists of now.
static int share(struct oracle *oracle, const struct gpu *gpu, struct err *err)
{
    int rc = oracle_drop_trimmed(oracle, gpu, err);

    while (rc == 0 && oracle->shared_count < gpu->open.chunk_count) {
        rc = share_chunk(oracle, gpu, err);
    }
    return rc;
}

int oracle_check(struct oracle *oracle, const struct gpu *gpu, const struct oracle_output *outputs,
                 size_t count, uint64_t hash_key, struct oracle_answer *ret, struct err *err)
{
    struct oracle_request request = {
        .operation = ORACLE_CHECK, .count = count, .hash_key = hash_key};
    int rc = share(oracle, gpu, err);

    rc = rc == 0 ? oracle_send(oracle->socket, &request, sizeof(request), err) : rc;
    rc = rc == 0 ? oracle_send(oracle->socket, outputs, count * sizeof(*outputs), err) : rc;
    if (rc != 0) {
        return rc;
    }
    struct oracle_reply reply;
    rc = take_reply(oracle, &reply, err);
    if (rc != 0) {
        return rc;
    }
    return oracle_receive(oracle->socket, ret, count * sizeof(*ret), err);
}

int oracle_run_alone(struct oracle *oracle, const struct bytes *baseline,
                     const struct input_set *set, uint64_t limit_ns, bool *ret_failed,
                     char why[static ERR_TEXT_MAX], struct err *err)
{
    struct oracle_request request = {
        .operation = ORACLE_ALONE, .set = *set, .object_len = baseline->len, .limit_ns = limit_ns};
    int rc = oracle_send(oracle->socket, &request, sizeof(request), err);

    if (rc != 0) {
        return rc;
    }
    rc = oracle_send(oracle->socket, baseline->data, baseline->len, err);
    if (rc != 0) {
        return rc;
    }
    struct oracle_reply reply;
    rc = take_reply(oracle, &reply, err);
    if (rc != 0) {
        return rc;
    }
    *ret_failed = reply.failed;
    (void)snprintf(why, ERR_TEXT_MAX, "%s", reply.text);
    return 0;
}
