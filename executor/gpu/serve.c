// Stdout belongs to the frames: it is moved aside first, so that nothing that the driver prints for a
// candidate (an assertion's text) can get between them.
#include "executor/gpu/serve.h"
#include "common/exit.h"
#include "common/mem.h"
#include "executor/frame.h"
#include "executor/gpu/bench.h"
#include "executor/gpu/measure.h"
#include "proto/messages.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PLAN_MAX ((size_t)128 << 20)

static int take_stdout(int *ret_fd, struct err *err)
{
    int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "moving stdout aside");
    }
    *ret_fd = fd;
    return 0;
}

struct server {
    struct oracle oracle;
    struct gpu gpu;
};

static int answer(void *owner, const struct bytes *packed_plan, struct bytes *ret, bool *ret_last,
                  struct err *err)
{
    struct server *server = owner;
    struct bench bench = {.gpu = &server->gpu, .oracle = &server->oracle};
    struct measure_plan plan;
    int rc = message_read(&measure_plan_message, &plan, packed_plan->data, packed_plan->len, err);

    if (rc != 0) {
        return rc;
    }
    struct measure_outcome outcome;
    rc = measure_run(&measure_gpu, &bench, &plan, &outcome, err);
    struct strbuf packed = STRBUF_INIT;
    if (rc == 0) {
        *ret_last = outcome.retire;
        rc = message_pack(&measure_outcome_message, &outcome, &packed, err);
        message_clear(&measure_outcome_message, &outcome);
    }
    if (rc == 0) {
        *ret = strbuf_detach_bytes(&packed);
    }
    strbuf_release(&packed);
    message_clear(&measure_plan_message, &plan);
    return rc;
}

// The oracle before the driver: what the driver has begun in a process cannot be forked.
static int start(struct server *server, const char *uuid, struct err *err)
{
    int rc = oracle_start(&server->oracle, uuid, err);

    if (rc == 0) {
        rc = gpu_open(&server->gpu, uuid, err);
    }
    return rc == 0 ? oracle_ready(&server->oracle, err) : rc;
}

int serve_cuda(const char *uuid, struct err *err)
{
    struct server server = {.oracle = {.socket = -1}};
    int out = -1, rc = take_stdout(&out, err);

    if (rc == 0) {
        rc = start(&server, uuid, err);
    }
    if (rc == 0) {
        rc = frame_serve(STDIN_FILENO, out, PLAN_MAX, answer, &server, err);
    }
    oracle_stop(&server.oracle);
    if (server.gpu.hung) {
        if (rc != 0) { // as main would say it
            fprintf(stderr, "kcast-exec: %s\n", err->text);
        }
        _exit(rc == 0 ? EXIT_OK : EXIT_SYSTEM);
    }
    gpu_close(&server.gpu);
    return rc;
}
