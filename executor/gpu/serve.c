// Design note. Frames go to what was stdout when the process started. Stdout itself is redirected
// to stderr before the driver is used, so that text which the driver prints for a candidate (a
// failed assertion) cannot come between the frames. The process ends after a candidate has broken
// the context or a kernel does not end; the daemon starts another one.
#include "executor/gpu/serve.h"
#include "common/exit.h"
#include "common/mem.h"
#include "common/printable.h"
#include "executor/frame.h"
#include "executor/gpu/harness.h"
#include "executor/gpu/measure.h"
#include "executor/gpu/record/recorder.h"
#include "proto/messages.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PLAN_MAX ((size_t)416 << 20)

// Gives the descriptor that frames are written to.
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
    struct recorder recorder; // of candidates that run unsealed
    struct oracle oracle;
    struct gpu gpu;
};

static int answer(void *owner, const struct bytes *packed_plan, struct bytes *ret, bool *ret_last,
                  struct err *err)
{
    struct server *server = owner;
    struct gpu_harness harness = {
        .gpu = &server->gpu, .oracle = &server->oracle, .recorder = &server->recorder};
    struct measure_plan plan;
    int rc = message_read(&measure_plan_message, &plan, packed_plan->data, packed_plan->len, err);

    if (rc != 0) {
        return rc;
    }
    struct strbuf packed = STRBUF_INIT;
    struct measure_outcome outcome;
    rc = measure_run(&measure_gpu, &harness, &plan, &outcome, err);
    if (rc != 0) {
        goto out;
    }
    *ret_last = outcome.retire;
    rc = message_pack(&measure_outcome_message, &outcome, &packed, err);
    message_clear(&measure_outcome_message, &outcome);
    if (rc != 0) {
        goto out;
    }
    *ret = strbuf_detach_bytes(&packed);
out:
    strbuf_release(&packed);
    message_clear(&measure_plan_message, &plan);
    return rc;
}

// Starts the oracle before the driver is used, because a process that has used it cannot be forked.
// What starts interpreters is forked before that, so that it has nothing of the oracle's.
static int start(struct server *server, const char *uuid, struct err *err)
{
    int rc = recorder_fork(&server->recorder, err);

    if (rc != 0) {
        return rc;
    }
    rc = oracle_start(&server->oracle, uuid, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_open(&server->gpu, uuid, err);
    return rc == 0 ? oracle_ready(&server->oracle, err) : rc;
}

int serve_cuda(const char *uuid, struct err *err)
{
    struct server server = {.recorder = RECORDER_INIT, .oracle = {.socket = -1}};
    int frames = -1, rc = take_stdout(&frames, err);

    if (rc != 0) {
        goto out;
    }
    rc = start(&server, uuid, err);
    if (rc != 0) {
        goto out;
    }
    rc = frame_serve(STDIN_FILENO, frames, PLAN_MAX, answer, &server, err);
out:
    oracle_stop(&server.oracle);
    recorder_stop(&server.recorder);
    if (server.gpu.hung) {
        if (rc != 0) { // main, which prints errors, is not reached
            printable_printf(stderr, "kcast-exec: %s\n", err->text);
        }
        _exit(rc == 0 ? EXIT_OK : EXIT_SYSTEM);
    }
    gpu_close(&server.gpu);
    return rc;
}
